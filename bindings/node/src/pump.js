/**
 * The pump of a client: events wait in line, and all that wait are drained into one step of the machine.
 *
 * A step begins in a microtask. So the machine is never entered twice at once, whoever posts an event and from where; a
 * thousand requests made in one go, or replies that came in one packet, cost one step; and a caller who is alone loses
 * nothing, since its own turn ends with its await.
 */

import { now } from "./clock.js";

/** @typedef {import("./machine.js").Event} Event */
/** @typedef {import("./machine.js").Effects} Effects */

// What the machine waits for is overdue by so much: the event loop was blocked.
const LATE_US = 10_000;

// Timers stand still while the computer is suspended: so the clock is looked at once a second.
const LOOK_MS = 1000;

const soon = Promise.resolve();

/** Drives one machine. */
export class Pump {
  #machine;
  #apply;
  #fail;

  /** @type {Event[]} */
  #waiting = [];
  #scheduled = false;
  #looked = false; // for replies, after the event loop was blocked
  #ended = false;
  #last = 0; // time of the last step

  /** @type {NodeJS.Timeout | undefined} */
  #timer;
  #armedMs = Infinity; // when the timer fires, on the clock in milliseconds
  #wake = Infinity;

  /**
   * @param {import("./machine.js").Machine} machine
   * @param {(effects: Effects) => void} apply does what a step wants done
   * @param {(error: unknown) => void} fail told once, when a step failed: the pump has ended, and its machine is of no use
   */
  constructor(machine, apply, fail) {
    this.#machine = machine;
    this.#apply = apply;
    this.#fail = fail;
  }

  /**
   * Puts an event in line.
   * @param {Event} event
   */
  post(event) {
    this.#waiting.push(event);
    if (!this.#scheduled) {
      this.#scheduled = true;
      soon.then(this.#drain); // as queueMicrotask, at half the cost
    }
  }

  /** Ends it: nothing is stepped any more. */
  end() {
    this.#ended = true;
    this.#waiting = [];
    clearTimeout(this.#timer);
  }

  #drain = () => {
    this.#scheduled = false;
    if (this.#ended) {
      return;
    }
    const time = now(); // read before anything that the step's calls send is written
    const late = time > this.#wake + LATE_US;
    if (late && !this.#looked) {
      // Replies may have come while the event loop was blocked: they are read before anything is found to be late.
      this.#looked = true;
      this.#scheduled = true;
      setImmediate(this.#drain);
      return;
    }
    this.#looked = false;
    const events = this.#waiting;
    this.#waiting = [];
    try {
      if (late) {
        this.#stepLate(time, events);
      } else {
        this.#step(time, events);
      }
    } catch (error) {
      this.end();
      this.#fail(error);
    }
  };

  /**
   * @param {number} time
   * @param {Event[]} events
   */
  #step(time, events) {
    this.#last = time;
    const effects = this.#machine.step(time, events);
    this.#arm(effects.wake ?? Infinity);
    this.#apply(effects);
  }

  /**
   * After the event loop was blocked, gives the machine the replies as of the moment before the first of them would be
   * late: else a node that answers in a millisecond would be one that took too long. Leases count from when their request
   * was sent, whatever the time of the reply.
   * @param {number} time
   * @param {Event[]} events
   */
  #stepLate(time, events) {
    const isReply = (/** @type {Event} */ [verb]) => verb === "answer" || verb === "failed";
    const replies = events.filter(isReply);
    if (replies.length > 0) {
      this.#step(Math.max(this.#last, this.#wake - 1), replies);
    }
    this.#step(time, [...events.filter((event) => !isReply(event)), ["tick"]]);
  }

  /**
   * Sees to it that a tick comes at a time. A timer that fires too early costs less than setting it anew for each step.
   * @param {number} wake
   */
  #arm(wake) {
    this.#wake = wake;
    if (wake === Infinity) {
      return;
    }
    const present = now();
    const ms = Math.min(Math.max(Math.ceil((wake - present) / 1000), 1), LOOK_MS);
    if (present / 1000 + ms < this.#armedMs - 0.5) {
      clearTimeout(this.#timer);
      this.#armedMs = present / 1000 + ms;
      this.#timer = setTimeout(this.#tick, ms);
      this.#timer.unref(); // what keeps the process alive is the session's business
    }
  }

  #tick = () => {
    this.#armedMs = Infinity;
    if (now() >= this.#wake) {
      this.post(["tick"]);
    } else {
      this.#arm(this.#wake);
    }
  };
}
