/**
 * Bytes as strings: UTF-8, and a byte that is no valid UTF-8 as a lone surrogate, U+DC00 + the byte, as in Python's
 * surrogateescape. So the values of other libraries survive their way through JSON.
 */

import { isUtf8 } from "node:buffer";

/**
 * @param {Buffer} bytes
 * @returns {string}
 */
export function decode(bytes) {
  if (isUtf8(bytes)) {
    return bytes.toString("utf8");
  }
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const length = sequenceLength(bytes, at);
    if (length === 0) {
      text += String.fromCharCode(0xdc00 + bytes[at]);
      at += 1;
    } else {
      text += bytes.toString("utf8", at, at + length);
      at += length;
    }
  }
  return text;
}

/**
 * How many bytes from here on are one character in UTF-8; 0 if none.
 * @param {Buffer} bytes
 * @param {number} at
 */
function sequenceLength(bytes, at) {
  const first = bytes[at];
  const length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  return at + length <= bytes.length && isUtf8(bytes.subarray(at, at + length)) ? length : 0;
}

/**
 * The argument of a command: a string as it is, unless it stands for bytes that are no UTF-8.
 * @param {string} text
 * @returns {string | Buffer}
 */
export function encode(text) {
  if (text.isWellFormed()) {
    return text;
  }
  const parts = [];
  for (const character of text) {
    const code = /** @type {number} */ (character.codePointAt(0));
    parts.push(code >= 0xdc80 && code <= 0xdcff ? Buffer.of(code - 0xdc00) : Buffer.from(character));
  }
  return Buffer.concat(parts);
}

/**
 * A script's reply as the machine takes it: a flat list of integers and strings. What no script of ours replies becomes
 * an empty string, which makes no sense to it.
 * @param {unknown} reply
 * @returns {(number | string)[]}
 */
export function values(reply) {
  return Array.isArray(reply) ? reply.map(value) : [""];
}

/** @param {unknown} element */
function value(element) {
  if (typeof element === "number") {
    return Number.isInteger(element) ? element : "";
  }
  return Buffer.isBuffer(element) ? decode(element) : "";
}
