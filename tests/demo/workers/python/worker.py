"""One of the demo's programs: ../../main.go says what it does, ../../race.go what it prints."""

from __future__ import annotations

import os
import random
import select
import sys
import time
from pathlib import Path

import libredlock


def main(name: str, counter: Path) -> None:
    """Takes turns until the input ends."""
    with libredlock.Client(os.environ["REDLOCK_NODES"].split(",")) as client:
        lock = client.mutex(name, ttl=5.0)
        while not input_ended():
            tell("waiting")
            with lock as held:
                tell("acquired", held.fence)
                bump(counter)
                tell("released")
            pause(0.005, 0.080)  # so that a program that waits gets its turn


def bump(counter: Path) -> None:
    """Reads, works and writes: without the lock, updates are lost here."""
    value = int(counter.read_text())
    pause(0.010, 0.040)  # the work
    counter.write_text(f"{value + 1}\n")


def pause(least: float, most: float) -> None:
    """Sleeps for some time between two."""
    time.sleep(random.uniform(least, most))


def tell(kind: str, *fence: int) -> None:
    """Prints an event, with the time at which it is called."""
    print(kind, time.clock_gettime_ns(time.CLOCK_MONOTONIC), *fence, flush=True)


def input_ended() -> bool:
    """Tells whether it is time to stop."""
    readable, _, _ = select.select([sys.stdin], [], [], 0)
    return bool(readable)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
