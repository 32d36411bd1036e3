/* quiet.c URL - before the first open nothing is loaded, and every call has a sensible answer. */
#include "check.h"

static int core_is_mapped(void)
{
    char line[1024];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps != NULL);
    while (fgets(line, sizeof line, maps) != NULL)
        found = found || strstr(line, "libredlock-core") != NULL;
    fclose(maps);
    return found;
}

int main(int argc, char **argv)
{
    const uint64_t wild[] = {0, 1, UINT64_C(1) << 56, (UINT64_C(1) << 56) + 1, UINT64_MAX};
    redlock_request request = request_for("quiet", 0, 0);
    redlock_operation operation = {.request = &request};
    redlock_inspection inspection = REDLOCK_INSPECTION_INIT;
    redlock_event event;
    redlock_held held;
    uint64_t id;
    size_t count;
    char token[256];
    int fd, status;

    CHECK(argc == 2);
    CHECK(strcmp(redlock_version(), REDLOCK_VERSION) == 0);
    for (status = REDLOCK_OK; status <= REDLOCK_INTERNAL; status++)
        CHECK(strcmp(redlock_status_name(status), "?") != 0);
    CHECK(strcmp(redlock_status_name(REDLOCK_NOT_HELD), "NOT_HELD") == 0);
    CHECK(strcmp(redlock_status_name(-1), "?") == 0 && strcmp(redlock_status_name(12), "?") == 0);

    for (size_t i = 0; i < sizeof wild / sizeof *wild; i++) {
        EXPECT(REDLOCK_CLOSED, redlock_close(wild[i], &error));
        EXPECT(REDLOCK_CLOSED, redlock_acquire(wild[i], &request, &held, &error));
        EXPECT(REDLOCK_CLOSED, redlock_inspect(wild[i], &request, &inspection, &error));
        EXPECT(REDLOCK_CLOSED, redlock_force_release(wild[i], &request, "x", &error));
        EXPECT(REDLOCK_CLOSED, redlock_submit_acquire(wild[i], &request, &id, &error));
        EXPECT(REDLOCK_CLOSED, redlock_submit(wild[i], &operation, 1, &id, &error));
        EXPECT(REDLOCK_CLOSED, redlock_cancel(wild[i], 1, &error));
        EXPECT(REDLOCK_CLOSED, redlock_fd(wild[i], &fd, &error));
        EXPECT(REDLOCK_CLOSED, redlock_drain(wild[i], &event, 1, &count, &error));
        EXPECT(REDLOCK_NOT_HELD, redlock_renew(wild[i], 1000, &error));
        EXPECT(REDLOCK_NOT_HELD, redlock_release(wild[i], &error));
        EXPECT(REDLOCK_NOT_HELD, redlock_token(wild[i], token, sizeof token, &error));
        EXPECT(REDLOCK_NOT_HELD, redlock_submit_renew(wild[i], 1000, &id, &error));
        EXPECT(REDLOCK_NOT_HELD, redlock_submit_release(wild[i], &id, &error));
        CHECK(redlock_remaining_ms(wild[i]) == 0 && redlock_fence(wild[i]) == 0);
        CHECK(fd == -1);
    }
    EXPECT(REDLOCK_INVALID, open_url(NULL, 0, &id, &error));
    CHECK(threads() == 1 && !core_is_mapped());

    CHECK(redlock_close(opened(argv[1]), NULL) == REDLOCK_OK);
    CHECK(threads() > 1 && core_is_mapped());
    return 0;
}
