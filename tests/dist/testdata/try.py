"""Acquires and releases once, with an installed libredlock."""

import asyncio
import sys

import libredlock


async def main(url: str) -> None:
    """Tries the client for asyncio."""
    async with libredlock.AsyncClient(url) as client, client.mutex("dist:python") as held:
        print(libredlock.__version__, held.fence)


with libredlock.Client(sys.argv[1]) as client, client.mutex("dist:python") as held:
    print(libredlock.__version__, held.fence)
asyncio.run(main(sys.argv[1]))
