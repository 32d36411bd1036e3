import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { describe, test } from "node:test";

import { InvalidUse, Unavailable, Unsupported } from "../src/index.js";
import { client } from "./support/clients.js";
import { startCluster, startSentinel } from "./support/deployments.js";
import { runScript } from "./support/script.js";
import { proxied, refusing, startRedis, until } from "./support/servers.js";

const require = createRequire(import.meta.url);

/** The clients that an application may bring, by version: from a URL, for a cluster and by sentinels. */
const kinds = {
  "ioredis 5": ioredis("ioredis-5"),
  "ioredis 6": ioredis("ioredis"),
  "node-redis 4": nodeRedis("redis-4"),
  "node-redis 5": nodeRedis("redis-5"),
  "node-redis 6": nodeRedis("redis-6"),
};

function ioredis(name) {
  const { Redis, Cluster, default: older } = require(name);
  const Client = Redis ?? older;
  const begun = (app) => app.on("error", () => {}) && app;
  return {
    version: require(`${name}/package.json`).version,
    create: (url, { prefix = "", lazy = false } = {}) => begun(new Client(url, { keyPrefix: prefix, lazyConnect: lazy })),
    cluster: (ports) => begun(new (Cluster ?? Client.Cluster)(ports.map((port) => ({ host: "127.0.0.1", port })))),
    sentinel: (port, group) => begun(new Client({ sentinels: [{ host: "127.0.0.1", port }], name: group })),
    end: (app) => app.disconnect(),
  };
}

function nodeRedis(name) {
  const { createClient, createCluster, createSentinel } = require(name);
  const begun = async (app, lazy) => {
    app.on("error", () => {});
    await (lazy ? undefined : app.connect());
    return app;
  };
  return {
    version: require(`${name}/package.json`).version,
    create: (url, { lazy } = {}) => begun(createClient({ url }), lazy),
    cluster: (ports) => begun(createCluster({ rootNodes: ports.map((port) => ({ url: `redis://127.0.0.1:${port}` })) })),
    sentinel:
      createSentinel &&
      ((port, group) => begun(createSentinel({ name: group, sentinelRootNodes: [{ host: "127.0.0.1", port }] }))),
    end: async (app) => {
      if (app.isOpen !== false) {
        await (app.destroy ? app.destroy() : app.disconnect());
      }
    },
  };
}

