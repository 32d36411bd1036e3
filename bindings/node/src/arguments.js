/**
 * Checks of arguments, before they become fields of an event.
 *
 * A wrong type is a TypeError. A value that an event can't express, or that the machine would take for "the default", is
 * InvalidUse here; the limits themselves (name, ttl, ...) are the machine's, in every language the same.
 */

import { InvalidUse } from "./errors.js";

// Far beyond every limit of the machine; in microseconds still an exact integer.
const MOST = 2 ** 43;

/**
 * Milliseconds, more than none, in whole milliseconds' microseconds; 0, which is the machine's default, for undefined.
 * @param {string} what
 * @param {unknown} ms
 */
export function duration(what, ms) {
  if (ms === undefined) {
    return 0;
  }
  const number = milliseconds(what, ms);
  if (number < 0.5) {
    throw new InvalidUse(`${what} must be at least 1, not ${number}`);
  }
  if (number > MOST) {
    throw new InvalidUse(`${what} is too long: ${number}`);
  }
  return Math.round(number) * 1000;
}

/**
 * How many, one or more; 0, which is the machine's default, for undefined.
 * @param {string} what
 * @param {unknown} value
 */
export function count(what, value) {
  if (value === undefined) {
    return 0;
  }
  if (typeof value !== "number") {
    throw new TypeError(`${what} must be a number, not ${typeName(value)}`);
  }
  if (!Number.isInteger(value) || value < 1) {
    throw new InvalidUse(`${what} must be a whole number, at least 1, not ${value}`);
  }
  return Math.min(value, MOST);
}

/**
 * A wait limit in microseconds; null, without limit, for undefined and Infinity.
 * @param {unknown} ms
 */
export function waitLimit(ms) {
  if (ms === undefined) {
    return null;
  }
  const number = milliseconds("waitMs", ms);
  if (number < 0) {
    throw new InvalidUse(`waitMs must not be negative, but is ${number}`);
  }
  // Rounded up, so that a short wait does not become none at all.
  return number > MOST ? null : Math.ceil(number) * 1000;
}

/**
 * @param {string} what
 * @param {unknown} ms
 */
function milliseconds(what, ms) {
  if (typeof ms !== "number") {
    throw new TypeError(`${what} must be a number of milliseconds, not ${typeName(ms)}`);
  }
  if (Number.isNaN(ms)) {
    throw new InvalidUse(`${what} is not a number`);
  }
  return ms;
}

/**
 * A switch; null, the default, for undefined.
 * @param {string} what
 * @param {unknown} value
 */
export function toggle(what, value) {
  if (value === undefined) {
    return null;
  }
  if (typeof value !== "boolean") {
    throw new TypeError(`${what} must be true or false, not ${typeName(value)}`);
  }
  return value;
}

/**
 * A string that UTF-8 can express. The error does not show it: it may have a password in it.
 * @param {string} what
 * @param {unknown} value
 */
export function text(what, value) {
  if (typeof value !== "string") {
    throw new TypeError(`${what} must be a string, not ${typeName(value)}`);
  }
  if (!value.isWellFormed()) {
    throw new InvalidUse(`${what} has a lone surrogate in it, which UTF-8 can't express`);
  }
  return value;
}

/**
 * @param {string} what
 * @param {unknown} signal
 */
export function abortSignal(what, signal) {
  if (signal !== undefined && !(typeof signal === "object" && signal && "aborted" in signal)) {
    throw new TypeError(`${what} must be an AbortSignal, not ${typeName(signal)}`);
  }
  return /** @type {AbortSignal | undefined} */ (signal);
}

/**
 * An object of options of which all are known: a misspelt one would else be ignored.
 * @template T
 * @param {string} what
 * @param {T | undefined} options
 * @param {readonly string[]} known
 * @returns {Partial<T>}
 */
export function options(what, options, known) {
  if (options === undefined) {
    return {};
  }
  if (typeof options !== "object" || options === null) {
    throw new TypeError(`${what} must be an object of options, not ${typeName(options)}`);
  }
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) {
      throw new TypeError(`${what} has no option ${JSON.stringify(name)}; it has ${known.join(", ")}`);
    }
  }
  return options;
}

/** @param {unknown} value */
export function typeName(value) {
  return value === null ? "null" : Array.isArray(value) ? "an array" : typeof value;
}
