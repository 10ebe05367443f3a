"""Tasks judged by rules: proposed from input and gold, kept or dropped, read back as written."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from openpyxl import load_workbook

from judge.authoring.proposals import propose, rectangles
from judge.cli.dataset_authoring import Choice
from judge.cli.main import judge
from judge.compare.cells.computing import Compute, NoEngines
from judge.compare.contract import Examination, Rules
from judge.compare.profiles import get_profile
from judge.compare.registry import checker_of, register, unregister
from judge.compare.rules.checker import RulesChecker
from judge.compare.rules.options import faults_of
from judge.core.finding import (
    DifferenceLocation,
    Finding,
    FoundDifference,
    LocationKind,
    finding_of,
)
from judge.core.submission import Answer, Origin
from judge.core.task import CheckerSpec, Gold, InputFile, Task, TestCase
from judge.errors import SuiteError, UsageError
from judge.files.documents import dump_json
from judge.grading.case import CaseJudge, GradingRules
from judge.grading.verify import verify_case
from judge.recalc.policy import Recalculator
from judge.suites import load_suite
from judge.suites.own_format import suite_document
from judge.suites.validate import validate_suite
from judge.workbook.address import parse_cell
from tests.conftest import REPOSITORY

Run = Callable[..., Result]
CORPUS = REPOSITORY / "tests" / "workbook_rules" / "corpus"
BASE = CORPUS / "base.xlsx"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("JUDGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("JUDGE_AUTHOR", "Ann")
    return lambda *args, **more: CliRunner().invoke(judge, ["dataset", *map(str, args)], **more)


@pytest.fixture
def suite(run: Run, tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    made = run("new", folder, "--kind", "rules")
    assert "--from GOLD --input INPUT" in made.output
    return folder


def refused(done: Result) -> str:
    """Returns the message of a command that failed."""
    assert isinstance(done.exception, UsageError | SuiteError), done.output
    return " ".join([done.exception.message, *getattr(done.exception, "faults", ())])


def files(gold: str, question: str = "base") -> tuple[str | Path, ...]:
    """Returns the options of a first case."""
    return ("--from", CORPUS / f"{gold}.xlsx", "--input", CORPUS / f"{question}.xlsx")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("base", "ch_line", {"chart": ["type", "title", "series_names"]}),
        ("base", "ch_bar", {"chart": ["type", "title", "direction", "series_names"]}),
        ("ch_line", "ch_line_t2", {"chart": ["title"]}),
        ("ch_line", "ch_line_noleg", {"chart": ["legend"]}),
        ("ch_bar", "ch_col", {"chart": ["direction"]}),
        ("base", "fill_red", {"style": ["fgcolor"]}),
        ("fill_red", "fill_blue", {"style": ["fgcolor"]}),
        ("base", "numfmt", {"style": ["number_format"]}),
        ("base", "hyper", {"style": ["hyperlink"]}),
        ("base", "cf_expr", {"style": ["fgcolor", "font_color"]}),
        ("base", "freeze_B2", {"freeze": []}),
        ("base", "zoom50", {"zoom": []}),
        ("base", "dv", {"data_validation": []}),
        ("base", "flt_vals", {"filter": []}),
        ("base", "row_hidden", {"row_props": ["hidden"]}),
        ("base", "row_height", {"row_props": ["height"]}),
        ("base", "col_hidden", {"col_props": ["hidden"]}),
        ("base", "sp", {"sparkline": []}),
        ("base", "val5", {"sheet_data": []}),
        ("base", "renamed", {"sheet_name": []}),
        ("base", "two", {"sheet_name": [], "sheet_data": []}),
        ("base", "formula", {"sheet_data": []}),
        ("base", "base", {}),
        ("ch_line", "ch_line", {}),
    ],
)
def test_a_rule_is_proposed_for_what_differs_and_for_nothing_else(
    before: str, after: str, expected: dict[str, list[str]]
) -> None:
    proposed = propose([(CORPUS / f"{before}.xlsx", CORPUS / f"{after}.xlsx")])
    found = {}
    for each in proposed.listed:
        (rule,) = each.rules
        props = next((value for name, value in rule.items() if name.endswith("props")), [])
        found[str(rule["type"])] = [name for name in props if isinstance(name, str)]  # type: ignore[attr-defined]
    assert found == expected


@pytest.mark.slow
def test_each_proposal_is_sound_and_tells_input_and_gold_apart() -> None:
    judge_of_cases = CaseJudge(
        Recalculator((), mode="never"), GradingRules(get_profile("standard"))
    )
    proposed, useless = 0, []
    for path in sorted(CORPUS.glob("*.xlsx"))[::2]:
        if path.name == "broken.xlsx":
            continue
        case = TestCase(1, (InputFile(BASE),), (Gold(path),))
        for each in propose([(BASE, path)]).listed:
            assert list(faults_of(each.rules)) == []
            spec = CheckerSpec("rules", {"rules": each.rules})
            check = verify_case(Task("t", "", "rules", (case,), spec), case, judge_of_cases)
            proposed += 1
            if not check.gold_accepted or check.untouched_accepted:
                useless.append((path.name, each.words, check.gold_problem))
    assert not useless
    assert proposed > 40


def test_cells_are_named_by_the_rectangles_that_they_fill() -> None:
    cells = ["B2", "C2", "B3", "C3", "E3", "B4", "A6"]
    keys = [row << 15 | column for row, column in map(parse_cell, cells)]  # type: ignore[misc]
    assert [str(each) for each in rectangles(keys)] == ["B2:C3", "E3", "B4", "A6"]


def test_sheets_that_each_case_names_differently_are_named_case_by_case(tmp_path: Path) -> None:
    book = load_workbook(CORPUS / "renamed.xlsx")
    book["Data"].freeze_panes = "B2"
    book.save(tmp_path / "gold.xlsx")
    cases = [
        (BASE, CORPUS / "freeze_B2.xlsx"),
        (CORPUS / "renamed.xlsx", tmp_path / "gold.xlsx"),
    ]
    (proposal,) = propose(cases).listed
    named = [(rule["sheet_idx0"], rule["sheet_idx1"]) for rule in proposal.rules]
    assert named == [("RNSheet1", "ENSheet1"), ("RNData", "ENData")]
    cases[1] = (BASE, CORPUS / "two.xlsx")
    with pytest.raises(UsageError, match="different numbers of sheets: 1, 2"):
        propose(cases)


def test_what_no_rule_says_is_named() -> None:
    proposed = propose([(BASE, CORPUS / "cf_scale.xlsx")])
    assert proposed.uncovered == ("sheet 'Sheet1': conditional formats that are drawn",)


def test_kept_rules_are_those_of_the_task_and_each_case_states_its_own(
    run: Run, suite: Path, tmp_path: Path
) -> None:
    more = ("--case", BASE, CORPUS / "zoom300.xlsx")
    done = run("add-task", suite, "7", "--instruction", "Zoom.", *files("zoom50"), *more, "--yes")
    assert done.exit_code == 0, done.output
    assert "1. sheet 'Sheet1' is zoomed to 50 % (other cases state their own)" in done.output
    task = load_suite(suite).task("7")
    rules: Any = task.checker.options["rules"]
    (rule,) = rules
    assert rule == {"type": "zoom", "sheet_idx": "RNSheet1", "method": "eq", "ref": 50}
    own = [case.golds[0].options.get("rules") for case in task.cases]
    assert own == [None, ({**rule, "ref": 300},)]
    assert [each.path.name for each in task.cases[1].inputs] == ["2_7_input.xlsx"]
    assert validate_suite(load_suite(suite)) == []

    out = tmp_path / "out"
    assert run("export", suite, out, "--state", "draft").exit_code == 0
    exported = load_suite(out).task("7")
    assert exported.checker == task.checker
    assert [case.golds[0].options for case in exported.cases] == [
        case.golds[0].options for case in task.cases
    ]
    # Read, written by the writer of any suite, and read again.
    (out / "suite.json").write_text(dump_json(suite_document([exported], out)))
    assert load_suite(out).task("7") == exported


def test_some_are_kept_by_number_or_on_paper(run: Run, suite: Path, tmp_path: Path) -> None:
    both = files("two")
    done = run("add-task", suite, "a", "--instruction", "Add a sheet.", *both, "--keep", "2")
    assert done.exit_code == 0, done.output
    rules = load_suite(suite).task("a").checker.options["rules"]
    assert [rule["type"] for rule in rules] == ["sheet_data"]  # type: ignore[attr-defined]

    paper = tmp_path / "rules.yaml"
    done = run("add-task", suite, "b", "--instruction", "Add.", *both, "--propose", paper)
    assert done.exit_code == 0, done.output
    assert [task.id for task in load_suite(suite).tasks] == ["a"]
    assert "# 1. the sheets are those of the gold, in order: Sheet1, Sheet2\n" in paper.read_text()
    done = run("add-task", suite, "b", "--instruction", "Add.", *both, "--rules", paper)
    assert done.exit_code == 0, done.output
    rules = load_suite(suite).task("b").checker.options["rules"]
    assert [rule["type"] for rule in rules] == ["sheet_name", "sheet_data"]  # type: ignore[attr-defined]

    paper.write_text(json.dumps({"rules": [{"type": "sheet_name"}], "profile": "official"}))
    assert run("edit-task", suite, "b", "--rules", paper).exit_code == 0
    assert load_suite(suite).task("b").checker.options == {
        "rules": ({"type": "sheet_name"},),
        "profile": "official",
    }


def test_a_person_is_asked_about_each_rule() -> None:
    proposed = propose([(BASE, CORPUS / "two.xlsx")])
    with CliRunner().isolation(input="n\ny\n") as (out, *_):
        kept = Choice(yes=False, keep=None, propose=None).ask(proposed, terminal=True)
        said = out.getvalue().decode()
    assert kept == proposed.listed[1:]
    assert [line[:2] for line in said.splitlines() if line[0].isdigit()] == ["1.", "2."]
    with CliRunner().isolation(input="n\nn\n"), pytest.raises(UsageError, match="no rule is kept"):
        Choice(yes=False, keep=None, propose=None).ask(proposed, terminal=True)


def test_a_suite_can_have_questions_with_typed_answers_too(run: Run, suite: Path) -> None:
    assert run("add-task", suite, "q", "--instruction", "n?", "--answer", "n=3").exit_code == 0
    done = run("add-task", suite, "z", "--instruction", "Zoom.", *files("zoom50"), "--yes")
    assert done.exit_code == 0, done.output
    names = [task.checker.name for task in load_suite(suite).tasks]
    assert names == ["typed_answer", "rules"]
    assert run("edit-task", suite, "z", "--instruction", "Zoom out.").exit_code == 0
    assert load_suite(suite).task("z").instruction == "Zoom out."


class Boards(RulesChecker):
    """A user's own checker, with a definition that each gold completes."""

    name = "boards_of_mine"

    def check_options(self, options: Mapping[str, object]) -> None:
        if set(options) - {"board", "strict"}:
            raise UsageError(f"no option {sorted(options)}")

    def describe(self, spec: CheckerSpec) -> str:
        return self.name

    def examine(self, task: Task, case: TestCase, compute: Compute | None) -> Examination:
        return Examination(units=1)

    def check(
        self,
        task: Task,
        case: TestCase,
        golds: Sequence[Gold],
        answer: Answer,
        compute: Compute,
        rules: Rules,
    ) -> Finding:
        assert all("board" in task.checker.with_options(gold.options).options for gold in golds)
        if any(answer.data == gold.read() for gold in golds):
            return finding_of([], units=1)
        different = FoundDifference(
            "board", DifferenceLocation(LocationKind.RULE), "the gold", None
        )
        return finding_of([different], units=1)


