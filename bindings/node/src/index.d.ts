/**
 * Distributed locks over Redis.
 *
 *     import { connect } from "libredlock";
 *
 *     const redlock = await connect({ nodes: ["redis://127.0.0.1:6379"] });
 *     await redlock.mutex("orders:42", { ttlMs: 10_000 }).using(async (held) => {
 *       await writeWith(held.fence, { signal: held.signal }); // aborted if the lock is lost
 *     });
 *     await redlock.close();
 *
 * Whatever goes wrong is a RedlockError, but for an argument of a wrong type, which is a TypeError. Durations are
 * milliseconds.
 */

/**
 * A client of ioredis 5 or 6 (Redis, Cluster) or of node-redis 4, 5 or 6 (createClient, createCluster, createSentinel).
 * It is duplicated: its options are used, with connections of our own, and the client itself is left alone.
 */
export interface AppClient {
  duplicate(...args: any[]): unknown;
  connect(...args: any[]): Promise<unknown>;
}

export interface ConnectOptions {
  /**
   * One Redis, or several independent ones: then a lock needs a majority of them (Redlock). At most 15. Each is a URL,
   * `redis://[user:password@]host[:port][/db]` or `unix://[user:password@]/path[?db=n]`, or a client of the application.
   */
  nodes: readonly (string | AppClient)[];
  /** Put before the name of every lock. */
  prefix?: string | undefined;
  /** How long one node may take to answer, from 10 ms. Default: chosen by the ttl. */
  nodeTimeoutMs?: number | undefined;
  /** How long a wait without limit bears that too few nodes answer. Default: 10 s. */
  unavailableAfterMs?: number | undefined;
  /** Told of what endangers locks on a node. Default: a warning of the process. */
  onHealth?: ((notice: HealthNotice) => void) | undefined;
}

export interface HealthNotice {
  /** The index of the node. */
  node: number;
  /** Where it is; without a password. */
  address: string;
  cause: string;
}

export interface LockOptions {
  /** The lease, 100 ms to 24 h: how long the lock outlives a holder that died without release. Default: 10 s. */
  ttlMs?: number | undefined;
  /** Whether each hold gets a fencing token. Default: true. */
  fencing?: boolean | undefined;
  /** Whether the lease is extended until the release, each third of the ttl. Default: true. False is a fixed lease. */
  autoRenew?: boolean | undefined;
  /**
   * Whether who waits is told of a release. Default: true. With one node waiters stand in a FIFO queue in Redis, and a
   * release hands the lock over to the first; with several they ask again, at random, when it is published. False polls,
   * and tells nobody; the next three are for that alone.
   */
  queue?: boolean | undefined;
  /** Milliseconds between two attempts, 1 to 3,600,000. Default: 50. */
  retryDelayMs?: number | undefined;
  /** Up to so many milliseconds more, at random, 1 to 3,600,000. Default: as many as the delay. */
  retryJitterMs?: number | undefined;
  /** After how many attempts `acquire` rejects with AcquireTimeout or Unavailable. Default: as many as `waitMs` allows. */
  maxTries?: number | undefined;
  /** Milliseconds after which a hold is lost, 100 or more. Default: no limit. */
  maxHoldMs?: number | undefined;
  /** Shown by `inspect` beside host, process and language. */
  metadata?: string | undefined;
}

export interface SemaphoreOptions extends LockOptions {
  /**
   * How many may hold it, 1 to 10,000. Who asks says how many there are: with more than before others get in at once, with
   * fewer those who are in stay until they release.
   */
  permits: number;
}

export interface Cancelable {
  /** Ends the operation with Canceled, which has its reason as `cause`. A wait that was ended leaves nothing behind. */
  signal?: AbortSignal | undefined;
}

export interface WaitOptions extends Cancelable {
  /** How long to wait at most. Default, and for Infinity: without limit. */
  waitMs?: number | undefined;
}

/**
 * Makes a client. It asks no node: the first request connects.
 *
 * An idle client does not keep the process alive, nor does a lock that is held; an operation that is under way does. When
 * nothing else is left to do, the process releases what it holds and ends.
 *
 * @throws {InvalidUse} an argument makes no sense
 * @throws {Unsupported} a URL asks for what this version can't
 */
export function connect(options: ConnectOptions): Promise<Redlock>;

/** A client; made by `connect`. With `await using` it is closed at the end of the block. */
export interface Redlock extends AsyncDisposable {
  /**
   * Describes a lock that one holder has at a time. Acquires nothing and asks no node.
   *
   * @param name the key in Redis, after the client's prefix; up to 1024 bytes of UTF-8
   * @throws {InvalidUse} an argument can't be what it is meant to be; limits such as those of the ttl are checked when the
   *   lock is acquired
   */
  mutex(name: string, options?: LockOptions): Mutex;

