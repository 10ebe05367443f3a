"""The cost script counts each test and each process, and passes pytest's exit code on."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

pytestmark = pytest.mark.slow

TESTS = """
import subprocess, sys, pytest

@pytest.fixture(scope="module")
def made():
    sum(range(3_000_000))

def test_with_a_fixture(made):
    pass

def test_with_a_process(made):
    subprocess.run([sys.executable, "-c", "sum(range(3_000_000))"], check=True)
    assert {holds}
"""


@pytest.mark.parametrize("holds", [True, False])
def test_costs_are_counted_where_they_arise(
    tmp_path: Path, holds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JUDGE_TEST_COSTS", raising=False)  # of a run that this test is part of
    (tmp_path / "test_made.py").write_text(TESTS.replace("{holds}", str(holds)))
    done = subprocess.run(
        [sys.executable, REPOSITORY / "scripts" / "cost-of-tests", "-p", "no:xdist", tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == (0 if holds else 1), done.stderr
    rows = re.findall(r"^ *([\d.]+) +(\d+) +(\d+)  (\S.*)$", done.stdout, re.MULTILINE)
    counted = {name.rpartition("/")[2]: row for *row, name in rows}
    assert counted["test_made.py"][1:] == ["1", "2"]
    # what the fixture took is not the first test's
    seconds = {name: float(row[0]) for name, row in counted.items()}
    assert seconds["test_made.py::<made>"] > seconds["test_made.py::test_with_a_fixture"]
    assert counted["test_made.py::test_with_a_process"][1:] == ["1", "1"]
