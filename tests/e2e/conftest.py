"""Fixtures that run the command as a user does: a separate process with exit code and output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judge.annotate.archive import locked
from judge.cli.main import main
from judge.errors import JudgeError
from judge.sandbox import open_sandbox
from tests.conftest import REPOSITORY
from tests.forked_command import ForkedCommand

Cli = Callable[..., subprocess.CompletedProcess[str]]
Once = Callable[[str, Callable[[Path], None]], Path]

SHORT = ("--cpu", "2", "--wall", "8", "--memory", "512MiB")
COMMAND = (sys.executable, "-c", "from judge.cli.main import main; main()")


@pytest.fixture(scope="session")
def cli(forked_command: ForkedCommand) -> Cli:
    """Runs ``judge`` with arguments and returns its exit code and output."""

    def run(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return forked_command.run([*map(str, arguments)], cwd=cwd)

    return run


@pytest.fixture
def here(capfd: pytest.CaptureFixture[str]) -> Cli:
    """Like ``cli``, but within this process: enough for what the command refuses at its start."""

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        capfd.readouterr()
        with pytest.raises(SystemExit) as ending:
            main([*map(str, arguments)])
        stdout, stderr = capfd.readouterr()
        assert isinstance(ending.value.code, int)
        return subprocess.CompletedProcess(
            [*map(str, arguments)], ending.value.code, stdout, stderr
        )

    return run


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """``once(name, make)``: a folder that is made once for all workers; others wait for it."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent

    def get(name: str, make: Callable[[Path], None]) -> Path:
        with locked(folder / f"{name}.lock"):
            if not (folder / name).exists():
                unfinished = Path(tempfile.mkdtemp(prefix=name, dir=folder))
                make(unfinished)
                unfinished.rename(folder / name)
        return folder / name

    return get


@pytest.fixture(scope="session")
def sample_run(cli: Cli, once: Once) -> Callable[[str], Path]:
    """``sample_run(suite)``: a run of all programs of a sample in bubblewrap; tests only read it.

    What the command printed is in ``stdout.txt`` beside the run.
    """

    def get(suite: str) -> Path:
        require_backend("bubblewrap")
        solutions = REPOSITORY / "dataset" / suite / "submissions.jsonl"

        def score(folder: Path) -> None:
            options = ("--dataset", suite, "--out", folder / "run", "--sandbox", "bubblewrap")
            done = cli("score", solutions, *options, "--jobs", 2, *SHORT)
            assert done.returncode == 0, done.stdout + done.stderr
            (folder / "stdout.txt").write_text(done.stdout, encoding="utf-8")

        return once(suite, score) / "run"

    return get


@pytest.fixture(
    scope="session",
    params=[
        pytest.param("docker", marks=pytest.mark.docker),
        pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
    ],
)
def backend(request: pytest.FixtureRequest) -> str:
    """The name of each sandbox backend; skips the test if the machine does not have it."""
    name: str = request.param
    require_backend(name)
    return name


def require_backend(name: str) -> None:
    """Skips the test if the machine does not have the backend."""
    try:
        open_sandbox(name, jobs=1).close()
    except JudgeError as error:
        pytest.skip(f"no {name} here: {error.message}")


def verdicts_of(report: dict[str, Any]) -> dict[tuple[str, int], list[str | None]]:
    """Maps (task id, sample) to verdict codes in the order of cases."""
    return {
        (str(task["id"]), task["sample"]): task["test_case_results"] for task in report["tasks"]
    }


def read_report(run: Path) -> dict[str, Any]:
    """Returns the report.json of a run."""
    report: dict[str, Any] = json.loads((run / "report.json").read_text())
    return report
