/** The driver of the npm package libredlock, by the line protocol of tests/drivers/README.md. */

import { createInterface } from "node:readline";

import { RedlockError, connect } from "../../../bindings/node/src/index.js";
import { hammer } from "./hammer.js";
import { Request, lockOf, send } from "./protocol.js";

/** Clients, holds and running requests by the runner's names. */
const clients = new Map();
const holds = new Map();
const running = new Map();

async function answer(request) {
  try {
    const [status, fields] = await serve(request);
    send(request.id, status, fields);
  } catch (error) {
    // Anything but a RedlockError is no status.
    const known = error instanceof RedlockError;
    send(request.id, known ? error.code : error.name, [["message", known ? error.message : error.stack]]);
  } finally {
    running.delete(request.id);
  }
}

async function serve(request) {
  switch (request.verb) {
    case "open":
      clients.set(request.get("client"), await connect(request.clientSettings()));
      return ["OK", []];
    case "cancel":
      running.get(request.get("request"))?.abort();
      return ["OK", []];
    case "renew":
    case "release":
    case "remaining":
      return ["OK", await serveHeld(request, holds.get(request.get("held")))];
  }
  return serveClient(request, clients.get(request.get("client")));
}

async function serveClient(request, client) {
  switch (request.verb) {
    case "acquire":
    case "try_acquire":
      return acquire(request, client);
    case "inspect":
      return ["OK", inspected(await lockOf(request, client).inspect())];
    case "force_release":
      await lockOf(request, client).forceRelease(request.get("digest"));
      return ["OK", []];
    case "close":
      await client.close();
      return ["OK", []];
    case "hammer":
      return ["OK", [["grants", await hammer(request, client)]]];
  }
  throw new Error(`the driver has no verb ${request.verb}`);
}

async function acquire(request, client) {
  const { signal } = running.get(request.id);
  const lock = lockOf(request, client);
  const held =
    request.verb === "try_acquire"
      ? await lock.tryAcquire({ signal })
      : await lock.acquire({ waitMs: request.number("wait_ms"), signal });
  if (!held) {
    return ["HELD", [["message", "tryAcquire gave null"]]];
  }
  const name = request.get("held");
  holds.set(name, held);
  const lost = () => send("-", "lost", [["held", name], ["cause", held.signal.reason.message]]);
  held.signal.addEventListener("abort", lost);
  return ["OK", [["token", held.token], ["fence", held.fence], ...slotOf(held), ...remaining(held)]];
}

async function serveHeld(request, held) {
  switch (request.verb) {
    case "renew":
      await held.renew(request.number("ttl_ms"));
      break;
    case "release":
      await held.release();
      return [];
  }
  return remaining(held);
}

function remaining(held) {
  return [["remaining_ms", Math.trunc(held.remainingMs)]];
}

/** The slot of a semaphore's hold or holder. */
function slotOf({ slot }) {
  return slot === null ? [] : [["slot", slot]];
}

function inspected({ kind, fence, holders, queueLength }) {
  const fields = [["kind", kind], ["fence", fence], ["queue_length", queueLength]];
  for (const holder of holders) {
    const { who, digest, ttlMs, nodes } = holder;
    const ttl = ttlMs === null ? -1 : Math.trunc(ttlMs);
    fields.push(["who", who], ["digest", digest], ["ttl_ms", ttl], ["nodes", nodes], ...slotOf(holder));
  }
  return fields;
}

send("-", "ready", [["language", "node"], ["lacks", ""]]);
for await (const line of createInterface({ input: process.stdin })) {
  const request = Request.parse(line);
  running.set(request.id, new AbortController());
  answer(request);
}
