"""The client for threads."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from ._arguments import c_string, duration_ms, node_urls, without_secrets
from ._ffi import Native
from ._inspection import Inspection
from ._lock import LockOptions, Mutex, Semaphore, mutex_request, semaphore_request
from ._pump import ThreadSession

if TYPE_CHECKING:
    from typing_extensions import Unpack


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
        return Mutex(self._session, name, request)

    def semaphore(self, name: str, permits: int, **options: Unpack[LockOptions]) -> Semaphore:
        """Describes a lock that several holders have at a time. Acquires nothing and asks no node.

            with client.semaphore("gpu", permits=3, ttl=10.0) as held:
                run_on(held.slot)

        Args:
            name: the key in Redis, after the client's prefix; not one that a mutex uses.
            permits: how many may hold it, 1 to 10,000. Each has a slot of its own, from 0 to
                permits - 1; with one node the lowest that is free. Who asks says how many there
                are: with more than before others get in at once, with fewer those who are in
                stay until they release.
            options: those of mutex, with the same meaning and units: ttl, fencing, auto_renew,
                queue, retry_delay, retry_jitter, max_tries, max_hold and metadata.

        Raises:
            InvalidUse: an argument can't be what it is meant to be. Limits of the core, such as
                those of permits, are checked when the lock is acquired.
        """
        return Semaphore(self._session, name, semaphore_request(name, permits, **options))

    def inspect(self, name: str) -> Inspection:
        """Reads who holds a mutex. Locks of every kind have an inspect of their own.

        Raises:
            Unavailable: too few nodes answered.
            WrongKind: something that is no mutex stands there.
        """
        return self.mutex(name).inspect()

    def force_release(self, name: str, digest: str) -> None:
        """Takes a mutex away from the holder whose digest inspect showed.

        Locks of every kind have a force_release of their own. A last resort: that holder may
        still be working, and finds out at its next renewal or release.

        Raises:
            NotHeld: there is no such holder.
            Unavailable: too few nodes answered.
        """
        self.mutex(name).force_release(digest)

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
