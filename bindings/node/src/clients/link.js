/**
 * What the rest of the package needs of a Redis client, whichever it is. Each file beside this one fits one client to it.
 */

/**
 * Where a node is and how to connect to it.
 * @typedef {object} Source
 * @property {string} address for messages; without a password
 * @property {string} keyPrefix that the application's client puts before its keys
 * @property {string[]} secrets that no message may show
 * @property {(onClosed: (error?: unknown) => void) => Link} link makes a connection of its own, not open yet. onClosed is
 *   called when it is of no use any more, at least once unless it was closed from here
 */

/**
 * One connection, or for a cluster those that one client has. It sends each command once or not at all: it neither
 * repeats one nor keeps one for later, and it does not reconnect.
 * @typedef {object} Link
 * @property {() => Promise<unknown>} open connects, authenticates and selects the database
 * @property {boolean} [several] whether it stands for several servers: that one of them is down or silent says nothing of the
 *   others, but a new link may know who has taken its place
 * @property {boolean} usable whether it takes commands; if not, nothing is written, but what is under way may be answered
 * @property {(args: (string | Buffer)[]) => Promise<unknown>} send a command; strings in the reply are Buffers
 * @property {() => void} cork what is sent from here on waits,
 * @property {() => void} uncork and leaves now, in one piece
 * @property {(channel: string | Buffer, heard: (message: Buffer) => void) => Promise<unknown>} subscribe
 * @property {(channel: string | Buffer) => Promise<unknown>} unsubscribe
 * @property {() => void} close at once; what is under way fails
 */

export {};
