"""The client for asyncio."""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from . import _ffi
from ._aio_held import AsyncHeld
from ._aio_lock import AsyncMutex, AsyncSemaphore
from ._client import open_native
from ._ffi import EVENT_DONE, EVENT_LOST, HELD, MAX_OPERATIONS, OK, Event, Native, Request
from ._inspection import Inspection
from ._lock import LockOptions, mutex_request, semaphore_request
from ._lost import AsyncLost
from ._session import Session
from .errors import Closed, InternalError, InvalidUse, RedlockError, from_status

if TYPE_CHECKING:
    from typing_extensions import Unpack

logger = logging.getLogger("libredlock")

R = TypeVar("R")

# What an operation ended with. An error is handed over as a value: nobody need fetch it.
_Result = AsyncHeld | RedlockError | None


class Operation:
    """What one task awaits: an acquire, a renewal or a release.

    Attributes:
        record: as C wants it.
        name: of the lock, for an acquire.
        number: of its event; 0 until it is submitted.
        request: what record refers to, to be kept.
        future: resolved by the reader.
    """

    __slots__ = ("future", "name", "number", "record", "request")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        record: bytes,
        name: str = "",
        request: Request | None = None,
    ) -> None:
        self.record = record
        self.name = name
        self.request = request
        self.number = 0
        self.future: asyncio.Future[_Result] = loop.create_future()


