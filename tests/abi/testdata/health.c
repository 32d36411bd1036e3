/* health.c URL - a server whose settings endanger locks is told of. */
#include "check.h"

int main(int argc, char **argv)
{
    redlock_event event;
    int fd;
    CHECK(argc == 2);
    redlock_client client = opened(argv[1]);
    EXPECT(REDLOCK_OK, redlock_fd(client, &fd, &error));
    redlock_release(acquired(client, "health", 1000), NULL);
    event = next_event(client, fd);
    CHECK(event.kind == REDLOCK_EVENT_HEALTH && event.node == 0 && event.id == 0 && event.held == 0);
    printf("%s\n", event.message);
    EXPECT(REDLOCK_OK, redlock_close(client, &error));
    return 0;
}
