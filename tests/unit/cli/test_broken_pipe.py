"""Whoever reads our output may stop reading: ``judge … | head`` is no failure."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.compare.packages import simple

LAUNCH = (sys.executable, "-c", "from judge.cli.main import main; main()")


@pytest.mark.parametrize("command", ["--help", "dataset list", "dataset list sample", "compare"])
def test_a_reader_that_has_gone_is_no_failure(command: str, tmp_path: Path) -> None:
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
    assert (done.returncode, done.stderr) == (0, "")
