from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from judge.authoring.draft import SuiteDraft
from judge.authoring.export import choose, export_suite
from judge.authoring.kinds import State
from judge.authoring.workbook_kind import TaskFields
from judge.cli.main import judge
from judge.compare.cells.options import position_of
from judge.errors import StoreError, SuiteError, UsageError
from judge.grading.store import RunDirectory
from judge.suites import Suite, load_suite
from judge.suites.spreadsheetbench import InstructionType
from judge.suites.validate import validate_suite

Run = Callable[..., Result]
NOTES = TaskFields(multiple_tables=False, non_standard_table=True)


@pytest.fixture(scope="module")
def sample() -> Suite:
    return load_suite("sample")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("JUDGE_AUTHOR", raising=False)


@pytest.fixture
def draft(tmp_path: Path) -> SuiteDraft:
    return SuiteDraft.create(tmp_path / "mine", by="Ann")


def fields(sample: Suite, task_id: str = "1001") -> TaskFields:
    task = sample.task(task_id)
    return TaskFields(
        instruction=task.instruction,
        instruction_type=InstructionType(task.kind),
        answer_position=position_of(task.checker)[0],
    )


def cases(sample: Suite, task_id: str = "1001") -> list[tuple[Path, Path]]:
    return [(case.input_path, case.gold_path) for case in sample.task(task_id).cases]


def test_a_new_suite_is_empty_and_needs_a_folder_of_its_own(draft: SuiteDraft) -> None:
    assert draft.tasks() == ()
    with pytest.raises(UsageError, match="already exists"):
        SuiteDraft.create(draft.root, by="Ann")


def test_a_task_comes_with_its_workbooks_and_its_author(draft: SuiteDraft, sample: Suite) -> None:
    draft.add_task(7, fields(sample), cases(sample), by="Ann")
    added = load_suite(draft.root).task(7)
    assert added.raw_id == 7
    assert [case.number for case in added.cases] == [1, 2, 3]
    for case, (question, gold) in zip(added.cases, cases(sample), strict=True):
        assert case.input_path.read_bytes() == question.read_bytes()
        assert case.gold_path.read_bytes() == gold.read_bytes()
    status = draft.task("7").status
    assert (status.state, status.authors) == (State.DRAFT, ("Ann",))


def test_what_cannot_be_judged_is_refused_and_leaves_nothing(
    draft: SuiteDraft, sample: Suite, tmp_path: Path
) -> None:
    torn = tmp_path / "torn.xlsx"
    torn.write_bytes(b"PK no workbook")
    with pytest.raises(SuiteError) as broken:
        draft.add_task("a", fields(sample), [(torn, cases(sample)[0][1])], by="Ann")
    assert any("1_a_input.xlsx" in fault for fault in broken.value.faults)
    nowhere = TaskFields(
        instruction="Sum.", instruction_type=InstructionType.CELL_LEVEL, answer_position="Nix!A0"
    )
    with pytest.raises(SuiteError) as wrong:
        draft.add_task("a", nowhere, cases(sample), by="Ann")
    assert any("Nix!A0" in fault for fault in wrong.value.faults)
    with pytest.raises(UsageError, match=r"instruction.*instruction_type.*answer_position"):
        draft.add_task("a", TaskFields(), cases(sample), by="Ann")
    with pytest.raises(UsageError, match="slash"):
        draft.add_task("../a", fields(sample), cases(sample), by="Ann")
    assert draft.tasks() == ()
    assert list((draft.root / "spreadsheet").iterdir()) == []


def test_an_id_is_taken_once(draft: SuiteDraft, sample: Suite) -> None:
    draft.add_task(7, fields(sample), cases(sample), by="Ann")
    with pytest.raises(UsageError, match="already has a task 7"):
        draft.add_task("7", fields(sample), cases(sample), by="Bob")


