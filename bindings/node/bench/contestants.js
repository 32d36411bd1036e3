/** Who competes. Each gives, for the name of a lock, a function that acquires and releases it. */

import { createClient } from "redis-6";
import { Redis } from "ioredis";
import Redlock from "redlock";
import { Mutex } from "redis-semaphore";

import { connect } from "../src/index.js";

const TTL_MS = 10_000;
const FENCE_TTL_MS = 600_000;

/** All of them, by name. */
export async function contestants({ port, url }) {
  const ioredis = new Redis(port, "127.0.0.1");
  const nodeRedis = createClient({ socket: { host: "127.0.0.1", port }, RESP: 2, commandOptions: { timeout: undefined } });
  await nodeRedis.connect();
  const scripts = await theScripts(url, ioredis);
  const clients = {
    "libredlock, URL": await connect({ nodes: [url] }),
    "libredlock, the app's ioredis": await connect({ nodes: [ioredis] }),
    "libredlock, the app's node-redis": await connect({ nodes: [nodeRedis] }),
  };
  const field = {};
  for (const [name, client] of Object.entries(clients)) {
    field[name] = (lock) => ours(client.mutex(lock, { ttlMs: TTL_MS }));
  }
  field["ioredis, the same scripts"] = (lock) => bare(scripts, lock, (args) => ioredis.call(...args));
  field["node-redis, the same scripts"] = (lock) => bare(scripts, lock, (args) => nodeRedis.sendCommand(args));
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
function bare({ acquire, release }, lock, send) {
  const token = "rl0:AAAAAAAAAAAAAAAAAAAAAA:benchmark/12345/node";
  const fence = `{${lock}}:redlock:mutex:fence:${lock}`;
  const take = ["EVALSHA", acquire, "2", lock, fence, token, `${TTL_MS}`, `${FENCE_TTL_MS}`, ""];
  const give = ["EVALSHA", release, "1", lock, token];
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

/** The digests of the scripts, learnt by looking at what libredlock sends. */
async function theScripts(url, ioredis) {
  const monitor = await ioredis.monitor();
  const digests = [];
  const seen = new Promise((resolve) => {
    monitor.on("monitor", (_time, [command, digest]) => {
      if (/^evalsha$/i.test(command) && digests.push(digest) === 4) {
        resolve();
      }
    });
  });
  const client = await connect({ nodes: [url] });
  const pair = ours(client.mutex("bench:scripts"));
  await pair(); // the server may not have the scripts yet: each is asked for in vain, and sent
  await pair();
  await seen.finally(() => monitor.disconnect());
  await client.close();
  const [acquire, release] = [...new Set(digests)];
  return { acquire, release };
}
