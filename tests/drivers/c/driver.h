/* What the parts of the C driver share. */
#ifndef DRIVER_H
#define DRIVER_H

#include <pthread.h>
#include <redlock.h>
#include <stdbool.h>

#include "line.h"

/* A client by the runner's name. Never freed: a closed client is to be usable, and to be refused. */
struct client {
    const char *name;
    redlock_client handle;
    int fd;
    bool closing;      /* its watcher is to end */
    pthread_t watcher; /* with blocking calls only */
    struct client *next;
};

/* A hold by the runner's name. Never freed, for the same reason. */
struct hold {
    const char *name; /* NULL: lost before the runner's name for it was known */
    redlock_held handle;
    struct client *client; /* NULL as long as name is */
    bool lost;
    struct hold *next;
};

extern bool async; /* submit and drain instead of blocking calls */

/* registry.c: safe from any thread. */
struct client *client_add(const char *name, redlock_client handle, int fd);
struct client *client_find(const char *name);
struct client *client_first(void);
bool client_closing(struct client *client, bool close); /* whether it is, or from now on, closing */
void hold_add(const char *name, redlock_held handle, struct client *client);
redlock_held hold_find(const char *name, struct client **client); /* 0: none; client may be NULL */
void hold_lost(redlock_held handle, const char *cause);

/* An error with room for the causes of 15 nodes. */
struct error {
    redlock_error error;
    char more[4096];
};
#define ERROR_INIT {{(uint32_t)sizeof(struct error), 0, -1, 0, {0}}, {0}}

/* verbs.c */
void answer(const char *id, redlock_status status, const char *message); /* if status is OK, without fields */
redlock_request request_of(const struct line *line);
bool is_semaphore(const struct line *line); /* what it is about */
void acquired(const char *id, const char *name, redlock_held held, struct client *client, bool semaphore);
void renewed(const char *id, redlock_held held);
void serve(const struct line *line); /* any verb, with a blocking call */

/* queue.c */
bool submit(const struct line *line); /* false: this verb has no form that doesn't block */
void drain(struct client *client);
void closed(struct client *client); /* answers what the client owed */

/* hammer.c */
void hammer(const struct line *line, struct client *client);

#endif