def test_two_reviewers_who_are_not_the_author(draft: SuiteDraft, sample: Suite) -> None:
    draft.add_task(7, fields(sample).changed(NOTES), cases(sample), by="Ann")
    with pytest.raises(UsageError, match="cannot review"):
        draft.review("7", State.CHECKED, by="  ann ")
    with pytest.raises(UsageError, match="not been checked"):
        draft.review("7", State.ACCEPTED, by="Bob")
    assert draft.review("7", State.CHECKED, by="Bob").state is State.CHECKED
    with pytest.raises(UsageError, match="somebody else"):
        draft.review("7", State.ACCEPTED, by="Bob")
    status = draft.review("7", State.ACCEPTED, by="Cat")
    assert (status.state, status.reviewers) == (State.ACCEPTED, ("Bob", "Cat"))
    with pytest.raises(UsageError, match="already accepted"):
        draft.review("7", State.CHECKED, by="Dan")
    back = draft.review("7", State.DRAFT, by="Dan", note="which month?")
    assert (back.state, back.note, back.changed_since) == (State.DRAFT, "which month?", False)


def test_the_manuals_fields_have_to_be_filled_first(draft: SuiteDraft, sample: Suite) -> None:
    draft.add_task(7, fields(sample), cases(sample), by="Ann")
    with pytest.raises(UsageError, match="multiple_tables, non_standard_table"):
        draft.review("7", State.CHECKED, by="Bob")
    draft.edit_task("7", NOTES, by="Ann")
    assert draft.review("7", State.CHECKED, by="Bob").state is State.CHECKED


@pytest.mark.parametrize("what", ["field", "workbook", "note"])
def test_a_review_counts_for_what_was_reviewed(draft: SuiteDraft, sample: Suite, what: str) -> None:
    draft.add_task(7, fields(sample).changed(NOTES), cases(sample), by="Ann")
    draft.review("7", State.CHECKED, by="Bob")
    before = draft.task("7")
    if what == "field":
        draft.edit_task("7", TaskFields(instruction="Another question."), by="Ann")
    elif what == "note":
        draft.edit_task("7", TaskFields(multiple_tables=True), by="Ann")
    else:
        shutil.copyfile(before.task.cases[1].input_path, before.task.cases[0].input_path)
    status = draft.task("7").status
    assert (status.state, status.changed_since) == (State.DRAFT, True)
    if what == "field":
        draft.edit_task("7", TaskFields(instruction=before.task.instruction), by="Ann")
        assert draft.task("7").status.state is State.CHECKED


def test_an_edit_that_spoils_the_task_is_refused(draft: SuiteDraft, sample: Suite) -> None:
    draft.add_task(7, fields(sample), cases(sample), by="Ann")
    with pytest.raises(SuiteError):
        draft.edit_task("7", TaskFields(answer_position="Nowhere!B0"), by="Ann")
    assert position_of(load_suite(draft.root).task(7).checker)[0] == fields(sample).answer_position


