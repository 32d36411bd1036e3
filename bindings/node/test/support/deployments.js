/** Deployments of several servers. */

import { writeFileSync, mkdtempSync, rmSync } from "node:fs";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Redis } from "ioredis";

import { freePort, startRedis, until } from "./servers.js";

const MASTERS = 3;
const SLOTS = 16384;

/** A cluster of three masters without replicas. */
export async function startCluster(t) {
  // A server that loses the processor for a while is not to be taken for dead by the others, who would then refuse to serve.
  const options = ["--cluster-enabled", "yes", "--cluster-node-timeout", "60000", "--cluster-require-full-coverage", "no"];
  const servers = [];
  for (let i = 0; i < MASTERS; i++) {
    servers.push(await startRedis(t, ...options, "--cluster-port", `${await freePort()}`));
  }
  for (const [i, server] of servers.entries()) {
    const first = Math.floor((i * SLOTS) / MASTERS);
    await server.admin.cluster("ADDSLOTSRANGE", first, Math.floor(((i + 1) * SLOTS) / MASTERS) - 1);
    await server.admin.cluster("SET-CONFIG-EPOCH", i + 1);
  }
  const busPort = async (server) => (await server.admin.config("GET", "cluster-port"))[1];
  for (const server of servers.slice(1)) {
    await servers[0].admin.cluster("MEET", "127.0.0.1", server.port, await busPort(server));
  }
  for (const server of servers) {
    await until(async () => {
      const info = await server.admin.cluster("INFO");
      return /cluster_state:ok/.test(info) && /cluster_slots_assigned:16384/.test(info);
    });
  }
  return {
    servers,
    ports: servers.map((server) => server.port),
    keys: async () => (await Promise.all(servers.map((server) => server.keys()))).flat(),
    /** Gives the slot of a lock to a server, as after a failover. Those that are dead are not asked. */
    give: async (name, to) => {
      const slot = await servers[to].admin.cluster("KEYSLOT", name);
      const id = await servers[to].admin.cluster("MYID");
      await Promise.all(servers.filter((server) => server.alive).map(({ admin }) => admin.cluster("SETSLOT", slot, "NODE", id)));
    },
    /** The name of a lock that a server has. */
    nameAt: async (i) => {
      for (let n = 0; ; n++) {
        const slot = await servers[0].admin.cluster("KEYSLOT", `n${n}`);
        if (Math.floor((slot * MASTERS) / SLOTS) === i) {
          return `n${n}`;
        }
      }
    },
  };
}

/** A master and a sentinel that knows it. */
export async function startSentinel(t) {
  const master = await startRedis(t);
  const port = await freePort();
  const group = "mymaster";
  const dir = mkdtempSync(join(tmpdir(), "redlock-sentinel-"));
  const file = join(dir, "sentinel.conf");
  writeFileSync(file, `port ${port}\nbind 127.0.0.1\ndir ${dir}\nsentinel monitor ${group} 127.0.0.1 ${master.port} 1\n`);
  const child = spawn("redis-server", [file, "--sentinel"], { stdio: "ignore" });
  t.after(async () => {
    child.kill();
    await once(child, "exit");
    rmSync(dir, { recursive: true });
  });
  const sentinel = new Redis(port, { retryStrategy: () => 20 }).on("error", () => {});
  await until(async () => (await sentinel.call("SENTINEL", "get-master-addr-by-name", group).catch(() => null)) !== null);
  sentinel.disconnect();
  return { master, port, group };
}
