/* verbs.c URL - the blocking calls, and what their errors tell. */
#include "check.h"

static void *new_error(size_t size)
{
    redlock_error *big = calloc(1, size);
    CHECK(big != NULL);
    big->size = (uint32_t)size;
    return big;
}

/* A message longer than a redlock_error shows in a longer buffer, and is cut in a shorter one. */
static void long_messages(void)
{
    char urls[15][64];
    const char *nodes[15];
    redlock_options options = REDLOCK_OPTIONS_INIT;
    redlock_request request = request_for("verbs", 0, 0);
    redlock_client client;
    redlock_held held;
    redlock_error *big = new_error(8192);
    for (int i = 0; i < 15; i++) {
        snprintf(urls[i], sizeof urls[i], "unix:///there/is/no/such/socket/%d", i);
        nodes[i] = urls[i];
    }
    options.nodes = nodes;
    options.node_count = 15;
    EXPECT(REDLOCK_OK, redlock_open(&options, &client, &error));
    CHECK(redlock_acquire(client, &request, &held, big) == REDLOCK_UNAVAILABLE);
    CHECK(big->status == REDLOCK_UNAVAILABLE && big->node >= 0 && big->node < 15);
    char *whole = (char *)big + offsetof(redlock_error, message); /* it goes on behind the struct */
    CHECK(strlen(whole) > sizeof error.message && strstr(whole, "\nnode 7 (/there/is/") != NULL);
    EXPECT(REDLOCK_UNAVAILABLE, redlock_acquire(client, &request, &held, &error));
    CHECK(strlen(error.message) == sizeof error.message - 1);
    EXPECT(REDLOCK_OK, redlock_close(client, &error));
    free(big);
}

/* Each holder of a semaphore has a slot; inspect shows them all to who has room, and the first four to an older program. */
static void semaphore(redlock_client client)
{
    enum { PERMITS = 6 };
    redlock_inspection found = REDLOCK_INSPECTION_INIT;
    redlock_holder holders[PERMITS + 1];
    redlock_request request = request_for("verbs:semaphore", 5000, 0);
    redlock_held held[PERMITS], other;
    request.kind = REDLOCK_SEMAPHORE, request.permits = PERMITS;
    for (uint32_t i = 0; i < PERMITS; i++) {
        EXPECT(REDLOCK_OK, redlock_acquire(client, &request, &held[i], &error));
        CHECK(redlock_slot(held[i]) == i && redlock_fence(held[i]) > 0);
    }
    EXPECT(REDLOCK_HELD, redlock_acquire(client, &request, &other, &error));

    memset(holders, 0x55, sizeof holders);
    found.all_holders = holders, found.all_capacity = PERMITS + 1;
    EXPECT(REDLOCK_OK, redlock_inspect(client, &request, &found, &error));
    CHECK(found.kind == REDLOCK_SEMAPHORE && found.holder_count == PERMITS);
    CHECK(found.all_holders == holders && found.all_capacity == PERMITS + 1);
    for (uint32_t i = 0; i < PERMITS; i++)
        CHECK(holders[i].slot == i && holders[i].nodes == 1 && strlen(holders[i].digest) == 40);
    CHECK(memcmp(&found.holders[3], &holders[3], sizeof holders[3]) == 0);
    CHECK(holders[PERMITS].slot == 0x55555555); /* untouched */

    memset(holders, 0x55, sizeof holders);
    found.all_capacity = 2;
    EXPECT(REDLOCK_OK, redlock_inspect(client, &request, &found, &error));
    CHECK(found.holder_count == PERMITS && holders[1].slot == 1 && holders[2].slot == 0x55555555);
    found.all_holders = NULL, found.all_capacity = SIZE_MAX;
    EXPECT(REDLOCK_OK, redlock_inspect(client, &request, &found, &error));
    memset(holders, 0x55, sizeof holders);
    found.all_holders = holders, found.size = offsetof(redlock_inspection, all_holders);
    EXPECT(REDLOCK_OK, redlock_inspect(client, &request, &found, &error));
    CHECK(found.holder_count == PERMITS && holders[0].slot == 0x55555555 && found.all_holders == holders);

    EXPECT(REDLOCK_OK, redlock_force_release(client, &request, found.holders[2].digest, &error));
    EXPECT(REDLOCK_LOST, redlock_renew(held[2], 0, &error));
    EXPECT(REDLOCK_OK, redlock_acquire(client, &request, &other, &error));
    CHECK(redlock_slot(other) == 2 && redlock_fence(other) > redlock_fence(held[2]));
    for (int i = 0; i < PERMITS; i++)
        EXPECT(i == 2 ? REDLOCK_LOST : REDLOCK_OK, redlock_release(held[i], &error));
    EXPECT(REDLOCK_OK, redlock_release(other, &error));
}

