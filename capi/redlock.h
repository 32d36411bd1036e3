/*
 * redlock.h - distributed locks over Redis, for C.
 *
 *     redlock_options options = REDLOCK_OPTIONS_INIT;
 *     const char *nodes[] = {"redis://127.0.0.1:6379"};
 *     options.nodes = nodes, options.node_count = 1;
 *     redlock_client client;
 *     redlock_error error = REDLOCK_ERROR_INIT;
 *     if (redlock_open(&options, &client, &error)) ...error.message
 *
 *     redlock_request request = REDLOCK_REQUEST_INIT;
 *     request.name = "orders:42", request.ttl_ms = 10000, request.wait_ms = 2500;
 *     redlock_held held;
 *     if (redlock_acquire(client, &request, &held, &error) == REDLOCK_OK) {
 *         write_with_fence(redlock_fence(held));
 *         redlock_release(held, &error);
 *     }
 *     redlock_close(client, &error);
 *
 * Conventions, everywhere:
 *   - Every call that can fail returns a redlock_status; REDLOCK_OK is 0.
 *   - The last parameter is a redlock_error that you own and initialise; NULL if you don't care.
 *     It is written only when the call fails.
 *   - You own every struct and buffer; nothing that libredlock returns is to be freed. Nothing
 *     that you pass is used after the call has returned.
 *   - A call that fails gives 0 for a handle, an id or a count and -1 for a descriptor.
 *   - Handles are numbers, never used twice. One that means nothing is answered with a status, never
 *     with a crash: a client that is closed or made up with REDLOCK_CLOSED; a held of a closed client
 *     with REDLOCK_CLOSED until it is released, one that was released or is made up with
 *     REDLOCK_NOT_HELD; the getters of all these with 0.
 *   - Every function may be called from any thread at any time. None calls back into your code.
 *   - Strings have a length; a length of REDLOCK_NTS (-1) means that they end with a NUL.
 *   - Times are milliseconds.
 *   - A NULL where a pointer is needed is REDLOCK_INVALID.
 *   - Structs that may grow begin with their size. An older program's shorter struct is fine. So is a
 *     newer one's longer struct, as long as what this version doesn't know in it is zero: an option
 *     is never ignored, it is REDLOCK_UNSUPPORTED.
 *
 * Threads and fork: linking this library starts no thread. The first redlock_open loads the core
 * (libredlock-core.so, beside libredlock.so), which does. After a fork the parent goes on as
 * before. In the child every handle of the parent answers REDLOCK_CLOSED (the getters 0), its locks
 * stay the parent's, its descriptors are closed (but for a connection that was just being made or
 * closed), and a new redlock_open works (it loads a second copy of the core, some 9 MB). A fork waits while another thread loads the core, and redlock_open must not
 * be called from a signal handler.
 */
#ifndef REDLOCK_H
#define REDLOCK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define REDLOCK_CHECKED __attribute__((warn_unused_result))
#else
#define REDLOCK_CHECKED
#endif

/* The version of this header; redlock_version() tells that of the library. */
#define REDLOCK_VERSION "0.1.0"

/* How a call ended, by what you can do about it. The numbers never change. */
typedef enum redlock_status {
    REDLOCK_OK = 0,
    REDLOCK_HELD = 1,        /* someone else holds it (a try, or max_tries): later */
    REDLOCK_TIMEOUT = 2,     /* wait_ms passed: later */
    REDLOCK_LOST = 3,        /* it was ours and is no longer: stop the work */
    REDLOCK_UNAVAILABLE = 4, /* too few nodes answered; cleanup was sent: back off */
    REDLOCK_CANCELED = 5,    /* redlock_cancel */
    REDLOCK_INVALID = 6,     /* bad argument, or illegal in this state */
    REDLOCK_NOT_HELD = 7,    /* never held, or released already */
    REDLOCK_WRONG_KIND = 8,  /* the key holds another kind of value */
    REDLOCK_UNSUPPORTED = 9, /* the server, or this version, can't do it */
    REDLOCK_CLOSED = 10,     /* client closed, or the process forked: open again */
    REDLOCK_INTERNAL = 11    /* a bug in libredlock: please report it */
} redlock_status;

typedef uint64_t redlock_client; /* from redlock_open */
typedef uint64_t redlock_held;   /* from redlock_acquire or an event */

#define REDLOCK_NTS ((int64_t)-1)

/*
 * What went wrong. message is one sentence, then one line for each node that failed:
 * "node 2 (127.0.0.1:6381): timeout after 50 ms". It never has a password in it. It is cut to fit:
 * size is that of your whole buffer, so allocate more behind the struct to read more of it.
 * A call whose redlock_error has not been initialised does nothing and is REDLOCK_INVALID.
 */
