/** The client. */

import { inspect } from "node:util";

import { count, duration, options, text, toggle } from "./arguments.js";
import { Status, errorOf } from "./errors.js";
import { Lifeline } from "./lifeline.js";
import { Mutex } from "./mutex.js";
import { Session } from "./session.js";
import { compiledModule } from "./module.js";
import { prefixOf, requireDistinct, sourceOf } from "./clients/source.js";

/** @typedef {import("./machine.js").Outcome} Outcome */

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
    const { ttlMs, fencing, autoRenew, queue, retryDelayMs, retryJitterMs, maxTries, maxHoldMs, metadata = "" } = options(
      "mutex",
      lock,
      LOCK_OPTIONS,
    );
    const retry = [duration("retryDelayMs", retryDelayMs), duration("retryJitterMs", retryJitterMs), count("maxTries", maxTries)];
    return new Mutex(this.#lifeline, {
      name: text("name", name),
      ttl: duration("ttlMs", ttlMs),
      fencing: toggle("fencing", fencing),
      autoRenew: toggle("autoRenew", autoRenew),
      queue: toggle("queue", queue),
      retry: retry.some(Boolean) ? retry : null,
      maxHold: duration("maxHoldMs", maxHoldMs),
      metadata: text("metadata", metadata),
    });
  }

  /**
   * Reads who holds a name.
   * @param {string} name
   * @returns {Promise<import("./index.js").Inspection>}
   */
  async inspect(name) {
    const outcome = await this.#request(["inspect", 0, "mutex", text("name", name)]);
    const [, fence, holders, queueLength, queueAge] = /** @type {import("./machine.js").Inspected} */ (outcome[5]);
    return {
      kind: "mutex",
      held: holders.length > 0,
      holders: holders.map(([who, digest, ttl, nodes]) => ({ who, digest, ttlMs: ttl === null ? null : ttl / 1000, nodes })),
      fence: BigInt(fence),
      queueLength,
      queueAgeMs: queueAge / 1000,
    };
  }

  /**
   * Takes a lock away from the holder whose digest `inspect` showed.
   * @param {string} name
   * @param {string} digest
   */
  async forceRelease(name, digest) {
    await this.#request(["force_release", 0, "mutex", text("name", name), text("digest", digest)]);
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

  /**
   * @param {import("./machine.js").Event} event
   * @returns {Promise<Outcome>}
   */
  async #request(event) {
    const outcome = await this.#lifeline.session.perform(event);
    if (outcome[1] !== Status.OK) {
      throw errorOf(outcome);
    }
    return outcome;
  }
}
