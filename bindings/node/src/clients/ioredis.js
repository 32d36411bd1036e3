/** ioredis 5 and 6: the client for URLs, and the application's own. */

/** @typedef {import("./link.js").Link} Link */
/** @typedef {import("./link.js").Source} Source */

/**
 * What is used of an ioredis client.
 * @typedef {object} Ioredis
 * @property {string} status
 * @property {Record<string, any>} options
 * @property {any} [stream]
 * @property {boolean} [isCluster]
 * @property {(options: Record<string, unknown>) => Ioredis} duplicate
 * @property {() => Promise<void>} connect
 * @property {() => void} disconnect
 * @property {(command: string, ...args: any[]) => Promise<unknown>} callBuffer
 * @property {(channel: string | Buffer) => Promise<unknown>} subscribe
 * @property {(channel: string | Buffer) => Promise<unknown>} unsubscribe
 * @property {(event: string, listener: (...args: any[]) => void) => unknown} on
 */

/** A connection that sends a command once or not at all, and ends when it ends. */
export const once = {
  lazyConnect: true,
  retryStrategy: null,
  reconnectOnError: null,
  autoResendUnfulfilledCommands: false,
  autoResubscribe: false,
  enableOfflineQueue: false,
  enableAutoPipelining: false,
  enableReadyCheck: false, // the facts are read by us
  maxRetriesPerRequest: null,
  connectTimeout: 0, // ours
  commandTimeout: undefined, // the machine's
  socketTimeout: undefined,
  protocol: 2,
  disableClientInfo: true,
  keyPrefix: "",
  sentinelRetryStrategy: null,
  // AUTH and SELECT are sent by us: ioredis prints a warning when a password is not needed, and
  // goes on in database 0 when the one that it was told is not there.
  username: null,
  password: null,
  db: 0,
};

/**
 * @typedef {object} Handshake
 * @property {string | null} [username]
 * @property {string | null} [password]
 * @property {number} [db]
 */

/**
 * A source of connections.
 * @param {string} address
 * @param {() => Ioredis} make a client with the options of `once`
 * @param {Handshake} handshake
 * @returns {Source}
 */
export function ioredisSource(address, make, handshake) {
  return {
    address,
    keyPrefix: "",
    secrets: handshake.password ? [handshake.password] : [],
    link: (onClosed) => new IoredisLink(make(), handshake, onClosed),
  };
}

/**
 * A source from the application's own client.
 * @param {Ioredis} client
 * @returns {Source}
 */
export function fromIoredis(client) {
  const { options } = client;
  const address = options.sentinels
    ? `sentinel ${options.name}`
    : options.path ?? `${options.host ?? "localhost"}:${options.port ?? 6379}`;
  const source = ioredisSource(address, () => client.duplicate(once), options);
  source.keyPrefix = options.keyPrefix ?? "";
  if (options.sentinelPassword) {
    source.secrets.push(options.sentinelPassword);
  }
  return source;
}

/** @implements {Link} */
class IoredisLink {
  #redis;
  #handshake;
  /** @type {unknown} The last error, which says more than those that calls get. */
  #error;
  /** @type {Map<string, (message: Buffer) => void>} */
  #heard = new Map();

  /**
   * @param {Ioredis} redis
   * @param {Handshake} handshake
   * @param {(error?: unknown) => void} onClosed
   */
  constructor(redis, handshake, onClosed) {
    this.#redis = redis;
    this.#handshake = handshake;
    redis.on("error", (error) => {
      this.#error = error;
    });
    redis.on("close", () => onClosed(this.#error));
    redis.on("messageBuffer", (channel, message) => this.#heard.get(String(channel))?.(message));
  }

  async open() {
    const connected = this.#redis.connect();
    setImmediate(() => this.#redis.stream?.unref()); // it has come by then
    try {
      await connected;
    } catch (error) {
      throw this.#error ?? error;
    }
    this.#redis.stream.unref();
    const { username, password, db } = this.#handshake;
    const commands = [];
    if (username || password) {
      commands.push(this.send(["AUTH", ...(username ? [username] : []), password ?? ""]));
    }
    if (db) {
      commands.push(this.send(["SELECT", String(db)]));
    }
    await Promise.all(commands);
  }

  get usable() {
    return this.#redis.status === "ready" && this.#redis.stream.writable;
  }

  /** @param {(string | Buffer)[]} args */
  send([command, ...args]) {
    return this.#redis.callBuffer(String(command), args);
  }

  cork() {
    this.#redis.stream?.cork();
  }

  uncork() {
    this.#redis.stream?.uncork();
  }

  /**
   * @param {string | Buffer} channel
   * @param {(message: Buffer) => void} heard
   */
  subscribe(channel, heard) {
    this.#heard.set(String(channel), heard);
    return this.#redis.subscribe(channel);
  }

  /** @param {string | Buffer} channel */
  unsubscribe(channel) {
    this.#heard.delete(String(channel));
    return this.#redis.unsubscribe(channel);
  }

  close() {
    this.#redis.disconnect();
    this.#redis.stream?.destroy(); // disconnect alone waits for the other side
  }
}
