/*
 * poll.c - five locks at once from one thread that never blocks but in poll(2), as an event loop does it.
 *
 *     cc -o poll poll.c $(pkg-config --cflags --libs redlock)
 *     ./poll redis://127.0.0.1:6379
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>

#include <redlock.h>

enum { LOCKS = 5, BATCH = 16 };

static redlock_error error = REDLOCK_ERROR_INIT;
static int failures;

static int complain(const char *what, redlock_status status, const char *message)
{
    fprintf(stderr, "%s: %s: %s\n", what, redlock_status_name((int)status), message);
    failures++;
    return 1;
}

/* Handles one event. Returns whether it was the end of a lock. */
static int handle(const redlock_event *event)
{
    uint64_t id;
    redlock_status status;
    switch (event->kind) {
    case REDLOCK_EVENT_LOST: /* whatever was going on under this lock has to stop */
        complain("lost", REDLOCK_LOST, event->message);
        return 0;
    case REDLOCK_EVENT_HEALTH: /* for whoever looks after the Redis servers */
        fprintf(stderr, "node %d: %s\n", (int)event->node, event->message);
        return 0;
    }
    if (event->status != REDLOCK_OK) {
        complain("request", (redlock_status)event->status, event->message);
        return 1;
    }
    if (event->held == 0) { /* the outcome of a release */
        printf("released\n");
        return 1;
    }
    printf("held: fence %" PRIu64 ", %" PRId64 " ms left\n", event->fence, event->remaining_ms);
    status = redlock_submit_release(event->held, &id, &error);
    return status != REDLOCK_OK && complain("release", status, error.message);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s URL\n", argv[0]);
        return 2;
    }

    redlock_options options = REDLOCK_OPTIONS_INIT;
    const char *nodes[] = {argv[1]};
    options.nodes = nodes;
    options.node_count = 1;
    redlock_client client;
    redlock_status status = redlock_open(&options, &client, &error);
    if (status != REDLOCK_OK)
        return complain("open", status, error.message);

    struct pollfd wait = {.fd = -1, .events = POLLIN, .revents = 0};
    if (redlock_fd(client, &wait.fd, &error) != REDLOCK_OK)
        return complain("fd", REDLOCK_INTERNAL, error.message);

    int unfinished = 0;
    for (int i = 0; i < LOCKS; i++) {
        char name[32];
        uint64_t id;
        redlock_request request = REDLOCK_REQUEST_INIT;
        snprintf(name, sizeof name, "example:shard:%d", i);
        request.name = name;
        request.wait_ms = 5000;
        status = redlock_submit_acquire(client, &request, &id, &error);
        if (status == REDLOCK_OK)
            unfinished++;
        else
            complain("acquire", status, error.message);
    }

    while (unfinished > 0 && poll(&wait, 1, -1) >= 0) {
        redlock_event events[BATCH];
        size_t count = 0;
        status = redlock_drain(client, events, BATCH, &count, &error);
        if (status != REDLOCK_OK)
            return complain("drain", status, error.message);
        for (size_t i = 0; i < count; i++)
            unfinished -= handle(&events[i]);
    }
    status = redlock_close(client, &error);
    if (status != REDLOCK_OK)
        complain("close", status, error.message);
    return failures > 0;
}
