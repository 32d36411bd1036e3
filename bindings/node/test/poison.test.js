import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { startRedis, until } from "./support/servers.js";

// The module's instances, caught when they are made: a test damages the memory of one, as a broken computer would.
const instances = [];
const { Instance } = WebAssembly;
let libredlock;

before(async () => {
  WebAssembly.Instance = class extends Instance {
    constructor(...args) {
      super(...args);
      instances.push(this);
    }
  };
  libredlock = await import("../src/index.js?poison");
});

after(() => {
  WebAssembly.Instance = Instance;
});

/** Overwrites the memory of the newest instance, where Go keeps its own data. */
function corrupt() {
  const { memory } = instances.at(-1).exports;
  new Uint8Array(memory.buffer).fill(0xff, 64 * 1024);
}

describe("an instance that fails", () => {
  test("fails what is under way, loses every hold, and is replaced", async (t) => {
    const server = await startRedis(t);
    const redlock = await libredlock.connect({ nodes: [server.url] });
    t.after(() => redlock.close());
    const held = await redlock.mutex("x", { ttlMs: 1000 }).acquire();
    const { signal } = held;
    let told = 0;
    signal.addEventListener("abort", () => told++);
    const waiting = redlock.mutex("x").acquire();
    const failed = assert.rejects(waiting, (error) => {
      assert.ok(error instanceof libredlock.InternalError);
      assert.equal(error.code, "INTERNAL");
      assert.match(error.message, /bug in libredlock/);
      return true;
    });
    await until(async () => (await server.keys()).includes("x"));
    const count = instances.length;
    corrupt();
    await failed; // the waiter's next attempt, or its timer, steps the instance
    assert.equal(instances.length, count + 1);
    assert.equal(told, 1);
    assert.equal(held.remainingMs, 0);
    assert.match(signal.reason.message, /bug in libredlock/);
    await assert.rejects(held.renew(), libredlock.LockLost);
    await assert.rejects(held.release(), libredlock.LockLost);
    await assert.rejects(held.release(), libredlock.NotHeld);

    const next = await redlock.mutex("x").acquire(); // when the key has expired
    assert.ok(next.fence > held.fence);
    await next.renew();
    await next.release();
    assert.deepEqual(await server.keys(), []);
  });

  test("while it closes does not keep it from closing", async (t) => {
    const server = await startRedis(t);
    const redlock = await libredlock.connect({ nodes: [server.url] });
    await redlock.mutex("x").using(() => {});
    corrupt();
    await redlock.close();
    await assert.rejects(redlock.mutex("x").acquire(), libredlock.Closed);
  });

  test("again and again is replaced again and again", async (t) => {
    const server = await startRedis(t);
    const redlock = await libredlock.connect({ nodes: [server.url] });
    t.after(() => redlock.close());
    for (let i = 0; i < 5; i++) {
      corrupt();
      await assert.rejects(redlock.mutex("x").acquire(), libredlock.InternalError);
      await redlock.mutex("x").using(() => {});
    }
  });
});
