/** What the clients of a cluster have in common, whichever library they come from. */

import { isReply } from "../cause.js";
import { within } from "../within.js";

/** For one server, before the next is asked. */
const PATIENCE_MS = 1000;

/**
 * The key that says which server of a cluster a command is for; undefined if any of them will do.
 * @param {(string | Buffer)[]} args
 */
export function firstKey(args) {
  return /^eval/i.test(String(args[0])) ? args[3] : undefined;
}

/**
 * Asks the servers of a cluster one after the other, from any of them on, until one answers: some may be down.
 * @template Server, Answer
 * @param {Server[]} servers
 * @param {(server: Server) => Promise<Answer>} ask
 */
export async function askAny(servers, ask) {
  const first = Math.floor(Math.random() * servers.length);
  /** @type {unknown} */
  let failure = new Error("no server of the cluster is known");
  for (let i = 0; i < servers.length; i++) {
    try {
      return await within(PATIENCE_MS, "no answer", ask(servers[(first + i) % servers.length]));
    } catch (error) {
      if (isReply(error)) {
        throw error;
      }
      failure = error;
    }
  }
  throw failure;
}
