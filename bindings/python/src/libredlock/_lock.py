"""The locks of a client for threads, and what a lock is made with."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, ParamSpec, TypedDict, TypeVar

from . import _ffi
from ._arguments import c_string, count, duration_ms, text, toggle, wait_ms
from ._entered import Entered
from ._ffi import Request
from ._held import Held
from ._inspection import Inspection
from ._pump import ThreadSession

if TYPE_CHECKING:
    from typing_extensions import Unpack

P = ParamSpec("P")
R = TypeVar("R")


class LockOptions(TypedDict, total=False):
    """The options of a lock of any kind, as Client.mutex describes them."""

    ttl: float
    fencing: bool | None
    auto_renew: bool | None
    queue: bool | None
    retry_delay: float | None
    retry_jitter: float | None
    max_tries: int | None
    max_hold: float | None
    metadata: str


def mutex_request(name: str, **options: Unpack[LockOptions]) -> Request:
    """The C request of a mutex, which tries once."""
    return _request(_ffi.MUTEX, name, 0, **options)


def semaphore_request(name: str, permits: int, **options: Unpack[LockOptions]) -> Request:
    """The C request of a semaphore, which tries once."""
    if permits is None:
        raise TypeError("permits must be an int, not NoneType")
    return _request(_ffi.SEMAPHORE, name, count("permits", permits), **options)


def _request(
    kind: int,
    name: str,
    permits: int,
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
) -> Request:
    return Request(
        text("name", name),
        kind=kind,
        ttl_ms=duration_ms("ttl", ttl),
        fencing=toggle("fencing", fencing),
        auto_renew=toggle("auto_renew", auto_renew),
        queue=toggle("queue", queue),
        retry_delay_ms=duration_ms("retry_delay", retry_delay),
        retry_jitter_ms=duration_ms("retry_jitter", retry_jitter),
        max_tries=count("max_tries", max_tries),
        permits=permits,
        max_hold_ms=duration_ms("max_hold", max_hold),
        metadata=text("metadata", metadata),
    )


class Lock:
    """A lock of any kind.

    It describes the lock and holds nothing itself, so it never changes, and any number of threads
    may use it at once.
    """

    __slots__ = ("_entered", "_name", "_request", "_session")

    def __init__(self, session: ThreadSession, name: str, request: Request) -> None:
        self._session = session
        self._name = name
        self._request = request
        self._entered: Entered[Held] = Entered()

    @property
    def name(self) -> str:
        """The name of the lock, without the client's prefix."""
        return self._name

    def acquire(self, timeout: float | None = None) -> Held:
        """Acquires the lock, waiting for it.

        Args:
            timeout: seconds to wait at most; None waits without limit.

        Raises:
            AcquireTimeout: it was held by others until the timeout, or at all of max_tries. It is
                a TimeoutError too.
            Unavailable: too few nodes answered until the timeout, or for unavailable_after.
            WrongKind: something else stands at the name.
            InvalidUse: an argument of the lock is beyond its limits.
            Unsupported: an option of the lock can't be had.
            Closed: the client is closed.
        """
        limit_ms = wait_ms(timeout)
        self._session.require_open()
        return self._session.acquire(self._request, limit_ms, self._name)

    def try_acquire(self) -> Held | None:
        """Acquires the lock if it is free now, else returns None. Raises as acquire does."""
        self._session.require_open()
        return self._session.try_acquire(self._request, self._name)

    def inspect(self) -> Inspection:
        """Reads who holds the lock.

        Raises:
            Unavailable: too few nodes answered.
            WrongKind: something else stands at the name, such as a lock of another kind.
        """
        self._session.require_open()
        return self._session.native.inspect(self._request)

    def force_release(self, digest: str) -> None:
        """Takes the lock away from the holder whose digest inspect showed.

        A last resort: that holder may still be working, and finds out at its next renewal or
        release.

        Raises:
            NotHeld: there is no such holder.
            Unavailable: too few nodes answered.
        """
        self._session.require_open()
        self._session.native.force_release(self._request, c_string("digest", digest))

    def guard(self, function: Callable[P, R]) -> Callable[P, R]:
        """Decorates a function so that it runs while the lock is held.

        It waits without limit, and raises as leaving a with statement does.
        """
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError("an async function is guarded by a lock of an AsyncClient")
        if inspect.isgeneratorfunction(function):
            raise TypeError("a generator runs after its call has returned, when the lock is free")

        @functools.wraps(function)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
            with self.acquire():
                return function(*args, **kwargs)

        return guarded

    def __enter__(self) -> Held:
        held = self.acquire()
        try:
            self._entered.push(threading.get_ident(), held)
            return held
        except BaseException:  # Ctrl-C: the body, which would give it back, does not begin
            self._entered.remove(held)
            held._discard()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._entered.pop(threading.get_ident()).__exit__(kind, error, traceback)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._name!r}>"


class Mutex(Lock):
    """A lock that one holder has at a time; made by Client.mutex.

    It is not reentrant: who holds it and acquires it again, waits.
    """

    __slots__ = ()


class Semaphore(Lock):
    """A lock that several holders have at a time, each with a slot; made by Client.semaphore.

    It is not reentrant: who holds it and acquires it again, takes another slot, or waits for one.
    """

    __slots__ = ()
