/** What the hammer does: takes the lock as often as it can and bumps a counter that nothing but the lock protects. */

import { appendFileSync, closeSync, openSync, readFileSync, readSync, writeSync } from "node:fs";
import { setImmediate } from "node:timers/promises";

import { lockOf } from "./protocol.js";

export async function hammer(request, client) {
  const lock = lockOf(request, client);
  const until = performance.now() + request.number("seconds") * 1000;
  const counter = openSync(request.get("counter"), "r+");
  const bytes = Buffer.alloc(8);
  const lines = [];
  while (lines.length === 0 || performance.now() < until) {
    const held = await lock.acquire();
    const begin = boottimeNs();
    readSync(counter, bytes, 0, 8, 0);
    await setImmediate();
    bytes.writeBigUInt64LE(bytes.readBigUInt64LE() + 1n);
    writeSync(counter, bytes, 0, 8, 0);
    const end = boottimeNs();
    const { fence } = held;
    await held.release();
    lines.push(`${begin} ${end} ${fence}\n`);
  }
  closeSync(counter);
  appendFileSync(request.get("log"), lines.join(""));
  return lines.length;
}

/** CLOCK_BOOTTIME. Node has CLOCK_MONOTONIC, which lacks the time that the machine was suspended. */
function boottimeNs() {
  return process.hrtime.bigint() + suspendedNs;
}

// The uptime counts in hundredths of a second, so what it is ahead is exact once it has just been counted up; where
// there was no suspend, the two clocks are the same.
const suspendedNs = (() => {
  const uptime = () => BigInt(readFileSync("/proc/uptime", "latin1").split(" ")[0].replace(".", "")) * 10_000_000n;
  const before = uptime();
  let after = before;
  while (after === before) {
    after = uptime();
  }
  const ahead = after - process.hrtime.bigint();
  return ahead > -10_000_000n && ahead < 10_000_000n ? 0n : ahead;
})();
