import assert from "node:assert/strict";
import { test } from "node:test";

import { runScript } from "./support/script.js";
import { startRedis } from "./support/servers.js";

// The syntax is newer than the oldest Node that the package is for.
const newer = process.env.REDLOCK_NODE_NEWER ?? (parses("await using x = null") ? process.execPath : undefined);
const missing = "REDLOCK_NODE_NEWER names no Node that has `await using`";

function parses(statement) {
  try {
    new Function(`return async () => { ${statement}; }`);
    return true;
  } catch {
    return false;
  }
}

test("await using", { skip: !newer && process.env.REDLOCK_STRICT !== "1" && missing }, async (t) => {
  assert.ok(newer, missing);
  const server = await startRedis(t);
  const program = `
    import { connect, LockLost } from PACKAGE;
    {
      await using redlock = await connect({ nodes: [process.argv[2]] });
      {
        await using held = await redlock.mutex("x").acquire();
        console.log(held.name, await redlock.mutex("x").tryAcquire());
      }
      await using again = await redlock.mutex("x").tryAcquire();
      console.log(again !== null);
      try {
        await using held = await redlock.mutex("y").acquire();
        await redlock.forceRelease("y", (await redlock.inspect("y")).holders[0].digest);
      } catch (error) {
        console.log(error instanceof LockLost);
      }
      try {
        await using held = await redlock.mutex("y").acquire();
        await redlock.forceRelease("y", (await redlock.inspect("y")).holders[0].digest);
        throw new Error("the body");
      } catch (error) {
        console.log(error.name, error.error instanceof LockLost, error.suppressed.message);
      }
      var client = redlock;
    }
    console.log(await client.inspect("x").catch((error) => error.code));`;
  const { stdout, stderr, code } = await runScript(t, program, { args: [server.url], node: newer });
  assert.deepEqual(
    [stdout, stderr, code],
    ["x null\ntrue\ntrue\nSuppressedError true the body\nCLOSED\n", "", 0],
  );
  assert.deepEqual(await server.keys(), []);
});
