"""The client for threads."""

from __future__ import annotations

import dataclasses
import functools
import gc
import logging
import os
import re
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import redis

import libredlock
from libredlock import AcquireTimeout, Client, Closed, InvalidUse, LockLost, NotHeld, Unavailable

from .conftest import redis_server, run_python, until


def test_acquire_renew_release(client: Client, server: redis.Redis, name: str) -> None:
    lock = client.mutex(name, ttl=5.0, metadata="of a test")
    held = lock.acquire()
    assert held.name == lock.name == name
    assert server.get(name) == held.token
    assert held.fence > 0
    assert 4.0 < held.remaining() <= 5.0
    assert not held.lost.is_set()
    held.renew(ttl=30.0)
    assert 29.0 < held.remaining() <= 30.0
    assert 29_000 < int(server.pttl(name)) <= 30_000
    held.renew()
    token, fence = held.token, held.fence
    held.release()
    assert not server.exists(name)
    assert held.remaining() == 0.0
    assert not held.lost.is_set()
    assert (held.token, held.fence) == (token, fence)
    with pytest.raises(NotHeld):
        held.release()
    with pytest.raises(NotHeld):
        held.renew()


def test_a_token_not_read_in_time(client: Client, name: str) -> None:
    held = client.mutex(name).acquire()
    held.release()
    with pytest.raises(NotHeld):
        _ = held.token


def test_fences_increase(client: Client, name: str) -> None:
    lock, last = client.mutex(name), 0
    for _ in range(10):
        with lock as held:
            assert held.fence > last
            last = held.fence
    with client.mutex(name, fencing=False) as held:
        assert held.fence == 0


def test_try_acquire(client: Client, name: str) -> None:
    lock = client.mutex(name)
    held = lock.try_acquire()
    assert held is not None
    assert lock.try_acquire() is None
    with held:
        assert lock.try_acquire() is None
    again = lock.try_acquire()
    assert again is not None
    again.release()


def test_a_timeout_is_kept(client: Client, name: str) -> None:
    lock = client.mutex(name)
    with lock:
        for timeout in (0, 0.05, 0.3):
            began = time.monotonic()
            with pytest.raises(AcquireTimeout):
                lock.acquire(timeout=timeout)
            assert timeout <= time.monotonic() - began < timeout + 1


def test_a_wait_ends_with_the_release(client: Client, name: str) -> None:
    lock = client.mutex(name)
    held = lock.acquire()
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(lock.acquire, 10)
        until(lambda: client._session._waiters)
        held.release()
        waiting.result().release()


def test_one_lock_object_in_many_threads(client: Client, name: str) -> None:
    lock = client.mutex(name)
    inside, entries = [], []

    def work() -> None:
        for _ in range(5):
            with lock as held:
                inside.append(held.fence)
                assert len(inside) == 1
                entries.append(held.fence)
                inside.pop()

    with ThreadPoolExecutor(8) as pool:
        for job in [pool.submit(work) for _ in range(8)]:
            job.result()
    assert entries == sorted(set(entries))
    assert len(entries) == 40


def test_leaving_after_a_loss(client: Client, server: redis.Redis, name: str) -> None:
    lock, calls = client.mutex(name), []
    with pytest.raises(LockLost), lock as held:
        held.on_lost(lambda: calls.append(1))
        server.delete(name)
        with pytest.raises(LockLost):
            held.renew()
        assert held.lost.is_set()
        assert held.remaining() == 0.0
        held.on_lost(lambda: calls.append(2))
        assert calls == [1, 2]
    with pytest.raises(KeyError), lock as held:  # what the body raises goes on
        server.delete(name)
        raise KeyError
    with pytest.raises(LockLost), lock:  # found out only by the release
        server.delete(name)


def test_the_end_of_a_lease_is_told(client: Client, name: str) -> None:
    called = threading.Event()
    with pytest.raises(LockLost), client.mutex(name, ttl=0.2, auto_renew=False) as held:
        held.on_lost(called.set)
        assert held.lost.wait(10)
        assert called.wait(10)
        assert held.remaining() == 0.0
        assert held.lost.reason
        assert "lost" in repr(held)


def test_the_next_is_in_while_the_last_has_not_left(client: Client, name: str) -> None:
    lock = client.mutex(name, ttl=0.2, auto_renew=False)
    left = threading.Event()

    def second() -> None:
        with client.mutex(name, ttl=10.0):
            pass
        with lock:
            assert left.wait(10)

    thread = threading.Thread(target=second)
    with pytest.raises(LockLost), lock as held:
        thread.start()
        assert held.lost.wait(10)
    left.set()
    thread.join()


