/** One node: what is sent to it, when it has taken too long, and the connection that it goes over. */

import { cause, isFull, isReply, neverWritten, timeoutCause } from "./cause.js";
import { encode, values } from "./codec.js";
import { readFacts } from "./facts.js";
import { Listener } from "./listener.js";
import { within } from "./within.js";

/** For a connection, its handshake and the facts. */
export const CONNECT_MS = 5000;
/** After a connection that could not be made, before the next. */
const PAUSE_MS = 50;
/** How old a link to several servers has to be before another takes its place because one of them has failed. */
const RENEW_MS = 1000;

const clockMs = performance.now.bind(performance);
const noop = () => {};

/**
 * A connection and when it last gave a sign of life.
 * @typedef {object} Line
 * @property {import("./clients/link.js").Link} link
 * @property {Promise<never>} ended rejects when it has ended
 * @property {number} madeMs
 * @property {number} heardMs
 * @property {boolean} retired nothing is sent over it any more
 */

/**
 * A call without an answer.
 * @typedef {object} Call
 * @property {number} id
 * @property {number} timeout in microseconds
 * @property {number} deadlineMs
 * @property {string[]} args
 * @property {Line | undefined} line that it was written to; undefined: not written yet
 * @property {number} sentMs
 */

/** Sends calls to one Redis, each once, and answers each once. */
export class Node {
  #session;
  #index;
  #source;
  #listener;

  /** @type {Map<number, Call>} */
  #calls = new Map();
  /** @type {Call[]} Those that wait for a connection. */
  #waiting = [];

  /** @type {Line | undefined} */
  #line;
  /** @type {Set<Line>} All that are open, the retired and the one in the making too. */
  #lines = new Set();
  #connecting = false;
  /** @type {{error: unknown, atMs: number} | undefined} Why the last connection could not be made. */
  #failure;
  /** @type {unknown[]} What was read on the connection. */
  #facts = [];
  #closed = false;
  /** @type {import("./clients/link.js").Link | undefined} */
  #corked;

  /** @type {NodeJS.Timeout | undefined} */
  #timer;
  #armedMs = Infinity;

  /**
   * @param {import("./session.js").Session} session
   * @param {number} index
   * @param {import("./clients/link.js").Source} source
   */
  constructor(session, index, source) {
    this.#session = session;
    this.#index = index;
    this.#source = source;
    this.#listener = new Listener(source, index, (event) => session.post(event), (error) => this.#explain(error));
  }

  /**
   * Sends a command, over a connection that is made if there is none.
   * @param {number} id
   * @param {number} timeout in microseconds
   * @param {string[]} args
   */
  send(id, timeout, args) {
    const sentMs = clockMs();
    const call = { id, timeout, deadlineMs: sentMs + timeout / 1000, args, line: undefined, sentMs };
    this.#calls.set(id, call);
    this.#session.begin();
    this.#watch(call.deadlineMs);
    if (this.#line?.link.usable) {
      this.#write(call, this.#line);
    } else {
      this.#waiting.push(call);
      this.#connect();
    }
  }

  /** What is sent from here on waits, */
  cork() {
    this.#corked = this.#line?.link;
    this.#corked?.cork();
  }

  /** and leaves now, in one piece. */
  uncork() {
    this.#corked?.uncork();
    this.#corked = undefined;
  }

  /**
   * Starts or ends a subscription.
   * @param {string} channel
   * @param {boolean} on
   */
  listen(channel, on) {
    this.#listener.change(channel, on);
  }

  /** Tells a new machine of the connection that there is. */
  introduce() {
    if (this.#line) {
      this.#session.post(["connected", this.#index, ...this.#facts]);
    }
  }

  /** Forgets the calls and channels of a machine that is gone. */
  forgetCalls() {
    for (const _ of this.#calls) {
      this.#session.end();
    }
    this.#calls.clear();
    this.#waiting = [];
    this.#listener.forget();
  }

  /** Closes the connections. No call is answered any more. */
  close() {
    this.#closed = true;
    this.forgetCalls();
    clearTimeout(this.#timer);
    this.#listener.close();
    this.#line = undefined;
    for (const { link } of this.#lines) {
      link.close();
    }
    this.#lines.clear();
  }

  /**
   * @param {Call} call
   * @param {Line} line
   */
  #write(call, line) {
    call.line = line;
    call.sentMs = clockMs();
    const args = call.args.every((arg) => arg.isWellFormed()) ? call.args : call.args.map(encode);
    line.link.send(args).then(
      (reply) => {
        line.heardMs = clockMs();
        this.#answer(call, ["answer", call.id, values(reply)]);
      },
      (error) => {
        if (isReply(error)) {
          line.heardMs = clockMs();
        } else if (line.link.several) {
          this.#renew(line);
        }
        const fault = isReply(error) ? "error" : neverWritten(error) ? "refused" : "unknown";
        this.#answer(call, ["failed", call.id, fault, this.#explain(error)]);
      },
    );
  }

