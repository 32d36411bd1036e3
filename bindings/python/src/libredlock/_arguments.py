"""Checks of arguments, before they become C values that would hide what was wrong with them.

A wrong type is a TypeError. A value that C can't express, or would take for "the default", is
InvalidUse here; the limits themselves (name, ttl, ...) are the core's, in every language the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .errors import InvalidUse

# Far beyond every limit of the core, far within an int64_t.
_MOST = 2**53


def duration_ms(what: str, seconds: float | None) -> int:
    """Seconds, more than zero, in milliseconds; 0, which is C's default, for None."""
    if seconds is None:
        return 0
    ms = _milliseconds(what, seconds)
    if ms < 0.5:
        raise InvalidUse(f"{what} must be at least a millisecond, not {seconds!r} s")
    if ms > _MOST:
        raise InvalidUse(f"{what} is too long: {seconds!r} s")
    return round(ms)


def wait_ms(seconds: float | None) -> int:
    """A timeout in seconds as C's wait_ms: -1, without limit, for None and infinity."""
    if seconds is None:
        return -1
    ms = _milliseconds("timeout", seconds)
    if ms < 0:
        raise InvalidUse(f"timeout must not be negative, but is {seconds!r} s")
    # Rounded up, so that a short wait does not become none at all.
    return -1 if ms > _MOST else math.ceil(ms)


def count(what: str, value: int | None) -> int:
    """How many, one or more; 0, which is C's default, for None."""
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{what} must be an int, not {type(value).__name__}")
    if value < 1:
        raise InvalidUse(f"{what} must be at least 1, not {value}")
    return min(value, _MOST)


def _milliseconds(what: str, seconds: float) -> float:
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise TypeError(f"{what} must be a number of seconds, not {type(seconds).__name__}")
    ms = float(seconds) * 1000
    if math.isnan(ms):
        raise InvalidUse(f"{what} is not a number")
    return ms


def toggle(what: str, value: bool | None) -> int:
    """REDLOCK_DEFAULT, REDLOCK_ON or REDLOCK_OFF."""
    if value is None:
        return 0
    if not isinstance(value, bool):
        raise TypeError(f"{what} must be True, False or None, not {type(value).__name__}")
    return 1 if value else 2


def text(what: str, value: str) -> bytes:
    """A string in UTF-8. The error does not show it: it may have a password in it."""
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a str, not {type(value).__name__}")
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise InvalidUse(f"{what} has a surrogate in it, which UTF-8 can't express") from None


def c_string(what: str, value: str) -> bytes:
    """As text, for strings of which C looks for the end."""
    encoded = text(what, value)
    if b"\0" in encoded:
        raise InvalidUse(f"{what} has a NUL in it")
    return encoded


def node_urls(nodes: str | Sequence[str]) -> list[bytes]:
    """The URLs of a client's nodes."""
    if isinstance(nodes, str):
        nodes = [nodes]
    elif isinstance(nodes, (bytes, bytearray)) or not isinstance(nodes, Sequence):
        raise TypeError(f"nodes must be a URL or a sequence of URLs, not {type(nodes).__name__}")
    return [c_string("a node's URL", node) for node in nodes]


def without_secrets(urls: list[bytes]) -> str:
    """URLs for a repr: without user, password and query, rather too little than too much."""
    shown = []
    for url in urls:
        scheme, _, rest = url.decode().partition("://")
        shown.append(f"{scheme}://{rest.rpartition('@')[2].partition('?')[0]}")
    return ", ".join(shown)
