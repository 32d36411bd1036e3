/** What a node may be given as: a URL, or a client of the application. */

import { Redis } from "ioredis";

import { typeName } from "../arguments.js";
import { InvalidUse, Unsupported } from "../errors.js";
import { parseUrl } from "../url.js";
import { fromIoredis, ioredisSource, once } from "./ioredis.js";
import { fromIoredisCluster } from "./ioredis-cluster.js";
import { fromNodeRedis } from "./noderedis.js";

/** @typedef {import("./link.js").Source} Source */

/**
 * @param {number} index
 * @param {unknown} node
 * @returns {Source}
 */
export function sourceOf(index, node) {
  if (typeof node === "string") {
    const { address, host, port, path, ...handshake } = parseUrl(index, node);
    const place = path ? { path } : { host, port };
    // By its JavaScript: the types of its options are stricter than what it takes.
    const make = () => new Redis(/** @type {any} */ ({ ...once, ...place }));
    return ioredisSource(address, make, handshake);
  }
  const client = /** @type {any} */ (node);
  if (typeof client?.duplicate === "function") {
    if (typeof client.callBuffer === "function") {
      return client.isCluster ? fromIoredisCluster(client) : fromIoredis(client);
    }
    if (typeof client.sendCommand === "function") {
      return fromNodeRedis(client);
    }
  }
  if (typeof client?.sendCommand === "function") {
    throw new Unsupported(`node ${index}: this client can't be duplicated (node-redis has it for Sentinel since version 6)`);
  }
  throw new TypeError(`node ${index} must be a URL or a client of ioredis or node-redis, not ${typeName(node)}`);
}

/**
 * The prefix that the application's clients put before their keys, which locks have too.
 * @param {Source[]} sources
 */
export function prefixOf(sources) {
  const [prefix = "", ...others] = new Set(sources.map(({ keyPrefix }) => keyPrefix));
  if (others.length > 0) {
    throw new InvalidUse("the clients have different key prefixes");
  }
  return prefix;
}

/**
 * Refuses a server that is given twice.
 * @param {Source[]} sources
 */
export function requireDistinct(sources) {
  sources.forEach(({ address }, j) => {
    const i = sources.findIndex((source) => source.address === address);
    if (i < j) {
      throw new InvalidUse(
        `nodes ${i} and ${j} are the same server (${address}): each node must be an independent one`,
      );
    }
  });
}
