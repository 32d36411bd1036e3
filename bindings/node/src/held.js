/** A lock that is held. */

import { inspect } from "node:util";

import { abortSignal, duration, options } from "./arguments.js";
import { LockLost, Status, Unavailable, errorOf } from "./errors.js";


/** Releases what the application has forgotten. */
const forgotten = new FinalizationRegistry((/** @type {import("./hold.js").Hold} */ hold) => {
  if (hold.over || hold.session.closed) {
    return;
  }
  const lost = hold.isLost();
  hold.session.discard(hold);
  if (!lost) {
    process.emitWarning(`lock ${JSON.stringify(hold.name)} was not released`, {
      type: "RedlockWarning",
      detail: "Its Held was garbage-collected. It is released now.",
    });
  }
});

/**
 * A lock that is held, and the only one that can renew and release it.
 *
 * Left to `await using`, it is released at the end of the block. One that is garbage-collected unreleased is released,
 * with a warning.
 */
export class Held {
  #hold;
  #lifeline;

  /**
   * @param {import("./hold.js").Hold} hold
   * @param {import("./lifeline.js").Lifeline} lifeline
   */
  constructor(hold, lifeline) {
    this.#hold = hold;
    this.#lifeline = lifeline;
    forgotten.register(this, hold, hold);
  }

  /** The name of the lock, without the client's prefix. */
  get name() {
    return this.#hold.name;
  }

  /**
   * The fencing token, a bigint: larger than that of every earlier holder of the name. Give it to whatever the lock
   * protects, which refuses a write with a smaller one than it has seen. 0n if the lock was made with `fencing: false`.
   */
  get fence() {
    return this.#hold.fence;
  }

  /**
   * Which of a semaphore's permits this is, from 0; null for other kinds of lock. Fencing tokens increase for each slot on
   * its own.
   */
  get slot() {
    return this.#hold.slot;
  }

  /** The value that stands in Redis while the lock is held. */
  get token() {
    return this.#hold.token;
  }

  /** Milliseconds for which the lock is certainly ours; 0 when it is lost or released. */
  get remainingMs() {
    return this.#hold.remaining / 1000;
  }

  /**
   * An AbortSignal that is aborted when the lock is lost, though not by its release; its reason is a LockLost. It looks at
   * the clock whenever it is asked, so it is right even after the event loop was blocked.
   */
  get signal() {
    return this.#hold.signal;
  }

  /**
   * Extends the lease to ttlMs from now.
   * @param {number} [ttlMs] the new lease, which later renewals keep to; undefined: the one that it has
   * @param {{signal?: AbortSignal}} [settings] signal: ends the wait for the answer
   * @returns {Promise<void>}
   */
  async renew(ttlMs, settings) {
    const hold = this.#hold;
    const signal = abortSignal("signal", options("renew", settings, ["signal"]).signal);
    const ttl = duration("ttlMs", ttlMs);
    hold.requireOurs();
    const outcome = await this.#lifeline.session.perform(["renew", 0, hold.id, ttl], signal);
    if (outcome[1] === Status.OK) {
      hold.renewed(Number(outcome[4]));
      return;
    }
    const error = errorOf(outcome, signal);
    if (error instanceof LockLost) {
      hold.lose(error.message);
    }
    throw error;
  }

  /**
   * Releases the lock. Whatever comes of it, the hold has ended.
   * @returns {Promise<void>}
   */
  async release() {
    const hold = this.#hold;
    forgotten.unregister(hold);
    try {
      hold.requireOurs();
    } catch (error) {
      this.#lifeline.session.discard(hold);
      throw error;
    }
    const outcome = await this.#lifeline.session.release(hold);
    if (outcome[1] === Status.OK) {
      return;
    }
    const error = errorOf(outcome);
    if (error instanceof LockLost) {
      hold.lostBeforeRelease(error.message);
    }
    throw error;
  }

  /**
   * Gives the lock back at the end of the block that it was for. If it was released already that is that. A release that
   * could not be confirmed is only warned of: the block has done its work, and Unavailable would ask for it again.
   * @returns {Promise<void>}
   */
  async [Symbol.asyncDispose]() {
    if (this.#hold.over) {
      return;
    }
    try {
      await this.release();
    } catch (error) {
      if (!(error instanceof Unavailable)) {
        throw error;
      }
      process.emitWarning(`the release of lock ${JSON.stringify(this.name)} is not confirmed: ${error.message}`, {
        type: "RedlockWarning",
      });
    }
  }

  /** What console.log shows. */
  [inspect.custom]() {
    const state = this.#hold.over ? "released" : this.#hold.isLost() ? "lost" : `${this.remainingMs} ms left`;
    const slot = this.slot === null ? "" : `slot: ${this.slot}, `;
    return `Held ${JSON.stringify(this.name)} { ${slot}fence: ${this.fence}n, ${state} }`;
  }
}
