"""The benchmark's peer for threads: see protocol.py for what it is told. One caller is measured."""

from __future__ import annotations

import time
from collections.abc import Callable

import libredlock
import redis

from protocol import TTL, Setup, check, lock_name, serve, start


def libredlock_pair(setup: Setup) -> Callable[[], None]:
    """The contestant itself."""
    lock = libredlock.Client(setup.url).mutex(lock_name(0), ttl=TTL)

    def pair() -> None:
        lock.acquire().release()

    return pair


def scripts_pair(setup: Setup) -> Callable[[], None]:
    """The limit: the same commands and nothing around them."""
    client = redis.Redis.from_url(setup.url)
    acquire, release = setup.acquire_command(0), setup.release_command(0)

    def pair() -> None:
        check(client.execute_command(*acquire))  # type: ignore[no-untyped-call]
        check(client.execute_command(*release))  # type: ignore[no-untyped-call]

    return pair


def redis_py_lock_pair(setup: Setup) -> Callable[[], None]:
    """The lock that comes with redis-py: SET NX PX, and a script for the release."""
    lock = redis.Redis.from_url(setup.url).lock(lock_name(0), timeout=TTL)

    def pair() -> None:
        check(lock.acquire())
        lock.release()

    return pair


CONTESTANTS = {
    "libredlock": libredlock_pair,
    "scripts": scripts_pair,
    "redis-py-lock": redis_py_lock_pair,
}


def main() -> None:
    """Makes the runs."""
    contestant, setup = start()
    pair = CONTESTANTS[contestant](setup)

    def run(callers: int, until: int) -> int:
        if callers != 1:
            raise SystemExit("one caller is measured here")
        pairs = 0
        while time.perf_counter_ns() < until:
            pair()
            pairs += 1
        return pairs

    serve(run)


if __name__ == "__main__":
    main()
