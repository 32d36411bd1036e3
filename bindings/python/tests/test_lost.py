"""The signal of a loss, and the holds of with statements, without a server."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from libredlock._entered import Entered
from libredlock._lost import AsyncLost, Lost, Signal


def test_callbacks_run_once_and_at_once_after_the_loss() -> None:
    signal, calls = Signal(), []
    signal._add(lambda: calls.append("before"))
    assert not signal.is_set()
    signal._notify("why")
    signal._notify("again")
    assert signal.is_set()
    assert signal.reason == "why"
    signal._add(lambda: calls.append("after"))
    assert calls == ["before", "after"]


def test_a_failing_callback_is_logged_and_stops_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    signal, calls = Signal(), []

    def fail() -> None:
        raise ValueError("of a test")

    signal._add(fail)
    signal._add(lambda: calls.append(1))
    with caplog.at_level(logging.ERROR, "libredlock"):
        signal._notify("why")
    assert calls == [1]
    assert "of a test" in caplog.text


def test_wait_returns_whether_it_is_set() -> None:
    lost = Lost()
    assert not lost.wait(0)
    assert not lost.wait(0.001)
    assert lost._callbacks == []
    results: list[bool] = []
    threads = [threading.Thread(target=lambda: results.append(lost.wait(10))) for _ in range(8)]
    for thread in threads:
        thread.start()
    lost._notify("why")
    for thread in threads:
        thread.join(10)
    assert results == [True] * 8
    assert lost.wait()
    assert lost._callbacks == []


def test_async_wait() -> None:
    async def main() -> None:
        lost = AsyncLost()
        waiting = [asyncio.create_task(lost.wait()) for _ in range(3)]
        given_up = asyncio.create_task(lost.wait())
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.wait([given_up])
        lost._notify("why")
        assert await asyncio.gather(*waiting) == [True] * 3
        assert await lost.wait()
        assert lost._callbacks == []

    asyncio.run(main())


def test_racing_callbacks_run_exactly_once() -> None:
    for _ in range(200):
        signal = Signal()
        calls: list[int] = []
        barrier = threading.Barrier(3)

        def add(
            signal: Signal = signal,
            calls: list[int] = calls,
            barrier: threading.Barrier = barrier,
        ) -> None:
            barrier.wait()
            for number in range(10):
                signal._add(lambda number=number: calls.append(number))  # type: ignore[misc]

        threads = [threading.Thread(target=add) for _ in range(2)]
        for thread in threads:
            thread.start()
        barrier.wait()
        signal._notify("why")
        for thread in threads:
            thread.join()
        assert sorted(calls) == sorted([*range(10), *range(10)])


def test_entered_gives_each_its_own_newest_and_else_the_newest() -> None:
    entered: Entered[str] = Entered()
    entered.push("a", "a1")
    entered.push("b", "b1")
    entered.push("a", "a2")
    assert entered.pop("a") == "a2"
    assert entered.pop("a") == "a1"
    assert entered.pop("another thread, finishing a generator of b") == "b1"


def test_entered_may_be_interrupted_by_itself() -> None:
    entered: Entered[str] = Entered()
    taken: list[str] = []

    class Key:
        """Compared, it does what a signal handler may do just then."""

        __hash__ = object.__hash__

        def __eq__(self, other: object) -> bool:
            if not taken:
                taken.append("")
                taken.append(entered.pop("another thread"))
            return self is other

    entered.push(Key(), "first")
    entered.push(Key(), "second")
    assert entered.pop("whoever") == "first"
    assert taken == ["", "second"]
    assert entered._holds == []


def test_entered_forgets_a_hold() -> None:
    entered: Entered[str] = Entered()
    entered.push("a", "a1")
    entered.push("a", "a2")
    entered.remove("a1")
    entered.remove("a1")
    assert entered._holds == [("a", "a2")]


def test_an_exit_in_a_callback_is_raised_after_the_others_ran() -> None:
    signal, calls = Signal(), []

    def leave() -> None:
        raise SystemExit(3)

    signal._add(leave)
    signal._add(lambda: calls.append(1))
    with pytest.raises(SystemExit):
        signal._notify("why")
    assert calls == [1]
