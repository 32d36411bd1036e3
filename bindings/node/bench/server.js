/** A redis-server of our own. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, connect } from "node:net";
import { setTimeout } from "node:timers/promises";

/** Starts one on a free port, without persistence. */
export async function startServer() {
  const port = await freePort();
  const child = spawn("redis-server", ["--port", `${port}`, "--bind", "127.0.0.1", "--save", ""], { stdio: "ignore" });
  while (!(await answers(port))) {
    await setTimeout(10);
  }
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    async stop() {
      child.kill("SIGKILL"); // its clients are still there
      await once(child, "exit");
    },
  };
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

function answers(port) {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.on("connect", () => resolve(true)).on("error", () => resolve(false));
    socket.on("connect", () => socket.destroy());
  });
}
