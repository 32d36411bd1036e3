import assert from "node:assert/strict";
import { cpSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";

import { runScript } from "./support/script.js";
import { hanging, refusing, startRedis, until } from "./support/servers.js";

/** Runs a program that is expected to end well and without a word on stderr. */
async function quiet(t, source, options) {
  const output = await runScript(t, source, options);
  assert.deepEqual([output.code, output.signal, output.stderr], [0, null, ""]);
  return output.stdout;
}

const connected = `
  import { connect } from PACKAGE;
  const redlock = await connect({ nodes: process.argv.slice(2), nodeTimeoutMs: 500 });
`;

describe("a process ends by itself", () => {
  test("with a client that was never used", async (t) => {
    await quiet(t, connected, { args: ["redis://127.0.0.1:1"] });
  });

  test("with an idle client", async (t) => {
    const server = await startRedis(t);
    const out = await quiet(t, `${connected} await redlock.mutex("x").using(() => console.log("held"));`, {
      args: [server.url],
    });
    assert.equal(out, "held\n");
  });

  test("with idle clients of nodes that are down", async (t) => {
    const args = [await refusing(), await hanging(t), await refusing()];
    await quiet(t, `${connected} await redlock.mutex("x").tryAcquire().catch((e) => console.log(e.code));`, { args });
  });

  test("with an open client in a program that awaits nothing", async (t) => {
    const server = await startRedis(t);
    const out = await quiet(t, `${connected} redlock.mutex("x").using(() => console.log("held"));`, { args: [server.url] });
    assert.equal(out, "held\n", "an operation that is under way keeps it alive");
    assert.deepEqual(await server.keys(), []);
  });

  test("with a lock that is held, and releases it", async (t) => {
    const server = await startRedis(t);
    const out = await quiet(
      t,
      `${connected}
      const held = await redlock.mutex("x", { ttlMs: 60_000 }).acquire();
      held.signal.addEventListener("abort", () => console.log("told"));
      process.on("exit", () => console.log(held.remainingMs));`,
      { args: [server.url] },
    );
    assert.equal(out, "0\n");
    assert.deepEqual(await server.keys(), []);
  });

  test("with a lock whose node has gone", async (t) => {
    const server = await startRedis(t);
    const running = runScript(
      t,
      `${connected}
      await redlock.mutex("x", { ttlMs: 60_000 }).acquire();
      redlock.mutex("it knows that it has x").tryAcquire().catch(() => {});
      setTimeout(() => {}, 300);`,
      { args: [server.url] },
    );
    await until(async () => (await server.keys()).length === 2);
    await server.stop();
    assert.deepEqual((await running).code, 0);
  });

  test("when its client was closed", async (t) => {
    const server = await startRedis(t);
    await quiet(t, `${connected} await redlock.mutex("x").acquire(); await redlock.close();`, { args: [server.url] });
    assert.deepEqual(await server.keys(), []);
  });

  test("but not while it waits for a lock", async (t) => {
    const server = await startRedis(t);
    await server.admin.set("x", "another's", "PX", 400);
    const out = await quiet(t, `${connected} const held = await redlock.mutex("x").acquire(); console.log("held");`, {
      args: [server.url],
    });
    assert.equal(out, "held\n");
  });
});

describe("nothing is said on stderr, and nothing is unhandled", () => {
  test("by a program that does a bit of everything", async (t) => {
    const server = await startRedis(t);
    const program = `
      import { connect } from PACKAGE;
      const nodes = [process.argv[2]];
      const [a, b] = await Promise.all([connect({ nodes }), connect({ nodes })]);
      const held = await a.mutex("x").acquire();
      const never = AbortSignal.timeout(50);
      await Promise.allSettled([
        b.mutex("x").acquire({ waitMs: 60 }),
        ...Array.from({ length: 50 }, () => b.mutex("x").acquire({ signal: never })),
        b.mutex("x").tryAcquire(),
        a.mutex("", { ttlMs: 200 }).acquire(),
        a.inspect("x"),
        a.forceRelease("x", "0".repeat(40)),
      ]);
      const lost = await a.mutex("y", { ttlMs: 100, autoRenew: false }).acquire();
      const alive = setTimeout(() => {}, 60_000); // waiting for a loss alone would not keep the process
      await new Promise((resolve) => lost.signal.addEventListener("abort", resolve));
      clearTimeout(alive);
      await held.release();
      await a.close();
      await b.close();
      console.log("done");`;
    assert.equal(await quiet(t, program, { args: [server.url], flags: ["--unhandled-rejections=strict"] }), "done\n");
  });

  test("by a client whose node dies under it", async (t) => {
    const server = await startRedis(t);
    const program = `${connected}
      await redlock.mutex("warm").using(() => {});
      console.log("warm");
      let failures = 0;
      while (failures < 20) {
        const acquiring = redlock.mutex("x").acquire({ waitMs: 50 });
        await acquiring.then((held) => held.release()).catch(() => (failures += 1));
      }
      console.log("done");`;
    const running = quiet(t, program, { args: [server.url], flags: ["--unhandled-rejections=strict"] });
    await until(async () => Number((await server.admin.info("commandstats")).match(/cmdstat_evalsha:calls=(\d+)/)?.[1]) > 2);
    await server.stop();
    assert.equal(await running, "warm\ndone\n");
  });
});

test("a hold that is forgotten is released, with a warning", async (t) => {
  const server = await startRedis(t);
  const program = `${connected}
    await (async () => void (await redlock.mutex("x", { ttlMs: 60_000 }).acquire()))();
    const alive = setInterval(gc, 10);
    process.once("warning", (warning) => {
      console.log(warning.name, warning.message);
      clearInterval(alive);
    });`;
  const { stdout, code } = await runScript(t, program, { args: [server.url], flags: ["--expose-gc", "--no-warnings"] });
  assert.deepEqual([stdout, code], ['RedlockWarning lock "x" was not released\n', 0]);
  assert.deepEqual(await server.keys(), []);
});

test("a client that is forgotten is closed, but not while a lock or a hold of it is in use", async (t) => {
  const server = await startRedis(t);
  const program = `
    import { connect } from PACKAGE;
    import { setTimeout } from "node:timers/promises";
    const collect = async () => { for (let i = 0; i < 10; i++) { gc(); await setTimeout(5); } };
    let lock = (await connect({ nodes: [process.argv[2]] })).mutex("x");
    await collect();
    let held = await lock.acquire();
    lock = undefined;
    await collect();
    await held.renew(60_000);
    console.log(held.signal.aborted);
    await held.release();
    held = undefined;
    const connections = async () => (await import("node:fs")).readdirSync("/proc/self/fd").length;
    const before = await connections();
    await collect();
    console.log(before - await connections());`;
  const out = await quiet(t, program, { args: [server.url], flags: ["--expose-gc"] });
  assert.equal(out, "false\n1\n");
});

test("a client in each of several worker threads, and one in the main one", async (t) => {
  const server = await startRedis(t);
  const program = `
    import { Worker, isMainThread, threadId } from "node:worker_threads";
    import { fileURLToPath } from "node:url";
    import { connect } from PACKAGE;
    const shared = new Int32Array(new SharedArrayBuffer(4));
    let counter = shared;
    if (!isMainThread) {
      const { workerData } = await import("node:worker_threads");
      counter = workerData;
    }
    const redlock = await connect({ nodes: [process.argv[2]] });
    const work = async () => {
      for (let i = 0; i < 20; i++) {
        await redlock.mutex("x").using(async () => {
          const value = counter[0];
          await new Promise(setImmediate);
          counter[0] = value + 1;
        });
      }
    };
    if (isMainThread) {
      const file = fileURLToPath(import.meta.url);
      const workers = [1, 2, 3].map(() => new Worker(file, { workerData: shared, argv: [process.argv[2]] }));
      await Promise.all([work(), ...workers.map((worker) => new Promise((resolve, reject) => {
        worker.on("error", reject);
        worker.on("exit", resolve);
      }))]);
      console.log(shared[0]);
    } else {
      await work();
    }`;
  assert.equal(await quiet(t, program, { args: [server.url] }), "80\n");
});

test("two copies of the package in one process", async (t) => {
  const server = await startRedis(t);
  const copy = mkdtempSync(join(tmpdir(), "redlock-copy-"));
  t.after(() => rmSync(copy, { recursive: true }));
  const root = fileURLToPath(new URL("..", import.meta.url));
  for (const part of ["src", "package.json"]) {
    cpSync(join(root, part), join(copy, part), { recursive: true });
  }
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  const program = `
    const first = await import(PACKAGE);
    process.env.REDLOCK_WASM ??= ${JSON.stringify(join(root, "../../build/redlock.wasm"))};
    const second = await import(${JSON.stringify(join(copy, "src/index.js"))});
    const nodes = [process.argv[2]];
    const [a, b] = [await first.connect({ nodes }), await second.connect({ nodes })];
    const held = await a.mutex("x").acquire();
    console.log(first.connect === second.connect, await b.mutex("x").tryAcquire());
    await held.release();
    await b.mutex("x").using((other) => console.log(other.fence > held.fence));`;
  assert.equal(await quiet(t, program, { args: [server.url] }), "false null\ntrue\n");
});

test("the clock counts a suspend of the machine, and a wall clock that is set does not matter", async (t) => {
  const server = await startRedis(t);
  // What Node sees of a suspend: its own clock stood still, the uptime and the wall clock did not.
  const program = `
    import os from "node:os";
    import { syncBuiltinESMExports } from "node:module";
    const uptime = os.uptime, wall = Date.now;
    let asleepMs = 0, setMs = 0;
    os.uptime = () => uptime() + asleepMs / 1000;
    Date.now = () => wall() + asleepMs + setMs;
    syncBuiltinESMExports();
    const { connect } = await import(PACKAGE);
    const redlock = await connect({ nodes: [process.argv[2]] });
    const held = await redlock.mutex("x", { ttlMs: 60_000 }).acquire();
    const show = () => console.log(Math.round(held.remainingMs / 10_000), held.signal.aborted);
    setMs = 3_600_000;
    show();
    setMs = -3_600_000;
    show();
    asleepMs = 20_000;
    show();
    await new Promise((resolve) => setTimeout(resolve, 1100));
    show();
    setMs = 0;
    asleepMs = 70_000;
    show();
    console.log(await held.release().catch((error) => error.code));`;
  const lines = (await quiet(t, program, { args: [server.url] })).split("\n");
  // The third may not have been noticed, since the wall clock says nothing of it; a second later it was.
  assert.deepEqual([lines[0], lines[1], lines[3], lines[4], lines[5]], ["6 false", "6 false", "4 false", "0 true", "LOST"]);
});

test("a module that is missing or something else is said plainly", async (t) => {
  const program = `
    for (const file of ["/nowhere/redlock.wasm", process.execPath]) {
      process.env.REDLOCK_WASM = file;
      const { connect } = await import(PACKAGE);
      await connect({ nodes: ["redis://h"] }).catch((error) => console.log(error.message.slice(0, 60)));
    }`;
  const lines = (await quiet(t, program)).split("\n");
  assert.match(lines[0], /there is no \/nowhere\/redlock\.wasm, which REDLOCK_WASM names/);
  assert.match(lines[1], /^WebAssembly/);
});
