"""Reading a regular file costs as much as its content, not as much as its limit."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path

import pytest

from judge.errors import StoreError
from judge.files.documents import MIB, has_more_values, read_kept, read_regular
from tests.bounds import in_bounds


def test_a_small_file_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(b"{}")
    tracemalloc.start()
    try:
        assert read_regular(path, StoreError) == b"{}"
        assert tracemalloc.get_traced_memory()[1] < MIB
    finally:
        tracemalloc.stop()


def test_a_file_without_a_size_of_its_own_is_read_whole() -> None:
    path = Path("/proc/self/status")
    assert path.stat().st_size == 0
    data = read_regular(path, StoreError)
    assert data is not None
    assert data.startswith(b"Name:")
    assert data.endswith(b"\n")


@pytest.mark.parametrize("start", [0, 3, 10, 12])
def test_a_start_is_left_out(tmp_path: Path, start: int) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"0123456789")
    assert read_regular(path, StoreError, start=start) == b"0123456789"[start:]


def test_a_file_as_long_as_it_may_be_is_read_and_a_longer_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"x" * MIB)
    assert read_regular(path, StoreError, max_bytes=MIB) == b"x" * MIB
    path.write_bytes(b"x" * (MIB + 1))
    with pytest.raises(StoreError, match="longer than 1 MiB"):
        read_regular(path, StoreError, max_bytes=MIB)


@pytest.mark.parametrize(
    "kind", ["nothing", "deep", "a number", "link", "device", "fifo", "folder", "long", "no text"]
)
def test_an_entry_of_a_cache_that_is_none_is_missing(kind: str, tmp_path: Path) -> None:
    """Someone else may have created the file: it is made again, and nothing waits for it."""
    path = tmp_path / "entry.json"
    match kind:
        case "deep":
            path.write_text("[" * 100_000)
        case "a number":
            path.write_text("9" * 10_000)
        case "link":
            (tmp_path / "other.json").write_text("{}")
            path.symlink_to(tmp_path / "other.json")
        case "device":
            path.symlink_to("/dev/zero")
        case "fifo":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "long":
            path.write_text(json.dumps("x" * 100))
        case "no text":
            path.write_bytes(b"\xff\xfe{}")
    assert read_kept(path, max_bytes=50 if kind == "long" else 1 << 20) is None


def test_an_entry_of_a_cache(tmp_path: Path) -> None:
    path = tmp_path / "entry.json"
    path.write_text('{"a": [1]}')
    assert read_kept(path) == {"a": [1]}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("0", 0),
        ("[]", 1),
        ("[0,0,0]", 3),
        ('{"a": [1, {"b": 2}]}', 4),
        ('["a,b[{", "\\"[,", "c"]', 3),
        ('["\\\\", ",,,,,,,,"]', 2),
        ('["never closed, [[[[[[', 1),
    ],
)
def test_values_are_counted_without_those_that_texts_seem_to_have(text: str, values: int) -> None:
    """As many values as there are brackets and commas: arrays, objects, and each further value."""
    assert has_more_values(text, values) is False
    assert values == 0 or has_more_values(text, values - 1)


def test_counting_takes_time_by_the_length_alone() -> None:
    """Neither escaped quotes nor unterminated strings are read more than once."""
    texts = [
        '"' + "\\n" * 5_000_000,
        '\\"' * 5_000_000,
        '["' + '\\\\\\"' * 3_000_000,
        '"",' * 3_000_000,
    ]

    def work() -> None:
        for text in texts:
            has_more_values(text + "[" * 100, 100_000_000)
            has_more_values(text + "[" * 100, 90)

    assert in_bounds(work, cpu_s=60, memory_bytes=400_000_000) == 0
