/* Each verb as a blocking call. */
#include "driver.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

void answer(const char *id, redlock_status status, const char *message)
{
    struct reply reply;
    reply_begin(&reply, id, redlock_status_name((int)status));
    if (status != REDLOCK_OK)
        reply_text(&reply, "message", message);
    reply_send(&reply);
}

static uint32_t toggle(const struct line *line, const char *key)
{
    const char *value = line_text(line, key, NULL);
    if (value == NULL)
        return REDLOCK_DEFAULT;
    return strcmp(value, "on") == 0 ? REDLOCK_ON : REDLOCK_OFF;
}

bool is_semaphore(const struct line *line)
{
    return strcmp(line_text(line, "kind", ""), "semaphore") == 0;
}

redlock_request request_of(const struct line *line)
{
    redlock_request request = REDLOCK_REQUEST_INIT;
    const struct field *name = line_field(line, "name");
    const struct field *metadata = line_field(line, "metadata");
    if (name) {
        request.name = name->value;
        request.name_len = (int64_t)name->length;
    }
    if (metadata) {
        request.metadata = metadata->value;
        request.metadata_len = (int64_t)metadata->length;
    }
    request.kind = is_semaphore(line) ? REDLOCK_SEMAPHORE : REDLOCK_MUTEX;
    request.permits = line_number(line, "permits", 0);
    request.ttl_ms = line_number(line, "ttl_ms", request.ttl_ms);
    request.wait_ms = line_number(line, "wait_ms", request.wait_ms);
    request.max_hold_ms = line_number(line, "max_hold_ms", request.max_hold_ms);
    request.retry_delay_ms = line_number(line, "retry_delay_ms", request.retry_delay_ms);
    request.retry_jitter_ms = line_number(line, "retry_jitter_ms", request.retry_jitter_ms);
    request.max_tries = line_number(line, "max_tries", request.max_tries);
    request.fencing = toggle(line, "fencing");
    request.auto_renew = toggle(line, "auto_renew");
    request.queue = toggle(line, "queue");
    if (strcmp(line->word, "try_acquire") == 0)
        request.wait_ms = 0;
    return request;
}

void acquired(const char *id, const char *name, redlock_held held, struct client *client, bool semaphore)
{
    char token[256];
    struct error error = ERROR_INIT;
    redlock_status status = redlock_token(held, token, sizeof token, &error.error);
    hold_add(name, held, client);
    if (status != REDLOCK_OK) {
        answer(id, status, error.error.message);
        return;
    }
    char fence[24];
    snprintf(fence, sizeof fence, "%llu", (unsigned long long)redlock_fence(held));
    struct reply reply;
    reply_begin(&reply, id, "OK");
    reply_text(&reply, "token", token);
    reply_text(&reply, "fence", fence);
    if (semaphore)
        reply_number(&reply, "slot", redlock_slot(held));
    reply_number(&reply, "remaining_ms", redlock_remaining_ms(held));
    reply_send(&reply);
}

void renewed(const char *id, redlock_held held)
{
    struct reply reply;
    reply_begin(&reply, id, "OK");
    reply_number(&reply, "remaining_ms", redlock_remaining_ms(held));
    reply_send(&reply);
}

/* Passes on the losses of a client whose requests are blocking calls. */
static void *watch(void *argument)
{
    struct client *client = argument;
    struct pollfd wait = {.fd = client->fd, .events = POLLIN};
    while (!client_closing(client, false))
        if (poll(&wait, 1, 20) > 0)
            drain(client);
    return NULL;
}

static void open_client(const struct line *line)
{
    const char *nodes[LINE_FIELDS];
    redlock_options options = REDLOCK_OPTIONS_INIT;
    options.nodes = nodes;
    for (size_t i = 0; i < line->count; i++)
        if (strcmp(line->fields[i].key, "node") == 0)
            nodes[options.node_count++] = line->fields[i].value;
    options.prefix = line_text(line, "prefix", NULL);
    options.node_timeout_ms = line_number(line, "node_timeout_ms", 0);
    options.unavailable_after_ms = line_number(line, "unavailable_after_ms", 0);

    struct error error = ERROR_INIT;
    redlock_client handle = 0;
    int fd = -1;
    redlock_status status = redlock_open(&options, &handle, &error.error);
    if (status == REDLOCK_OK)
        status = redlock_fd(handle, &fd, &error.error);
    if (status == REDLOCK_OK) {
        struct client *client = client_add(line_text(line, "client", ""), handle, fd);
        if (!async && pthread_create(&client->watcher, NULL, watch, client) != 0) {
            answer(line->id, REDLOCK_INTERNAL, "the driver can't start a thread");
            return;
        }
    }
    answer(line->id, status, error.error.message);
}

