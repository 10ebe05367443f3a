"""The reader of our output may stop reading, or may never have started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.compare.cells.packages import simple

pytestmark = pytest.mark.slow

LAUNCH = (sys.executable, "-c", "from judge.cli.main import main; main()")


@pytest.mark.parametrize("command", ["--help", "dataset list", "dataset list sample", "compare"])
def test_a_reader_that_has_gone_ends_a_command_quietly(command: str, tmp_path: Path) -> None:
    arguments = command.split()
    if command == "compare":
        for name in ("gold", "output"):
            (tmp_path / f"{name}.xlsx").write_bytes(simple({"A1": 1}))
        arguments += [str(tmp_path / "gold.xlsx"), str(tmp_path / "output.xlsx"), "--at", "A1"]
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [*LAUNCH, *arguments], stdout=writing, stderr=subprocess.PIPE, text=True, check=False
        )
    finally:
        os.close(writing)
    # As the shell sees any program that SIGPIPE ends. 0 would say that the workbooks are equal.
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("arguments", [["dataset", "list", "nothing-of-that-name"], ["nonsense"]])
def test_a_reader_of_errors_that_has_gone(arguments: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [*LAUNCH, *arguments], stdout=subprocess.PIPE, stderr=writing, check=False
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stdout) == (141, b"")


@pytest.mark.parametrize("closed", [(1,), (2,), (0, 1, 2)])
@pytest.mark.parametrize(("output", "code"), [({"A1": 1}, 0), ({"A1": 2}, 1)])
def test_output_that_was_closed_is_dropped(
    closed: tuple[int, ...], output: dict[str, object], code: int, tmp_path: Path
) -> None:
    """As with ``cmp``, ``>&-`` requests only the exit code."""
    (tmp_path / "gold.xlsx").write_bytes(simple({"A1": 1}))
    (tmp_path / "output.xlsx").write_bytes(simple(output))
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    done = subprocess.run(
        [*LAUNCH, "compare", str(tmp_path / "gold.xlsx"), str(tmp_path / "output.xlsx"), "--at=A1"],
        capture_output=True,
        preexec_fn=lambda: [os.close(each) for each in closed],  # type: ignore[func-returns-value]
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert b"Traceback" not in done.stderr
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_output_that_finds_no_room() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*LAUNCH, "dataset", "list", "sample"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, "error: No space left on device\n")
