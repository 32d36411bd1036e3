"""What ``inspect`` answers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Holder:
    """One holder of a name.

    Attributes:
        who: ``"host/pid/language/metadata"``; empty for a value of another library.
        digest: names this hold; what ``force_release`` takes.
        ttl: seconds until the key, or a semaphore's slot, expires, None if it never does.
        nodes: on how many nodes it is the holder.
        slot: of a semaphore, which of its permits; None for other kinds.
    """

    who: str
    digest: str
    ttl: float | None
    nodes: int
    slot: int | None = None


@dataclass(frozen=True)
class Inspection:
    """Who holds a name.

    Attributes:
        kind: ``"mutex"`` or ``"semaphore"``.
        holders: empty if the name is free; several of a semaphore, or if the nodes disagree:
            those on most nodes first, then by slot.
        fence: the largest fencing token that a node remembers, 0 if none does.
        queue_length: how many clients wait in the queue.
        queue_age: seconds that the first of them has waited.
    """

    kind: str
    holders: tuple[Holder, ...]
    fence: int
    queue_length: int
    queue_age: float

    @property
    def held(self) -> bool:
        """Whether somebody holds the name on any node."""
        return bool(self.holders)
