/** What a session knows of a lock that it holds. Held is its face. */

import { now } from "./clock.js";
import { LeaseSignal } from "./signal.js";
import { Closed, LockLost, NotHeld } from "./errors.js";

/**
 * The slot of a kind that has them; null of others.
 * @param {import("./machine.js").Kind} kind
 * @param {number} slot
 */
export function slotOf(kind, slot) {
  return kind === "semaphore" ? slot : null;
}

/** A hold. The session keeps it until it is released, even if the application has forgotten its Held. */
export class Hold {
  /** @type {number} When the lease ends, in microseconds of the clock. */
  deadline;
  /** @type {boolean} Its release was asked for. */
  over = false;
  /** @type {string | undefined} Why it was lost; undefined: it was not. */
  lostBecause;
  /** @type {import("./signal.js").LeaseSignal | undefined} Made when it is first asked for. */
  #signal;

  /**
   * @param {import("./session.js").Session} session
   * @param {number} id
   * @param {string} name
   * @param {string} token
   * @param {bigint} fence
   * @param {number | null} slot of a semaphore
   * @param {number} deadline
   */
  constructor(session, id, name, token, fence, slot, deadline) {
    this.session = session;
    this.epoch = session.epoch;
    this.id = id;
    this.name = name;
    this.token = token;
    this.fence = fence;
    this.slot = slot;
    this.deadline = deadline;
  }

  /** Microseconds for which the lock is certainly ours; 0 when it is lost or released. */
  get remaining() {
    return this.over || this.isLost() ? 0 : this.deadline - now();
  }

  /** Whether it was lost. Looks at the clock, since an event loop that was blocked has not heard of the deadline yet. */
  isLost() {
    if (this.lostBecause === undefined && !this.over && now() >= this.deadline) {
      this.lose("its lease ran out");
      this.session.surrender(this);
    }
    return this.lostBecause !== undefined;
  }

  /**
   * Notes the deadline of a renewal, unless the loss was told: what is lost stays lost.
   * @param {number} deadline
   */
  renewed(deadline) {
    if (this.lostBecause !== undefined) {
      throw this.loss();
    }
    this.deadline = deadline;
  }

  /**
   * Notes the loss and tells it, unless it is known or the lock was released.
   * @param {string} cause
   */
  lose(cause) {
    if (this.lostBecause === undefined && !this.over) {
      this.#noteLoss(cause);
    }
  }

  /**
   * Notes that the release found the lock gone: it had been lost before.
   * @param {string} cause
   */
  lostBeforeRelease(cause) {
    if (this.lostBecause === undefined) {
      this.#noteLoss(cause);
    }
  }

  /** @param {string} cause */
  #noteLoss(cause) {
    this.lostBecause = cause;
    this.#signal?.abort();
  }

  /** The AbortSignal of the loss. */
  get signal() {
    this.#signal ??= new LeaseSignal(this);
    return this.#signal.signal;
  }

  /** The loss as an error. */
  loss() {
    return this.session.closed
      ? new Closed(this.session.closed)
      : new LockLost(`lock ${JSON.stringify(this.name)} was lost: ${this.lostBecause}`);
  }

  /** Throws unless it is a hold still. */
  requireOurs() {
    if (this.over) {
      throw new NotHeld(`lock ${JSON.stringify(this.name)} was released already`);
    }
    if (this.session.closed || this.isLost()) {
      throw this.loss();
    }
  }
}
