"""Bad input: a message that names file and field, and an exit code for each kind of error."""

from __future__ import annotations

import json
import os
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


def test_no_suite_named(here: Cli, tmp_path: Path, solution: dict[str, object]) -> None:
    done = here("score", write_lines(tmp_path / "s.jsonl", solution), "--out", tmp_path / "run")
    assert done.returncode == 2
    assert "--dataset" in done.stderr


def test_a_missing_suite(here: Cli, tmp_path: Path, solution: dict[str, object]) -> None:
    solutions = write_lines(tmp_path / "s.jsonl", solution)
    done = here("score", solutions, "--dataset", tmp_path / "nowhere", "--out", tmp_path / "run")
    assert done.returncode == 3
    assert "nowhere" in done.stderr


def test_an_empty_suite(here: Cli, tmp_path: Path, solution: dict[str, object]) -> None:
    suite = tmp_path / "suite"
    suite.mkdir()
    (suite / "dataset.json").write_text("[]")
    solutions = write_lines(tmp_path / "s.jsonl", solution)
    done = here("score", solutions, "--dataset", suite, "--out", tmp_path / "run")
    assert done.returncode == 3
    assert "dataset.json" in done.stderr


def test_an_unknown_id(here: Cli, tmp_path: Path, solution: dict[str, object]) -> None:
    solutions = write_lines(tmp_path / "s.jsonl", solution, solution | {"id": "nobody"})
    done = here("score", solutions, "--dataset", "sample", "--out", tmp_path / "run")
    assert done.returncode == 4
    assert "nobody" in done.stderr
    assert "s.jsonl" in done.stderr


def test_the_same_id_twice(here: Cli, tmp_path: Path, solution: dict[str, object]) -> None:
    solutions = write_lines(tmp_path / "s.jsonl", solution, solution)
    done = here("score", solutions, "--dataset", "sample", "--out", tmp_path / "run")
    assert done.returncode == 4
    assert "line 2" in done.stderr


def test_not_json_on_a_line(here: Cli, tmp_path: Path, solution: dict[str, object]) -> None:
    solutions = write_lines(tmp_path / "s.jsonl", solution, '{"id": ')
    done = here("score", solutions, "--dataset", "sample", "--out", tmp_path / "run")
    assert done.returncode == 4
    assert "line 2" in done.stderr


