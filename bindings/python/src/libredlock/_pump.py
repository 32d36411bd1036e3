"""The session of a client for threads: who waits for what, and the thread that tells them."""

from __future__ import annotations

import logging
import os
import select
import threading
import time
import weakref

from . import _ffi
from ._ffi import EVENT_DONE, EVENT_LOST, HELD, OK, UNAVAILABLE, Event, Native, Request
from ._gate import Gate
from ._held import Held
from ._lost import ClientThread, Lost
from ._session import Session
from .errors import AcquireTimeout, Closed, RedlockError, Unavailable, from_status

logger = logging.getLogger("libredlock")


class _Waiter:
    """A thread that waits for a lock. Its gate opens when the result is there."""

    __slots__ = ("abandoned", "gate", "name", "result", "slots")

    def __init__(self, name: str, slots: bool) -> None:
        self.name = name
        self.slots = slots
        self.gate = Gate()
        self.result: Held | RedlockError | None = None
        self.abandoned = False


class ThreadSession(Session):
    """The session of a Client.

    The first try of an acquire is one C call on the caller's thread. Only what has to wait is
    submitted, and answered by the session's thread, which also tells of lost locks. The thread
    starts with the first hold or wait, and does not keep the session alive.
    """

    def __init__(self, native: Native) -> None:
        # Reentrant, for the signal handler that acquires a lock where the interrupted code does.
        self._mutex = threading.RLock()
        self._waiters: dict[int, _Waiter] = {}
        self._thread: threading.Thread | None = None
        # Both ends of a pipe. The second is the thread's, which ends when the first is closed.
        self._stop: tuple[int, int] | None = None
        self._doubtful = False  # nodes did not answer the last time
        super().__init__(native)

    def try_acquire(self, request: Request, name: str) -> Held | None:
        """Tries once, on this thread."""
        losses = self.losses
        held = None
        frame = _ffi.frame()
        try:
            status = self.native.acquire(request, frame)
            if status == OK:
                if self._thread is None:
                    self._start()
                handle = frame.number
                slot = self.native.slot(handle) if request.slots else None
                held = Held(self, handle, name, self.native.fence(handle), slot, Lost())
                if losses != self.losses and not self.native.remaining_ms(handle):
                    held.lost._notify(self.closed or "its lease has ended")
        except BaseException:
            if frame.number:
                self.dispose(frame.number)
            raise
        self._doubtful = status == UNAVAILABLE
        if held is None and status != HELD:
            raise frame.error(status)
        _ffi.recycle(frame)
        return held

    def acquire(self, request: Request, wait_ms: int, name: str) -> Held:
        """Waits for a lock, at most wait_ms, -1 being without limit."""
        # Against nodes that don't answer, a try would sit out its timeout deaf to Ctrl-C and to
        # wait_ms, so while they are doubtful it is left out. So it is where tries are counted.
        if wait_ms == 0 or not (self._doubtful or request.counts):
            began = time.monotonic()
            try:
                held = self.try_acquire(request, name)
            except Unavailable:
                wait_ms = _left_ms(wait_ms, began)
                if wait_ms == 0:
                    raise
            else:
                if held is not None:
                    return held
                wait_ms = _left_ms(wait_ms, began)
                if wait_ms == 0:
                    raise AcquireTimeout(f"lock {name!r} is held by another")
        held = self._wait(request.waiting(wait_ms), name)
        self._doubtful = False
        return held

    def _wait(self, request: Request, name: str) -> Held:
        waiter = _Waiter(name, request.slots)
        frame = _ffi.frame()
        try:
            # The mutex keeps the thread from seeing the outcome before its waiter is there.
            with self._mutex:
                self.require_open()
                if self._thread is None:
                    self._start()
                status = self.native.submit_acquire(request, frame)
                if status:
                    raise frame.error(status)
                self._waiters[frame.number] = waiter
            waiter.gate.wait()
        except BaseException:
            self._abandon(frame.number, waiter)
            raise
        _ffi.recycle(frame)
        if not isinstance(waiter.result, Held):
            raise waiter.result or Closed(self.closed)
        return waiter.result

    def _abandon(self, operation: int, waiter: _Waiter) -> None:
        # Should another interrupt cut this short: a hold that nobody takes releases itself.
        with self._mutex:
            waiter.abandoned = True
            result, waiter.result = waiter.result, None
            pending = operation in self._waiters
        if isinstance(result, Held):
            result._discard()
        elif operation:
            self.native.cancel(operation)
            if pending:
                waiter.gate.wait()

    # The thread.

    def _start(self) -> None:
        with self._mutex:
            self.require_open()
            if self._thread is not None:
                return
            events = self.native.fd()
            theirs, ours = os.pipe()
            # Whoever takes it out closes it: an interrupted start may yet lead to a thread.
            stop = [theirs]
            thread = ClientThread(
                target=_run, args=(weakref.ref(self), events, stop), name="libredlock", daemon=True
            )
            try:
                thread.start()
            except BaseException:
                os.close(ours)
                if stop:
                    os.close(stop.pop())
                raise
            if self._thread is not None:  # a signal handler was here meanwhile
                os.close(ours)
                return
            self._stop = ours, theirs
            self._thread = thread

    def _dispatch(self) -> None:
        losses: list[tuple[int, str]] = []
        warnings: list[str] = []
        with self._mutex:
            if self.closed:
                return
            for at, event in enumerate(self.native.drain()):
                _, handle, _, _, kind, _, _, _ = event
                if kind == EVENT_DONE:
                    self._done(at, event)
                elif kind == EVENT_LOST:
                    losses.append((handle, self.native.message(at)))
                else:
                    warnings.append(self.native.message(at))
            # Before the holds are looked up: one that is not there yet will see it.
            self.losses += len(losses)
        # Other people's code runs without the mutex.
        for handle, reason in losses:
            self.lose(handle, reason)
        for warning in warnings:
            logger.warning("%s", warning)

    def _done(self, at: int, event: Event) -> None:
        operation, handle, fence, _, _, status, _, slot = event
        waiter = self._waiters.pop(operation, None)
        if waiter is None or waiter.abandoned:
            if handle:
                self.dispose(handle)
        elif status == OK:
            which = slot if waiter.slots else None
            waiter.result = Held(self, handle, waiter.name, fence, which, Lost())
        elif status == HELD:
            waiter.result = AcquireTimeout(f"lock {waiter.name!r} is held by another")
        else:
            waiter.result = from_status(status, self.native.message(at))
        if waiter is not None:
            waiter.gate.open()

    # The end.

    def close(self) -> None:
        """Ends waits with Closed, tells that holds are lost, and releases them."""
        self._close("the client is closed", notify=True)

    def _close(self, reason: str, *, notify: bool) -> None:
        with self._mutex:
            if self.closed:
                return
            holds = self._end(reason)
            waiters, self._waiters = self._waiters, {}
            thread, stop = self._thread, self._stop
            self._thread, self._stop = None, None
        try:
            if stop is not None:
                os.close(stop[0])
            for waiter in waiters.values():
                waiter.result = Closed(reason)
                waiter.gate.open()
            if notify:
                for held in holds:
                    held.lost._notify(reason)
        finally:
            # The thread may still run a callback, but polls no descriptor any more but its own.
            self.native.close()
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=1.0)

    def _at_exit(self) -> None:
        self._close("the process ends", notify=False)

    def _after_fork(self) -> None:
        self._mutex = threading.RLock()
        self._waiters = {}
        for fd in self._stop or ():
            os.close(fd)
        self._thread, self._stop = None, None
        super()._after_fork()

    def __del__(self) -> None:
        if hasattr(self, "_ref"):
            self._close("the client was garbage-collected", notify=False)


def _left_ms(wait_ms: int, began: float) -> int:
    if wait_ms <= 0:
        return wait_ms
    return max(wait_ms - int((time.monotonic() - began) * 1000), 0)


def _run(session_ref: weakref.ref[ThreadSession], events: int, stop_end: list[int]) -> None:
    try:
        stop = stop_end.pop()
    except IndexError:
        return
    poll = select.poll()
    poll.register(events, select.POLLIN)
    poll.register(stop, 0)  # its other end is closed: POLLHUP
    try:
        while True:
            ready = poll.poll()
            session = session_ref()
            if session is None or session.closed or any(fd == stop for fd, _ in ready):
                return
            try:
                session._dispatch()
            except BaseException:
                # Nobody would be told of anything any more: rather nobody holds a lock.
                logger.exception("a bug in libredlock: please report it; the client is closed")
                session._close("the client failed", notify=True)
            del session, ready
    finally:
        os.close(stop)
