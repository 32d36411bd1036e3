/* The benchmark's peer in C: see peer.c for what it does. */
#ifndef PEER_H
#define PEER_H

#include <stdbool.h>
#include <stdint.h>

/* What the peer was started with. */
struct setup {
    const char *host;
    int port;
    const char *acquire, *release;  /* the SHA-1s of libredlock's scripts */
    const char *compare_and_delete; /* and that of the script which everybody else releases with */
};

enum { TTL_MS = 10000, FENCE_TTL_MS = 600000, NAME_SIZE = 16, MOST_CALLERS = 1000 };

/* The name of one caller's lock: nobody else wants it. */
void lock_name(char name[NAME_SIZE], int caller);

int64_t now_ns(void);

/* Ends the program. */
void fail(const char *what, const char *why);

/* A contestant acquires and releases with so many callers until a time, and returns how often. */
void libredlock_prepare(const struct setup *setup);
int64_t libredlock_run(int callers, int64_t until_ns);

void hiredis_prepare(const struct setup *setup, bool scripts);
int64_t hiredis_run(int callers, int64_t until_ns);

#endif
