"""A release that no node confirms, at the end of a body that has done its work."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys

import pytest
import redis

from libredlock import AsyncClient, Client, Unavailable

from .conftest import redis_server, soon


def test_is_logged_by_with_and_raised_by_release(caplog: pytest.LogCaptureFixture) -> None:
    with redis_server() as path, Client(f"unix://{path}", node_timeout=0.1) as client:
        first, second = client.mutex("first"), client.mutex("second").acquire()
        with caplog.at_level(logging.WARNING, "libredlock"), first:
            stop(path)
        assert "the release of lock 'first' is not confirmed" in caplog.text
        with pytest.raises(Unavailable):
            second.release()


def test_is_logged_by_async_with(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        with redis_server() as path:
            async with (
                AsyncClient(f"unix://{path}", node_timeout=0.1) as client,
                client.mutex("first"),
            ):
                stop(path)

    with caplog.at_level(logging.WARNING, "libredlock"):
        asyncio.run(soon(main()))
    assert "the release of lock 'first' is not confirmed" in caplog.text


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exceptions have no notes before 3.11")
def test_a_loss_is_noted_at_what_the_body_raised(
    client: Client, server: redis.Redis, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.WARNING, "libredlock"),
        pytest.raises(KeyError) as caught,
        client.mutex(name),
    ):
        server.delete(name)
        raise KeyError("work")
    assert any("LockLost" in note for note in caught.value.__notes__)
    assert name in caplog.text


def stop(path: str) -> None:
    """Ends the server at a socket."""
    with redis.Redis(unix_socket_path=path) as server, contextlib.suppress(redis.ConnectionError):
        server.shutdown(nosave=True)
