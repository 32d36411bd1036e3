import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout } from "node:timers/promises";

import { Canceled } from "../src/index.js";
import { client } from "./support/clients.js";
import { startRedis, until } from "./support/servers.js";

describe("an AbortSignal", () => {
  test("ends a wait, with its reason as cause", async (t) => {
    const redlock = await client(t, await startRedis(t));
    const held = await redlock.mutex("x").acquire();
    const controller = new AbortController();
    const waiting = redlock.mutex("x").acquire({ signal: controller.signal });
    const reason = new Error("the user left");
    controller.abort(reason);
    await assert.rejects(waiting, (error) => {
      assert.ok(error instanceof Canceled);
      assert.equal(error.cause, reason);
      assert.match(error.stack, /abort\.test\.js/);
      return true;
    });
    await held.release();
  });

  test("that is aborted already asks nothing", async (t) => {
    const redlock = await client(t, "redis://127.0.0.1:1");
    const signal = AbortSignal.abort("no");
    await assert.rejects(redlock.mutex("x").acquire({ signal }), { code: "CANCELED", cause: "no" });
    await assert.rejects(redlock.mutex("x").tryAcquire({ signal }), Canceled);
    await assert.rejects(redlock.mutex("x").using(() => assert.fail("not held"), { signal }), Canceled);
  });

  test("at any moment leaves no key", async (t) => {
    const server = await startRedis(t);
    const redlock = await client(t, server);
    const outcomes = { held: 0, canceled: 0 };
    for (let delay = 0; delay < 3; delay += 0.02) {
      const controller = new AbortController();
      const acquiring = redlock.mutex("x").acquire({ signal: controller.signal });
      const until = performance.now() + delay;
      const tick = () => (performance.now() < until ? setImmediate(tick) : controller.abort());
      if (delay === 0) {
        controller.abort();
      } else {
        tick();
      }
      try {
        const held = await acquiring;
        outcomes.held += 1;
        await held.release();
      } catch (error) {
        assert.ok(error instanceof Canceled, error.stack);
        outcomes.canceled += 1;
      }
    }
    await until(async () => (await server.keys()).length === 0);
    assert.ok(outcomes.canceled > 5, JSON.stringify(outcomes));
    assert.ok(outcomes.held > 5, JSON.stringify(outcomes));
  });

  test("is let go of when an operation has ended", async (t) => {
    const redlock = await client(t, await startRedis(t));
    const controller = new AbortController();
    for (let i = 0; i < 20; i++) {
      const held = await redlock.mutex("x").acquire({ signal: controller.signal });
      await held.renew(5000, { signal: controller.signal });
      await held.release();
    }
    controller.abort();
    await setTimeout(0);
    await assert.rejects(redlock.mutex("x").acquire({ signal: controller.signal }), Canceled);
    const held = await redlock.mutex("x").acquire();
    await assert.rejects(held.renew(5000, { signal: controller.signal }), Canceled);
    await held.release();
  });

  test("may be shared by many operations", async (t) => {
    const redlock = await client(t, await startRedis(t));
    const warnings = [];
    const listener = (warning) => warnings.push(warning);
    process.on("warning", listener);
    t.after(() => process.off("warning", listener));
    const held = await redlock.mutex("x").acquire();
    const controller = new AbortController();
    const waits = Array.from({ length: 200 }, () => redlock.mutex("x").acquire({ signal: controller.signal }));
    const ends = Promise.allSettled(waits);
    await setTimeout(20);
    controller.abort();
    assert.equal((await ends).filter(({ reason }) => reason instanceof Canceled).length, 200);
    await held.release();
    await setTimeout(0);
    assert.deepEqual(warnings, []);
  });
});
