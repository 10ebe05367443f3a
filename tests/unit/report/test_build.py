from __future__ import annotations

import json
from pathlib import Path

import pytest

from judge.api.rejudging import change_verdict
from judge.core.statistics import wilson
from judge.grading.store import REPORT_FILE
from judge.report.build import build_report_data, method_of
from judge.report.load import load_run
from judge.report.model import Breakdown, ReportData
from judge.report.report import report_data
from judge.report.shapes import ShapeCache, inspect_files
from tests.unit.report.runs import (
    CELL,
    SHEET,
    TABLE,
    Solution,
    TaskSpec,
    book,
    make_run,
    make_suite,
)

WIDE = (tuple(f"c{n}" for n in range(12)), *(tuple(range(12)) for _ in range(60)))
TASKS = (
    TaskSpec("7", category="sum"),
    TaskSpec("8", SHEET, 2, input=book(WIDE), category="find"),
    TaskSpec("9", SHEET, 1, input=book(TABLE, TABLE), category="find"),
    TaskSpec("10"),
    TaskSpec("11"),
)
SOLUTIONS = (
    Solution("7", ("AC", "WA", "AC"), record={"model": "m", "rounds": 2, "cost": 0.5}),
    Solution("8", ("AC", "JE"), record={"tokens": {"prompt": 10, "completion": 4}, "rounds": 1}),
    Solution("9", (None,)),
    Solution("10", ("RE", "NC", ("WA", {"comparison": {"official_equal": True}}))),
)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    suite = make_suite(tmp_path / "suite", TASKS)
    return make_run(tmp_path / "run", suite, SOLUTIONS)


