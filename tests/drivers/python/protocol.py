"""The line protocol of tests/drivers/README.md."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_to_bytes

import libredlock

_writing = threading.Lock()

Fields = list[tuple[str, object]]


@dataclass
class Request:
    """One line from the runner."""

    id: str
    verb: str
    fields: list[tuple[str, str]] = field(default_factory=list)

    @classmethod
    def parse(cls, line: str) -> Request:
        """Reads a line."""
        request_id, verb, *words = line.rstrip("\n").split(" ")
        request = cls(request_id, verb)
        for word in words:
            key, _, value = word.partition("=")
            # What is no UTF-8 is handed on as the surrogates that Python uses for such bytes.
            request.fields.append((key, unquote_to_bytes(value).decode(errors="surrogateescape")))
        return request

    def all(self, key: str) -> list[str]:
        """Every value of a key."""
        return [value for name, value in self.fields if name == key]

    def get(self, key: str, absent: str = "") -> str:
        """The first value of a key."""
        return next(iter(self.all(key)), absent)

    def seconds(self, key: str) -> float | None:
        """A time in milliseconds as Python's seconds; None if it is absent."""
        values = self.all(key)
        return int(values[0]) / 1000 if values else None

    def client_arguments(self) -> dict[str, Any]:
        """What to call Client or AsyncClient with; what is absent is left to its default."""
        arguments: dict[str, Any] = {"nodes": self.all("node")}
        if self.all("prefix"):
            arguments["prefix"] = self.get("prefix")
        for name in ("node_timeout", "unavailable_after"):
            if self.all(f"{name}_ms"):
                arguments[name] = self.seconds(f"{name}_ms")
        return arguments

    def lock_arguments(self) -> dict[str, Any]:
        """What to call mutex() or semaphore() with."""
        arguments: dict[str, Any] = {"name": self.get("name")}
        if self.get("kind") == "semaphore":
            arguments["permits"] = int(self.get("permits", "1"))
        for name in ("ttl", "max_hold", "retry_delay", "retry_jitter"):
            if self.all(f"{name}_ms"):
                arguments[name] = self.seconds(f"{name}_ms")
        for name in ("fencing", "auto_renew", "queue"):
            if self.all(name):
                arguments[name] = self.get(name) == "on"
        if self.all("max_tries"):
            arguments["max_tries"] = int(self.get("max_tries"))
        if self.all("metadata"):
            arguments["metadata"] = self.get("metadata")
        return arguments


def send(line_id: str, word: str, fields: Iterable[tuple[str, object]] = ()) -> None:
    """Writes one line."""
    words = [line_id, word, *(f"{key}={_quote(str(value))}" for key, value in fields)]
    with _writing:
        sys.stdout.write(" ".join(words) + "\n")
        sys.stdout.flush()


def ready(*lacks: str) -> None:
    """Says what no binding of Python can do in this mode."""
    send("-", "ready", [("language", "python"), ("lacks", ",".join(lacks))])


def lost(held: str, cause: str) -> None:
    """Tells of the loss of a hold."""
    send("-", "lost", [("held", held), ("cause", cause)])


def fail(request: Request, error: BaseException) -> None:
    """Answers with what was raised; anything but a RedlockError is no status."""
    if not isinstance(error, libredlock.RedlockError):
        send(request.id, type(error).__name__, [("message", repr(error))])
        return
    text = str(error)
    nodes = [node for node in error.nodes if node not in text]
    send(request.id, error.status.name, [("message", "\n".join([text, *nodes]))])


def acquired(held: libredlock.Held | libredlock.AsyncHeld) -> Fields:
    """What an acquire answers."""
    slot: Fields = [] if held.slot is None else [("slot", held.slot)]
    return [("token", held.token), ("fence", held.fence), *slot, *remaining(held)]


def remaining(held: libredlock.Held | libredlock.AsyncHeld) -> Fields:
    """What a renew answers."""
    return [("remaining_ms", int(held.remaining() * 1000))]


def inspected(inspection: libredlock.Inspection) -> Fields:
    """What an inspect answers."""
    fields: Fields = [("kind", inspection.kind), ("fence", inspection.fence)]
    fields.append(("queue_length", inspection.queue_length))
    for holder in inspection.holders:
        ttl_ms = -1 if holder.ttl is None else int(holder.ttl * 1000)
        fields += [("who", holder.who), ("digest", holder.digest)]
        fields += [("ttl_ms", ttl_ms), ("nodes", holder.nodes)]
        if holder.slot is not None:
            fields.append(("slot", holder.slot))
    return fields


def _quote(value: str) -> str:
    printable = range(0x21, 0x7F)
    return "".join(
        chr(byte) if byte in printable and byte != ord("%") else f"%{byte:02X}"
        for byte in value.encode(errors="surrogateescape")
    )
