"""Which hold a ``with lock:`` has to give back when it is left."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Generic, TypeVar

H = TypeVar("H")


class Entered(Generic[H]):
    """The holds that ``with`` statements over one lock object have now.

    One lock object can be entered by several threads or tasks at once (after a loss the next one
    is in while the first has not left yet), so each finds its own by a key, the thread or task.
    A generator may be finished by another thread or task than the one that began it, as web
    frameworks and test fixtures do: it has no hold of its own and is given the newest one.
    """

    __slots__ = ("_holds", "_mutex")

    def __init__(self) -> None:
        self._holds: list[tuple[Hashable, H]] = []
        self._mutex = threading.Lock()

    def push(self, key: Hashable, hold: H) -> None:
        """Remembers a hold on the way in."""
        self._holds.append((key, hold))

    def pop(self, key: Hashable) -> H:
        """Takes it on the way out."""
        with self._mutex:
            holds = self._holds
            for at in range(len(holds) - 1, -1, -1):
                if holds[at][0] == key:
                    return holds.pop(at)[1]
            return holds.pop()[1]
