/** Listening to the AbortSignals of callers. */

/** @type {WeakMap<AbortSignal, Watch>} */
const watches = new WeakMap();

/** Everybody who waits for one signal. It gets one listener, since Node warns of more than ten. */
class Watch {
  /** @type {Set<() => void>} */
  callbacks = new Set();

  /** @param {AbortSignal} signal */
  constructor(signal) {
    this.signal = signal;
    signal.addEventListener("abort", this.tell, { once: true });
  }

  tell = () => {
    for (const callback of this.callbacks) {
      callback();
    }
  };

  /** @param {() => void} callback */
  remove(callback) {
    this.callbacks.delete(callback);
    if (this.callbacks.size === 0) {
      watches.delete(this.signal);
      this.signal.removeEventListener("abort", this.tell);
    }
  }
}

/**
 * Calls a function when a signal is aborted, until it is forgotten. Any number of operations may share a signal.
 * @param {AbortSignal} signal
 * @param {() => void} callback
 * @returns {() => void} forgets it
 */
export function onAbort(signal, callback) {
  const watch = watches.get(signal) ?? new Watch(signal);
  watches.set(signal, watch);
  watch.callbacks.add(callback);
  return () => watch.remove(callback);
}
