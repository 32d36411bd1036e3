/**
 * What redlock.wasm asks of its system, WASI preview 1: next to nothing. It is given clocks and randomness for Go's own
 * runtime, no files, no arguments, no environment. What it writes to its standard error, which is the text of a panic,
 * is kept for whoever wants to know why it died.
 */

import { randomFillSync } from "node:crypto";

const OK = 0;
const BAD_FILE = 8;
const NO_SYSTEM_CALL = 52;

const EVENT_BYTES = 32;
const SUBSCRIPTION_BYTES = 48;

/** A process that is an instance of the module. */
export class Wasi {
  /** @type {WebAssembly.Memory | undefined} Set when there is an instance. */
  memory;

  /** What it wrote to its standard error. */
  text = "";

  #cached = new DataView(new ArrayBuffer(0));

  /**
   * The imports of a module: what this system has, and for every other function one that says it is missing.
   * @param {WebAssembly.Module} module
   * @param {Record<string, (...args: never[]) => unknown>} own functions of the host, by name
   */
  imports(module, own) {
    /** @type {WebAssembly.Imports} */
    const imports = {};
    for (const { module: from, name, kind } of WebAssembly.Module.imports(module)) {
      if (kind === "function") {
        imports[from] ??= {};
        imports[from][name] = own[name] ?? this.#functions[name] ?? (() => NO_SYSTEM_CALL);
      }
    }
    return imports;
  }

  /** @type {Record<string, (...args: any[]) => unknown>} */
  #functions = {
    args_sizes_get: (count, bytes) => this.#put([count, 0], [bytes, 0]),
    args_get: () => OK,
    environ_sizes_get: (count, bytes) => this.#put([count, 0], [bytes, 0]),
    environ_get: () => OK,
    fd_prestat_get: () => BAD_FILE,
    fd_fdstat_get: () => BAD_FILE,
    sched_yield: () => OK,

    clock_time_get: (id, _precision, at) => {
      const time = id === 0 ? BigInt(Date.now()) * 1_000_000n : process.hrtime.bigint();
      this.#view().setBigUint64(at, time, true);
      return OK;
    },

    random_get: (at, length) => {
      randomFillSync(this.#bytes(at, length));
      return OK;
    },

    // No thread may be held up here: all that is waited for has happened.
    poll_oneoff: (subscriptions, events, count, happened) => {
      for (let i = 0; i < count; i++) {
        this.#bytes(events + i * EVENT_BYTES, EVENT_BYTES).fill(0);
        const userdata = this.#view().getBigUint64(subscriptions + i * SUBSCRIPTION_BYTES, true);
        this.#view().setBigUint64(events + i * EVENT_BYTES, userdata, true);
      }
      return this.#put([happened, count]);
    },

    fd_write: (_descriptor, vectors, count, written) => {
      let length = 0;
      for (let i = 0; i < count; i++) {
        const at = this.#view().getUint32(vectors + i * 8, true);
        const part = this.#view().getUint32(vectors + i * 8 + 4, true);
        this.text += Buffer.from(this.#bytes(at, part)).toString("utf8");
        length += part;
      }
      return this.#put([written, length]);
    },

    proc_exit: (code) => {
      throw new Error(`redlock.wasm exited with ${code}: ${this.text}`);
    },
  };

  /** The memory, which is another after it grew. */
  #view() {
    const { buffer } = /** @type {WebAssembly.Memory} */ (this.memory);
    if (this.#cached.buffer !== buffer) {
      this.#cached = new DataView(buffer);
    }
    return this.#cached;
  }

  /**
   * @param {number} at
   * @param {number} length
   */
  #bytes(at, length) {
    return new Uint8Array(this.#view().buffer, at, length);
  }

  /** @param {[number, number][]} pairs of an address and the number to put there */
  #put(...pairs) {
    for (const [at, number] of pairs) {
      this.#view().setUint32(at, number, true);
    }
    return OK;
  }
}