  /**
   * Describes a lock that several holders have at a time, each with a slot. Acquires nothing and asks no node.
   *
   *     await redlock.semaphore("gpu", { permits: 3 }).using(async (held) => run(held.slot));
   *
   * @param name the key in Redis, after the client's prefix; not one that a mutex uses
   * @throws {InvalidUse} an argument can't be what it is meant to be; limits such as those of permits are checked when the
   *   lock is acquired
   */
  semaphore(name: string, options: SemaphoreOptions): Semaphore;

  /**
   * Reads who holds a mutex. Locks of every kind have an `inspect` of their own.
   *
   * @throws {Unavailable} too few nodes answered
   * @throws {WrongKind} something that is no mutex stands there
   */
  inspect(name: string): Promise<Inspection>;

  /**
   * Takes a mutex away from the holder whose digest `inspect` showed. Locks of every kind have a `forceRelease` of their
   * own. A last resort: that holder may still be working, and finds out at its next renewal or release.
   *
   * @throws {NotHeld} there is no such holder
   * @throws {Unavailable} too few nodes answered
   */
  forceRelease(name: string, digest: string): Promise<void>;

  /**
   * Closes the client: waits reject with Closed, and what it holds is lost and released. Takes at most the node timeout.
   * Closing twice does nothing.
   */
  close(): Promise<void>;
}

/**
 * A lock of any kind.
 *
 * It describes the lock and holds nothing itself, so it never changes, and any number of callers may use it at once.
 */
export interface Lock {
  /** The name of the lock, without the client's prefix. */
  readonly name: string;

  /**
   * Acquires the lock, waiting for it.
   *
   * @throws {AcquireTimeout} it was held by others until the limit, or at all of maxTries
   * @throws {Unavailable} too few nodes answered until the limit, or for unavailableAfterMs
   * @throws {Canceled} the signal was aborted
   * @throws {WrongKind} something else stands at the name
   * @throws {InvalidUse} an argument of the lock is beyond its limits
   * @throws {Unsupported} an option of the lock can't be had
   * @throws {Closed} the client is closed
   */
  acquire(options?: WaitOptions): Promise<Held>;

  /** Acquires the lock if it is free now, else gives null. Rejects as acquire does. */
  tryAcquire(options?: Cancelable): Promise<Held | null>;

  /**
   * Runs a function while the lock is held: acquires it, awaits what the function returns, releases it and gives that.
   *
   * Rejects with what the function throws; else, if the lock was lost meanwhile, with LockLost, when the function has
   * ended. `held.signal` tells the function at once. A release that could not be confirmed is only warned of.
   */
  using<T>(body: (held: Held) => T | PromiseLike<T>, options?: WaitOptions): Promise<T>;

  /**
   * Reads who holds the lock.
   *
   * @throws {Unavailable} too few nodes answered
   * @throws {WrongKind} something else stands at the name, such as a lock of another kind
   */
  inspect(): Promise<Inspection>;

  /**
   * Takes the lock away from the holder whose digest `inspect` showed. A last resort: that holder may still be working, and
   * finds out at its next renewal or release.
   *
   * @throws {NotHeld} there is no such holder
   * @throws {Unavailable} too few nodes answered
   */
  forceRelease(digest: string): Promise<void>;
}

/**
 * A lock that one holder has at a time; made by `Redlock.mutex`. It is not reentrant: who holds it and acquires it again,
 * waits.
 */
export interface Mutex extends Lock {}

/**
 * A lock that several holders have at a time, each with a slot; made by `Redlock.semaphore`. It is not reentrant: who holds
 * it and acquires it again, takes another slot, or waits for one.
 */
export interface Semaphore extends Lock {}

/**
 * A lock that is held, and the only one that can renew and release it.
 *
 * With `await using` it is released at the end of the block, as with `Lock.using`. One that is garbage-collected
 * unreleased is released, with a warning.
 */
export interface Held extends AsyncDisposable {
  /** The name of the lock, without the client's prefix. */
  readonly name: string;
  /**
   * The fencing token: larger than that of every earlier holder of the name. Give it to whatever the lock protects, which
   * refuses a write with a smaller one than it has seen. 0n if the lock was made with `fencing: false`.
   */
  readonly fence: bigint;
  /**
   * Which of a semaphore's permits this is, from 0; null for other kinds of lock. With one node it is the lowest that was
   * free. Fencing tokens increase for each slot on its own: whatever the lock protects keeps the largest of each.
   */
  readonly slot: number | null;
  /** The value that stands in Redis while the lock is held. */
  readonly token: string;
  /** How long the lock is certainly ours; 0 when it is lost or released. */
  readonly remainingMs: number;
  /**
   * Aborted when the lock is lost, though not by its release; its reason is a LockLost, or Closed if the client was closed.
   * It looks at the clock whenever it is asked, so it is right even after the event loop was blocked.
   */
  readonly signal: AbortSignal;

