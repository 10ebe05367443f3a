"""Scores with and without suspects, and suspects next to verdicts, in every report format."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from judge.api.rejudging import rejudge
from judge.core.submission import Origin
from judge.errors import UsageError
from judge.grading.store import REPORT_FILE, RunDirectory
from judge.report.html import report_html
from judge.report.html.pages import TaskPages
from judge.report.load import load_run
from judge.report.markdown import audit_markdown
from judge.report.report import Report
from judge.suspects.decisions import Decision, Finding, Suspicions, keep_suspicions
from judge.suspects.material import Output
from judge.suspects.model import (
    About,
    Audit,
    Certainty,
    RunVerdict,
    SeenCell,
    SeenContent,
    Suspect,
    read_suspects,
    write_suspects,
)
from tests.unit.report.runs import TABLE, Solution, TaskSpec, book, make_run, make_suite

RIGHT = book(TABLE)
WRONG = book((("Name", "Amount"), ("Ann", 1), ("Bob", 7), ("Cyd", 3)))
TASKS = (TaskSpec("1", cases=2), TaskSpec("2", cases=2), TaskSpec("3", cases=2))
SUSPECTS = (
    Suspect(
        *("1", 2, "contradicted-input", Certainty.SURE, "C8 is 'AAA'", "formulas read C8"),
        seen=(
            SeenCell(
                *("Sheet", "B3", True, SeenContent(), SeenContent(2, "=A3*2")),
                {"runs/one": SeenContent(3, "=A3+1"), "runs/two": SeenContent({"error": "#N/A"})},
            ),
        ),
        runs=(RunVerdict("runs/one", "WA"), RunVerdict("runs/two")),
    ),
    Suspect("2", 1, "stale", Certainty.LIKELY, "B2 is 3", "its formula gives 4"),
    Suspect("2", 2, "stale", Certainty.LIKELY, "B2 is 3", "its formula gives 4"),
    Suspect("3", None, "volatile", Certainty.POSSIBLE, "TODAY() | 'x'", "it moves"),
    Suspect("9", 1, "stale", Certainty.SURE, "of a task that nobody answered", "…"),
)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    suite = make_suite(tmp_path / "suite", TASKS)
    return make_run(
        tmp_path / "run",
        suite,
        [
            Solution("1", ("AC", ("WA", {"cause": "B3: expected 2"})), output=RIGHT),
            Solution("2", ("WA", "WA"), output=WRONG),
            Solution("3", ("AC", "AC"), output=RIGHT),
        ],
    )


@pytest.fixture
def suspects(run: Path) -> Path:
    suite = load_run(run).suite
    assert suite is not None
    path = run.parent / "suspects.json"
    write_suspects(path, Audit("made", suite.format, suite.digest, 3, 6, SUSPECTS, (), ()))
    return path


def without(report: Report) -> list[tuple[int, int, float | None, float | None]]:
    assert report.data.suspects is not None
    return [
        (
            each.set_aside_cases,
            each.set_aside_tasks,
            each.scores.soft_restriction.value,
            each.scores.hard_restriction.value,
        )
        for each in report.data.suspects.without
    ]


def test_scores_are_given_with_and_without_suspects(run: Path, suspects: Path) -> None:
    report = Report.of_run(run, suspects=suspects)
    assert report.data.overall.soft_restriction.value == pytest.approx(0.5)
    assert report.data.overall.hard_restriction.value == pytest.approx(1 / 3)
    assert without(report) == [
        (1, 1, pytest.approx(2 / 3), pytest.approx(2 / 3)),
        (3, 2, 1.0, 1.0),
        (5, 3, 1.0, 1.0),
    ]
    assert report.data.suspects is not None
    assert report.data.suspects.by_status == {"open": 4}
    first = report.data.suspects.without[0].scores.hard_restriction
    assert first.low is not None
    assert first.high is not None


def test_a_report_without_suspects_does_not_mention_them(run: Path) -> None:
    report = Report.of_run(run)
    texts = [report.to_json(), report.to_markdown(), report.to_csv("cases"), report.to_csv()]
    assert not [text for text in texts if "suspect" in text.lower()]
    assert "suspects" not in json.loads((run / REPORT_FILE).read_text())
    rejudge(run, recalc="never", apply=True)
    assert b'"suspects"' not in (run / REPORT_FILE).read_bytes()
    assert not [each.name for each in run.iterdir() if "suspects" in each.name]


def test_every_form_marks_suspects_at_their_verdicts(run: Path, suspects: Path) -> None:
    report = Report.of_run(run, suspects=suspects)
    case = json.loads(report.to_json())["tasks"][0]["cases"][1]
    (marked,) = case["suspects"]
    assert (marked["sign"], marked["certainty"], marked["status"]) == (
        "contradicted-input",
        "sure",
        "open",
    )
    markdown = report.to_markdown()
    assert "- task 1, case 2 (WA): C8 is 'AAA' (contradicted-input, sure, open)" in markdown
    assert "- task 3, case 1 (AC): TODAY() \\| 'x' (volatile, possible, open)" in markdown
    assert "| without sure suspects | 1 | 1 | 3 | 5 | 66.67" in markdown
    assert "| cell | input | gold | one WA | two |" in markdown
    assert "| Sheet\\!B3 | blank | 2 from =A3\\*2 | 3 from =A3+1 | \\#N/A |" in markdown
    rows = report.rows("cases")
    assert [row["suspect_certainty"] for row in rows] == [
        *(None, "sure", "likely", "likely", "possible", "possible")
    ]
    assert [row["group"] for row in report.rows("scores") if row["breakdown"] == "suspects"] == [
        *("sure", "likely", "possible")
    ]
    page = report_html(run, suspects=suspects)
    assert "Suspect golds" in page
    assert "without sure and likely suspects" in page
    entry = json.loads(report.to_json())["tasks"][0]
    assert TaskPages(load_run(run), {"tasks": [entry]}).page(0)["entry"]["cases"][1]["suspects"]


def test_an_audit_as_markdown_links_the_files(run: Path, suspects: Path) -> None:
    suite = load_run(run).suite
    assert suite is not None
    output = Output("runs/one", run / "one.xlsx", Origin.FINISHED)
    text = audit_markdown(read_suspects(suspects), suite, {("1", 2): [output]}, run.parent)
    section = text.split("### ")[1]
    assert section.startswith("Task 1, case 2: contradicted-input, sure\n")
    assert "| cell | input | gold | one WA | two |" in section
    links = re.findall(r"\[(.+?)\]\((.+?)\)", section)
    assert [name for name, _ in links] == ["input", "gold", "one"]
    case = suite.tasks[0].cases[1]
    assert [(run.parent / link).resolve() for _, link in links] == [
        *(case.inputs[0].path, case.golds[0].path, run / "one.xlsx")
    ]


def test_a_run_keeps_its_suspects_and_decisions(run: Path, suspects: Path) -> None:
    rejudge(run, recalc="never", suspects=suspects)
    assert not (run / "suspects.json").exists()
    found = rejudge(run, recalc="never", suspects=suspects, apply=True)
    assert found.to_json()["after"]["without_suspects"]["likely"]["set_aside"] == 3
    kept = json.loads((run / REPORT_FILE).read_text())["suspects"]
    assert kept["without"]["sure"] == {
        "set_aside": 1,
        "tasks": 3,
        "cases": 5,
        "soft_restriction": pytest.approx(2 / 3),
        "hard_restriction": pytest.approx(2 / 3),
    }
    assert [each["id"] for each in kept["suspects"]] == ["1", "2", "2", "3"]
    assert without(Report.of_run(run)) == without(Report.of_run(run, suspects=suspects))
    decision = Decision(SUSPECTS[0].key, Finding.FINE, "Ann", "2026-11-01T10:00:00", "it is so")
    with RunDirectory(run) as store:
        suspicions = load_run(run).suspicions
        assert suspicions is not None
        keep_suspicions(store, Suspicions(suspicions.audit, (decision,)))
    report = Report.of_run(run)
    assert [each[0] for each in without(report)] == [0, 2, 4]
    (marked,) = report.data.tasks[0].cases[1].suspects
    assert marked.status == "fine"
    assert marked.decisions == ("fine, by Ann on 2026-11-01: it is so",)


def test_each_list_is_set_aside_alone_where_both_have_suspects(run: Path, suspects: Path) -> None:
    nothing = Suspect("3", 1, "says-nothing", Certainty.SURE, "…", "…", about=About.CASE)
    digest = json.loads(suspects.read_text())["suite"]["digest"]
    listed = (*SUSPECTS[:3], nothing)
    write_suspects(suspects, Audit("made", "made", digest, 3, 6, listed, (), ()))
    report = Report.of_run(run, suspects=suspects)
    assert [each[:2] for each in without(report)] == [
        *((2, 2), (4, 3), (4, 3)),
        *((1, 1), (3, 2), (1, 1), (1, 1)),
    ]
    groups = [row["group"] for row in report.rows("scores") if row["breakdown"] == "suspects"]
    assert groups[3:] == ["gold sure", "gold likely", "case sure", "case likely"]
    before = json.loads(suspects.read_text())
    for each in before["suspects"]:
        del each["about"]
    suspects.write_text(json.dumps(before))
    assert without(Report.of_run(run, suspects=suspects)) == without(report)
    rejudge(run, recalc="never", suspects=suspects, apply=True)
    kept = json.loads((run / REPORT_FILE).read_text())["suspects"]["by_list"]
    assert kept["gold"]["likely"]["set_aside"] == 3
    assert kept["case"]["sure"]["set_aside"] == 1


def test_suspects_of_another_suite_are_refused(run: Path, suspects: Path) -> None:
    path = run.parent / "others.json"
    write_suspects(path, Audit("other", "x", "0" * 64, 1, 1, SUSPECTS, (), ()))
    with pytest.raises(UsageError, match=r"others\.json: the suspects are of the suite 'other'"):
        load_run(run, suspects=path)
