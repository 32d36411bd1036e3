/* misuse.c URL - everything that is wrong has a status, and a message that says what is allowed. */
#include "check.h"

static redlock_client client;

#define SAYS(what) CHECK(strstr(error.message, what) != NULL)

static redlock_status try(redlock_request request)
{
    redlock_held held = 7;
    redlock_status status = redlock_acquire(client, &request, &held, &error);
    CHECK(held == 0);
    return status;
}

static void bad_options(const char *url)
{
    struct {
        redlock_options options;
        uint64_t later;
    } longer;
    const char *twice[2] = {url, url}, *none[2] = {url, NULL}, *many[16];
    redlock_options good = REDLOCK_OPTIONS_INIT, options;
    redlock_client c = 7;
    good.nodes = &url;
    good.node_count = 1;

    EXPECT(REDLOCK_INVALID, redlock_open(NULL, &c, &error));
    CHECK(c == 0);
    EXPECT(REDLOCK_INVALID, redlock_open(&good, NULL, &error));
    options = good, options.nodes = NULL;
    EXPECT(REDLOCK_INVALID, redlock_open(&options, &c, &error));
    options = good, options.node_count = 0;
    EXPECT(REDLOCK_INVALID, redlock_open(&options, &c, &error));
    options = good, options.nodes = none, options.node_count = 2;
    EXPECT(REDLOCK_INVALID, redlock_open(&options, &c, &error));
    SAYS("nodes[1]");
    options = good, options.nodes = twice, options.node_count = 2;
    EXPECT(REDLOCK_INVALID, redlock_open(&options, &c, &error));
    for (int i = 0; i < 16; i++)
        many[i] = i % 2 ? "redis://127.0.0.1:1" : "redis://127.0.0.1:2";
    options = good, options.nodes = many, options.node_count = 16;
    EXPECT(REDLOCK_INVALID, redlock_open(&options, &c, &error));
    options = good, options.node_count = SIZE_MAX;
    EXPECT(REDLOCK_INVALID, redlock_open(&options, &c, &error));
    SAYS("15");
    options = good, options.flags = 2;
    EXPECT(REDLOCK_INVALID, redlock_open(&options, &c, &error));
    options = good, options.node_timeout_ms = -1;
    EXPECT(REDLOCK_INVALID, redlock_open(&options, &c, &error));
    options = good, options.unavailable_after_ms = INT64_MIN;
    EXPECT(REDLOCK_INVALID, redlock_open(&options, &c, &error));
    options = good, options.prefix = "\xff";
    EXPECT(REDLOCK_INVALID, redlock_open(&options, &c, &error));
    EXPECT(REDLOCK_INVALID, open_url("http://127.0.0.1", 0, &c, &error));
    EXPECT(REDLOCK_INVALID, open_url("", 0, &c, &error));
    CHECK(c == 0);

    options = good, options.size = 0;
    EXPECT(REDLOCK_INVALID, redlock_open(&options, &c, &error));
    SAYS("INIT");
    options = good, options.size--;
    EXPECT(REDLOCK_INVALID, redlock_open(&options, &c, &error));
    options = good, options.size = UINT32_MAX;
    EXPECT(REDLOCK_INVALID, redlock_open(&options, &c, &error));
    longer.options = good, longer.options.size = sizeof longer, longer.later = 0;
    EXPECT(REDLOCK_OK, redlock_open(&longer.options, &c, &error));
    EXPECT(REDLOCK_OK, redlock_close(c, &error));
    longer.later = 1;
    EXPECT(REDLOCK_UNSUPPORTED, redlock_open(&longer.options, &c, &error));
}