  /**
   * Extends the lease to ttlMs from now.
   *
   * @param ttlMs the new lease, which later renewals keep to; default: the one that it has
   * @throws {LockLost} it is gone; stop the work
   * @throws {Unavailable} too few nodes answered; it is held until the old deadline
   * @throws {NotHeld} it was released already
   * @throws {Closed} the client was closed, which ended the hold
   */
  renew(ttlMs?: number, options?: Cancelable): Promise<void>;

  /**
   * Releases the lock. Whatever comes of it, the hold has ended.
   *
   * @throws {LockLost} it had been lost before
   * @throws {Unavailable} too few nodes answered; the lock ends with its lease
   * @throws {NotHeld} it was released already
   * @throws {Closed} the client was closed, which ended the hold
   */
  release(): Promise<void>;
}

/** Who holds a name. */
export interface Inspection {
  kind: "mutex" | "semaphore";
  /** Whether somebody holds the name on any node. */
  held: boolean;
  /** Empty if the name is free; several of a semaphore, or if the nodes disagree: those on most nodes first, then by slot. */
  holders: Holder[];
  /** The largest fencing token that a node remembers; 0n if none does. */
  fence: bigint;
  /** How many clients wait in the queue. */
  queueLength: number;
  /** Milliseconds that the first of them has waited. */
  queueAgeMs: number;
}

/** One holder of a name. */
export interface Holder {
  /** "host/pid/language/metadata"; empty for a value of another library. */
  who: string;
  /** Names this hold: what `forceRelease` takes. */
  digest: string;
  /** How long until the key, or a semaphore's slot, expires; null if it never does. */
  ttlMs: number | null;
  /** On how many nodes it is the holder. */
  nodes: number;
  /** Of a semaphore, which of its permits; null for other kinds. */
  slot: number | null;
}

/** How an operation ended. The numbers are the same in every language and never change. */
export const Status: Readonly<{
  OK: 0;
  HELD: 1;
  TIMEOUT: 2;
  LOST: 3;
  UNAVAILABLE: 4;
  CANCELED: 5;
  INVALID: 6;
  NOT_HELD: 7;
  WRONG_KIND: 8;
  UNSUPPORTED: 9;
  CLOSED: 10;
  INTERNAL: 11;
}>;

/** What happened, as a word that all languages share. */
export type Code = Exclude<keyof typeof Status, "OK">;

/** The base of all errors of libredlock. */
export class RedlockError extends Error {
  protected constructor(message: string);
  readonly code: Code;
  /** The code as a number. */
  readonly status: number;
  /**
   * Why each node that failed did so, for instance "node 2 (127.0.0.1:6381): timeout after 50 ms". Never holds a password.
   */
  readonly nodes: readonly string[];
}

/** Somebody else held the lock until the wait limit, or at all of maxTries. Try again later. */
export class AcquireTimeout extends RedlockError {
  readonly code: "TIMEOUT";
}

/** The lock was ours and is no longer: stop the work that it protects. */
export class LockLost extends RedlockError {
  readonly code: "LOST";
}

/** Too few nodes answered; what an attempt may have left is being removed. Back off. */
export class Unavailable extends RedlockError {
  readonly code: "UNAVAILABLE";
}

/** The caller gave up; `cause` is the reason of its AbortSignal. */
export class Canceled extends RedlockError {
  readonly code: "CANCELED";
}

/** An argument is out of its limits, or the operation makes no sense now. */
export class InvalidUse extends RedlockError {
  readonly code: "INVALID";
}

/** Release or renewal of what was released already or never held. */
export class NotHeld extends RedlockError {
  readonly code: "NOT_HELD";
}

/** Something other than this kind of lock stands at the name. */
export class WrongKind extends RedlockError {
  readonly code: "WRONG_KIND";
}

/** The server, or this version of libredlock, can't do it. */
export class Unsupported extends RedlockError {
  readonly code: "UNSUPPORTED";
}

/** The client is closed: connect a new one. */
export class Closed extends RedlockError {
  readonly code: "CLOSED";
}

/** A bug in libredlock. Please report it. */
export class InternalError extends RedlockError {
  readonly code: "INTERNAL";
}
