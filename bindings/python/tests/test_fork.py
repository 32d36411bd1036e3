"""Forked children: the parent's locks stay the parent's, and a new client works."""

from __future__ import annotations

import multiprocessing
import os
import threading
import traceback
from collections.abc import Callable

import pytest
import redis

from libredlock import Client, Closed

# The threads of a test are known to be harmless; Python can't know.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


def in_child(work: Callable[[], None]) -> None:
    """Runs an assertion in a forked child."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert status == 0


def test_what_the_child_sees(client: Client, server: redis.Redis, url: str, name: str) -> None:
    lock = client.mutex(name)
    held = lock.acquire()
    token, calls = held.token, []
    held.on_lost(lambda: calls.append(1))

    def child() -> None:
        assert held.lost.is_set()
        assert held.lost.wait(0)
        assert held.remaining() == 0.0
        assert calls == []
        for operation in (lock.acquire, lock.try_acquire, lambda: client.inspect(name)):
            with pytest.raises(Closed, match="fork"):
                operation()
        with pytest.raises(Closed, match="fork"):
            held.renew()
        with pytest.raises(Closed, match="fork"):
            held.release()
        client.close()
        with Client(url) as new:
            assert new.mutex(name).try_acquire() is None
            with new.mutex(f"{name}:child") as mine:
                assert mine.remaining() > 0
            with pytest.raises(TimeoutError):
                new.mutex(name).acquire(timeout=0.1)

    in_child(child)
    assert server.get(name) == token
    assert held.remaining() > 0
    assert not held.lost.is_set()
    held.renew()
    held.release()


def test_the_child_leaves_a_with_statement(client: Client, server: redis.Redis, name: str) -> None:
    with client.mutex(name):
        child = os.fork()
        if child == 0:
            break_out = 1
            try:
                raise_on_leaving(client, name)
                break_out = 0
            finally:
                os._exit(break_out)
        _, status = os.waitpid(child, 0)
        assert status == 0
        assert server.exists(name)


def raise_on_leaving(client: Client, name: str) -> None:
    with pytest.raises(Closed), client.mutex(name):
        pass


def test_a_child_while_threads_wait(client: Client, url: str, name: str) -> None:
    lock = client.mutex(name)
    held = lock.acquire()
    threads = [threading.Thread(target=lambda: lock.acquire().release()) for _ in range(4)]
    for thread in threads:
        thread.start()

    def child() -> None:
        with Client(url) as new, new.mutex(f"{name}:child"):
            pass

    for _ in range(5):
        in_child(child)
    held.release()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()


def test_a_grandchild(client: Client, url: str, name: str) -> None:
    with client.mutex(name):

        def child() -> None:
            with Client(url) as new, new.mutex(f"{name}:child") as held:

                def grandchild() -> None:
                    assert held.lost.is_set()
                    with Client(url) as newer, newer.mutex(f"{name}:grandchild"):
                        pass

                in_child(grandchild)
                held.renew()

        in_child(child)


def test_no_descriptor_of_the_binding_is_left_in_the_child(client: Client, name: str) -> None:
    with client.mutex(name):
        stop = client._session._stop
        assert stop is not None

        def child() -> None:
            for fd in stop:
                with pytest.raises(OSError, match="Bad file descriptor"):
                    os.fstat(fd)

        in_child(child)


def work(url: str, name: str, number: int) -> int:
    """What a worker of multiprocessing does."""
    with Client(url) as client, client.mutex(name) as held:
        return held.fence if number else 0


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(client: Client, url: str, name: str, method: str) -> None:
    with client.mutex(f"{name}:parent") as held:
        with multiprocessing.get_context(method).Pool(2) as pool:
            fences = pool.starmap(work, [(url, name, number) for number in range(1, 9)])
        assert len(set(fences)) == 8
        held.renew()