def test_a_second_writer_waits_and_is_notified(
    draft: SuiteDraft, sample: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judge.authoring.draft._LOCK_WAIT_S", 0.1)
    with RunDirectory(draft.root / "authoring") as held:
        held.lock()
        with pytest.raises(StoreError):
            draft.add_task(7, fields(sample), cases(sample), by="Ann")
    draft.add_task(7, fields(sample), cases(sample), by="Ann")
    assert len(draft.tasks()) == 1


@pytest.mark.parametrize("name", ["out", "out.tar.gz"])
def test_what_is_exported_is_read_back_as_the_same_suite(
    draft: SuiteDraft, sample: Suite, tmp_path: Path, name: str
) -> None:
    given = fields(sample).changed(NOTES).changed(TaskFields(source_url="https://forum.test/1"))
    draft.add_task(7, given, cases(sample), by="Ann")
    draft.add_task("8-x", fields(sample, "1002"), cases(sample, "1002"), by="Ann")
    with pytest.raises(UsageError, match="accepted yet"):
        choose(draft.tasks(), State.ACCEPTED)
    draft.review("7", State.CHECKED, by="Bob")
    target = tmp_path / name
    assert export_suite(draft, choose(draft.tasks(), State.DRAFT), target) == 6
    exported, written = load_suite(target), load_suite(draft.root)
    assert not [x for x in validate_suite(exported) if x.severity.value == "error"]
    assert [task.id for task in exported.tasks] == ["7", "8-x"]
    for task in exported.tasks:
        same = written.task(task.id)
        assert (task.instruction, task.checker) == (same.instruction, same.checker)
        for case, other in zip(task.cases, same.cases, strict=True):
            assert case.input_path.read_bytes() == other.input_path.read_bytes()
            assert case.gold_path.read_bytes() == other.gold_path.read_bytes()
    record = json.loads((exported.root / "dataset.json").read_text())[0]
    assert record.keys() == {
        "id", "instruction", "instruction_type", "answer_position", "spreadsheet_path"
    }  # fmt: skip
    notes = [json.loads(x) for x in (exported.root / "annotations.jsonl").read_text().splitlines()]
    assert notes[0]["source_url"] == "https://forum.test/1"
    assert (notes[0]["state"], notes[0]["reviewers"]) == ("checked", ["Bob"])
    with pytest.raises(UsageError, match="already exists"):
        export_suite(draft, draft.tasks(), target)
    assert [x.name for x in tmp_path.glob(".exporting-*")] == []


def test_the_same_suite_gives_the_same_archive(
    draft: SuiteDraft, sample: Suite, tmp_path: Path
) -> None:
    draft.add_task(7, fields(sample), cases(sample), by="Ann")
    for folder in ("a", "b"):
        export_suite(draft, draft.tasks(), tmp_path / folder / "s.tar.gz")
    first, second = ((tmp_path / x / "s.tar.gz").read_bytes() for x in "ab")
    assert first == second
    with tarfile.open(tmp_path / "a" / "s.tar.gz") as tar:
        assert {member.name.split("/")[0] for member in tar} == {"s"}


def test_a_published_suite_is_exported_under_regular_names(tmp_path: Path, sample: Suite) -> None:
    """A suite that was not written here has no recorded authors; those in Verified are regular."""
    folder = tmp_path / "verified"
    place = folder / "spreadsheet" / "7"
    place.mkdir(parents=True)
    question, gold = cases(sample)[0]
    shutil.copyfile(question, place / "1_7_init.xlsx")
    shutil.copyfile(gold, place / "1_7_golden.xlsx")
    record = {
        "id": 7,
        "instruction": "Sum.",
        "instruction_type": "Cell-Level Manipulation",
        "answer_position": fields(sample).answer_position,
        "spare": 1,
    }
    (folder / "dataset.json").write_text(json.dumps([record]))
    export_suite(SuiteDraft(folder), SuiteDraft(folder).tasks(), tmp_path / "out")
    names = {path.name for path in (tmp_path / "out" / "spreadsheet" / "7").iterdir()}
    assert names == {"1_7_input.xlsx", "1_7_answer.xlsx"}
    assert "spare" not in (tmp_path / "out" / "dataset.json").read_text()


def test_from_the_command_line(
    tmp_path: Path, sample: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: object) -> Result:
        command = ["dataset", *map(str, arguments)]
        return CliRunner().invoke(judge, command, standalone_mode=False)

    suite = tmp_path / "mine"
    (tmp_path / "question.txt").write_text(sample.task("1001").instruction)
    assert run("new", suite, "--by", "Ann").exception is None
    question, gold = cases(sample)[0]
    added = run(
        "add-task", suite, "7", "--case", question, gold,
        "--instruction", f"@{tmp_path}/question.txt", "--type", "cell",
        "--position", position_of(sample.task("1001").checker)[0], "--one-table", "--by", "Ann",
    )  # fmt: skip
    assert added.exception is None, added.exception
    assert "task 7: draft, 1 case" in added.stdout
    assert load_suite(suite).task(7).instruction == sample.task("1001").instruction.strip()
    assert isinstance(run("edit-task", suite, "7", "--by", "Ann").exception, UsageError)
    assert run("edit-task", suite, "7", "--non-standard-table", "--by", "Ann").exception is None
    monkeypatch.setenv("JUDGE_AUTHOR", "Bob")
    assert "checked (Bob)" in run("review", suite, "7", "--state", "checked").stdout
    assert run("review", suite, "7", "--state", "accepted", "--by", "Cat").exception is None
    assert "1 accepted" in run("review", suite).stdout
    (shown,) = json.loads(run("review", suite, "--json").stdout)
    assert (shown["reviewers"], shown["non_standard_table"]) == (["Bob", "Cat"], True)
    assert "1 of 1 tasks, 1 cases" in run("export", suite, tmp_path / "o.tar.gz").stdout
    assert "no errors" in run("validate", tmp_path / "o.tar.gz").stdout
