"""Tasks in two phrasings: joined, counted, compared; within a run and between runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from judge.api.runs import compare_runs
from judge.errors import UsageError
from judge.report.build import build_report_data
from judge.report.html.render import report_html
from judge.report.load import load_run
from judge.report.markdown import render_markdown
from judge.suites import Suite, load_suite
from tests.phrased_suite import CHART, DATA, PIVOT, write_phrased_suite
from tests.unit.report.runs import Solution, make_run

RULES = {"p1": [DATA], "p2": [DATA, CHART], "p3": [PIVOT], "p4": [DATA, PIVOT], "p5": [CHART]}


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Suite:
    return load_suite(write_phrased_suite(tmp_path_factory.mktemp("phrased"), RULES))


def solutions(abstract: str, verbose: str) -> list[Solution]:
    """One letter for each task: a for accepted, w for wrong, - for no task."""
    verdicts = {"a": ["AC"], "w": ["WA"]}
    given = [(f"p{n}", each) for n, each in enumerate(abstract, 1)]
    given += [(f"p{n}-verbose", each) for n, each in enumerate(verbose, 1)]
    return [Solution(task, verdicts[each]) for task, each in given if each != "-"]


def test_both_phrasings_of_a_run_are_compared_in_pairs(tmp_path: Path, suite: Suite) -> None:
    run = load_run(make_run(tmp_path / "run", suite, solutions("awwa-", "aaww-")), None)
    data = build_report_data(run, {})
    (compared,) = data.phrasings
    pair = compared.pair
    assert (pair.first, pair.second, pair.tasks) == ("abstract", "verbose", 4)
    assert (pair.won, pair.lost) == (("p2",), ("p4",))
    assert pair.p_hard == 1
    counts = {each.label: each for each in compared.counts}
    whole = counts["all"]
    assert (whole.both, whole.only_first, whole.only_second, whole.neither) == (1, 1, 1, 1)
    apart = counts["without pivot_table"]
    assert (apart.tasks, apart.both, apart.only_second) == (2, 1, 1)
    assert counts["with pivot_table"].tasks == 2
    divisions = {each.key: each for each in data.breakdowns}
    assert {g.key: g.scores.tasks for g in divisions["aspect_pivot_table"].groups} == {
        "with": 4,
        "without": 4,
    }
    text = render_markdown(data)
    assert "| without pivot\\_table | 2 | 1 | 0 | 1 | 0 |" in text
    assert "+0.00 points" in text
    assert "verbose against abstract" in report_html(tmp_path / "run")
    assert "phrasings" in data.to_json()


def test_a_score_in_one_phrasing_alone_is_not_a_pair(tmp_path: Path, suite: Suite) -> None:
    run = load_run(make_run(tmp_path / "run", suite, solutions("aw---", "a-a--")), None)
    (compared,) = build_report_data(run, {}).phrasings
    assert (compared.pair.tasks, compared.alone) == (1, 2)
    alone = load_run(make_run(tmp_path / "alone", suite, solutions("aaaaa", "")), None)
    data = build_report_data(alone, {})
    assert data.phrasings == ()
    assert "phrasings" not in data.to_json()


def test_runs_of_one_phrasing_each_are_joined(tmp_path: Path, suite: Suite) -> None:
    one = make_run(tmp_path / "one", suite, solutions("awaaw", ""))
    two = make_run(tmp_path / "two", suite, solutions("", "waaww"))
    comparison = compare_runs(one, two)
    (pair,) = comparison.pairs
    assert comparison.tasks == 5
    assert (pair.won, pair.lost) == (("p2",), ("p1", "p4"))
    assert "phrasings of the same tasks" in comparison.notes[-1]
    elsewhere = make_run(tmp_path / "three", suite, solutions("", "a----"))
    others = make_run(tmp_path / "four", suite, solutions("-a---", ""))
    with pytest.raises(UsageError, match="no scored task in common"):
        compare_runs(elsewhere, others)
