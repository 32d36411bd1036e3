/* errors.c URL... - prints what goes wrong with each, through every way that a message takes. */
#include "check.h"

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        redlock_client client;
        redlock_request request = request_for("errors", 1000, 0);
        redlock_inspection inspection = REDLOCK_INSPECTION_INIT;
        redlock_event event;
        redlock_held held;
        uint64_t id;
        int fd;
        redlock_status status = open_url(argv[i], 0, &client, &error);
        printf("%s\n", redlock_status_name((int)status));
        if (status != REDLOCK_OK) {
            printf("%s\n", error.message);
            continue;
        }
        status = redlock_acquire(client, &request, &held, &error);
        printf("%s %s\n", redlock_status_name((int)status), error.message);
        status = redlock_inspect(client, &request, &inspection, &error);
        printf("%s %s\n", redlock_status_name((int)status), error.message);
        EXPECT(REDLOCK_OK, redlock_fd(client, &fd, &error));
        EXPECT(REDLOCK_OK, redlock_submit_acquire(client, &request, &id, &error));
        do {
            event = next_event(client, fd);
            printf("%s %s\n", redlock_status_name(event.status), event.message);
        } while (event.kind != REDLOCK_EVENT_DONE);
        EXPECT(REDLOCK_OK, redlock_close(client, &error));
    }
    return 0;
}