static void bad_requests(void)
{
    char name[1026];
    redlock_held held;
    redlock_request good = request_for("misuse", 0, 0), r;
    memset(name, 'n', sizeof name);

    EXPECT(REDLOCK_INVALID, redlock_acquire(client, NULL, &held, &error));
    EXPECT(REDLOCK_INVALID, redlock_acquire(client, &good, NULL, &error));
    SAYS("held");
    r = good, r.name = NULL;
    EXPECT(REDLOCK_INVALID, try(r));
    r = good, r.name = "";
    EXPECT(REDLOCK_INVALID, try(r));
    SAYS("1024");
    r = good, r.name_len = 0;
    EXPECT(REDLOCK_INVALID, try(r));
    r = good, r.name = name, r.name_len = 1025;
    EXPECT(REDLOCK_INVALID, try(r));
    SAYS("1024");
    r = good, r.name = "a\0b", r.name_len = 3;
    EXPECT(REDLOCK_INVALID, try(r));
    r = good, r.name = "\xc3\x28";
    EXPECT(REDLOCK_INVALID, try(r));
    SAYS("UTF-8");
    r = good, r.name_len = -2;
    EXPECT(REDLOCK_INVALID, try(r));
    r = good, r.name_len = INT64_MAX;
    EXPECT(REDLOCK_INVALID, try(r));
    r = good, r.metadata = "m", r.metadata_len = INT64_MIN;
    EXPECT(REDLOCK_INVALID, try(r));
    r = good, r.metadata = name, r.metadata_len = 1000;
    EXPECT(REDLOCK_INVALID, try(r));
    SAYS("metadata");

    const int64_t bad_ttls[] = {-1, 1, 99, 86400001, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof bad_ttls / sizeof *bad_ttls; i++) {
        r = good, r.ttl_ms = bad_ttls[i];
        EXPECT(REDLOCK_INVALID, try(r));
        SAYS("100 ms to 24 h");
    }
    r = good, r.wait_ms = -2;
    EXPECT(REDLOCK_INVALID, try(r));
    SAYS("wait_ms is -2");
    r = good, r.wait_ms = INT64_MIN;
    EXPECT(REDLOCK_INVALID, try(r));
    r = good, r.kind = 6;
    EXPECT(REDLOCK_INVALID, try(r));
    r = good, r.kind = UINT32_MAX;
    EXPECT(REDLOCK_INVALID, try(r));
    r = good, r.kind = 1;
    EXPECT(REDLOCK_UNSUPPORTED, try(r));
    r = good, r.fencing = 3;
    EXPECT(REDLOCK_INVALID, try(r));
    r = good, r.auto_renew = 3;
    EXPECT(REDLOCK_INVALID, try(r));
    r = good, r.queue = 3;
    EXPECT(REDLOCK_INVALID, try(r));
    r = good, r.max_hold_ms = 1;
    EXPECT(REDLOCK_INVALID, try(r));
    r = good, r.max_tries = 1;
    EXPECT(REDLOCK_INVALID, try(r));
    SAYS("set queue to off");
    r = good, r.queue = REDLOCK_ON, r.retry_delay_ms = 1;
    EXPECT(REDLOCK_INVALID, try(r));
    SAYS("set queue to off");
    const int64_t bad_delays[] = {-1, 3600001, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof bad_delays / sizeof *bad_delays; i++) {
        r = good, r.queue = REDLOCK_OFF, r.retry_delay_ms = bad_delays[i];
        EXPECT(REDLOCK_INVALID, try(r));
        SAYS("retry_delay");
        r = good, r.queue = REDLOCK_OFF, r.retry_jitter_ms = bad_delays[i];
        EXPECT(REDLOCK_INVALID, try(r));
        SAYS("retry_jitter");
    }
    r = good, r.queue = REDLOCK_OFF, r.max_tries = INT64_MIN;
    EXPECT(REDLOCK_INVALID, try(r));
    SAYS("max_tries");
    r = good, r.permits = 1;
    EXPECT(REDLOCK_INVALID, try(r));
    SAYS("permits are for a semaphore");
    const int64_t bad_permits[] = {0, -1, 10001, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof bad_permits / sizeof *bad_permits; i++) {
        r = good, r.kind = REDLOCK_SEMAPHORE, r.permits = bad_permits[i];
        EXPECT(REDLOCK_INVALID, try(r));
        SAYS("1 to 10000");
    }
    r = good, r.reserved = 1;
    EXPECT(REDLOCK_INVALID, try(r));
    r = good, r.size = 8;
    EXPECT(REDLOCK_INVALID, try(r));
}