typedef struct redlock_error {
    uint32_t size;  /* of the buffer that this struct begins: at most 65536 */
    int32_t status; /* a redlock_status */
    int32_t node;   /* the first node that failed, counted from 0; -1: none */
    uint32_t reserved;
    char message[256]; /* ends with a NUL */
} redlock_error;
#define REDLOCK_ERROR_INIT {(uint32_t)sizeof(redlock_error), 0, -1, 0, {0}}

/* An option that may be left to its default. */
enum { REDLOCK_DEFAULT = 0, REDLOCK_ON = 1, REDLOCK_OFF = 2 };

/* Flags of redlock_options. */
enum {
    REDLOCK_NO_FORK_COPY = 1 /* in a child of a process that used libredlock, fail with REDLOCK_CLOSED
                                instead of loading a second copy of the core */
};

/* What to connect to. Begin with REDLOCK_OPTIONS_INIT. Strings here end with a NUL; NULL: the default. */
typedef struct redlock_options {
    uint32_t size;
    uint32_t flags;
    const char *const *nodes;     /* URLs: one Redis, or several independent ones (Redlock), at most 15:
                                     redis://[user:password@]host[:port][/db], unix://[user:password@]/path[?db=n] */
    size_t node_count;
    const char *prefix;           /* put before every lock's name */
    const char *language;         /* of the caller, shown by inspect; default "c" */
    int64_t node_timeout_ms;      /* how long one node may take; 0: chosen by ttl */
    int64_t unavailable_after_ms; /* how long a wait without limit bears too few nodes; 0: 10 s */
} redlock_options;
#define REDLOCK_OPTIONS_INIT {(uint32_t)sizeof(redlock_options), 0, NULL, 0, NULL, NULL, 0, 0}

/* Kinds of locks. The numbers never change. */
enum {
    REDLOCK_MUTEX = 0,    /* one holder at a time */
    REDLOCK_SEMAPHORE = 4 /* up to request->permits holders at a time, each with a slot of its own */
};

/* Which lock, and how. Begin with REDLOCK_REQUEST_INIT. */
typedef struct redlock_request {
    uint32_t size;
    uint32_t kind;         /* REDLOCK_MUTEX or REDLOCK_SEMAPHORE */
    const char *name;      /* 1..1024 bytes of UTF-8 without NUL */
    int64_t name_len;      /* or REDLOCK_NTS */
    int64_t ttl_ms;        /* the lease: 100 .. 86400000; 0: 10000 */
    int64_t wait_ms;       /* 0 tries once, -1 waits without limit */
    int64_t max_hold_ms;   /* since the grant, 100 or more: then it is lost; 0: no limit */
    uint32_t fencing;      /* default on */
    uint32_t auto_renew;   /* default on: the lease is extended until the release */
    uint32_t queue;        /* default on: who waits is told of a release, with one node in the order of arrival; off: it
                              polls, and tells nobody */
    uint32_t reserved;     /* 0 */
    const char *metadata;  /* shown by inspect; NULL: none */
    int64_t metadata_len;  /* or REDLOCK_NTS */
    /* How to poll: only with queue REDLOCK_OFF, else they are REDLOCK_INVALID. */
    int64_t retry_delay_ms;  /* between two attempts, 1 .. 3600000; 0: 50 */
    int64_t retry_jitter_ms; /* up to this is added, at random, at most 3600000; 0: as long as the delay */
    int64_t max_tries;       /* then it is REDLOCK_HELD or REDLOCK_UNAVAILABLE; 0: as many as wait_ms allows */
    int64_t permits; /* how many may hold a semaphore, 1 .. 10000, as this request sees it: with more than before others get in
                        at once, with fewer who is in stays in; 0 for other kinds */
} redlock_request;
#define REDLOCK_REQUEST_INIT                                                                                   \
    {(uint32_t)sizeof(redlock_request), REDLOCK_MUTEX, NULL, REDLOCK_NTS, 0, -1, 0, 0, 0, 0, 0, NULL, REDLOCK_NTS, \
     0, 0, 0, 0}

/*
 * Opens a client. It does not connect: the first request does. Close it with redlock_close.
 * INVALID: an option, with what is allowed. UNSUPPORTED: the core cannot be loaded.
 * CLOSED: only with REDLOCK_NO_FORK_COPY, after a fork. UNAVAILABLE: the process has too many open files.
 */
REDLOCK_CHECKED redlock_status redlock_open(const redlock_options *options, redlock_client *client, redlock_error *error);

