/* libredlock: blocking calls for a lone caller; for many, one thread that submits and drains. */
#include "peer.h"

#include <poll.h>
#include <redlock.h>
#include <stdio.h>

static redlock_client client;
static int fd;
static redlock_error error = REDLOCK_ERROR_INIT;

static void check(redlock_status status, const char *what) {
    if (status != REDLOCK_OK) fail(what, error.message);
}

void libredlock_prepare(const struct setup *setup) {
    char url[128];
    snprintf(url, sizeof url, "redis://%s:%d", setup->host, setup->port);
    const char *nodes[] = {url};
    redlock_options options = REDLOCK_OPTIONS_INIT;
    options.nodes = nodes;
    options.node_count = 1;
    check(redlock_open(&options, &client, &error), "redlock_open");
    check(redlock_fd(client, &fd, &error), "redlock_fd");
}

static redlock_request request_for(const char *name) {
    redlock_request request = REDLOCK_REQUEST_INIT;
    request.name = name;
    request.ttl_ms = TTL_MS;
    return request;
}

static int64_t run_alone(int64_t until_ns) {
    char name[NAME_SIZE];
    lock_name(name, 0);
    redlock_request request = request_for(name);
    int64_t pairs = 0;
    for (; now_ns() < until_ns; pairs++) {
        redlock_held held;
        check(redlock_acquire(client, &request, &held, &error), "redlock_acquire");
        check(redlock_release(held, &error), "redlock_release");
    }
    return pairs;
}

/* Who waits for an event. Ids count up, so those under way have places of their own here. */
enum { PLACES = 1 << 16 };
static struct {
    uint64_t id;
    int caller;
} waiting[PLACES];

static void expect(uint64_t id, int caller) {
    waiting[id % PLACES].id = id;
    waiting[id % PLACES].caller = caller;
}

static int caller_of(uint64_t id) {
    if (waiting[id % PLACES].id != id) fail("an event", "nobody waits for its id");
    return waiting[id % PLACES].caller;
}

static void submit_acquire(int caller) {
    char name[NAME_SIZE];
    lock_name(name, caller);
    redlock_request request = request_for(name);
    uint64_t id;
    check(redlock_submit_acquire(client, &request, &id, &error), "redlock_submit_acquire");
    expect(id, caller);
}

static void submit_release(redlock_held held, int caller) {
    uint64_t id;
    check(redlock_submit_release(held, &id, &error), "redlock_submit_release");
    expect(id, caller);
}

static int64_t run_many(int callers, int64_t until_ns) {
    static redlock_event events[256];
    int64_t pairs = 0;
    int active = callers;
    for (int i = 0; i < callers; i++) submit_acquire(i);
    while (active > 0) {
        struct pollfd readable = {fd, POLLIN, 0};
        poll(&readable, 1, -1);
        size_t count;
        check(redlock_drain(client, events, sizeof events / sizeof *events, &count, &error), "redlock_drain");
        bool over = now_ns() >= until_ns;
        for (size_t i = 0; i < count; i++) {
            const redlock_event *event = &events[i];
            if (event->kind != REDLOCK_EVENT_DONE || event->status != REDLOCK_OK) fail("an event", event->message);
            int caller = caller_of(event->id);
            if (event->held != 0) {
                submit_release(event->held, caller);
                continue;
            }
            pairs++;
            if (over) {
                active--;
            } else {
                submit_acquire(caller);
            }
        }
    }
    return pairs;
}

int64_t libredlock_run(int callers, int64_t until_ns) {
    return callers == 1 ? run_alone(until_ns) : run_many(callers, until_ns);
}
