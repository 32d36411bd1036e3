/** The client. */

import { inspect } from "node:util";

import { count, duration, options, text, toggle } from "./arguments.js";
import { Status, errorOf } from "./errors.js";
import { Lifeline } from "./lifeline.js";
import { Mutex, Semaphore } from "./lock.js";
import { Session } from "./session.js";
import { compiledModule } from "./module.js";
import { prefixOf, requireDistinct, sourceOf } from "./clients/source.js";

const SETTINGS = ["nodes", "prefix", "nodeTimeoutMs", "unavailableAfterMs", "onHealth"];
const LOCK_OPTIONS = ["ttlMs", "fencing", "autoRenew", "queue", "retryDelayMs", "retryJitterMs", "maxTries", "maxHoldMs", "metadata"];

/**
 * Makes a client. It asks no node: the first request connects.
 * @param {import("./index.js").ConnectOptions} settings
 * @returns {Promise<Redlock>}
 */
export async function connect(settings) {
  const { nodes, prefix = "", nodeTimeoutMs, unavailableAfterMs, onHealth = warn } = options("connect", settings, SETTINGS);
  if (!Array.isArray(nodes)) {
    throw new TypeError("nodes must be an array of URLs or clients");
  }
  if (typeof onHealth !== "function") {
    throw new TypeError("onHealth must be a function");
  }
  const sources = nodes.map((node, index) => sourceOf(index, node));
  requireDistinct(sources);
  const session = new Session(await compiledModule(), {
    sources,
    prefix: prefixOf(sources) + text("prefix", prefix),
    nodeTimeout: duration("nodeTimeoutMs", nodeTimeoutMs),
    unavailableAfter: duration("unavailableAfterMs", unavailableAfterMs),
    onHealth: (node, address, cause) => queueMicrotask(() => onHealth({ node, address, cause })),
  });
  const outcome = await session.opened();
  if (outcome[1] !== Status.OK) {
    session.abandon();
    throw errorOf(outcome);
  }
  return new Redlock(new Lifeline(session));
}

/** @param {{node: number, address: string, cause: string}} notice */
function warn({ node, address, cause }) {
  process.emitWarning(`node ${node} (${address}): ${cause}`, { type: "RedlockWarning" });
}

/** A client; made by `connect`. */
export class Redlock {
  #lifeline;

  /** @param {Lifeline} lifeline */
  constructor(lifeline) {
    this.#lifeline = lifeline;
  }

  /**
   * Describes a lock that one holder has at a time. Acquires nothing and asks no node.
   * @param {string} name
   * @param {import("./index.js").LockOptions} [lock]
   */
  mutex(name, lock) {
    return new Mutex(this.#lifeline, request("mutex", name, 0, options("mutex", lock, LOCK_OPTIONS)));
  }

  /**
   * Describes a lock that several holders have at a time. Acquires nothing and asks no node.
   * @param {string} name
   * @param {import("./index.js").SemaphoreOptions} lock
   */
  semaphore(name, lock) {
    const { permits, ...rest } = options("semaphore", lock, ["permits", ...LOCK_OPTIONS]);
    if (permits === undefined) {
      throw new TypeError("a semaphore needs permits, a number");
    }
    return new Semaphore(this.#lifeline, request("semaphore", name, count("permits", permits), rest));
  }

  /**
   * Reads who holds a mutex.
   * @param {string} name
   * @returns {Promise<import("./index.js").Inspection>}
   */
  async inspect(name) {
    return this.mutex(name).inspect();
  }

  /**
   * Takes a mutex away from the holder whose digest `inspect` showed.
   * @param {string} name
   * @param {string} digest
   */
  async forceRelease(name, digest) {
    await this.mutex(name).forceRelease(digest);
  }

  /** Closes the client: waits reject with Closed, and what it holds is lost and released. */
  async close() {
    await this.#lifeline.close();
  }

  async [Symbol.asyncDispose]() {
    await this.close();
  }

  /** What console.log shows. */
  [inspect.custom]() {
    const { addresses, closed } = this.#lifeline.session;
    return `Redlock { ${addresses.join(", ")}${closed ? ", closed" : ""} }`;
  }
}

/**
 * What a lock object is made with.
 * @param {import("./machine.js").Kind} kind
 * @param {string} name
 * @param {number} permits
 * @param {Partial<import("./index.js").LockOptions>} lock
 * @returns {import("./lock.js").Request}
 */
function request(kind, name, permits, lock) {
  const { ttlMs, fencing, autoRenew, queue, retryDelayMs, retryJitterMs, maxTries, maxHoldMs, metadata = "" } = lock;
  const retry = [duration("retryDelayMs", retryDelayMs), duration("retryJitterMs", retryJitterMs), count("maxTries", maxTries)];
  return {
    kind,
    name: text("name", name),
    permits,
    ttl: duration("ttlMs", ttlMs),
    fencing: toggle("fencing", fencing),
    autoRenew: toggle("autoRenew", autoRenew),
    queue: toggle("queue", queue),
    retry: retry.some(Boolean) ? retry : null,
    maxHold: duration("maxHoldMs", maxHoldMs),
    metadata: text("metadata", metadata),
  };
}
