/** The URL of a node. The forms and messages are those of the driver in Go. */

import { InvalidUse, Unsupported } from "./errors.js";

/**
 * A node's URL, taken apart.
 * @typedef {object} Endpoint
 * @property {string} address "host:port" or a socket's path: what messages show
 * @property {string} [host]
 * @property {number} [port]
 * @property {string} [path] of a socket
 * @property {string} username
 * @property {string} password
 * @property {number} db
 */

const FORMS = "redis://[user:password@]host[:port][/db] or unix://[user:password@]/path[?db=n]";
const DEFAULT_PORT = 6379;

// Scheme, user info, the rest of the authority, path, query and fragment, as RFC 3986 divides them.
const PARTS = /^([a-z+]+):\/\/(?:([^/?#]*)@)?([^/?#@]*)([^?#]*)(?:\?([^#]*))?(#.*)?$/i;
// A name or IPv4 address, or an IPv6 address in brackets; and digits or nothing after a colon.
const AUTHORITY = /^(?:\[([0-9a-f:.]+(?:%25[\w.-]+)?)\]|([^:[\]%\s<>"^`{|}\\]*))(?::(\d*))?$/i;
const USER_INFO = /^[\w\-.~!$&'()*+,;=:%@]*$/;

/**
 * Takes a node's URL apart. Its errors never quote the URL, which may have a password in it.
 * @param {number} node
 * @param {string} url
 * @returns {Endpoint}
 */
export function parseUrl(node, url) {
  /** @type {(message: string) => never} */
  const fail = (message) => {
    throw new InvalidUse(`node ${node}: ${message}`);
  };
  const scheme = /^(.*?):\/\//s.exec(url)?.[1];
  if (scheme === undefined) {
    fail(`not a URL; allowed: ${FORMS}`);
  }
  if (scheme === "rediss" || scheme === "redis+sentinel" || scheme === "redis+cluster") {
    throw new Unsupported(`node ${node}: this version has no ${scheme}:// yet; it has ${FORMS}`);
  }
  if (scheme !== "redis" && scheme !== "unix") {
    fail(`unknown URL scheme; allowed: ${FORMS}`);
  }
  const malformed = `malformed URL (are special characters in the password percent-encoded?); allowed: ${FORMS}`;
  const [, , userInfo = "", authority = "", rawPath = "", query = "", fragment] = PARTS.exec(url) ?? fail(malformed);
  const [, ipv6, name = "", rawPort = ""] = AUTHORITY.exec(authority) ?? fail(malformed);
  if (fragment || !USER_INFO.test(userInfo) || /[\0-\x20\x7f]/.test(url)) {
    fail(malformed);
  }
  const unescape = (/** @type {string} */ text) => {
    try {
      return decodeURIComponent(text);
    } catch {
      return fail(malformed);
    }
  };
  const [username, ...rest] = userInfo.split(":");
  const credentials = { username: unescape(username), password: unescape(rest.join(":")) };
  const path = unescape(rawPath);

  if (scheme === "unix") {
    if (authority !== "" || path === "") {
      fail(`a unix URL needs an absolute path and no host; allowed: ${FORMS}`);
    }
    const parameters = new URLSearchParams(query);
    const db = parameters.get("db") ?? "";
    parameters.delete("db");
    if (parameters.size > 0) {
      fail(`unknown parameter in the URL; allowed: ${FORMS}`);
    }
    return { address: path, path, ...credentials, db: database(db, fail) };
  }
  const host = ipv6 ? unescape(ipv6) : name;
  if (host === "" || query !== "") {
    fail(`a redis URL needs a host and takes no parameters; allowed: ${FORMS}`);
  }
  const port = rawPort === "" ? DEFAULT_PORT : Number(rawPort);
  if (port < 1 || port > 65535) {
    fail("the port is not one of 1 to 65535");
  }
  const address = `${ipv6 ? `[${host}]` : host}:${port}`;
  return { address, host, port, ...credentials, db: database(path.replace(/^\//, ""), fail) };
}

/**
 * @param {string} text
 * @param {(message: string) => never} fail
 */
function database(text, fail) {
  if (text !== "" && !/^\+?\d{1,9}$/.test(text)) {
    fail("the database is not a number from 0");
  }
  return Number(text);
}
