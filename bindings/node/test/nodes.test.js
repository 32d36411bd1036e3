import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout } from "node:timers/promises";

import { Unavailable } from "../src/index.js";
import { client } from "./support/clients.js";
import { fake, garbage, hanging, proxied, refusing, startRedis, until } from "./support/servers.js";

/** What an acquire on nodes that fail says of each. */
async function causes(t, nodes, settings) {
  const redlock = await client(t, nodes, settings);
  const error = await redlock.mutex("x").tryAcquire().then(() => assert.fail("granted"), (failure) => failure);
  assert.ok(error instanceof Unavailable, error.stack);
  assert.deepEqual(error.message.split("\n").slice(1), [...error.nodes]);
  return error.nodes;
}

describe("a node", () => {
  test("that refuses is told so", async (t) => {
    const url = await refusing();
    assert.deepEqual(await causes(t, url), [`node 0 (${url.slice(8)}): connection refused`]);
  });

  test("that hangs takes its timeout", async (t) => {
    const began = performance.now();
    const [cause] = await causes(t, await hanging(t), { nodeTimeoutMs: 100 });
    assert.match(cause, /: timeout after 100 ms/);
    assert.ok(performance.now() - began < 1000);
  });

  test("that talks garbage is not waited for", async (t) => {
    const began = performance.now();
    const [cause] = await causes(t, await garbage(t));
    assert.match(cause, /RESP type|Protocol error/);
    assert.ok(performance.now() - began < 1000);
  });

  test("that closes the connection", async (t) => {
    const [cause] = await causes(t, await fake(t, (socket) => socket.end()));
    assert.match(cause, /the server closed the connection$/);
  });

  test("that resets the connection", async (t) => {
    const [cause] = await causes(t, await fake(t, (socket) => socket.resetAndDestroy()));
    assert.match(cause, /connection reset by peer$/);
  });

  test("whose host does not exist", async (t) => {
    const [cause] = await causes(t, "redis://no-such-host.invalid:6379");
    assert.match(cause, /node 0 \(no-such-host\.invalid:6379\): lookup no-such-host\.invalid: /);
  });

  test("whose socket does not exist", async (t) => {
    assert.deepEqual(await causes(t, "unix:///nowhere/x.sock"), [
      "node 0 (/nowhere/x.sock): no such file or directory",
    ]);
  });

  test("with a password that is wrong, missing or not wanted", async (t) => {
    const server = await startRedis(t, "--requirepass", "hunter2");
    const open = await startRedis(t);
    const url = (user) => `redis://${user}127.0.0.1:${server.port}`;
    const cases = [
      [url(":s3cret@"), /WRONGPASS/],
      [url("nobody:s3cret@"), /WRONGPASS/],
      [url(""), /NOAUTH/],
      [open.url.replace("//", "//:s3cret@"), /without any password configured/],
    ];
    for (const [node, cause] of cases) {
      const [said] = await causes(t, node);
      assert.match(said, cause);
      assert.doesNotMatch(said, /s3cret|hunter2/);
    }
    const redlock = await client(t, url("default:hunter2@"));
    await redlock.mutex("x").using(async () => assert.deepEqual(await server.keys(), ["x"]));
  });

  test("with a database, or without it", async (t) => {
    const server = await startRedis(t);
    const redlock = await client(t, `${server.url}/3`);
    await redlock.mutex("x").using(async () => {
      assert.deepEqual(await server.keys(), []);
      await (await client(t, `unix://${server.socket}?db=2`)).mutex("x").using(() => {});
    });
    const [cause] = await causes(t, `${server.url}/99`);
    assert.match(cause, /DB index is out of range/);
  });

  test("that has no room for another client", async (t) => {
    const server = await startRedis(t, "--maxclients", "1");
    await server.admin.ping();
    const [cause] = await causes(t, server);
    assert.match(cause, /max number of clients reached|closed the connection|broken pipe|reset by peer/);
  });

  test("at a unix socket", async (t) => {
    const server = await startRedis(t);
    await (await client(t, `unix://${server.socket}`)).mutex("x").using(async () => {
      assert.deepEqual(await server.keys(), ["x"]);
    });
  });
});

