import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { inspect } from "node:util";

import { AcquireTimeout, InvalidUse, LockLost, NotHeld, WrongKind } from "../src/index.js";
import { client } from "./support/clients.js";
import { startRedis } from "./support/servers.js";

describe("a semaphore", () => {
  test("gives each holder a slot", async (t) => {
    const server = await startRedis(t);
    const redlock = await client(t, server);
    const semaphore = redlock.semaphore("gpu", { permits: 2, ttlMs: 20_000 });
    assert.equal(inspect(semaphore), 'Semaphore "gpu"');
    const [first, second] = [await semaphore.acquire(), await semaphore.tryAcquire()];
    assert.deepEqual([first.slot, second.slot], [0, 1]);
    assert.match(inspect(second), /^Held "gpu" \{ slot: 1, fence: \d+n, /);
    assert.ok(second.remainingMs > 15_000 && second.remainingMs < 20_000);
    assert.equal(await semaphore.tryAcquire(), null);
    await assert.rejects(semaphore.acquire({ waitMs: 100 }), AcquireTimeout);
    const waiting = semaphore.acquire();
    while ((await semaphore.inspect()).queueLength === 0);
    await first.release();
    const next = await waiting;
    assert.equal(next.slot, 0);
    assert.ok(next.fence > first.fence);
    await next.release();
    await second.renew();
    await second.release();
    assert.equal(await semaphore.using((held) => held.slot), 0);
    assert.deepEqual(await server.keys(), []);
  });

  test("shows every holder, and one can be removed", async (t) => {
    const redlock = await client(t, await startRedis(t));
    const semaphore = redlock.semaphore("gpu", { permits: 6, metadata: "job 7/ü" });
    const free = { kind: "semaphore", held: false, holders: [], fence: 0n, queueLength: 0, queueAgeMs: 0 };
    assert.deepEqual(await semaphore.inspect(), free);
    const held = [];
    for (let slot = 0; slot < 6; slot++) {
      held.push(await semaphore.acquire());
    }
    const { kind, holders, fence } = await semaphore.inspect();
    assert.equal(kind, "semaphore");
    assert.equal(fence, held[5].fence);
    assert.deepEqual(holders.map(({ slot }) => slot), [0, 1, 2, 3, 4, 5]);
    assert.ok(holders.every(({ who, nodes }) => who.endsWith("/node/job 7/ü") && nodes === 1));
    await semaphore.forceRelease(holders[4].digest);
    await assert.rejects(semaphore.forceRelease(holders[4].digest), NotHeld);
    await assert.rejects(held[4].renew(), LockLost);
    assert.equal((await semaphore.acquire()).slot, 4);
  });

  test("is no mutex", async (t) => {
    const redlock = await client(t, await startRedis(t));
    const [mutex, semaphore] = [redlock.mutex("x"), redlock.semaphore("x", { permits: 1 })];
    await mutex.using(async (held) => {
      assert.equal(held.slot, null);
      assert.equal((await mutex.inspect()).holders[0].slot, null);
      await assert.rejects(semaphore.acquire(), WrongKind);
      await assert.rejects(semaphore.inspect(), WrongKind);
      await mutex.forceRelease((await mutex.inspect()).holders[0].digest);
      await assert.rejects(held.renew(), LockLost);
      await assert.rejects(held.release(), LockLost);
    });
    await semaphore.using(async () => {
      await assert.rejects(mutex.acquire(), WrongKind);
      await assert.rejects(redlock.inspect("x"), WrongKind);
    });
  });

  test("refuses permits that make no sense", async (t) => {
    const redlock = await client(t, await startRedis(t));
    for (const permits of [0, -1, 1.5, NaN]) {
      assert.throws(() => redlock.semaphore("x", { permits }), InvalidUse);
    }
    for (const settings of [undefined, {}, { permits: "3" }, { permits: null }, { permits: 1, ttl: 5 }]) {
      assert.throws(() => redlock.semaphore("x", settings), TypeError);
    }
    assert.throws(() => redlock.mutex("x", { permits: 1 }), TypeError);
    await assert.rejects(redlock.semaphore("x", { permits: 10_001 }).acquire(), InvalidUse);
  });
});
