"""The loss of a lock in asyncio: who is told, who is cancelled, and what is raised."""

from __future__ import annotations

import asyncio
import contextlib
import sys

import pytest
import redis

import libredlock
from libredlock import AsyncClient, LockLost

from .conftest import soon

cancels_body = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="Python 3.10 can't tell who cancelled a task"
)


def test_a_loss_is_told(url: str, server: redis.Redis, name: str) -> None:
    async def main() -> None:
        async with AsyncClient(url) as client:
            held = await client.mutex(name, ttl=0.2, auto_renew=False).acquire()
            calls: list[int] = []
            held.on_lost(lambda: calls.append(1))
            assert await soon(held.lost.wait())
            held.on_lost(lambda: calls.append(2))
            assert calls == [1, 2]
            assert held.remaining() == 0.0
            with pytest.raises(LockLost):
                await held.release()
            held = await client.mutex(name).acquire()
            server.delete(name)
            with pytest.raises(LockLost):
                await held.renew()
            assert held.lost.is_set()

            async def coroutine() -> None: ...

            with pytest.raises(TypeError):
                held.on_lost(coroutine)

    asyncio.run(main())


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


@cancels_body
def test_a_loss_cancels_the_body(url: str, name: str) -> None:
    async def main() -> None:
        async with AsyncClient(url) as client:
            lock = client.mutex(name, ttl=0.2, auto_renew=False)
            task = asyncio.current_task()
            assert task is not None
            with pytest.raises(LockLost) as caught:
                async with lock:
                    await soon(forever())
            assert isinstance(caught.value.__cause__, asyncio.CancelledError)
            assert task.cancelling() == 0
            await asyncio.sleep(0)

            with pytest.raises(KeyError):  # what the body raises goes on
                async with lock:
                    try:
                        await soon(forever())
                    except asyncio.CancelledError:
                        raise KeyError from None
            assert task.cancelling() == 0
            await asyncio.sleep(0)

            with pytest.raises(LockLost):  # the body swallows the cancellation
                async with lock:
                    with contextlib.suppress(asyncio.CancelledError):
                        await soon(forever())
            assert task.cancelling() == 0
            await asyncio.sleep(0)

    asyncio.run(main())


@cancels_body
def test_a_loss_that_never_reached_the_body(url: str, server: redis.Redis, name: str) -> None:
    async def main() -> None:
        async with AsyncClient(url) as client:
            task = asyncio.current_task()
            assert task is not None
            with pytest.raises(LockLost):
                async with client.mutex(name) as held:
                    held.lost._notify("it is a test")  # while the body runs: its next await is hit
            assert task.cancelling() == 0
            await asyncio.sleep(0)
            with pytest.raises(LockLost):
                async with client.mutex(name):
                    server.delete(name)  # nobody noticed before the release
            assert task.cancelling() == 0

    asyncio.run(main())


@cancels_body
def test_a_foreign_cancellation_goes_before_a_loss(url: str, name: str) -> None:
    async def main() -> None:
        async with AsyncClient(url) as client:
            entered = asyncio.Event()

            async def work(how: str) -> None:
                task = asyncio.current_task()
                assert task is not None
                async with client.mutex(name) as held:
                    entered.set()
                    if how == "before":
                        held.on_lost(lambda: None)
                    try:
                        await forever()
                    finally:
                        if how == "in cleanup":
                            held.lost._notify("it is a test")
                            await asyncio.sleep(0)

            for how in ("alone", "in cleanup"):
                entered.clear()
                task = asyncio.create_task(work(how))
                await soon(entered.wait())
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await soon(task)

            # Both at once, in either order.
            for first in ("loss", "cancel"):
                held = await client.mutex(name).acquire()

                async def body(held: libredlock.AsyncHeld = held) -> None:
                    async with held:
                        entered.set()
                        await forever()

                entered.clear()
                task = asyncio.create_task(body())
                await soon(entered.wait())
                if first == "loss":
                    held.lost._notify("it is a test")
                task.cancel()
                if first == "cancel":
                    held.lost._notify("it is a test")
                with pytest.raises(asyncio.CancelledError):
                    await soon(task)

    asyncio.run(main())


@cancels_body
def test_a_loss_within_a_timeout_and_a_task_group(url: str, name: str) -> None:
    async def main() -> None:
        async with AsyncClient(url) as client:
            cancelled = []

            async def child() -> None:
                try:
                    await forever()
                except asyncio.CancelledError:
                    cancelled.append(1)
                    raise

            with pytest.raises(LockLost):
                async with (
                    asyncio.timeout(20),
                    client.mutex(name, ttl=0.2, auto_renew=False),
                    asyncio.TaskGroup() as group,
                ):
                    group.create_task(child())
                    group.create_task(child())
            assert cancelled == [1, 1]
            with pytest.raises(TimeoutError):
                async with client.mutex(name), asyncio.timeout(0.05):
                    await forever()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05), client.mutex(name):
                    await forever()

    asyncio.run(main())
