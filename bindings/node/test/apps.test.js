import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { InvalidUse, Unavailable, Unsupported } from "../src/index.js";
import { kinds } from "./support/apps.js";
import { client } from "./support/clients.js";
import { startSentinel } from "./support/deployments.js";
import { runScript } from "./support/script.js";
import { proxied, refusing, startRedis, until } from "./support/servers.js";

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
      const program = `
        import { createRequire } from "node:module";
        import { connect } from PACKAGE;
        const library = createRequire(PACKAGE)(${JSON.stringify(kind.package)});
        const app = ${kind.package.startsWith("ioredis") ? "new (library.Redis ?? library)" : "library.createClient"}(
          ${kind.package.startsWith("ioredis") ? "process.argv[2], { lazyConnect: true }" : "{ url: process.argv[2] }"});
        const redlock = await connect({ nodes: [app] });
        await redlock.mutex("x").using(() => console.log("held"));`;
      const { code, stdout, stderr } = await runScript(t, program, { args: [server.url] });
      assert.deepEqual([code, stdout, stderr], [0, "held\n", ""]);
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
