/* The lines between runner and driver: ../README.md. */
#ifndef LINE_H
#define LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LINE_FIELDS = 64 };

struct field {
    const char *key;
    const char *value; /* decoded; a NUL follows, and more may be in it */
    size_t length;
};

/* A request. It owns its text. */
struct line {
    char *text;
    const char *id;
    const char *word;
    struct field fields[LINE_FIELDS];
    size_t count;
};

/* Reads a line from a copy of text; NULL if it is none. */
struct line *line_parse(const char *text);
void line_free(struct line *line);

/* The first value of a key, NULL if there is none. */
const struct field *line_field(const struct line *line, const char *key);
const char *line_text(const struct line *line, const char *key, const char *absent);
int64_t line_number(const struct line *line, const char *key, int64_t absent);

/* A line that is being written. */
struct reply {
    char *data;
    size_t length, capacity;
};

void reply_begin(struct reply *reply, const char *id, const char *word);
void reply_text(struct reply *reply, const char *key, const char *value);
void reply_number(struct reply *reply, const char *key, int64_t value);
/* Writes the line in one piece, from any thread, and frees it. */
void reply_send(struct reply *reply);

/* malloc and strdup that end the program instead of failing. */
void *must_alloc(size_t size);
char *must_copy(const char *text);

#endif
