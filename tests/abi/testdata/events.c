/* events.c URL - the completion queue. */
#include "check.h"

#include <pthread.h>

enum { MANY = 300 };

static redlock_client client;
static int fd;

static uint64_t submitted(const char *name, int64_t ttl_ms, int64_t wait_ms)
{
    redlock_request request = request_for(name, ttl_ms, wait_ms);
    uint64_t id;
    EXPECT(REDLOCK_OK, redlock_submit_acquire(client, &request, &id, &error));
    CHECK(id != 0);
    return id;
}

/* The event of an acquire tells which of a semaphore's slots it is. */
static void slots(void)
{
    redlock_request request = request_for("events:semaphore", 5000, 0);
    redlock_event e[2];
    uint64_t id;
    request.kind = REDLOCK_SEMAPHORE, request.permits = 2;
    for (uint32_t i = 0; i < 2; i++) {
        EXPECT(REDLOCK_OK, redlock_submit_acquire(client, &request, &id, &error));
        e[i] = next_event(client, fd);
        CHECK(e[i].id == id && e[i].status == REDLOCK_OK && e[i].slot == i && redlock_slot(e[i].held) == i);
    }
    for (int i = 0; i < 2; i++)
        EXPECT(REDLOCK_OK, redlock_release(e[i].held, &error));
}

static void check_empty(void)
{
    redlock_event event;
    size_t count = 9;
    EXPECT(REDLOCK_OK, redlock_drain(client, &event, 1, &count, &error));
    CHECK(count == 0 && !readable(fd, 0));
}

static void outcomes(void)
{
    uint64_t id = submitted("events:one", 5000, 0), renewal, release;
    redlock_event e = next_event(client, fd), f;
    redlock_held held = e.held;
    CHECK(e.kind == REDLOCK_EVENT_DONE && e.id == id && e.status == REDLOCK_OK && held != 0 && e.node == -1);
    CHECK(e.fence == redlock_fence(held) && e.remaining_ms > 4000 && e.remaining_ms < 5000 && e.message[0] == '\0');
    CHECK(!readable(fd, 0));

    id = submitted("events:one", 5000, 0);
    f = next_event(client, fd);
    CHECK(f.id == id && f.status == REDLOCK_HELD && f.held == 0 && f.fence == 0 && f.message[0] != '\0');
    id = submitted("events:one", 99, 0);
    f = next_event(client, fd);
    CHECK(f.id == id && f.status == REDLOCK_INVALID && strstr(f.message, "100 ms") != NULL);

    EXPECT(REDLOCK_OK, redlock_submit_renew(held, 9000, &renewal, &error));
    f = next_event(client, fd);
    CHECK(f.id == renewal && f.status == REDLOCK_OK && f.held == 0 && f.remaining_ms > 8000);

    EXPECT(REDLOCK_OK, redlock_submit_release(held, &release, &error));
    EXPECT(REDLOCK_NOT_HELD, redlock_submit_release(held, &id, &error));
    EXPECT(REDLOCK_NOT_HELD, redlock_release(held, &error));
    f = next_event(client, fd);
    CHECK(f.id == release && f.status == REDLOCK_OK && f.held == 0 && f.remaining_ms == 0);
    check_empty();
}

static void cancelling(void)
{
    redlock_held held = acquired(client, "events:cancel", 10000);
    uint64_t waiting = submitted("events:cancel", 1000, -1);
    redlock_event e;
    CHECK(!readable(fd, 30)); /* it waits */
    EXPECT(REDLOCK_OK, redlock_cancel(client, waiting, &error));
    e = next_event(client, fd);
    CHECK(e.id == waiting && e.status == REDLOCK_CANCELED && e.held == 0);
    EXPECT(REDLOCK_OK, redlock_cancel(client, waiting, &error)); /* it has ended: nothing comes of it */
    check_empty();
    EXPECT(REDLOCK_OK, redlock_release(held, &error));
    held = acquired(client, "events:cancel", 1000); /* nothing was left behind */
    EXPECT(REDLOCK_OK, redlock_release(held, &error));
}