class LoopSession(Session):
    """The session of an AsyncClient: everything happens in one event loop, without a thread.

    Every operation is submitted and awaits a future, which the reader of the C client's
    descriptor resolves. One that comes while others are under way is gathered, with what else this
    turn of the loop brings, and submitted by the same call to C: such a call costs more than all
    that Python does for an operation. Who is alone is not held up.
    """

    def __init__(self, native: Native) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._fd = -1
        self._pending: dict[int, Operation] = {}  # by number
        self._gathered: list[Operation] = []  # to be submitted in this turn of the loop
        # Events of the last drain that are still to be handled, with their places there.
        self._batch: deque[tuple[int, Event]] = deque()
        self._closing: asyncio.Future[None] | None = None
        super().__init__(native)

    def require_loop(self) -> asyncio.AbstractEventLoop:
        """The running loop, to which the first call binds the session."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self.require_open()
            if self._loop is not None:
                raise InvalidUse("an AsyncClient belongs to the event loop that used it first")
            self._fd = self.native.fd()
            loop.add_reader(self._fd, _on_readable, weakref.ref(self))
            self._loop = loop
        return loop

    async def acquire(self, request: Request, name: str) -> AsyncHeld | None:
        """Acquires; None if the request is to try and another holds the lock."""
        loop = self.require_loop()
        self.require_open()
        operation = Operation(loop, request.operation, name, request)
        self._submit(loop, operation)
        try:
            result = await operation.future
        except asyncio.CancelledError:
            await self._withdraw(loop, operation)
            raise
        if isinstance(result, RedlockError):
            raise result
        return result

    def renew(self, handle: int, ttl_ms: int) -> Operation:
        """Begins to renew a hold."""
        loop = self.require_loop()
        operation = Operation(loop, _ffi.renewal(handle, ttl_ms))
        self._submit(loop, operation)
        return operation

    def release(self, handle: int) -> Operation:
        """Begins to release a hold."""
        loop = self.require_loop()
        operation = Operation(loop, _ffi.ending(handle))
        self._submit(loop, operation)
        return operation

    async def outcome(self, operation: Operation) -> None:
        """Awaits the end of a renewal or release."""
        result = await operation.future
        if isinstance(result, RedlockError):
            raise result

    def cancel(self, operation: Operation) -> None:
        """Cancels a renewal."""
        if operation.number:
            self.native.cancel(operation.number)
        elif operation in self._gathered:
            self._gathered.remove(operation)

    async def _withdraw(self, loop: asyncio.AbstractEventLoop, operation: Operation) -> None:
        """After the caller was cancelled: leaves neither a lock nor an operation behind."""
        if not operation.future.cancelled():
            result = operation.future.result()  # it came in just before
        elif operation.number in self._pending:
            # Awaits the end of the operation, which comes at once, so that no lock comes in
            # when the loop is gone. If that is cancelled too, the reader releases what comes.
            operation.future = loop.create_future()
            self.native.cancel(operation.number)
            result = await operation.future
        else:  # the reader saw it end, or it was never submitted
            self.cancel(operation)
            return
        if isinstance(result, AsyncHeld):
            result._discard()

    def _submit(self, loop: asyncio.AbstractEventLoop, operation: Operation) -> None:
        gathered = self._gathered
        gathered.append(operation)
        if len(gathered) == MAX_OPERATIONS or (not self._pending and len(gathered) == 1):
            self._submit_gathered()
        elif len(gathered) == 1:
            loop.call_soon(self._submit_gathered)

    def _submit_gathered(self) -> None:
        gathered, self._gathered = self._gathered, []
        if not gathered or self.closed:
            return
        try:
            first = self.native.submit([operation.record for operation in gathered])
        except RedlockError as error:
            for operation in gathered:
                if not operation.future.done():
                    operation.future.set_result(error)
            return
        pending = self._pending
        for number, operation in enumerate(gathered, first):
            operation.number = number
            pending[number] = operation

    async def in_thread(self, function: Callable[[], R]) -> R:
        """Runs a blocking call of the C client."""
        loop = self.require_loop()
        self.require_open()
        return await loop.run_in_executor(None, function)

    def _dispatch(self) -> None:
        batch = self._batch
        if not batch:
            batch.extend(enumerate(self.native.drain()))
        try:
            while batch and not self.closed:  # a callback may close it
                at, event = batch.popleft()
                kind = event[4]
                if kind == EVENT_DONE:
                    self._done(at, event)
                elif kind == EVENT_LOST:
                    self.lose(event[1], self.native.message(at))
                else:
                    logger.warning("%s", self.native.message(at))
        finally:
            # A callback may raise SystemExit, which ends the loop; it may be run again.
            if batch and not self.closed and self._loop is not None:
                self._loop.call_soon(_on_readable, weakref.ref(self))

    def _done(self, at: int, event: Event) -> None:
        number, handle, fence, _, _, status, _, slot = event
        operation = self._pending.pop(number, None)
        future = operation.future if operation is not None else None
        try:
            if operation is None or future is None or future.done():
                if handle:
                    self.dispose(handle)
            elif status == OK:
                held = None
                if handle:
                    asked = operation.request
                    which = slot if asked is not None and asked.slots else None
                    held = AsyncHeld(self, handle, operation.name, fence, which, AsyncLost())
                future.set_result(held)
            elif status == HELD:
                future.set_result(None)
            else:
                future.set_result(from_status(status, self.native.message(at)))
        except BaseException as error:
            if future is None or future.cancelled() or not future.done():
                if handle:
                    self.dispose(handle)
                if future is not None and not future.done():
                    future.set_result(InternalError(f"the outcome got lost: {error!r}"))
            raise

    async def close(self) -> None:
        """Ends waits with Closed, tells that holds are lost, and releases them."""
        loop = asyncio.get_running_loop()
        if not self.closed:
            if self._loop is not None and not self._loop.is_closed():
                self.require_loop()
            self._finish("the client is closed", loop)
        closing = self._closing
        if closing is not None and closing.get_loop() is loop:
            await asyncio.shield(closing)

    def _finish(self, reason: str, loop: asyncio.AbstractEventLoop) -> None:
        holds = self._end(reason)
        waiting = [*self._pending.values(), *self._gathered]
        self._pending, self._gathered = {}, []
        if self._loop is not None:
            if self._loop.is_closed():
                waiting = []  # nothing runs there any more
            else:
                self._loop.remove_reader(self._fd)
        # Before anybody is told: who closes in the body of a lock is cancelled by its loss.
        try:
            self._closing = loop.run_in_executor(None, self.native.close)
        except RuntimeError:  # the executor is shut down
            self.native.close()
        for operation in waiting:
            if not operation.future.done():
                operation.future.set_result(Closed(reason))
        for held in holds:
            held.lost._notify(reason)

    def _at_exit(self) -> None:
        # The loop has ended, or never will: it is left alone.
        self._end("the process ends")
        self.native.close()

    def _after_fork(self) -> None:
        # The loop's selector is shared with the parent: the reader must not be removed from it.
        self._pending, self._gathered = {}, []
        super()._after_fork()

    def __del__(self) -> None:
        # Nothing is pending: a task that waits has the session.
        if not hasattr(self, "_ref") or self.closed:
            return
        self._end("the client was garbage-collected")
        loop, fd, native = self._loop, self._fd, self.native
        if loop is None or loop.is_closed():
            native.close()
            return

        # The descriptor must have left the loop's selector before its number can be used again.
        def dispose() -> None:
            loop.remove_reader(fd)
            native.close()

        loop.call_soon_threadsafe(dispose)


def _on_readable(session_ref: weakref.ref[LoopSession]) -> None:
    session = session_ref()
    if session is not None and not session.closed:
        session._dispatch()


class AsyncClient:
    """A client for asyncio, with the arguments and methods of Client, awaited.

    It belongs to the event loop in which it is used first. It needs no thread, but for inspect,
    force_release and close, which run in the loop's executor.

        async with libredlock.AsyncClient("redis://127.0.0.1:6379") as client:
            async with client.mutex("orders:42", ttl=10.0) as held:
                await write_with(held.fence)

    The arguments and errors are those of Client.
    """

    def __init__(
        self,
        nodes: str | Sequence[str],
        *,
        prefix: str = "",
        node_timeout: float | None = None,
        unavailable_after: float | None = None,
    ) -> None:
        native, self._shown = open_native(nodes, prefix, node_timeout, unavailable_after)
        self._session = LoopSession(native)

    def mutex(
        self,
        name: str,
        *,
        ttl: float = 10.0,
        fencing: bool | None = None,
        auto_renew: bool | None = None,
        queue: bool | None = None,
        retry_delay: float | None = None,
        retry_jitter: float | None = None,
        max_tries: int | None = None,
        max_hold: float | None = None,
        metadata: str = "",
    ) -> AsyncMutex:
        """Describes a lock that one holder has at a time, as Client.mutex does."""
        request = mutex_request(
            name,
            ttl=ttl,
            fencing=fencing,
            auto_renew=auto_renew,
            queue=queue,
            retry_delay=retry_delay,
            retry_jitter=retry_jitter,
            max_tries=max_tries,
            max_hold=max_hold,
            metadata=metadata,
        )
        return AsyncMutex(self._session, name, request)

    def semaphore(self, name: str, permits: int, **options: Unpack[LockOptions]) -> AsyncSemaphore:
        """Describes a lock that several holders have at a time, as Client.semaphore does."""
        return AsyncSemaphore(self._session, name, semaphore_request(name, permits, **options))

    async def inspect(self, name: str) -> Inspection:
        """Reads who holds a mutex, as Client.inspect does."""
        return await self.mutex(name).inspect()

    async def force_release(self, name: str, digest: str) -> None:
        """Takes a mutex away from a holder, as Client.force_release does."""
        await self.mutex(name).force_release(digest)

    async def close(self) -> None:
        """Closes the client: waits raise Closed, and what it holds is lost and released.

        Takes at most the node timeout. Closing twice does nothing.
        """
        await self._session.close()

    async def __aenter__(self) -> AsyncClient:
        self._session.require_open()
        self._session.require_loop()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._shown}{' closed' if self._session.closed else ''}>"