for (const [name, kind] of Object.entries(kinds)) {
  describe(`${name}, a client of the application`, () => {
    const app = async (t, ...args) => {
      const made = await kind.create(...args);
      t.after(() => kind.end(made));
      return made;
    };

    test("is the version that it is called", () => {
      assert.equal(kind.version.split(".")[0], name.split(" ")[1]);
    });

    test("lends its address, password and database, and is left alone", async (t) => {
      const server = await startRedis(t, "--requirepass", "hunter2");
      const own = await app(t, `redis://:hunter2@127.0.0.1:${server.port}/3`);
      const redlock = await client(t, [own]);
      await redlock.mutex("x").using(async () => {
        assert.equal(await own.exists("x"), 1, "it is in the same database");
        await assert.rejects(redlock.mutex("x").acquire({ waitMs: 50 }), { code: "TIMEOUT" });
      });
      await redlock.close();
      assert.equal(await own.exists("x"), 0);
      assert.equal(await own.ping(), "PONG");
    });

    test("need not be connected", async (t) => {
      const server = await startRedis(t);
      const redlock = await client(t, [await app(t, server.url, { lazy: true })]);
      await redlock.mutex("x").using(async () => assert.deepEqual(await server.keys(), ["x"]));
    });

    test("whose server goes away and comes back", async (t) => {
      const server = await startRedis(t);
      const redlock = await client(t, [await app(t, server.url)]);
      await redlock.mutex("x").using(() => {});
      await server.stop();
      await assert.rejects(redlock.mutex("x").tryAcquire(), (error) => {
        assert.match(error.nodes[0], /connection refused|the server closed the connection/);
        return error instanceof Unavailable;
      });
      await server.start();
      await (await redlock.mutex("x").acquire({ waitMs: 15_000 })).release();
    });

    test("whose server refuses", async (t) => {
      const redlock = await client(t, [await app(t, await refusing(), { lazy: true })]);
      const error = await redlock.mutex("x").tryAcquire().catch((failure) => failure);
      assert.match(error.nodes.join(), /^node 0 \(127\.0\.0\.1:\d+\): connection refused$/);
    });

    test("with a wrong password", async (t) => {
      const server = await startRedis(t, "--requirepass", "hunter2");
      const redlock = await client(t, [await app(t, `redis://:s3cret@127.0.0.1:${server.port}`, { lazy: true })]);
      const error = await redlock.mutex("x").tryAcquire().catch((failure) => failure);
      assert.match(error.nodes.join(), /WRONGPASS/);
      assert.doesNotMatch(error.stack, /s3cret/);
    });

    test("whose connection breaks in the middle: no command is sent twice", async (t) => {
      const server = await startRedis(t);
      const acquires = [];
      let cut = false;
      const url = await proxied(t, server, (direction, data, socket, forward) => {
        if (direction === "request" && data.includes("rl1:") && data.includes("600000")) {
          acquires.push(/rl1:[\w-]+/.exec(data.toString("latin1"))[0]);
        }
        if (direction === "reply" && cut && acquires.length > 0) {
          cut = false;
          socket.destroy();
          return;
        }
        forward(data);
      });
      const redlock = await client(t, [await app(t, url)]);
      await redlock.mutex("warm").using(() => {});
      acquires.length = 0;
      cut = true;
      await assert.rejects(redlock.mutex("x").tryAcquire(), Unavailable);
      await until(async () => (await server.keys()).length === 0);
      assert.equal(acquires.length, 1);
    });

    test("values that are no UTF-8 survive", async (t) => {
      const server = await startRedis(t);
      const redlock = await client(t, [await app(t, server.url)]);
      await server.admin.set("x", Buffer.from([0xff, 0xfe, 0x41]));
      const { holders } = await redlock.inspect("x");
      await redlock.forceRelease("x", holders[0].digest);
      assert.equal(await server.admin.exists("x"), 0);
    });

    test("does not keep the process alive through us", async (t) => {
      const server = await startRedis(t);
      const version = name.startsWith("ioredis") ? { ioredis: true } : {};
      const from = { "ioredis 5": "ioredis-5", "ioredis 6": "ioredis" }[name] ?? `redis-${name.at(-1)}`;
      const program = `
        import { createRequire } from "node:module";
        import { connect } from PACKAGE;
        const library = createRequire(PACKAGE)(${JSON.stringify(from)});
        const app = ${version.ioredis ? "new (library.Redis ?? library)" : "library.createClient"}(
          ${version.ioredis ? "process.argv[2], { lazyConnect: true }" : "{ url: process.argv[2] }"});
        const redlock = await connect({ nodes: [app] });
        await redlock.mutex("x").using(() => console.log("held"));`;
      const { code, stdout, stderr } = await runScript(t, program, { args: [server.url] });
      assert.deepEqual([code, stdout, stderr], [0, "held\n", ""]);
    });

    test("of a cluster", async (t) => {
      const cluster = await startCluster(t);
      const own = await kind.cluster(cluster.ports);
      t.after(() => kind.end(own));
      const redlock = await client(t, [own]);
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

    test("of a cluster of which a node is killed", async (t) => {
      const cluster = await startCluster(t);
      const own = await kind.cluster(cluster.ports);
      t.after(() => kind.end(own));
      const redlock = await client(t, [own], { nodeTimeoutMs: 500 });
      const [there, gone] = [await cluster.nameAt(0), await cluster.nameAt(2)];
      await redlock.mutex(there).using(() => {});
      await redlock.mutex(gone).using(() => {});
      await cluster.servers[2].stop();
      await assert.rejects(redlock.mutex(gone).tryAcquire(), Unavailable);
      await (await redlock.mutex(there).acquire({ waitMs: 10_000 })).release();
    });

    if (!kind.sentinel) {
      return; // this version has none
    }
    test("by sentinels", async (t) => {
      const { master, port, group } = await startSentinel(t);
      const own = await kind.sentinel(port, group);
      t.after(() => kind.end(own));
      if (name === "node-redis 5") {
        await assert.rejects(client(t, [own]), Unsupported);
        return;
      }
      const redlock = await client(t, [own]);
      await redlock.mutex("x").using(async (held) => {
        assert.equal(await master.admin.get("x"), held.token);
      });
      assert.deepEqual(await master.keys(), []);
    });
  });
}

test("clients and URLs make one quorum", async (t) => {
  const servers = await Promise.all([startRedis(t), startRedis(t), startRedis(t)]);
  const [first, second] = [kinds["ioredis 6"], kinds["node-redis 6"]];
  const apps = [await first.create(servers[0].url), await second.create(servers[1].url)];
  t.after(() => Promise.all([first.end(apps[0]), second.end(apps[1])]));
  const redlock = await client(t, [...apps, servers[2]]);
  await redlock.mutex("x").using(async () => {
    assert.equal((await redlock.inspect("x")).holders[0].nodes, 3);
  });
});

test("the key prefix of a client comes before the client's own", async (t) => {
  const server = await startRedis(t);
  const { create, end } = kinds["ioredis 5"];
  const [app, other] = [create(server.url, { prefix: "app:" }), create(server.url, { prefix: "b:" })];
  t.after(() => [app, other].forEach(end));
  const redlock = await client(t, [app], { prefix: "locks:" });
  await redlock.mutex("x").using(async (held) => {
    assert.deepEqual(await server.keys(), ["app:locks:x"]);
    assert.equal(await server.admin.get("{app:locks:x}:redlock:mutex:fence:app:locks:x"), `${held.fence}`);
  });
  await assert.rejects(client(t, [app, other]), InvalidUse);
});

test("the same server by a client and by a URL is refused", async (t) => {
  const server = await startRedis(t);
  const { create, end } = kinds["ioredis 6"];
  const app = create(server.url);
  t.after(() => end(app));
  await assert.rejects(client(t, [app, server]), /same server/);
});
