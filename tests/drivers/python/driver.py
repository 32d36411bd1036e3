"""Drives the libredlock package by the line protocol of tests/drivers/README.md."""

from __future__ import annotations

import argparse
import asyncio

import blocking
import nonblocking


def main() -> None:
    """Runs one of the two drivers until the input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--sync", action="store_true", help="use Client, a thread each request")
    mode.add_argument("--async", action="store_true", help="use AsyncClient, a task each request")
    if parser.parse_args().sync:
        blocking.Driver().run()
    else:
        asyncio.run(nonblocking.Driver().run())


if __name__ == "__main__":
    main()
