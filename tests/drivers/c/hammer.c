/* Takes the lock as often as it can and bumps a counter that nothing but the lock protects. */
#include "driver.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static int64_t boottime_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static volatile uint64_t *map_counter(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    void *memory = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    return memory == MAP_FAILED ? NULL : memory;
}

void hammer(const struct line *line, struct client *client)
{
    volatile uint64_t *counter = map_counter(line_text(line, "counter", ""));
    FILE *log = fopen(line_text(line, "log", ""), "a");
    if (counter == NULL || log == NULL) {
        answer(line->id, REDLOCK_INTERNAL, "the driver can't open the counter or the log");
        if (log)
            fclose(log);
        return;
    }
    int64_t stop_ns = boottime_ns() + line_number(line, "seconds", 1) * 1000000000;
    int64_t grants = 0;
    struct error error = ERROR_INIT;
    redlock_request request = request_of(line);
    redlock_status status = REDLOCK_OK;
    while (status == REDLOCK_OK && (grants == 0 || boottime_ns() < stop_ns)) {
        redlock_held held = 0;
        status = redlock_acquire(client->handle, &request, &held, &error.error);
        if (status != REDLOCK_OK)
            break;
        int64_t begin = boottime_ns();
        uint64_t value = *counter;
        sched_yield();
        *counter = value + 1;
        int64_t end = boottime_ns();
        uint64_t fence = redlock_fence(held);
        status = redlock_release(held, &error.error);
        if (status != REDLOCK_OK)
            break;
        fprintf(log, "%" PRId64 " %" PRId64 " %" PRIu64 "\n", begin, end, fence);
        grants++;
    }
    fclose(log);
    munmap((void *)(uintptr_t)counter, sizeof *counter);
    if (status != REDLOCK_OK) {
        answer(line->id, status, error.error.message);
        return;
    }
    struct reply reply;
    reply_begin(&reply, line->id, "OK");
    reply_number(&reply, "grants", grants);
    reply_send(&reply);
}
