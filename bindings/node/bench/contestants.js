/** Who competes. Each gives, for the name of a lock, a function that acquires and releases it. */

import { createClient } from "redis-6";
import { Redis } from "ioredis";
import Redlock from "redlock";
import { Mutex } from "redis-semaphore";

import { connect } from "../src/index.js";

const TTL_MS = 10_000;
const SAMPLE = "bench:sample"; // the name that stands in the commands

/** All of them, by name. */
export async function contestants({ port, url }) {
  const ioredis = new Redis(port, "127.0.0.1");
  const nodeRedis = createClient({ socket: { host: "127.0.0.1", port }, RESP: 2, commandOptions: { timeout: undefined } });
  nodeRedis.on("error", () => {}); // the server is stopped before it
  await nodeRedis.connect();
  const commands = await theCommands(url, ioredis);
  const clients = {
    "libredlock, URL": await connect({ nodes: [url] }),
    "libredlock, the app's ioredis": await connect({ nodes: [ioredis] }),
    "libredlock, the app's node-redis": await connect({ nodes: [nodeRedis] }),
  };
  const field = {};
  for (const [name, client] of Object.entries(clients)) {
    field[name] = (lock) => ours(client.mutex(lock, { ttlMs: TTL_MS }));
  }
  field["ioredis, the same commands"] = (lock) => bare(commands, lock, (args) => ioredis.call(...args));
  field["node-redis, the same commands"] = (lock) => bare(commands, lock, (args) => nodeRedis.sendCommand(args));
  field["redlock (node-redlock)"] = (lock) => theirs(new Redlock([ioredis], { retryCount: 0 }), lock);
  field["redis-semaphore"] = (lock) => semaphore(ioredis, lock);
  return field;
}

function ours(mutex) {
  return async () => {
    const held = await mutex.acquire();
    await held.release();
  };
}

/** The very commands that libredlock sends, with nothing around them. */
function bare(commands, lock, send) {
  const [take, give] = commands.map((args) => args.map((arg) => arg.replaceAll(SAMPLE, lock)));
  return async () => {
    check((await send(take))[0] === 1);
    check((await send(give))[0] === 1);
  };
}

function theirs(redlock, name) {
  return async () => {
    const lock = await redlock.acquire([name], TTL_MS);
    await lock.release();
  };
}

function semaphore(ioredis, name) {
  return async () => {
    const mutex = new Mutex(ioredis, name, { lockTimeout: TTL_MS, refreshInterval: 0 });
    await mutex.acquire();
    await mutex.release();
  };
}

function check(granted) {
  if (!granted) {
    throw new Error("a lock was not granted, or not there at its release");
  }
}

/** A pair of commands as libredlock sends them, learnt by looking: the acquire and the release of SAMPLE. */
async function theCommands(url, ioredis) {
  const monitor = await ioredis.monitor();
  const sent = [];
  const seen = new Promise((resolve) => {
    monitor.on("monitor", (_time, args, source) => {
      if (/^evalsha$/i.test(args[0]) && source !== "lua" && sent.push(args) === 4) {
        resolve();
      }
    });
  });
  const client = await connect({ nodes: [url] });
  const pair = ours(client.mutex(SAMPLE, { ttlMs: TTL_MS }));
  await pair(); // the server may not have the scripts yet: each is asked for in vain, and sent
  await pair();
  await seen.finally(() => monitor.disconnect());
  await client.close();
  return sent.slice(2);
}
