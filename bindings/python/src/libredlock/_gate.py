"""Waiting for another thread so that Ctrl-C is heard."""

from __future__ import annotations

import threading
import time

# How late a signal may be heard by the main thread.
_DEAF_MAX = 0.05


class Gate:
    """Opens once. Made of one bare lock, the cheapest thing that a thread can wait for.

    Only the main thread runs Python's signal handlers, between two bytecodes. A signal interrupts
    its wait for a lock, but not if it comes just before the wait or is delivered to another
    thread: so the main thread looks up from time to time.
    """

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def open(self) -> None:
        """Lets the one who waits pass. To be called once."""
        self._lock.release()

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the gate is open, and returns whether it is. To be called by one thread."""
        if threading.get_ident() != threading.main_thread().ident:
            return self._lock.acquire(timeout=-1 if timeout is None else max(timeout, 0))
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = _DEAF_MAX if deadline is None else deadline - time.monotonic()
            if self._lock.acquire(timeout=max(min(left, _DEAF_MAX), 0)):
                return True
            if deadline is not None and time.monotonic() >= deadline:
                return False
