"""A lock that is held."""

from __future__ import annotations

import inspect
import logging
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Generic, TypeVar

from ._arguments import duration_ms
from ._lost import Lost, Signal
from ._session import Session
from .errors import Closed, LockLost, NotHeld, RedlockError, Unavailable

logger = logging.getLogger("libredlock")

L = TypeVar("L", bound=Signal)


class BaseHeld(Generic[L]):
    """What the holds of both clients have in common."""

    __slots__ = (
        "__weakref__",
        "_fence",
        "_handle",
        "_lost",
        "_name",
        "_session",
        "_slot",
        "_token",
    )

    def __init__(
        self, session: Session, handle: int, name: str, fence: int, slot: int | None, lost: L
    ) -> None:
        self._session = session
        self._handle = handle
        self._name = name
        self._fence = fence
        self._slot = slot
        self._lost = lost
        self._token = ""
        session.grip(self, handle)

    @property
    def name(self) -> str:
        """The name of the lock, without the client's prefix."""
        return self._name

    @property
    def fence(self) -> int:
        """The fencing token: larger than that of every earlier holder of the name.

        Give it to whatever the lock protects, which refuses a write with a smaller one than it
        has seen. 0 if the lock was made with ``fencing=False``.
        """
        return self._fence

    @property
    def slot(self) -> int | None:
        """Which of a semaphore's permits this is, from 0; None for other kinds of lock.

        With one node it is the lowest that was free. Fencing tokens increase for each slot on its
        own: whatever the lock protects keeps the largest that it has seen of each.
        """
        return self._slot

    @property
    def token(self) -> str:
        """The value that stands in Redis while the lock is held.

        Raises:
            NotHeld: it was released before the token was read for the first time.
        """
        if not self._token:
            self._session.require_open()
            self._require_handle()
            self._token = self._session.native.token(self._handle)
        return self._token

    @property
    def lost(self) -> L:
        """Set when the lock is lost, though not by its release."""
        return self._lost

    def remaining(self) -> float:
        """Seconds for which the lock is certainly ours; 0.0 when it is lost or released."""
        if not self._handle or self._lost.is_set():
            return 0.0
        return self._session.native.remaining_ms(self._handle) / 1000

    def on_lost(self, callback: Callable[[], object]) -> None:
        """Calls ``callback()`` once when the lock is lost, at once if it is lost already.

        It runs where losses are noticed, the client's thread or the event loop, and holds up
        everything else there: it should be short. What it raises is logged.
        """
        if inspect.iscoroutinefunction(callback):
            raise TypeError("a callback must be a plain function, not a coroutine function")
        self._lost._add(callback)

    def __repr__(self) -> str:
        if not self._handle:
            state = "released"
        elif self._lost.is_set():
            state = "lost"
        else:
            state = f"{self.remaining():.3f} s left"
        slot = "" if self._slot is None else f" slot={self._slot}"
        return f"<{type(self).__name__} {self._name!r}{slot} fence={self._fence} {state}>"

    def _freed(self) -> None:
        self._session.let_go(self._handle)
        self._handle = 0

    def _discard(self) -> None:
        """Gives the hold back without waiting."""
        if self._handle:
            self._session.dispose(self._handle)
            self._handle = 0

    def _require_handle(self) -> int:
        if not self._handle:
            raise NotHeld(f"lock {self._name!r} was released already")
        return self._handle

    def _require_kept(self) -> int:
        """The handle of a hold that is not lost, of a client that is open."""
        handle = self._require_handle()
        self._session.require_open()
        if self._lost.is_set():
            raise self._loss()
        return handle

    def _loss(self) -> RedlockError:
        if self._session.closed:
            return Closed(self._session.closed)
        return LockLost(f"lock {self._name!r} was lost: {self._lost.reason}")

    def _left(self, failure: RedlockError, error: BaseException | None) -> None:
        """Handles a release that failed at the end of a with statement.

        What the body raised is what the caller is to see, with a note of the failure. A release
        that could not be confirmed is only logged: the body has done its work, and Unavailable
        would ask for it again.
        """
        if error is None and not isinstance(failure, Unavailable):
            raise failure
        if isinstance(failure, Unavailable):
            logger.warning("the release of lock %r is not confirmed: %s", self._name, failure)
        else:
            logger.warning("lock %r: %s", self._name, failure)
        if error is not None and sys.version_info >= (3, 11):
            error.add_note(f"{type(failure).__name__}: {failure}")


class Held(BaseHeld[Lost]):
    """A lock that is held, and the only one that can renew and release it.

    It can be left to a with statement (``with held:``). One that is garbage-collected unreleased
    is released, with a ResourceWarning. Any thread may use it, whichever acquired it.
    """

    __slots__ = ()

    def renew(self, ttl: float | None = None) -> None:
        """Extends the lease to ttl seconds from now.

        Args:
            ttl: the new lease, which later renewals keep to; None: the one that it has.

        Raises:
            LockLost: it is gone. Stop the work.
            Unavailable: too few nodes answered; it is held until the old deadline.
            NotHeld: it was released already.
        """
        ttl_ms = duration_ms("ttl", ttl)
        handle = self._require_kept()
        try:
            self._session.native.renew(handle, ttl_ms)
        except LockLost as error:
            self._session.lose(handle, str(error))
            raise

    def release(self) -> None:
        """Releases the lock. Whatever comes of it, the hold has ended.

        Raises:
            LockLost: it had been lost before.
            Closed: the client was closed, or the process forked; both ended the hold.
            Unavailable: too few nodes answered; the lock ends with its lease.
            NotHeld: it was released already.
        """
        try:
            handle = self._require_kept()
        except (Closed, LockLost):
            self._discard()
            raise
        try:
            self._session.native.release(handle)
        except RedlockError as error:
            if isinstance(error, LockLost):
                self._session.lose(handle, str(error))
            self._freed()
            raise
        except BaseException:  # an interrupt, before the call or after it
            self._discard()
            raise
        self._freed()

    def __enter__(self) -> Held:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._handle:
            return  # the body released it
        try:
            self.release()
        except RedlockError as failure:
            self._left(failure, error)
