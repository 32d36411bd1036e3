/*
 * Drives redlock.h by the line protocol of ../README.md: with blocking calls, a thread each,
 * or with --async by submitting and draining on the only thread.
 */
#include "driver.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_CLIENTS = 1024 };

bool async;

static void *serve_in_thread(void *line)
{
    serve(line);
    line_free(line);
    return NULL;
}

static void take(const char *text)
{
    struct line *line = line_parse(text);
    if (line == NULL) {
        fprintf(stderr, "driver: not a request: %s\n", text);
        exit(1);
    }
    if (async) {
        if (!submit(line))
            serve(line);
        line_free(line);
        return;
    }
    pthread_t thread;
    if (pthread_create(&thread, NULL, serve_in_thread, line) != 0) {
        fprintf(stderr, "driver: no more threads\n");
        exit(1);
    }
    pthread_detach(thread);
}

/* Reads what there is and takes every whole line. False at the end of the input. */
static bool read_lines(void)
{
    static char *buffer;
    static size_t length, capacity;
    if (capacity - length < 65536) {
        capacity += 1 << 20;
        buffer = realloc(buffer, capacity);
        if (buffer == NULL)
            return false;
    }
    ssize_t n = read(STDIN_FILENO, buffer + length, 65536);
    if (n <= 0)
        return n < 0 && errno == EINTR;
    length += (size_t)n;
    char *begin = buffer;
    for (char *end; (end = memchr(begin, '\n', length - (size_t)(begin - buffer))) != NULL; begin = end + 1) {
        *end = '\0';
        take(begin);
    }
    length -= (size_t)(begin - buffer);
    memmove(buffer, begin, length);
    return true;
}

int main(int argc, char **argv)
{
    async = argc > 1 && strcmp(argv[1], "--async") == 0;
    struct reply ready;
    reply_begin(&ready, "-", "ready");
    reply_text(&ready, "language", "c");
    reply_text(&ready, "lacks", async ? "hammer" : "cancel");
    reply_send(&ready);

    for (;;) {
        static struct pollfd wait[1 + MAX_CLIENTS];
        static struct client *owner[1 + MAX_CLIENTS];
        nfds_t count = 1;
        wait[0] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
        for (struct client *client = async ? client_first() : NULL; client && count <= MAX_CLIENTS; client = client->next)
            if (!client_closing(client, false)) {
                wait[count] = (struct pollfd){.fd = client->fd, .events = POLLIN};
                owner[count++] = client;
            }
        if (poll(wait, count, -1) < 0)
            continue;
        for (nfds_t i = 1; i < count; i++)
            if (wait[i].revents)
                drain(owner[i]);
        if (wait[0].revents && !read_lines())
            return 0;
    }
}
