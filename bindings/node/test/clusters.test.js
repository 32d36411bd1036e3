import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { Unavailable } from "../src/index.js";
import { kinds } from "./support/apps.js";
import { client } from "./support/clients.js";
import { startCluster } from "./support/deployments.js";
import { runScript } from "./support/script.js";
import { until } from "./support/servers.js";

// A cluster takes seconds to form, so all do it at once: one that comes to no harm, and one for each kind that loses a server.
const clusters = {};
const ends = [];
before(async () => {
  for (const name of ["whole", ...Object.keys(kinds)]) {
    clusters[name] = startCluster({ after: (end) => ends.push(end) });
  }
  await Promise.all(Object.values(clusters));
});
after(() => Promise.all(ends.map((end) => end())));

// No server has a second chance: an attempt that fails fails the test.
const lockOnce = async (redlock, name) => (await redlock.mutex(name).tryAcquire()).release();

for (const [name, kind] of Object.entries(kinds)) {
  describe(`${name}, an application's client of a cluster`, () => {
    /** A client of the application and one of ours, and the names of locks on the cluster's first and last server. */
    const start = async (t, cluster, settings) => {
      const own = await kind.cluster(cluster.ports);
      t.after(() => kind.end(own));
      const redlock = await client(t, [own], settings);
      const [there, gone] = [await cluster.nameAt(0), await cluster.nameAt(2)];
      await redlock.mutex(there).using(() => {});
      await redlock.mutex(gone).using(() => {});
      return { own, redlock, there, gone };
    };

    test("reaches all of it", async (t) => {
      const cluster = await clusters.whole;
      const { own, redlock } = await start(t, cluster);
      const fresh = await client(t, [own]);
      const names = Array.from({ length: 20 }, (_, i) => `at once ${i}`);
      const helds = await Promise.all(names.map((lock) => fresh.mutex(lock).tryAcquire()));
      await Promise.all(helds.map((held) => held.release()));
      // Names of all three masters, and one whose fence counter needs its hash tag.
      for (const lock of ["a", "b", "c", "d", "e", "f", "orders:{42}"]) {
        await redlock.mutex(lock).using(async (held) => {
          assert.ok(held.fence > 0n);
          assert.equal((await redlock.inspect(lock)).holders.length, 1);
          assert.equal(await redlock.mutex(lock).tryAcquire(), null);
        });
      }
      assert.deepEqual(await cluster.keys(), []);
    });

    test("of which a server is dead: the others are none the worse, and its place can be taken", async (t) => {
      const cluster = await clusters[name];
      const { own, redlock, there, gone } = await start(t, cluster);
      await cluster.servers[2].stop();
      for (let i = 0; i < 5; i++) {
        const fresh = await client(t, [own]);
        await lockOnce(fresh, there);
        await fresh.close();
      }
      let asking = true;
      const asked = (async () => {
        while (asking) {
          await assert.rejects(redlock.mutex(gone).tryAcquire(), Unavailable);
        }
      })();
      for (let i = 0; i < 50; i++) {
        await lockOnce(redlock, there);
      }
      asking = false;
      await asked;
      await cluster.give(gone, 0);
      await (await redlock.mutex(gone).acquire({ waitMs: 15_000 })).release();
    });

    test("of which a server hangs: the others are none the worse", async (t) => {
      const cluster = await clusters.whole;
      const { redlock, there, gone } = await start(t, cluster, { nodeTimeoutMs: 1000 });
      cluster.servers[2].pause();
      await assert.rejects(redlock.mutex(gone).tryAcquire(), Unavailable);
      for (let i = 0; i < 10; i++) {
        await lockOnce(redlock, there);
      }
      cluster.servers[2].resume();
      await (await redlock.mutex(gone).acquire({ waitMs: 15_000 })).release();
    });

    test("whose connections break: they are made again, and what was subscribed to is so again", async (t) => {
      const cluster = await clusters.whole;
      const { redlock, there, gone } = await start(t, cluster);
      const all = async (...command) => (await Promise.all(cluster.servers.map(({ admin }) => admin.call(...command)))).flat();
      const held = await redlock.mutex(there).acquire();
      const waiting = redlock.mutex(there).acquire({ waitMs: 30_000 });
      await until(async () => (await all("PUBSUB", "CHANNELS")).length > 0);
      await all("CLIENT", "KILL", "TYPE", "pubsub");
      await until(async () => (await all("PUBSUB", "CHANNELS")).length > 0);
      await all("CLIENT", "KILL", "TYPE", "normal");
      await redlock.mutex(gone).using(() => {});
      await held.release();
      await (await waiting).release();
    });

    test("does not keep the process alive through us", async (t) => {
      const { ports } = await clusters.whole;
      const program = `
        import { kinds } from ${JSON.stringify(new URL("support/apps.js", import.meta.url))};
        import { connect } from PACKAGE;
        const kind = kinds[${JSON.stringify(name)}];
        const app = await kind.cluster(process.argv.slice(2).map(Number));
        const redlock = await connect({ nodes: [app] });
        for (const name of ["a", "b", "c", "d", "e", "f"]) {
          await redlock.mutex(name).using(() => {});
        }
        await kind.end(app);
        console.log("ended");`;
      const { code, stdout, stderr, ms } = await runScript(t, program, { args: ports.map(String) });
      assert.deepEqual([code, stdout, stderr], [0, "ended\n", ""]);
      assert.ok(ms < 10_000, `it took ${ms} ms`); // what servers and clients do by themselves takes longer
    });
  });
}
