"""A lock that a task holds."""

from __future__ import annotations

import asyncio
import sys
from types import TracebackType
from typing import TYPE_CHECKING

from ._arguments import duration_ms
from ._held import BaseHeld
from ._lost import AsyncLost
from .errors import Closed, InvalidUse, LockLost, RedlockError

if TYPE_CHECKING:
    from ._aio import LoopSession


class AsyncHeld(BaseHeld[AsyncLost]):
    """A lock that is held, and the only one that can renew and release it.

    It can be left to an async with statement (``async with held:``), whose body's task is
    cancelled when the lock is lost (Python 3.11 and later). One that is garbage-collected
    unreleased is released, with a ResourceWarning.
    """

    __slots__ = ("_body",)

    _session: LoopSession

    def __init__(
        self,
        session: LoopSession,
        handle: int,
        name: str,
        fence: int,
        slot: int | None,
        lost: AsyncLost,
    ) -> None:
        self._body: _Body | None = None
        super().__init__(session, handle, name, fence, slot, lost)

    async def renew(self, ttl: float | None = None) -> None:
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
        operation = self._session.renew(handle, ttl_ms)
        try:
            await self._session.outcome(operation)
        except LockLost as error:
            self._session.lose(handle, str(error))
            raise
        except asyncio.CancelledError:
            self._session.cancel(operation)
            raise

    async def release(self) -> None:
        """Releases the lock. Whatever comes of it, a cancellation too, the hold has ended.

        Raises:
            LockLost: it had been lost before.
            Closed: the client was closed, or the process forked; both ended the hold.
            Unavailable: too few nodes answered; the lock ends with its lease.
            NotHeld: it was released already.
        """
        try:
            handle = self._require_kept()
            operation = self._session.release(handle)
        except (Closed, LockLost):
            self._discard()
            raise
        self._freed()
        try:
            await self._session.outcome(operation)
        except LockLost as error:
            self._lost._notify(str(error))
            raise
        except InvalidUse:  # more is under way than C allows: the hold is what it was
            self._handle = handle
            self._session.grip(self, handle)
            raise

    async def __aenter__(self) -> AsyncHeld:
        if sys.version_info >= (3, 11):
            self._body = _Body()
            self._lost._add(self._body.interrupt)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        body, self._body = self._body, None
        if body is not None:
            self._lost._remove(body.interrupt)
            if body.interrupted:
                self._discard()
                await body.settle(error)
                if error is None or isinstance(error, asyncio.CancelledError):
                    raise self._loss() from error
                self._left(self._loss(), error)
                return
        if not self._handle:
            return  # the body released it
        try:
            await self.release()
        except RedlockError as failure:
            self._left(failure, error)


class _Body:
    """The body of an async with statement, whose task is cancelled when the lock is lost.

    As asyncio.timeout does it: a task counts the requests to cancel it, so that afterwards ours
    can be taken back and anybody else's told from it.
    """

    __slots__ = ("_requests_before", "_task", "interrupted")

    if sys.version_info >= (3, 11):

        def __init__(self) -> None:
            task = asyncio.current_task()
            if task is None:
                raise InvalidUse("async with needs a task to run in")
            self._task = task
            self._requests_before = task.cancelling()
            self.interrupted = False

        def interrupt(self) -> None:
            """Cancels the body."""
            self.interrupted = True
            self._task.cancel()

        async def settle(self, error: BaseException | None) -> None:
            """Takes our request back. Raises CancelledError if somebody else's is left."""
            cancelled = isinstance(error, asyncio.CancelledError)
            if not cancelled:
                # The body ended before our request reached it, or has swallowed it. What is
                # still under way would hit the next await: let it hit this one.
                try:
                    await asyncio.sleep(0)
                except asyncio.CancelledError:
                    cancelled = True
            if self._task.uncancel() > self._requests_before and cancelled:
                raise (
                    error if isinstance(error, asyncio.CancelledError) else asyncio.CancelledError()
                )

    else:

        def __init__(self) -> None:
            self.interrupted = False

        def interrupt(self) -> None:
            """Never called: without a count of requests, ours could not be taken back."""

        async def settle(self, error: BaseException | None) -> None:
            """Never called either."""
