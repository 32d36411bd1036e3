import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { decode, encode, values } from "../src/codec.js";
import { InvalidUse, Unsupported } from "../src/errors.js";
import { parseUrl } from "../src/url.js";

describe("bytes as strings", () => {
  test("come back as they were", () => {
    const samples = ["", "plain", "ü€😀", "\udc80", "a\udcffb"].map((text) => Buffer.from(encode(text)));
    for (let i = 0; i < 300; i++) {
      samples.push(Buffer.from(Array.from({ length: i % 17 }, (_, j) => (i * 31 + j * 97 + i * j) & 0xff)));
    }
    for (const bytes of samples) {
      assert.deepEqual(Buffer.from(encode(decode(bytes))), bytes);
    }
  });

  test("have one lone surrogate for each byte that is no UTF-8", () => {
    assert.equal(decode(Buffer.from([0x61, 0xff, 0xc3, 0xa4, 0xc3, 0x28])), "a\udcffä\udcc3(");
    assert.equal(decode(Buffer.from([0xed, 0xa0, 0x80])), "\udced\udca0\udc80", "an encoded surrogate is no UTF-8");
    assert.equal(decode(Buffer.from([0xf0, 0x9f, 0x98])), "\udcf0\udc9f\udc98", "nor is half a character");
    assert.equal(decode(Buffer.from([0xc0, 0x80])), "\udcc0\udc80", "nor an overlong one");
  });

  test("are all that the machine takes of a reply, beside integers", () => {
    assert.deepEqual(values([1, Buffer.from([0xff]), null, [2], 1.5, new Error("x")]), [1, "\udcff", "", "", "", ""]);
    assert.deepEqual(values(null), [""]);
    assert.deepEqual(values(Buffer.from("OK")), [""]);
  });
});

describe("a URL", () => {
  test("is taken apart", () => {
    const none = { username: "", password: "", db: 0 };
    const cases = {
      "redis://h": { address: "h:6379", host: "h", port: 6379, ...none },
      "redis://h:1/": { address: "h:1", host: "h", port: 1, ...none },
      "redis://127.0.0.1:6380/3": { address: "127.0.0.1:6380", host: "127.0.0.1", port: 6380, ...none, db: 3 },
      "redis://[::1]:6380": { address: "[::1]:6380", host: "::1", port: 6380, ...none },
      "redis://:p%40ss%25@h": { address: "h:6379", host: "h", port: 6379, ...none, password: "p@ss%" },
      "redis://u:p:q@h": { address: "h:6379", host: "h", port: 6379, username: "u", password: "p:q", db: 0 },
      "unix:///a%20b/c.sock": { address: "/a b/c.sock", path: "/a b/c.sock", ...none },
      "unix://u:p@/c.sock?db=2": { address: "/c.sock", path: "/c.sock", username: "u", password: "p", db: 2 },
    };
    for (const [url, endpoint] of Object.entries(cases)) {
      assert.deepEqual(parseUrl(0, url), endpoint, url);
    }
  });

  test("that makes no sense is refused without being quoted", () => {
    const cases = {
      "h:6379": /^node 4: not a URL; allowed: redis:\/\//,
      "http://h": /unknown URL scheme/,
      "REDIS://h": /unknown URL scheme/,
      "redis://": /needs a host/,
      "redis:///3": /needs a host/,
      "redis://h?db=3": /takes no parameters/,
      "redis://h:0": /the port is not one of 1 to 65535/,
      "redis://h:99999": /the port is not one of 1 to 65535/,
      "redis://h/x": /the database is not a number from 0/,
      "redis://h/-1": /the database is not a number from 0/,
      "unix://": /needs an absolute path and no host/,
      "unix://h/x.sock": /needs an absolute path and no host/,
      "unix:///x.sock?timeout=3": /unknown parameter/,
      "redis://h:port": /malformed URL/,
      "redis://::1": /malformed URL/,
      "redis://a b": /malformed URL/,
      "redis://h#f": /malformed URL/,
      "redis://u:secret%@h": /malformed URL \(are special characters in the password percent-encoded\?\)/,
      "redis://u:sec[ret@h": /malformed URL/,
      "redis://u:sec/ret@h": /malformed URL/,
    };
    for (const [url, message] of Object.entries(cases)) {
      assert.throws(
        () => parseUrl(4, url),
        (error) => {
          assert.ok(error instanceof InvalidUse, url);
          assert.match(error.message, message, url);
          assert.doesNotMatch(error.message, /secret|ret@/);
          return true;
        },
      );
    }
    for (const scheme of ["rediss", "redis+sentinel", "redis+cluster"]) {
      assert.throws(() => parseUrl(0, `${scheme}://u:secret@h`), Unsupported);
    }
  });
});
