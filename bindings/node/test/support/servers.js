/** Redis servers of the tests, and what poses as one. Each ends with the test that started it. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, connect as connectTo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";

import { Redis } from "ioredis";

/** Starts a redis-server on a free port and gives a handle to it. */
export async function startRedis(t, ...options) {
  const server = new Server(await freePort(), options);
  t.after(() => server.end());
  await server.start();
  return server;
}

/** A redis-server, which can be stopped, started again and paused. */
class Server {
  #options;
  #child;
  #admin;
  #dir = mkdtempSync(join(tmpdir(), "redlock-test-"));

  constructor(port, options) {
    this.port = port;
    this.#options = options;
  }

  get url() {
    return `redis://127.0.0.1:${this.port}`;
  }

  get socket() {
    return join(this.#dir, "redis.sock");
  }

  async start() {
    const fixed = ["--port", `${this.port}`, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
    const args = [...fixed, "--dir", this.#dir, "--unixsocket", this.socket, ...this.#options];
    const log = join(this.#dir, "log");
    this.#child = spawn("redis-server", [...args, "--logfile", log], { stdio: "ignore" });
    await once(this.#child, "spawn");
    // By its socket, since on the port it could be another's.
    await until(() => {
      assert.ok(this.alive, `redis-server ended at once:\n${readFileSync(log, { encoding: "utf8", flag: "a+" })}`);
      return answers(this.socket);
    });
  }

  /** An ioredis client for the tests' own commands. */
  get admin() {
    this.#admin ??= new Redis({
      path: this.socket,
      password: this.#options[this.#options.indexOf("--requirepass") + 1 || Infinity],
      enableReadyCheck: false,
    }).on("error", () => {});
    return this.#admin;
  }

  /** The names of the keys that are there, without fence counters. */
  async keys() {
    const keys = await this.admin.keys("*");
    return keys.filter((key) => !/:redlock:\w+:fence:/.test(key));
  }

  pause() {
    this.#child.kill("SIGSTOP");
  }

  resume() {
    this.#child.kill("SIGCONT");
  }

  get alive() {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Kills it, as a crash would. */
  async stop() {
    if (this.alive) {
      this.#child.kill("SIGKILL");
      await once(this.#child, "exit");
    }
  }

  async end() {
    this.#admin?.disconnect();
    await this.stop();
    rmSync(this.#dir, { recursive: true, force: true });
  }
}

/** A node that accepts connections and gives each to a function. */
export async function fake(t, handle) {
  const sockets = new Set();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    handle(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    for (const socket of sockets) {
      socket.destroy();
    }
  });
  return `redis://127.0.0.1:${server.address().port}`;
}

/** A node that never answers. */
export function hanging(t) {
  return fake(t, (socket) => socket.resume());
}

/** A node that answers with what is no Redis protocol. */
export function garbage(t) {
  return fake(t, (socket) => socket.on("data", () => socket.write("\0\xff\x13garbage\r\n$99999999999999999999\r\n")));
}

/** A node that refuses connections. */
export async function refusing() {
  return `redis://127.0.0.1:${await freePort()}`;
}

/**
 * A node in front of a server, whose connections can be disturbed. on(socket, data) is called with what a client sends,
 * and forwards it or not.
 */
export function proxied(t, server, onData) {
  return fake(t, (socket) => {
    const upstream = connectTo(server.port, "127.0.0.1");
    upstream.on("error", () => socket.destroy());
    upstream.on("close", () => socket.destroy());
    socket.on("close", () => upstream.destroy());
    upstream.on("data", (data) => onData("reply", data, socket, (bytes) => socket.write(bytes)));
    socket.on("data", (data) => onData("request", data, socket, (bytes) => upstream.write(bytes)));
  });
}

// Ports are below those that systems give to outgoing connections, and taken in turn from any of them on: so nobody comes to
// have the port of a server that is stopped for a while, or that is about to start.
const [LOWEST_PORT, PORTS] = [10_000, 22_000];
let lastPort = Math.floor(Math.random() * PORTS);

/** A port that nothing listens on. */
export async function freePort() {
  for (;;) {
    lastPort = (lastPort + 1) % PORTS;
    const port = LOWEST_PORT + lastPort;
    const server = createServer().listen(port, "127.0.0.1");
    const free = await new Promise((resolve) => server.on("listening", () => resolve(true)).on("error", () => resolve(false)));
    server.close();
    if (free) {
      await once(server, "close");
      return port;
    }
  }
}

function answers(path) {
  return new Promise((resolve) => {
    const socket = connectTo(path);
    socket.on("error", () => resolve(false));
    socket.on("data", () => {
      socket.destroy();
      resolve(true);
    });
    socket.write("PING\r\n");
  });
}

/** Waits until something holds. */
export async function until(condition, ms = 10_000) {
  const end = performance.now() + ms;
  while (!(await condition())) {
    if (performance.now() > end) {
      throw new Error(`after ${ms} ms still not: ${condition}`);
    }
    await setTimeout(5);
  }
}
