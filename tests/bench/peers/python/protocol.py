"""What the benchmark's peers in Python have in common: how they are told what to do.

    PEER CONTESTANT ADDRESS ACQUIRE RELEASE COMPARE_AND_DELETE

The last three are the SHA-1s of scripts that the server has. A peer first writes a line with its
versions. Then each line "CALLERS MILLISECONDS" on the standard input is a run, answered by a
line "PAIRS NANOSECONDS".
"""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import redis
from redis.utils import HIREDIS_AVAILABLE

TTL = 10.0
TTL_MS = 10_000
FENCE_TTL_MS = 600_000
PIPELINES = 8

# A token as long as those of libredlock; making it costs whoever sends bare scripts nothing.
HOLDER = "rl1:AAAAAAAAAAAAAAAAAAAAAA:benchmark/12345/python"


@dataclass(frozen=True)
class Setup:
    """What the peer was started with."""

    address: str
    acquire: str
    release: str

    @property
    def url(self) -> str:
        """The server, as clients take it."""
        return f"redis://{self.address}"

    def acquire_command(self, caller: int) -> tuple[object, ...]:
        """The very command that libredlock sends, with fencing."""
        waiting = ("benchmarkbenchmarkbench", 123456789012, 3000)
        lease = (HOLDER, TTL_MS, FENCE_TTL_MS, "")
        return ("EVALSHA", self.acquire, 4, *lock_keys(caller), *lease, *waiting)

    def release_command(self, caller: int) -> tuple[object, ...]:
        """The one that gives the lock back."""
        return ("EVALSHA", self.release, 4, *lock_keys(caller), HOLDER)


def lock_name(caller: int) -> str:
    """The name of one caller's lock: nobody else wants it."""
    return f"bench:{caller:04}"


def lock_keys(caller: int) -> tuple[str, ...]:
    """The keys of that lock: its own, the queue, the places and the fence counter."""
    name = lock_name(caller)
    sides = (f"{{{name}}}:redlock:mutex:{role}:{name}" for role in ("queue", "places", "fence"))
    return name, *sides


def check(granted: object) -> None:
    """Ends the program unless a lock was granted, or released."""
    if isinstance(granted, list):
        granted = granted[0] == 1
    if not granted:
        raise SystemExit("a lock was not granted, or not there at its release")


def start() -> tuple[str, Setup]:
    """The contestant and the setup, from the command line."""
    contestant, address, acquire, release, _compare_and_delete = sys.argv[1:]
    return contestant, Setup(address, acquire, release)


def serve(run: Callable[[int, int], int]) -> None:
    """Makes the runs; run takes the callers and until when, and returns the pairs made."""
    for callers, milliseconds in orders():
        began = time.perf_counter_ns()
        pairs = run(callers, began + milliseconds * 1_000_000)
        answer(pairs, time.perf_counter_ns() - began)


def orders() -> Iterator[tuple[int, int]]:
    """What the peer is told to do, until the end of its input."""
    parser = "hiredis" if HIREDIS_AVAILABLE else "Python"
    print(
        f"Python {platform.python_version()}, redis-py {redis.__version__} (parser: {parser})",
        flush=True,
    )
    for line in sys.stdin:
        callers, milliseconds = line.split()
        yield int(callers), int(milliseconds)


def answer(pairs: int, nanoseconds: int) -> None:
    """Tells how a run went."""
    print(pairs, nanoseconds, flush=True)
