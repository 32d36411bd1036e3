#include "line.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *must_alloc(size_t size)
{
    void *memory = calloc(1, size);
    if (memory == NULL) {
        perror("driver");
        exit(1);
    }
    return memory;
}

char *must_copy(const char *text)
{
    return strcpy(must_alloc(strlen(text) + 1), text);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

/* Replaces each %XX by its byte, in place. */
static bool decode(char *value, size_t *length)
{
    char *to = value;
    for (const char *from = value; *from; from++) {
        if (*from != '%') {
            *to++ = *from;
            continue;
        }
        int high = hex_digit(from[1]);
        int low = high < 0 ? -1 : hex_digit(from[2]);
        if (low < 0)
            return false;
        *to++ = (char)(high << 4 | low);
        from += 2;
    }
    *to = '\0';
    *length = (size_t)(to - value);
    return true;
}

struct line *line_parse(const char *text)
{
    struct line *line = must_alloc(sizeof *line);
    char *rest = line->text = must_copy(text);
    line->id = strsep(&rest, " ");
    line->word = strsep(&rest, " ");
    bool valid = line->word != NULL && *line->id && *line->word;
    for (char *value; valid && (value = strsep(&rest, " ")) != NULL;) {
        char *key = strsep(&value, "=");
        valid = value != NULL && line->count < LINE_FIELDS;
        if (valid) {
            struct field *field = &line->fields[line->count++];
            valid = decode(value, &field->length);
            field->key = key;
            field->value = value;
        }
    }
    if (!valid) {
        line_free(line);
        return NULL;
    }
    return line;
}

void line_free(struct line *line)
{
    free(line->text);
    free(line);
}

const struct field *line_field(const struct line *line, const char *key)
{
    for (size_t i = 0; i < line->count; i++)
        if (strcmp(line->fields[i].key, key) == 0)
            return &line->fields[i];
    return NULL;
}

const char *line_text(const struct line *line, const char *key, const char *absent)
{
    const struct field *field = line_field(line, key);
    return field ? field->value : absent;
}

int64_t line_number(const struct line *line, const char *key, int64_t absent)
{
    const struct field *field = line_field(line, key);
    return field ? strtoll(field->value, NULL, 10) : absent;
}

static void append(struct reply *reply, const char *text, size_t length)
{
    if (reply->length + length + 1 > reply->capacity) {
        reply->capacity = 2 * (reply->length + length + 1);
        reply->data = realloc(reply->data, reply->capacity);
        if (reply->data == NULL) {
            perror("driver");
            exit(1);
        }
    }
    memcpy(reply->data + reply->length, text, length);
    reply->length += length;
}

void reply_begin(struct reply *reply, const char *id, const char *word)
{
    memset(reply, 0, sizeof *reply);
    append(reply, id, strlen(id));
    append(reply, " ", 1);
    append(reply, word, strlen(word));
}

void reply_text(struct reply *reply, const char *key, const char *value)
{
    append(reply, " ", 1);
    append(reply, key, strlen(key));
    append(reply, "=", 1);
    for (; *value; value++) {
        char encoded[4];
        if (*value > ' ' && *value < 0x7f && *value != '%')
            append(reply, value, 1);
        else
            append(reply, encoded, (size_t)snprintf(encoded, sizeof encoded, "%%%02X", (unsigned char)*value));
    }
}

void reply_number(struct reply *reply, const char *key, int64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRId64, value);
    reply_text(reply, key, digits);
}

void reply_send(struct reply *reply)
{
    static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;
    append(reply, "\n", 1);
    /* Not by stdio: exit() in another thread would flush what is just being written once more. */
    pthread_mutex_lock(&writing);
    for (size_t done = 0; done < reply->length;) {
        ssize_t n = write(STDOUT_FILENO, reply->data + done, reply->length - done);
        if (n < 0 && errno != EINTR)
            break;
        done += n < 0 ? 0 : (size_t)n;
    }
    pthread_mutex_unlock(&writing);
    free(reply->data);
}
