import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { inspect } from "node:util";

import * as libredlock from "../src/index.js";
import { client } from "./support/clients.js";
import { startRedis } from "./support/servers.js";

const { AcquireTimeout, Closed, InvalidUse, LockLost, NotHeld, RedlockError, Status, Unsupported, WrongKind, connect } =
  libredlock;

const { asyncDispose } = Symbol;

describe("a lock", () => {
  test("is held by one at a time, and released", async (t) => {
    const server = await startRedis(t);
    const [a, b] = [await client(t, server), await client(t, server)];
    const held = await a.mutex("orders:42", { ttlMs: 20_000 }).acquire();
    assert.equal(held.name, "orders:42");
    assert.equal(await server.admin.get("orders:42"), held.token);
    assert.equal(typeof held.fence, "bigint");
    assert.ok(held.fence > 0n);
    assert.ok(held.remainingMs > 15_000 && held.remainingMs < 20_000, `${held.remainingMs}`);
    assert.equal(held.signal.aborted, false);
    assert.equal(await b.mutex("orders:42").tryAcquire(), null);
    await held.release();
    assert.equal(held.remainingMs, 0);
    assert.equal(held.signal.aborted, false);
    assert.deepEqual(await server.keys(), []);
    const next = await b.mutex("orders:42").tryAcquire();
    assert.ok(next.fence > held.fence);
    await next.release();
  });

  test("is polled as often as is wanted", async (t) => {
    const redlock = await client(t, await startRedis(t));
    const held = await redlock.mutex("x").acquire();
    const polling = { queue: false, retryDelayMs: 100, retryJitterMs: 1 };
    for (const maxTries of [1, 2, 3]) {
      const began = performance.now();
      await assert.rejects(redlock.mutex("x", { ...polling, maxTries }).acquire(), AcquireTimeout);
      assert.ok(performance.now() - began >= 100 * (maxTries - 1) - 1, `${maxTries}`);
    }
    const polled = redlock.mutex("x", polling).acquire();
    await held.release();
    await (await polled).release();
  });

  test("is waited for, up to a limit", async (t) => {
    const server = await startRedis(t);
    const redlock = await client(t, server);
    const held = await redlock.mutex("x").acquire();
    await assert.rejects(redlock.mutex("x").acquire({ waitMs: 50 }), (error) => {
      assert.ok(error instanceof AcquireTimeout && error instanceof RedlockError);
      assert.deepEqual([error.code, error.status, error.name, error.nodes], ["TIMEOUT", 2, "AcquireTimeout", []]);
      assert.match(error.stack, /client\.test\.js/, "the stack leads to the caller");
      return true;
    });
    await assert.rejects(redlock.mutex("x").acquire({ waitMs: 0 }), AcquireTimeout);
    const waiting = redlock.mutex("x").acquire({ waitMs: Infinity });
    await held.release();
    await (await waiting).release();
  });

  test("is renewed, to another ttl that stays", async (t) => {
    const server = await startRedis(t);
    const held = await (await client(t, server)).mutex("x", { ttlMs: 10_000 }).acquire();
    await held.renew(60_000);
    assert.ok(held.remainingMs > 55_000);
    await held.renew();
    assert.ok((await server.admin.pttl("x")) > 55_000);
    await held.release();
    await assert.rejects(held.renew(), NotHeld);
    await assert.rejects(held.release(), NotHeld);
  });

  test("has no token without fencing", async (t) => {
    const held = await (await client(t, await startRedis(t))).mutex("x", { fencing: false }).acquire();
    assert.equal(held.fence, 0n);
    await held.release();
  });

  test("that is lost says so, once", async (t) => {
    const server = await startRedis(t);
    const redlock = await client(t, server);
    const held = await redlock.mutex("x", { ttlMs: 100, autoRenew: false }).acquire();
    let told = 0;
    held.signal.addEventListener("abort", () => told++);
    await setTimeout(150);
    assert.equal(told, 1);
    assert.equal(held.signal.aborted, true);
    assert.ok(held.signal.reason instanceof LockLost);
    assert.throws(() => held.signal.throwIfAborted(), LockLost);
    assert.equal(held.remainingMs, 0);
    await assert.rejects(held.renew(), LockLost);
    await assert.rejects(held.release(), LockLost);
    await assert.rejects(held.release(), NotHeld);
    assert.equal(told, 1);
  });

  test("whose key another took is lost at its release", async (t) => {
    const server = await startRedis(t);
    const held = await (await client(t, server)).mutex("x").acquire();
    await server.admin.set("x", "another's");
    await assert.rejects(held.release(), LockLost);
    assert.equal(held.signal.aborted, true);
    assert.equal(await server.admin.get("x"), "another's");
  });
});

