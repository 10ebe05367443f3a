"""An audit of a whole suite: ranking, what cannot be examined, the command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from judge.annotate.rules import edited
from judge.api.verifying import outputs_of, suspects
from judge.cli.verify import verify
from judge.core.task import CheckerSpec, Gold, InputFile, Task
from judge.errors import StoreError, UsageError
from judge.grading.store import CASES_FILE, SUBMISSIONS_FILE, RunDirectory
from judge.suites import load_suite
from judge.suspects.audit import audit_suite, examine_task, ranked
from judge.suspects.contract import all_signs, register
from judge.suspects.material import Tools
from judge.suspects.model import Certainty, Suspect, read_suspects
from judge.suspects.signs.cases import UNINFORMATIVE_CASE, UninformativeCase
from judge.suspects.signs.refusals import SAME_QUESTION
from tests.unit.annotate.books import table
from tests.unit.suspects.small import book, engines, findings_of, task_of

HEAD = ("number", "double")
SAMPLES = Path(__file__).parents[3] / "dataset"


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """Two tasks of two cases; in the second case of task 8, the input already has the answer."""
    root = tmp_path / "suite"
    records = []
    for name in ("7", "8"):
        folder = root / "spreadsheet" / name
        folder.mkdir(parents=True)
        for number in (1, 2):
            rows = [(each * number, 2 * each * number) for each in (1, 2, 3, 4)]
            done = name == "8" and number == 2
            given = table(HEAD, *(row if done else (row[0], None) for row in rows))
            (folder / f"{number}_{name}_input.xlsx").write_bytes(given)
            (folder / f"{number}_{name}_answer.xlsx").write_bytes(table(HEAD, *rows))
        records.append(
            {
                "id": name,
                "instruction": "Put twice the number of column A into column B.",
                "instruction_type": "Cell-Level Manipulation",
                "answer_position": "B2:B5",
            }
        )
    (root / "dataset.json").write_text(json.dumps(records))
    return root


def test_the_command_prints_writes_and_keeps_its_exit_code(suite: Path, tmp_path: Path) -> None:
    out = tmp_path / "suspects.json"
    done = CliRunner().invoke(
        verify, [str(suite), "--audit", "--recalc", "never", "--out", str(out)]
    )
    assert done.exit_code == 0, done.output
    assert "1 suspect in 1 case of 1 task; 4 cases of 2 tasks examined" in done.output
    audit = read_suspects(out)
    (found,) = audit.suspects
    assert (found.task, found.case, found.sign) == ("8", 2, "says-nothing")
    (files,) = audit.files
    gold = suite / "spreadsheet" / "8" / "2_8_answer.xlsx"
    assert files.gold_sha256 == load_digest(gold)
    assert audit.digest == load_suite(suite).digest
    as_json = CliRunner().invoke(verify, [str(suite), "--audit", "--recalc", "never", "--json"])
    assert json.loads(as_json.stdout) == json.loads(out.read_text())
    only = CliRunner().invoke(
        verify, [str(suite), "--audit", "--recalc", "never", "--ids", "7", "--json"]
    )
    assert json.loads(only.stdout)["suspects"] == []


def load_digest(path: Path) -> str:
    import hashlib  # noqa: PLC0415

    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    "options", [["--out", "x.json"], ["--submissions", "x"], ["--audit", "--profile", "strict"]]
)
def test_options_that_do_not_go_together_are_refused(suite: Path, options: list[str]) -> None:
    done = CliRunner().invoke(verify, [str(suite), *options])
    assert isinstance(done.exception, UsageError)


def test_outputs_of_folders_vote(suite: Path, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("a", "b")]
    for folder in folders:
        folder.mkdir()
        rows = ((1, 2), (2, 4), (3, 6), (4, 9, folder.name))
        (folder / "1_7_output.xlsx").write_bytes(table(HEAD, *rows))
    audit = suspects(suite, submissions=folders, ids=["7"], recalc="never", jobs=1)
    (found,) = audit.suspects
    assert (found.sign, found.case) == ("outvoted", 1)
    assert audit.submissions == tuple(map(str, folders))


def test_outputs_of_runs_vote_and_a_run_counts_once(suite: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        with RunDirectory(tmp_path / "runs" / name) as store:
            digest = load_suite(suite).digest
            store.write_run({"suite": {"name": "suite", "digest": digest}})
            output = store.put_workbook(table(HEAD, (1, 2), (2, 9, name), (3, 6), (4, 8)))
            record = {"task": "7", "sample": 0, "case": 1, "verdict": "WA"}
            store.append(CASES_FILE, {**record, "run": {"output_sha256": output}})
    runs = tmp_path / "runs"
    audit = suspects(suite, submissions=[runs], ids=["7"], recalc="never", jobs=1)
    assert [(each.sign, each.case) for each in audit.suspects] == [("outvoted", 1)]
    outputs, notes = outputs_of([runs / "a", runs / "a"], load_suite(suite))
    assert len(outputs["7", 1]) == 1
    assert [note.split(":")[0] for note in notes] == ["a single run cannot outvote a gold"]


@pytest.mark.parametrize("programs", [("x", "x\n"), (None, None)], ids=["program", "output"])
def test_a_copied_run_has_no_vote_of_its_own(
    suite: Path, tmp_path: Path, programs: tuple[str | None, str | None]
) -> None:
    digest = load_suite(suite).digest
    for name, program in zip(("a", "b"), programs, strict=True):
        with RunDirectory(tmp_path / "runs" / name) as store:
            store.write_run({"suite": {"name": "suite", "digest": digest}})
            mark = name if program else "same"
            output = store.put_workbook(table(HEAD, (1, 2), (2, 9, mark), (3, 6), (4, 8)))
            record = {"task": "7", "sample": 0, "case": 1, "verdict": "WA"}
            store.append(CASES_FILE, {**record, "run": {"output_sha256": output}})
            if program is not None:
                store.append(SUBMISSIONS_FILE, {"id": "7", "sample": 0, "solution": program})
    audit = suspects(suite, submissions=[tmp_path / "runs"], ids=["7"], recalc="never", jobs=1)
    assert not [each for each in audit.suspects if each.sign == "outvoted"]
    copied, alone = audit.notes
    assert "b is a copy of" in copied
    assert alone.startswith("a single run cannot outvote")


def test_runs_of_another_suite_do_not_vote(suite: Path, tmp_path: Path) -> None:
    with RunDirectory(tmp_path / "run") as store:
        store.write_run({"suite": {"name": "other", "digest": "0" * 64}})
    with pytest.raises(StoreError, match="another suite"):
        outputs_of([tmp_path / "run"], load_suite(suite))


def test_submissions_have_to_be_folders(suite: Path) -> None:
    with pytest.raises(UsageError, match="a file"):
        outputs_of([suite / "dataset.json"], load_suite(suite))
    with pytest.raises(UsageError, match="no such folder"):
        outputs_of([suite / "nothing"], load_suite(suite))


def test_a_broken_case_is_a_problem_and_the_others_are_examined(tmp_path: Path) -> None:
    whole = book(HEAD, (1, 2))
    task = task_of(tmp_path, "B2", (b"not a workbook", whole), (whole, whole))
    found = findings_of([UNINFORMATIVE_CASE], task)
    (problem,) = found.problems
    assert (problem.case, problem.sign) == (1, "")
    assert [each.case for each in found.suspects] == [2]


def test_an_audit_says_what_no_sign_applies_to() -> None:
    loaded = load_suite(SAMPLES / "sample-typed")
    left_out = CheckerSpec("typed_answer", {"left_out": "nobody knows the answer"})
    tasks = [replace(loaded.tasks[0], checker=left_out), loaded.tasks[1]]
    audit = audit_suite(loaded, tasks, Tools(engines(), edited), [UNINFORMATIVE_CASE])
    assert audit.not_examined == {tasks[0].id: "the task is left out: nobody knows the answer"}
    assert (audit.tasks, audit.cases) == (1, 1)


# -- answers that are not a range of cells --------------------------------------------------------


def chart(**changes: object) -> Task:
    """A task whose output is judged by rules, with its first case alone."""
    task = load_suite(SAMPLES / "sample-rules").tasks[0]
    return replace(task, cases=(replace(task.cases[0], **changes),))  # type: ignore[arg-type]


def signs_of(task: Task, *others: Task) -> list[tuple[str, Certainty, str]]:
    found = examine_task(task, Tools(engines(), edited), all_signs(), same_question=others)
    assert not found.problems
    return [(each.sign, each.certainty, each.summary) for each in found.suspects]


def test_a_sound_task_that_is_judged_by_rules_has_no_signs() -> None:
    assert signs_of(chart()) == []


def test_an_input_that_the_rules_accept_says_nothing() -> None:
    gold = chart().cases[0].golds[0].path
    assert gold is not None
    expected = [("says-nothing", Certainty.SURE, "the untouched input is accepted")]
    assert signs_of(chart(inputs=(InputFile(gold),))) == expected
    assert signs_of(replace(chart(), checker=CheckerSpec("rules", {"rules": []}))) == expected


def test_a_gold_that_its_own_rules_refuse_or_that_is_not_given_is_a_suspect() -> None:
    rules = [{"type": "sheet_data", "sheet_idx0": "RNSales", "sheet_idx1": "ENNothing"}]
    ((sign, certainty, summary),) = signs_of(
        replace(chart(), checker=CheckerSpec("rules", {"rules": rules}))
    )
    assert (sign, certainty) == ("gold-refused", Certainty.SURE)
    assert "the gold has no sheet 'ENNothing'" in summary
    assert signs_of(chart(golds=())) == [("gold-refused", Certainty.SURE, "no gold is given")]


def test_an_answer_without_a_name_in_the_question_is_possible() -> None:
    task = load_suite(SAMPLES / "sample-typed").tasks[0]
    ((sign, certainty, summary),) = signs_of(replace(task, instruction="How many long trips?"))
    assert (sign, certainty) == ("gold-refused", Certainty.POSSIBLE)
    assert "does not name 'long_trips'" in summary


def test_the_same_question_with_another_gold_is_a_suspect() -> None:
    task = load_suite(SAMPLES / "sample-typed").tasks[0]
    (case,) = task.cases

    def other(golds: tuple[Gold, ...], inputs: tuple[InputFile, ...] = case.inputs) -> Task:
        return replace(task, id="again", cases=(replace(case, golds=golds, inputs=inputs),))

    apart = (Gold(value={"long_trips": 6, "mean_guests": 15.25}),)
    ((sign, certainty, summary),) = signs_of(task, other(apart))
    assert (sign, certainty) == ("same-question", Certainty.LIKELY)
    assert summary.startswith("task again has the same question and input")
    assert signs_of(task, other(case.golds)) == []
    assert signs_of(task, other((*apart, *case.golds))) == []
    elsewhere = load_suite(SAMPLES / "sample-typed").tasks[1].cases[0].inputs
    assert signs_of(task, other(apart, elsewhere)) == []


def test_an_audit_knows_the_other_tasks_with_the_same_question(suite: Path) -> None:
    loaded = load_suite(suite)
    first, second = loaded.tasks
    apart = replace(
        second,
        cases=tuple(replace(case, inputs=first.cases[0].inputs) for case in second.cases),
    )
    both = replace(loaded, tasks=(first, apart))
    audit = audit_suite(both, [first], Tools(engines(), edited), [SAME_QUESTION])
    assert [(each.task, each.case) for each in audit.suspects] == [("7", 1)]


def test_the_surest_come_first_and_then_those_with_several_signs() -> None:
    def suspect(task: str, sign: str, certainty: Certainty) -> Suspect:
        return Suspect(task, 1, sign, certainty, "", "")

    alone = suspect("1", "a", Certainty.LIKELY)
    both = [suspect("2", "a", Certainty.LIKELY), suspect("2", "b", Certainty.POSSIBLE)]
    sure = suspect("3", "a", Certainty.SURE)
    assert ranked([alone, *both, sure]) == (sure, both[0], alone, both[1])


def test_a_sign_is_registered_once_under_its_name() -> None:
    register(UNINFORMATIVE_CASE)
    assert [each.name for each in all_signs()].count(UNINFORMATIVE_CASE.name) == 1
    with pytest.raises(UsageError, match="already exists"):
        register(UninformativeCase())


def test_every_sign_states_what_it_says_and_cannot_see() -> None:
    for each in all_signs():
        assert each.title
        assert all(each.blind_spots)
        assert each.blind_spots


def test_items_that_hold_without_work_or_on_no_gold_are_suspects(tmp_path: Path) -> None:
    task = tmp_path / "tasks" / "e-001"
    task.mkdir(parents=True)
    (task / "input.xlsx").write_bytes(table(HEAD, (1, None)))
    (task / "_golden.xlsx").write_bytes(table(HEAD, (1, 2)))
    (task / "meta.yaml").write_text("task:\n  id: e-001\n")
    (task / "prompt.md").write_text("## Task\n\nDouble it.")
    cell = {
        "type": "programmatic",
        "match_type": "excel_cell_value",
        "description": "",
        "points": 50,
    }
    word = {"type": "programmatic", "match_type": "substring_one_of", "accepted_values": ["two"]}
    criteria = {
        "kept": {**cell, "cell": "A2", "expected": 1},
        "never": {**cell, "cell": "B2", "expected": 3},
        "said": {**word, "description": "", "points": 0},
    }
    (task / "rubric.json").write_text(json.dumps({"total_points": 100, "criteria": criteria}))
    audit = suspects(tmp_path, recalc="never")
    assert audit.not_examined == {}
    (found,) = audit.suspects
    assert (found.sign, found.certainty) == ("item-unsound", Certainty.LIKELY)
    assert found.summary == "item never holds on no gold; item kept holds without work"
    assert [each.note for each in found.evidence] == [
        "item never: holds on no gold",
        "item kept: holds on the unchanged input, or no files",
    ]
    (files,) = audit.files
    assert files.gold_sha256 is not None
    assert audit.problems == ()
