"""Bad input: a message that names file and field, and an exit code by class."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.e2e.conftest import Cli

SAMPLE = REPOSITORY / "dataset" / "sample"


@pytest.fixture
def solution() -> dict[str, object]:
    """A record with a solution of the sample suite."""
    first = (SAMPLE / "submissions.jsonl").read_text(encoding="utf-8").splitlines()[0]
    record: dict[str, object] = json.loads(first)
    return record


def write_lines(path: Path, *lines: object) -> Path:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return path


def test_no_such_results(cli: Cli, tmp_path: Path) -> None:
    done = cli("score", tmp_path / "nothing")
    assert done.returncode == 2
    assert "nothing: no such file or folder" in done.stderr


def test_no_suite_named(cli: Cli, tmp_path: Path, solution: dict[str, object]) -> None:
    done = cli("score", write_lines(tmp_path / "s.jsonl", solution), "--out", tmp_path / "run")
    assert done.returncode == 2
    assert "--dataset" in done.stderr


def test_a_missing_suite(cli: Cli, tmp_path: Path, solution: dict[str, object]) -> None:
    solutions = write_lines(tmp_path / "s.jsonl", solution)
    done = cli("score", solutions, "--dataset", tmp_path / "nowhere", "--out", tmp_path / "run")
    assert done.returncode == 3
    assert "nowhere" in done.stderr


def test_an_empty_suite(cli: Cli, tmp_path: Path, solution: dict[str, object]) -> None:
    suite = tmp_path / "suite"
    suite.mkdir()
    (suite / "dataset.json").write_text("[]")
    solutions = write_lines(tmp_path / "s.jsonl", solution)
    done = cli("score", solutions, "--dataset", suite, "--out", tmp_path / "run")
    assert done.returncode == 3
    assert "dataset.json" in done.stderr


def test_an_unknown_id(cli: Cli, tmp_path: Path, solution: dict[str, object]) -> None:
    solutions = write_lines(tmp_path / "s.jsonl", solution, solution | {"id": "nobody"})
    done = cli("score", solutions, "--dataset", "sample", "--out", tmp_path / "run")
    assert done.returncode == 4
    assert "nobody" in done.stderr
    assert "s.jsonl" in done.stderr


def test_the_same_id_twice(cli: Cli, tmp_path: Path, solution: dict[str, object]) -> None:
    solutions = write_lines(tmp_path / "s.jsonl", solution, solution)
    done = cli("score", solutions, "--dataset", "sample", "--out", tmp_path / "run")
    assert done.returncode == 4
    assert "line 2" in done.stderr


def test_not_json_on_a_line(cli: Cli, tmp_path: Path, solution: dict[str, object]) -> None:
    solutions = write_lines(tmp_path / "s.jsonl", solution, '{"id": ')
    done = cli("score", solutions, "--dataset", "sample", "--out", tmp_path / "run")
    assert done.returncode == 4
    assert "line 2" in done.stderr


def test_an_empty_solutions_file(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").touch()
    done = cli("score", tmp_path / "s.jsonl", "--dataset", "sample", "--out", tmp_path / "run")
    assert done.returncode == 4
    assert "empty" in done.stderr


def test_a_foreign_results_directory(cli: Cli, tmp_path: Path, solution: dict[str, object]) -> None:
    run = tmp_path / "run"
    run.mkdir()
    run_json = {
        "schema_version": 1,
        "suite": {"name": "other", "source": "/elsewhere", "digest": "0"},
    }
    (run / "run.json").write_text(json.dumps(run_json))
    solutions = write_lines(tmp_path / "s.jsonl", solution)
    done = cli("score", solutions, "--dataset", "sample", "--out", run)
    assert done.returncode == 9
    assert "belongs to suite 'other'" in done.stderr


def test_another_schema_version(cli: Cli, tmp_path: Path, solution: dict[str, object]) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "run.json").write_text('{"schema_version": 2}')
    solutions = write_lines(tmp_path / "s.jsonl", solution)
    done = cli("score", solutions, "--dataset", "sample", "--out", run)
    assert done.returncode == 9
    assert "schema_version is 2" in done.stderr


@pytest.mark.bubblewrap
def test_a_gold_that_cannot_be_read_is_a_bad_test_and_nothing_else_is_lost(
    cli: Cli, tmp_path: Path, solution: dict[str, object]
) -> None:
    suite = tmp_path / "suite"
    shutil.copytree(SAMPLE, suite)
    gold = suite / "spreadsheet" / str(solution["id"]) / f"2_{solution['id']}_answer.xlsx"
    gold.write_bytes(gold.read_bytes()[:200])
    solutions = write_lines(tmp_path / "s.jsonl", solution)
    done = cli(
        "score", solutions, "--dataset", suite, "--out", tmp_path / "run", "--json",
        "--sandbox", "bubblewrap", "--recalc", "never",
    )  # fmt: skip
    report = json.loads(done.stdout)
    assert report["tasks"][0]["test_case_results"] == ["AC", "BT", "AC"]
    assert report["overall"]["soft_restriction"] == 1.0
    assert report["overall"]["including_excluded"]["soft_restriction"] == pytest.approx(2 / 3)
    assert report["overall"]["excluded"]["BT"][0]["case"] == 2


def test_no_docker_daemon(
    cli: Cli, tmp_path: Path, solution: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    solutions = write_lines(tmp_path / "s.jsonl", solution)
    options = ("--dataset", "sample", "--out", tmp_path / "run", "--sandbox", "docker")
    done = cli("score", solutions, *options)
    assert done.returncode == 5
    assert "docker" in done.stderr.lower()
    assert "hint" in done.stderr


@pytest.mark.parametrize(
    ("option", "value"),
    [("--memory", "lots"), ("--profile", "kind"), ("--cpu", "-1"), ("--limits", "no-such-file")],
)
def test_options_that_make_no_sense(cli: Cli, option: str, value: str) -> None:
    assert cli("score", "x.jsonl", option, value).returncode == 2
