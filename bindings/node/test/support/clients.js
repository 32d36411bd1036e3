/** Clients of the tests, closed with the test that made them. */

import { connect } from "../../src/index.js";

// On a busy machine a node may be slow without being down.
const PATIENT_MS = 2000;

/** A client of nodes, which are URLs, servers or clients. */
export async function client(t, nodes, settings = {}) {
  const urls = [nodes].flat().map((node) => node.url ?? node);
  const redlock = await connect({ nodes: urls, nodeTimeoutMs: PATIENT_MS, ...settings });
  t.after(() => redlock.close());
  return redlock;
}

/** Keeps the event loop from running. */
export function block(ms) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
