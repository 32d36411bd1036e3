/**
 * node-redis 4, 5 and 6: the application's own clients, for one server, a Sentinel deployment or a cluster. They are
 * duplicated: a duplicate connects once, keeps nothing for later and repeats nothing.
 */

import { Unsupported } from "../errors.js";
import { askAny, firstKey } from "./cluster.js";

/** @typedef {import("./link.js").Link} Link */
/** @typedef {import("./link.js").Source} Source */

/**
 * A master of a cluster, with the client for it, once that is needed; in version 4 the promise of one, at first.
 * @typedef {{client?: any, host?: string, port?: number}} Master
 */

/**
 * What is used of a client, of whichever version and for whichever deployment.
 * @typedef {object} NodeRedis
 * @property {Record<string, any>} [options]
 * @property {Record<string, any>} [_options] of a cluster
 * @property {boolean} [isReady]
 * @property {Master[]} [masters] of a cluster
 * @property {{client?: any}} [pubSubNode] of a cluster
 * @property {(master: Master) => any} [nodeClient] of a cluster
 * @property {(options: Record<string, unknown>) => NodeRedis} duplicate
 * @property {() => Promise<unknown>} connect
 * @property {() => unknown} [destroy]
 * @property {() => unknown} disconnect
 * @property {() => void} [unref]
 * @property {(...args: any[]) => Promise<unknown>} sendCommand
 * @property {(channel: string | Buffer, heard: (message: Buffer) => void, buffers: true) => Promise<unknown>} subscribe
 * @property {(channel: string | Buffer) => Promise<unknown>} unsubscribe
 * @property {(event: string, listener: (...args: any[]) => void) => unknown} on
 */

const BLOB_STRING = 36; // RESP's "$"

// Strings as Buffers, which version 4 is asked for in another way. The machine has its own timeout.
const commandOptions = { typeMapping: { [BLOB_STRING]: Buffer }, timeout: undefined };
const callOptions = { ...commandOptions, returnBuffers: true };

const once = {
  commandOptions,
  disableOfflineQueue: true,
  disableClientInfo: true,
  commandsQueueMaxLength: undefined,
  pingInterval: undefined,
  clientSideCache: undefined,
  emitInvalidate: undefined,
  maintNotifications: "disabled",
  keyPrefix: undefined,
  RESP: 2,
};

/** @param {Record<string, any>} [socket] */
function connectOnce(socket) {
  return { ...socket, reconnectStrategy: false };
}

/**
 * How the clients of a deployment differ.
 * @typedef {object} Deployment
 * @property {Record<string, unknown>} overrides for the duplicate
 * @property {(client: NodeRedis, args: (string | Buffer)[]) => Promise<unknown>} send
 * @property {(client: NodeRedis) => void} unref
 * @property {"the client" | "one connection" | "nothing"} lost with an error
 */

/**
 * @param {NodeRedis} client
 * @returns {Deployment}
 */
function standalone(client) {
  return {
    overrides: { ...once, socket: connectOnce(client.options?.socket) },
    send: (redis, args) => redis.sendCommand(args, callOptions),
    unref: (redis) => redis.unref?.(),
    lost: "the client",
  };
}

/**
 * @param {NodeRedis} client
 * @returns {Deployment}
 */
function cluster(client) {
  const defaults = clusterDefaults(client);
  return {
    overrides: {
      RESP: 2,
      clientSideCache: undefined,
      minimizeConnections: true, // else a master that is down keeps the others from being used
      defaults: { ...defaults, ...once, socket: connectOnce(defaults.socket) },
    },
    send: sendToCluster,
    unref: (redis) => {
      for (const { client: node } of redis.masters ?? []) {
        node?.unref?.();
      }
    },
    lost: "one connection",
  };
}

/**
 * @param {NodeRedis} redis
 * @param {(string | Buffer)[]} args
 */
async function sendToCluster(redis, args) {
  const [key, masters] = [firstKey(args), redis.masters ?? []];
  for (const master of masters) {
    if (master.client?.isOpen === false) {
      master.client = undefined; // so that it connects again, which it would not do with a connection that broke
    }
  }
  if (key !== undefined) {
    const sent = redis.sendCommand(key, false, args, callOptions);
    unrefConnecting(masters);
    return sent;
  }
  if (redis.pubSubNode) {
    return (await redis.pubSubNode.client).sendCommand(args, callOptions); // this is asked after the subscriptions
  }
  return askAny(masters, async (master) => {
    const connecting = redis.nodeClient?.(master);
    unrefConnecting(masters);
    return (await connecting).sendCommand(args, callOptions);
  });
}

