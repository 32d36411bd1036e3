"""Distributed locks over Redis.

    import libredlock

    with libredlock.Client("redis://127.0.0.1:6379") as client:
        with client.mutex("orders:42", ttl=10.0) as held:
            write_with(held.fence)

Client is for threads, AsyncClient has the same names awaited. Whatever goes wrong is a
RedlockError. Durations are seconds.
"""

from __future__ import annotations

from ._abi import __version__
from ._aio import AsyncClient
from ._aio_held import AsyncHeld
from ._aio_lock import AsyncLock, AsyncMutex, AsyncSemaphore
from ._client import Client
from ._held import Held
from ._inspection import Holder, Inspection
from ._lock import Lock, LockOptions, Mutex, Semaphore
from ._lost import AsyncLost, Lost
from .errors import (
    AcquireTimeout,
    Canceled,
    Closed,
    InternalError,
    InvalidUse,
    LockLost,
    NotHeld,
    RedlockError,
    Status,
    Unavailable,
    Unsupported,
    WrongKind,
)

__all__ = [
    "AcquireTimeout",
    "AsyncClient",
    "AsyncHeld",
    "AsyncLock",
    "AsyncLost",
    "AsyncMutex",
    "AsyncSemaphore",
    "Canceled",
    "Client",
    "Closed",
    "Held",
    "Holder",
    "Inspection",
    "InternalError",
    "InvalidUse",
    "Lock",
    "LockLost",
    "LockOptions",
    "Lost",
    "Mutex",
    "NotHeld",
    "RedlockError",
    "Semaphore",
    "Status",
    "Unavailable",
    "Unsupported",
    "WrongKind",
    "__version__",
]
