/**
 * One instance of redlock.wasm, which is the locks of one client: events go in, effects come out. The section "The
 * plugin: redlock.wasm" of docs/reference.md is the contract.
 */

import { Wasi } from "./wasi.js";

/** @typedef {[verb: string, ...fields: unknown[]]} Event */
/** @typedef {"mutex" | "semaphore"} Kind */
/** @typedef {[node: number, address: string, cause: string]} NodeCause */
/** @typedef {[who: string, digest: string, ttl: number | null, nodes: number, slot: number]} InspectedHolder */
/** @typedef {[kind: string, fence: number, holders: InspectedHolder[], queueLength: number, queueAge: number]} Inspected */
/**
 * @typedef {[op: number, status: number, token: string, fence: number | NodeCause[],
 *   deadline?: number | null, inspection?: Inspected | null, slot?: number]} Outcome
 * If the status is OK; else message and causes stand in the places of token and fence.
 */
/** @typedef {[kind: "lost" | "deadline" | "health", hold: number, what: string | number]} Notice */
/** @typedef {[call: number, node: number, timeout: number, args: string[]]} Call */
/** @typedef {[node: number, channel: string, on: boolean]} Subscription */
/**
 * @typedef {object} Effects
 * @property {Call[]} calls to send now, each to be answered once
 * @property {Subscription[]} subscriptions to start or end
 * @property {Outcome[]} outcomes
 * @property {Notice[]} notices
 * @property {number | null} wake when to send a tick
 */
/**
 * @typedef {object} Exports
 * @property {WebAssembly.Memory} memory
 * @property {() => void} _initialize
 * @property {() => number} linear_abi
 * @property {(length: number) => number} linear_buffer
 * @property {(length: number) => bigint} linear_step
 */

const ABI = 1;

/** @type {never[]} */
const none = [];

/** An instance. Whatever it throws, it is of no use afterwards. */
export class Machine {
  /** @type {Exports} */
  #exports;
  #bytes = Buffer.alloc(0);
  #wasi = new Wasi();
  /** @type {string | undefined} What the step has for redis_send. */
  #sends;

  // A span is an address and a length in one 64-bit number: taken apart without arithmetic.
  #span = new BigInt64Array(1);
  #half = new Uint32Array(this.#span.buffer);

  /** @param {WebAssembly.Module} module */
  constructor(module) {
    const imports = this.#wasi.imports(module, {
      redis_send: (/** @type {bigint} */ span) => {
        this.#sends = this.#read(span);
      },
    });
    const instance = new WebAssembly.Instance(module, imports);
    this.#exports = /** @type {Exports} */ (/** @type {unknown} */ (instance.exports));
    this.#wasi.memory = this.#exports.memory;
    this.#exports._initialize();
    const abi = this.#exports.linear_abi();
    if (abi !== ABI) {
      throw new Error(`redlock.wasm has version ${abi} of its interface; this package needs ${ABI}`);
    }
  }

  /**
   * Feeds events that happened.
   * @param {number} now
   * @param {Event[]} events
   * @returns {Effects}
   */
  step(now, events) {
    this.#sends = undefined;
    const output = JSON.parse(this.#run(JSON.stringify([now, events])));
    if (!Array.isArray(output)) {
      throw new Error(output);
    }
    const [outcomes, notices, wake] = output;
    const [calls, subscriptions] = this.#sends === undefined ? [none, none] : JSON.parse(this.#sends);
    return { calls, subscriptions, outcomes, notices, wake };
  }

  /**
   * @param {string} input
   * @returns {string}
   */
  #run(input) {
    const most = input.length * 3; // as UTF-8
    const address = this.#exports.linear_buffer(most) >>> 0;
    const length = this.#memory().write(input, address, most, "utf8");
    let span;
    try {
      span = this.#exports.linear_step(length);
    } catch (error) {
      throw this.#wasi.text ? new Error(this.#wasi.text.trim(), { cause: error }) : error;
    }
    return this.#read(span);
  }

  /** @param {bigint} span */
  #read(span) {
    this.#span[0] = span;
    const [length, address] = littleEndian ? this.#half : [this.#half[1], this.#half[0]];
    return this.#memory().toString("utf8", address, address + length);
  }

  /** The linear memory, which is another after it grew. */
  #memory() {
    const { buffer } = this.#exports.memory;
    if (this.#bytes.buffer !== buffer) {
      this.#bytes = Buffer.from(buffer);
    }
    return this.#bytes;
  }
}

const littleEndian = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1;
