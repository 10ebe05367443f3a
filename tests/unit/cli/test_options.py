from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from judge.cli.options import parse_bytes, read_limits
from judge.core.limits import MIB, Limits
from judge.core.option import split_ids
from judge.errors import UsageError


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("512MiB", 512 * MIB),
        ("512m", 512 * MIB),
        (" 2 GiB ", 2048 * MIB),
        ("1.5k", 1536),
        ("1000000", 1_000_000),
        ("3MB", 3_000_000),
    ],
)
def test_amounts_of_bytes(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "lots", "-1", "1 XB", "1e3", "0x10"])
def test_what_is_not_an_amount_of_bytes(text: str) -> None:
    with pytest.raises(UsageError, match="not an amount of bytes"):
        parse_bytes(text)


def test_options_win_over_the_file_and_the_file_over_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "limits.yaml"
    path.write_text("limits:\n  cpu_s: 10\n  memory: 1GiB\n  processes: 8\n")
    options: dict[str, Any] = {"limits_file": path, "cpu_s": 5.0, "wall_s": None, "other": 1}
    limits = read_limits(options)
    assert limits == Limits(cpu_s=5.0, memory_bytes=1024 * MIB, processes=8)
    assert options == {"other": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("speed: 3", "unknown limit speed; known: cpu_s, wall_s, memory, processes, output_size"),
        ("memery: 3", "Did you mean memory"),
        ("cpu_s: fast", "cpu_s must be a number above 0"),
        ("cpu_s: -1", "cpu_s must be a number above 0"),
        ("cpu_s: true", "cpu_s must be a number above 0"),
        ("memory: lots", "not an amount of bytes"),
        ("- 1", "expected fields"),
        ("a: [", "not YAML"),
    ],
)
def test_a_faulty_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "limits.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        read_limits({"limits_file": path})


def test_ids_are_split_at_commas_and_may_be_repeated() -> None:
    assert split_ids(("a,b", " c ", "")) == ("a", "b", "c")
