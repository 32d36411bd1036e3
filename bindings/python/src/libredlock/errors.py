"""What can go wrong, by what you can do about it."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """How an operation ended. The numbers are the same in every language and never change."""

    OK = 0
    HELD = 1
    TIMEOUT = 2
    LOST = 3
    UNAVAILABLE = 4
    CANCELED = 5
    INVALID = 6
    NOT_HELD = 7
    WRONG_KIND = 8
    UNSUPPORTED = 9
    CLOSED = 10
    INTERNAL = 11


class RedlockError(Exception):
    """The base of all errors of libredlock.

    Attributes:
        status: what happened, as a number that all languages share.
        nodes: why each node that failed did so, one line a node, for instance
            ``"node 2 (127.0.0.1:6381): timeout after 50 ms"``. Never holds a password.
    """

    status = Status.INTERNAL
    nodes: tuple[str, ...]

    def __init__(self, message: str = "", nodes: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.nodes = nodes


class AcquireTimeout(RedlockError, TimeoutError):
    """Somebody else held the lock until the timeout, or at all of max_tries. Try again later."""

    status = Status.TIMEOUT


class LockLost(RedlockError):
    """The lock was ours and is no longer: stop the work that it protects."""

    status = Status.LOST


class Unavailable(RedlockError):
    """Too few nodes answered; what an attempt may have left is being removed. Back off."""

    status = Status.UNAVAILABLE


class Canceled(RedlockError):
    """The operation was cancelled."""

    status = Status.CANCELED


class InvalidUse(RedlockError, ValueError):
    """An argument is out of its limits, or the operation makes no sense now."""

    status = Status.INVALID


class NotHeld(RedlockError):
    """Release or renewal of what was released already or never held."""

    status = Status.NOT_HELD


class WrongKind(RedlockError):
    """Something other than this kind of lock stands at the name."""

    status = Status.WRONG_KIND


class Unsupported(RedlockError):
    """The server, or this version of libredlock, can't do it."""

    status = Status.UNSUPPORTED


class Closed(RedlockError):
    """The client is closed, or belongs to the parent of this process: open a new one."""

    status = Status.CLOSED


class InternalError(RedlockError):
    """A bug in libredlock. Please report it."""

    status = Status.INTERNAL


# HELD is missing: try_acquire answers it with None, and acquire with AcquireTimeout.
_BY_STATUS: dict[int, type[RedlockError]] = {
    error.status: error
    for error in (
        AcquireTimeout,
        LockLost,
        Unavailable,
        Canceled,
        InvalidUse,
        NotHeld,
        WrongKind,
        Unsupported,
        Closed,
        InternalError,
    )
}


def from_status(status: int, message: str) -> RedlockError:
    """The error for a status of the C library, whose message has one more line for each node."""
    nodes = tuple(message.splitlines()[1:])
    return _BY_STATUS.get(status, InternalError)(message, nodes)
