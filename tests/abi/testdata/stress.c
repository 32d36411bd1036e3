/*
 * stress.c URL THREADS ROUNDS - everything from many threads at once, handles of each other included: for the
 * tools that find races and bad memory. What a call answers is not checked beyond what is certain.
 */
#include "check.h"

#include <pthread.h>

static const char *url;
static redlock_client shared;
static redlock_held others[16]; /* anybody's, perhaps released already */
static int rounds, successes;

static void meddle(unsigned at)
{
    char token[256];
    redlock_held held = __atomic_load_n(&others[at % 16], __ATOMIC_RELAXED);
    redlock_remaining_ms(held);
    redlock_fence(held);
    if (redlock_token(held, token, sizeof token, NULL) == REDLOCK_OK)
        CHECK(strlen(token) > 10);
    if (at % 5 == 0)
        redlock_release(held, NULL);
}

static void blocking(redlock_client client, unsigned seed)
{
    redlock_error e = REDLOCK_ERROR_INIT;
    char name[32];
    redlock_held held;
    snprintf(name, sizeof name, "stress:%u", seed % 3);
    redlock_request request = request_for(name, 2000, 20);
    redlock_status status = redlock_acquire(client, &request, &held, &e);
    if (status != REDLOCK_OK) { /* under a tool the node may seem to be too slow */
        CHECK(status == REDLOCK_TIMEOUT || status == REDLOCK_UNAVAILABLE);
        return;
    }
    __atomic_fetch_add(&successes, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&others[seed % 16], held, __ATOMIC_RELAXED);
    meddle(seed + 1);
    status = redlock_renew(held, 0, &e);
    CHECK(status != REDLOCK_INTERNAL && status != REDLOCK_INVALID);
    redlock_release(held, &e);
}

static void queued(redlock_client client, unsigned seed)
{
    redlock_event events[3];
    redlock_request request = request_for("stress:queued", 1000, seed % 2 ? 0 : -1);
    uint64_t id;
    size_t count = 0;
    if (redlock_submit_acquire(client, &request, &id, NULL) != REDLOCK_OK)
        return;
    if (seed % 3 == 0)
        redlock_cancel(client, id, NULL);
    for (int turn = 0; turn < 3; turn++) {
        if (redlock_drain(client, events, 3, &count, NULL) != REDLOCK_OK)
            return;
        for (size_t i = 0; i < count; i++)
            if (events[i].held != 0 && redlock_submit_release(events[i].held, &id, NULL) == REDLOCK_INTERNAL)
                CHECK(!"a bug");
    }
}

static void *work(void *number)
{
    unsigned seed = (unsigned)(uintptr_t)number;
    for (int round = 0; round < rounds; round++, seed = seed * 1103515245u + 12345u) {
        redlock_client own;
        redlock_error e = REDLOCK_ERROR_INIT;
        blocking(shared, seed >> 8);
        queued(shared, seed >> 8);
        if (round % 8 == 0) {
            CHECK(open_url(url, 0, &own, &e) == REDLOCK_OK);
            blocking(own, seed >> 8);
            queued(own, seed >> 8);
            CHECK(redlock_close(own, &e) == REDLOCK_OK);
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[64];
    int count;
    CHECK(argc == 4);
    url = argv[1], count = atoi(argv[2]), rounds = atoi(argv[3]);
    CHECK(count > 0 && count <= 64);
    shared = opened(url);
    for (int i = 0; i < count; i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)(i * 7919 + 1)) == 0);
    for (int i = 0; i < count; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(successes > 0);
    EXPECT(REDLOCK_OK, redlock_close(shared, &error));
    return 0;
}
