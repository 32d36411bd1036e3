/** One node's subscriptions. */

import { isReply } from "./cause.js";
import { decode, encode } from "./codec.js";
import { within } from "./within.js";

/** Without a sign of life: ask whether the connection lives; and once more as long: it is dead. */
const IDLE_MS = 3000;
/** Between attempts to connect, after the first. */
const PAUSE_MS = 100;
const CONNECT_MS = 5000;

/** @typedef {import("./clients/link.js").Link} Link */

/**
 * One node's subscriptions, all on one connection that comes with the first of them. It tells the machine of each that is
 * confirmed, again after a reconnect, and of each that breaks or is refused.
 */
export class Listener {
  #source;
  #index;
  #post;
  #explain;

  /** @type {Map<string, boolean>} The channels that are wanted: whether they are confirmed. */
  #channels = new Map();
  /** @type {Link | undefined} */
  #link;
  /** @type {NodeJS.Timeout | undefined} Of the next attempt to connect, or of the next look at a silent connection. */
  #timer;
  #heard = false;
  #failures = 0; // in a row

  /**
   * @param {import("./clients/link.js").Source} source
   * @param {number} index
   * @param {(event: import("./machine.js").Event) => void} post
   * @param {(error: unknown) => string} explain
   */
  constructor(source, index, post, explain) {
    this.#source = source;
    this.#index = index;
    this.#post = post;
    this.#explain = explain;
  }

  /**
   * Starts or ends a subscription.
   * @param {string} channel
   * @param {boolean} on
   */
  change(channel, on) {
    if (on) {
      this.#channels.set(channel, false);
    } else {
      this.#channels.delete(channel);
    }
    const link = this.#link;
    if (link?.usable) {
      const done = on ? this.#subscribe(link, channel) : link.unsubscribe(encode(channel));
      done.catch((error) => this.#broke(link, error));
    } else if (on && !link && !this.#timer) {
      this.#connect();
    }
  }

  /** Forgets every channel. */
  forget() {
    for (const channel of [...this.#channels.keys()]) {
      this.change(channel, false);
    }
  }

  /** Ends it. */
  close() {
    this.#channels.clear();
    clearTimeout(this.#timer);
    this.#link?.close();
    this.#link = undefined;
  }

  async #connect() {
    this.#timer = undefined;
    if (this.#channels.size === 0) {
      return; // there will be a timer, or none, when the next is wanted
    }
    const link = this.#source.link((error) => this.#broke(link, error));
    this.#link = link;
    try {
      await within(CONNECT_MS, "no connection", link.open());
      await Promise.all([...this.#channels.keys()].map((channel) => this.#subscribe(link, channel)));
      if (this.#link === link) {
        this.#failures = 0;
        this.#heard = true;
        this.#watch(link);
      }
    } catch (error) {
      this.#broke(link, error);
    }
  }

  /**
   * @param {Link} link
   * @param {string} channel
   */
  async #subscribe(link, channel) {
    try {
      await link.subscribe(encode(channel), (message) => {
        this.#heard = true;
        if (this.#link === link && this.#channels.has(channel)) {
          this.#post(["message", this.#index, channel, decode(message)]);
        }
      });
    } catch (error) {
      if (!isReply(error)) {
        throw error;
      }
      this.#refused(link, channel, error);
      return;
    }
    if (this.#link === link && this.#channels.has(channel)) {
      this.#channels.set(channel, true);
      this.#post(["subscribed", this.#index, channel]);
    }
  }

  /**
   * Tells of a channel that the server does not allow, and asks for it again later: the client's rights may change.
   * @param {Link} link
   * @param {string} channel
   * @param {unknown} error
   */
  #refused(link, channel, error) {
    if (this.#link !== link || !this.#channels.has(channel)) {
      return;
    }
    this.#post(["dropped", this.#index, channel, this.#explain(error)]);
    setTimeout(() => {
      if (this.#link === link && this.#channels.get(channel) === false) {
        this.#subscribe(link, channel).catch((failure) => this.#broke(link, failure));
      }
    }, IDLE_MS).unref();
  }

  /**
   * Looks after a connection that says nothing.
   * @param {Link} link
   */
  #watch(link) {
    this.#timer = setTimeout(() => {
      if (this.#heard) {
        this.#heard = false;
        this.#watch(link);
        return;
      }
      within(IDLE_MS, "no sign of life", link.send(["PING"])).then(
        () => this.#link === link && this.#watch(link),
        (error) => this.#broke(link, error),
      );
    }, IDLE_MS).unref();
  }

  /**
   * Tells of every channel that was on, and connects again.
   * @param {Link} link
   * @param {unknown} error
   */
  #broke(link, error) {
    if (this.#link !== link) {
      return;
    }
    this.#link = undefined;
    link.close();
    clearTimeout(this.#timer);
    for (const [channel, on] of this.#channels) {
      if (on) {
        this.#channels.set(channel, false);
        this.#post(["dropped", this.#index, channel, this.#explain(error)]);
      }
    }
    this.#failures += 1;
    this.#timer = setTimeout(() => this.#connect(), this.#failures > 1 ? PAUSE_MS : 1).unref();
  }
}
