"""A real Redis for the tests, and what they share."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
import redis

import libredlock

T = TypeVar("T")

SOURCE = Path(libredlock.__file__).resolve().parents[1]


def until(what: Callable[[], object], within: float = 5.0) -> None:
    """Waits for what must become true, because something else does it in the background."""
    deadline = time.monotonic() + within
    while not what():
        assert time.monotonic() < deadline, "it did not become true"
        time.sleep(0.002)


async def soon(what: Awaitable[T]) -> T:
    """Awaits with a limit, so that a test fails rather than hangs."""
    return await asyncio.wait_for(what, 20)


def run_python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a program in an interpreter of its own."""
    return subprocess.run(
        [sys.executable, "-X", "dev", "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@contextlib.contextmanager
def redis_server(port: int = 0) -> Iterator[str]:
    """A Redis of its own; at a Unix socket, whose path is given, and a port unless that is 0."""
    server = shutil.which("redis-server")
    assert server, "the tests need redis-server"
    # The path of a Unix socket must be short.
    with tempfile.TemporaryDirectory(prefix="redlock") as folder:
        path = f"{folder}/socket"
        process = subprocess.Popen(
            [server, "--port", str(port), "--unixsocket", path, "--save", "", "--dir", folder],
            stdout=subprocess.DEVNULL,
        )
        try:
            with redis.Redis(unix_socket_path=path) as probe:

                def answers() -> bool:
                    with contextlib.suppress(redis.ConnectionError):
                        return bool(probe.ping())
                    return False

                until(answers)
            yield path
        finally:
            process.terminate()
            process.wait()


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    """The URL of a Redis that lives as long as the test run."""
    with redis_server() as path:
        yield f"unix://{path}"


@pytest.fixture(scope="session")
def server(url: str) -> Iterator[redis.Redis]:
    """An ordinary client of that Redis, to see and do what others would."""
    with redis.Redis(unix_socket_path=url.removeprefix("unix://"), decode_responses=True) as it:
        yield it


@pytest.fixture
def name() -> str:
    """A name that no other test uses."""
    return f"test:{uuid.uuid4().hex}"


@pytest.fixture
def client(url: str) -> Iterator[libredlock.Client]:
    with libredlock.Client(url) as it:
        yield it