/*
 * Ends every wait of the client with REDLOCK_CLOSED, releases everything that it holds and frees
 * it with all its held handles, its descriptor and the events that nobody drained. Bounded by the
 * node timeout. A second close is REDLOCK_CLOSED.
 */
redlock_status redlock_close(redlock_client client, redlock_error *error);

/*
 * Acquires, waiting up to request->wait_ms. Signals don't end a wait: for that use a finite wait_ms in a loop, or
 * redlock_submit_acquire with redlock_cancel. redlock_close from another thread ends it too.
 * OK: *held is yours until redlock_release. Never drop it without, by exit() either: nobody else can release it.
 * HELD (wait_ms 0, or max_tries), TIMEOUT, UNAVAILABLE, WRONG_KIND, INVALID, UNSUPPORTED, CLOSED: nothing is held,
 * and what an attempt may have left on a node is being removed.
 */
REDLOCK_CHECKED redlock_status redlock_acquire(redlock_client client, const redlock_request *request, redlock_held *held,
                                               redlock_error *error);

/*
 * Extends the lease to ttl_ms from now; 0: the ttl as acquired or last renewed.
 * LOST: it is gone, stop. UNAVAILABLE: too few nodes answered, held until the old deadline.
 */
REDLOCK_CHECKED redlock_status redlock_renew(redlock_held held, int64_t ttl_ms, redlock_error *error);

/* Releases and, whatever it returns, frees the handle. LOST: it had been lost before. */
redlock_status redlock_release(redlock_held held, redlock_error *error);

/* How long the lock is certainly ours; 0 when it is lost, released or unknown. Never blocks. */
int64_t redlock_remaining_ms(redlock_held held);

/* The fencing token: larger than that of every earlier holder of the name. 0 without fencing. Never blocks. */
uint64_t redlock_fence(redlock_held held);

/*
 * Which of a semaphore's permits it is: 0 to permits - 1, the lowest that was free with one node. Fencing tokens increase for each
 * slot on its own: what is protected keeps one a slot. 0 for other kinds. Never blocks.
 */
uint32_t redlock_slot(redlock_held held);

/* The token, the value that stands in Redis, into buffer with a NUL; 256 bytes are always enough. Never blocks. */
redlock_status redlock_token(redlock_held held, char *buffer, size_t size, redlock_error *error);

/* One holder of a name, as redlock_inspect shows it. Both strings end with a NUL. */
typedef struct redlock_holder {
    char who[256];    /* "host/pid/language/metadata"; "" for a value of another library */
    char digest[48];  /* what redlock_force_release takes */
    uint32_t slot;    /* of a semaphore; else 0 */
    uint32_t reserved[3];
    int64_t ttl_ms;   /* until the key, or a semaphore's slot, expires; -1: never */
    int64_t nodes;    /* on how many nodes it is the holder */
} redlock_holder;

/* Who holds a name. Begin with REDLOCK_INSPECTION_INIT. */
typedef struct redlock_inspection {
    uint32_t size;
    uint32_t kind;
    uint64_t fence;        /* the largest fencing token that a node remembers; 0: none */
    uint64_t queue_length; /* clients that wait */
    uint64_t holder_count; /* 0: the name is free. More than one: a semaphore's, or the nodes disagree */
    redlock_holder holders[4]; /* the first of them, those on most nodes first, then by slot */
    int64_t queue_age_ms;  /* how long the first of those who wait has */
    /* Room of your own for more than those 4: set before, and written as far as it reaches. */
    redlock_holder *all_holders; /* all of them in the same order; NULL: none */
    uint64_t all_capacity;       /* for how many there is room there */
} redlock_inspection;
#define REDLOCK_INSPECTION_INIT \
    {(uint32_t)sizeof(redlock_inspection), 0, 0, 0, 0, {{{0}, {0}, 0, {0}, 0, 0}}, 0, NULL, 0}

/*
 * Reads who holds request->name; only kind and name of the request are read. Where holder_count is more than all_capacity ask
 * again with more room.
 */
REDLOCK_CHECKED redlock_status redlock_inspect(redlock_client client, const redlock_request *request,
                                               redlock_inspection *inspection, redlock_error *error);

/*
 * Takes the lock away from the holder whose digest redlock_inspect showed: a last resort, since that holder may
 * still be working; it finds out at its next renewal or release. NOT_HELD: no such holder.
 */
REDLOCK_CHECKED redlock_status redlock_force_release(redlock_client client, const redlock_request *request,
                                                     const char *digest, redlock_error *error);