describe("using", () => {
  test("holds the lock for the body and gives what it returns", async (t) => {
    const server = await startRedis(t);
    const redlock = await client(t, server);
    const result = await redlock.mutex("x").using(async (held) => {
      assert.equal(await server.admin.get("x"), held.token);
      return [held.name, 7];
    });
    assert.deepEqual(result, ["x", 7]);
    assert.deepEqual(await server.keys(), []);
  });

  test("passes on what the body throws, and releases", async (t) => {
    const server = await startRedis(t);
    const redlock = await client(t, server);
    const failure = new Error("the work");
    const thrown = redlock.mutex("x").using(() => {
      throw failure;
    });
    await assert.rejects(thrown, (error) => error === failure);
    assert.deepEqual(await server.keys(), []);
  });

  test("rejects with LockLost when the body of a lost lock has ended", async (t) => {
    const server = await startRedis(t);
    const redlock = await client(t, server);
    let ended = false;
    const lost = redlock.mutex("x", { ttlMs: 100, autoRenew: false }).using(async (held) => {
      await new Promise((resolve) => held.signal.addEventListener("abort", resolve));
      await setTimeout(20);
      ended = true;
    });
    await assert.rejects(lost, LockLost);
    assert.ok(ended);
  });

  test("only warns of a release that could not be confirmed", async (t) => {
    const server = await startRedis(t);
    const redlock = await client(t, server, { nodeTimeoutMs: 100 });
    const warned = once(process, "warning");
    assert.equal(await redlock.mutex("x").using(() => server.stop().then(() => "done")), "done");
    const [warning] = await warned;
    assert.equal(warning.name, "RedlockWarning");
    assert.match(warning.message, /the release of lock "x" is not confirmed: [^]*node 0/);
    const failure = new Error("the work");
    await server.start();
    const thrown = redlock.mutex("y").using(async () => {
      await server.stop();
      throw failure;
    });
    await assert.rejects(thrown, (error) => error === failure);
  });

  test("warns of a loss when the body has thrown", async (t) => {
    const server = await startRedis(t);
    const redlock = await client(t, server);
    const warned = once(process, "warning");
    const failure = new Error("the work");
    const thrown = redlock.mutex("x").using(async () => {
      await server.admin.del("x");
      throw failure;
    });
    await assert.rejects(thrown, (error) => error === failure);
    assert.match((await warned)[0].message, /lock "x": its key was gone/);
  });

  test("lets the body release", async (t) => {
    const redlock = await client(t, await startRedis(t));
    await redlock.mutex("x").using((held) => held.release());
  });

  test("gives up as acquire does", async (t) => {
    const redlock = await client(t, await startRedis(t));
    await redlock.mutex("x").using(async () => {
      const inner = redlock.mutex("x").using(() => assert.fail("it is not reentrant"), { waitMs: 20 });
      await assert.rejects(inner, AcquireTimeout);
    });
  });
});

describe("disposing", () => {
  test("of a hold releases it, unless it was", async (t) => {
    const server = await startRedis(t);
    const held = await (await client(t, server)).mutex("x").acquire();
    await held[asyncDispose]();
    assert.deepEqual(await server.keys(), []);
    await held[asyncDispose]();
  });

  test("of a lost hold throws LockLost", async (t) => {
    const server = await startRedis(t);
    const held = await (await client(t, server)).mutex("x").acquire();
    await server.admin.del("x");
    await assert.rejects(held[asyncDispose](), LockLost);
  });

  test("of a client closes it", async (t) => {
    const redlock = await connect({ nodes: [(await startRedis(t)).url] });
    await redlock[asyncDispose]();
    await assert.rejects(redlock.inspect("x"), Closed);
  });
});

