/** Why a call failed, in few words: the same as the driver in Go has. */

import { getSystemErrorMap } from "node:util";

const MOST_CHARACTERS = 200;

/**
 * Tells whether an error is a server's answer, rather than the lack of one: by the names that the clients give them.
 * @param {unknown} error
 */
export function isReply(error) {
  if (!(error instanceof Error)) {
    return false;
  }
  for (let kind = Object.getPrototypeOf(error); kind; kind = Object.getPrototypeOf(kind)) {
    if (replyClasses.has(kind.constructor?.name)) {
      return true;
    }
  }
  return error.name === "ReplyError";
}

const replyClasses = new Set(["ReplyError", "ErrorReply"]);

/**
 * Tells whether a client says that it has not even tried to write a command.
 * @param {unknown} error
 */
export function neverWritten(error) {
  return error instanceof Error && (offlineClasses.has(error.constructor.name) || offline.test(error.message));
}

const offlineClasses = new Set(["ClientOfflineError", "ClientClosedError"]);
const offline = /^(Stream|Cluster) isn't \w+ and enableOfflineQueue options is false$/;

/**
 * Tells whether a server refused the connection, by an error reply before it closed it.
 * @param {unknown} error
 */
export function isFull(error) {
  return error instanceof Error && error.message.includes("max number of clients reached");
}

/**
 * What an error says.
 * @param {unknown} error undefined: the connection has ended without one
 * @returns {string}
 */
export function cause(error) {
  if (error === undefined) {
    return "the server closed the connection";
  }
  if (!(error instanceof Error)) {
    return oneLine(String(error));
  }
  if (error instanceof AggregateError && error.errors.length > 0) {
    return cause(error.errors.at(-1)); // one for each address of a host
  }
  const { code, errno, hostname } = /** @type {NodeJS.ErrnoException & {hostname?: string}} */ (error);
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") {
    return oneLine(`lookup ${hostname}: ${code === "ENOTFOUND" ? "no such host" : "temporary failure in name resolution"}`);
  }
  const system = errno === undefined ? undefined : getSystemErrorMap().get(errno);
  if (system) {
    return system[1];
  }
  return ended.test(error.message) || neverWritten(error) ? cause(undefined) : oneLine(error.message);
}

// What the clients say of a connection that the other side has closed.
const ended = /^(Connection is closed\.|Socket closed unexpectedly|This socket has been ended by the other party)$/;

/** @param {number} timeout in microseconds */
export function timeoutCause(timeout) {
  return `timeout after ${Math.trunc(timeout / 1000)} ms`;
}

/**
 * Keeps a text that came from outside from breaking the form of a message.
 * @param {string} text
 */
function oneLine(text) {
  const line = text.toWellFormed().replace(/[\0-\x1f]/g, " ");
  return line.length > MOST_CHARACTERS ? `${line.slice(0, MOST_CHARACTERS).toWellFormed()}...` : line;
}
