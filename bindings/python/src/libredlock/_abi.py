"""redlock.h in terms of ctypes, and where libredlock.so is.

redlock.h is the contract; tests/test_abi.py holds these structs against a C compiler.
"""

from __future__ import annotations

import ctypes
import functools
import os
from ctypes import (
    POINTER,
    c_char,
    c_char_p,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint32,
    c_uint64,
)
from pathlib import Path
from typing import Any, Final


class CError(ctypes.Structure):
    """redlock_error."""

    _fields_ = [
        ("size", c_uint32),
        ("status", c_int32),
        ("node", c_int32),
        ("reserved", c_uint32),
        ("message", c_char * 256),
    ]


class LongError(ctypes.Structure):
    """redlock_error with room behind it for the causes of all nodes."""

    _fields_ = [*CError._fields_[:4], ("message", c_char * 8176)]


class COptions(ctypes.Structure):
    """redlock_options."""

    _fields_ = [
        ("size", c_uint32),
        ("flags", c_uint32),
        ("nodes", POINTER(c_char_p)),
        ("node_count", c_size_t),
        ("prefix", c_char_p),
        ("language", c_char_p),
        ("node_timeout_ms", c_int64),
        ("unavailable_after_ms", c_int64),
    ]


class CRequest(ctypes.Structure):
    """redlock_request."""

    _fields_ = [
        ("size", c_uint32),
        ("kind", c_uint32),
        ("name", c_char_p),
        ("name_len", c_int64),
        ("ttl_ms", c_int64),
        ("wait_ms", c_int64),
        ("max_hold_ms", c_int64),
        ("fencing", c_uint32),
        ("auto_renew", c_uint32),
        ("queue", c_uint32),
        ("reserved", c_uint32),
        ("metadata", c_char_p),
        ("metadata_len", c_int64),
        ("retry_delay_ms", c_int64),
        ("retry_jitter_ms", c_int64),
        ("max_tries", c_int64),
        ("permits", c_int64),
    ]


class COperation(ctypes.Structure):
    """redlock_operation."""

    _fields_ = [
        ("request", POINTER(CRequest)),
        ("held", c_uint64),
        ("ttl_ms", c_int64),
        ("kind", c_uint32),
        ("reserved", c_uint32),
    ]


class CHolder(ctypes.Structure):
    """redlock_holder."""

    _fields_ = [
        ("who", c_char * 256),
        ("digest", c_char * 48),
        ("slot", c_uint32),
        ("reserved", c_uint32 * 3),
        ("ttl_ms", c_int64),
        ("nodes", c_int64),
    ]


class CInspection(ctypes.Structure):
    """redlock_inspection."""

    _fields_ = [
        ("size", c_uint32),
        ("kind", c_uint32),
        ("fence", c_uint64),
        ("queue_length", c_uint64),
        ("holder_count", c_uint64),
        ("holders", CHolder * 4),
        ("queue_age_ms", c_int64),
        ("all_holders", POINTER(CHolder)),
        ("all_capacity", c_uint64),
    ]


class CEvent(ctypes.Structure):
    """redlock_event."""

    _fields_ = [
        ("id", c_uint64),
        ("held", c_uint64),
        ("fence", c_uint64),
        ("remaining_ms", c_int64),
        ("kind", c_int32),
        ("status", c_int32),
        ("node", c_int32),
        ("slot", c_uint32),
        ("message", c_char * 1024),
    ]


__version__: Final = "0.1.0"

_ERROR: Final = POINTER(LongError)
_NUMBER: Final = POINTER(c_uint64)
_REQUEST: Final = POINTER(CRequest)

# Of every function, its result and its parameters.
_PROTOTYPES: Final[dict[str, tuple[Any, list[Any]]]] = {
    "redlock_open": (c_int, [POINTER(COptions), _NUMBER, _ERROR]),
    "redlock_close": (c_int, [c_uint64, _ERROR]),
    "redlock_acquire": (c_int, [c_uint64, _REQUEST, _NUMBER, _ERROR]),
    "redlock_renew": (c_int, [c_uint64, c_int64, _ERROR]),
    "redlock_release": (c_int, [c_uint64, _ERROR]),
    "redlock_remaining_ms": (c_int64, [c_uint64]),
    "redlock_fence": (c_uint64, [c_uint64]),
    "redlock_slot": (c_uint32, [c_uint64]),
    "redlock_token": (c_int, [c_uint64, c_char_p, c_size_t, _ERROR]),
    "redlock_inspect": (c_int, [c_uint64, _REQUEST, POINTER(CInspection), _ERROR]),
    "redlock_force_release": (c_int, [c_uint64, _REQUEST, c_char_p, _ERROR]),
    "redlock_submit_acquire": (c_int, [c_uint64, _REQUEST, _NUMBER, _ERROR]),
    "redlock_submit_renew": (c_int, [c_uint64, c_int64, _NUMBER, _ERROR]),
    "redlock_submit_release": (c_int, [c_uint64, _NUMBER, _ERROR]),
    # The operations are bytes here: _ffi packs them.
    "redlock_submit": (c_int, [c_uint64, c_char_p, c_size_t, _NUMBER, _ERROR]),
    "redlock_cancel": (c_int, [c_uint64, c_uint64, _ERROR]),
    "redlock_fd": (c_int, [c_uint64, POINTER(c_int), _ERROR]),
    "redlock_drain": (c_int, [c_uint64, POINTER(CEvent), c_size_t, POINTER(c_size_t), _ERROR]),
    "redlock_version": (c_char_p, []),
    "redlock_status_name": (c_char_p, [c_int]),
}


def _places() -> list[Path]:
    named = os.environ.get("REDLOCK_LIBRARY")
    if named:
        return [Path(named)]
    package = Path(__file__).resolve().parent
    places = [package / "libredlock.so"]
    if len(package.parents) > 3:
        places.append(package.parents[3] / "build" / "lib" / "libredlock.so")
    return places


@functools.cache
def library() -> ctypes.CDLL:
    """libredlock.so. Loading it starts no thread and does not load the Go core."""
    places = _places()
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        tried = ", ".join(map(str, places))
        raise ImportError(
            f"libredlock.so was not found at {tried}: install a wheel of libredlock, run build.sh"
            " in a checkout, or let REDLOCK_LIBRARY name the file"
        )
    library = ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_LOCAL)
    for name, (result, arguments) in _PROTOTYPES.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    version = library.redlock_version().decode()
    if version.split(".")[:2] != __version__.split(".")[:2]:
        raise ImportError(f"{path} is version {version}, this package is {__version__}")
    return library
