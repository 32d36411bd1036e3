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
 * Whatever goes wrong is a RedlockError. Durations are milliseconds.
 */

export { connect } from "./client.js";
export {
  AcquireTimeout,
  Canceled,
  Closed,
  InternalError,
  InvalidUse,
  LockLost,
  NotHeld,
  RedlockError,
  Status,
  Unavailable,
  Unsupported,
  WrongKind,
} from "./errors.js";