/* The struct of a program that was built before it could say how to poll, and of one that can say more than we. */
static void other_sizes(void)
{
    struct {
        redlock_request request;
        uint64_t later;
    } longer;
    redlock_request shorter = request_for("misuse:sizes", 0, 0);
    redlock_held held, other;
    shorter.size = offsetof(redlock_request, retry_delay_ms);
    shorter.retry_delay_ms = shorter.retry_jitter_ms = shorter.max_tries = -1; /* not its own any more */
    EXPECT(REDLOCK_OK, redlock_acquire(client, &shorter, &held, &error));
    longer.request = request_for("misuse:sizes", 0, -1), longer.request.size = sizeof longer, longer.later = 0;
    longer.request.queue = REDLOCK_OFF, longer.request.retry_delay_ms = 1, longer.request.max_tries = 2;
    EXPECT(REDLOCK_HELD, redlock_acquire(client, &longer.request, &other, &error));
    longer.later = 1;
    EXPECT(REDLOCK_UNSUPPORTED, redlock_acquire(client, &longer.request, &other, &error));
    EXPECT(REDLOCK_OK, redlock_release(held, &error));
    shorter.size = offsetof(redlock_request, permits);
    shorter.retry_delay_ms = shorter.retry_jitter_ms = shorter.max_tries = 0;
    shorter.permits = 3;
    EXPECT(REDLOCK_OK, redlock_acquire(client, &shorter, &held, &error));
    EXPECT(REDLOCK_OK, redlock_release(held, &error));
}

static void good_limits(void)
{
    char name[1024];
    redlock_held held;
    redlock_request r = request_for("misuse:limits", 86400000, INT64_MAX);
    EXPECT(REDLOCK_OK, redlock_acquire(client, &r, &held, &error));
    EXPECT(REDLOCK_INVALID, redlock_renew(held, 86400001, &error));
    EXPECT(REDLOCK_INVALID, redlock_renew(held, INT64_MAX, &error));
    EXPECT(REDLOCK_INVALID, redlock_renew(held, INT64_MIN, &error));
    CHECK(redlock_remaining_ms(held) > 80000000);
    EXPECT(REDLOCK_OK, redlock_release(held, &error));
    memset(name, 'n', sizeof name);
    r = request_for(name, 100, 0), r.name_len = sizeof name, r.fencing = REDLOCK_OFF;
    EXPECT(REDLOCK_OK, redlock_acquire(client, &r, &held, &error));
    CHECK(redlock_fence(held) == 0);
    redlock_release(held, NULL);
    r = request_for("misuse:limits", 0, 0), r.queue = REDLOCK_OFF;
    r.retry_delay_ms = r.retry_jitter_ms = 3600000, r.max_tries = INT64_MAX;
    EXPECT(REDLOCK_OK, redlock_acquire(client, &r, &held, &error));
    redlock_release(held, NULL);
}

static void bad_pointers(redlock_held held)
{
    redlock_request r = request_for("misuse", 0, 0);
    redlock_operation operation = {.request = &r};
    redlock_inspection inspection = REDLOCK_INSPECTION_INIT;
    redlock_event event;
    uint64_t id;
    size_t count;
    char token[256];

    EXPECT(REDLOCK_INVALID, redlock_token(held, NULL, 256, &error));
    EXPECT(REDLOCK_INVALID, redlock_token(held, token, 0, &error));
    EXPECT(REDLOCK_INVALID, redlock_token(held, token, 5, &error));
    CHECK(token[0] == '\0');
    EXPECT(REDLOCK_INVALID, redlock_inspect(client, &r, NULL, &error));
    EXPECT(REDLOCK_INVALID, redlock_inspect(client, NULL, &inspection, &error));
    inspection.size = 12;
    EXPECT(REDLOCK_INVALID, redlock_inspect(client, &r, &inspection, &error));
    EXPECT(REDLOCK_INVALID, redlock_force_release(client, &r, NULL, &error));
    EXPECT(REDLOCK_INVALID, redlock_force_release(client, NULL, "x", &error));
    EXPECT(REDLOCK_INVALID, redlock_force_release(client, &r, "x", &error));
    EXPECT(REDLOCK_INVALID, redlock_submit_acquire(client, NULL, &id, &error));
    EXPECT(REDLOCK_INVALID, redlock_submit_acquire(client, &r, NULL, &error));
    EXPECT(REDLOCK_INVALID, redlock_submit_renew(held, 0, NULL, &error));
    EXPECT(REDLOCK_INVALID, redlock_submit_release(held, NULL, &error));
    EXPECT(REDLOCK_INVALID, redlock_submit(client, NULL, 1, &id, &error));
    EXPECT(REDLOCK_INVALID, redlock_submit(client, &operation, 1, NULL, &error));
    CHECK(redlock_remaining_ms(held) > 0); /* it has not been freed */
    EXPECT(REDLOCK_INVALID, redlock_fd(client, NULL, &error));
    EXPECT(REDLOCK_INVALID, redlock_drain(client, NULL, 1, &count, &error));
    EXPECT(REDLOCK_INVALID, redlock_drain(client, &event, 1, NULL, &error));
    EXPECT(REDLOCK_OK, redlock_drain(client, NULL, 0, &count, &error));
    EXPECT(REDLOCK_OK, redlock_cancel(client, 12345, &error));
}

