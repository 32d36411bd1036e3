"""The locks of a client for asyncio."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from . import _ffi
from ._aio_held import AsyncHeld
from ._arguments import c_string, wait_ms
from ._entered import Entered
from ._ffi import Request
from ._inspection import Inspection
from .errors import AcquireTimeout

if TYPE_CHECKING:
    from ._aio import LoopSession

P = ParamSpec("P")
R = TypeVar("R")


class AsyncLock:
    """A lock of any kind.

    It describes the lock and holds nothing itself, so it never changes, and any number of tasks
    may use it at once.

    When the lock is lost inside ``async with``, the task that runs the body is cancelled, and
    LockLost is raised at the body's end (Python 3.11 and later; before, LockLost alone).
    """

    __slots__ = ("_entered", "_forever", "_name", "_session", "_try")

    def __init__(self, session: LoopSession, name: str, request: Request) -> None:
        self._session = session
        self._name = name
        self._try = request
        self._forever = request.waiting(_ffi.WAIT_FOREVER)
        self._entered: Entered[AsyncHeld] = Entered()

    @property
    def name(self) -> str:
        """The name of the lock, without the client's prefix."""
        return self._name

    async def acquire(self, timeout: float | None = None) -> AsyncHeld:
        """Acquires the lock, waiting for it. A cancelled wait leaves nothing behind.

        Args:
            timeout: seconds to wait at most; None waits without limit.

        Raises:
            AcquireTimeout: it was held by others until the timeout, or at all of max_tries. It is
                a TimeoutError too.
            Unavailable: too few nodes answered until the timeout, or for unavailable_after.
            WrongKind: something else stands at the name.
            InvalidUse: an argument is beyond its limits, or another loop used the client first.
            Unsupported: an option of the lock can't be had.
            Closed: the client is closed.
        """
        limit_ms = wait_ms(timeout)
        request = self._forever if limit_ms < 0 else self._try.waiting(limit_ms)
        held = await self._session.acquire(request, self._name)
        if held is None:
            raise AcquireTimeout(f"lock {self._name!r} is held by another")
        return held

    async def try_acquire(self) -> AsyncHeld | None:
        """Acquires the lock if it is free now, else returns None. Raises as acquire does."""
        return await self._session.acquire(self._try, self._name)

    async def inspect(self) -> Inspection:
        """Reads who holds the lock, as Lock.inspect does."""
        session, request = self._session, self._try
        return await session.in_thread(lambda: session.native.inspect(request))

    async def force_release(self, digest: str) -> None:
        """Takes the lock away from a holder, as Lock.force_release does."""
        session, request, chosen = self._session, self._try, c_string("digest", digest)
        await session.in_thread(lambda: session.native.force_release(request, chosen))

    def guard(self, function: Callable[P, Awaitable[R]]) -> Callable[P, Coroutine[Any, Any, R]]:
        """Decorates an async function so that it runs while the lock is held.

        It waits without limit, and raises as leaving an async with statement does.
        """
        if not inspect.iscoroutinefunction(function):
            raise TypeError("a lock of an AsyncClient guards async functions only")

        @functools.wraps(function)
        async def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
            async with await self.acquire():
                return await function(*args, **kwargs)

        return guarded

    async def __aenter__(self) -> AsyncHeld:
        held = await self.acquire()
        try:
            self._entered.push(asyncio.current_task(), held)
            return await held.__aenter__()
        except BaseException:  # the body, which would give it back, does not begin
            self._entered.remove(held)
            held._discard()
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._entered.pop(asyncio.current_task()).__aexit__(kind, error, traceback)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._name!r}>"


class AsyncMutex(AsyncLock):
    """A lock that one holder has at a time; made by AsyncClient.mutex.

    It is not reentrant: who holds it and acquires it again, waits.
    """

    __slots__ = ()


class AsyncSemaphore(AsyncLock):
    """A lock that several holders have at a time, each with a slot; made by AsyncClient.semaphore.

    It is not reentrant: who holds it and acquires it again, takes another slot, or waits for one.
    """

    __slots__ = ()
