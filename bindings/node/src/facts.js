/** What the machine wants to know about a node, read on each new connection. */

import { isFull, isReply } from "./cause.js";

/** Commands that a server may lack and that some lock would use. */
const probed = ["delex", "delifeq", "spublish", "waitaof"];

/**
 * The fields of the event "connected", after the node.
 * @param {import("./clients/link.js").Link} link
 * @returns {Promise<unknown[]>}
 */
export async function readFacts(link) {
  const [info, commands] = await Promise.allSettled([link.send(["INFO"]), link.send(["COMMAND", "INFO", ...probed])]);
  for (const result of [info, commands]) {
    if (result.status === "rejected" && (!isReply(result.reason) || isFull(result.reason))) {
      throw result.reason; // the connection is of no use
    }
  }
  const facts = info.status === "fulfilled" ? readInfo(String(info.value)) : undefined;
  return facts ? [...facts, commands.status === "fulfilled" ? capabilities(commands.value) : []] : [null];
}

/**
 * Picks the facts out of a reply to INFO; undefined if it makes no sense.
 * @param {string} text
 */
function readInfo(text) {
  /** @type {Record<string, string>} */
  const fields = {};
  for (const line of text.split("\n")) {
    const colon = line.indexOf(":");
    if (colon > 0) {
      fields[line.slice(0, colon)] = line.slice(colon + 1).trim();
    }
  }
  const { redis_version: version, run_id: runId = "", uptime_in_seconds: uptime = "" } = fields;
  if (!version || !/^\d+$/.test(uptime)) {
    return undefined;
  }
  const policy = fields.maxmemory_policy ?? "";
  const evicts = fields.maxmemory !== "0" && policy !== "" && policy !== "noeviction";
  return [version, runId, Number(uptime), fields.role === "slave", evicts];
}

/**
 * The probed commands that COMMAND INFO knows.
 * @param {unknown} list
 */
function capabilities(list) {
  const names = Array.isArray(list) ? list.map((description) => String(description?.[0] ?? "").toLowerCase()) : [];
  return probed.filter((name) => names.includes(name));
}
