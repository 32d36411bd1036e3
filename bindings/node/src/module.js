/** Finds redlock.wasm and compiles it, once a process. */

import { readFile } from "node:fs/promises";

/** @type {Promise<WebAssembly.Module> | undefined} */
let compiled;

/**
 * The compiled module, which all clients of the process share.
 * @returns {Promise<WebAssembly.Module>}
 */
export function compiledModule() {
  compiled ??= read()
    .then((bytes) => WebAssembly.compile(bytes))
    .catch((error) => {
      compiled = undefined; // the next client may find it
      throw error;
    });
  return compiled;
}

/** Reads the module that REDLOCK_WASM names, the one in this package or, in a checkout, the one that was built. */
async function read() {
  const named = process.env.REDLOCK_WASM;
  const places = named
    ? [named]
    : [new URL("../redlock.wasm", import.meta.url), new URL("../../../build/redlock.wasm", import.meta.url)];
  for (const place of places) {
    try {
      return await readFile(place);
    } catch (error) {
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== "ENOENT") {
        throw error;
      }
    }
  }
  throw new Error(
    named
      ? `there is no ${named}, which REDLOCK_WASM names`
      : "redlock.wasm is not there: ./build.sh wasm makes it, and REDLOCK_WASM can name one elsewhere",
  );
}
