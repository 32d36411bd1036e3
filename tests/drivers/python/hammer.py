"""What the hammer does while it holds the lock."""

from __future__ import annotations

import mmap
import time
from types import TracebackType
from typing import TextIO


def boottime_ns() -> int:
    """The clock that all processes of the machine share."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Evidence:
    """A counter that nothing but the lock protects, and the log of who held when."""

    def __init__(self, counter: str, log: str) -> None:
        with open(counter, "r+b") as file:
            self._counter = mmap.mmap(file.fileno(), 8)
        self._log: TextIO = open(log, "a", encoding="ascii")  # noqa: SIM115 - closed by __exit__
        self.grants = 0

    def begin(self) -> tuple[int, int]:
        """Reads the counter; returns when, and what to end with."""
        return boottime_ns(), int.from_bytes(self._counter[:], "little")

    def end(self, value: int) -> int:
        """Writes the counter back plus one; returns when."""
        self._counter[:] = (value + 1).to_bytes(8, "little")
        return boottime_ns()

    def granted(self, begin: int, end: int, fence: int) -> None:
        """Notes a hold that was released."""
        self._log.write(f"{begin} {end} {fence}\n")
        self.grants += 1

    def __enter__(self) -> Evidence:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._log.close()
        self._counter.close()