def test_any_checker_can_judge_by_its_name_alone(run: Run, suite: Path, tmp_path: Path) -> None:
    board = {"charts": [{"type": "line", "series": ["A", {"from": 1}]}]}
    paper = tmp_path / "checker.json"
    stated = {"name": Boards.name, "options": {"strict": True}, "cases": {"1": {"board": board}}}
    paper.write_text(json.dumps(stated))
    adding = ("add-task", suite, "b", "--instruction", "Draw.", *files("ch_line"))
    assert "there is no checker" in refused(run(*adding, "--checker", paper))
    register(Boards())
    try:
        assert run(*adding, "--checker", paper).exit_code == 0
        out = tmp_path / "out"
        assert run("export", suite, out, "--state", "draft").exit_code == 0
        task = load_suite(out).task("b")
        (out / "suite.json").write_text(dump_json(suite_document([task], out)))
        assert load_suite(out).task("b") == task
        assert task.checker == CheckerSpec(Boards.name, {"strict": True})
        read: Any = task.cases[0].golds[0].options
        assert read["board"] == board
        paper.write_text(json.dumps({**stated, "options": {"title": "T"}}))
        done = run("edit-task", suite, "b", "--checker", paper)
        assert "field 'checker.options' does not fit: no option ['title']" in refused(done)
    finally:
        unregister(Boards.name)


