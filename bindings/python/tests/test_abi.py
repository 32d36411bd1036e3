"""The ctypes side of redlock.h against what a C compiler makes of it."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from libredlock import Status, __version__, _abi, _ffi, errors

ROOT = Path(__file__).resolve().parents[3]
HEADER = ROOT / "capi" / "redlock.h"

STRUCTS: dict[str, type[ctypes.Structure]] = {
    "redlock_error": _abi.CError,
    "redlock_options": _abi.COptions,
    "redlock_request": _abi.CRequest,
    "redlock_operation": _abi.COperation,
    "redlock_holder": _abi.CHolder,
    "redlock_inspection": _abi.CInspection,
    "redlock_event": _abi.CEvent,
}


def compile_and_run(body: str, folder: Path) -> str:
    compiler = shutil.which("cc")
    assert compiler, "the tests need a C compiler"
    source, program = folder / "probe.c", folder / "probe"
    source.write_text(f'#include "{HEADER}"\n#include <stdio.h>\nint main(void) {{\n{body}}}\n')
    subprocess.run([compiler, "-o", program, source], check=True)
    return subprocess.run([program], check=True, capture_output=True, text=True).stdout


def test_structs_are_laid_out_as_in_c(tmp_path: Path) -> None:
    body, ours = "", []
    for name, struct in STRUCTS.items():
        body += f'printf("{name} %zu\\n", sizeof({name}));\n'
        ours.append(f"{name} {ctypes.sizeof(struct)}")
        for field in struct._fields_:
            member = f"{name}.{field[0]}"
            body += (
                f'printf("{member} %zu %zu\\n", offsetof({name}, {field[0]}),'
                f" sizeof((({name} *)0)->{field[0]}));\n"
            )
            descriptor = getattr(struct, field[0])
            ours.append(f"{member} {descriptor.offset} {descriptor.size}")
    assert compile_and_run(body, tmp_path).splitlines() == ours


def test_the_structs_have_no_other_fields() -> None:
    header = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.DOTALL)
    for name, struct in STRUCTS.items():
        match = re.search(rf"typedef struct {name} {{(.*?)}} {name};", header, re.DOTALL)
        assert match, name
        members = re.findall(r"(\w+)(?:\[\d+\])?;", match[1])
        assert members == [field[0] for field in struct._fields_], name


def test_the_long_error_begins_as_the_error() -> None:
    for field in ("size", "status", "node", "message"):
        assert getattr(_abi.LongError, field).offset == getattr(_abi.CError, field).offset


def test_an_event_is_unpacked_as_it_is_laid_out() -> None:
    event = _abi.CEvent(
        id=1, held=2, fence=2**64 - 1, remaining_ms=-4, kind=5, status=6, node=-1, slot=8
    )
    assert _ffi._EVENT.unpack_from(event) == (1, 2, 2**64 - 1, -4, 5, 6, -1, 8)
    assert _ffi._EVENT.size == ctypes.sizeof(_abi.CEvent)


def test_an_operation_is_packed_as_it_is_laid_out() -> None:
    request = _ffi.Request(b"name")
    acquire = _abi.COperation.from_buffer_copy(request.operation)
    assert ctypes.addressof(acquire.request.contents) == ctypes.addressof(request._struct)
    assert (acquire.held, acquire.ttl_ms, acquire.kind) == (0, 0, _ffi.SUBMIT_ACQUIRE)
    renew = _abi.COperation.from_buffer_copy(_ffi.renewal(2**64 - 1, -3))
    assert (renew.held, renew.ttl_ms, renew.kind) == (2**64 - 1, -3, _ffi.SUBMIT_RENEW)
    release = _abi.COperation.from_buffer_copy(_ffi.ending(2**63))
    assert (release.held, release.kind, release.reserved) == (2**63, _ffi.SUBMIT_RELEASE, 0)


def test_constants_are_those_of_c(tmp_path: Path) -> None:
    ours = {f"REDLOCK_{status.name}": int(status) for status in Status}
    ours |= {
        "REDLOCK_EVENT_DONE": _ffi.EVENT_DONE,
        "REDLOCK_EVENT_LOST": _ffi.EVENT_LOST,
        "REDLOCK_EVENT_HEALTH": _ffi.EVENT_HEALTH,
        "REDLOCK_SUBMIT_ACQUIRE": _ffi.SUBMIT_ACQUIRE,
        "REDLOCK_SUBMIT_RENEW": _ffi.SUBMIT_RENEW,
        "REDLOCK_SUBMIT_RELEASE": _ffi.SUBMIT_RELEASE,
        "REDLOCK_MAX_OPERATIONS": _ffi.MAX_OPERATIONS,
        "REDLOCK_MUTEX": _ffi.MUTEX,
        "REDLOCK_SEMAPHORE": _ffi.SEMAPHORE,
        "REDLOCK_DEFAULT": 0,
        "REDLOCK_ON": 1,
        "REDLOCK_OFF": 2,
    }
    body = "".join(f'printf("%d\\n", (int){name});\n' for name in ours)
    theirs = [int(line) for line in compile_and_run(body, tmp_path).splitlines()]
    assert theirs == list(ours.values())


def test_every_status_but_ok_and_held_has_its_error() -> None:
    for status in set(Status) - {Status.OK, Status.HELD}:
        error = errors.from_status(status, "what\nnode 0 (a:1): why\nnode 2 (b:1): how")
        assert error.status is status
        assert error.nodes == ("node 0 (a:1): why", "node 2 (b:1): how")
        assert str(error).startswith("what\n")


def test_every_function_of_the_header_is_declared() -> None:
    header = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.DOTALL)
    functions = re.findall(r"^[^#\n]*?\b(redlock_\w+)\([^)]*\);", header, re.MULTILINE)
    assert sorted(_abi._PROTOTYPES) == sorted(functions)


def test_the_version_is_the_same_everywhere() -> None:
    pyproject = (ROOT / "bindings/python/pyproject.toml").read_text()
    assert f'\nversion = "{__version__}"\n' in pyproject
    assert f'#define REDLOCK_VERSION "{__version__}"' in HEADER.read_text()
    assert _abi.library().redlock_version().decode() == __version__


def test_the_names_of_statuses_are_those_of_c() -> None:
    library = _abi.library()
    assert [library.redlock_status_name(s).decode() for s in Status] == [s.name for s in Status]


def test_a_missing_library_is_told_with_the_places(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("REDLOCK_LIBRARY", str(tmp_path / "nowhere.so"))
    _abi.library.cache_clear()
    try:
        with pytest.raises(ImportError, match=r"nowhere\.so"):
            _abi.library()
    finally:
        _abi.library.cache_clear()
