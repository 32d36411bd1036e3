"""What a client, its locks and their holds share: the C client, and how it ends."""

from __future__ import annotations

import atexit
import os
import warnings
from typing import TYPE_CHECKING, Any
from weakref import WeakSet, ref

from ._ffi import Native
from .errors import Closed

if TYPE_CHECKING:
    from ._held import BaseHeld

    _HeldRef = ref[BaseHeld[Any]]
else:
    _HeldRef = ref

_FORKED = "the client belongs to the parent of this process: open a new one after a fork"

_open_sessions: WeakSet[Session] = WeakSet()


class Grip(_HeldRef):
    """What a session has of a hold: enough to tell of its loss, and to release it if nobody has it.

    A weak reference with a callback, and not a __del__ of the hold: there, Python swallows what
    is raised, and a Ctrl-C could end so. The callback runs for forgotten holds only.
    """

    __slots__ = ("handle", "lost", "name", "session")

    handle: int
    lost: bool
    name: str
    session: ref[Session]


class Session:
    """One open client. Lives as long as the client object, a lock or a hold of it.

    Attributes:
        native: the C client.
        closed: why it can't be used any more; empty while it can.
        losses: counts what a new hold may have missed: losses that were told when the session
            had no grip on it yet, and the end of the session.
    """

    def __init__(self, native: Native) -> None:
        self.native = native
        self.closed = ""
        self.losses = 0
        self._grips: dict[int, Grip] = {}
        self._ref = ref(self)
        # From here on a fork may come: a subclass has set its own fields before.
        _open_sessions.add(self)

    def grip(self, held: BaseHeld[Any], handle: int) -> None:
        """Takes note of a new hold."""
        grip = Grip(held, _forgotten)
        grip.handle = handle
        grip.lost = False
        grip.name = held.name
        grip.session = self._ref
        self._grips[handle] = grip

    def let_go(self, handle: int) -> None:
        """Forgets a hold whose handle is freed."""
        self._grips.pop(handle, None)

    def lose(self, handle: int, reason: str) -> None:
        """Tells a hold that it is lost, unless it is gone or has just been released."""
        grip = self._grips.get(handle)
        held = grip() if grip is not None else None
        if grip is not None and held is not None:
            grip.lost = True
            held.lost._notify(reason)

    def require_open(self) -> None:
        """Raises Closed unless the session is open."""
        if self.closed:
            raise Closed(self.closed)

    def dispose(self, handle: int) -> None:
        """Gives back, without waiting, a hold that nobody wants. Safe in a finalizer."""
        self._grips.pop(handle, None)
        if not self.closed:
            self.native.dispose(handle)

    def _end(self, reason: str) -> list[BaseHeld[Any]]:
        # Returns the holds that are to be told, which the caller does when it has no mutex.
        self.closed = reason
        self.losses += 1
        _open_sessions.discard(self)
        grips, self._grips = self._grips, {}
        holds = [grip() for grip in grips.values()]
        return [held for held in holds if held is not None]

    def _at_exit(self) -> None:
        # Releases what is held. No callback runs: that the process ends is not news to itself.
        raise NotImplementedError

    def _after_fork(self) -> None:
        # The C library keeps the child away from what is the parent's; here the child learns it.
        for held in self._end(_FORKED):
            held.lost._forked(_FORKED)


# The default argument is there for the interpreter's end, when globals may be gone.
def _forgotten(grip: Grip, warn: Any = warnings.warn) -> None:
    session = grip.session()
    if session is not None and not session.closed:
        session.dispose(grip.handle)
        if not grip.lost:
            warn(f"lock {grip.name!r} was not released", ResourceWarning, stacklevel=2)


def _at_exit() -> None:
    for session in list(_open_sessions):
        session._at_exit()


def _after_fork_in_child() -> None:
    for session in list(_open_sessions):
        session._after_fork()


atexit.register(_at_exit)
os.register_at_fork(after_in_child=_after_fork_in_child)