FREEZE = [{"type": "freeze", "sheet_idx0": 0, "sheet_idx1": "EI0"}]
OTHER_ZOOM = [{"type": "zoom", "sheet_idx": 0, "method": "eq", "ref": 7}]


@pytest.mark.parametrize(
    ("options", "rules", "said"),
    [
        (files("zoom50"), None, "no option says which of the 1 proposed rules to keep"),
        ((*files("zoom50"), "--keep", "2"), None, "must be numbers from 1 to 1"),
        ((*files("base"), "--yes"), None, "nothing differs between input and gold"),
        (("--from", BASE, "--yes"), None, "its input is missing"),
        ((*files("zoom50"), "--yes"), FREEZE, "only for proposed rules"),
        (
            (*files("zoom50"), "--answer", "n=1"),
            FREEZE,
            "--from, --rules: not for a suite of the kind typed",
        ),
        (files("zoom50"), [{"type": "zom"}], "there is no type 'zom'"),
        (files("zoom50"), {"rules": FREEZE, "cases": {"3": FREEZE}}, "there is no case 3"),
        (files("zoom50"), FREEZE, "case 1: the untouched input is accepted"),
        (files("zoom50"), OTHER_ZOOM, "case 1: the gold is not accepted as its own answer: WA"),
    ],
)
def test_what_does_not_tell_right_from_wrong_is_refused(
    run: Run, suite: Path, tmp_path: Path, options: tuple[str, ...], rules: object, said: str
) -> None:
    before = (suite / "suite.json").read_bytes()
    if rules is not None:
        (tmp_path / "rules.json").write_text(json.dumps(rules))
        options = (*options, "--rules", str(tmp_path / "rules.json"))
    done = run("add-task", suite, "8", "--instruction", "Zoom.", *options)
    assert said in refused(done)
    assert (suite / "suite.json").read_bytes() == before
    assert list((suite / "files").iterdir()) == []


def test_the_profile_of_a_task_decides() -> None:
    # The published reading does not know the data of scatter charts.
    gold = Gold(CORPUS / "ch_sc_B.xlsx")
    answer = Answer.of_workbook(
        (CORPUS / "ch_sc_C.xlsx").read_bytes(), Origin.FINISHED, "ch_sc_C.xlsx"
    )
    rule = {"type": "chart", "sheet_idx0": 0, "sheet_idx1": "EI0"}
    agrees = {}
    for profile in ("standard", "official"):
        spec = CheckerSpec("rules", {"rules": (rule,), "profile": profile})
        task = Task("t", "", "chart", (TestCase(1, (), (gold,)),), spec)
        found = checker_of(spec).check(
            task, task.cases[0], (gold,), answer, NoEngines(), Rules(get_profile("standard"))
        )
        agrees[profile] = found.agrees
    assert agrees == {"standard": False, "official": True}
