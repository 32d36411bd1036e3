//go:build ignore

/*
 * redlock.c - libredlock.so: the functions of redlock.h in front of the core (core.h). It is no part of
 * the Go package in this folder, which becomes libredlock-core.so; hence the first line.
 *
 * Why in front: a Go library starts threads when it is loaded, and is of no use in a forked child, where
 * they are missing. So the core is loaded by the first redlock_open, and Go is never entered in a process
 * that did not load it: loader.c knows. Here is what needs no core: pointers, sizes, lengths, handles.
 */
#include "loader.h"

#include <stddef.h>
#include <string.h>

#define PUBLIC __attribute__((visibility("default")))

/* Returns what is wrong, if something is. */
#define TRY(call)                        \
    do {                                 \
        redlock_status wrong_ = (call);  \
        if (wrong_ != REDLOCK_OK)        \
            return wrong_;               \
    } while (0)

/* The size of a struct that ends with this member. */
#define THROUGH(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))

/* The sizes of version 0.1. A member that is added later does not change them. */
#define LEAST_OPTIONS THROUGH(redlock_options, unavailable_after_ms)
#define LEAST_REQUEST THROUGH(redlock_request, metadata_len)
#define LEAST_INSPECTION THROUGH(redlock_inspection, holders)

/* Beyond that a size has not been initialised. */
#define MAX_SIZE 65536u

/* Beyond that a drain is done in parts. */
#define MAX_DRAIN 65536u

static redlock_status missing(const char *what, redlock_error *error)
{
    return redlock_fail(error, REDLOCK_INVALID, "%s is NULL", what);
}

/* Makes sure that a result of this size has somewhere to go, and clears it. */
static redlock_status clear(void *result, size_t size, const char *what, redlock_error *error)
{
    if (!redlock_usable(error))
        return REDLOCK_INVALID;
    if (result == NULL)
        return missing(what, error);
    memset(result, 0, size);
    return REDLOCK_OK;
}

/* The size that a caller's struct begins with, checked. */
static redlock_status size_of(const void *theirs, size_t least, const char *what, uint32_t *size, redlock_error *error)
{
    if (!redlock_usable(error))
        return REDLOCK_INVALID;
    if (theirs == NULL)
        return missing(what, error);
    memcpy(size, theirs, sizeof *size);
    if (*size < least || *size > MAX_SIZE)
        return redlock_fail(error, REDLOCK_INVALID, "%s->size is %lu; %lu to %u are allowed: begin with its _INIT", what,
                            (unsigned long)*size, (unsigned long)least, MAX_SIZE);
    return REDLOCK_OK;
}

/* Copies a struct of an older or newer program over ours, which holds the defaults. */
static redlock_status take(void *ours, size_t our_size, const void *theirs, size_t least, const char *what,
                           redlock_error *error)
{
    uint32_t size;
    const unsigned char *bytes = theirs;
    TRY(size_of(theirs, least, what, &size, error));
    for (size_t i = our_size; i < size; i++)
        if (bytes[i] != 0)
            return redlock_fail(error, REDLOCK_UNSUPPORTED, "%s has an option that this version (%s) does not know", what,
                                REDLOCK_VERSION);
    memcpy(ours, theirs, size < our_size ? size : our_size);
    return REDLOCK_OK;
}

/* Gives a text its length. */
static redlock_status measure(const char *text, int64_t *length, const char *what, redlock_error *error)
{
    if (*length < REDLOCK_NTS || *length > INT32_MAX)
        return redlock_fail(error, REDLOCK_INVALID, "%s is %lld; REDLOCK_NTS and 0 to 2147483647 are allowed", what,
                            (long long)*length);
    if (text == NULL)
        *length = 0;
    else if (*length == REDLOCK_NTS)
        *length = (int64_t)strlen(text);
    return REDLOCK_OK;
}

static redlock_status take_request(redlock_request *ours, const redlock_request *theirs, redlock_error *error)
{
    TRY(take(ours, sizeof *ours, theirs, LEAST_REQUEST, "request", error));
    if (ours->name == NULL)
        return missing("request->name", error);
    if (ours->reserved != 0)
        return redlock_fail(error, REDLOCK_INVALID, "request->reserved is not 0");
    TRY(measure(ours->name, &ours->name_len, "request->name_len", error));
    return measure(ours->metadata, &ours->metadata_len, "request->metadata_len", error);
}