def test_a_generator_finished_by_another_thread(
    client: Client, server: redis.Redis, name: str
) -> None:
    lock = client.mutex(name)

    def generator() -> Iterator[int]:
        with lock as held:
            yield held.fence

    with ThreadPoolExecutor() as pool:
        running = generator()
        assert pool.submit(next, running).result()
        assert server.exists(name)
    assert next(running, None) is None
    assert not server.exists(name)


def test_guard(client: Client, server: redis.Redis, name: str) -> None:
    lock = client.mutex(name)

    @lock.guard
    def double(number: int) -> int:
        """Doubles."""
        assert server.exists(name)
        return number * 2

    assert double(21) == 42
    assert double.__doc__ == "Doubles."
    assert not server.exists(name)

    async def coroutine() -> None: ...

    def generator() -> Iterator[None]:
        yield

    for wrong in (coroutine, generator):
        with pytest.raises(TypeError):
            lock.guard(wrong)


def test_inspect_and_force_release(client: Client, server: redis.Redis, name: str) -> None:
    free = client.inspect(name)
    assert not free.held
    assert free.holders == ()
    with pytest.raises(LockLost), client.mutex(name, metadata="büro 7") as held:
        found = client.inspect(name)
        assert found.held
        assert found.kind == "mutex"
        assert found.fence == held.fence
        (holder,) = found.holders
        assert f"/{os.getpid()}/python/büro 7" in holder.who
        assert holder.ttl is not None
        assert 9 < holder.ttl <= 10
        assert holder.nodes == 1
        with pytest.raises(dataclasses.FrozenInstanceError):
            holder.nodes = 2  # type: ignore[misc]
        with pytest.raises(NotHeld):
            client.force_release(name, "A" * len(holder.digest))
        client.force_release(name, holder.digest)
        assert not server.exists(name)


def test_another_kind_of_value(client: Client, server: redis.Redis, name: str) -> None:
    server.lpush(name, "x")
    with pytest.raises(libredlock.WrongKind):
        client.mutex(name).acquire(timeout=1)
    server.delete(name)


def test_the_prefix(url: str, server: redis.Redis, name: str) -> None:
    with Client(url, prefix="here:") as client, client.mutex(name) as held:
        assert held.name == name
        assert server.exists(f"here:{name}")


def test_what_later_versions_have_is_refused() -> None:
    with pytest.raises(libredlock.Unsupported):
        Client("rediss://127.0.0.1:1")


def test_how_to_poll(client: Client, url: str, name: str) -> None:
    mutex = functools.partial(client.mutex, name, queue=False, retry_delay=0.2, retry_jitter=0.001)
    with Client(url) as other, other.mutex(name):
        for tries in (1, 2, 3):
            began = time.monotonic()
            with pytest.raises(AcquireTimeout):
                mutex(max_tries=tries).acquire()
            assert time.monotonic() - began >= 0.2 * (tries - 1)
        assert mutex(max_tries=9).try_acquire() is None
        with pytest.raises(AcquireTimeout):
            mutex(max_tries=9).acquire(timeout=0.3)
    with pytest.raises(InvalidUse, match="set queue to off"):
        client.mutex(name, retry_delay=0.2).acquire()
    with pytest.raises(InvalidUse, match="retry_jitter"):
        client.mutex(name, queue=False, retry_jitter=3601).acquire()
    for wrong in (0, -1):
        with pytest.raises(InvalidUse, match="retry_delay"):
            client.mutex(name, queue=False, retry_delay=wrong)


def test_tries_against_nodes_that_are_down_are_counted(name: str) -> None:
    with Client("redis://127.0.0.1:1") as client:
        began = time.monotonic()
        with pytest.raises(Unavailable):
            client.mutex(name, queue=False, max_tries=2).acquire()
        assert time.monotonic() - began < 5  # a wait bears it for 10


def test_no_node_answers(name: str) -> None:
    with Client("redis://127.0.0.1:1", unavailable_after=0.3) as client:
        lock = client.mutex(name)
        with pytest.raises(Unavailable) as caught:
            lock.try_acquire()
        (cause,) = caught.value.nodes
        assert cause.startswith("node 0 (127.0.0.1:1): ")
        with pytest.raises(Unavailable):
            lock.acquire(timeout=0)
        for timeout in (0.1, None):
            began = time.monotonic()
            with pytest.raises(Unavailable):
                lock.acquire(timeout)
            assert time.monotonic() - began < 3
        with pytest.raises(Unavailable):
            client.inspect(name)


