"""Ctrl-C, signal handlers and the garbage collector: nothing is left behind."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Hashable
from types import FrameType

import pytest
import redis

import libredlock
from libredlock import Client, Held, _session
from libredlock._entered import Entered

from .conftest import run_python, until

WAIT_FOR_CTRL_C = """
import os, signal, sys, threading, time
import libredlock

client = libredlock.Client(sys.argv[1])
lock = client.mutex(sys.argv[2])

def interrupt():
    while not client._session._waiters:
        time.sleep(0.001)
    global sent
    sent = time.monotonic()
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt).start()
try:
    lock.acquire(timeout=float(sys.argv[3]) if sys.argv[3] else None)
except KeyboardInterrupt:
    print(time.monotonic() - sent)
assert not client._session._waiters
"""


@pytest.mark.parametrize("timeout", ["", "60"])
def test_ctrl_c_ends_a_wait(
    client: Client, server: redis.Redis, url: str, name: str, timeout: str
) -> None:
    held = client.mutex(name).acquire()
    done = run_python(WAIT_FOR_CTRL_C, url, name, timeout)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 0.1
    assert not done.stderr
    held.release()
    assert not server.exists(name)


# An interrupt between acquire and release leaves the hold to the garbage collector.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_ctrl_c_at_random_moments_leaves_no_key(
    client: Client, server: redis.Redis, name: str
) -> None:
    # The signal strikes anywhere in acquire and release, and at times just before or after.
    lock = client.mutex(name)
    lock.acquire().release()  # starts the thread: Thread.start can't take an interrupt
    interrupts, previous = 0, signal.getsignal(signal.SIGALRM)

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupt)
    try:
        for attempt in range(400):
            try:
                signal.setitimer(signal.ITIMER_REAL, 20e-6 + attempt % 40 * 10e-6)
                lock.acquire().release()
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                interrupts += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert interrupts > 20
    gc.collect()
    until(lambda: not server.exists(name))
    lock.acquire(timeout=5).release()


def test_a_signal_handler_may_acquire(client: Client, name: str) -> None:
    lock = client.mutex(name)
    entered: list[int] = []
    inside: list[int] = []

    def handler(_signal: int, _frame: FrameType | None) -> None:
        if not inside:  # else it interrupts itself, and would wait for itself
            inside.append(1)
            with client.mutex(f"{name}:handler") as held:
                entered.append(held.fence)
            inside.pop()

    previous = signal.signal(signal.SIGALRM, handler)
    try:
        deadline = time.monotonic() + 30
        while len(entered) < 50 and time.monotonic() < deadline:
            signal.setitimer(signal.ITIMER_REAL, 20e-6 + len(entered) * 10e-6)
            with lock as held:
                assert held.token
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert len(entered) >= 50


def test_an_interrupt_while_many_threads_wait(client: Client, name: str) -> None:
    lock = client.mutex(name)
    held = lock.acquire()
    fences: list[int] = []

    def wait() -> None:
        with lock as mine:
            fences.append(mine.fence)

    threads = [threading.Thread(target=wait) for _ in range(4)]
    for thread in threads:
        thread.start()
    until(lambda: len(client._session._waiters) == 4)

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(KeyboardInterrupt):
            lock.acquire()
    finally:
        signal.signal(signal.SIGALRM, previous)
    held.release()
    for thread in threads:
        thread.join(20)
    assert len(fences) == 4


def test_a_forgotten_hold_is_released_with_a_warning(
    client: Client, server: redis.Redis, name: str
) -> None:
    held = client.mutex(name).acquire()
    with pytest.warns(ResourceWarning, match=name):
        del held
        gc.collect()
    until(lambda: not server.exists(name))


def test_an_interrupt_just_before_the_body(
    client: Client, server: redis.Redis, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    push = Entered[Held].push

    def interrupted(self: Entered[Held], key: Hashable, hold: Held) -> None:
        push(self, key, hold)
        raise KeyboardInterrupt

    lock = client.mutex(name)
    with monkeypatch.context() as patch:
        patch.setattr(Entered, "push", interrupted)
        with pytest.raises(KeyboardInterrupt), lock:
            pytest.fail("the body ran")
    assert lock._entered._holds == []
    until(lambda: not server.exists(name))


def test_an_exit_in_a_callback_does_not_end_the_thread(
    client: Client, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[int] = []
    for _ in range(2):
        with caplog.at_level(logging.ERROR, "libredlock"):
            held = client.mutex(name, ttl=0.2, auto_renew=False).acquire()
            held.on_lost(lambda: sys.exit(3))
            held.on_lost(lambda: calls.append(1))
            assert held.lost.wait(10)
    assert calls == [1, 1]
    assert "a callback for a lost lock failed" in caplog.text
    assert "bug" not in caplog.text


def test_a_session_is_complete_when_a_fork_may_see_it(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Forking(set[_session.Session]):
        def add(self, session: _session.Session) -> None:
            session._after_fork()
            session.native.close()

    monkeypatch.setattr(_session, "_open_sessions", Forking())
    for client in (Client(url), libredlock.AsyncClient(url)):
        assert "fork" in client._session.closed


def test_a_forgotten_hold_in_a_cycle(client: Client, server: redis.Redis, name: str) -> None:
    cycle = [client.mutex(name).acquire()]
    cycle[0].on_lost(cycle[0].release)
    with pytest.warns(ResourceWarning, match=name):
        cycle.clear()
        gc.collect()
    until(lambda: not server.exists(name))


def test_a_forgotten_hold_that_was_lost_or_released_is_no_news(
    client: Client, server: redis.Redis, name: str
) -> None:
    held = client.mutex(name, ttl=0.2, auto_renew=False).acquire()
    assert held.lost.wait(10)
    del held
    client.mutex(name).acquire().release()
    gc.collect()


def test_the_end_of_the_process_releases(url: str, server: redis.Redis, name: str) -> None:
    done = run_python(
        "import os, sys, libredlock\n"
        "client = libredlock.Client(sys.argv[1])\n"
        "held = client.mutex(sys.argv[2], ttl=60.0).acquire()\n"
        "held.on_lost(lambda: os._exit(9))\n",
        url,
        name,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    assert not server.exists(name)


def test_the_end_of_the_process_with_an_exception(url: str, server: redis.Redis, name: str) -> None:
    done = run_python(
        "import sys, libredlock\n"
        "with libredlock.Client(sys.argv[1]).mutex(sys.argv[2]):\n"
        "    raise SystemExit(3)\n",
        url,
        name,
    )
    assert (done.returncode, done.stderr) == (3, "")
    assert not server.exists(name)


def test_no_descriptor_is_inherited_by_programs(url: str, name: str) -> None:
    def inheritable() -> set[str]:
        found = set()
        for fd in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):  # that of listdir itself
                if os.get_inheritable(int(fd)):
                    found.add(fd)
        return found

    before = inheritable()
    with Client(url) as client, client.mutex(name):
        assert inheritable() == before
