"""Holds locks by redis-py's Lock, by the line protocol of tests/drivers/README.md."""

from __future__ import annotations

import sys
import threading
from urllib.parse import quote, unquote

import redis
from redis.exceptions import LockNotOwnedError
from redis.lock import Lock

_writing = threading.Lock()
_clients: dict[str, redis.Redis] = {}
_locks: dict[str, Lock] = {}


def main() -> None:
    """Answers requests until the input ends."""
    send("-", "ready", language="python", lacks="")
    for line in sys.stdin:
        threading.Thread(target=answer, args=(line,), daemon=True).start()


def answer(line: str) -> None:
    """Answers one request."""
    request_id, verb, *words = line.split()
    fields = {key: unquote(value) for key, _, value in (word.partition("=") for word in words)}
    try:
        send(request_id, serve(verb, fields))
    except LockNotOwnedError as error:
        send(request_id, "NOT_HELD", message=str(error))
    except Exception as error:
        send(request_id, "FAILED", message=repr(error))


def serve(verb: str, fields: dict[str, str]) -> str:
    """Does what a request asks for, and gives the status."""
    match verb:
        case "open":
            host, _, port = fields["node"].rpartition(":")
            _clients[fields["client"]] = redis.Redis(host, int(port))
        case "acquire" | "try_acquire":
            return acquire(verb, fields)
        case "renew":
            _locks[fields["held"]].extend(int(fields["ttl_ms"]) / 1000, replace_ttl=True)
        case "release":
            _locks[fields["held"]].release()
        case "close":
            _clients[fields["client"]].close()
        case _:
            raise ValueError(f"no verb {verb!r}")
    return "OK"


def acquire(verb: str, fields: dict[str, str]) -> str:
    """Waits as long as it may, or tries once; redis-py asks every 100 ms."""
    # Requests come on a thread each, so the token must not be the thread's.
    lock = _clients[fields["client"]].lock(
        fields["name"], timeout=int(fields["ttl_ms"]) / 1000, thread_local=False
    )
    _locks[fields["held"]] = lock
    if verb == "try_acquire":
        return "OK" if lock.acquire(blocking=False) else "HELD"
    return "OK" if lock.acquire(blocking_timeout=int(fields["wait_ms"]) / 1000) else "TIMEOUT"


def send(request_id: str, word: str, **fields: str) -> None:
    """Writes one line."""
    words = [request_id, word, *(f"{key}={quote(value)}" for key, value in fields.items())]
    with _writing:
        print(*words, flush=True)


main()