/**
 * Version 4 tells nobody when a connection is made.
 * @param {Master[]} masters
 */
function unrefConnecting(masters) {
  for (const { client } of masters) {
    client?.then?.((/** @type {NodeRedis} */ connected) => connected.unref?.(), () => {});
  }
}

/**
 * What the clients of a cluster's nodes have in common.
 * @param {NodeRedis} client
 * @returns {Record<string, any>}
 */
function clusterDefaults(client) {
  if (client._options) {
    return client._options.defaults ?? {};
  }
  // Version 4 shows its own options to nobody, but those of a node that it is connected to.
  const node = client.masters?.map((master) => /** @type {NodeRedis} */ (master.client)).find((each) => each?.options);
  if (!node?.options) {
    throw new Unsupported("a cluster client of node-redis 4 has to be connected before it is used here");
  }
  const { host, port, ...socket } = node.options.socket ?? {};
  return { ...node.options, socket };
}

/** @type {Deployment} */
const sentinel = {
  overrides: { maxCommandRediscovers: 0, RESP: 2, clientSideCache: undefined },
  send: (redis, args) => redis.sendCommand(false, args, callOptions),
  unref: () => {}, // it shows nobody its connections
  lost: "nothing",
};

/**
 * A source from the application's own client.
 * @param {NodeRedis} client
 * @returns {Source}
 */
export function fromNodeRedis(client) {
  const options = client.options ?? client._options ?? {};
  const { address, deployment } = describe(client, options);
  return {
    address,
    keyPrefix: options.keyPrefix ?? "",
    secrets: [options.password, options.defaults?.password].filter(Boolean),
    link: (onClosed) => new NodeRedisLink(client.duplicate(deployment.overrides), deployment, onClosed),
  };
}

/**
 * @param {NodeRedis} client
 * @param {Record<string, any>} options
 */
function describe(client, options) {
  if (client.masters) {
    const nodes = options.rootNodes?.map(place) ?? client.masters.map(({ host, port }) => `${host}:${port}`);
    return { address: `cluster ${nodes.join(",")}`, deployment: cluster(client) };
  }
  if ("getMasterNode" in client || "acquire" in client) {
    return { address: "sentinel", deployment: sentinel };
  }
  return { address: place(options), deployment: standalone(client) };
}

/** @param {Record<string, any>} options */
function place({ url, socket = {} }) {
  if (socket.path) {
    return socket.path;
  }
  const parsed = url ? new URL(url) : undefined;
  return `${socket.host ?? parsed?.hostname ?? "localhost"}:${socket.port ?? (parsed?.port || 6379)}`;
}

/** @implements {Link} */
class NodeRedisLink {
  #redis;
  #deployment;
  #open = false;

  /**
   * @param {NodeRedis} redis
   * @param {Deployment} deployment
   * @param {(error?: unknown) => void} onClosed
   */
  constructor(redis, deployment, onClosed) {
    this.#redis = redis;
    this.#deployment = deployment;
    const failed = (/** @type {unknown} */ error) => {
      if (!this.#open) {
        return; // connect() says what is wrong
      }
      if (deployment.lost === "the client") {
        this.close();
        onClosed(error);
      } else if (redis.pubSubNode?.client?.isOpen === false) {
        onClosed(error); // and with it all subscriptions
      }
    };
    redis.on("error", failed);
    redis.on("node-error", failed);
    redis.on("end", () => onClosed());
    redis.on("node-connect", () => deployment.unref(redis));
  }

  async open() {
    if (!this.#redis.masters) {
      this.#deployment.unref(this.#redis);
    }
    await this.#redis.connect();
    this.#deployment.unref(this.#redis);
    this.#open = true;
  }

  get several() {
    return this.#deployment.lost === "one connection";
  }

  get usable() {
    return this.#open && this.#redis.isReady !== false;
  }

  /** @param {(string | Buffer)[]} args */
  send(args) {
    return this.#deployment.send(this.#redis, args);
  }

  // It writes what it was given in one turn of the event loop in one piece.
  cork() {}
  uncork() {}

  /**
   * @param {string | Buffer} channel
   * @param {(message: Buffer) => void} heard
   */
  subscribe(channel, heard) {
    return this.#redis.subscribe(channel, heard, true);
  }

  /** @param {string | Buffer} channel */
  unsubscribe(channel) {
    return this.#redis.unsubscribe(channel);
  }

  close() {
    this.#open = false;
    try {
      const ended = this.#redis.destroy ? this.#redis.destroy() : this.#redis.disconnect();
      Promise.resolve(ended).catch(() => {});
    } catch {
      // It was closed already.
    }
  }
}
