"""Which hold a ``with lock:`` has to give back when it is left."""

from __future__ import annotations

import contextlib
from collections.abc import Hashable
from typing import Generic, TypeVar

H = TypeVar("H")


class Entered(Generic[H]):
    """The holds that ``with`` statements over one lock object have now.

    One lock object can be entered by several threads or tasks at once (after a loss the next one
    is in while the first has not left yet), so each finds its own by a key, the thread or task.
    A generator may be finished by another thread or task than the one that began it, as web
    frameworks and test fixtures do: it has no hold of its own and is given the newest one.

    There is no mutex in it, for a signal handler or a fork may come anywhere in between: it relies
    on list.append and remove being atomic.
    """

    __slots__ = ("_holds",)

    def __init__(self) -> None:
        self._holds: list[tuple[Hashable, H]] = []

    def push(self, key: Hashable, hold: H) -> None:
        """Remembers a hold on the way in."""
        self._holds.append((key, hold))

    def pop(self, key: Hashable) -> H:
        """Takes it on the way out."""
        while True:
            holds = tuple(self._holds)
            entry = next((entry for entry in reversed(holds) if entry[0] == key), holds[-1])
            try:
                self._holds.remove(entry)
            except ValueError:
                continue  # another took it meanwhile
            return entry[1]

    def remove(self, hold: H) -> None:
        """Forgets a hold, if it is there, that never got in."""
        for entry in tuple(self._holds):
            if entry[1] is hold:
                with contextlib.suppress(ValueError):  # another took it meanwhile
                    self._holds.remove(entry)
