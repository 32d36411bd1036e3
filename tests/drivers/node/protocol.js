/** The line protocol of tests/drivers/README.md. */

/** One line from the runner. */
export class Request {
  /** Reads a line. */
  static parse(line) {
    const [id, verb, ...words] = line.split(" ");
    const request = new Request();
    request.id = id;
    request.verb = verb;
    request.fields = words.map((word) => {
      const equals = word.indexOf("=");
      return [word.slice(0, equals), unescape(word.slice(equals + 1))];
    });
    return request;
  }

  /** Every value of a key. */
  all(key) {
    return this.fields.filter(([name]) => name === key).map(([, value]) => value);
  }

  /** The first value of a key. */
  get(key) {
    return this.all(key)[0] ?? "";
  }

  /** A number; undefined if it is absent. */
  number(key) {
    const [value] = this.all(key);
    return value === undefined ? undefined : Number(value);
  }

  /** What to call connect with; what is absent is left to its default. */
  clientSettings() {
    return without({
      nodes: this.all("node"),
      prefix: this.all("prefix")[0],
      nodeTimeoutMs: this.number("node_timeout_ms"),
      unavailableAfterMs: this.number("unavailable_after_ms"),
    });
  }

  /** What to make a lock with. */
  lockOptions() {
    const toggle = (key) => this.all(key).map((value) => value === "on")[0];
    return without({
      ttlMs: this.number("ttl_ms"),
      maxHoldMs: this.number("max_hold_ms"),
      fencing: toggle("fencing"),
      autoRenew: toggle("auto_renew"),
      queue: toggle("queue"),
      retryDelayMs: this.number("retry_delay_ms"),
      retryJitterMs: this.number("retry_jitter_ms"),
      maxTries: this.number("max_tries"),
      metadata: this.all("metadata")[0],
    });
  }
}

/** The lock that a request is about. */
export function lockOf(request, client) {
  const [kind, name, lock] = [request.get("kind"), request.get("name"), request.lockOptions()];
  switch (kind) {
    case "mutex":
      return client.mutex(name, lock);
    case "semaphore":
      return client.semaphore(name, { permits: request.number("permits") ?? 1, ...lock });
  }
  throw new Error(`the driver has no kind ${kind}`);
}

/** An object without what is undefined. */
function without(object) {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));
}

/** Writes one line. */
export function send(id, word, fields) {
  const words = fields.map(([key, value]) => `${key}=${escape(String(value))}`);
  process.stdout.write(`${[id, word, ...words].join(" ")}\n`);
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

// What is no UTF-8 becomes lone surrogates: JavaScript's nearest to a string that UTF-8 can't express.
function unescape(text) {
  const latin1 = text.replace(/%([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(parseInt(hex, 16)));
  try {
    return utf8.decode(Buffer.from(latin1, "latin1"));
  } catch {
    return latin1.replace(/[\x80-\xff]/g, (byte) => String.fromCharCode(0xdc00 + byte.charCodeAt()));
  }
}

function escape(text) {
  let out = "";
  for (const byte of Buffer.from(text)) {
    const printable = byte > 0x20 && byte < 0x7f && byte !== 0x25;
    out += printable ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return out;
}
