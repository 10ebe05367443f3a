"""Reading a regular file costs what the file holds, not what it might hold."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from judge.errors import StoreError
from judge.files.documents import MIB, read_regular


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
    assert read_regular(path, StoreError, most_bytes=MIB) == b"x" * MIB
    path.write_bytes(b"x" * (MIB + 1))
    with pytest.raises(StoreError, match="longer than 1 MiB"):
        read_regular(path, StoreError, most_bytes=MIB)
