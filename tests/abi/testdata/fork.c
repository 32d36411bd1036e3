/* fork.c CASE URL - what a forked process may do, and what its parent sees of it. */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { NEST = 4, CHILDREN = 200, AT_ONCE = 8, BUSY = 4 };

static const char *url;

static pid_t forked(void)
{
    pid_t child;
    fflush(NULL);
    child = fork();
    CHECK(child >= 0);
    if (child == 0)
        alarm(60); /* a child that hangs is a failure, not a hang */
    return child;
}

static void expect_success(pid_t child)
{
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* A client of this very process works. */
static void use(const char *name)
{
    redlock_client client = opened(url);
    redlock_held held = acquired(client, name, 10000);
    CHECK(redlock_remaining_ms(held) > 0);
    EXPECT(REDLOCK_OK, redlock_release(held, &error));
    EXPECT(REDLOCK_OK, redlock_close(client, &error));
}

/* The parent's handles are of no use here. */
static void expect_closed(redlock_client client, redlock_held held)
{
    redlock_request request = request_for("fork:other", 0, 0);
    redlock_operation operation = {.request = &request};
    redlock_event event;
    redlock_held other;
    uint64_t id;
    size_t count;
    int fd;
    char token[256];
    EXPECT(REDLOCK_CLOSED, redlock_release(held, &error));
    CHECK(strstr(error.message, "forked") != NULL);
    EXPECT(REDLOCK_CLOSED, redlock_renew(held, 0, &error));
    EXPECT(REDLOCK_CLOSED, redlock_token(held, token, sizeof token, &error));
    EXPECT(REDLOCK_CLOSED, redlock_submit_release(held, &id, &error));
    EXPECT(REDLOCK_CLOSED, redlock_submit_renew(held, 0, &id, &error));
    EXPECT(REDLOCK_CLOSED, redlock_submit(client, &operation, 1, &id, &error));
    EXPECT(REDLOCK_CLOSED, redlock_acquire(client, &request, &other, &error));
    EXPECT(REDLOCK_CLOSED, redlock_submit_acquire(client, &request, &id, &error));
    EXPECT(REDLOCK_CLOSED, redlock_drain(client, &event, 1, &count, &error));
    EXPECT(REDLOCK_CLOSED, redlock_fd(client, &fd, &error));
    EXPECT(REDLOCK_CLOSED, redlock_close(client, &error));
    CHECK(strstr(error.message, "forked") != NULL);
    CHECK(redlock_remaining_ms(held) == 0 && redlock_fence(held) == 0);
}

/* Nor to a client of the child's own, among other operations. */
static void submit_closed(redlock_client own, redlock_held held)
{
    redlock_operation operation = {.held = held, .kind = REDLOCK_SUBMIT_RELEASE};
    uint64_t id;
    int fd;
    redlock_event event;
    EXPECT(REDLOCK_OK, redlock_fd(own, &fd, &error));
    EXPECT(REDLOCK_OK, redlock_submit(own, &operation, 1, &id, &error));
    event = next_event(own, fd);
    CHECK(event.id == id && event.status == REDLOCK_CLOSED && strstr(event.message, "forked") != NULL);
}

static int open_sockets(void)
{
    char link[64], target[64];
    int count = 0;
    for (int fd = 0; fd < 256; fd++) {
        ssize_t length;
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        length = readlink(link, target, sizeof target - 1);
        count += length > 7 && strncmp(target, "socket:", 7) == 0;
    }
    return count;
}

static void after_use(void)
{
    int fd, sockets = open_sockets();
    redlock_client client = opened(url);
    redlock_held held = acquired(client, "fork:parent", 20000);
    uint64_t fence = redlock_fence(held);
    pid_t child;
    EXPECT(REDLOCK_OK, redlock_fd(client, &fd, &error));
    CHECK(open_sockets() > sockets);
    child = forked();
    if (child == 0) {
        redlock_request request = request_for("fork:parent", 0, 0);
        redlock_held taken;
        expect_closed(client, held);
        CHECK(fcntl(fd, F_GETFD) == -1 && errno == EBADF);
        CHECK(open_sockets() == sockets);
        use("fork:child");
        redlock_client own = opened(url);
        CHECK(own != client);
        expect_closed(client, held); /* still, now that there is a core again */
        submit_closed(own, held);
        EXPECT(REDLOCK_HELD, redlock_acquire(own, &request, &taken, &error)); /* it is the parent's lock */
        EXPECT(REDLOCK_OK, redlock_close(own, &error));
        exit(0);
    }
    expect_success(child);
    CHECK(redlock_remaining_ms(held) > 0 && redlock_fence(held) == fence);
    EXPECT(REDLOCK_OK, redlock_renew(held, 0, &error));
    EXPECT(REDLOCK_OK, redlock_release(held, &error));
    EXPECT(REDLOCK_OK, redlock_close(client, &error));
}

static void before_use(void)
{
    pid_t child = forked();
    use(child == 0 ? "fork:before:child" : "fork:before:parent");
    if (child == 0)
        exit(0);
    expect_success(child);
}

/* Each closes all descriptors that it inherits, as daemons do: so numbers are used again. */
static void nested(int depth)
{
    redlock_client client = opened(url);
    redlock_held held = acquired(client, "fork:nested", 20000);
    pid_t child;
    EXPECT(REDLOCK_OK, redlock_release(held, &error));
    held = acquired(client, "fork:nested", 20000);
    child = depth == 0 ? 0 : forked();
    if (depth > 0 && child == 0) {
        for (int fd = 3; fd < 256; fd++)
            close(fd);
        expect_closed(client, held);
        redlock_request request = request_for("fork:nested", 20000, 10000);
        redlock_client own = opened(url);
        EXPECT(REDLOCK_OK, redlock_acquire(own, &request, &held, &error)); /* once the parent has released */
        EXPECT(REDLOCK_OK, redlock_close(own, &error));
        nested(depth - 1);
        exit(0);
    }
    EXPECT(REDLOCK_OK, redlock_release(held, &error));
    EXPECT(REDLOCK_OK, redlock_close(client, &error));
    if (depth > 0)
        expect_success(child);
}

/* daemon(3) before and after the first use; the grandchild tells its parent through a pipe. */
static void daemons(int used_before)
{
    int ends[2];
    char verdict = 'x';
    pid_t child;
    CHECK(pipe(ends) == 0);
    child = forked();
    if (child == 0) {
        redlock_client client = used_before ? opened(url) : 0;
        redlock_held held = used_before ? acquired(client, "fork:daemon", 500) : 0;
        CHECK(daemon(0, 1) == 0);
        alarm(60);
        if (used_before)
            expect_closed(client, held);
        use("fork:daemon:own");
        CHECK(write(ends[1], "y", 1) == 1);
        exit(0);
    }
    close(ends[1]);
    CHECK(read(ends[0], &verdict, 1) == 1 && verdict == 'y');
    expect_success(child);
}

static redlock_client busy_client;
static int stop;

static void *busy(void *name)
{
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
        redlock_release(acquired(busy_client, name, 10000), NULL);
    return NULL;
}

/* Many children, of a parent whose threads are in the core all the time. */
static void many(void)
{
    char names[BUSY][32];
    pthread_t threads[BUSY];
    pid_t children[CHILDREN];
    busy_client = opened(url);
    redlock_held held = acquired(busy_client, "fork:many", 600000);
    for (int i = 0; i < BUSY; i++) {
        snprintf(names[i], sizeof names[i], "fork:busy:%d", i);
        CHECK(pthread_create(&threads[i], NULL, busy, names[i]) == 0);
    }
    for (int i = 0; i < CHILDREN; i++) {
        if (i >= AT_ONCE)
            expect_success(children[i - AT_ONCE]);
        children[i] = forked();
        if (children[i] == 0) {
            char name[32];
            snprintf(name, sizeof name, "fork:many:%d", i);
            expect_closed(busy_client, held);
            use(name);
            if (i % 2)
                exit(0);
            _exit(0);
        }
    }
    for (int i = CHILDREN - AT_ONCE; i < CHILDREN; i++)
        expect_success(children[i]);
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < BUSY; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    EXPECT(REDLOCK_OK, redlock_release(held, &error));
    EXPECT(REDLOCK_OK, redlock_close(busy_client, &error));
}

static void *first_open(void *unused)
{
    redlock_client client;
    redlock_error e = REDLOCK_ERROR_INIT;
    CHECK(open_url(url, 0, &client, &e) == REDLOCK_OK);
    CHECK(redlock_close(client, &e) == REDLOCK_OK);
    return unused;
}

/* Forks while another thread loads the core: the child must not inherit the loader's locks. */
static void while_loading(void)
{
    for (int round = 0; round < 10; round++) {
        pid_t parent = forked(), child;
        pthread_t thread;
        if (parent > 0) {
            expect_success(parent);
            continue;
        }
        CHECK(pthread_create(&thread, NULL, first_open, NULL) == 0);
        usleep((useconds_t)round * 700);
        child = forked();
        if (child == 0) {
            use("fork:loading");
            exit(0);
        }
        expect_success(child);
        CHECK(pthread_join(thread, NULL) == 0);
        exit(0);
    }
}

static void no_copy(void)
{
    redlock_client client, parents;
    pid_t child = forked();
    if (child == 0) { /* nobody has used it: there is nothing to copy */
        EXPECT(REDLOCK_OK, open_url(url, REDLOCK_NO_FORK_COPY, &client, &error));
        EXPECT(REDLOCK_OK, redlock_close(client, &error));
        exit(0);
    }
    expect_success(child);
    EXPECT(REDLOCK_OK, open_url(url, REDLOCK_NO_FORK_COPY, &parents, &error));
    redlock_release(acquired(parents, "fork:no copy", 1000), NULL);
    child = forked();
    if (child == 0) {
        EXPECT(REDLOCK_CLOSED, open_url(url, REDLOCK_NO_FORK_COPY, &client, &error));
        CHECK(strstr(error.message, "REDLOCK_NO_FORK_COPY") != NULL && client == 0);
        CHECK(threads() == 1);
        EXPECT(REDLOCK_OK, open_url(url, 0, &client, &error)); /* but who wants a copy gets it */
        EXPECT(REDLOCK_OK, redlock_close(client, &error));
        exit(0);
    }
    expect_success(child);
    EXPECT(REDLOCK_OK, redlock_close(parents, &error));
}

/* A bare system call runs none of the handlers of fork(3). */
static void bare(void)
{
    redlock_client client = opened(url);
    redlock_held held = acquired(client, "fork:bare", 10000);
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    CHECK(child >= 0);
    if (child == 0) {
        alarm(60);
        expect_closed(client, held);
        _exit(0);
    }
    expect_success(child);
    EXPECT(REDLOCK_OK, redlock_release(held, &error));
    EXPECT(REDLOCK_OK, redlock_close(client, &error));
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    url = argv[2];
    if (strcmp(argv[1], "after_use") == 0)
        after_use();
    else if (strcmp(argv[1], "before_use") == 0)
        before_use();
    else if (strcmp(argv[1], "nested") == 0)
        nested(NEST);
    else if (strcmp(argv[1], "daemon") == 0)
        daemons(0), daemons(1);
    else if (strcmp(argv[1], "many") == 0)
        many();
    else if (strcmp(argv[1], "while_loading") == 0)
        while_loading();
    else if (strcmp(argv[1], "no_copy") == 0)
        no_copy();
    else if (strcmp(argv[1], "bare") == 0)
        bare();
    else
        CHECK(!"a case");
    return 0;
}
