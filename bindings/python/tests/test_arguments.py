"""Arguments: wrong types, values that C would misunderstand, secrets."""

from __future__ import annotations

import math
import pickle
from typing import Any

import pytest

import libredlock
from libredlock import AcquireTimeout, InvalidUse, RedlockError, _arguments


@pytest.mark.parametrize("wrong", ["10", b"10", True, [1], 1j])
def test_durations_are_numbers(wrong: Any) -> None:
    with pytest.raises(TypeError, match="ttl"):
        _arguments.duration_ms("ttl", wrong)
    with pytest.raises(TypeError, match="timeout"):
        _arguments.wait_ms(wrong)


@pytest.mark.parametrize("wrong", [0, -1, 1e-9, math.nan, math.inf, 1e300])
def test_durations_that_c_would_misunderstand(wrong: float) -> None:
    with pytest.raises(InvalidUse, match="ttl"):
        _arguments.duration_ms("ttl", wrong)


def test_durations_are_exact() -> None:
    assert _arguments.duration_ms("ttl", None) == 0
    assert _arguments.duration_ms("ttl", 0.1) == 100
    assert _arguments.duration_ms("ttl", 10) == 10_000
    assert _arguments.duration_ms("ttl", 1.1) == 1100


def test_counts() -> None:
    assert _arguments.count("max_tries", None) == 0
    assert _arguments.count("max_tries", 1) == 1
    assert _arguments.count("max_tries", 1 << 70) < 1 << 63
    for wrong in (True, 1.0, "1"):
        with pytest.raises(TypeError, match="max_tries"):
            _arguments.count("max_tries", wrong)  # type: ignore[arg-type]
    for few in (0, -1):
        with pytest.raises(InvalidUse, match="max_tries"):
            _arguments.count("max_tries", few)


def test_timeouts_round_up_and_end_at_infinity() -> None:
    assert _arguments.wait_ms(None) == -1
    assert _arguments.wait_ms(math.inf) == -1
    assert _arguments.wait_ms(0) == 0
    assert _arguments.wait_ms(1e-9) == 1
    assert _arguments.wait_ms(2.5) == 2500
    for wrong in (-1, -1e-9, math.nan):
        with pytest.raises(InvalidUse):
            _arguments.wait_ms(wrong)


def test_nodes_are_strings() -> None:
    for wrong in (b"redis://x", [b"redis://x"], 1, None, {"redis://x"}):
        with pytest.raises(TypeError):
            libredlock.Client(wrong)  # type: ignore[arg-type]


def test_toggles_are_bools(client: libredlock.Client) -> None:
    with pytest.raises(TypeError, match="fencing"):
        client.mutex("x", fencing=1)  # type: ignore[arg-type]


def test_text_that_utf8_cannot_express_is_not_shown() -> None:
    with pytest.raises(InvalidUse) as caught:
        libredlock.Client("redis://:secret\udc80@127.0.0.1")
    assert "secret" not in repr(caught.value)
    assert caught.value.__cause__ is None


SECRETS = [
    "redis://user:secret@127.0.0.1:1/0",
    "redis://:sec@secret@127.0.0.1:1",
    "redis://:secret/secret@127.0.0.1:1",
    "unix://user:secret@/tmp/nowhere?db=0",
]


@pytest.mark.parametrize("url", SECRETS)
def test_no_password_is_shown(url: str, name: str) -> None:
    try:
        client = libredlock.Client([url], node_timeout=0.05)
    except InvalidUse as error:
        assert "sec" not in str(error) + repr(error)
        return
    with client:
        assert "secret" not in repr(client)
        assert "sec@" not in repr(client)
        with pytest.raises(RedlockError) as caught:
            client.mutex(name).try_acquire()
        assert "sec" not in str(caught.value) + repr(caught.value) + "".join(caught.value.nodes)


@pytest.mark.parametrize(
    "nodes",
    [[], "", "http://127.0.0.1", "127.0.0.1:6379", "redis://a\0b", ["redis://127.0.0.1"] * 16],
)
def test_nodes_that_make_no_sense(nodes: Any) -> None:
    with pytest.raises(InvalidUse):
        libredlock.Client(nodes)


@pytest.mark.parametrize("ttl", [0.099, 24 * 3600 + 1])
def test_the_limits_of_the_ttl(client: libredlock.Client, name: str, ttl: float) -> None:
    with pytest.raises(InvalidUse, match="ttl"):
        client.mutex(name, ttl=ttl).acquire()


@pytest.mark.parametrize("wrong", ["", "x" * 1025, "a\0b"])
def test_the_limits_of_the_name(client: libredlock.Client, wrong: str) -> None:
    with pytest.raises(InvalidUse):
        client.mutex(wrong).acquire()


def test_errors_are_what_they_are_also_called() -> None:
    assert issubclass(AcquireTimeout, TimeoutError)
    assert issubclass(InvalidUse, ValueError)


@pytest.mark.parametrize("kind", RedlockError.__subclasses__())
def test_errors_can_be_pickled(kind: type[RedlockError]) -> None:
    error = pickle.loads(pickle.dumps(kind("what", ("node 0 (a:1): why",))))
    assert type(error) is kind
    assert str(error) == "what"
    assert error.nodes == ("node 0 (a:1): why",)
