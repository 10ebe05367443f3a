"""The sample of typed answers: every reply gets its intended verdict."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from judge.api import ScoreOptions, check_expectations, score
from judge.compare.values.rules import AnswerType, Match
from judge.core.replies.extract import MAX_ANSWER_CHARS
from judge.files.media import image_size
from judge.report.report import Report
from judge.suites import load_suite
from judge.suites.validate import validate_suite
from tests.conftest import REPOSITORY, Snapshot
from tests.records import snapshot_of_run

SAMPLE = REPOSITORY / "dataset" / "sample-typed"


def test_every_reply_gets_its_verdict_and_nothing_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    monkeypatch.setenv("JUDGE_CACHE", str(tmp_path / "cache"))
    out = tmp_path / "run"
    (run,) = score(SAMPLE / "answers.jsonl", ScoreOptions(dataset="sample-typed", out=out))
    lines = [json.loads(line) for line in (SAMPLE / "answers.jsonl").read_text().splitlines()]
    assert check_expectations(run) == (len(lines), [])
    assert run.report["run"].get("sandbox") is None
    assert {line["expected"][0] for line in lines} == {"AC", "WA", "NO"}
    assert all(len(line["response"] or "") < MAX_ANSWER_CHARS for line in lines)
    (table,) = Report.of_run(out).data.tables
    assert [(each.heading, each.label, each.suite_tasks) for each in table.columns] == [
        ("", "Total", 6),
        ("Picture", "yes", 3),
        ("Picture", "no", 3),
        ("Table", "yes", 4),
        ("Table", "no", 2),
        ("", "Both", 1),
        ("Difficulty", "Easy", 3),
        ("Difficulty", "Medium", 2),
        ("Difficulty", "Hard", 1),
    ]
    by_group = run.report["by_group"]["picture"]["yes"]
    assert table.columns[1].scores.hard_restriction.value == by_group["hard_restriction"]
    snapshot("sample-typed.jsonl", snapshot_of_run(out))


def test_it_has_every_type_of_answer_and_its_pictures_are_pictures() -> None:
    suite = load_suite("sample-typed")
    assert validate_suite(suite) == []
    rules = [rule for task in suite.tasks for rule in task.checker.options["variables"].values()]  # type: ignore[attr-defined]
    assert {rule["type"] for rule in rules} == {each.value for each in AnswerType}
    assert {rule.get("match", "exact") for rule in rules} == {each.value for each in Match}
    pictures = sorted(SAMPLE.rglob("*.png"))
    assert [image_size(each.read_bytes()) for each in pictures] == [
        (240, 160),
        (260, 90),
        (216, 164),
    ]


def test_its_golds_follow_from_its_tables() -> None:
    golds = {task.id: task.cases[0].golds[0].value for task in load_suite("sample-typed").tasks}
    with (SAMPLE / "files" / "trips" / "trips.csv").open() as file:
        trips = list(csv.DictReader(file))
    assert golds["trips"] == {
        "long_trips": sum(float(row["km"]) > 20 for row in trips),
        "mean_guests": sum(int(row["guests"]) for row in trips) / len(trips),
    }
    with (SAMPLE / "files" / "stations" / "stations.csv").open() as file:
        rows = [list(row.values()) for row in csv.DictReader(file)]
    highest = [(name, max(map(float, values))) for name, *values in rows]
    assert golds["stations"] == {"warm": [[name, most] for name, most in highest if most > 10]}
