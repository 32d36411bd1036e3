/** ioredis 5 and 6 for a cluster: the application's own client. */

import { askAny, firstKey } from "./cluster.js";
import { once } from "./ioredis.js";

/** @typedef {import("./link.js").Link} Link */
/** @typedef {import("./link.js").Source} Source */

/**
 * What is used of an ioredis Cluster.
 * @typedef {object} Cluster
 * @property {string} status
 * @property {Record<string, any>} options
 * @property {unknown[]} startupNodes
 * @property {(nodes: unknown[], options: Record<string, unknown>) => Cluster} duplicate
 * @property {() => Promise<void>} connect
 * @property {() => void} disconnect
 * @property {(role: string) => {stream?: any, callBuffer: Cluster["callBuffer"]}[]} nodes
 * @property {(command: string, ...args: any[]) => Promise<unknown>} callBuffer
 * @property {(channel: string | Buffer) => Promise<unknown>} subscribe
 * @property {(channel: string | Buffer) => Promise<unknown>} unsubscribe
 * @property {(event: string, listener: (...args: any[]) => void) => unknown} on
 */

/**
 * A source from the application's own client.
 * @param {Cluster} client
 * @returns {Source}
 */
export function fromIoredisCluster(client) {
  const { redisOptions = {}, keyPrefix } = client.options;
  const { username, password, db, protocol, ...connection } = once;
  const overrides = {
    lazyConnect: true,
    enableReadyCheck: false, // which asks any node, a dead one too
    clusterRetryStrategy: null,
    clusterNodeRetryStrategy: null,
    // What was written when a connection broke is not sent again. MOVED, ASK and TRYAGAIN say that nothing was done.
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    // A server's connection is made with the first command for it. That and those that follow are kept for so long.
    enableOfflineQueue: true,
    enableAutoPipelining: false,
    scaleReads: "master",
    slotsRefreshInterval: undefined,
    shardedSubscribers: false,
    keyPrefix: "",
    redisOptions: { ...redisOptions, ...connection, protocol, enableOfflineQueue: true },
  };
  return {
    address: `cluster ${client.startupNodes.map(place).join(",")}`,
    keyPrefix: keyPrefix ?? redisOptions.keyPrefix ?? "",
    secrets: redisOptions.password ? [redisOptions.password] : [],
    link: (onClosed) => new IoredisClusterLink(client.duplicate([], overrides), onClosed),
  };
}

/** @param {any} node a URL, a port or options */
function place(node) {
  if (typeof node === "object") {
    return `${node.host ?? "127.0.0.1"}:${node.port ?? 6379}`;
  }
  const url = typeof node === "string" && node.includes("://") ? new URL(node) : undefined;
  return url ? `${url.hostname}:${url.port || 6379}` : typeof node === "number" ? `127.0.0.1:${node}` : `${node}`;
}

/** @implements {Link} */
class IoredisClusterLink {
  #cluster;
  /** @type {unknown} The last error of a node, which says more than those that calls get. */
  #error;
  /** @type {Map<string, (message: Buffer) => void>} */
  #heard = new Map();

  /**
   * @param {Cluster} cluster
   * @param {(error?: unknown) => void} onClosed
   */
  constructor(cluster, onClosed) {
    this.#cluster = cluster;
    cluster.on("error", () => {}); // "node error" says why
    cluster.on("node error", (error) => {
      this.#error = error;
    });
    cluster.on("+node", (node) => node.on("connect", () => node.stream?.unref()));
    cluster.on("end", () => onClosed(this.#error));
    cluster.on("messageBuffer", (channel, message) => this.#heard.get(String(channel))?.(message));
  }

  async open() {
    try {
      await this.#cluster.connect();
    } catch (error) {
      throw this.#error ?? error;
    }
  }

  get several() {
    return true;
  }

  get usable() {
    return this.#cluster.status === "ready";
  }

  /** @param {(string | Buffer)[]} args */
  send(args) {
    const [command, ...rest] = args;
    if (firstKey(args) !== undefined) {
      return this.#cluster.callBuffer(String(command), rest);
    }
    return askAny(this.#cluster.nodes("master"), (node) => node.callBuffer(String(command), rest));
  }

  // What is sent goes to several nodes.
  cork() {}
  uncork() {}

  /**
   * @param {string | Buffer} channel
   * @param {(message: Buffer) => void} heard
   */
  subscribe(channel, heard) {
    this.#heard.set(String(channel), heard);
    return this.#cluster.subscribe(channel);
  }

  /** @param {string | Buffer} channel */
  unsubscribe(channel) {
    this.#heard.delete(String(channel));
    return this.#cluster.unsubscribe(channel);
  }

  close() {
    const nodes = this.#cluster.nodes("all");
    this.#cluster.disconnect();
    for (const { stream } of nodes) {
      stream?.destroy(); // disconnect alone waits for the other side
    }
  }
}
