/** What the parts cost. */

import { execFile } from "node:child_process";
import { promisify } from "node:util";

import { now } from "../src/clock.js";
import { connect } from "../src/index.js";
import { Machine } from "../src/machine.js";
import { compiledModule } from "../src/module.js";

/** Microseconds of a step: one after the other, and between what a client does beside it. */
export async function machineSteps(url) {
  return { "one after the other": (await alone()).toFixed(1), "in a client, one caller": (await inClient(url)).toFixed(1) };
}

async function alone(pairs = 50_000) {
  const machine = new Machine(await compiledModule());
  machine.step(now(), [["open", ["server"], "", 0, 0, "host", 1, "node"]]);
  const request = ["mutex", "bench:0001", 0, 10_000_000, null, null, null, null, null, 0, "", "00".repeat(16), Date.now() * 1000];
  const answered = (event) => {
    const { calls } = machine.step(now(), [event]);
    machine.step(now(), [["answer", calls[0][0], [1, 1_700_000_000_000_000]]]);
  };
  let began = 0;
  for (let pair = 0; pair < 2 * pairs; pair++) {
    if (pair === pairs) {
      began = performance.now(); // the first half warms up
    }
    answered(["acquire", 2 * pair + 1, ...request]);
    answered(["release", 2 * pair + 2, 2 * pair + 1]);
  }
  return ((performance.now() - began) * 1000) / (4 * pairs);
}

async function inClient(url, pairs = 10_000) {
  const client = await connect({ nodes: [url] });
  const mutex = client.mutex("bench:steps");
  const { step } = Machine.prototype;
  let spent = 0;
  let steps = 0;
  Machine.prototype.step = function (...args) {
    const began = performance.now();
    const effects = step.apply(this, args);
    spent += performance.now() - began;
    steps += 1;
    return effects;
  };
  for (let pair = 0; pair < 2 * pairs; pair++) {
    if (pair === pairs) {
      spent = steps = 0;
    }
    await (await mutex.acquire()).release();
  }
  Machine.prototype.step = step;
  await client.close();
  return (spent * 1000) / steps;
}

/** Milliseconds and megabytes of a fresh process, as medians. */
export async function coldStart(url, runs = 9) {
  const program = `
    const began = performance.now();
    const { connect } = await import(${JSON.stringify(new URL("../src/index.js", import.meta.url))});
    const imported = performance.now();
    const client = await connect({ nodes: [${JSON.stringify(url)}] });
    const connected = performance.now();
    await (await client.mutex("cold").acquire()).release();
    const used = performance.now();
    await client.close();
    console.log(JSON.stringify({
      "import, ms": imported - began, "connect, ms": connected - imported, "first acquire + release, ms": used - connected,
      "memory (RSS), MB": process.memoryUsage().rss / 1e6,
    }));`;
  const results = [];
  for (let i = 0; i < runs; i++) {
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program]);
    results.push(JSON.parse(stdout));
  }
  const median = (list) => list.sort((a, b) => a - b)[list.length >> 1];
  return Object.fromEntries(Object.keys(results[0]).map((key) => [key, median(results.map((r) => r[key])).toFixed(1)]));
}
