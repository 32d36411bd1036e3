"""The benchmark's peer for asyncio: see protocol.py for what it is told."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import libredlock
import redis.asyncio

from protocol import PIPELINES, TTL, Setup, answer, check, lock_name, orders, start

# One round of a worker: it makes so many pairs.
Round = Callable[[], Awaitable[int]]


def libredlock_rounds(setup: Setup) -> Callable[[int], list[Round]]:
    """One task a caller."""
    client = libredlock.AsyncClient(setup.url)

    def one(caller: int) -> Round:
        lock = client.mutex(lock_name(caller), ttl=TTL)

        async def pair() -> int:
            held = await lock.acquire()
            await held.release()
            return 1

        return pair

    return lambda callers: [one(caller) for caller in range(callers)]


def redis_py_lock_rounds(setup: Setup) -> Callable[[int], list[Round]]:
    """One task a caller. The default pool raises beyond 100 connections; this one waits."""
    pool = redis.asyncio.BlockingConnectionPool.from_url(
        setup.url, max_connections=100, timeout=None
    )
    client = redis.asyncio.Redis(connection_pool=pool)

    def one(caller: int) -> Round:
        lock = client.lock(lock_name(caller), timeout=TTL)

        async def pair() -> int:
            check(await lock.acquire())
            await lock.release()
            return 1

        return pair

    return lambda callers: [one(caller) for caller in range(callers)]


def scripts_rounds(setup: Setup) -> Callable[[int], list[Round]]:
    """The limit: many callers are a few tasks, each with a big pipeline."""
    client = redis.asyncio.Redis.from_url(setup.url)
    acquire, release = setup.acquire_command(0), setup.release_command(0)

    async def pair() -> int:
        check(await client.execute_command(*acquire))  # type: ignore[no-untyped-call]
        check(await client.execute_command(*release))  # type: ignore[no-untyped-call]
        return 1

    def share(callers: list[int]) -> Round:
        acquires = [setup.acquire_command(caller) for caller in callers]
        releases = [setup.release_command(caller) for caller in callers]

        async def pairs() -> int:
            for commands in (acquires, releases):
                pipeline = client.pipeline(transaction=False)
                for command in commands:
                    pipeline.execute_command(*command)
                for reply in await pipeline.execute():
                    check(reply)
            return len(callers)

        return pairs

    def rounds(callers: int) -> list[Round]:
        if callers == 1:
            return [pair]
        return [share(list(range(i, callers, PIPELINES))) for i in range(PIPELINES)]

    return rounds


CONTESTANTS = {
    "libredlock": libredlock_rounds,
    "scripts": scripts_rounds,
    "redis-py-lock": redis_py_lock_rounds,
}


async def work(a_round: Round, until: int) -> int:
    """Goes on until a time of time.perf_counter_ns, and returns the pairs made."""
    pairs = 0
    while time.perf_counter_ns() < until:
        pairs += await a_round()
    return pairs


async def main() -> None:
    """Makes the runs."""
    contestant, setup = start()
    rounds = CONTESTANTS[contestant](setup)
    for callers, milliseconds in orders():
        workers = rounds(callers)
        began = time.perf_counter_ns()
        until = began + milliseconds * 1_000_000
        if len(workers) == 1:
            pairs = await work(workers[0], until)
        else:
            pairs = sum(await asyncio.gather(*(work(worker, until) for worker in workers)))
        answer(pairs, time.perf_counter_ns() - began)


if __name__ == "__main__":
    asyncio.run(main())
