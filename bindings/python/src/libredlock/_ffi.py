"""libredlock.so in terms of Python. Nothing but this module and _abi, below it, knows ctypes.

Loading libredlock.so starts no thread and does not load the Go core behind it: opening the first
client does.
"""

from __future__ import annotations

import struct
from ctypes import (
    addressof,
    byref,
    c_char_p,
    c_int,
    c_size_t,
    c_uint64,
    create_string_buffer,
    sizeof,
)
from typing import Any, Final

from ._abi import CEvent, CHolder, CInspection, COptions, CRequest, LongError, library
from ._inspection import Holder, Inspection
from .errors import RedlockError, Status, from_status

OK: Final = int(Status.OK)
HELD: Final = int(Status.HELD)
LOST: Final = int(Status.LOST)
UNAVAILABLE: Final = int(Status.UNAVAILABLE)

WAIT_FOREVER: Final = -1

EVENT_DONE: Final = 0
EVENT_LOST: Final = 1
EVENT_HEALTH: Final = 2

SUBMIT_ACQUIRE: Final = 0
SUBMIT_RENEW: Final = 1
SUBMIT_RELEASE: Final = 2
MAX_OPERATIONS: Final = 256

MUTEX: Final = 0
SEMAPHORE: Final = 4

_KINDS: Final = {MUTEX: "mutex", SEMAPHORE: "semaphore"}
_DRAIN_CAPACITY: Final = 128
_POOL_MAX: Final = 64


# redlock_event but for its message, and redlock_operation. "=" packs as the compiler does here,
# since all fields are aligned by themselves.
_EVENT: Final = struct.Struct("=QQQqiiiI1024x")
_OPERATION: Final = struct.Struct("=QQqII")

# A drained event: id, handle, fence, remaining_ms, kind, status, node, slot. Its message is
# read only when it is asked for.
Event = tuple[int, int, int, int, int, int, int, int]


def renewal(handle: int, ttl_ms: int) -> bytes:
    """The operation that renews a hold."""
    return _OPERATION.pack(0, handle, ttl_ms, SUBMIT_RENEW, 0)


def ending(handle: int) -> bytes:
    """The operation that releases a hold."""
    return _OPERATION.pack(0, handle, 0, SUBMIT_RELEASE, 0)


class Request:
    """Which lock, and how, as C wants it. Immutable, so that any number of calls can share it.

    Attributes:
        ref: of the C struct.
        operation: the operation that acquires it; good for as long as this object lives.
        slots: whether its holders have slots.
    """

    __slots__ = ("_fields", "_struct", "operation", "ref", "slots")

    def __init__(
        self, name: bytes, *, metadata: bytes = b"", wait_ms: int = 0, **fields: int
    ) -> None:
        self._fields: dict[str, Any] = {"name": name, "metadata": metadata, **fields}
        self._struct = CRequest(
            size=sizeof(CRequest),
            name_len=len(name),
            metadata_len=len(metadata),
            wait_ms=wait_ms,
            **self._fields,
        )
        self.ref = byref(self._struct)
        self.slots = fields.get("kind") == SEMAPHORE
        self.operation = _OPERATION.pack(addressof(self._struct), 0, 0, SUBMIT_ACQUIRE, 0)

    @property
    def counts(self) -> bool:
        """Whether its attempts are limited."""
        return bool(self._struct.max_tries)

    def waiting(self, wait_ms: int) -> Request:
        """The same request with another limit."""
        return Request(wait_ms=wait_ms, **self._fields)


class Frame:
    """The memory that one call writes to: a handle or an id, and why it failed.

    The caller has it before the call begins, so that it knows what to give back even if an
    exception, KeyboardInterrupt say, strikes just when the call returns.
    """

    __slots__ = ("_error", "_number", "error_ref", "number_ref")

    def __init__(self) -> None:
        self._number = c_uint64()
        self._error = LongError(size=sizeof(LongError))
        self.number_ref = byref(self._number)
        self.error_ref = byref(self._error)

    @property
    def number(self) -> int:
        """The handle or id that the call wrote, 0 if it wrote none."""
        return self._number.value

    def clear(self) -> None:
        """Forgets the number of the call before."""
        self._number.value = 0

    def error(self, status: int) -> RedlockError:
        """Why the call failed."""
        return from_status(status, self._error.message.decode("utf-8", "replace"))


# Frames that no call uses now. list.pop and list.append are atomic, which serves threads and,
# unlike a threading.local, also a signal handler that calls in the middle of a call.
_frames: list[Frame] = []


def frame() -> Frame:
    """A frame without a number, to be given back by recycle(), unless something raised."""
    try:
        taken = _frames.pop()
    except IndexError:
        return Frame()
    taken.clear()
    return taken


def recycle(used: Frame) -> None:
    """Gives a frame back."""
    if len(_frames) < _POOL_MAX:
        _frames.append(used)