static void losses(void)
{
    uint64_t id = submitted("events:loss", 300, 0);
    redlock_event done = next_event(client, fd), lost;
    redlock_request request = request_for("events:loss", 0, 0);
    redlock_inspection found = REDLOCK_INSPECTION_INIT;
    redlock_held held;
    CHECK(done.id == id && done.status == REDLOCK_OK);
    lost = next_event(client, fd);
    CHECK(lost.kind == REDLOCK_EVENT_LOST && lost.held == done.held && lost.status == REDLOCK_LOST && lost.id == 0);
    CHECK(lost.message[0] != '\0' && redlock_remaining_ms(lost.held) == 0 && redlock_fence(lost.held) == done.fence);
    check_empty();
    EXPECT(REDLOCK_LOST, redlock_renew(done.held, 0, &error));
    EXPECT(REDLOCK_LOST, redlock_release(done.held, &error));
    EXPECT(REDLOCK_NOT_HELD, redlock_release(done.held, &error));

    held = acquired(client, "events:loss", 300); /* of a blocking acquire too */
    lost = next_event(client, fd);
    CHECK(lost.kind == REDLOCK_EVENT_LOST && lost.held == held);
    redlock_release(held, NULL);

    held = acquired(client, "events:loss", 300); /* nobody needs to hear of it after the release */
    CHECK(readable(fd, 10000));
    EXPECT(REDLOCK_LOST, redlock_release(held, &error));
    check_empty();

    submitted("events:loss", 300, 0); /* it is lost before its outcome is drained: the outcome comes first */
    CHECK(readable(fd, 10000));
    do
        EXPECT(REDLOCK_OK, redlock_inspect(client, &request, &found, &error));
    while (found.holder_count > 0);
    done = next_event(client, fd);
    CHECK(done.kind == REDLOCK_EVENT_DONE && done.status == REDLOCK_OK && done.remaining_ms == 0);
    lost = next_event(client, fd);
    CHECK(lost.kind == REDLOCK_EVENT_LOST && lost.held == done.held);
    redlock_release(done.held, NULL);
    check_empty();
}

/* Each of many outcomes comes once, through drains that are too small for all. */
static void many(void)
{
    static uint64_t ids[MANY], releases[MANY];
    static int ended[MANY], released[MANY];
    redlock_event events[7];
    size_t count;
    int left = 2 * MANY;
    for (int i = 0; i < MANY; i++) {
        char name[32];
        snprintf(name, sizeof name, "events:many:%d", i);
        ids[i] = submitted(name, 20000, 0);
    }
    while (left > 0) {
        CHECK(readable(fd, 10000));
        EXPECT(REDLOCK_OK, redlock_drain(client, events, 7, &count, &error));
        for (size_t e = 0; e < count; e++) {
            CHECK(events[e].kind == REDLOCK_EVENT_DONE && events[e].status == REDLOCK_OK);
            for (int i = 0; i < MANY; i++) {
                if (events[e].id == ids[i]) {
                    CHECK(ended[i]++ == 0);
                    EXPECT(REDLOCK_OK, redlock_submit_release(events[e].held, &releases[i], &error));
                    left--;
                } else if (events[e].id == releases[i]) {
                    CHECK(released[i]++ == 0);
                    left--;
                }
            }
        }
    }
    check_empty();
}

/* Of an operation among many. */
static redlock_operation operation(uint32_t kind, const redlock_request *request, redlock_held held, int64_t ttl_ms)
{
    redlock_operation o = {.request = request, .held = held, .ttl_ms = ttl_ms, .kind = kind};
    return o;
}

/* The outcomes of count operations, in their order. */
static void outcomes_of(uint64_t first, size_t count, redlock_event *ended)
{
    redlock_event event;
    size_t got, left = count;
    memset(ended, 0, count * sizeof *ended);
    while (left > 0) {
        CHECK(readable(fd, 10000));
        EXPECT(REDLOCK_OK, redlock_drain(client, &event, 1, &got, &error));
        CHECK(got == 1 && event.kind == REDLOCK_EVENT_DONE && event.id >= first && event.id < first + count);
        CHECK(ended[event.id - first].id == 0);
        ended[event.id - first] = event;
        left--;
    }
    check_empty();
}

