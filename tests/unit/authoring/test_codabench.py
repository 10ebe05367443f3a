"""Bundles for Codabench: what its importer requires, and the scores of ``judge score``."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from judge.authoring.platforms import export_codabench
from judge.cli.dataset_authoring import export
from judge.errors import UsageError
from judge.suites import load_suite

SAMPLES = Path(__file__).parents[3] / "dataset"
RULES = {"Add", "Add_And_Delete", "Add_And_Delete_Multiple", "Force_Last", "Force_Latest_Multiple"}


def bundle(name: str, tmp_path: Path) -> Path:
    """The unpacked bundle of a sample suite."""
    target = tmp_path / "bundle.zip"
    export_codabench(load_suite(SAMPLES / name), "example/verifier:1", target, licence="MIT")
    with zipfile.ZipFile(target) as archive:
        archive.extractall(tmp_path / "bundle")
    return tmp_path / "bundle"


def test_what_the_importer_asks_for_is_there(tmp_path: Path) -> None:
    folder = bundle("sample", tmp_path)
    document: dict[str, Any] = yaml.safe_load((folder / "competition.yaml").read_text())
    for field in ("title", "image", "terms", "pages", "tasks", "phases", "leaderboards"):
        assert document[field], field
    for name in (document["image"], document["terms"], *(x["file"] for x in document["pages"])):
        assert (folder / name).stat().st_size
    (task,), (phase,), (board,) = (document[x] for x in ("tasks", "phases", "leaderboards"))
    assert phase["tasks"] == [task["index"]]
    assert phase["start"] == "2020-01-01 00:00:00"  # as text, which YAML makes no date of
    assert board["submission_rule"] in RULES | {"Force_Best"}
    assert [(column["key"], column["index"]) for column in board["columns"]] == [
        ("hard", 0),
        ("soft", 1),
    ]
    assert not document["make_programs_available"]
    assert not document["make_input_data_available"]
    assert phase["hide_score_output"]
    for part in (task["reference_data"], task["scoring_program"], phase["public_data"]):
        assert (folder / part).is_dir()
    command = yaml.safe_load((folder / "scoring_program/metadata.yaml").read_text())["command"]
    assert command.split()[:2] == ["python3", "/app/program/scoring.py"]


def test_contestants_get_inputs_and_no_gold(tmp_path: Path) -> None:
    folder = bundle("sample", tmp_path)
    golds = {case.gold_path.read_bytes() for task in load_suite(SAMPLES / "sample").tasks
             for case in task.cases}  # fmt: skip
    public = [path for path in (folder / "public_data").rglob("*") if path.is_file()]
    assert sum(path.suffix == ".xlsx" for path in public) == 42
    assert not any(path.read_bytes() in golds for path in public)


def test_the_same_suite_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one.zip", "two.zip"):
        export_codabench(load_suite(SAMPLES / "sample-typed"), "image", tmp_path / name)
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


def scored_by_bundle(folder: Path, submission: Path, out: Path) -> dict[str, float]:
    """Returns the scores of the scoring program, given the folders that the worker makes."""
    scoring = folder / "scoring_program" / "scoring.py"
    place = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(
        [
            sys.executable,
            str(scoring),
            *map(str, (folder / "reference_data", submission, out)),
            "auto",
        ],
        check=True,
        cwd=folder / "scoring_program",
        env={**os.environ, "PATH": place},
    )
    assert "<table>" in (out / "detailed_results.html").read_text()
    scores: dict[str, float] = json.loads((out / "scores.json").read_text())
    return scores


def scored_by_judge(answers: Path, suite: str, out: Path) -> dict[str, float]:
    judge = Path(sys.executable).parent / "judge"
    command = [judge, "score", answers, "--dataset", SAMPLES / suite, "--out", out, "-q"]
    subprocess.run([*map(str, command)], check=True)
    overall = json.loads((out / "report.json").read_text())["overall"]
    return {name: 100 * overall[f"{name}_restriction"] for name in ("soft", "hard")}


@pytest.mark.slow
def test_finished_workbooks_score_as_judge_score_does(tmp_path: Path) -> None:
    folder, answers = bundle("sample", tmp_path), tmp_path / "answers"
    answers.mkdir()
    for place, gold in enumerate(sorted((SAMPLES / "sample").rglob("*_answer.xlsx"))):
        source = gold if place % 3 else gold.with_name(gold.name.replace("_answer", "_input"))
        shutil.copyfile(source, answers / gold.name.replace("_answer", "_output"))
    scores = scored_by_bundle(folder, answers, tmp_path / "out")
    assert scores == pytest.approx(scored_by_judge(answers, "sample", tmp_path / "run"))
    assert 0 < scores["soft"] < 100


@pytest.mark.slow
def test_typed_answers_score_as_judge_score_does(tmp_path: Path) -> None:
    folder, answers = bundle("sample-typed", tmp_path), tmp_path / "answers"
    answers.mkdir()
    shutil.copyfile(SAMPLES / "sample-typed" / "answers.jsonl", answers / "answers.jsonl")
    scores = scored_by_bundle(folder, answers, tmp_path / "out")
    judged = scored_by_judge(answers / "answers.jsonl", "sample-typed", tmp_path / "run")
    assert scores == pytest.approx(judged)
    whole = (answers / "answers.jsonl").read_text().splitlines(keepends=True)
    first = json.loads(whole[0])["id"]
    (answers / "answers.jsonl").write_text(
        "".join(line for line in whole if json.loads(line)["id"] == first)
    )
    part = scored_by_bundle(folder, answers, tmp_path / "part")
    judged = scored_by_judge(answers / "answers.jsonl", "sample-typed", tmp_path / "run-part")
    tasks = len(load_suite(SAMPLES / "sample-typed").tasks)
    assert part["soft"] == pytest.approx(judged["soft"] / tasks)  # the others are not solved


def test_what_cannot_be_exported(tmp_path: Path) -> None:
    suite = load_suite(SAMPLES / "sample")
    with pytest.raises(UsageError, match=r"is a \.zip"):
        export_codabench(suite, "image", tmp_path / "bundle")
    (tmp_path / "there.zip").write_bytes(b"")
    with pytest.raises(UsageError, match="already exists"):
        export_codabench(suite, "image", tmp_path / "there.zip")


def test_eval_yaml_of_hugging_face(tmp_path: Path) -> None:
    target = tmp_path / "eval.yaml"
    arguments = [str(SAMPLES / "sample"), str(target), "--format", "huggingface"]
    assert CliRunner().invoke(export, arguments).exit_code == 0
    document = yaml.safe_load(target.read_text())
    assert document["name"] == "sample"
    assert [task["id"] for task in document["tasks"]] == ["hard_score", "soft_score"]
