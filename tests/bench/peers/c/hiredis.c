/*
 * hiredis with nothing around it: the limit for anything that sends the same commands. A lone caller has one
 * connection; many share 8, whose pipelines take turns: first all acquires of one, then all its releases.
 */
#include "peer.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

enum { PIPELINES = 8 };

/* As long as one of libredlock's; making it costs this contestant nothing. */
#define TOKEN "rl0:AAAAAAAAAAAAAAAAAAAAAA:benchmark/12345/c"

static struct setup server;
static bool with_scripts; /* of libredlock; else SET NX PX and compare-and-delete */
static redisContext *connections[PIPELINES];

void hiredis_prepare(const struct setup *setup, bool scripts) {
    server = *setup;
    with_scripts = scripts;
    for (int i = 0; i < PIPELINES; i++) {
        connections[i] = redisConnect(server.host, server.port);
        if (connections[i] == NULL) fail("redisConnect", "out of memory");
        if (connections[i]->err != 0) fail("redisConnect", connections[i]->errstr);
    }
}

/* The queue, the places and the fence counter of a lock, whose name is given twice for each. */
#define SIDE_KEYS "{%s}:redlock:mutex:queue:%s {%s}:redlock:mutex:places:%s {%s}:redlock:mutex:fence:%s"

static void append_acquire(redisContext *connection, int caller) {
    char name[NAME_SIZE];
    lock_name(name, caller);
    if (with_scripts) {
        redisAppendCommand(connection, "EVALSHA %s 4 %s " SIDE_KEYS " %s %d %d %s benchmarkbenchmarkbench 123456789012 3000",
                           server.acquire, name, name, name, name, name, name, name, TOKEN, TTL_MS, FENCE_TTL_MS, "");
    } else {
        redisAppendCommand(connection, "SET %s %s NX PX %d", name, TOKEN, TTL_MS);
    }
}

static void append_release(redisContext *connection, int caller) {
    char name[NAME_SIZE];
    lock_name(name, caller);
    if (with_scripts) {
        redisAppendCommand(connection, "EVALSHA %s 4 %s " SIDE_KEYS " %s", server.release, name, name, name, name, name, name,
                           name, TOKEN);
    } else {
        redisAppendCommand(connection, "EVALSHA %s 1 %s %s", server.compare_and_delete, name, TOKEN);
    }
}

/* Ends the program unless a reply says yes: OK, 1, or an array that begins with 1. */
static void check(const redisReply *reply) {
    if (reply->type == REDIS_REPLY_ERROR) fail("the server", reply->str);
    const redisReply *first = reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 ? reply->element[0] : reply;
    bool yes = first->type == REDIS_REPLY_STATUS || (first->type == REDIS_REPLY_INTEGER && first->integer == 1);
    if (!yes) fail("the server", "a lock was not granted, or not there at its release");
}

/* Sends what was appended. */
static void flush(redisContext *connection) {
    int done = 0;
    while (!done)
        if (redisBufferWrite(connection, &done) != REDIS_OK) fail("redisBufferWrite", connection->errstr);
}

static void read_replies(redisContext *connection, int count) {
    for (int i = 0; i < count; i++) {
        void *reply;
        if (redisGetReply(connection, &reply) != REDIS_OK) fail("redisGetReply", connection->errstr);
        check(reply);
        freeReplyObject(reply);
    }
}

int64_t hiredis_run(int callers, int64_t until_ns) {
    int pipelines = callers < PIPELINES ? callers : PIPELINES;
    int count[PIPELINES] = {0}; /* of callers in a pipeline */
    bool releasing[PIPELINES] = {false};
    int64_t pairs = 0;
    for (int i = 0; i < pipelines; i++) {
        for (int caller = i; caller < callers; caller += pipelines, count[i]++) append_acquire(connections[i], caller);
        flush(connections[i]);
    }
    for (int active = pipelines; active > 0;) {
        for (int i = 0; i < pipelines; i++) {
            if (count[i] == 0) continue;
            read_replies(connections[i], count[i]);
            if (releasing[i]) {
                pairs += count[i];
                if (now_ns() >= until_ns) {
                    count[i] = 0;
                    active--;
                    continue;
                }
            }
            releasing[i] = !releasing[i];
            for (int caller = i; caller < callers; caller += pipelines) {
                if (releasing[i]) {
                    append_release(connections[i], caller);
                } else {
                    append_acquire(connections[i], caller);
                }
            }
            flush(connections[i]);
        }
    }
    return pairs;
}
