/*
 * core.h - what libredlock.so (redlock.c) and libredlock-core.so (export.go, table.c) say to each
 * other. Private: the two come from one build, and redlock.c checks that.
 *
 * The front answers what needs no core: NULLs, sizes and lengths, handles of before a fork. So behind
 * this table every pointer is valid, every struct is whole and as this version knows it, every
 * redlock_error is NULL or usable, results are 0 already, and the lengths in a request are true ones.
 */
#ifndef REDLOCK_CORE_H
#define REDLOCK_CORE_H

#include "redlock.h"

/*
 * cgo declares what Go exports, but can't say const. It does repeat the name of a typedef; so with
 * these the C compiler compares each export with the table, and the table with redlock.h.
 */
typedef const char redlock_const_char;
typedef const redlock_options redlock_const_options;
typedef const redlock_request redlock_const_request;
typedef const redlock_operation redlock_const_operation;

struct redlock_core {
    const char *version; /* REDLOCK_VERSION of the core's build */
    redlock_status (*open)(redlock_const_options *, redlock_client *, redlock_error *);
    redlock_status (*close)(redlock_client, redlock_error *);
    redlock_status (*acquire)(redlock_client, redlock_const_request *, redlock_held *, redlock_error *);
    redlock_status (*renew)(redlock_held, int64_t, redlock_error *);
    redlock_status (*release)(redlock_held, redlock_error *);
    int64_t (*remaining_ms)(redlock_held);
    uint64_t (*fence)(redlock_held);
    uint32_t (*slot)(redlock_held);
    redlock_status (*token)(redlock_held, char *, size_t, redlock_error *);
    redlock_status (*inspect)(redlock_client, redlock_const_request *, redlock_inspection *, redlock_error *);
    redlock_status (*force_release)(redlock_client, redlock_const_request *, redlock_const_char *, redlock_error *);
    redlock_status (*submit_acquire)(redlock_client, redlock_const_request *, uint64_t *, redlock_error *);
    redlock_status (*submit_renew)(redlock_held, int64_t, uint64_t *, redlock_error *);
    redlock_status (*submit_release)(redlock_held, uint64_t *, redlock_error *);
    redlock_status (*submit)(redlock_client, redlock_const_operation *, size_t, uint64_t *, redlock_error *);
    redlock_status (*cancel)(redlock_client, uint64_t, redlock_error *);
    redlock_status (*fd)(redlock_client, int *, redlock_error *);
    redlock_status (*drain)(redlock_client, redlock_event *, size_t, size_t *, redlock_error *);
};

/* Called by the core, from any thread, with each descriptor that it has opened (1) or is about to close (0). */
typedef void redlock_watch_fd(int fd, int open);

/* The one symbol of libredlock-core.so, to be called once. Handles are numbered upwards from first_handle. */
typedef const struct redlock_core *redlock_core_start_function(uint64_t first_handle, redlock_watch_fd *watch);
redlock_core_start_function redlock_core_start;

#endif
