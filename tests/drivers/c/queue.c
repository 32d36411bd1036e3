/* The verbs that can be submitted, and the completion queue. */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

/* A submitted request. Only the main thread touches them. */
struct pending {
    struct client *client;
    uint64_t id; /* unique within the client */
    char *request;         /* the runner's id */
    char *verb;
    char *held; /* the runner's name */
    bool semaphore;
    struct pending *next;
};

static struct pending *pending;

static void owe(const struct line *line, struct client *client, uint64_t id)
{
    struct pending *p = must_alloc(sizeof *p);
    p->id = id;
    p->client = client;
    p->request = must_copy(line->id);
    p->verb = must_copy(line->word);
    p->held = must_copy(line_text(line, "held", ""));
    p->semaphore = is_semaphore(line);
    p->next = pending;
    pending = p;
}

static void forget(struct pending *p)
{
    struct pending **link = &pending;
    while (*link != p)
        link = &(*link)->next;
    *link = p->next;
    free(p->request);
    free(p->verb);
    free(p->held);
    free(p);
}

static void cancel(const struct line *line)
{
    const char *request = line_text(line, "request", "");
    redlock_status status = REDLOCK_OK;
    struct error error = ERROR_INIT;
    for (struct pending *p = pending; p; p = p->next)
        if (strcmp(p->request, request) == 0)
            status = redlock_cancel(p->client->handle, p->id, &error.error);
    answer(line->id, status, error.error.message);
}

bool submit(const struct line *line)
{
    if (strcmp(line->word, "cancel") == 0) {
        cancel(line);
        return true;
    }
    struct error error = ERROR_INIT;
    redlock_status status;
    uint64_t id = 0;
    struct client *client = client_find(line_text(line, "client", ""));
    redlock_held held = hold_find(line_text(line, "held", ""), client ? NULL : &client);
    bool acquires = strcmp(line->word, "acquire") == 0 || strcmp(line->word, "try_acquire") == 0;
    if (client && acquires) {
        redlock_request request = request_of(line);
        status = redlock_submit_acquire(client->handle, &request, &id, &error.error);
    } else if (held && strcmp(line->word, "renew") == 0) {
        status = redlock_submit_renew(held, line_number(line, "ttl_ms", 0), &id, &error.error);
    } else if (held && strcmp(line->word, "release") == 0) {
        status = redlock_submit_release(held, &id, &error.error);
    } else {
        return false;
    }
    if (status == REDLOCK_OK)
        owe(line, client, id);
    else
        answer(line->id, status, error.error.message);
    return true;
}

static void done(struct client *client, const redlock_event *event)
{
    struct pending *p = pending;
    while (p && (p->client != client || p->id != event->id))
        p = p->next;
    if (p == NULL) {
        struct reply reply;
        reply_begin(&reply, "-", "event_of_no_request");
        reply_number(&reply, "id", (int64_t)event->id);
        reply_send(&reply);
        return;
    }
    if (event->status != REDLOCK_OK)
        answer(p->request, (redlock_status)event->status, event->message);
    else if (event->held)
        acquired(p->request, p->held, event->held, client, p->semaphore);
    else if (strcmp(p->verb, "renew") == 0)
        renewed(p->request, hold_find(p->held, NULL));
    else
        answer(p->request, REDLOCK_OK, "");
    forget(p);
}

void drain(struct client *client)
{
    redlock_event events[8];
    size_t count = 0;
    struct error error = ERROR_INIT;
    do {
        if (redlock_drain(client->handle, events, sizeof events / sizeof *events, &count, &error.error) != REDLOCK_OK)
            return; /* closed */
        for (size_t i = 0; i < count; i++) {
            if (events[i].kind == REDLOCK_EVENT_LOST)
                hold_lost(events[i].held, events[i].message);
            else if (events[i].kind == REDLOCK_EVENT_DONE)
                done(client, &events[i]);
        }
    } while (count == sizeof events / sizeof *events);
}

/* redlock_close ends every wait with CLOSED, but the events that say so die with the client's queue. */
void closed(struct client *client)
{
    for (struct pending *p = pending, *next; p; p = next) {
        next = p->next;
        if (p->client == client) {
            answer(p->request, REDLOCK_CLOSED, "the client was closed");
            forget(p);
        }
    }
}
