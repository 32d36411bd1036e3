/**
 * One open client: its machine, its nodes, who waits for what and which locks it holds. Client, Mutex and Held are faces
 * of it.
 */

import { hostname } from "node:os";

import { onAbort } from "./abort.js";
import { Hold, slotOf } from "./hold.js";
import { Machine } from "./machine.js";
import { Pump } from "./pump.js";
import { Node } from "./node.js";
import { Status } from "./errors.js";

/** @typedef {import("./machine.js").Event} Event */
/** @typedef {import("./machine.js").Outcome} Outcome */
/** @typedef {(outcome: Outcome) => void} Done */
/**
 * @typedef {object} Settings
 * @property {import("./clients/link.js").Source[]} sources one a node
 * @property {string} prefix
 * @property {number} nodeTimeout microseconds; 0: the default
 * @property {number} unavailableAfter likewise
 * @property {(node: number, address: string, cause: string) => void} onHealth
 */

const CLOSED = "the client is closed";

/** @type {Outcome} */
const canceled = [0, Status.CANCELED, "canceled by the caller", []];

const noop = () => {};

/** An open client. */
export class Session {
  /** Why it can't be used any more; "" while it can. */
  closed = "";
  /** How many machines there were before this one. A hold or call of an earlier one is nothing to it. */
  epoch = 0;

  #module;
  #settings;
  /** @type {Pump} */
  #pump;
  /** @type {Node[]} */
  #nodes;

  #lastOp = 0;
  /** @type {Map<number, Done>} Requests without an outcome. */
  #requests = new Map();
  /** @type {Map<number, Hold>} */
  #holds = new Map();

  // One timer keeps the process alive while something is under way, in place of all sockets and other timers.
  #keeper = setInterval(noop, 0x7fffffff).unref();
  #busy = 0;

  /** @type {Promise<void> | undefined} */
  #closing;

  /**
   * @param {WebAssembly.Module} module
   * @param {Settings} settings
   */
  constructor(module, settings) {
    this.#module = module;
    this.#settings = settings;
    this.#nodes = settings.sources.map((source, index) => new Node(this, index, source));
    this.#pump = this.#start();
  }

  /** A machine of its own, with the event that opens it in line. */
  #start() {
    const { sources, prefix, nodeTimeout, unavailableAfter } = this.#settings;
    const pump = new Pump(new Machine(this.#module), this.#apply, this.#fail);
    const addresses = sources.map((source) => source.address);
    pump.post(["open", addresses, prefix, nodeTimeout, unavailableAfter, hostname(), process.pid, "node"]);
    return pump;
  }

  /**
   * Asks the machine whether it takes the settings.
   * @returns {Promise<Outcome>}
   */
  opened() {
    return new Promise((resolve) => {
      this.#requests.set(0, resolve); // the outcome of "open" has no other id
    });
  }

  /**
   * Puts something that happened in line.
   * @param {Event} event
   */
  post(event) {
    this.#pump.post(event);
  }

  /**
   * Makes a request.
   * @param {Event} event whose first field is the place of its id
   * @param {Done} done called once, in the step that ends the request; it must not throw
   * @returns {number} its id
   */
  submit(event, done) {
    const op = ++this.#lastOp;
    if (this.closed && event[0] !== "close") {
      done([op, Status.CLOSED, this.closed, []]);
      return op;
    }
    event[1] = op;
    this.#requests.set(op, done);
    this.begin();
    this.#pump.post(event);
    return op;
  }

  /**
   * Makes a request and waits for its outcome, which is resolved with, not thrown: an error that is made by whoever awaits
   * has the stack of the caller.
   * @param {Event} event
   * @param {AbortSignal} [signal] ends an acquire or renew
   * @returns {Promise<Outcome>}
   */
  perform(event, signal) {
    return new Promise((resolve) => {
      if (signal?.aborted) {
        resolve(canceled);
        return;
      }
      const forget = signal && onAbort(signal, () => this.cancel(op));
      const op = this.submit(event, (outcome) => {
        forget?.();
        resolve(outcome);
      });
    });
  }

  /**
   * Acquires a lock. The hold is made in the step that grants it, since the next may tell of its loss.
   * @param {Event} event
   * @param {string} name
   * @param {AbortSignal | undefined} signal
   * @returns {Promise<Hold | Outcome>}
   */
  acquire(event, name, signal) {
    return new Promise((resolve) => {
      if (signal?.aborted) {
        resolve(canceled);
        return;
      }
      const forget = signal && onAbort(signal, () => this.cancel(op));
      const op = this.submit(event, (outcome) => {
        forget?.();
        if (outcome[1] !== Status.OK) {
          resolve(outcome);
          return;
        }
        const [id, , token, fence, deadline, , slot] = outcome;
        const which = slotOf(/** @type {import("./machine.js").Kind} */ (event[2]), Number(slot));
        const hold = new Hold(this, id, name, token, BigInt(Number(fence)), which, Number(deadline));
        if (signal?.aborted) {
          this.discard(hold); // it came in just before
          resolve(canceled);
          return;
        }
        this.#holds.set(id, hold);
        resolve(hold);
      });
    });
  }

  /**
   * Ends an acquire or renew that has no outcome yet.
   * @param {number} op
   */
  cancel(op) {
    if (this.#requests.has(op)) {
      this.#pump.post(["cancel", op]);
    }
  }

  /** Something is under way: the process stays. */
  begin() {
    if (this.#busy++ === 0) {
      this.#keeper.ref();
    }
  }

  /** It has ended. */
  end() {
    if (--this.#busy === 0) {
      this.#keeper.unref();
    }
  }

  /**
   * Releases a hold; from here on it is not ours, and not told to be lost.
   * @param {Hold} hold
   * @returns {Promise<Outcome>}
   */
  async release(hold) {
    hold.over = true;
    this.#holds.delete(hold.id);
    if (hold.epoch !== this.epoch) {
      return [0, Status.LOST, hold.lostBecause ?? "", []]; // the machine that knew it is gone
    }
    return this.perform(["release", 0, hold.id]);
  }

  /**
   * Releases a hold that nobody wants any more, without telling anybody how that went.
   * @param {Hold} hold
   */
  discard(hold) {
    if (!hold.over) {
      this.release(hold);
    }
  }

  /**
   * Ends in the machine a hold that was found to be lost before the machine has heard of it: a reply that waits to be read
   * may prolong the lease there, and it would be renewed for ever.
   * @param {Hold} hold
   */
  surrender(hold) {
    this.#holds.delete(hold.id);
    if (hold.epoch === this.epoch && !this.closed) {
      this.submit(["release", 0, hold.id], noop);
    }
  }

  /** Releases every hold, as when the process is about to end. */
  discardAll() {
    for (const hold of [...this.#holds.values()]) {
      this.discard(hold);
    }
  }

  /** What a client shows of itself: where its nodes are. */
  get addresses() {
    return this.#settings.sources.map((source) => source.address);
  }

  /**
   * Ends every wait with CLOSED, releases every hold and closes the connections.
   * @param {string} [reason]
   * @returns {Promise<void>}
   */
  close(reason = CLOSED) {
    this.#closing ??= new Promise((resolve) => {
      // From here on who asks is told so; the outcomes of what is under way are the machine's.
      this.submit(["close", 0], () => {
        this.#disconnect();
        resolve();
      });
      this.closed = reason;
    });
    return this.#closing;
  }

