//go:build linux && cgo

/* table.c - hands the exports of export.go to libredlock.so. */
#include "_cgo_export.h"

static redlock_watch_fd *watch_fd;

/* Go can't call a function pointer. */
void core_watch_fd(int fd, int open)
{
    watch_fd(fd, open);
}

static const struct redlock_core table = {
    .version = REDLOCK_VERSION,
    .open = coreOpen,
    .close = coreClose,
    .acquire = coreAcquire,
    .renew = coreRenew,
    .release = coreRelease,
    .remaining_ms = coreRemaining,
    .fence = coreFence,
    .slot = coreSlot,
    .token = coreToken,
    .inspect = coreInspect,
    .force_release = coreForceRelease,
    .submit_acquire = coreSubmitAcquire,
    .submit_renew = coreSubmitRenew,
    .submit_release = coreSubmitRelease,
    .submit = coreSubmit,
    .cancel = coreCancel,
    .fd = coreFD,
    .drain = coreDrain,
};

__attribute__((visibility("default"))) const struct redlock_core *redlock_core_start(uint64_t first_handle,
                                                                                    redlock_watch_fd *watch)
{
    watch_fd = watch;
    coreStart(first_handle);
    return &table;
}
