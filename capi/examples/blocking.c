/*
 * blocking.c - one job at a time, however many copies of this program run.
 *
 *     cc -o blocking blocking.c $(pkg-config --cflags --libs redlock)
 *     ./blocking redis://127.0.0.1:6379
 */
#include <inttypes.h>
#include <stdio.h>

#include <redlock.h>

static int complain(const char *what, redlock_status status, const redlock_error *error)
{
    fprintf(stderr, "%s: %s: %s\n", what, redlock_status_name((int)status), error->message);
    return 1;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s URL\n", argv[0]);
        return 2;
    }

    redlock_error error = REDLOCK_ERROR_INIT;
    redlock_options options = REDLOCK_OPTIONS_INIT;
    const char *nodes[] = {argv[1]};
    options.nodes = nodes;
    options.node_count = 1;
    redlock_client client;
    redlock_status status = redlock_open(&options, &client, &error);
    if (status != REDLOCK_OK)
        return complain("open", status, &error);

    redlock_request request = REDLOCK_REQUEST_INIT;
    request.name = "example:report";
    request.ttl_ms = 5000;   /* if we die the lock is free after 5 s; while we live it is renewed */
    request.wait_ms = 10000; /* somebody else may have it: wait up to 10 s */
    redlock_held held;
    status = redlock_acquire(client, &request, &held, &error);
    if (status != REDLOCK_OK) {
        redlock_close(client, NULL);
        return complain("acquire", status, &error);
    }

    /* Whoever stores what we do should refuse a fence that is smaller than one it has seen. */
    printf("held: fence %" PRIu64 ", %" PRId64 " ms left\n", redlock_fence(held), redlock_remaining_ms(held));

    /* Other work may take a longer lease. LOST would mean: stop, it is somebody else's by now. */
    status = redlock_renew(held, 8000, &error);
    if (status != REDLOCK_OK)
        complain("renew", status, &error);
    else
        printf("renewed: %" PRId64 " ms left\n", redlock_remaining_ms(held));

    status = redlock_release(held, &error); /* held is gone, whatever comes back */
    if (status != REDLOCK_OK)
        complain("release", status, &error);
    else
        printf("released\n");

    redlock_close(client, NULL);
    return status != REDLOCK_OK;
}
