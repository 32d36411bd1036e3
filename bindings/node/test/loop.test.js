import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout } from "node:timers/promises";

import { LockLost } from "../src/index.js";
import { block, client } from "./support/clients.js";
import { startRedis } from "./support/servers.js";

describe("an event loop that was blocked past the deadline", () => {
  test("finds the lock lost before the next line", async (t) => {
    const redlock = await client(t, await startRedis(t));
    const lock = redlock.mutex("x", { ttlMs: 200 });
    const questions = {
      remainingMs: (held) => assert.equal(held.remainingMs, 0),
      aborted: (held) => assert.equal(held.signal.aborted, true),
      "aborted, of a signal taken earlier": (_, signal) => assert.equal(signal.aborted, true),
      reason: (_, signal) => assert.ok(signal.reason instanceof LockLost),
      throwIfAborted: (_, signal) => assert.throws(() => signal.throwIfAborted(), LockLost),
      "the signal that depends on it": (_, signal) => assert.equal(AbortSignal.any([signal]).aborted, true),
    };
    for (const [name, ask] of Object.entries(questions)) {
      const held = await lock.acquire();
      const { signal } = held;
      assert.equal(signal.aborted, false, name);
      let told = 0;
      signal.addEventListener("abort", () => told++);
      block(250);
      ask(held, signal);
      await setTimeout(20);
      assert.equal(told, 1, name);
      await assert.rejects(held.release(), LockLost);
    }
  });

  test("does not renew it", async (t) => {
    const held = await (await client(t, await startRedis(t))).mutex("x", { ttlMs: 200 }).acquire();
    block(250);
    await assert.rejects(held.renew(), LockLost);
  });

  test("does not take replies that have come for late ones", async (t) => {
    const server = await startRedis(t);
    const redlock = await client(t, server, { nodeTimeoutMs: 150 });
    await redlock.mutex("warm").using(() => {});
    server.pause();
    const acquiring = redlock.mutex("x", { ttlMs: 20_000 }).tryAcquire();
    await setTimeout(20); // it is written by now,
    server.resume(); // and answered while nothing runs here
    block(300);
    await (await acquiring).release();
  });
});

test("the signal is an AbortSignal to everybody who takes one", async (t) => {
  const held = await (await client(t, await startRedis(t))).mutex("x", { ttlMs: 150, autoRenew: false }).acquire();
  assert.ok(held.signal instanceof AbortSignal);
  assert.equal(held.signal, held.signal);
  await assert.rejects(setTimeout(10_000, undefined, { signal: held.signal }), { name: "AbortError" });
  await assert.rejects(fetch("http://127.0.0.1:9/", { signal: held.signal }), LockLost);
});