describe("inspect and forceRelease", () => {
  test("show and remove a holder", async (t) => {
    const server = await startRedis(t);
    const redlock = await client(t, server);
    assert.deepEqual(await redlock.inspect("x"), { kind: "mutex", held: false, holders: [], fence: 0n, queueLength: 0, queueAgeMs: 0 });
    const held = await redlock.mutex("x", { metadata: "job 7/ü" }).acquire();
    const { holders, fence, held: isHeld } = await redlock.inspect("x");
    assert.equal(isHeld, true);
    assert.equal(fence, held.fence);
    assert.equal(holders.length, 1);
    assert.match(holders[0].who, new RegExp(`/${process.pid}/node/job 7/ü$`));
    assert.ok(holders[0].ttlMs > 5000 && holders[0].ttlMs <= 10_000);
    await assert.rejects(redlock.forceRelease("x", "0".repeat(40)), NotHeld);
    await redlock.forceRelease("x", holders[0].digest);
    assert.deepEqual(await server.keys(), []);
    await assert.rejects(held.release(), LockLost);
  });

  test("work on a foreign value that is no UTF-8", async (t) => {
    const server = await startRedis(t);
    const redlock = await client(t, server);
    const value = Buffer.from([0xff, 0x00, 0x41, 0xc3, 0x28, 0xed, 0xa0, 0x80]);
    await server.admin.set("x", value);
    assert.equal(await redlock.mutex("x").tryAcquire(), null);
    const [holder] = (await redlock.inspect("x")).holders;
    assert.deepEqual([holder.who, holder.ttlMs], ["", null]);
    await redlock.forceRelease("x", holder.digest);
    assert.equal(await server.admin.exists("x"), 0);
  });

  test("find another kind of value", async (t) => {
    const server = await startRedis(t);
    const redlock = await client(t, server);
    await server.admin.hset("x", "a", "b");
    await assert.rejects(redlock.inspect("x"), WrongKind);
    await assert.rejects(redlock.mutex("x").acquire(), WrongKind);
  });
});

describe("closing", () => {
  test("ends waits, loses and releases holds, and happens once", async (t) => {
    const server = await startRedis(t);
    const [a, b] = [await client(t, server), await client(t, server)];
    const held = await a.mutex("x").acquire();
    const other = await b.mutex("y").acquire();
    const waiting = b.mutex("x").acquire();
    const seen = assert.rejects(waiting, Closed);
    await Promise.all([b.close(), b.close()]);
    await seen;
    assert.equal(other.remainingMs, 0);
    assert.ok(other.signal.reason instanceof Closed);
    await assert.rejects(other.renew(), Closed);
    await assert.rejects(other.release(), Closed);
    await assert.rejects(b.mutex("z").acquire(), Closed);
    await assert.rejects(b.inspect("z"), Closed);
    assert.deepEqual(await server.keys(), ["x"]);
    await held.release();
    await b.close();
  });
});

