"""Lines are appended as a whole, and an incomplete one is not a record."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from judge.errors import JudgeError, StoreError, SuiteError
from judge.files.documents import MIB
from judge.files.json_lines import GrowingLines, LineAppender, read_json_lines


@contextlib.contextmanager
def appending(path: Path, *, durable: bool = False) -> Iterator[LineAppender]:
    with contextlib.closing(LineAppender(path, durable=durable)) as appender:
        yield appender


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize(
    ("before", "kept"),
    [
        (b"", b""),
        (b"torn", b""),
        (b"one\n", b"one\n"),
        (b"one\ntwo\ntorn", b"one\ntwo\n"),
        pytest.param(b"one\n" + b"x" * (2 * MIB + 1), b"one\n", id="longer-than-a-piece"),
        pytest.param(b"x" * (MIB - 1) + b"\n" + b"y" * MIB, b"x" * (MIB - 1) + b"\n", id="edge"),
    ],
)
def test_a_torn_line_is_cut_off(tmp_path: Path, before: bytes, kept: bytes, durable: bool) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(before)
    with appending(path, durable=durable) as appender:
        appender.append(b"new")
        appender.append(b"newer")
    assert path.read_bytes() == kept + b"new\nnewer\n"


def test_a_line_that_is_not_taken_in_whole_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with appending(path) as appender:
        appender.append(b"one")
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
        try:
            with pytest.raises(OSError, match="File too large"):
                appender.append(b"a line of more than six bytes")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert path.read_bytes() == b"one\n"
        appender.append(b"two")
    assert path.read_bytes() == b"one\ntwo\n"


def test_a_durable_line_is_on_the_disk_with_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []

    def note(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))

    monkeypatch.setattr(os, "fsync", note)
    path = tmp_path / "x.jsonl"
    for _ in range(2):
        with appending(path, durable=True) as appender:
            appender.append(b"line")
    assert synced == [str(path), str(tmp_path), str(path)]


def test_what_grows_is_given_once(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    lines = GrowingLines(path)
    assert lines.read(StoreError) == ([], False)
    path.write_bytes(b"one\n\ntwo\nthr")
    assert lines.read(StoreError) == ([b"one", b"", b"two"], False)
    assert lines.read(StoreError) == ([], False)
    path.write_bytes(b"one\n\ntwo\nthree\n")
    assert lines.read(StoreError) == ([b"three"], False)
    path.write_bytes(b"new\n")
    assert lines.read(StoreError) == ([b"new"], True)
    path.unlink()
    assert lines.read(StoreError) == ([], False)


@pytest.mark.parametrize(
    ("error", "hint"), [(StoreError, "Remove the line and run"), (SuiteError, "Correct the line")]
)
def test_only_a_record_of_the_judge_is_to_be_removed(
    tmp_path: Path, error: type[JudgeError], hint: str
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": 1}\nnot JSON\n')
    with pytest.raises(error, match=r"a\.jsonl, line 2: ") as caught:
        list(read_json_lines(path, error))
    assert (caught.value.hint or "").startswith((hint, f"It was not written by the judge. {hint}"))