class Native:
    """A redlock_client. Its methods may be called from any thread, but for drain."""

    def __init__(
        self,
        nodes: list[bytes],
        *,
        prefix: bytes = b"",
        node_timeout_ms: int = 0,
        unavailable_after_ms: int = 0,
    ) -> None:
        functions = library()
        options = COptions(
            size=sizeof(COptions),
            nodes=(c_char_p * len(nodes))(*nodes),
            node_count=len(nodes),
            prefix=prefix,
            language=b"python",
            node_timeout_ms=node_timeout_ms,
            unavailable_after_ms=unavailable_after_ms,
        )
        opened = Frame()
        status = functions.redlock_open(byref(options), opened.number_ref, opened.error_ref)
        if status:
            raise opened.error(status)
        self._client = opened.number
        self._close = functions.redlock_close
        self._acquire = functions.redlock_acquire
        self._renew = functions.redlock_renew
        self._release = functions.redlock_release
        self._inspect = functions.redlock_inspect
        self._force_release = functions.redlock_force_release
        self._submit_acquire = functions.redlock_submit_acquire
        self._submit_release = functions.redlock_submit_release
        self._submit = functions.redlock_submit
        self._cancel = functions.redlock_cancel
        self._remaining_ms = functions.redlock_remaining_ms
        self._fence = functions.redlock_fence
        self._slot = functions.redlock_slot
        self._token = functions.redlock_token
        self._fd = functions.redlock_fd
        self._drain = functions.redlock_drain
        self._events: Any = None
        self._event_bytes = memoryview(b"")
        self._event_count = c_size_t()
        self._event_count_ref = byref(self._event_count)

    # Blocking calls.

    def close(self) -> None:
        """Releases what is held and closes; nothing if it is closed already."""
        self._close(self._client, None)

    def acquire(self, request: Request, into: Frame) -> int:
        """Acquires, with the handle into the frame, and returns the status."""
        status: int = self._acquire(self._client, request.ref, into.number_ref, into.error_ref)
        return status

    def renew(self, handle: int, ttl_ms: int) -> None:
        """Extends the lease."""
        used = frame()
        status = self._renew(handle, ttl_ms, used.error_ref)
        if status:
            raise used.error(status)
        recycle(used)

    def release(self, handle: int) -> None:
        """Releases and, whatever comes of it, frees the handle."""
        used = frame()
        status = self._release(handle, used.error_ref)
        if status:
            raise used.error(status)
        recycle(used)

    def inspect(self, request: Request) -> Inspection:
        """Reads who holds the request's name."""
        found = CInspection(size=sizeof(CInspection))
        holders = found.holders  # room for a few
        used = frame()
        while True:
            status = self._inspect(self._client, request.ref, byref(found), used.error_ref)
            if status:
                raise used.error(status)
            if found.holder_count <= len(holders):
                break
            holders = (CHolder * (found.holder_count + 16))()  # there may be more by then
            found.all_holders, found.all_capacity = holders, len(holders)
        recycle(used)
        return Inspection(
            kind=_KINDS.get(found.kind, f"kind {found.kind}"),
            holders=tuple(
                Holder(
                    who=holder.who.decode("utf-8", "replace"),
                    digest=holder.digest.decode("utf-8", "replace"),
                    ttl=holder.ttl_ms / 1000 if holder.ttl_ms >= 0 else None,
                    nodes=holder.nodes,
                    slot=holder.slot if found.kind == SEMAPHORE else None,
                )
                for holder in holders[: found.holder_count]
            ),
            fence=found.fence,
            queue_length=found.queue_length,
            queue_age=found.queue_age_ms / 1000,
        )

    def force_release(self, request: Request, digest: bytes) -> None:
        """Takes the request's name away from the holder with this digest."""
        used = frame()
        status = self._force_release(self._client, request.ref, digest, used.error_ref)
        if status:
            raise used.error(status)
        recycle(used)

    # Calls that never block.

    def submit_acquire(self, request: Request, into: Frame) -> int:
        """Begins to acquire, with the id into the frame, and returns the status."""
        status: int = self._submit_acquire(
            self._client, request.ref, into.number_ref, into.error_ref
        )
        return status

    def submit(self, operations: list[bytes]) -> int:
        """Begins up to MAX_OPERATIONS and returns the id of the first; the others' follow it."""
        used = frame()
        status = self._submit(
            self._client, b"".join(operations), len(operations), used.number_ref, used.error_ref
        )
        if status:
            raise used.error(status)
        first = used.number
        recycle(used)
        return first

    def dispose(self, handle: int) -> None:
        """Releases and frees a handle that nobody wants, whatever comes of it."""
        self._submit_release(handle, byref(c_uint64()), None)

    def cancel(self, operation: int) -> None:
        """Cancels what was submitted; its event comes all the same."""
        self._cancel(self._client, operation, None)

    def remaining_ms(self, handle: int) -> int:
        """How long the lock is certainly ours."""
        ms: int = self._remaining_ms(handle)
        return ms

    def fence(self, handle: int) -> int:
        """The fencing token."""
        fence: int = self._fence(handle)
        return fence

    def slot(self, handle: int) -> int:
        """The slot of a semaphore."""
        slot: int = self._slot(handle)
        return slot

    def token(self, handle: int) -> str:
        """The value that stands in Redis."""
        buffer = create_string_buffer(256)
        used = frame()
        status = self._token(handle, buffer, sizeof(buffer), used.error_ref)
        if status:
            raise used.error(status)
        recycle(used)
        return buffer.value.decode("utf-8", "replace")

    def fd(self) -> int:
        """The descriptor that polls readable while events wait."""
        descriptor = c_int(-1)
        used = frame()
        status = self._fd(self._client, byref(descriptor), used.error_ref)
        if status:
            raise used.error(status)
        recycle(used)
        return descriptor.value

    def drain(self) -> list[Event]:
        """Events that wait, though not more than a batch. For one thread at a time."""
        if self._events is None:
            self._events = (CEvent * _DRAIN_CAPACITY)()
            self._event_bytes = memoryview(self._events).cast("B")
        events = self._events
        if self._drain(self._client, events, _DRAIN_CAPACITY, self._event_count_ref, None):
            return []  # closed: close() has told everybody
        return list(_EVENT.iter_unpack(self._event_bytes[: self._event_count.value * _EVENT.size]))

    def message(self, index: int) -> str:
        """The message of an event of the last drain, by its place there."""
        text: bytes = self._events[index].message
        return text.decode("utf-8", "replace")
