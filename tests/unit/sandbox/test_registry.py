"""A sandbox backend is one file and one line; everything else finds it in the registry."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import judge
from judge.core.option import options_in
from judge.errors import SandboxError
from judge.grading.options import GradingOptions
from judge.sandbox import open_sandbox, probe_sandboxes, select
from judge.sandbox.contract import Backend
from judge.sandbox.select import BACKENDS, SANDBOX_KINDS, Row, buildable_backends
from tests.unit.sandbox.toy_backend import ToySandbox

ROW = Row("tests.unit.sandbox.toy_backend:BACKEND")
COMMAND = """
import sys
from judge.sandbox.contract import Backend
from judge.sandbox.select import BACKENDS, Row
BACKENDS["toy"] = Row("tests.unit.sandbox.toy_backend:BACKEND")
from judge.cli.main import main
main()
"""


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BACKENDS, "toy", ROW)


def command(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.usefixtures("toy")
def test_a_backend_is_opened_and_probed_by_its_row() -> None:
    opened = open_sandbox("toy", jobs=3)
    assert isinstance(opened, ToySandbox)
    assert opened.jobs == 3
    assert "toy" in [finding.backend for finding in probe_sandboxes()]
    assert (
        options_in(GradingOptions)["sandbox"].choices()
        == tuple(SANDBOX_KINDS)
        == ("auto", *BACKENDS)
    )
    assert "toy" not in buildable_backends()  # its row names nothing to build


def test_auto_takes_the_first_that_works_and_names_all_that_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened = []

    class Broken(Row):
        def load(self) -> Backend:
            def refuse(_: int) -> ToySandbox:
                opened.append(self.backend)
                raise SandboxError(f"no {self.backend} here", hint=f"install {self.backend}")

            runs_solutions = self.backend != "services"
            return Backend(self.backend.title(), refuse, list, runs_solutions)

    rows = {name: Broken(name) for name in ("services", "first", "second")}
    monkeypatch.setattr(select, "BACKENDS", rows)
    message = "no sandbox is available. First: no first here. Second: no second here"
    with pytest.raises(SandboxError) as raised:
        open_sandbox("auto")
    assert (raised.value.message, raised.value.hint) == (message, "install second")
    assert opened == ["first", "second", "services"]
    monkeypatch.setattr(select, "BACKENDS", {**rows, "toy": ROW})
    assert isinstance(open_sandbox("auto"), ToySandbox)
    assert opened[3:] == ["first", "second"]


def test_the_command_line_takes_it(tmp_path: Path) -> None:
    suite = judge.load_suite("sample")
    solutions = tmp_path / "solutions.jsonl"
    solutions.write_text(json.dumps({"id": suite.tasks[0].written_id, "solution": "import os\n"}))
    out = tmp_path / "run"
    arguments = ("score", solutions, "--dataset", "sample", "--out", out, "--recalc", "never")
    done = command(*arguments, "--sandbox", "toy", "-q")
    assert done.returncode == 0, done.stderr
    assert json.loads((out / "run.json").read_text())["sandbox"]["backend"] == "toy"
    records = [json.loads(line) for line in (out / "cases.jsonl").read_text().splitlines()]
    assert {record["run"]["status"] for record in records} == {"ok"}
    assert "WA" in {record["verdict"] for record in records}
