//go:build ignore

/*
 * loader.c - loads libredlock-core.so on first use, and guards it against fork.
 *
 * What is true at any time:
 *   - *loaded is 1 if and only if this very process has loaded a core; fork wipes it in the child.
 *   - A handle's highest byte is the generation of its core: the first is 1, a copy that a child loads
 *     is one more than its parent's. So a child never looks a parent's handle up.
 *   - A core that was loaded before the fork stays mapped in the child, but is never entered again.
 */
#define _GNU_SOURCE
#include "loader.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#define CORE_NAME "libredlock-core.so"
#define CORE_START "redlock_core_start"

enum {
    GENERATION_SHIFT = 56,
    MAX_GENERATION = 255,
    MAX_FD = 1 << 20, /* what Linux allows a process (fs.nr_open) unless it is told otherwise */
    MAX_ERROR_SIZE = 65536
};

const struct redlock_core *redlock_core;

static int loaded_without_wipe;
static int *loaded = &loaded_without_wipe;
static unsigned generation; /* of the newest core in this line of processes; 0: none yet */
static bool file_used;      /* this process or a parent has loaded the file itself: what is loaded next must be a copy */
static const char *rejected; /* why what is in the file is of no use: to load it again would not help */
static char core_path[PATH_MAX];
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

/* The descriptors of the core, one bit each. A parent's are closed in the child: else a connection would
   live on, unused, as long as the child does. */
static uint64_t watched[MAX_FD / 64];

bool redlock_usable(const redlock_error *error)
{
    return error == NULL || (error->size >= sizeof *error && error->size <= MAX_ERROR_SIZE);
}

redlock_status redlock_fail(redlock_error *error, redlock_status status, const char *format, ...)
{
    va_list arguments;
    if (error == NULL)
        return status;
    error->status = (int32_t)status;
    error->node = -1;
    va_start(arguments, format);
    /* Not error->message: the buffer may go on behind the struct. */
    vsnprintf((char *)error + offsetof(redlock_error, message), error->size - offsetof(redlock_error, message), format,
              arguments);
    va_end(arguments);
    return status;
}

redlock_status redlock_enter(uint64_t handle, redlock_status gone, redlock_error *error)
{
    unsigned made_by = (unsigned)(handle >> GENERATION_SHIFT);
    int entered = __atomic_load_n(loaded, __ATOMIC_ACQUIRE); /* first: it publishes generation and redlock_core */
    unsigned newest = __atomic_load_n(&generation, __ATOMIC_RELAXED);
    if (!redlock_usable(error))
        return REDLOCK_INVALID;
    if (entered && made_by == newest)
        return REDLOCK_OK;
    if (made_by >= 1 && made_by <= newest)
        return redlock_fail(error, REDLOCK_CLOSED,
                            "the process forked after this handle was made: it is the parent's; open a client here");
    return redlock_fail(error, gone, "there is no such handle in this process");
}

/* Called by the core before a descriptor is closed, and after it was opened. So one with its bit set is the core's. */
static void watch(int fd, int open)
{
    uint64_t bit = UINT64_C(1) << (fd % 64);
    if (fd < 0 || fd >= MAX_FD)
        return;
    if (open)
        __atomic_fetch_or(&watched[fd / 64], bit, __ATOMIC_RELAXED);
    else
        __atomic_fetch_and(&watched[fd / 64], ~bit, __ATOMIC_RELAXED);
}

/* A fork waits until nobody loads: else the child would inherit the dynamic loader's own lock, taken. */
static void before_fork(void)
{
    pthread_mutex_lock(&loading);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&loading);
}

/* Closes, never shuts down: the connections are the parent's. */
static void after_fork_in_child(void)
{
    static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    memcpy(&loading, &fresh, sizeof loading);
    if (generation == 0)
        return;
    __atomic_store_n(loaded, 0, __ATOMIC_RELAXED);
    for (int word = 0; word < MAX_FD / 64; word++) {
        for (; watched[word] != 0; watched[word] &= watched[word] - 1)
            close(word * 64 + __builtin_ctzll(watched[word]));
    }
}

/* At load, since later the working directory may be another one. */
static void find_core(void)
{
    Dl_info self;
    char library[PATH_MAX];
    char *slash;
    if (dladdr((void *)&redlock_core, &self) == 0 || realpath(self.dli_fname, library) == NULL)
        return;
    slash = strrchr(library, '/');
    if (slash != NULL && (size_t)(slash + 1 - library) + sizeof CORE_NAME <= sizeof core_path) {
        memcpy(core_path, library, (size_t)(slash + 1 - library));
        strcpy(core_path + (slash + 1 - library), CORE_NAME);
    }
}

