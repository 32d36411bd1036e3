import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout } from "node:timers/promises";

import { sourceOf } from "../src/clients/source.js";
import { Listener } from "../src/listener.js";
import { proxied, startRedis, until } from "./support/servers.js";

// This talks to the listener itself, as a node does.

/** A listener of a node, and the events that it posted. */
function listen(t, url) {
  const events = [];
  const explain = (error) => (error === undefined ? "it ended" : String(error.message));
  const listener = new Listener(sourceOf(0, url), 7, (event) => events.push(event), explain);
  t.after(() => listener.close());
  return { listener, events };
}

const channel = Buffer.from([0x63, 0xff, 0x64]); // no UTF-8
const name = "c\udcffd";

describe("a listener", () => {
  test("tells of subscriptions and messages, as bytes", async (t) => {
    const server = await startRedis(t);
    const { listener, events } = listen(t, server.url);
    listener.change(name, true);
    await until(() => events.length === 1);
    assert.deepEqual(events[0], ["subscribed", 7, name]);
    listener.change("other", true);
    await until(() => events.length === 2);
    await server.admin.publish(channel, Buffer.from([0xfe, 0x41]));
    await server.admin.publish("other", "text");
    await until(() => events.length === 4);
    assert.deepEqual(events.slice(2), [
      ["message", 7, name, "\udcfeA"],
      ["message", 7, "other", "text"],
    ]);
    listener.change(name, false);
    await until(async () => (await server.admin.publish(channel, "x")) === 0);
    assert.equal(events.length, 4);
  });

  test("tells when the connection breaks, and subscribes again", async (t) => {
    const server = await startRedis(t);
    const { listener, events } = listen(t, server.url);
    listener.change("a", true);
    listener.change("b", true);
    await until(() => events.length === 2);
    await server.stop();
    await until(() => events.length === 4);
    assert.deepEqual(events.slice(2).map(([verb, node, which]) => [verb, node, which]), [
      ["dropped", 7, "a"],
      ["dropped", 7, "b"],
    ]);
    listener.change("b", false);
    listener.change("c", true);
    await server.start();
    await until(() => events.length === 6);
    assert.deepEqual(events.slice(4).sort(), [
      ["subscribed", 7, "a"],
      ["subscribed", 7, "c"],
    ]);
    await server.admin.publish("c", "hello");
    await until(() => events.length === 7);
  });

  test("bears that a channel is refused, and asks again", async (t) => {
    const server = await startRedis(t);
    await server.admin.call("ACL", "SETUSER", "default", "resetchannels", "&b");
    const { listener, events } = listen(t, server.url);
    listener.change("a", true);
    listener.change("b", true);
    await until(() => events.length === 2);
    assert.match(events[0].at(-1), /^NOPERM /);
    assert.deepEqual(
      events.map(([verb, , which]) => [verb, which]),
      [
        ["dropped", "a"],
        ["subscribed", "b"],
      ],
    );
    await server.admin.call("ACL", "SETUSER", "default", "allchannels");
    await until(() => events.length === 3, 15_000);
    assert.deepEqual(events[2], ["subscribed", 7, "a"]);
  });

  test("gives up a connection that is silent", async (t) => {
    const server = await startRedis(t);
    let dead = false;
    let connections = 0;
    const url = await proxied(t, server, (_direction, data, socket, forward) => {
      socket.number ??= ++connections;
      if (!(dead && socket.number === 1)) {
        forward(data);
      }
    });
    const { listener, events } = listen(t, url);
    listener.change("a", true);
    await until(() => events.length === 1);
    dead = true;
    await until(() => events.length === 3, 15_000);
    assert.deepEqual(events.slice(1), [
      ["dropped", 7, "a", "no sign of life after 3000 ms"],
      ["subscribed", 7, "a"],
    ]);
  });

  test("that nobody needs any more does not connect", async (t) => {
    const server = await startRedis(t);
    const { listener, events } = listen(t, server.url);
    listener.change("a", true);
    listener.forget();
    await setTimeout(50);
    assert.deepEqual(events, []);
    listener.change("b", true);
    await until(() => events.length === 1);
    assert.deepEqual(events, [["subscribed", 7, "b"]]);
  });
});