int main(int argc, char **argv)
{
    redlock_inspection found = REDLOCK_INSPECTION_INIT;
    struct {
        redlock_inspection inspection;
        uint64_t later;
    } longer = {REDLOCK_INSPECTION_INIT, 77};
    redlock_request request = request_for("verbs", 5000, 0);
    redlock_held held, other;
    char token[256], again[256];
    uint64_t fence;
    int64_t left;
    CHECK(argc == 2);
    redlock_client client = opened(argv[1]), rival = opened(argv[1]);

    EXPECT(REDLOCK_OK, redlock_inspect(client, &request, &found, &error));
    CHECK(found.holder_count == 0);
    request.metadata = "job 7", request.metadata_len = 5;
    EXPECT(REDLOCK_OK, redlock_acquire(client, &request, &held, &error));
    fence = redlock_fence(held);
    left = redlock_remaining_ms(held);
    CHECK(fence > 0 && left > 4000 && left < 5000);
    EXPECT(REDLOCK_OK, redlock_token(held, token, sizeof token, &error));
    CHECK(strncmp(token, "rl1:", 4) == 0);
    EXPECT(REDLOCK_OK, redlock_token(held, again, strlen(token) + 1, &error));
    CHECK(strcmp(token, again) == 0);
    EXPECT(REDLOCK_INVALID, redlock_token(held, again, strlen(token), &error));

    EXPECT(REDLOCK_HELD, redlock_acquire(rival, &request, &other, &error));
    CHECK(other == 0);
    request.wait_ms = 120;
    EXPECT(REDLOCK_TIMEOUT, redlock_acquire(rival, &request, &other, &error));
    EXPECT(REDLOCK_OK, redlock_renew(held, 20000, &error));
    CHECK(redlock_remaining_ms(held) > 15000);

    EXPECT(REDLOCK_OK, redlock_inspect(rival, &request, &found, &error));
    CHECK(found.kind == REDLOCK_MUTEX && found.holder_count == 1 && found.fence == fence);
    CHECK(found.holders[0].nodes == 1 && found.holders[0].ttl_ms > 15000 && found.holders[0].ttl_ms <= 20000);
    CHECK(strstr(found.holders[0].who, "/c/job 7") != NULL);
    CHECK(strlen(found.holders[0].digest) == 40);
    longer.inspection.size = sizeof longer;
    EXPECT(REDLOCK_OK, redlock_inspect(rival, &request, &longer.inspection, &error));
    CHECK(longer.inspection.holder_count == 1 && longer.inspection.size == sizeof longer && longer.later == 77);

    EXPECT(REDLOCK_OK, redlock_force_release(rival, &request, found.holders[0].digest, &error));
    EXPECT(REDLOCK_NOT_HELD, redlock_force_release(rival, &request, found.holders[0].digest, &error));
    EXPECT(REDLOCK_LOST, redlock_renew(held, 0, &error));
    CHECK(redlock_remaining_ms(held) == 0 && redlock_fence(held) == fence);
    EXPECT(REDLOCK_LOST, redlock_release(held, &error));
    CHECK(redlock_fence(held) == 0);
    EXPECT(REDLOCK_OK, redlock_acquire(rival, &request, &other, &error));
    CHECK(redlock_fence(other) > fence);
    EXPECT(REDLOCK_OK, redlock_release(other, &error));

    semaphore(client);
    long_messages();
    EXPECT(REDLOCK_OK, redlock_close(client, &error));
    EXPECT(REDLOCK_OK, redlock_close(rival, &error));
    return 0;
}
