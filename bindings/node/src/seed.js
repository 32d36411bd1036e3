/** Randomness for tokens, from the system's CSPRNG. */

import { randomFillSync } from "node:crypto";

const SEED_BYTES = 16;

// Asked for in larger pieces, since each time costs about as much as a step of the machine.
const pool = Buffer.allocUnsafeSlow(256 * SEED_BYTES);
let used = pool.length;

/** Sixteen bytes in hex, never given before. */
export function freshSeed() {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += SEED_BYTES;
  return pool.toString("hex", used - SEED_BYTES, used);
}
