"""A wheel, installed in a separate environment, and evaluations with it in an empty folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY
from tests.unit.report.runs import CELL, SHEET, TABLE, TaskSpec, book, make_suite

SECRET, NUMBER = "Zanzibar-Quartz-7731", 864209753186.5
"""Values that no log may contain; shorter numbers occur by chance in the digits of times."""
GOLD = book((*TABLE[:2], ("Bob", SECRET), ("Cyd", NUMBER)))
EXPECTED = {
    "1001": ("reads-24-rows-only", ["AC", "WA", "WA"]),
    "1002": ("no-such-sheet", ["RE", "RE", "RE"]),
    "1003": ("saves-elsewhere", ["NO", "NO", "NO"]),
    "1005": ("unclosed-bracket", ["CE", "CE", "CE"]),
}
"""Submissions of the sample suite, and their expected outcomes."""


@dataclass(frozen=True)
class Evaluated:
    """The files that the evaluations left.

    Attributes:
        bin: the programs of the environment.
        folder: where they were called.
        environment: of their processes.
        suite: the suite of the scripted evaluation.
        seen: what the process saw.
    """

    bin: Path
    folder: Path
    environment: dict[str, str]
    suite: Path
    seen: dict[str, Any]

    def log(self, name: str) -> Path:
        """Reads the log of an evaluation."""
        return Path(self.seen[name])

    def call(self, *command: object) -> str:
        """Runs a program of the environment; returns its standard output."""
        name, *arguments = map(str, command)
        done = subprocess.run(
            [self.bin / name, *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Evaluated:
    folder = tmp_path_factory.mktemp("inspected")
    empty = folder / "empty"
    empty.mkdir()
    tasks = [
        TaskSpec(name, kind=SHEET if name == "wrong" else CELL, gold=GOLD)
        for name in ("right", "wrong", "lost", "bad", "words", "silent")
    ]
    make_suite(folder / "suite", tasks)
    for broken in (folder / "suite" / "spreadsheet" / "bad").glob("*_answer.xlsx"):
        broken.write_bytes(b"no workbook")
    (folder / "replies.json").write_text(json.dumps(_replies()))
    environment = {
        **os.environ,
        "JUDGE_WITHOUT_GRID": "1",
        **{f"XDG_{name}_HOME": str(folder / name) for name in ("STATE", "DATA", "CACHE")},
        "JUDGE_CACHE": os.environ.get("JUDGE_CACHE", str(Path.home() / ".cache" / "judge")),
    }
    programs = _installed_wheel(folder, environment)
    made = Evaluated(programs, empty, environment, folder / "suite", {})
    program = Path(__file__).with_name("program.py")
    made.call("python", program, folder / "suite", folder / "replies.json")
    made.seen.update(json.loads((empty / "seen.json").read_text()))
    return made


def _replies() -> dict[str, str]:
    lines = (
        (REPOSITORY / "dataset" / "sample" / "submissions.jsonl").read_text("utf-8").splitlines()
    )
    records = [json.loads(line) for line in lines]
    return {
        str(each["id"]): each["solution"]
        for each in records
        if EXPECTED.get(str(each["id"]), ("",))[0] == each.get("label")
    }


def _installed_wheel(folder: Path, environment: dict[str, str]) -> Path:
    """The programs of an environment with the wheel; dependencies come from this environment."""
    run = [sys.executable, "-m"]
    subprocess.run(
        [*run, "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")],
        cwd=REPOSITORY,
        env=environment,
        check=True,
        capture_output=True,
    )
    (wheel,) = (folder / "dist").glob("*.whl")
    venv.create(folder / "venv", symlinks=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / "venv" / "lib" / version / "site-packages"
    python = folder / "venv" / "bin" / "python"
    subprocess.run(
        [
            *run,
            "pip",
            "--python",
            str(python),
            "install",
            "--no-deps",
            "--no-index",
            "--no-compile",
            str(wheel),
        ],
        env=environment,
        check=True,
        capture_output=True,
    )
    # A line of a .pth file is a folder to import from, whose own .pth files do not count: this
    # checkout, which is installed there, stays out.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    inspect = folder / "venv" / "bin" / "inspect"
    inspect.write_text(f"#!{python}\nfrom inspect_ai._cli.main import main\nmain()\n")
    inspect.chmod(0o755)
    return python.parent