describe("arguments", () => {
  test("of a wrong type are TypeErrors", async (t) => {
    const redlock = await client(t, "redis://127.0.0.1:1");
    assert.throws(() => redlock.mutex(7), TypeError);
    assert.throws(() => redlock.mutex("x", { ttlMs: "7" }), TypeError);
    assert.throws(() => redlock.mutex("x", { ttlMs: null }), TypeError);
    assert.throws(() => redlock.mutex("x", { fencing: 1 }), TypeError);
    assert.throws(() => redlock.mutex("x", { ttl: 7 }), /no option "ttl"/);
    await assert.rejects(redlock.mutex("x").acquire(5), TypeError);
    await assert.rejects(redlock.mutex("x").acquire({ timeout: 5 }), /no option "timeout"/);
    await assert.rejects(redlock.mutex("x").acquire({ signal: "s" }), TypeError);
    await assert.rejects(redlock.mutex("x").using(), TypeError);
    await assert.rejects(redlock.inspect(), TypeError);
    await assert.rejects(redlock.forceRelease("x"), TypeError);
    await assert.rejects(connect(), TypeError);
    await assert.rejects(connect({ nodes: "redis://h" }), TypeError);
    await assert.rejects(connect({ nodes: [7] }), TypeError);
    await assert.rejects(connect({ nodes: [{}] }), TypeError);
    await assert.rejects(connect({ nodes: ["redis://h"], onHealth: 7 }), TypeError);
  });

  test("beyond what is allowed are InvalidUse", async (t) => {
    const redlock = await client(t, "redis://127.0.0.1:1");
    for (const ttlMs of [0, -1, 0.4, NaN, Infinity]) {
      assert.throws(() => redlock.mutex("x", { ttlMs }), InvalidUse, `${ttlMs}`);
    }
    assert.throws(() => redlock.mutex("a\ud800b"), InvalidUse);
    for (const ttlMs of [99, 24 * 3600 * 1000 + 1, 2 ** 42]) {
      await assert.rejects(redlock.mutex("x", { ttlMs }).acquire(), InvalidUse, `${ttlMs}`);
    }
    for (const name of ["", "a\0b", "é".repeat(513), "{a}:redlock:x"]) {
      await assert.rejects(redlock.mutex(name).acquire(), InvalidUse, name);
    }
    for (const maxTries of [0, -1, 1.5, NaN, Infinity]) {
      assert.throws(() => redlock.mutex("x", { maxTries }), InvalidUse, `${maxTries}`);
    }
    assert.throws(() => redlock.mutex("x", { maxTries: "1" }), TypeError);
    for (const options of [{ maxTries: 2 }, { queue: true, retryDelayMs: 5 }, { retryJitterMs: 5 }]) {
      await assert.rejects(redlock.mutex("x", options).acquire(), /set queue to off/, JSON.stringify(options));
    }
    for (const option of ["retryDelayMs", "retryJitterMs"]) {
      assert.throws(() => redlock.mutex("x", { queue: false, [option]: 0 }), InvalidUse, option);
      await assert.rejects(redlock.mutex("x", { queue: false, [option]: 3_600_001 }).acquire(), /1 h/, option);
    }
    for (const waitMs of [-1, NaN]) {
      await assert.rejects(redlock.mutex("x").acquire({ waitMs }), InvalidUse, `${waitMs}`);
    }
    await assert.rejects(connect({ nodes: [] }), InvalidUse);
    await assert.rejects(connect({ nodes: ["redis://h:1", "redis://h:1/2"] }), /nodes 0 and 1 are the same server \(h:1\)/);
    await assert.rejects(connect({ nodes: ["redis://h"], nodeTimeoutMs: 1 }), /10 ms/);
    await assert.rejects(connect({ nodes: ["redis://h"], prefix: "{a}:redlock:" }), InvalidUse);
  });

  test("that ask for what is not built are Unsupported", async () => {
    await assert.rejects(connect({ nodes: ["rediss://h"] }), Unsupported);
  });
});

test("nothing shows a password", async (t) => {
  const nodes = ["redis://me:hunter2@127.0.0.1:1", "unix://:hunter2@/tmp/nowhere.sock"];
  const redlock = await client(t, nodes, { nodeTimeoutMs: 100 });
  const shown = inspect(redlock, { depth: 99, showHidden: true, getters: true });
  assert.match(shown, /127\.0\.0\.1:1, \/tmp\/nowhere\.sock/);
  const error = await redlock.mutex("x").tryAcquire().catch((failure) => failure);
  const all = [shown, inspect(redlock.mutex("x"), { depth: 99 }), inspect(error, { depth: 99 }), JSON.stringify(redlock)];
  assert.doesNotMatch(all.join("\n"), /hunter2/);
  assert.match(all[2], /node 1 \(\/tmp\/nowhere\.sock\): no such file or directory/);
});

test("a hold shows its name, its token and its time", async (t) => {
  const held = await (await client(t, await startRedis(t))).mutex("x").acquire();
  assert.match(inspect(held), /^Held "x" \{ fence: \d+n, [\d.]+ ms left \}$/);
  await held.release();
  assert.match(inspect(held), /released/);
});

test("every status but OK and HELD has a class with its code", () => {
  const codes = Object.values(libredlock)
    .filter((value) => value.prototype instanceof RedlockError)
    .map((kind) => {
      const error = new kind("why", ["node 0 (h:1): because"]);
      assert.equal(error.name, kind.name);
      assert.equal(error.message, "why\nnode 0 (h:1): because");
      assert.equal(Status[error.code], error.status);
      return error.code;
    });
  assert.deepEqual(codes.sort(), Object.keys(Status).filter((code) => !["OK", "HELD"].includes(code)).sort());
});
