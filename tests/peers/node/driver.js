/** Holds locks by foreign libraries in Node, by the line protocol of tests/drivers/README.md. */

import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";

import { Redis } from "ioredis";
import Redlock, { ExecutionError, ResourceLockedError } from "redlock";
import { Mutex } from "redis-semaphore";

import { Request, send } from "../../drivers/node/protocol.js";

const clients = new Map();
const locks = new Map();

/** How each library acquires. A lock has `renew` and `release`, which throw NotHeld; none if it was refused. */
const libraries = { "node-redlock": nodeRedlock, "redis-semaphore": redisSemaphore };

class NotHeld extends Error {}

send("-", "ready", [["language", "node"], ["lacks", ""]]);
for await (const line of createInterface({ input: process.stdin })) {
  answer(Request.parse(line));
}
process.exit();

async function answer(request) {
  try {
    send(request.id, await serve(request), []);
  } catch (error) {
    send(request.id, error instanceof NotHeld ? "NOT_HELD" : "FAILED", [["message", error.stack]]);
  }
}

async function serve(request) {
  const name = request.get("client");
  switch (request.verb) {
    case "open":
      clients.set(name, open(libraries[request.get("library")], request.all("node")));
      return "OK";
    case "acquire":
    case "try_acquire": {
      const waitMs = request.number("wait_ms") ?? 0;
      const lock = await clients.get(name).acquire(request.get("name"), request.number("ttl_ms"), waitMs);
      locks.set(request.get("held"), lock);
      return lock ? "OK" : request.verb === "acquire" ? "TIMEOUT" : "HELD";
    }
    case "renew":
      await locks.get(request.get("held")).renew(request.number("ttl_ms"));
      return "OK";
    case "release":
      await locks.get(request.get("held")).release();
      return "OK";
    case "close":
      clients.get(name).connections.forEach((connection) => connection.disconnect());
      return "OK";
  }
  throw new Error(`no verb ${request.verb}`);
}

function open(library, nodes) {
  const connections = nodes.map((node) => new Redis(`redis://${node}`));
  return { connections, acquire: library(connections) };
}

/** node-redlock tries again after 200 ms, give or take 100. */
function nodeRedlock(connections) {
  const redlock = new Redlock(connections);
  return async (name, ttlMs, waitMs) => {
    try {
      const lock = await redlock.acquire([name], ttlMs, { retryCount: Math.ceil(waitMs / 200) });
      return redlockLock(lock);
    } catch (error) {
      await refused(error);
      return undefined;
    }
  };
}

function redlockLock(lock) {
  const confirmed = async (operation) => {
    try {
      return await operation;
    } catch (error) {
      await refused(error);
      throw new NotHeld(error.message);
    }
  };
  return {
    renew: async (ttlMs) => {
      lock = await confirmed(lock.redlock.extend(lock, ttlMs, { retryCount: 0 }));
    },
    release: () => confirmed(lock.redlock.release(lock, { retryCount: 0 })),
  };
}

/** Throws an error that does not say that the nodes refused. */
async function refused(error) {
  if (!(error instanceof ExecutionError)) {
    throw error;
  }
  for (const attempt of error.attempts) {
    const { votesAgainst } = await attempt;
    for (const reason of votesAgainst.values()) {
      if (!(reason instanceof ResourceLockedError)) {
        throw reason;
      }
    }
  }
}

/** redis-semaphore tries again after 10 ms, and renews by itself: here every 100 ms. */
function redisSemaphore([connection]) {
  // The name as the others see it: this library puts "mutex:" before its own.
  return async (name, ttlMs, waitMs) => {
    let tellLost;
    const lost = new Promise((resolve) => (tellLost = resolve));
    const mutex = new Mutex(connection, name.replace(/^mutex:/, ""), {
      lockTimeout: ttlMs,
      refreshInterval: 100,
      acquireTimeout: waitMs || 10_000,
      acquireAttemptsLimit: waitMs || 1,
      onLockLost: tellLost,
    });
    if (!(await mutex.tryAcquire())) {
      return undefined;
    }
    return {
      // It can't be told to renew.
      renew: async () => {
        const error = await Promise.race([lost, setTimeout(1000)]);
        if (error) {
          throw new NotHeld(error.message);
        }
      },
      release: () => mutex.release(), // says nothing of a lock that is not its own any more
    };
  };
}