@pytest.fixture
def data(run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ReportData:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return report_data(run)


def test_scores_are_those_of_report_json(run: Path, data: ReportData) -> None:
    report = json.loads((run / "report.json").read_text())
    pairs = [(report["overall"], data.overall)] + [
        (report["by_instruction_type"][each.key], each.scores)
        for each in data.by_instruction_type.groups
    ]
    assert len(pairs) == 3
    for written, scores in pairs:
        assert scores.soft_restriction.value == written["soft_restriction"]
        assert scores.hard_restriction.value == written["hard_restriction"]
        assert (scores.tasks, scores.cases) == (written["tasks"], written["cases"])
        assert scores.verdicts == written["verdicts"]
        everything = written["including_excluded"]
        assert scores.soft_of_all == everything["soft_restriction"]
        assert scores.hard_of_all == everything["hard_restriction"]
        assert (scores.all_tasks, scores.all_cases) == (everything["tasks"], everything["cases"])
    for written, entry in zip(report["tasks"], data.tasks, strict=True):
        assert entry.task_id == str(written["id"])
        assert [case.verdict for case in entry.cases] == written["test_case_results"]
        assert entry.soft_restriction == written["soft_restriction"]


def test_every_score_has_its_interval(data: ReportData) -> None:
    assert data.overall.hard_restriction == wilson(1, 3)
    soft = data.overall.soft_restriction
    assert soft.value == pytest.approx((2 / 3 + 1 + 0) / 3)
    assert (soft.n, soft.method) == (3, "cluster bootstrap")
    assert 0 <= (soft.low or 0) < (soft.value or 0) < (soft.high or 0) <= 1
    assert data.method == method_of()


def test_another_seed_is_recorded(run: Path) -> None:
    other = report_data(run, method=method_of(seed=3, resamples=200))
    assert (other.method.seed, other.method.resamples) == (3, 200)


def test_verdicts_stand_in_their_phases(data: ReportData) -> None:
    counts = {phase.phase: phase.cases for phase in data.phases}
    assert counts == {
        "code": 0,
        "run": 1,
        "output": 0,
        "recalculation": 1,
        "comparison": 5,
        "judge": 1,
    }
    shares = [each.share for phase in data.phases for each in phase.verdicts]
    assert sum(shares) == pytest.approx(8 / 9)  # one of the nine cases was not run


def test_what_is_in_no_score_is_named(data: ReportData) -> None:
    assert [(each.task_id, each.case, each.verdict) for each in data.exclusions] == [
        ("8", 2, "JE"),
        ("9", 1, None),
    ]
    assert data.exclusions[0].reason == "JE for a reason"
    assert data.tasks_without_submission == 1


def test_differences_by_class(data: ReportData) -> None:
    found = {each.kind: each for each in data.differences}
    assert set(found) == {"wrong_value", "not_calculated"}
    assert (found["wrong_value"].cases, found["wrong_value"].cells) == (2, 2)
    assert (found["not_calculated"].only, found["not_calculated"].cells) == (1, 2)
    assert found["wrong_value"].share == pytest.approx(2 / 3)


def _breakdown(data: ReportData, key: str) -> Breakdown:
    return next(each for each in data.breakdowns if each.key == key)


def test_the_four_pairs_of_the_paper_part_all_tasks(data: ReportData) -> None:
    pairs = [each for each in data.breakdowns if each.from_paper]
    assert [each.key for each in pairs] == ["rows", "columns", "tables", "layout"]
    assert [each.groups[0].paper_share for each in pairs] == [0.7519, 0.6553, 0.6290, 0.5554]
    for pair in pairs:
        assert [group.scores.all_tasks for group in pair.groups] != [0, 0]
        assert sum(group.scores.all_tasks for group in pair.groups) == 4
        assert sum(group.share or 0 for group in pair.groups) == pytest.approx(1)
        assert pair.rule
    rows, tables = _breakdown(data, "rows"), _breakdown(data, "tables")
    assert [group.scores.all_tasks for group in rows.groups] == [3, 1]
    assert [group.scores.all_tasks for group in tables.groups] == [3, 1]


def test_parts_that_suite_and_run_know(data: ReportData) -> None:
    category = _breakdown(data, "category")
    assert [(each.key, each.scores.all_tasks) for each in category.groups] == [
        ("find", 2),
        ("sum", 1),
    ]
    assert category.unknown_tasks == 1
    rounds = _breakdown(data, "rounds")
    assert [each.label for each in rounds.groups] == ["1 round", "2 rounds"]
    assert data.tasks[0].groups["category"] == "sum"
    assert data.tasks[0].groups["instruction_type"] == CELL


def test_facts_of_cases_and_tasks(data: ReportData) -> None:
    first, second = data.tasks[0], data.tasks[1]
    assert (first.model, first.cost_usd, first.rounds) == ("m", 0.5, 2)
    assert (second.prompt_tokens, second.completion_tokens) == (10, 4)
    assert (first.run_wall_s, first.peak_memory_bytes) == (3.0, 1_000)
    case = first.cases[1]
    assert (case.verdict, case.phase, case.cause) == ("WA", "comparison", "WA for a reason")
    assert (case.input_rows, case.input_columns, case.answer_cells) == (4, 2, 3)
    assert (case.recalculation_s, case.comparison_s) == (0.25, 0.125)
    assert data.tasks[2].cases[0].verdict is None
    assert (
        data.tasks[2].cases[0].answer_cells == 3
    )  # counted from the gold, as nothing was compared
    assert data.official_disagreements == 1
    assert data.tasks[3].official_disagrees


def test_measures_leave_out_what_nobody_measured(data: ReportData) -> None:
    found = {each.key: each for each in data.measures}
    assert found["run_wall_s"].total == 8.0
    assert found["peak_memory_bytes"].total is None
    assert (found["cost_usd"].count, found["cost_usd"].total) == (1, 0.5)
    assert "inference_s" not in found
    assert data.usage is not None
    assert data.usage["prompt_tokens"] == 10


def test_nobodys_disk_is_in_the_identity(data: ReportData, tmp_path: Path) -> None:
    assert "solutions" not in data.run
    assert str(tmp_path) not in json.dumps(data.to_json())
    assert data.run["suite"] is not None
    assert data.run["suite"]["digest"]
    assert data.run["model"] is None  # known or not, it is there


def test_the_json_form_holds_every_field_and_survives_json(data: ReportData) -> None:
    document = data.to_json()
    assert set(document) == {*ReportData.__dataclass_fields__} - {
        "suspects",
        "phrasings",
        "episodes",
        "certified",
        "tools",
    }  # there are none
    again = json.loads(json.dumps(document))
    assert again["overall"]["soft_restriction"]["value"] == data.overall.soft_restriction.value
    assert again["tasks"][0]["cases"][1]["difference_counts"] == {"wrong_value": 1}


def test_samples_are_averaged_and_given_as_repeated_runs(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "suite", [TaskSpec("1", cases=2), TaskSpec("2", cases=2)])
    solutions = [
        Solution("1", ("AC", "AC"), sample=0),
        Solution("1", ("AC", "WA"), sample=1),
        Solution("2", ("WA", "WA"), sample=0),
        Solution("2", ("AC", "AC"), sample=1),
    ]
    data = report_data(make_run(tmp_path / "run", suite, solutions))
    assert data.overall.soft_restriction.value == pytest.approx((0.75 + 0.5) / 2)
    assert data.overall.tasks == 2
    repeated = data.repeated
    assert repeated is not None
    assert (repeated.samples, repeated.hard_restriction) == (2, 0.5)
    assert repeated.hard_sd == 0.0
    assert repeated.soft_sd == pytest.approx(0.25 / 2**0.5)
    assert repeated.pass_at == {1: 0.5, 2: 1.0}
    assert repeated.pass_hat == {1: 0.5, 2: 0.0}


def test_one_sample_is_not_a_repeated_run(data: ReportData) -> None:
    assert data.repeated is None


def test_a_workbook_that_cannot_be_read_is_counted_as_unknown(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "suite", [TaskSpec("1", input=b"no workbook"), TaskSpec("2")])
    run = load_run(make_run(tmp_path / "run", suite, [Solution("1", ("AC",) * 3)]))
    data = build_report_data(run, inspect_files(run, ShapeCache()))
    rows = _breakdown(data, "rows")
    assert rows.unknown_tasks == 1
    assert [group.share for group in rows.groups] == [None, None]
    assert data.tasks[0].cases[0].input_bytes == 11


def test_the_report_and_report_json_have_the_same_numbers(tmp_path: Path) -> None:
    """Both show the same tally, whichever samples count and whatever was changed by hand."""
    suite = make_suite(tmp_path / "suite", [TaskSpec("1"), TaskSpec("2", kind=SHEET)])
    solutions = [
        Solution("1", ["AC", "WA", ("JE", {"cause": "no room"})]),
        Solution("1", ["AC", "AC", "NC"], sample=1),
        Solution("2", ["WA", None, ("AC", {"comparison": {"official_equal": False}})]),
    ]
    for name, described in (("mean", {}), ("best", {"best_of": True})):
        path = make_run(tmp_path / name, suite, solutions, **described)
        change_verdict(path, "1", 1, "WA", by="Ann", why="a rounded total", sample=1)
        written = json.loads((path / REPORT_FILE).read_text(encoding="utf-8"))
        data = report_data(path)
        groups = {group.key: group.scores for group in data.by_instruction_type.groups}
        for reported, scores in (
            (written["overall"], data.overall),
            *((group, groups[kind]) for kind, group in written["by_instruction_type"].items()),
        ):
            assert (reported["tasks"], reported["cases"]) == (scores.tasks, scores.cases)
            assert reported["soft_restriction"] == pytest.approx(scores.soft_restriction.value)
            assert reported["hard_restriction"] == pytest.approx(scores.hard_restriction.value)
            assert reported["verdicts"] == scores.verdicts
            assert reported["including_excluded"]["soft_restriction"] == scores.soft_of_all
        disagreeing = [
            number for task in written["tasks"] for number in task.get("official_disagrees", ())
        ]
        assert len(disagreeing) == data.official_disagreements == 1
        assert data.manual_verdicts == 1
        assert written["departures"] == list(data.departures)