  /**
   * Tells the machine what became of a call, unless it was told already.
   * @param {Call} call
   * @param {import("./machine.js").Event} event
   */
  #answer(call, event) {
    if (this.#calls.get(call.id) !== call) {
      return;
    }
    this.#calls.delete(call.id);
    this.#session.post(event);
    this.#session.end();
    if (call.line?.retired) {
      this.#closeIfIdle(call.line);
    }
  }

  /**
   * Makes a connection, in its own time: if it took that of a call, a node whose handshake is slow would be tried for
   * ever and never reached.
   */
  async #connect() {
    if (this.#connecting || this.#closed) {
      return;
    }
    if (this.#failure && clockMs() - this.#failure.atMs < PAUSE_MS) {
      this.#refuse(this.#failure.error);
      return;
    }
    this.#connecting = true;
    try {
      const line = this.#newLine();
      try {
        this.#facts = await within(CONNECT_MS, "no connection", Promise.race([openAndRead(line.link), line.ended]));
      } catch (error) {
        this.#lines.delete(line);
        line.link.close();
        throw error;
      }
      this.#connecting = false;
      this.#failure = undefined;
      this.#begin(line);
    } catch (error) {
      this.#connecting = false;
      this.#failure = { error, atMs: clockMs() };
      this.#refuse(error);
    }
  }

  /** @returns {Line} */
  #newLine() {
    /** @type {(error: unknown) => void} */
    let end = noop;
    /** @type {Promise<never>} */
    const ended = new Promise((_, reject) => {
      end = reject;
    });
    ended.catch(noop); // it matters only while the connection is made
    const link = this.#source.link((error) => {
      end(error ?? new Error(cause(undefined)));
      this.#broke(line, error);
    });
    const line = { link, ended, madeMs: clockMs(), heardMs: clockMs(), retired: false };
    this.#lines.add(line);
    return line;
  }

  /**
   * Sends what has waited for the connection.
   * @param {Line} line
   */
  #begin(line) {
    if (this.#closed) {
      return;
    }
    const before = this.#line;
    this.#line = line;
    if (before) {
      before.retired = true; // it takes nothing more, though it has not ended
      this.#closeIfIdle(before);
    }
    this.introduce();
    const calls = this.#waiting.filter((call) => this.#calls.get(call.id) === call);
    this.#waiting = [];
    line.link.cork();
    for (const call of calls) {
      this.#write(call, line);
    }
    line.link.uncork();
  }

  /**
   * Answers what has waited for a connection that could not be made. If the server has something against us it says so
   * itself; else nothing was written.
   * @param {unknown} error
   */
  #refuse(error) {
    const calls = this.#waiting;
    this.#waiting = [];
    const fault = isReply(error) && !isFull(error) ? "error" : "refused";
    for (const call of calls) {
      this.#answer(call, ["failed", call.id, fault, this.#explain(error)]);
    }
  }

  /**
   * A connection has ended: what was written to it may have been executed or not.
   * @param {Line} line
   * @param {unknown} error
   */
  #broke(line, error) {
    this.#lines.delete(line);
    if (this.#line === line) {
      this.#line = undefined;
    }
    for (const call of this.#calls.values()) {
      if (call.line === line) {
        this.#answer(call, ["failed", call.id, "unknown", this.#explain(error)]);
      }
    }
  }

  /**
   * Sees to it that calls are looked at when one has taken too long. A timer that finds nothing costs less than one for
   * each call.
   * @param {number} deadlineMs
   */
  #watch(deadlineMs) {
    if (deadlineMs < this.#armedMs - 0.5) {
      clearTimeout(this.#timer);
      this.#armedMs = deadlineMs;
      // By way of setImmediate, so that a reply that came while the event loop was blocked is read first.
      this.#timer = setTimeout(() => setImmediate(this.#expire), Math.max(Math.ceil(deadlineMs - clockMs()), 1));
      this.#timer.unref();
    }
  }

  #expire = () => {
    this.#armedMs = Infinity;
    const nowMs = clockMs();
    let next = Infinity;
    for (const call of this.#calls.values()) {
      if (call.deadlineMs > nowMs) {
        next = Math.min(next, call.deadlineMs);
      } else if (call.line) {
        this.#retire(call.line, call);
        this.#answer(call, ["failed", call.id, "unknown", timeoutCause(call.timeout)]);
      } else {
        this.#answer(call, ["failed", call.id, "refused", `${timeoutCause(call.timeout)}, not sent`]);
      }
    }
    if (next !== Infinity) {
      this.#watch(next);
    }
  };

  /**
   * Sends nothing more over a connection that has been silent since a call was written that is late by now: it may be
   * dead without anybody having said so. Calls that are under way there may still be answered.
   * @param {Line} line
   * @param {Call} call
   */
  #retire(line, call) {
    if (line.link.several) {
      this.#renew(line);
    } else if (!line.retired && line.heardMs < call.sentMs) {
      line.retired = true;
      if (this.#line === line) {
        this.#line = undefined;
      }
    }
  }

  /**
   * Looks anew which servers there are, since one of them has failed. What can be made of it takes the place of a line
   * that goes on as it is until then: the other servers are none the worse.
   * @param {Line} line
   */
  #renew(line) {
    if (line === this.#line && clockMs() - line.madeMs > RENEW_MS) {
      this.#connect();
    }
  }

  /** @param {Line} line */
  #closeIfIdle(line) {
    for (const call of this.#calls.values()) {
      if (call.line === line) {
        return;
      }
    }
    this.#lines.delete(line);
    line.link.close();
  }

  /**
   * What an error says, without what is secret.
   * @param {unknown} error
   */
  #explain(error) {
    let text = cause(error);
    for (const secret of this.#source.secrets) {
      text = text.replaceAll(secret, "***");
    }
    return text;
  }
}

/** @param {import("./clients/link.js").Link} link */
async function openAndRead(link) {
  await link.open();
  return readFacts(link);
}