def test_causes_of_all_nodes(name: str) -> None:
    nodes = [f"redis://127.0.0.1:{port}" for port in range(1, 16)]
    with Client(nodes) as client, pytest.raises(Unavailable) as caught:
        client.mutex(name).try_acquire()
    assert len(caught.value.nodes) >= 8
    assert all(cause.startswith("node ") for cause in caught.value.nodes)


def test_closing(url: str, server: redis.Redis, name: str) -> None:
    client, calls = Client(url), []
    lock = client.mutex(name)
    held = lock.acquire()
    held.on_lost(lambda: calls.append(1))
    client.close()
    client.close()
    assert calls == [1]
    assert held.lost.is_set()
    until(lambda: not server.exists(name))
    for operation in (lock.acquire, lock.try_acquire, lambda: client.inspect(name)):
        with pytest.raises(Closed):
            operation()
    with pytest.raises(Closed):
        held.renew()
    with pytest.raises(Closed):
        held.release()
    assert "closed" in repr(client)


def test_closing_while_others_wait(url: str, name: str) -> None:
    client = Client(url)
    lock = client.mutex(name)
    held = lock.acquire()
    with ThreadPoolExecutor() as pool:
        waiting = [pool.submit(lock.acquire) for _ in range(4)]
        until(lambda: len(client._session._waiters) == 4)
        client.close()
        for job in waiting:
            with pytest.raises(Closed):
                job.result()
    assert held.lost.is_set()


def test_closing_by_a_callback(url: str, name: str) -> None:
    client = Client(url)
    held = client.mutex(name, ttl=0.2, auto_renew=False).acquire()
    held.on_lost(client.close)
    assert held.lost.wait(10)
    until(lambda: client._session.closed)


def test_nothing_is_left_after_closing(url: str, name: str) -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    with Client(url) as client, client.mutex(name):
        pass
    gc.collect()
    threads, before = set(threading.enumerate()), descriptors()
    for _ in range(20):
        with Client(url) as client, client.mutex(name):
            pass
    assert set(threading.enumerate()) <= threads
    until(lambda: descriptors() <= before)


def test_the_thread_starts_with_the_first_hold(url: str, name: str) -> None:
    threads = set(threading.enumerate())
    with Client(url) as client:
        assert client.inspect(name).held is False
        assert set(threading.enumerate()) == threads
        with client.mutex(name):
            (ours,) = set(threading.enumerate()) - threads
            assert ours.daemon
            assert ours.name == "libredlock"


def test_a_client_nobody_has_is_closed(url: str, server: redis.Redis, name: str) -> None:
    client = Client(url)
    session = client._session
    held = client.mutex(name).acquire()
    thread = session._thread
    assert thread is not None
    del client, session
    gc.collect()
    assert held.remaining() > 0  # a hold keeps its client
    held.release()
    del held
    gc.collect()
    thread.join(10)
    assert not thread.is_alive()


def test_import_starts_no_thread_and_loads_no_core() -> None:
    done = run_python(
        "import os, libredlock\n"
        "assert len(os.listdir('/proc/self/task')) == 1\n"
        "assert 'libredlock-core' not in open('/proc/self/maps').read()\n"
    )
    assert done.returncode == 0, done.stderr


def test_a_wrong_argument_is_told_before_anything_happens(client: Client, name: str) -> None:
    lock = client.mutex(name)
    with pytest.raises(InvalidUse):
        lock.acquire(timeout=-1)
    with lock as held, pytest.raises(InvalidUse):
        held.renew(ttl=0)


def test_the_examples_of_the_readme_run() -> None:
    readme = Path(__file__).parents[1] / "README.md"
    examples = re.findall(r"```python\n(.*?)```", readme.read_text(), re.DOTALL)
    assert len(examples) == 2
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with redis_server(port=port):
        for example in examples:
            done = run_python(example.replace("6379", str(port)))
            assert done.returncode == 0, done.stderr
            assert not done.stderr
            assert "fencing token:" in done.stdout


def test_what_endangers_locks_is_logged(caplog: pytest.LogCaptureFixture, name: str) -> None:
    with redis_server() as path:
        with redis.Redis(unix_socket_path=path) as server:
            server.config_set("maxmemory", "100mb")
            server.config_set("maxmemory-policy", "allkeys-lru")
        with (
            caplog.at_level(logging.WARNING, "libredlock"),
            Client(f"unix://{path}") as client,
            client.mutex(name),
        ):
            until(lambda: caplog.records)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "evict" in record.getMessage()