static void close_client(const struct line *line, struct client *client)
{
    bool again = client_closing(client, false);
    client_closing(client, true);
    if (!async && !again)
        pthread_join(client->watcher, NULL); /* the descriptor dies with the client */
    struct error error = ERROR_INIT;
    redlock_status status = redlock_close(client->handle, &error.error);
    if (async)
        closed(client);
    answer(line->id, status, error.error.message);
}

static void inspect(const struct line *line, struct client *client)
{
    redlock_request request = request_of(line);
    redlock_inspection inspection = REDLOCK_INSPECTION_INIT;
    redlock_holder holders[64];
    inspection.all_holders = holders;
    inspection.all_capacity = sizeof holders / sizeof *holders;
    struct error error = ERROR_INIT;
    redlock_status status = redlock_inspect(client->handle, &request, &inspection, &error.error);
    if (status != REDLOCK_OK) {
        answer(line->id, status, error.error.message);
        return;
    }
    struct reply reply;
    reply_begin(&reply, line->id, "OK");
    bool semaphore = inspection.kind == REDLOCK_SEMAPHORE;
    reply_text(&reply, "kind", semaphore ? "semaphore" : inspection.kind == REDLOCK_MUTEX ? "mutex" : "?");
    reply_number(&reply, "fence", (int64_t)inspection.fence);
    reply_number(&reply, "queue_length", (int64_t)inspection.queue_length);
    for (size_t i = 0; i < inspection.holder_count && i < inspection.all_capacity; i++) {
        const redlock_holder *holder = &holders[i];
        reply_text(&reply, "who", holder->who);
        reply_text(&reply, "digest", holder->digest);
        reply_number(&reply, "ttl_ms", holder->ttl_ms);
        reply_number(&reply, "nodes", holder->nodes);
        if (semaphore)
            reply_number(&reply, "slot", holder->slot);
    }
    reply_send(&reply);
}

/* The verbs of a client. */
static void serve_client(const struct line *line, struct client *client)
{
    struct error error = ERROR_INIT;
    redlock_request request = request_of(line);
    if (strcmp(line->word, "acquire") == 0 || strcmp(line->word, "try_acquire") == 0) {
        redlock_held held = 0;
        redlock_status status = redlock_acquire(client->handle, &request, &held, &error.error);
        if (status == REDLOCK_OK)
            acquired(line->id, line_text(line, "held", ""), held, client, is_semaphore(line));
        else
            answer(line->id, status, error.error.message);
    } else if (strcmp(line->word, "inspect") == 0) {
        inspect(line, client);
    } else if (strcmp(line->word, "force_release") == 0) {
        const char *digest = line_text(line, "digest", "");
        redlock_status status = redlock_force_release(client->handle, &request, digest, &error.error);
        answer(line->id, status, error.error.message);
    } else if (strcmp(line->word, "close") == 0) {
        close_client(line, client);
    } else if (strcmp(line->word, "hammer") == 0) {
        hammer(line, client);
    } else {
        answer(line->id, REDLOCK_INTERNAL, "the driver has no such verb");
    }
}

void serve(const struct line *line)
{
    const char *client_name = line_text(line, "client", NULL);
    struct client *client = client_name ? client_find(client_name) : NULL;
    redlock_held held = hold_find(line_text(line, "held", ""), NULL);
    struct error error = ERROR_INIT;
    if (strcmp(line->word, "open") == 0) {
        open_client(line);
    } else if (client) {
        serve_client(line, client);
    } else if (client_name || held == 0) {
        answer(line->id, REDLOCK_INTERNAL, "the driver knows no such client or hold");
    } else if (strcmp(line->word, "renew") == 0) {
        redlock_status status = redlock_renew(held, line_number(line, "ttl_ms", 0), &error.error);
        if (status == REDLOCK_OK)
            renewed(line->id, held);
        else
            answer(line->id, status, error.error.message);
    } else if (strcmp(line->word, "release") == 0) {
        redlock_status status = redlock_release(held, &error.error);
        answer(line->id, status, error.error.message);
    } else if (strcmp(line->word, "remaining") == 0) {
        renewed(line->id, held);
    } else {
        answer(line->id, REDLOCK_INTERNAL, "the driver has no such verb");
    }
}