static void bad_errors(redlock_held held)
{
    const uint32_t sizes[] = {0, 16, sizeof(redlock_error) - 1, 65537, UINT32_MAX};
    redlock_request r = request_for("misuse", 0, 0);
    redlock_client c;
    redlock_held h;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        redlock_error bad;
        memset(&bad, 0x55, sizeof bad);
        bad.size = sizes[i];
        CHECK(redlock_renew(held, 1000, &bad) == REDLOCK_INVALID);
        CHECK(redlock_release(held, &bad) == REDLOCK_INVALID);
        CHECK(redlock_acquire(client, &r, &h, &bad) == REDLOCK_INVALID);
        CHECK(redlock_close(client, &bad) == REDLOCK_INVALID);
        CHECK(open_url("redis://127.0.0.1:1", 0, &c, &bad) == REDLOCK_INVALID);
        CHECK(bad.status == 0x55555555 && bad.message[0] == 0x55); /* untouched */
    }
    CHECK(redlock_remaining_ms(held) > 1000); /* none of these did anything */
}

static void stale_handles(redlock_held held)
{
    char token[256];
    uint64_t id;
    const uint64_t wild[] = {0, 1, held + 1, held + 1000, client + 1000, held | UINT64_C(1) << 63, UINT64_MAX};
    EXPECT(REDLOCK_OK, redlock_release(held, &error));
    EXPECT(REDLOCK_NOT_HELD, redlock_release(held, &error));
    EXPECT(REDLOCK_NOT_HELD, redlock_renew(held, 0, &error));
    EXPECT(REDLOCK_NOT_HELD, redlock_token(held, token, sizeof token, &error));
    EXPECT(REDLOCK_NOT_HELD, redlock_submit_release(held, &id, &error));
    EXPECT(REDLOCK_NOT_HELD, redlock_submit_renew(held, 0, &id, &error));
    EXPECT(REDLOCK_NOT_HELD, redlock_release(client, &error)); /* the other kind of handle */
    EXPECT(REDLOCK_CLOSED, redlock_close(held, &error));
    for (size_t i = 0; i < sizeof wild / sizeof *wild; i++) {
        EXPECT(REDLOCK_NOT_HELD, redlock_release(wild[i], &error));
        EXPECT(REDLOCK_CLOSED, redlock_cancel(wild[i], 1, &error));
        CHECK(redlock_remaining_ms(wild[i]) == 0 && redlock_fence(wild[i]) == 0 && redlock_slot(wild[i]) == 0);
    }
}

int main(int argc, char **argv)
{
    redlock_held held;
    CHECK(argc == 2);
    bad_options(argv[1]);
    client = opened(argv[1]);
    bad_requests();
    good_limits();
    other_sizes();
    held = acquired(client, "misuse:held", 10000);
    bad_pointers(held);
    bad_errors(held);
    stale_handles(held);
    EXPECT(REDLOCK_OK, redlock_close(client, &error));
    EXPECT(REDLOCK_CLOSED, redlock_close(client, &error));
    return 0;
}
