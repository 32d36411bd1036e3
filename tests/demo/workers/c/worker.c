/* One of the demo's programs: ../../main.go says what it does, ../../race.go what it prints. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <redlock.h>

enum { MAX_NODES = 15 };

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

/* Prints an event, with the time at which it is called. A fence of 0 is left out. */
static void tell(const char *kind, uint64_t fence)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    printf("%s %" PRId64, kind, (int64_t)now.tv_sec * 1000000000 + now.tv_nsec);
    if (fence != 0)
        printf(" %" PRIu64, fence);
    printf("\n");
    fflush(stdout);
}

static void sleep_between(int least_ms, int most_ms)
{
    long ms = least_ms + rand() % (most_ms - least_ms + 1);
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

static void bump(const char *counter)
{
    long value;
    FILE *file = fopen(counter, "r");
    if (file == NULL || fscanf(file, "%ld", &value) != 1)
        fail(counter, "cannot read the counter");
    fclose(file);
    sleep_between(10, 40); /* the work */
    file = fopen(counter, "w");
    if (file == NULL || fprintf(file, "%ld\n", value + 1) < 0 || fclose(file) != 0)
        fail(counter, "cannot write the counter");
}

static int input_ended(void)
{
    struct pollfd input = {STDIN_FILENO, POLLIN, 0};
    return poll(&input, 1, 0) > 0;
}

int main(int argc, char **argv)
{
    const char *nodes[MAX_NODES];
    redlock_options options = REDLOCK_OPTIONS_INIT;
    redlock_request request = REDLOCK_REQUEST_INIT;
    redlock_error error = REDLOCK_ERROR_INIT;
    redlock_client client;
    redlock_held held;
    char *urls = getenv("REDLOCK_NODES"), *url;

    if (argc != 3 || urls == NULL)
        fail("usage", "REDLOCK_NODES=URL,... worker-c NAME COUNTER");
    signal(SIGPIPE, SIG_IGN); /* if nobody reads any more: the lock is still to be released */
    options.nodes = nodes;
    for (url = strtok(urls, ","); url != NULL && options.node_count < MAX_NODES; url = strtok(NULL, ","))
        nodes[options.node_count++] = url;
    if (redlock_open(&options, &client, &error) != REDLOCK_OK)
        fail("open", error.message);

    srand((unsigned)getpid());
    request.name = argv[1];
    request.ttl_ms = 5000;
    while (!input_ended()) {
        tell("waiting", 0);
        if (redlock_acquire(client, &request, &held, &error) != REDLOCK_OK)
            fail("acquire", error.message);
        tell("acquired", redlock_fence(held));
        bump(argv[2]);
        tell("released", 0);
        if (redlock_release(held, &error) != REDLOCK_OK)
            fail("release", error.message);
        sleep_between(5, 80); /* so that a program that waits gets its turn */
    }
    if (redlock_close(client, &error) != REDLOCK_OK)
        fail("close", error.message);
    return 0;
}