static void together(const char *url)
{
    static redlock_event ended[REDLOCK_MAX_OPERATIONS];
    redlock_operation all[REDLOCK_MAX_OPERATIONS];
    static char names[REDLOCK_MAX_OPERATIONS][32];
    redlock_request requests[REDLOCK_MAX_OPERATIONS], bad;
    redlock_held held[2], wild = 12345;
    redlock_client rival = opened(url);
    uint64_t first;
    for (int i = 0; i < REDLOCK_MAX_OPERATIONS; i++) {
        snprintf(names[i], sizeof names[i], "events:together:%d", i);
        requests[i] = request_for(names[i], 20000, 0);
        all[i] = operation(REDLOCK_SUBMIT_ACQUIRE, &requests[i], 0, 0);
    }
    EXPECT(REDLOCK_OK, redlock_submit(client, all, REDLOCK_MAX_OPERATIONS, &first, &error));
    outcomes_of(first, REDLOCK_MAX_OPERATIONS, ended);
    for (int i = 0; i < REDLOCK_MAX_OPERATIONS; i++) {
        CHECK(ended[i].status == REDLOCK_OK && ended[i].held != 0 && redlock_fence(ended[i].held) == ended[i].fence);
        all[i] = operation(REDLOCK_SUBMIT_RELEASE, NULL, ended[i].held, 0);
    }
    held[0] = ended[0].held, held[1] = ended[1].held;

    /* What is wrong with one is the outcome of that one. */
    bad = request_for("events:together:bad", 20000, 0);
    bad.fencing = 7;
    redlock_held theirs = acquired(rival, "events:together:rival", 10000);
    redlock_operation mixed[] = {
        operation(REDLOCK_SUBMIT_RENEW, NULL, held[0], 40000), operation(REDLOCK_SUBMIT_ACQUIRE, &bad, 0, 0),
        operation(REDLOCK_SUBMIT_RELEASE, NULL, held[1], 0),   operation(REDLOCK_SUBMIT_RELEASE, NULL, held[1], 0),
        operation(REDLOCK_SUBMIT_RENEW, NULL, wild, 1000),     operation(REDLOCK_SUBMIT_RELEASE, NULL, theirs, 0),
        operation(REDLOCK_SUBMIT_ACQUIRE, &requests[0], 0, 0),
    };
    const redlock_status wanted[] = {REDLOCK_OK,       REDLOCK_INVALID, REDLOCK_OK,  REDLOCK_NOT_HELD,
                                     REDLOCK_NOT_HELD, REDLOCK_INVALID, REDLOCK_HELD};
    EXPECT(REDLOCK_OK, redlock_submit(client, mixed, 7, &first, &error));
    EXPECT(REDLOCK_NOT_HELD, redlock_release(held[1], &error)); /* freed already */
    outcomes_of(first, 7, ended);
    for (int i = 0; i < 7; i++)
        CHECK(ended[i].status == (int32_t)wanted[i] && ended[i].held == 0 && (ended[i].message[0] == 0) == (wanted[i] == REDLOCK_OK));
    CHECK(ended[0].remaining_ms > 30000 && redlock_remaining_ms(held[0]) > 30000);
    CHECK(strstr(ended[1].message, "fencing") != NULL);
    EXPECT(REDLOCK_OK, redlock_release(theirs, &error)); /* it is as it was */
    EXPECT(REDLOCK_OK, redlock_close(rival, &error));

    /* What no operation may be fails them all. */
    mixed[1].request = NULL;
    EXPECT(REDLOCK_INVALID, redlock_submit(client, mixed, 2, &first, &error));
    CHECK(first == 0);
    mixed[1] = operation(3, NULL, 0, 0);
    EXPECT(REDLOCK_INVALID, redlock_submit(client, mixed, 2, &first, &error));
    mixed[1] = mixed[0], mixed[1].reserved = 1;
    EXPECT(REDLOCK_INVALID, redlock_submit(client, mixed, 2, &first, &error));
    EXPECT(REDLOCK_INVALID, redlock_submit(client, mixed, 0, &first, &error));
    EXPECT(REDLOCK_INVALID, redlock_submit(client, all, REDLOCK_MAX_OPERATIONS + 1, &first, &error));
    check_empty();

    all[1] = all[0]; /* which is released once */
    EXPECT(REDLOCK_OK, redlock_submit(client, all, REDLOCK_MAX_OPERATIONS, &first, &error));
    outcomes_of(first, REDLOCK_MAX_OPERATIONS, ended);
    for (int i = 0; i < REDLOCK_MAX_OPERATIONS; i++)
        CHECK(ended[i].status == (i == 1 ? REDLOCK_NOT_HELD : REDLOCK_OK));
}

static void *wait_until_closed(void *unused)
{
    redlock_error e = REDLOCK_ERROR_INIT;
    redlock_request request = request_for("events:close", 1000, -1);
    redlock_held held;
    CHECK(redlock_acquire(client, &request, &held, &e) == REDLOCK_CLOSED && held == 0);
    return unused;
}

static void closing(const char *url)
{
    pthread_t waiter;
    redlock_held held = acquired(client, "events:close", 10000);
    redlock_event event;
    redlock_client rival;
    size_t count;
    submitted("events:close", 1000, -1);
    submitted("events:not drained", 10000, 0);
    CHECK(pthread_create(&waiter, NULL, wait_until_closed, NULL) == 0); /* which may come too late; CLOSED too */
    EXPECT(REDLOCK_OK, redlock_close(client, &error));
    CHECK(pthread_join(waiter, NULL) == 0);
    EXPECT(REDLOCK_CLOSED, redlock_close(client, &error));
    EXPECT(REDLOCK_CLOSED, redlock_drain(client, &event, 1, &count, &error));
    EXPECT(REDLOCK_CLOSED, redlock_renew(held, 1000, &error));
    EXPECT(REDLOCK_CLOSED, redlock_release(held, &error));
    EXPECT(REDLOCK_NOT_HELD, redlock_release(held, &error));
    CHECK(redlock_remaining_ms(held) == 0);
    CHECK(write(fd, "", 0) == -1); /* its descriptor is closed */
    rival = opened(url);
    redlock_release(acquired(rival, "events:close", 1000), NULL); /* everything was released */
    redlock_release(acquired(rival, "events:not drained", 1000), NULL);
    EXPECT(REDLOCK_OK, redlock_close(rival, &error));
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    client = opened(argv[1]);
    EXPECT(REDLOCK_OK, redlock_fd(client, &fd, &error));
    CHECK(fd >= 0);
    check_empty();
    outcomes();
    slots();
    cancelling();
    losses();
    many();
    together(argv[1]);
    closing(argv[1]);
    return 0;
}
