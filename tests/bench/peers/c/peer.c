/*
 * The benchmark's peer in C: one contestant that acquires and releases when it is told to.
 *
 *     peer CONTESTANT ADDRESS ACQUIRE RELEASE COMPARE_AND_DELETE
 *
 * The last three are the SHA-1s of scripts that the server has. The peer first writes a line with its versions. Then
 * each line "CALLERS MILLISECONDS" on the standard input is a run, answered by a line "PAIRS NANOSECONDS".
 */
#include "peer.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <redlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void lock_name(char name[NAME_SIZE], int caller) {
    snprintf(name, NAME_SIZE, "bench:%04d", caller);
}

int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void fail(const char *what, const char *why) {
    fprintf(stderr, "bench peer: %s: %s\n", what, why);
    exit(1);
}

int main(int argc, char **argv) {
    if (argc != 6) fail("usage", "5 arguments are needed");
    char *colon = strchr(argv[2], ':');
    if (colon == NULL) fail("usage", "the address is HOST:PORT");
    *colon = '\0';
    const struct setup setup = {argv[2], atoi(colon + 1), argv[3], argv[4], argv[5]};

    int64_t (*run)(int, int64_t) = hiredis_run;
    if (strcmp(argv[1], "libredlock") == 0) {
        libredlock_prepare(&setup);
        run = libredlock_run;
    } else if (strcmp(argv[1], "scripts") == 0) {
        hiredis_prepare(&setup, true);
    } else if (strcmp(argv[1], "plain") == 0) {
        hiredis_prepare(&setup, false);
    } else {
        fail(argv[1], "no contestant is called so");
    }
    printf("C: hiredis %d.%d.%d\n", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
    fflush(stdout);

    int callers, length_ms;
    while (scanf("%d %d", &callers, &length_ms) == 2) {
        if (callers < 1 || callers > MOST_CALLERS) fail("callers", "1 to 1000 are possible");
        int64_t start = now_ns();
        int64_t pairs = run(callers, start + (int64_t)length_ms * 1000000);
        printf("%" PRId64 " %" PRId64 "\n", pairs, now_ns() - start);
        fflush(stdout);
    }
    return 0;
}