static redlock_status take_options(redlock_options *ours, const redlock_options *theirs, redlock_error *error)
{
    TRY(take(ours, sizeof *ours, theirs, LEAST_OPTIONS, "options", error));
    if ((ours->flags & ~(uint32_t)REDLOCK_NO_FORK_COPY) != 0)
        return redlock_fail(error, REDLOCK_INVALID, "options->flags has bits other than REDLOCK_NO_FORK_COPY");
    if (ours->nodes == NULL || ours->node_count == 0)
        return redlock_fail(error, REDLOCK_INVALID, "there is no node: options->nodes is NULL or options->node_count is 0");
    if (ours->node_count > MAX_SIZE)
        return redlock_fail(error, REDLOCK_INVALID, "options->node_count is %lu; at most 15 are allowed",
                            (unsigned long)ours->node_count);
    for (size_t i = 0; i < ours->node_count; i++)
        if (ours->nodes[i] == NULL)
            return redlock_fail(error, REDLOCK_INVALID, "options->nodes[%lu] is NULL", (unsigned long)i);
    return REDLOCK_OK;
}

static redlock_status enter_client(redlock_client client, redlock_error *error)
{
    return redlock_enter(client, REDLOCK_CLOSED, error);
}

static redlock_status enter_held(redlock_held held, redlock_error *error)
{
    return redlock_enter(held, REDLOCK_NOT_HELD, error);
}

PUBLIC redlock_status redlock_open(const redlock_options *options, redlock_client *client, redlock_error *error)
{
    redlock_options ours = REDLOCK_OPTIONS_INIT;
    TRY(clear(client, sizeof *client, "client", error));
    TRY(take_options(&ours, options, error));
    TRY(redlock_load((ours.flags & REDLOCK_NO_FORK_COPY) == 0, error));
    return redlock_core->open(&ours, client, error);
}

PUBLIC redlock_status redlock_close(redlock_client client, redlock_error *error)
{
    TRY(enter_client(client, error));
    return redlock_core->close(client, error);
}

PUBLIC redlock_status redlock_acquire(redlock_client client, const redlock_request *request, redlock_held *held,
                                      redlock_error *error)
{
    redlock_request ours = REDLOCK_REQUEST_INIT;
    TRY(clear(held, sizeof *held, "held", error));
    TRY(take_request(&ours, request, error));
    TRY(enter_client(client, error));
    return redlock_core->acquire(client, &ours, held, error);
}

PUBLIC redlock_status redlock_renew(redlock_held held, int64_t ttl_ms, redlock_error *error)
{
    TRY(enter_held(held, error));
    return redlock_core->renew(held, ttl_ms, error);
}

PUBLIC redlock_status redlock_release(redlock_held held, redlock_error *error)
{
    TRY(enter_held(held, error));
    return redlock_core->release(held, error);
}

PUBLIC int64_t redlock_remaining_ms(redlock_held held)
{
    return enter_held(held, NULL) == REDLOCK_OK ? redlock_core->remaining_ms(held) : 0;
}

PUBLIC uint64_t redlock_fence(redlock_held held)
{
    return enter_held(held, NULL) == REDLOCK_OK ? redlock_core->fence(held) : 0;
}

PUBLIC uint32_t redlock_slot(redlock_held held)
{
    return enter_held(held, NULL) == REDLOCK_OK ? redlock_core->slot(held) : 0;
}

PUBLIC redlock_status redlock_token(redlock_held held, char *buffer, size_t size, redlock_error *error)
{
    TRY(clear(buffer, size > 0, "buffer", error));
    TRY(enter_held(held, error));
    return redlock_core->token(held, buffer, size, error);
}

PUBLIC redlock_status redlock_inspect(redlock_client client, const redlock_request *request,
                                      redlock_inspection *inspection, redlock_error *error)
{
    redlock_request ours = REDLOCK_REQUEST_INIT;
    redlock_inspection found = REDLOCK_INSPECTION_INIT;
    uint32_t size;
    TRY(size_of(inspection, LEAST_INSPECTION, "inspection", &size, error));
    TRY(take_request(&ours, request, error));
    if (size >= THROUGH(redlock_inspection, all_capacity)) {
        found.all_holders = inspection->all_holders;
        found.all_capacity = inspection->all_capacity;
    }
    TRY(enter_client(client, error));
    TRY(redlock_core->inspect(client, &ours, &found, error));
    found.size = size;
    memcpy(inspection, &found, size < sizeof found ? size : sizeof found);
    return REDLOCK_OK;
}

