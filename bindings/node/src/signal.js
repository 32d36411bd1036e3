/** The AbortSignal of a hold. */

/**
 * Makes a signal that is aborted when the lock is lost, and that looks at the clock whenever it is asked: code that runs
 * on an event loop which was blocked past the deadline finds it aborted, though no timer has fired yet.
 */
export class LeaseSignal {
  #controller = new AbortController();
  #hold;

  /** @param {import("./hold.js").Hold} hold */
  constructor(hold) {
    this.#hold = hold;
    const { signal } = this.#controller;
    const look = () => {
      hold.isLost();
      return signal;
    };
    // Own properties before those of the prototype: it stays an AbortSignal to everybody who takes one.
    Object.defineProperties(signal, {
      aborted: { get: () => aborted.call(look()), configurable: true },
      reason: { get: () => reason.call(look()), configurable: true },
      throwIfAborted: { value: () => throwIfAborted.call(look()), configurable: true },
    });
    if (hold.isLost()) {
      this.abort();
    }
  }

  /** The AbortSignal. */
  get signal() {
    return this.#controller.signal;
  }

  /** Aborts it, because the hold was lost. */
  abort() {
    this.#controller.abort(this.#hold.loss());
  }
}

/** @param {"aborted" | "reason"} property */
function getter(property) {
  return /** @type {() => unknown} */ (Object.getOwnPropertyDescriptor(AbortSignal.prototype, property)?.get);
}

const aborted = getter("aborted");
const reason = getter("reason");
const { throwIfAborted } = AbortSignal.prototype;
