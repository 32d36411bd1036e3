"""The client for asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import random
import select
import sys
import threading
import time
from collections.abc import AsyncIterator, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis

import libredlock
from libredlock import (
    AcquireTimeout,
    AsyncClient,
    AsyncHeld,
    Closed,
    InternalError,
    InvalidUse,
    LockLost,
    NotHeld,
    _aio,
)
from libredlock._entered import Entered
from libredlock._ffi import EVENT_LOST, Native

from .conftest import run_python, soon, until


def test_acquire_renew_release(url: str, server: redis.Redis, name: str) -> None:
    async def main() -> None:
        async with AsyncClient(url) as client:
            lock = client.mutex(name, ttl=5.0)
            held = await lock.acquire()
            assert held.name == lock.name == name
            assert server.get(name) == held.token
            assert held.fence > 0
            assert 4.0 < held.remaining() <= 5.0
            await held.renew(ttl=30.0)
            assert 29.0 < held.remaining() <= 30.0
            assert await lock.try_acquire() is None
            for timeout in (0, 0.05):
                with pytest.raises(AcquireTimeout):
                    await lock.acquire(timeout=timeout)
            await held.release()
            assert not server.exists(name)
            with pytest.raises(NotHeld):
                await held.release()
            with pytest.raises(NotHeld):
                await held.renew()
            tried = await lock.try_acquire()
            assert tried is not None
            async with tried:
                assert tried.fence > held.fence

    asyncio.run(main())


def test_one_lock_object_in_many_tasks(url: str, name: str) -> None:
    async def main() -> None:
        async with AsyncClient(url) as client:
            lock, inside, fences = client.mutex(name), [], []

            async def work() -> None:
                async with lock as held:
                    inside.append(held)
                    await asyncio.sleep(0)
                    assert len(inside) == 1
                    fences.append(held.fence)
                    inside.pop()

            await soon(asyncio.gather(*(work() for _ in range(20))))
            assert fences == sorted(set(fences))
            assert len(fences) == 20

    asyncio.run(main())


def test_inspect_and_force_release(url: str, name: str) -> None:
    async def main() -> None:
        async with AsyncClient(url) as client:
            held = await client.mutex(name).acquire()
            (holder,) = (await client.inspect(name)).holders
            await client.force_release(name, holder.digest)
            assert not (await client.inspect(name)).held
            with pytest.raises(LockLost):
                await held.release()

    asyncio.run(main())


def test_cancelling_at_random_moments_leaves_no_key(
    url: str, server: redis.Redis, name: str
) -> None:
    chance = random.Random(7)

    async def main() -> None:
        async with AsyncClient(url) as client:
            lock = client.mutex(name)
            outcomes = {"cancelled": 0, "held": 0}

            async def work() -> None:
                async with lock:
                    outcomes["held"] += 1
                    await asyncio.sleep(0)

            for _ in range(300):
                task = asyncio.create_task(work())
                await asyncio.sleep(chance.random() * 1e-3)
                task.cancel()
                try:
                    await soon(task)
                except asyncio.CancelledError:
                    outcomes["cancelled"] += 1
            assert outcomes["cancelled"] > 20
            await (await lock.acquire(timeout=10)).release()
            assert not client._session._pending
            assert not server.exists(name)

    asyncio.run(main())


def test_what_a_turn_of_the_loop_brings_is_submitted_together(
    url: str, server: redis.Redis, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    submit = Native.submit

    def counted(native: Native, operations: list[bytes]) -> int:
        sizes.append(len(operations))
        return submit(native, operations)

    monkeypatch.setattr(Native, "submit", counted)

    async def main() -> None:
        async with AsyncClient(url) as client:
            locks = [client.mutex(f"{name}:{i}") for i in range(600)]
            tasks = [asyncio.create_task(lock.acquire()) for lock in locks]
            await asyncio.sleep(0)
            assert sizes == [1, 256, 256]  # the first is alone: it does not wait for others
            await asyncio.sleep(0)
            assert sizes == [1, 256, 256, 87]
            holds = await soon(asyncio.gather(*tasks))
            assert len({held.fence for held in holds}) == 600
            await soon(asyncio.gather(*(held.release() for held in holds)))
            assert not client._session._pending
            assert not server.keys(f"{name}:*")

    asyncio.run(main())


def test_cancelling_what_is_not_submitted_yet(url: str, server: redis.Redis, name: str) -> None:
    async def main() -> None:
        async with AsyncClient(url) as client:
            session = client._session
            held = await client.mutex(name, ttl=20.0).acquire()
            first = asyncio.create_task(client.mutex(f"{name}:1").acquire())
            second = asyncio.create_task(client.mutex(f"{name}:2").acquire())
            renewal = asyncio.create_task(held.renew(ttl=0.1))
            release = asyncio.create_task(held.release())
            await asyncio.sleep(0)
            assert len(session._gathered) == 3
            for task in (second, renewal, release):
                task.cancel()
            await asyncio.wait((second, renewal, release), timeout=10)
            assert all(task.cancelled() for task in (second, renewal, release))
            await (await soon(first)).release()
            assert await client.mutex(name).acquire(timeout=10)  # it was released all the same
            assert not session._pending
            assert not server.exists(f"{name}:2")

    asyncio.run(main())


def test_closing_before_anything_is_submitted(url: str, server: redis.Redis, name: str) -> None:
    async def main() -> None:
        client = AsyncClient(url)
        held = await client.mutex(name).acquire()
        tasks = [asyncio.create_task(client.mutex(f"{name}:{i}").acquire()) for i in range(3)]
        tasks.append(asyncio.create_task(held.release()))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        await soon(client.close())
        results = await soon(asyncio.gather(*tasks, return_exceptions=True))
        assert [type(result) for result in results] == [Closed] * 4
        assert not server.keys(f"{name}*")

    asyncio.run(main())


def test_a_release_that_cannot_be_submitted_leaves_the_hold(
    url: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise InvalidUse("of a test")

    async def main() -> None:
        async with AsyncClient(url) as client:
            held = await client.mutex(name).acquire()
            with monkeypatch.context() as patch:
                patch.setattr(Native, "submit", full)
                with pytest.raises(InvalidUse):
                    await held.release()
            assert held.remaining() > 0
            await held.release()
            with pytest.raises(NotHeld):
                await held.release()

    asyncio.run(main())


def test_cancelling_waiters(url: str, server: redis.Redis, name: str) -> None:
    async def main() -> None:
        async with AsyncClient(url) as client:
            lock = client.mutex(name)
            held = await lock.acquire()
            waiting = [asyncio.create_task(lock.acquire()) for _ in range(10)]
            await asyncio.sleep(0)
            for task in waiting:
                task.cancel()
            done, _ = await asyncio.wait(waiting, timeout=10)
            assert len(done) == 10
            assert all(task.cancelled() for task in waiting)
            assert not client._session._pending
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(lock.acquire(), 0.05)
            await held.release()
            assert not server.exists(name)

    asyncio.run(main())


def test_a_cancellation_just_when_the_lock_comes_in(
    url: str, server: redis.Redis, name: str
) -> None:
    async def main() -> None:
        async with AsyncClient(url) as client:
            task = asyncio.create_task(client.mutex(name).acquire())
            await asyncio.sleep(0)
            assert select.select([client._session._fd], [], [], 10)[0]
            client._session._dispatch()
            assert server.exists(name)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        until(lambda: not server.exists(name))

    asyncio.run(main())


def test_cancelling_the_release_releases(url: str, server: redis.Redis, name: str) -> None:
    async def main() -> None:
        async with AsyncClient(url) as client:
            held = await client.mutex(name).acquire()
            task = asyncio.create_task(held.release())
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await (await client.mutex(name).acquire(timeout=10)).release()

    asyncio.run(main())


def test_a_generator_finished_by_another_task(url: str, server: redis.Redis, name: str) -> None:
    async def main() -> None:
        async with AsyncClient(url) as client:

            async def generator() -> AsyncIterator[int]:
                async with client.mutex(name) as held:
                    yield held.fence

            running = generator()

            async def step() -> int | None:
                return await anext(running, None)

            assert await asyncio.create_task(step())
            assert server.exists(name)
            assert await asyncio.create_task(step()) is None
            assert not server.exists(name)

    asyncio.run(main())


def test_guard(url: str, server: redis.Redis, name: str) -> None:
    async def main() -> None:
        async with AsyncClient(url) as client:
            lock = client.mutex(name)

            @lock.guard
            async def double(number: int) -> int:
                assert server.exists(name)
                return number * 2

            assert await double(21) == 42
            assert not server.exists(name)
            with pytest.raises(TypeError):
                lock.guard(lambda: 1)  # type: ignore[arg-type, return-value]

    asyncio.run(main())


def test_closing_while_others_wait(url: str, server: redis.Redis, name: str) -> None:
    async def main() -> None:
        client, calls = AsyncClient(url), []
        lock = client.mutex(name)
        held = await lock.acquire()
        held.on_lost(lambda: calls.append(1))
        waiting = [asyncio.create_task(lock.acquire()) for _ in range(4)]
        await asyncio.sleep(0)
        await client.close()
        await client.close()
        for task in waiting:
            with pytest.raises(Closed):
                await soon(task)
        assert calls == [1]
        with pytest.raises(Closed):
            await held.release()
        for operation in (lock.acquire, lock.try_acquire, lambda: client.inspect(name)):
            with pytest.raises(Closed):
                await operation()
        assert "closed" in repr(client)
        assert not server.exists(name)

    asyncio.run(main())


@contextlib.contextmanager
def busy_executor() -> Iterator[None]:
    """Gives the running loop an executor that gets to nothing meanwhile."""
    free, executor = threading.Event(), ThreadPoolExecutor(1)
    asyncio.get_running_loop().set_default_executor(executor)
    executor.submit(free.wait)
    try:
        yield
    finally:
        free.set()


def test_a_cancelled_close_closes(url: str, server: redis.Redis, name: str) -> None:
    async def main() -> None:
        client = AsyncClient(url)
        held = await client.mutex(name).acquire()
        with busy_executor():
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(client.close(), 0.01)
            assert held.lost.is_set()
            again = asyncio.create_task(client.close())
            await asyncio.sleep(0)
            assert not again.done()
        await soon(again)
        assert not server.exists(name)

    asyncio.run(main())


@pytest.mark.skipif(sys.version_info < (3, 11), reason="a loss does not cancel the body")
def test_closing_in_the_body_of_a_lock(url: str, server: redis.Redis, name: str) -> None:
    async def main() -> None:
        client = AsyncClient(url)
        with busy_executor(), pytest.raises(Closed):
            async with client.mutex(name):
                await client.close()
        await soon(client.close())
        assert not server.exists(name)

    asyncio.run(main())


def test_closing_without_an_executor(url: str, server: redis.Redis, name: str) -> None:
    async def main() -> None:
        executor = ThreadPoolExecutor(1)
        executor.shutdown()
        asyncio.get_running_loop().set_default_executor(executor)
        client = AsyncClient(url)
        held = await client.mutex(name).acquire()
        await client.close()
        await client.close()
        assert held.lost.is_set()
        assert not server.exists(name)

    asyncio.run(main())


def test_closing_when_the_loop_is_closed(url: str, server: redis.Redis, name: str) -> None:
    client = AsyncClient(url)
    held = asyncio.run(client.mutex(name).acquire())
    asyncio.run(client.close())
    assert held.lost.is_set()
    assert not server.exists(name)


def test_an_exit_in_a_callback_leaves_the_other_events(url: str, name: str) -> None:
    client = AsyncClient(url)
    session, loop = client._session, asyncio.new_event_loop()

    def leave() -> None:
        raise SystemExit(3)

    first = loop.run_until_complete(client.mutex(f"{name}:1").acquire())
    second = loop.run_until_complete(client.mutex(f"{name}:2").acquire())
    first.on_lost(leave)
    for held in (first, second):
        session._batch.append((0, (0, held._handle, 0, 0, EVENT_LOST, 0, 0, 0)))
    loop.call_soon(session._dispatch)
    with pytest.raises(SystemExit):
        loop.run_forever()
    assert first.lost.is_set()
    assert not second.lost.is_set()
    assert loop.run_until_complete(soon(second.lost.wait()))
    loop.run_until_complete(client.close())
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()


def test_an_outcome_that_cannot_be_handled(
    url: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError("of a test")

    async def main() -> None:
        told: list[object] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: told.append(context["exception"])
        )
        async with AsyncClient(url) as client:
            lock = client.mutex(name)
            with monkeypatch.context() as patch:
                patch.setattr(_aio, "AsyncHeld", fail)
                acquiring = client._session.acquire(lock._forever, name)
                with pytest.raises(InternalError, match="of a test"):
                    await soon(acquiring)
            assert [type(error) for error in told] == [MemoryError]
            await (await lock.acquire(timeout=5)).release()

    asyncio.run(main())


def test_an_interrupt_just_before_the_body(
    url: str, server: redis.Redis, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    push = Entered[AsyncHeld].push

    def fail(self: Entered[AsyncHeld], key: Hashable, hold: AsyncHeld) -> None:
        push(self, key, hold)
        raise MemoryError

    async def main() -> None:
        async with AsyncClient(url) as client:
            lock = client.mutex(name)
            with monkeypatch.context() as patch:
                patch.setattr(Entered, "push", fail)
                with pytest.raises(MemoryError):
                    async with lock:
                        pytest.fail("the body ran")
            assert lock._entered._holds == []
            await (await lock.acquire(timeout=5)).release()

    asyncio.run(main())


def test_another_loop_is_told(url: str, name: str) -> None:
    client = AsyncClient(url)

    async def use() -> None:
        await (await client.mutex(name).acquire()).release()

    loop = asyncio.new_event_loop()
    loop.run_until_complete(use())
    with pytest.raises(InvalidUse, match="loop"):
        asyncio.run(use())
    loop.run_until_complete(client.close())
    loop.close()


def test_a_forgotten_hold_is_released_with_a_warning(
    url: str, server: redis.Redis, name: str
) -> None:
    async def main() -> None:
        async with AsyncClient(url) as client:
            held = await client.mutex(name).acquire()
            with pytest.warns(ResourceWarning, match=name):
                await asyncio.sleep(0)  # the step that began with the result has it too
                del held
                gc.collect()
            await (await client.mutex(name).acquire(timeout=10)).release()

    asyncio.run(main())


def test_nothing_is_left_after_closing(url: str, name: str) -> None:
    async def once() -> None:
        async with AsyncClient(url) as client, client.mutex(name):
            pass

    async def forgotten() -> None:
        client = AsyncClient(url)
        async with client.mutex(name):
            pass
        del client
        gc.collect()
        await asyncio.sleep(0)

    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    asyncio.run(once())
    gc.collect()
    threads, before = set(threading.enumerate()), descriptors()
    for main in (once, forgotten):
        for _ in range(10):
            asyncio.run(main())
    assert set(threading.enumerate()) <= threads
    until(lambda: descriptors() <= before)


def test_no_thread_a_waiter(url: str, name: str) -> None:
    async def main() -> None:
        async with AsyncClient(url) as client:
            held = await client.mutex(name).acquire()
            threads = set(threading.enumerate())
            waiting = [asyncio.create_task(client.mutex(name).acquire()) for _ in range(50)]
            await asyncio.sleep(0)
            assert set(threading.enumerate()) == threads
            for task in waiting:
                task.cancel()
            await asyncio.wait(waiting)
            await held.release()

    asyncio.run(main())


def test_the_loop_is_never_blocked(name: str) -> None:
    # Nobody accepts from this socket: the answer never comes.
    import socket

    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as deaf:
            port = deaf.getsockname()[1]
            async with AsyncClient(f"redis://127.0.0.1:{port}", node_timeout=0.5) as client:
                began = time.monotonic()
                task = asyncio.create_task(client.mutex(name).try_acquire())
                await asyncio.sleep(0)
                assert time.monotonic() - began < 0.25
                with pytest.raises(libredlock.Unavailable):
                    await soon(task)

    asyncio.run(main())


def test_ctrl_c_leaves_no_key(server: redis.Redis, url: str, name: str) -> None:
    done = run_python(
        "import asyncio, os, signal, sys, libredlock\n"
        "async def main():\n"
        "    async with libredlock.AsyncClient(sys.argv[1]) as client:\n"
        "        async with client.mutex(sys.argv[2]):\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "            await asyncio.sleep(60)\n"
        "try:\n"
        "    asyncio.run(main())\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n",
        url,
        name,
    )
    assert done.stdout == "interrupted\n", done.stderr
    assert not server.exists(name)
