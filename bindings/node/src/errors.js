/** What can go wrong, by what you can do about it. */

/** How an operation ended. The numbers are the same in every language and never change. */
export const Status = Object.freeze({
  OK: 0,
  HELD: 1,
  TIMEOUT: 2,
  LOST: 3,
  UNAVAILABLE: 4,
  CANCELED: 5,
  INVALID: 6,
  NOT_HELD: 7,
  WRONG_KIND: 8,
  UNSUPPORTED: 9,
  CLOSED: 10,
  INTERNAL: 11,
});

/** @typedef {Exclude<keyof typeof Status, "OK">} Code */

/** The base of all errors of libredlock. */
export class RedlockError extends Error {
  /**
   * What happened, as a word that all languages share.
   * @readonly
   * @type {Code}
   */
  code = "INTERNAL";

  /**
   * Why each node that failed did so, for instance "node 2 (127.0.0.1:6381): timeout after 50 ms". Never holds a
   * password.
   * @readonly
   * @type {readonly string[]}
   */
  nodes;

  /**
   * @param {string} message
   * @param {readonly string[]} [nodes]
   * @param {{cause?: unknown}} [options]
   */
  constructor(message, nodes = [], options = {}) {
    super([message, ...nodes].join("\n"), options);
    this.nodes = nodes;
  }

  /** The code as a number. */
  get status() {
    return Status[this.code];
  }

  get name() {
    return classNames.get(Object.getPrototypeOf(this)) ?? "RedlockError";
  }
}

/** Somebody else held the lock until the wait limit had passed. Try again later. */
export class AcquireTimeout extends RedlockError {
  /** @type {Code} */
  code = "TIMEOUT";
}

/** The lock was ours and is no longer: stop the work that it protects. */
export class LockLost extends RedlockError {
  /** @type {Code} */
  code = "LOST";
}

/** Too few nodes answered; what an attempt may have left is being removed. Back off. */
export class Unavailable extends RedlockError {
  /** @type {Code} */
  code = "UNAVAILABLE";
}

/** The caller gave up; `cause` is the reason of its AbortSignal. */
export class Canceled extends RedlockError {
  /** @type {Code} */
  code = "CANCELED";
}

/** An argument is out of its limits, or the operation makes no sense now. */
export class InvalidUse extends RedlockError {
  /** @type {Code} */
  code = "INVALID";
}

/** Release or renewal of what was released already or never held. */
export class NotHeld extends RedlockError {
  /** @type {Code} */
  code = "NOT_HELD";
}

/** Something other than this kind of lock stands at the name. */
export class WrongKind extends RedlockError {
  /** @type {Code} */
  code = "WRONG_KIND";
}

/** The server, or this version of libredlock, can't do it. */
export class Unsupported extends RedlockError {
  /** @type {Code} */
  code = "UNSUPPORTED";
}

/** The client is closed: connect a new one. */
export class Closed extends RedlockError {
  /** @type {Code} */
  code = "CLOSED";
}

/** A bug in libredlock. Please report it. */
export class InternalError extends RedlockError {}

/**
 * The class of each status. HELD is missing: tryAcquire answers it with null, and a waiting acquire waits.
 * @type {Map<number, typeof RedlockError>}
 */
const byStatus = new Map([
  [Status.TIMEOUT, AcquireTimeout],
  [Status.LOST, LockLost],
  [Status.UNAVAILABLE, Unavailable],
  [Status.CANCELED, Canceled],
  [Status.INVALID, InvalidUse],
  [Status.NOT_HELD, NotHeld],
  [Status.WRONG_KIND, WrongKind],
  [Status.UNSUPPORTED, Unsupported],
  [Status.CLOSED, Closed],
  [Status.INTERNAL, InternalError],
]);

// As text: a bundler may give classes other names.
const classNames = new Map(
  Object.entries({
    RedlockError,
    AcquireTimeout,
    LockLost,
    Unavailable,
    Canceled,
    InvalidUse,
    NotHeld,
    WrongKind,
    Unsupported,
    Closed,
    InternalError,
  }).map(([name, { prototype }]) => [/** @type {object} */ (prototype), name]),
);

/**
 * The error of an outcome of the machine that is not OK.
 * @param {import("./machine.js").Outcome} outcome
 * @param {AbortSignal} [signal] of the caller, if it has one
 */
export function errorOf([, status, message, causes], signal) {
  const nodes = /** @type {import("./machine.js").NodeCause[]} */ (causes).map(
    ([node, address, cause]) => `node ${node} (${address}): ${cause}`,
  );
  const options = status === Status.CANCELED ? { cause: signal?.reason } : undefined;
  return new (byStatus.get(status) ?? InternalError)(/** @type {string} */ (message), nodes, options);
}
