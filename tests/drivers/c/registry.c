/* The runner's names for clients and holds. */
#include "driver.h"

#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct client *clients;
static struct hold *holds;

struct client *client_add(const char *name, redlock_client handle, int fd)
{
    struct client *client = must_alloc(sizeof *client);
    client->name = must_copy(name);
    client->handle = handle;
    client->fd = fd;
    pthread_mutex_lock(&lock);
    client->next = clients;
    clients = client;
    pthread_mutex_unlock(&lock);
    return client;
}

struct client *client_find(const char *name)
{
    struct client *client = client_first();
    while (client && strcmp(client->name, name) != 0)
        client = client->next;
    return client;
}

struct client *client_first(void)
{
    pthread_mutex_lock(&lock);
    struct client *first = clients;
    pthread_mutex_unlock(&lock);
    return first;
}

bool client_closing(struct client *client, bool close)
{
    pthread_mutex_lock(&lock);
    bool closing = client->closing |= close;
    pthread_mutex_unlock(&lock);
    return closing;
}

static void tell_lost(const char *name, const char *cause)
{
    struct reply reply;
    reply_begin(&reply, "-", "lost");
    reply_text(&reply, "held", name);
    reply_text(&reply, "cause", cause);
    reply_send(&reply);
}

/* Finds or adds a hold. The lock is held. */
static struct hold *hold_of(redlock_held handle)
{
    struct hold *hold = holds;
    while (hold && hold->handle != handle)
        hold = hold->next;
    if (hold == NULL) {
        hold = must_alloc(sizeof *hold);
        hold->handle = handle;
        hold->next = holds;
        holds = hold;
    }
    return hold;
}

void hold_add(const char *name, redlock_held handle, struct client *client)
{
    pthread_mutex_lock(&lock);
    struct hold *hold = hold_of(handle);
    hold->name = must_copy(name);
    hold->client = client;
    bool lost = hold->lost;
    pthread_mutex_unlock(&lock);
    if (lost)
        tell_lost(name, "lost as soon as it was acquired");
}

redlock_held hold_find(const char *name, struct client **client)
{
    pthread_mutex_lock(&lock);
    struct hold *hold = holds;
    while (hold && (hold->name == NULL || strcmp(hold->name, name) != 0))
        hold = hold->next;
    redlock_held handle = hold ? hold->handle : 0;
    if (hold && client)
        *client = hold->client;
    pthread_mutex_unlock(&lock);
    return handle;
}

void hold_lost(redlock_held handle, const char *cause)
{
    pthread_mutex_lock(&lock);
    struct hold *hold = hold_of(handle);
    hold->lost = true;
    const char *name = hold->name;
    pthread_mutex_unlock(&lock);
    if (name)
        tell_lost(name, cause);
}
