/** One of the demo's programs: ../../main.go says what it does, ../../race.go what it prints. */

import { readFile, writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";

import { connect } from "../../../../bindings/node/src/index.js";

const [, , name, counter] = process.argv;

/** Takes turns until the input ends. */
async function main() {
  let ended = false;
  process.stdin.on("end", () => (ended = true)).resume();
  const redlock = await connect({ nodes: String(process.env.REDLOCK_NODES).split(",") });
  const lock = redlock.mutex(name, { ttlMs: 5000 });
  while (!ended) {
    tell("waiting");
    await lock.using(async (held) => {
      tell("acquired", held.fence);
      await bump();
      tell("released");
    });
    await pause(5, 80); // so that a program that waits gets its turn
  }
  await redlock.close();
}

/** Reads, works and writes: without the lock, updates are lost here. */
async function bump() {
  const value = Number(await readFile(counter, "utf8"));
  await pause(10, 40); // the work
  await writeFile(counter, `${value + 1}\n`);
}

/** Sleeps for some milliseconds between two. */
function pause(least, most) {
  return sleep(least + Math.random() * (most - least));
}

/** Prints an event, with the time at which it is called. */
function tell(kind, ...fence) {
  process.stdout.write(`${[kind, process.hrtime.bigint(), ...fence].join(" ")}\n`);
}

await main();
