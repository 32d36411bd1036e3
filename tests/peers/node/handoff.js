/**
 * The hand-off benchmark's contestants in Node; see tests/bench/handoff.
 *
 *     node handoff.js CONTESTANT ADDRESS STATE LOG WORKERS
 */

import { openSync, readSync, writeSync } from "node:fs";
import { setTimeout } from "node:timers/promises";

import { Redis } from "ioredis";
import Redlock from "redlock";
import { Mutex } from "redis-semaphore";

import { connect } from "../../../bindings/node/src/index.js";

const NAME = "handoff";
const TTL_MS = 60_000;

// What the state says, 8 bytes each; see go/handoff.
const ORDER = 0;
const RELEASED = 8;
const ACQUIRED = 16;
const HOLD = 1n;
const RUN = 2n;

/** Each connects, and makes what one worker acquires by: a function that resolves to one that releases. */
const contestants = {
  libredlock: async (address) => {
    const client = await connect({ nodes: [`redis://${address}`] });
    await client.inspect(NAME);
    const mutex = client.mutex(NAME, { ttlMs: TTL_MS });
    return () => async () => {
      const held = await mutex.acquire();
      return () => held.release();
    };
  },
  "node-redlock": async (address) => {
    const redlock = new Redlock([await connected(address)], { retryCount: -1 });
    return () => async () => {
      const lock = await redlock.acquire([NAME], TTL_MS);
      return () => lock.release();
    };
  },
  "redis-semaphore": async (address) => {
    const client = await connected(address);
    return () => {
      const mutex = new Mutex(client, NAME, { lockTimeout: TTL_MS, acquireTimeout: Infinity });
      return async () => {
        await mutex.acquire();
        return () => mutex.release();
      };
    };
  },
};

async function connected(address) {
  const client = new Redis(`redis://${address}`);
  await client.ping();
  return client;
}

const [contestant, address, statePath, logPath, workers] = process.argv.slice(2);
const state = openSync(statePath, "r+");
const log = openSync(logPath, "a");
process.stdin.on("end", () => process.exit()).resume();
const worker = await contestants[contestant](address);
console.log("ready");
await order(HOLD);
await Promise.all(Array.from({ length: Number(workers) }, () => work(worker())));

/** Takes the lock again and again, and notes how long each hand-off to it took. */
async function work(acquire) {
  for (;;) {
    const release = await acquire();
    const now = process.hrtime.bigint();
    const before = read(RELEASED);
    if (before) {
      writeSync(log, `${now - before}\n`);
    }
    const turn = read(ACQUIRED) + 1n;
    write(ACQUIRED, turn);
    await order(RUN);
    await setTimeout(10 + 20 * Math.random());
    write(RELEASED, process.hrtime.bigint());
    await release();
    while (read(ACQUIRED) === turn) {
      await setTimeout(1);
    }
  }
}

async function order(wanted) {
  while (read(ORDER) < wanted) {
    await setTimeout(5);
  }
}

function read(what) {
  const bytes = Buffer.alloc(8);
  readSync(state, bytes, 0, 8, what);
  return bytes.readBigUInt64LE();
}

function write(what, number) {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(number);
  writeSync(state, bytes, 0, 8, what);
}