/*
 * The same without blocking. redlock_submit_* return at once with an id; the outcome comes as an event, exactly once.
 * What is wrong with the arguments themselves (a NULL, a dead handle) is told at once, and then no event comes. An id is
 * unique within its client, whose redlock_close takes all its events along.
 * redlock_fd gives a descriptor that polls readable while events wait; do nothing with it but poll: redlock_drain reads
 * it. It belongs to the client and is closed with it, which wakes who polls it, and in a forked child by the fork. At most 1000000 outcomes may
 * be outstanding or not drained in one client: beyond, submitting is REDLOCK_INVALID.
 */
REDLOCK_CHECKED redlock_status redlock_submit_acquire(redlock_client client, const redlock_request *request, uint64_t *id,
                                                      redlock_error *error);
REDLOCK_CHECKED redlock_status redlock_submit_renew(redlock_held held, int64_t ttl_ms, uint64_t *id, redlock_error *error);
/* When this call returns OK the handle is freed, whatever the event will say; otherwise it is as it was. */
REDLOCK_CHECKED redlock_status redlock_submit_release(redlock_held held, uint64_t *id, redlock_error *error);

/* What one of many operations does. */
enum { REDLOCK_SUBMIT_ACQUIRE = 0, REDLOCK_SUBMIT_RENEW = 1, REDLOCK_SUBMIT_RELEASE = 2 };

enum { REDLOCK_MAX_OPERATIONS = 256 }; /* in one redlock_submit */

typedef struct redlock_operation {
    const redlock_request *request; /* ACQUIRE */
    redlock_held held;              /* RENEW and RELEASE: of the same client */
    int64_t ttl_ms;                 /* RENEW: as of redlock_renew */
    uint32_t kind;                  /* REDLOCK_SUBMIT_* */
    uint32_t reserved;              /* 0 */
} redlock_operation;

/*
 * Submits count operations, 1 to 256, for the price of little more than one: for event loops, which can gather what
 * is submitted in a turn. Their ids follow each other; *first is that of operations[0]. They are independent, and may end in
 * any order. The call fails, and does nothing, for what no operation may be: a NULL, an unknown kind, a wrong size or
 * length. Anything else that is wrong with one of them (a bad option, a dead handle) is the outcome of that one. When the call
 * returns OK the handles of its releases are freed, as by redlock_submit_release.
 */
REDLOCK_CHECKED redlock_status redlock_submit(redlock_client client, const redlock_operation *operations, size_t count,
                                              uint64_t *first, redlock_error *error);

/*
 * Cancels a submitted acquire or renew. If it has not ended yet it ends with REDLOCK_CANCELED; if it has, the event
 * stands, and a lock that it brings is yours to release. An id of anything else is ignored.
 */
redlock_status redlock_cancel(redlock_client client, uint64_t id, redlock_error *error);

enum {
    REDLOCK_EVENT_DONE = 0,  /* the outcome of id */
    REDLOCK_EVENT_LOST = 1,  /* held is lost; release it to free the handle. Comes once for every hold of the client
                                that is lost before its release, blocking acquires included (whose LOST another
                                thread may drain before the acquire has returned); never before the hold's DONE */
    REDLOCK_EVENT_HEALTH = 2 /* something about a node endangers locks on it: node and message. The newest 64 are kept */
};

typedef struct redlock_event {
    uint64_t id;        /* DONE: as submitted; else 0 */
    redlock_held held;  /* DONE of an acquire that is OK, and LOST: the lock; else 0 */
    uint64_t fence;     /* DONE of an acquire that is OK */
    int64_t remaining_ms; /* DONE of an acquire or renew that is OK */
    int32_t kind;
    int32_t status;     /* a redlock_status; LOST for a loss, OK for health */
    int32_t node;       /* the first node that failed; -1: none */
    uint32_t slot;      /* DONE of an acquire that is OK */
    char message[1024]; /* as in redlock_error; "" when OK */
} redlock_event;

/* Gives the descriptor. */
REDLOCK_CHECKED redlock_status redlock_fd(redlock_client client, int *fd, redlock_error *error);

/* Moves up to capacity events into events and tells how many; 0 if none wait. LOST comes first. Never blocks. */
REDLOCK_CHECKED redlock_status redlock_drain(redlock_client client, redlock_event *events, size_t capacity, size_t *count,
                                             redlock_error *error);

/* The library's version, "0.1.0"; works without a client. */
const char *redlock_version(void);

/* "NOT_HELD" and so on; "?" for a number that is no status. */
const char *redlock_status_name(int status);

#ifdef __cplusplus
}
#endif
#endif
