"""The driver that uses AsyncClient: a task each request."""

from __future__ import annotations

import asyncio
import sys
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
    """Clients, holds and running requests by the runner's names."""

    def __init__(self) -> None:
        self._clients: dict[str, libredlock.AsyncClient] = {}
        self._holds: dict[str, libredlock.AsyncHeld] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Answers requests until the input ends."""
        ready()
        reader = asyncio.StreamReader(limit=1 << 20)
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            request = Request.parse(line.decode("ascii"))
            self._tasks[request.id] = loop.create_task(self._answer(request))

    async def _answer(self, request: Request) -> None:
        try:
            status, fields = await self._serve(request)
        except asyncio.CancelledError:
            send(request.id, "CANCELED", [("message", "CancelledError")])
        except Exception as error:
            fail(request, error)
        else:
            send(request.id, status, fields)
        finally:
            del self._tasks[request.id]

    async def _serve(self, request: Request) -> tuple[str, Fields]:
        match request.verb:
            case "open":
                self._clients[request.get("client")] = libredlock.AsyncClient(
                    **request.client_arguments()
                )
                return "OK", []
            case "cancel":
                if task := self._tasks.get(request.get("request")):
                    task.cancel()
                return "OK", []
            case "renew" | "release" | "remaining":
                return "OK", await self._serve_held(request, self._holds[request.get("held")])
        return await self._serve_client(request, self._clients[request.get("client")])

    async def _serve_client(
        self, request: Request, client: libredlock.AsyncClient
    ) -> tuple[str, Fields]:
        match request.verb:
            case "acquire" | "try_acquire":
                lock = _lock(request, client)
                held = (
                    await lock.try_acquire()
                    if request.verb == "try_acquire"
                    else await lock.acquire(request.seconds("wait_ms"))
                )
                if held is None:
                    return "HELD", [("message", "try_acquire returned None")]
                name, signal = request.get("held"), held.lost
                self._holds[name] = held
                held.on_lost(lambda: lost(name, signal.reason))
                return "OK", acquired(held)
            case "inspect":
                return "OK", inspected(await _lock(request, client).inspect())
            case "force_release":
                await _lock(request, client).force_release(request.get("digest"))
                return "OK", []
            case "close":
                await client.close()
                return "OK", []
            case "hammer":
                return "OK", [("grants", await self._hammer(request, client))]
        raise ValueError(f"the driver has no verb {request.verb!r}")

    @staticmethod
    async def _serve_held(request: Request, held: libredlock.AsyncHeld) -> Fields:
        match request.verb:
            case "renew":
                await held.renew(request.seconds("ttl_ms"))
            case "release":
                await held.release()
                return []
        return remaining(held)

    @staticmethod
    async def _hammer(request: Request, client: libredlock.AsyncClient) -> int:
        lock = _lock(request, client)
        end_at = time.monotonic() + float(request.get("seconds"))
        with Evidence(request.get("counter"), request.get("log")) as evidence:
            while evidence.grants == 0 or time.monotonic() < end_at:
                held = await lock.acquire()
                begin, value = evidence.begin()
                await asyncio.sleep(0)
                end = evidence.end(value)
                fence = held.fence
                await held.release()
                evidence.granted(begin, end, fence)
            return evidence.grants


def _lock(request: Request, client: libredlock.AsyncClient) -> libredlock.AsyncLock:
    match request.get("kind"):
        case "mutex":
            return client.mutex(**request.lock_arguments())
        case "semaphore":
            return client.semaphore(**request.lock_arguments())
    raise ValueError(f"the driver has no kind {request.get('kind')!r}")
