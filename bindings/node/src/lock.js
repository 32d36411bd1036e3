/** Locks of every kind. */

import { inspect } from "node:util";

import { abortSignal, options, text, waitLimit } from "./arguments.js";
import { wallUs } from "./clock.js";
import { AcquireTimeout, Status, errorOf } from "./errors.js";
import { Held } from "./held.js";
import { Hold, slotOf } from "./hold.js";
import { freshSeed } from "./seed.js";

/**
 * What a lock object was made with, as the machine takes it.
 * @typedef {object} Request
 * @property {import("./machine.js").Kind} kind
 * @property {string} name
 * @property {number} permits of a semaphore; else 0
 * @property {number} ttl
 * @property {boolean | null} fencing
 * @property {boolean | null} autoRenew
 * @property {boolean | null} queue
 * @property {number[] | null} retry delay, jitter and how many tries, 0 being the default
 * @property {number} maxHold
 * @property {string} metadata
 */

/**
 * How to wait.
 * @typedef {object} Wait
 * @property {number} [waitMs] milliseconds to wait at most; undefined: without limit
 * @property {AbortSignal} [signal] ends the wait; a wait that was ended leaves nothing behind
 */

/**
 * A lock of any kind.
 *
 * It describes the lock and holds nothing itself, so it never changes, and any number of callers may use it at once.
 */
export class Lock {
  #lifeline;
  #request;

  /**
   * @param {import("./lifeline.js").Lifeline} lifeline
   * @param {Request} request
   */
  constructor(lifeline, request) {
    this.#lifeline = lifeline;
    this.#request = request;
  }

  /** The name of the lock, without the client's prefix. */
  get name() {
    return this.#request.name;
  }

  /**
   * Acquires the lock, waiting for it.
   * @param {Wait} [wait]
   * @returns {Promise<Held>}
   */
  async acquire(wait) {
    const { waitMs, signal } = options("acquire", wait, ["waitMs", "signal"]);
    const hold = await this.#try(waitLimit(waitMs), abortSignal("signal", signal));
    if (hold instanceof Hold) {
      return new Held(hold, this.#lifeline);
    }
    if (hold[1] === Status.HELD) {
      throw new AcquireTimeout(`lock ${JSON.stringify(this.name)} is held by another`);
    }
    throw errorOf(hold, signal);
  }

  /**
   * Acquires the lock if it is free now, else gives null. Rejects as acquire does.
   * @param {{signal?: AbortSignal}} [settings]
   * @returns {Promise<Held | null>}
   */
  async tryAcquire(settings) {
    const { signal } = options("tryAcquire", settings, ["signal"]);
    const hold = await this.#try(0, abortSignal("signal", signal));
    if (hold instanceof Hold) {
      return new Held(hold, this.#lifeline);
    }
    if (hold[1] === Status.HELD) {
      return null;
    }
    throw errorOf(hold, signal);
  }

  /**
   * Runs a function while the lock is held: acquires it, awaits what the function returns, and releases it.
   *
   * Rejects with what the function throws; else, if the lock was lost meanwhile, with LockLost, when the function has
   * ended. `held.signal` tells the function at once. A release that could not be confirmed is only warned of.
   * @template T
   * @param {(held: Held) => T} body
   * @param {Wait} [wait]
   * @returns {Promise<Awaited<T>>}
   */
  async using(body, wait) {
    if (typeof body !== "function") {
      throw new TypeError("using needs a function to run");
    }
    const held = await this.acquire(wait);
    let result;
    try {
      result = await body(held);
    } catch (error) {
      // What the body threw is what the caller is to see.
      await held[Symbol.asyncDispose]().catch((failure) => warn(held, failure));
      throw error;
    }
    await held[Symbol.asyncDispose]();
    return result;
  }

  /**
   * Reads who holds the lock.
   * @returns {Promise<import("./index.js").Inspection>}
   */
  async inspect() {
    const { kind, name } = this.#request;
    const outcome = await this.#ask(["inspect", 0, kind, name]);
    const [, fence, holders, queueLength, queueAge] = /** @type {import("./machine.js").Inspected} */ (outcome[5]);
    return {
      kind,
      held: holders.length > 0,
      holders: holders.map(([who, digest, ttl, nodes, slot]) => ({
        who,
        digest,
        ttlMs: ttl === null ? null : ttl / 1000,
        nodes,
        slot: slotOf(kind, slot),
      })),
      fence: BigInt(fence),
      queueLength,
      queueAgeMs: queueAge / 1000,
    };
  }

  /**
   * Takes the lock away from the holder whose digest `inspect` showed.
   * @param {string} digest
   */
  async forceRelease(digest) {
    const { kind, name } = this.#request;
    await this.#ask(["force_release", 0, kind, name, text("digest", digest)]);
  }

  /** What console.log shows. */
  [inspect.custom]() {
    return `${this.constructor.name} ${JSON.stringify(this.name)}`;
  }

  /**
   * @param {import("./machine.js").Event} event
   * @returns {Promise<import("./machine.js").Outcome>}
   */
  async #ask(event) {
    const outcome = await this.#lifeline.session.perform(event);
    if (outcome[1] !== Status.OK) {
      throw errorOf(outcome);
    }
    return outcome;
  }

  /**
   * @param {number | null} wait microseconds; null: without limit
   * @param {AbortSignal | undefined} signal
   * @returns {Promise<Hold | import("./machine.js").Outcome>}
   */
  #try(wait, signal) {
    const { kind, name, permits, ttl, fencing, autoRenew, queue, retry, maxHold, metadata } = this.#request;
    return this.#lifeline.session.acquire(
      ["acquire", 0, kind, name, permits, ttl, wait, fencing, autoRenew, queue, retry, maxHold, metadata, freshSeed(), wallUs()],
      name,
      signal,
    );
  }
}

/** A lock that one holder has at a time. It is not reentrant: who holds it and acquires it again, waits. */
export class Mutex extends Lock {}

/**
 * A lock that several holders have at a time, each with a slot. It is not reentrant: who holds it and acquires it again,
 * takes another slot, or waits for one.
 */
export class Semaphore extends Lock {}

/**
 * @param {Held} held
 * @param {Error} failure
 */
function warn(held, failure) {
  process.emitWarning(`lock ${JSON.stringify(held.name)}: ${failure.message}`, { type: "RedlockWarning" });
}
