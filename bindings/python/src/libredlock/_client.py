"""The client for threads."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import ParamSpec, TypeVar

from ._arguments import (
    c_string,
    count,
    duration_ms,
    node_urls,
    text,
    toggle,
    wait_ms,
    without_secrets,
)
from ._entered import Entered
from ._ffi import Native, Request
from ._held import Held
from ._inspection import Inspection
from ._pump import ThreadSession

P = ParamSpec("P")
R = TypeVar("R")


def open_native(
    nodes: str | Sequence[str],
    prefix: str,
    node_timeout: float | None,
    unavailable_after: float | None,
) -> tuple[Native, str]:
    """A C client from the arguments of a Client, and how a repr shows it."""
    urls = node_urls(nodes)
    native = Native(
        urls,
        prefix=c_string("prefix", prefix),
        node_timeout_ms=duration_ms("node_timeout", node_timeout),
        unavailable_after_ms=duration_ms("unavailable_after", unavailable_after),
    )
    return native, without_secrets(urls)


def lock_request(
    name: str,
    ttl: float,
    fencing: bool | None,
    auto_renew: bool | None,
    queue: bool | None,
    retry: tuple[float | None, float | None, int | None],
    max_hold: float | None,
    metadata: str,
) -> Request:
    """The C request of a lock object, which tries once. retry: delay, jitter and max_tries."""
    retry_delay, retry_jitter, max_tries = retry
    return Request(
        text("name", name),
        ttl_ms=duration_ms("ttl", ttl),
        fencing=toggle("fencing", fencing),
        auto_renew=toggle("auto_renew", auto_renew),
        queue=toggle("queue", queue),
        retry_delay_ms=duration_ms("retry_delay", retry_delay),
        retry_jitter_ms=duration_ms("retry_jitter", retry_jitter),
        max_tries=count("max_tries", max_tries),
        max_hold_ms=duration_ms("max_hold", max_hold),
        metadata=text("metadata", metadata),
    )


class Client:
    """A client for threads; AsyncClient is the one for asyncio.

    It may be used by any number of threads. It connects with the first request. One thread of
    its own, started with the first hold or wait, tells of lost locks. After a fork the child
    needs a new client: there, this one raises Closed and its holds are lost.

        with libredlock.Client("redis://127.0.0.1:6379") as client:
            with client.mutex("orders:42", ttl=10.0) as held:
                write_with(held.fence)

    Args:
        nodes: the URL of one Redis, or of several independent ones: then a lock needs a majority
            of them (Redlock). ``redis://[user:password@]host[:port][/db]`` or
            ``unix://[user:password@]/path[?db=n]``, at most 15.
        prefix: put before the name of every lock.
        node_timeout: seconds that one node may take to answer; None: chosen by the ttl.
        unavailable_after: seconds for which a wait without limit bears that too few nodes
            answer; None: 10.

    Raises:
        InvalidUse: an argument makes no sense.
        ImportError: libredlock.so was not found.
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
        self._session = ThreadSession(native)

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
    ) -> Mutex:
        """Describes a lock that one holder has at a time. Acquires nothing and asks no node.

        Args:
            name: the key in Redis, after the client's prefix; up to 1024 bytes of UTF-8.
            ttl: the lease in seconds, 0.1 s to 24 h: how long the lock outlives a holder that
                died without release.
            fencing: whether each hold gets a fencing token; None: it does.
            auto_renew: whether the lease is extended until the release, each third of the ttl;
                None: yes. False is a fixed lease.
            queue: whether who waits is told of a release; None: it is. With one node waiters stand
                in a FIFO queue in Redis, and a release hands the lock over to the first. With
                several they ask again, at random, when it is published. False polls, and tells
                nobody. The next three are for that alone:
            retry_delay: seconds between two attempts, 1 ms to 1 h; None: 50 ms.
            retry_jitter: up to so many seconds more, at random, 1 ms to 1 h; None: the delay.
            max_tries: after how many attempts acquire raises AcquireTimeout or Unavailable; None:
                as many as the timeout allows.
            max_hold: seconds after which a hold is lost, 0.1 s or more; None: no limit.
            metadata: shown by inspect beside host, process and language.

        Raises:
            InvalidUse: an argument can't be what it is meant to be. Limits of the core, such as
                those of the ttl, are checked when the lock is acquired.
        """
        request = lock_request(
            name,
            ttl,
            fencing,
            auto_renew,
            queue,
            (retry_delay, retry_jitter, max_tries),
            max_hold,
            metadata,
        )
        return Mutex(self._session, name, request)

    def inspect(self, name: str) -> Inspection:
        """Reads who holds a name.

        Raises:
            Unavailable: too few nodes answered.
            WrongKind: something that is no mutex stands there.
        """
        self._session.require_open()
        return self._session.native.inspect(Request(text("name", name)))

    def force_release(self, name: str, digest: str) -> None:
        """Takes a lock away from the holder whose digest inspect showed.

        A last resort: that holder may still be working, and finds out at its next renewal or
        release.

        Raises:
            NotHeld: there is no such holder.
            Unavailable: too few nodes answered.
        """
        self._session.require_open()
        self._session.native.force_release(Request(text("name", name)), c_string("digest", digest))

    def close(self) -> None:
        """Closes the client: waits raise Closed, and what it holds is lost and released.

        Takes at most the node timeout. Closing twice does nothing. At the end of the process
        clients that are open release what they hold, without calling on_lost callbacks.
        """
        self._session.close()

    def __enter__(self) -> Client:
        self._session.require_open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._shown}{' closed' if self._session.closed else ''}>"


class Mutex:
    """A lock that one holder has at a time; made by Client.mutex.

    It describes the lock and holds nothing itself, so it never changes, and any number of threads
    may use it at once. It is not reentrant: who holds it and acquires it again, waits.
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
