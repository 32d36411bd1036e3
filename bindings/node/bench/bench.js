/**
 * What a lock costs: acquire + release of an uncontended lock, beside the bare client sending the same commands and beside
 * other libraries, on one redis-server that this starts.
 *
 *     node bench/bench.js [rounds [milliseconds]]
 *
 * Machines are noisy, so contestants take turns in short runs; the tables show medians, and ratios are the medians of the
 * ratios within a round. The first round warms up and is not counted.
 */

import { contestants } from "./contestants.js";
import { coldStart, machineSteps } from "./parts.js";
import { startServer } from "./server.js";

const [rounds = 15, milliseconds = 200] = process.argv.slice(2).map(Number);

const server = await startServer();
const field = await contestants(server);

for (const callers of [1, 1000]) {
  const times = Object.fromEntries(Object.keys(field).map((name) => [name, []]));
  for (let round = 0; round <= rounds; round++) {
    for (const [name, locksOf] of Object.entries(field)) {
      const time = await run(locksOf, callers);
      if (round > 0) {
        times[name].push(time);
      }
    }
  }
  show(callers, times);
}

console.log("\nµs a step of the machine, four of which make a pair; with its JSON, both ways");
console.table(await machineSteps(server.url));
console.log("\na fresh process, with one client");
console.table(await coldStart(server.url));
process.exit(await server.stop());

/** Microseconds that a pair takes. */
async function run(pairOf, callers) {
  const began = performance.now();
  const until = began + milliseconds;
  let pairs = 0;
  const worker = async (caller) => {
    const pair = pairOf(`bench:${String(caller).padStart(4, "0")}`);
    do {
      await pair();
      pairs += 1;
    } while (performance.now() < until);
  };
  await Promise.all(Array.from({ length: callers }, (_, caller) => worker(caller)));
  return ((performance.now() - began) * 1000) / pairs;
}

function show(callers, times) {
  console.log(`\n${callers} caller${callers > 1 ? "s" : ""}, µs a pair (${rounds} rounds of ${milliseconds} ms)`);
  const limit = { ioredis: times["ioredis, the same commands"], "node-redis": times["node-redis, the same commands"] };
  const rows = Object.entries(times).map(([name, list]) => {
    const ratio = (base) => median(list.map((time, round) => time / base[round])).toFixed(2);
    return {
      contestant: name,
      "µs a pair": median(list).toFixed(1),
      "time of bare ioredis": ratio(limit.ioredis),
      "of bare node-redis": ratio(limit["node-redis"]),
    };
  });
  console.table(rows);
}

function median(list) {
  return [...list].sort((a, b) => a - b)[list.length >> 1];
}
