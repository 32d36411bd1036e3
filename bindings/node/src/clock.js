/**
 * The clock of every lease: monotonic, and counting while the machine is suspended.
 *
 * Node's own monotonic clock stands still during a suspend on Linux. os.uptime() does not, but it is coarse and costs
 * a system call. So it is read when the wall clock has run ahead, which a suspend shows, and once a second at least,
 * should the wall clock have been set back meanwhile; by what it is ahead, this clock is moved on.
 */

import { uptime } from "node:os";

// Taken now, so that a test framework's fake timers don't touch the leases.
const monotonicMs = performance.now.bind(performance);
const wallMs = Date.now;

/** What the coarse clocks may differ by without a suspend. */
const TOLERANCE_MS = 50;
const LOOK_AGAIN_MS = 1000;

const start = { monotonic: monotonicMs(), uptime: uptimeMs() };
let looked = { monotonic: start.monotonic, wall: wallMs() };
let suspendedMs = 0;

/** The time in microseconds, from an arbitrary point on. */
export function now() {
  const monotonic = monotonicMs();
  const passed = monotonic - looked.monotonic;
  if (passed > LOOK_AGAIN_MS || wallMs() - looked.wall - passed > TOLERANCE_MS) {
    look(monotonic);
  }
  return Math.floor((monotonic + suspendedMs) * 1000) + 1;
}

/** The wall clock in microseconds since 1970. */
export function wallUs() {
  return wallMs() * 1000;
}

/** @param {number} monotonic */
function look(monotonic) {
  const wall = wallMs();
  // Without os.uptime() whatever the wall clock is ahead counts as elapsed: a lease may end early, never late.
  const ahead = Number.isNaN(start.uptime)
    ? suspendedMs + (wall - looked.wall) - (monotonic - looked.monotonic)
    : uptimeMs() - start.uptime - (monotonic - start.monotonic);
  if (ahead > suspendedMs + TOLERANCE_MS) {
    suspendedMs = ahead;
  }
  looked = { monotonic, wall };
}

function uptimeMs() {
  try {
    return uptime() * 1000;
  } catch {
    return NaN; // a sandbox may forbid it
  }
}