  /** Ends what a client that could not be opened has. */
  abandon() {
    this.closed = CLOSED;
    this.#disconnect();
  }

  #disconnect() {
    clearInterval(this.#keeper);
    this.#pump.end();
    for (const node of this.#nodes) {
      node.close();
    }
    this.#loseAll(this.closed);
  }

  /** @param {import("./machine.js").Effects} effects */
  #apply = ({ calls, subscriptions, outcomes, notices }) => {
    this.#send(calls);
    for (const [node, channel, on] of subscriptions) {
      this.#nodes[node].listen(channel, on);
    }
    for (const outcome of outcomes) {
      const done = this.#requests.get(outcome[0]);
      if (done) {
        this.#requests.delete(outcome[0]);
        if (outcome[0] !== 0) {
          this.end();
        }
        done(outcome);
      }
    }
    for (const [kind, id, what] of notices) {
      if (kind === "health") {
        const { onHealth } = this.#settings;
        onHealth(id, this.#settings.sources[id].address, String(what));
        continue;
      }
      const hold = this.#holds.get(id);
      if (hold && kind === "deadline") {
        hold.deadline = Number(what);
      } else if (hold) {
        this.#holds.delete(id);
        hold.lose(String(what));
      }
    }
  };

  /** @param {import("./machine.js").Call[]} calls */
  #send(calls) {
    if (calls.length === 1) {
      const [call, node, timeout, args] = calls[0];
      this.#nodes[node].send(call, timeout, args);
      return;
    }
    // What goes to the same node leaves in one piece.
    const nodes = new Set(calls.map(([, node]) => this.#nodes[node]));
    for (const node of nodes) {
      node.cork();
    }
    for (const [call, node, timeout, args] of calls) {
      this.#nodes[node].send(call, timeout, args);
    }
    for (const node of nodes) {
      node.uncork();
    }
  }

  /**
   * A step failed. Every hold is lost and every request INTERNAL; keys that are left end with their ttl. A new machine
   * takes over, which knows of nothing but the nodes.
   * @param {unknown} error
   */
  #fail = (error) => {
    const message = `a bug in libredlock, please report it: ${error instanceof Error ? error.message : String(error)}`;
    const requests = [...this.#requests];
    this.#requests.clear();
    this.epoch += 1;
    for (const node of this.#nodes) {
      node.forgetCalls();
    }
    this.#loseAll(message);
    if (!this.closed) {
      this.#restart();
    }
    for (const [op, done] of requests) {
      if (op !== 0) {
        this.end();
      }
      done([op, Status.INTERNAL, message, []]);
    }
  };

  #restart() {
    try {
      this.#pump = this.#start();
    } catch (error) {
      this.closed = `a bug in libredlock, please report it: ${error}`; // no instance can be made
      this.#disconnect();
      return;
    }
    for (const node of this.#nodes) {
      node.introduce();
    }
  }

  /** @param {string} cause */
  #loseAll(cause) {
    const holds = [...this.#holds.values()];
    this.#holds.clear();
    for (const hold of holds) {
      hold.lose(cause);
    }
  }
}
