/* check.h - what the test programs share. A check that fails ends the program with a message. */
#ifndef CHECK_H
#define CHECK_H

#include <redlock.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static redlock_error error = REDLOCK_ERROR_INIT;

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d (process %d): not so: %s\n  last error: %s: %s\n", __FILE__, __LINE__,    \
                    (int)getpid(), #condition, redlock_status_name(error.status), error.message);            \
            _exit(1);                                                                                        \
        }                                                                                                    \
    } while (0)

/* The call, which takes &error, must end like that; and if that is a failure, with a message. */
#define EXPECT(wanted, call)                                                                                 \
    do {                                                                                                     \
        redlock_status got_;                                                                                 \
        error.status = -1;                                                                                   \
        error.message[0] = '\0';                                                                             \
        got_ = (call);                                                                                       \
        if (got_ != (wanted)) {                                                                              \
            fprintf(stderr, "%s:%d (process %d): %s\n  gave %s (%s), not %s\n", __FILE__, __LINE__,          \
                    (int)getpid(), #call, redlock_status_name((int)got_), error.message,                     \
                    redlock_status_name((int)(wanted)));                                                     \
            _exit(1);                                                                                        \
        }                                                                                                    \
        CHECK(got_ == REDLOCK_OK ? error.status == -1 : error.status == (int)got_ && error.message[0] != 0); \
    } while (0)

static inline redlock_status open_url(const char *url, uint32_t flags, redlock_client *client, redlock_error *e)
{
    redlock_options options = REDLOCK_OPTIONS_INIT;
    options.nodes = &url;
    options.node_count = 1;
    options.flags = flags;
    options.node_timeout_ms = 5000; /* a busy machine, or a tool that slows the program down, is no failure */
    return redlock_open(&options, client, e);
}

static inline redlock_client opened(const char *url)
{
    redlock_client client;
    EXPECT(REDLOCK_OK, open_url(url, 0, &client, &error));
    CHECK(client != 0);
    return client;
}

static inline redlock_request request_for(const char *name, int64_t ttl_ms, int64_t wait_ms)
{
    redlock_request request = REDLOCK_REQUEST_INIT;
    request.name = name;
    request.ttl_ms = ttl_ms;
    request.wait_ms = wait_ms;
    request.auto_renew = REDLOCK_OFF; /* leases that end */
    return request;
}

static inline redlock_held acquired(redlock_client client, const char *name, int64_t ttl_ms)
{
    redlock_request request = request_for(name, ttl_ms, 0);
    redlock_held held;
    EXPECT(REDLOCK_OK, redlock_acquire(client, &request, &held, &error));
    CHECK(held != 0);
    return held;
}

static inline int readable(int fd, int timeout_ms)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN, .revents = 0};
    return poll(&wait, 1, timeout_ms) == 1;
}

/* Waits for one event, the only one. */
static inline redlock_event next_event(redlock_client client, int fd)
{
    static redlock_event events[2];
    size_t count;
    CHECK(readable(fd, 10000));
    EXPECT(REDLOCK_OK, redlock_drain(client, events, 2, &count, &error));
    CHECK(count == 1);
    return events[0];
}

static inline int threads(void)
{
    char line[256];
    int count = -1;
    FILE *status = fopen("/proc/self/status", "r");
    CHECK(status != NULL);
    while (fgets(line, sizeof line, status) != NULL)
        sscanf(line, "Threads: %d", &count);
    fclose(status);
    return count;
}

#endif