PUBLIC redlock_status redlock_force_release(redlock_client client, const redlock_request *request, const char *digest,
                                            redlock_error *error)
{
    redlock_request ours = REDLOCK_REQUEST_INIT;
    TRY(take_request(&ours, request, error));
    if (digest == NULL)
        return missing("digest", error);
    TRY(enter_client(client, error));
    return redlock_core->force_release(client, &ours, digest, error);
}

PUBLIC redlock_status redlock_submit_acquire(redlock_client client, const redlock_request *request, uint64_t *id,
                                             redlock_error *error)
{
    redlock_request ours = REDLOCK_REQUEST_INIT;
    TRY(clear(id, sizeof *id, "id", error));
    TRY(take_request(&ours, request, error));
    TRY(enter_client(client, error));
    return redlock_core->submit_acquire(client, &ours, id, error);
}

PUBLIC redlock_status redlock_submit_renew(redlock_held held, int64_t ttl_ms, uint64_t *id, redlock_error *error)
{
    TRY(clear(id, sizeof *id, "id", error));
    TRY(enter_held(held, error));
    return redlock_core->submit_renew(held, ttl_ms, id, error);
}

PUBLIC redlock_status redlock_submit_release(redlock_held held, uint64_t *id, redlock_error *error)
{
    TRY(clear(id, sizeof *id, "id", error));
    TRY(enter_held(held, error));
    return redlock_core->submit_release(held, id, error);
}

/* Makes sure that what the core will read of operations is there, and checks their requests. */
static redlock_status take_operations(redlock_operation *ours, redlock_request *requests, const redlock_operation *theirs,
                                      size_t count, redlock_error *error)
{
    for (size_t i = 0; i < count; i++) {
        ours[i] = theirs[i];
        if (ours[i].kind > REDLOCK_SUBMIT_RELEASE || ours[i].reserved != 0)
            return redlock_fail(error, REDLOCK_INVALID, "operations[%lu]: kind is %lu, which is not known, or reserved is not 0",
                                (unsigned long)i, (unsigned long)ours[i].kind);
        if (ours[i].kind == REDLOCK_SUBMIT_ACQUIRE) {
            requests[i] = (redlock_request)REDLOCK_REQUEST_INIT;
            TRY(take_request(&requests[i], ours[i].request, error));
            ours[i].request = &requests[i];
        }
    }
    return REDLOCK_OK;
}

PUBLIC redlock_status redlock_submit(redlock_client client, const redlock_operation *operations, size_t count,
                                     uint64_t *first, redlock_error *error)
{
    redlock_operation ours[REDLOCK_MAX_OPERATIONS];
    redlock_request requests[REDLOCK_MAX_OPERATIONS];
    TRY(clear(first, sizeof *first, "first", error));
    if (operations == NULL)
        return missing("operations", error);
    if (count == 0 || count > REDLOCK_MAX_OPERATIONS)
        return redlock_fail(error, REDLOCK_INVALID, "count is %lu; 1 to %d are allowed", (unsigned long)count,
                            REDLOCK_MAX_OPERATIONS);
    TRY(take_operations(ours, requests, operations, count, error));
    TRY(enter_client(client, error));
    return redlock_core->submit(client, ours, count, first, error);
}

PUBLIC redlock_status redlock_cancel(redlock_client client, uint64_t id, redlock_error *error)
{
    TRY(enter_client(client, error));
    return redlock_core->cancel(client, id, error);
}

PUBLIC redlock_status redlock_fd(redlock_client client, int *fd, redlock_error *error)
{
    TRY(clear(fd, sizeof *fd, "fd", error));
    *fd = -1;
    TRY(enter_client(client, error));
    return redlock_core->fd(client, fd, error);
}

PUBLIC redlock_status redlock_drain(redlock_client client, redlock_event *events, size_t capacity, size_t *count,
                                    redlock_error *error)
{
    TRY(clear(count, sizeof *count, "count", error));
    if (events == NULL && capacity > 0)
        return missing("events", error);
    TRY(enter_client(client, error));
    return redlock_core->drain(client, events, capacity < MAX_DRAIN ? capacity : MAX_DRAIN, count, error);
}

PUBLIC const char *redlock_version(void)
{
    return REDLOCK_VERSION;
}

PUBLIC const char *redlock_status_name(int status)
{
    static const char *const names[] = {"OK",        "HELD",    "TIMEOUT",  "LOST",       "UNAVAILABLE", "CANCELED",
                                        "INVALID",   "NOT_HELD", "WRONG_KIND", "UNSUPPORTED", "CLOSED",  "INTERNAL"};
    return status >= 0 && (size_t)status < sizeof names / sizeof *names ? names[status] : "?";
}
