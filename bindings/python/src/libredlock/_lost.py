"""The signal that a lock is lost."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable

from ._gate import Gate

logger = logging.getLogger("libredlock")


class ClientThread(threading.Thread):
    """The thread of a client, which no callback may end."""


class Signal:
    """Set once, from any thread; callbacks are what everything else is made of.

    There is no mutex in it, so that it can be set while a signal handler, the garbage collector
    or a fork has stopped any other code anywhere: it relies on list.append, pop and remove being
    atomic. The flag is set before the callbacks are taken, and read after one is added, so each
    runs exactly once.
    """

    __slots__ = ("__weakref__", "_callbacks", "_reason", "_set")

    def __init__(self) -> None:
        self._set = False
        self._reason = ""
        self._callbacks: list[Callable[[], object]] = []

    def is_set(self) -> bool:
        """Whether the lock is lost."""
        return self._set

    @property
    def reason(self) -> str:
        """Why it was lost; empty unless it is."""
        return self._reason

    def _notify(self, reason: str) -> None:
        if not self._set:
            self._reason = reason
            self._set = True
        self._run_callbacks()

    def _forked(self, reason: str) -> None:
        # In a child just forked: what the callbacks would act on is the parent's.
        self._callbacks = []
        self._notify(reason)

    def _add(self, callback: Callable[[], object]) -> None:
        self._callbacks.append(callback)
        if self._set:
            self._run_callbacks()

    def _remove(self, callback: Callable[[], object]) -> None:
        with contextlib.suppress(ValueError):  # it ran
            self._callbacks.remove(callback)

    def _run_callbacks(self) -> None:
        while True:
            try:
                callback = self._callbacks.pop(0)
            except IndexError:
                return
            try:
                callback()
            except BaseException as error:
                # A SystemExit or KeyboardInterrupt is for the thread, unless that is ours.
                if isinstance(error, Exception) or isinstance(
                    threading.current_thread(), ClientThread
                ):
                    logger.exception("a callback for a lost lock failed")
                    continue
                self._run_callbacks()
                raise


class Lost(Signal):
    """Tells that a lock is lost; like a threading.Event that only libredlock sets."""

    __slots__ = ()

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the lock is lost, at most timeout seconds, and returns whether it is."""
        gate = Gate()
        opened = gate.open
        self._add(opened)
        try:
            gate.wait(timeout)
        finally:
            self._remove(opened)
        return self._set


class AsyncLost(Signal):
    """Tells that a lock is lost; like an asyncio.Event that only libredlock sets."""

    __slots__ = ()

    async def wait(self) -> bool:
        """Waits until the lock is lost and returns True."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def opened() -> None:
            if not future.done():
                future.set_result(None)

        self._add(opened)
        try:
            await future
        finally:
            self._remove(opened)
        return True
