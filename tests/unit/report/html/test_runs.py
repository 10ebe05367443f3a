"""Pages about several runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from judge.grading.store import RunDirectory
from judge.report.html.runs import ListedRun, render_comparison, render_runs
from judge.report.load import load_run
from judge.report.pairing import compare_loaded
from tests.browser.made_run import few_tasks, make_run, make_suite


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, the second with more rounds and one task less."""
    root = tmp_path_factory.mktemp("runs")
    tasks = few_tasks()
    make_suite(root / "suite", tasks)
    make_run(root / "one", root / "suite", tasks)
    make_run(root / "five", root / "suite", tasks[:-1])
    for name, rounds in (("one", 1), ("five", 5)):
        with RunDirectory(root / name) as store:
            run = store.read_run() or {}
            described = {each: value for each, value in run.items() if each != "schema_version"}
            inference = {"rounds": rounds, "content": {"rows": 5}}
            store.write_run({**described, "inference": inference})
    return root


def test_runs_that_differ_in_rounds_show_their_effect(results: Path) -> None:
    comparison = compare_loaded([load_run(results / "one"), load_run(results / "five")])
    html = render_comparison(comparison)
    assert "Scores by rounds" in html
    # Both showed five rows: there is no effect to see.
    assert "Scores by rows in the prompt" not in html
    # The one script sorts and filters the matrix; it may ask nobody for anything.
    assert html.count("<script>") == 1
    assert "connect-src &#39;none&#39;" in html


def test_numbers_of_a_comparison_are_those_of_its_json(results: Path) -> None:
    comparison = compare_loaded([load_run(results / "one"), load_run(results / "five")])
    document = json.loads(json.dumps(comparison.to_json()))
    found = re.findall(r'data-at="([^"]+)"[^>]* value="([^"]+)"', render_comparison(comparison))
    assert len(found) > 15
    for pointer, value in found:
        at = document
        for part in pointer.split("/")[1:]:
            at = at[int(part)] if isinstance(at, list) else at[part]
        assert float(value) == (len(at) if isinstance(at, list) else at), pointer


def listed(name: str, soft: float | None, suite: str = "s", *, going: bool = False) -> ListedRun:
    estimate = {"value": soft, "low": None, "high": None, "n": 1, "method": ""}
    run = {"suite": {"name": suite, "digest": suite}, "model": None, "profile": "standard"}
    run |= {"setting": None, "recalc": None}
    overall = {"soft_restriction": estimate, "hard_restriction": estimate}
    document = {"name": name, "run": run, "overall": overall, "notes": []}
    progress = {"done": 1, "total": 2, "verdicts": {}, "going": going}
    return ListedRun(name, document, progress)


def test_runs_of_one_suite_stand_together_the_best_first() -> None:
    runs = [
        listed("low", 0.1),
        listed("other", 0.9, "t"),
        listed("none", None),
        listed("begun", 1.0, going=True),
        listed("high", 0.8),
        ListedRun("fresh", None, {"done": 0, "total": 3, "verdicts": {}, "going": True}, "not yet"),
    ]
    html = render_runs("results", runs, token="secret")
    assert re.findall(r'data-run="(\w+)"', html) == [
        "high",
        "low",
        "begun",
        "none",
        "other",
        "fresh",
    ]
    assert "not yet" in html
    assert 'data-going="1"' in html


def test_names_of_runs_are_text_and_parts_of_addresses() -> None:
    html = render_runs("<b>", [listed("<img src=x>&/ run", 0.5)], token="secret")
    assert "<img" not in html
    assert 'href="/runs/%3Cimg%20src%3Dx%3E%26%2F%20run/?token=secret"' in html