describe("several nodes", () => {
  for (const [name, other] of Object.entries({ refuse: refusing, hang: hanging, "talk garbage": garbage })) {
    test(`of which a minority ${name}: the others decide, without waiting`, async (t) => {
      const servers = await Promise.all([startRedis(t), startRedis(t), startRedis(t)]);
      const redlock = await client(t, [await other(t), servers[0], servers[1], await other(t), servers[2]]);
      const began = performance.now();
      const held = await redlock.mutex("x").acquire();
      await held.renew(20_000);
      await held.release();
      assert.ok(performance.now() - began < 1500, "2 s are the node timeout");
      for (const server of servers) {
        await until(async () => (await server.keys()).length === 0);
      }
    });

    test(`of which a majority ${name}: unavailable, and nothing is left`, async (t) => {
      const servers = await Promise.all([startRedis(t), startRedis(t)]);
      const down = await Promise.all([other(t), other(t), other(t)]);
      const nodes = await causes(t, [down[0], servers[0], down[1], servers[1], down[2]], { nodeTimeoutMs: 100 });
      assert.deepEqual(nodes.slice(0, 3).map((text) => text.slice(0, 6)), ["node 0", "node 2", "node 4"]);
      for (const server of servers) {
        await until(async () => (await server.keys()).length === 0);
      }
    });
  }

  test("that are one server do not count as several", async (t) => {
    const server = await startRedis(t);
    const slower = await proxied(t, server, async (_direction, data, _socket, forward) => {
      await setTimeout(50); // so that the other is known when it comes
      forward(data);
    });
    const nodes = await causes(t, [server, slower, await refusing()], { onHealth() {} });
    assert.match(nodes.join("\n"), /node 1 .*: this is the same server as node 0/);
  });
});

describe("a server that goes away", () => {
  test("comes back and is used again", async (t) => {
    const server = await startRedis(t);
    const redlock = await client(t, server);
    await redlock.mutex("x").using(() => {});
    await server.stop();
    await assert.rejects(redlock.mutex("x").tryAcquire(), Unavailable);
    const waiting = redlock.mutex("x").acquire({ waitMs: 15_000 });
    await server.start();
    await (await waiting).release();
  });

  test("in the middle of an acquire: nothing is left, and no command came twice", async (t) => {
    const server = await startRedis(t);
    const requests = [];
    let cut = false;
    const url = await proxied(t, server, (direction, data, socket, forward) => {
      if (direction === "request" && data.includes("EVALSHA")) {
        requests.push(data.toString("latin1"));
      }
      if (direction === "reply" && cut && requests.at(-1).includes("rl1:")) {
        cut = false;
        socket.destroy(); // it was executed; its reply is lost
        return;
      }
      forward(data);
    });
    const redlock = await client(t, url);
    await redlock.mutex("warm").using(() => {});
    requests.length = 0;
    cut = true;
    await assert.rejects(redlock.mutex("x").tryAcquire(), (error) => {
      assert.match(error.message, /node 0 .*: the server closed the connection|connection reset/);
      return error instanceof Unavailable;
    });
    await until(async () => (await server.keys()).length === 0);
    const tokens = requests.map((request) => request.split("\r\n")[2] + request.split("\r\n")[4]);
    assert.equal(new Set(tokens).size, tokens.length, "each script was sent once");
  });

  test("without a word: the connection is given up", async (t) => {
    const server = await startRedis(t);
    let dead = false;
    let connections = 0;
    const url = await proxied(t, server, (direction, data, socket, forward) => {
      if (!socket.number) {
        connections += 1;
        socket.number = connections;
      }
      if (!(dead && socket.number === 1)) {
        forward(data);
      }
    });
    const redlock = await client(t, url, { nodeTimeoutMs: 200 });
    await redlock.mutex("x").using(() => {});
    dead = true;
    const held = await redlock.mutex("x").acquire({ waitMs: 10_000 });
    assert.equal(connections, 2);
    await held.release();
  });

  test("for a while: what hangs is undone when it wakes up", async (t) => {
    const server = await startRedis(t);
    const redlock = await client(t, server, { nodeTimeoutMs: 100 });
    await redlock.mutex("warm").using(() => {});
    server.pause();
    await assert.rejects(redlock.mutex("x").tryAcquire(), Unavailable);
    server.resume();
    await until(async () => (await server.keys()).length === 0);
  });
});

test("notices of health are told to who asks for them", async (t) => {
  const server = await startRedis(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru");
  const notices = [];
  const redlock = await client(t, server, { onHealth: (notice) => notices.push(notice) });
  await redlock.mutex("x").using(() => {});
  assert.equal(notices.length, 1);
  assert.deepEqual([notices[0].node, notices[0].address], [0, `127.0.0.1:${server.port}`]);
  assert.match(notices[0].cause, /evicts/);
});

test("five thousand operations at once", async (t) => {
  const redlock = await client(t, await startRedis(t), { nodeTimeoutMs: 20_000 });
  const names = Array.from({ length: 5000 }, (_, i) => `lock ${i}`);
  const holds = await Promise.all(names.map((name) => redlock.mutex(name, { ttlMs: 60_000 }).acquire()));
  assert.equal(new Set(holds.map((held) => held.token)).size, 5000);
  await Promise.all(holds.map((held) => held.release()));
  await setTimeout(0);
});
