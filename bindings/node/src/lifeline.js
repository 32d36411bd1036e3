/** How long a session lives: until it is closed, until it is forgotten, or until nothing is left to do for the process. */

/** @typedef {import("./session.js").Session} Session */

/**
 * What a client, its locks and its holds have in common: while the application has one of them the session stays open.
 */
export class Lifeline {
  /** @param {Session} session */
  constructor(session) {
    this.session = session;
    forgotten.register(this, session);
    if (open.size === 0) {
      process.on("beforeExit", releaseAll);
    }
    open.add(session);
  }

  /** Closes the session. */
  close() {
    return close(this.session);
  }
}

const forgotten = new FinalizationRegistry((/** @type {Session} */ session) => {
  close(session, "the client was garbage-collected");
});

/** @type {Set<Session>} */
const open = new Set();

/**
 * @param {Session} session
 * @param {string} [reason]
 */
function close(session, reason) {
  open.delete(session);
  if (open.size === 0) {
    process.off("beforeExit", releaseAll);
  }
  return session.close(reason);
}

/** The process would end now: it stays as long as it takes to release what is held. */
function releaseAll() {
  for (const session of open) {
    session.discardAll();
  }
}