def test_an_empty_solutions_file(here: Cli, tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").touch()
    done = here("score", tmp_path / "s.jsonl", "--dataset", "sample", "--out", tmp_path / "run")
    assert done.returncode == 4
    assert "empty" in done.stderr


def test_a_foreign_results_directory(
    here: Cli, tmp_path: Path, solution: dict[str, object]
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    run_json = {
        "schema_version": 1,
        "suite": {"name": "other", "source": "/elsewhere", "digest": "0"},
    }
    (run / "run.json").write_text(json.dumps(run_json))
    solutions = write_lines(tmp_path / "s.jsonl", solution)
    done = here("score", solutions, "--dataset", "sample", "--out", run)
    assert done.returncode == 9
    assert "belongs to suite 'other'" in done.stderr


def test_another_schema_version(here: Cli, tmp_path: Path, solution: dict[str, object]) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "run.json").write_text('{"schema_version": 2}')
    solutions = write_lines(tmp_path / "s.jsonl", solution)
    done = here("score", solutions, "--dataset", "sample", "--out", run)
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
    assert done.returncode == 3
    assert gold.name in done.stderr
    report = json.loads(done.stdout)
    assert report["tasks"][0]["test_case_results"] == ["AC", "BT", "AC"]
    assert report["overall"]["soft_restriction"] == 1.0
    assert report["overall"]["including_excluded"]["soft_restriction"] == pytest.approx(2 / 3)
    assert report["overall"]["excluded"]["BT"][0]["case"] == 2


@pytest.mark.bubblewrap
def test_an_input_that_cannot_be_read_is_not_the_solutions_fault(
    cli: Cli, tmp_path: Path, solution: dict[str, object]
) -> None:
    suite = tmp_path / "suite"
    shutil.copytree(SAMPLE, suite)
    broken = suite / "spreadsheet" / str(solution["id"]) / f"3_{solution['id']}_input.xlsx"
    broken.write_bytes(b"junk")
    solutions = write_lines(tmp_path / "s.jsonl", solution)
    options = ("--dataset", suite, "--out", tmp_path / "run", "--json", "--recalc", "never")
    done = cli("score", solutions, *options, "--sandbox", "bubblewrap")
    assert done.returncode == 3
    assert broken.name in done.stderr
    assert json.loads(done.stdout)["tasks"][0]["test_case_results"] == ["AC", "AC", "BT"]


@pytest.mark.bubblewrap
def test_a_report_contains_no_results_of_other_code(
    cli: Cli, tmp_path: Path, solution: dict[str, object]
) -> None:
    lines = (SAMPLE / "submissions.jsonl").read_text(encoding="utf-8").splitlines()
    right = {str(each["id"]): each for each in map(json.loads, lines) if not each.get("sample")}
    records = list(right.values())[:3]
    solutions = write_lines(tmp_path / "s.jsonl", *records)
    options = (
        "--dataset",
        "sample",
        "--out",
        tmp_path / "run",
        "--json",
        "--sandbox",
        "bubblewrap",
    )
    first = json.loads(cli("score", solutions, *options).stdout)
    assert first["overall"]["soft_restriction"] == 1.0
    write_lines(solutions, *(each | {"solution": "raise SystemExit(3)"} for each in records))
    second = cli("score", solutions, *options, "--limit", "1")
    report = json.loads(second.stdout)
    assert [task["test_case_results"] for task in report["tasks"]] == [["RE"] * 3]

    other = write_lines(tmp_path / "other.jsonl", solution)
    refused = cli("score", other, *options)
    assert refused.returncode == 9
    assert "holds the results of" in refused.stderr


def test_one_run_that_cannot_be_scored_does_not_stop_the_others(cli: Cli, tmp_path: Path) -> None:
    outputs = tmp_path / "outputs"
    outputs.mkdir()
    for gold in (SAMPLE / "spreadsheet" / "1001").glob("*_answer.xlsx"):
        (outputs / gold.name.replace("_answer", "_output")).write_bytes(gold.read_bytes())
    (outputs / "2_1001_output.xlsx").unlink()
    os.mkfifo(outputs / "2_1001_output.xlsx")
    runs = tmp_path / "runs"
    options = ("--recalc", "never", "--json")
    done = cli("score", outputs, "--dataset", "sample", "--out", runs / "b", *options)
    assert json.loads(done.stdout)["tasks"][0]["test_case_results"] == ["AC", "IW", "AC"]
    (runs / "a").mkdir()
    (runs / "a" / "run.json").write_text('{"schema_version": 2}')
    done = cli("score", runs, *options)
    assert done.returncode == 9
    assert "schema_version is 2" in done.stderr
    assert json.loads(done.stdout)["tasks"][0]["test_case_results"] == ["AC", "IW", "AC"]


def test_a_path_at_which_no_file_can_be(
    here: Cli, tmp_path: Path, solution: dict[str, object]
) -> None:
    solutions = write_lines(tmp_path / "s.jsonl", solution | {"output_path": "/etc/passwd"})
    done = here("score", solutions, "--dataset", "sample", "--out", tmp_path / "run")
    assert done.returncode == 4
    assert "line 1" in done.stderr
    assert "output_path" in done.stderr


@pytest.mark.bubblewrap
def test_a_program_cannot_leave_the_score_by_naming_a_path_of_the_system(
    cli: Cli, tmp_path: Path, solution: dict[str, object]
) -> None:
    dodge = f'raise ValueError("/etc/1_{solution["id"]}_output.xlsx")'
    solutions = write_lines(tmp_path / "s.jsonl", solution | {"solution": dodge, "expected": "RE"})
    options = ("--dataset", "sample", "--out", tmp_path / "run", "--sandbox", "bubblewrap")
    done = cli("score", solutions, *options, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["tasks"][0]["test_case_results"] == ["RE", "RE", "RE"]


def test_a_style_that_does_not_exist(here: Cli, tmp_path: Path) -> None:
    options = ("--dataset", "sample", "--out", tmp_path / "run", "--style", "nonsense")
    done = here("score", SAMPLE / "submissions.jsonl", *options)
    assert done.returncode == 2
    assert "nonsense" in done.stderr


def test_no_docker_daemon(
    here: Cli, tmp_path: Path, solution: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    solutions = write_lines(tmp_path / "s.jsonl", solution)
    options = ("--dataset", "sample", "--out", tmp_path / "run", "--sandbox", "docker")
    done = here("score", solutions, *options)
    assert done.returncode == 5
    assert "docker" in done.stderr.lower()
    assert "hint" in done.stderr


@pytest.mark.parametrize(
    ("option", "value"),
    [("--memory", "lots"), ("--profile", "kind"), ("--cpu", "-1"), ("--limits", "no-such-file")],
)
def test_options_that_make_no_sense(here: Cli, option: str, value: str) -> None:
    assert here("score", "x.jsonl", option, value).returncode == 2
