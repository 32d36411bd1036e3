/** What applications write, checked by tsc --strict; and that what is declared is what there is. */

import { createClient } from "redis-6";
import { Cluster, Redis } from "ioredis";

import { AcquireTimeout, LockLost, RedlockError, Status, Unavailable, connect } from "../src/index.js";
import type { Code, Held, Holder, Inspection, Lock, Mutex, Redlock, Semaphore } from "../src/index.js";
import * as errors from "../src/errors.js";
import { connect as implementation } from "../src/client.js";

export const same: typeof connect = implementation;
export const alike: (error: errors.LockLost) => Pick<LockLost, "nodes" | "status" | "message"> = (error) => error;
export const numbers: typeof Status = errors.Status;

export async function everything(signal: AbortSignal): Promise<number> {
  await using redlock: Redlock = await connect({
    nodes: ["redis://127.0.0.1:6379", new Redis(), new Cluster([]), createClient()],
    prefix: "app:",
    nodeTimeoutMs: 50,
    unavailableAfterMs: undefined,
    onHealth: ({ node, address, cause }) => console.log(node + 1, address.length, cause.length),
  });
  const lock: Mutex = redlock.mutex("orders:42", { ttlMs: 10_000, fencing: true, metadata: "job 7" });
  {
    await using held: Held = await lock.acquire({ waitMs: 2500, signal });
    const fence: bigint = held.fence;
    await fetch(`http://store/${fence}`, { signal: held.signal });
    await held.renew(30_000, { signal });
    await held.renew();
    console.log(held.name, held.token, held.remainingMs.toFixed());
    await held.release();
  }
  const tried: Held | null = await lock.tryAcquire();
  // @ts-expect-error it may be null
  tried.release();
  const result: number = await lock.using(async (held) => Number(held.fence), { signal });
  const sync: string = await lock.using((held) => held.name);
  const { holders, fence }: Inspection = await redlock.inspect(sync);
  holders.forEach(({ who, digest, ttlMs, nodes }: Holder) => console.log(who, digest, ttlMs ?? "never", nodes, fence));
  const some: Semaphore = redlock.semaphore("gpu", { permits: 3, ttlMs: 10_000 });
  const either: Lock = some ?? lock;
  const slot: number | null = await either.using((held) => held.slot);
  const slots: (number | null)[] = (await some.inspect()).holders.map((holder) => holder.slot);
  await some.forceRelease(holders[slots.indexOf(slot)]?.digest ?? "");
  await redlock.forceRelease("orders:42", holders[0]?.digest ?? "");
  await redlock.close();
  return result;
}

export async function failing(lock: Mutex): Promise<Code | "fine"> {
  try {
    await lock.acquire();
    return "fine";
  } catch (error) {
    if (error instanceof AcquireTimeout || error instanceof LockLost) {
      return error.code;
    }
    if (error instanceof Unavailable) {
      error.nodes.map((node) => node.length);
    }
    if (error instanceof RedlockError) {
      return error.status === Status.CANCELED && error.cause ? "CANCELED" : error.code;
    }
    throw error;
  }
}

export async function mistakes(redlock: Redlock): Promise<void> {
  // @ts-expect-error there are no seconds
  redlock.mutex("x", { ttl: 10 });
  // @ts-expect-error how many?
  redlock.semaphore("x", { ttlMs: 10 });
  // @ts-expect-error a mutex has one
  redlock.mutex("x", { permits: 1 });
  // @ts-expect-error not a duration
  redlock.mutex("x", { ttlMs: "10" });
  // @ts-expect-error one node is a list of one
  await connect({ nodes: "redis://h" });
  // @ts-expect-error no client
  await connect({ nodes: [{}] });
  // @ts-expect-error options, not a number
  await redlock.mutex("x").acquire(2500);
  // @ts-expect-error a name is needed
  await redlock.inspect();
  const held = await redlock.mutex("x").acquire();
  // @ts-expect-error a hold never changes
  held.fence = 1n;
}
