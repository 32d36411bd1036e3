"""The driver that uses Client: a thread each request."""

from __future__ import annotations

import sys
import threading
import time

import libredlock

from hammer import Evidence
from protocol import (
    Fields,
    Request,
    acquired,
    fail,
    inspected,
    lost,
    ready,
    remaining,
    send,
)


class Driver:
    """Clients and holds by the runner's names."""

    def __init__(self) -> None:
        self._clients: dict[str, libredlock.Client] = {}
        self._holds: dict[str, libredlock.Held] = {}

    def run(self) -> None:
        """Answers requests until the input ends."""
        ready("cancel")
        for line in sys.stdin:
            request = Request.parse(line)
            threading.Thread(target=self._answer, args=(request,), daemon=True).start()

    def _answer(self, request: Request) -> None:
        try:
            status, fields = self._serve(request)
        except Exception as error:
            fail(request, error)
        else:
            send(request.id, status, fields)

    def _serve(self, request: Request) -> tuple[str, Fields]:
        match request.verb:
            case "open":
                self._clients[request.get("client")] = libredlock.Client(
                    **request.client_arguments()
                )
                return "OK", []
            case "renew" | "release" | "remaining":
                return "OK", self._serve_held(request, self._holds[request.get("held")])
        return self._serve_client(request, self._clients[request.get("client")])

    def _serve_client(self, request: Request, client: libredlock.Client) -> tuple[str, Fields]:
        match request.verb:
            case "acquire" | "try_acquire":
                lock = _lock(request, client)
                held = (
                    lock.try_acquire()
                    if request.verb == "try_acquire"
                    else lock.acquire(request.seconds("wait_ms"))
                )
                if held is None:
                    return "HELD", [("message", "try_acquire returned None")]
                name, signal = request.get("held"), held.lost
                self._holds[name] = held
                held.on_lost(lambda: lost(name, signal.reason))
                return "OK", acquired(held)
            case "inspect":
                return "OK", inspected(_lock(request, client).inspect())
            case "force_release":
                _lock(request, client).force_release(request.get("digest"))
                return "OK", []
            case "close":
                client.close()
                return "OK", []
            case "hammer":
                return "OK", [("grants", self._hammer(request, client))]
        raise ValueError(f"the driver has no verb {request.verb!r}")

    @staticmethod
    def _serve_held(request: Request, held: libredlock.Held) -> Fields:
        match request.verb:
            case "renew":
                held.renew(request.seconds("ttl_ms"))
            case "release":
                held.release()
                return []
        return remaining(held)

    @staticmethod
    def _hammer(request: Request, client: libredlock.Client) -> int:
        lock = _lock(request, client)
        end_at = time.monotonic() + float(request.get("seconds"))
        with Evidence(request.get("counter"), request.get("log")) as evidence:
            while evidence.grants == 0 or time.monotonic() < end_at:
                held = lock.acquire()
                begin, value = evidence.begin()
                time.sleep(0)
                end = evidence.end(value)
                fence = held.fence
                held.release()
                evidence.granted(begin, end, fence)
            return evidence.grants


def _lock(request: Request, client: libredlock.Client) -> libredlock.Lock:
    match request.get("kind"):
        case "mutex":
            return client.mutex(**request.lock_arguments())
        case "semaphore":
            return client.semaphore(**request.lock_arguments())
    raise ValueError(f"the driver has no kind {request.get('kind')!r}")
