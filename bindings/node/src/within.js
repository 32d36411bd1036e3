/** A limit to what is awaited. */

/**
 * Rejects if a promise takes too long. The timer does not keep the process alive.
 * @template T
 * @param {number} ms
 * @param {string} what did not happen in that time
 * @param {Promise<T>} promise
 * @returns {Promise<T>}
 */
export function within(ms, what, promise) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`${what} after ${ms} ms`)), ms).unref();
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
