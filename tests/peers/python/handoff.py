"""The hand-off benchmark's contestants in Python; see tests/bench/handoff.

handoff.py CONTESTANT ADDRESS STATE LOG WORKERS
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from collections.abc import Callable

import redis
from redis.lock import Lock

Release = Callable[[], object]
Acquire = Callable[[], Release]

NAME = "handoff"
TTL = 60

# What the state says, 8 bytes each; see go/handoff.
ORDER, RELEASED, ACQUIRED = 0, 8, 16
HOLD, RUN = 1, 2


class Board:
    """What all workers of all processes share."""

    def __init__(self, state: str, log: str) -> None:
        self._state = os.open(state, os.O_RDWR)
        self._log = os.open(log, os.O_WRONLY | os.O_APPEND)

    def read(self, what: int) -> int:
        """A number of the state."""
        return int.from_bytes(os.pread(self._state, 8, what), "little")

    def write(self, what: int, number: int) -> None:
        """Changes a number of the state."""
        os.pwrite(self._state, number.to_bytes(8, "little"), what)

    def wait(self, order: int) -> None:
        """Waits for an order."""
        while self.read(ORDER) < order:
            time.sleep(0.005)

    def work(self, acquire: Acquire) -> None:
        """Takes the lock again and again, and notes how long each hand-off to it took."""
        while True:
            release = acquire()
            now = time.monotonic_ns()
            if before := self.read(RELEASED):
                os.write(self._log, f"{now - before}\n".encode())
            turn = self.read(ACQUIRED) + 1
            self.write(ACQUIRED, turn)
            self.wait(RUN)
            time.sleep(random.uniform(0.010, 0.030))
            self.write(RELEASED, time.monotonic_ns())
            release()
            while self.read(ACQUIRED) == turn:
                time.sleep(0.001)


def libredlock(host: str, port: int) -> Callable[[], Acquire]:
    """Our own."""
    import libredlock

    client = libredlock.Client(f"redis://{host}:{port}")
    client.inspect(NAME)  # connects
    lock = client.mutex(NAME, ttl=TTL)
    return lambda: lambda: lock.acquire().release


def redis_py(host: str, port: int) -> Callable[[], Acquire]:
    """The Lock of redis-py."""
    client = redis.Redis(host, port)
    client.ping()

    def worker() -> Acquire:
        lock: Lock = client.lock(NAME, timeout=TTL)

        def acquire() -> Release:
            lock.acquire()
            return lock.release

        return acquire

    return worker


def python_redis_lock(host: str, port: int) -> Callable[[], Acquire]:
    """python-redis-lock: each waiter has a connection that waits in BLPOP, for as long as the ttl."""
    import redis_lock  # type: ignore[import-not-found] # in the peers' venv only

    client = redis.Redis(host, port, socket_timeout=None, max_connections=1000)
    client.ping()

    def worker() -> Acquire:
        lock = redis_lock.Lock(client, NAME, expire=TTL)

        def acquire() -> Release:
            lock.acquire()
            release: Release = lock.release
            return release

        return acquire

    return worker


CONTESTANTS = {
    "libredlock": libredlock,
    "redis-py": redis_py,
    "python-redis-lock": python_redis_lock,
}


def main(contestant: str, address: str, state: str, log: str, workers: str) -> None:
    """Works until the input ends."""
    board = Board(state, log)
    host, _, port = address.rpartition(":")
    worker = CONTESTANTS[contestant](host, int(port))
    print("ready", flush=True)
    board.wait(HOLD)
    for _ in range(int(workers)):
        threading.Thread(target=run, args=(board, worker()), daemon=True).start()
    sys.stdin.read()
    os._exit(0)


def run(board: Board, acquire: Acquire) -> None:
    """A worker's thread; its failure is the process's."""
    try:
        board.work(acquire)
    except BaseException as error:
        print("handoff:", repr(error), file=sys.stderr, flush=True)
        os._exit(1)


main(*sys.argv[1:])