__attribute__((constructor)) static void prepare(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *wiped = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (wiped != MAP_FAILED && madvise(wiped, page, MADV_WIPEONFORK) == 0)
        loaded = wiped; /* wiped by a bare clone(2) too, which runs no handlers */
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    find_core();
}

/* Copies the core's file into memory and gives the descriptor; -1 with errno if it can't. */
static int copy_core(void)
{
    struct stat file;
    off_t offset = 0;
    int kept, copy = -1, in = open(core_path, O_RDONLY | O_CLOEXEC);
    if (in < 0)
        return -1;
    if (fstat(in, &file) != 0 || (copy = memfd_create(CORE_NAME, MFD_CLOEXEC)) < 0)
        goto failed;
    while (offset < file.st_size) {
        ssize_t sent = sendfile(copy, in, &offset, (size_t)(file.st_size - offset));
        if (sent == 0)
            errno = EIO; /* it has shrunk: a part of it would crash when it is run */
        if (sent == 0 || (sent < 0 && errno != EINTR))
            goto failed;
    }
    close(in);
    return copy;
failed:
    kept = errno;
    close(in);
    if (copy >= 0)
        close(copy);
    errno = kept;
    return -1;
}

/* dlopens the core's file, or a copy of it if the file itself is in use. NULL with a message if it can't. */
static void *open_core(redlock_error *error)
{
    /* dlopen takes a path that it knows for the library that it knows, and the copy's number may be the same
       as in the parent: so each generation writes the path with one slash more. */
    char path[MAX_GENERATION + 32];
    bool copied = file_used;
    int copy = -1;
    void *library;
    if (copied) {
        copy = copy_core();
        if (copy < 0) {
            redlock_fail(error, REDLOCK_UNSUPPORTED, "%s can't be copied for this process, which was forked: %s", core_path,
                         strerror(errno));
            return NULL;
        }
        memset(path, '/', generation);
        snprintf(path + generation, sizeof path - generation, "/proc/self/fd/%d", copy);
    }
    file_used = true; /* before dlopen, for a child that is cloned meanwhile */
    library = dlopen(copied ? path : core_path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        file_used = copied;
        redlock_fail(error, REDLOCK_UNSUPPORTED, "%s can't be loaded: %s", core_path, dlerror());
    }
    if (copy >= 0)
        close(copy);
    return library;
}

static redlock_status load(bool copy_allowed, redlock_error *error)
{
    redlock_core_start_function *start;
    const struct redlock_core *core;
    void *library;
    if (core_path[0] == '\0')
        return redlock_fail(error, REDLOCK_UNSUPPORTED, "it can't be found out where libredlock.so is, and " CORE_NAME
                                                        " beside it");
    if (rejected != NULL)
        return redlock_fail(error, REDLOCK_UNSUPPORTED, "%s %s", core_path, rejected);
    if (file_used && !copy_allowed)
        return redlock_fail(error, REDLOCK_CLOSED,
                            "the process forked after libredlock was used, and REDLOCK_NO_FORK_COPY is set");
    if (generation == MAX_GENERATION)
        return redlock_fail(error, REDLOCK_UNSUPPORTED, "%d processes, each forked by the one before, have used libredlock",
                            MAX_GENERATION);
    if (file_used)
        memset(watched, 0, sizeof watched); /* after a bare clone(2): what they name may be something else now */
    library = open_core(error);
    if (library == NULL)
        return REDLOCK_UNSUPPORTED;
    *(void **)&start = dlsym(library, CORE_START);
    __atomic_fetch_add(&generation, 1, __ATOMIC_RELAXED);
    core = start != NULL ? start((uint64_t)generation << GENERATION_SHIFT, watch) : NULL;
    if (core == NULL || strcmp(core->version, REDLOCK_VERSION) != 0) {
        rejected = "is not of the same version as libredlock.so, which is " REDLOCK_VERSION;
        return redlock_fail(error, REDLOCK_UNSUPPORTED, "%s %s", core_path, rejected);
    }
    redlock_core = core;
    __atomic_store_n(loaded, 1, __ATOMIC_RELEASE);
    return REDLOCK_OK;
}

redlock_status redlock_load(bool copy_allowed, redlock_error *error)
{
    redlock_status status = REDLOCK_OK;
    if (__atomic_load_n(loaded, __ATOMIC_ACQUIRE))
        return REDLOCK_OK;
    pthread_mutex_lock(&loading);
    if (!*loaded)
        status = load(copy_allowed, error);
    pthread_mutex_unlock(&loading);
    return status;
}
