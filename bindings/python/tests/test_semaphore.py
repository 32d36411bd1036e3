"""Semaphores, with both clients."""

from __future__ import annotations

import asyncio
import threading

import pytest
import redis

import libredlock
from libredlock import AcquireTimeout, AsyncClient, Client, InvalidUse, LockLost, NotHeld, WrongKind

from .conftest import soon, until


def test_each_holder_has_a_slot(client: Client, server: redis.Redis, name: str) -> None:
    semaphore = client.semaphore(name, permits=2, ttl=20.0)
    assert isinstance(semaphore, libredlock.Lock)
    assert repr(semaphore) == f"<Semaphore {name!r}>"
    first, second = semaphore.acquire(), semaphore.try_acquire()
    assert second is not None
    assert (first.slot, second.slot) == (0, 1)
    assert 15 < second.remaining() <= 20
    assert "slot=1" in repr(second)
    assert semaphore.try_acquire() is None
    with pytest.raises(AcquireTimeout):
        semaphore.acquire(timeout=0.1)
    first.renew(30.0)
    first.release()
    with semaphore as held:
        assert held.slot == 0
        assert held.fence > first.fence
    second.release()
    assert not server.exists(name)


def test_a_mutex_has_no_slots(client: Client, name: str) -> None:
    with client.mutex(name) as held:
        assert held.slot is None
        assert "slot" not in repr(held)
        (holder,) = client.mutex(name).inspect().holders
        assert holder.slot is None


def test_who_waits_gets_a_slot(client: Client, url: str, name: str) -> None:
    semaphore = client.semaphore(name, permits=2)
    first, second = semaphore.acquire(), semaphore.acquire()
    with Client(url) as other:
        slots: list[int | None] = []

        def wait() -> None:
            with other.semaphore(name, permits=2) as held:
                slots.append(held.slot)

        waiter = threading.Thread(target=wait)
        waiter.start()
        until(lambda: semaphore.inspect().queue_length == 1)
        second.release()
        waiter.join(timeout=10)
        assert slots == [1]
    first.release()


def test_inspect_shows_every_holder(client: Client, name: str) -> None:
    semaphore = client.semaphore(name, permits=30, metadata="büro 7")
    assert semaphore.inspect() == libredlock.Inspection("semaphore", (), 0, 0, 0.0)
    for count in (4, 5, 25):
        held = [semaphore.acquire() for _ in range(count)]
        found = semaphore.inspect()
        assert found.kind == "semaphore"
        assert [holder.slot for holder in found.holders] == list(range(count))
        assert len({holder.digest for holder in found.holders}) == count
        assert all(holder.who.endswith("/büro 7") for holder in found.holders)
        assert found.fence == max(each.fence for each in held)
        for each in held:
            each.release()


def test_force_release_takes_one_slot(client: Client, name: str) -> None:
    semaphore = client.semaphore(name, permits=2)
    first, second = semaphore.acquire(), semaphore.acquire()
    digest = semaphore.inspect().holders[1].digest
    semaphore.force_release(digest)
    with pytest.raises(NotHeld):
        semaphore.force_release(digest)
    with pytest.raises(LockLost):
        second.renew()
    with pytest.raises(LockLost):
        second.release()
    first.release()


def test_another_kind(client: Client, name: str) -> None:
    semaphore, mutex = client.semaphore(name, permits=2), client.mutex(name)
    with mutex:
        with pytest.raises(WrongKind):
            semaphore.acquire()
        with pytest.raises(WrongKind):
            semaphore.inspect()
    with semaphore:
        with pytest.raises(WrongKind):
            mutex.acquire()
        with pytest.raises(WrongKind):
            client.inspect(name)


def test_permits_and_options_that_make_no_sense(client: Client, name: str) -> None:
    for few in (0, -1):
        with pytest.raises(InvalidUse, match="permits"):
            client.semaphore(name, few)
    with pytest.raises(InvalidUse, match="10000"):
        client.semaphore(name, 10_001).acquire()
    for wrong in ("3", 2.0, True, None):
        with pytest.raises(TypeError, match="permits"):
            client.semaphore(name, wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="permits"):
        client.semaphore(name)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="permits"):
        client.mutex(name, permits=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="ttll"):
        client.semaphore(name, 1, ttll=1.0)  # type: ignore[call-arg]


def test_for_asyncio(url: str, server: redis.Redis, name: str) -> None:
    async def main() -> None:
        async with AsyncClient(url) as client:
            semaphore = client.semaphore(name, permits=6)
            assert isinstance(semaphore, libredlock.AsyncLock)
            held = [await soon(semaphore.acquire()) for _ in range(6)]
            assert [each.slot for each in held] == list(range(6))
            assert await semaphore.try_acquire() is None
            waiter = asyncio.create_task(semaphore.acquire())
            waiting = 0
            while not waiting:
                waiting = (await semaphore.inspect()).queue_length
            await held[4].release()
            assert (await soon(waiter)).slot == 4
            found = await semaphore.inspect()
            assert [holder.slot for holder in found.holders] == list(range(6))
            await semaphore.force_release(found.holders[0].digest)
            with pytest.raises(LockLost):
                await held[0].renew()
            async with semaphore as again:
                assert again.slot == 0
            async with client.mutex(f"{name}:mutex") as mutex:
                assert mutex.slot is None
                assert (await client.mutex(f"{name}:mutex").inspect()).fence == mutex.fence

    asyncio.run(main())
    assert not server.exists(name)
