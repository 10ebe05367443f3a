from __future__ import annotations

import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from judge.annotate.archive import append_record, read_records
from judge.annotate.casebook import Casebook, ConflictError, Draft
from judge.annotate.edits import SetCell
from judge.errors import StoreError, SuiteError, UsageError
from judge.files.writing import HeldError, take_lock
from judge.suites.suite import Suite, load_suite
from judge.workbook.cell import CellRef
from tests.unit.annotate.conftest import doubling_case


def put(row: int, value: object) -> SetCell:
    return SetCell(CellRef("Sheet", row, 1), value)  # type: ignore[arg-type]


def save(book: Casebook, draft: Draft, *numbers: object) -> None:
    book.save(draft, *doubling_case(*numbers), {"kind": "set"})


def in_child(action: Callable[[], None], *, dies_at: int | None = None) -> int:
    """Runs a function in a forked process, which dies at a certain sync; returns its exit code."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 1
    try:
        real, left = os.fsync, dies_at

        def dying(fd: Any) -> None:
            nonlocal left
            if left is not None:
                left -= 1
                if left == 0:
                    os._exit(9)
            real(fd)

        os.fsync = dying
        action()
        code = 0
    finally:
        os._exit(code)


def test_a_saved_case_is_part_of_the_suite_and_on_record(suite: Path) -> None:
    book = Casebook(suite)
    draft = book.extend(book.begin("7", "ann"), [put(2, 5)])
    save(book, draft, 5, 2, 3, 4)
    assert [case.number for case in load_suite(suite).task("7").cases] == [1, 2, 3, 4]
    assert (suite / "spreadsheet/7/4_7_input.xlsx").read_bytes() == doubling_case(5, 2, 3, 4)[0]
    (record,) = book.records("7")
    assert (record["author"], record["case"], record["kind"]) == ("ann", 4, "set")
    assert book.drafts() == []


def test_a_draft_survives_its_process_and_can_be_taken_back(suite: Path) -> None:
    draft = Casebook(suite).begin("7", "ann", base=2)
    Casebook(suite).extend(draft, [put(2, 5)], [put(3, 6)])
    Casebook(suite).extend(draft, [put(3, 7)])
    (again,) = Casebook(suite).drafts("7")
    assert again.edits == (put(2, 5), put(3, 7))
    assert again.answers == (put(3, 6),)
    assert again.base == Casebook(suite).case("7", 2)
    assert Casebook(suite).undo(again).edits == (put(2, 5),)
    Casebook(suite).discard(again)
    with pytest.raises(UsageError, match="no draft"):
        Casebook(suite).draft("7", draft.id)
    with pytest.raises(StoreError, match="gone"):
        Casebook(suite).extend(draft, [put(2, 5)])


def test_everybody_gets_a_number_of_their_own(suite: Path) -> None:
    def work(value: int) -> int:
        book = Casebook(suite)
        draft = book.extend(book.begin("7", f"annotator {value}"), [put(2, value)])
        save(book, draft, value, 2, 3, 4)
        return draft.number

    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(work, range(20, 36)))
    assert sorted(numbers) == list(range(4, 20))
    book = Casebook(suite)
    for value, number in zip(range(20, 36), numbers, strict=True):
        assert book.case("7", number).input == doubling_case(value, 2, 3, 4)[0]
    assert len(book.records()) == 16


def test_a_casebook_that_opens_while_a_case_is_saved_sees_it_whole_or_not_at_all(
    suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = Casebook(suite)
    draft = book.extend(book.begin("7", "ann"), [put(2, 5)])
    opened = []

    def saved_meanwhile(source: Path, **options: Any) -> Suite:
        monkeypatch.setattr("judge.annotate.casebook.load_suite", load_suite)
        save(book, draft, 5, 2, 3, 4)  # the first record of this suite
        opened.append("half of a case")
        raise SuiteError(f"{source} is broken: a case has no gold")

    monkeypatch.setattr("judge.annotate.casebook.load_suite", saved_meanwhile)
    assert [case.number for case in Casebook(suite).suite.task("7").cases] == [1, 2, 3, 4]

    def locked_out(source: Path, **options: Any) -> Suite:
        with pytest.raises(HeldError):
            take_lock(suite / "annotations/.lock")
        opened.append("under the lock")
        return load_suite(source, **options)

    monkeypatch.setattr("judge.annotate.casebook.load_suite", locked_out)
    Casebook(suite)
    assert opened == ["half of a case", "under the lock"]


def test_who_saves_second_overwrites_nothing_and_loses_nothing(suite: Path) -> None:
    book = Casebook(suite)
    first = book.extend(book.begin("7", "ann", replace=3), [put(2, 70)])
    second = book.extend(Casebook(suite).begin("7", "bob", replace=3), [put(3, 80)])
    save(book, first, 70, 8, 9, 10)
    with pytest.raises(ConflictError, match="changed by ann"):
        save(Casebook(suite), second, 7, 80, 9, 10)
    assert book.case("7", 3).input == doubling_case(70, 8, 9, 10)[0]
    assert book.drafts("7") == [second]
    onto = book.rebase(second, as_new=False)
    assert onto.base.input == doubling_case(70, 8, 9, 10)[0]
    assert onto.edits == (put(3, 80),)
    save(book, onto, 70, 80, 9, 10)
    assert book.case("7", 3).input == doubling_case(70, 80, 9, 10)[0]
    assert book.version(book.records()[0]["input"]) == doubling_case(70, 8, 9, 10)[0]


def test_a_draft_is_saved_once(suite: Path) -> None:
    book = Casebook(suite)
    draft = book.begin("7", "ann")
    save(book, draft, 5, 2, 3, 4)
    with pytest.raises(ConflictError, match="already"):
        save(book, draft, 6, 2, 3, 4)


def test_a_case_copied_in_by_hand_is_not_overwritten(suite: Path) -> None:
    book = Casebook(suite)
    draft = book.begin("7", "ann")
    for role, data in zip(("input", "answer"), doubling_case(9, 9, 9, 9), strict=True):
        (suite / f"spreadsheet/7/4_7_{role}.xlsx").write_bytes(data)
    with pytest.raises(ConflictError, match="has a case 4"):
        save(book, draft, 5, 2, 3, 4)


@pytest.mark.parametrize("dies_at", range(1, 16))
def test_a_crash_at_any_moment_leaves_the_case_or_the_draft(suite: Path, dies_at: int) -> None:
    book = Casebook(suite)
    draft = book.extend(book.begin("7", "ann", replace=3), [put(2, 70)])
    code = in_child(lambda: save(book, draft, 70, 8, 9, 10), dies_at=dies_at)
    assert code in {0, 9}
    after = Casebook(suite)
    now, new = after.case("7", 3), doubling_case(70, 8, 9, 10)
    if (now.input, now.gold) == new:
        assert after.drafts() == []
        assert len(after.records()) == 1
    else:
        assert code == 9
        assert now == draft.base
        assert after.drafts() == [draft]
        save(after, draft, 70, 8, 9, 10)
    assert load_suite(suite).task("7").cases[2].number == 3


def test_the_crash_test_reaches_the_end(suite: Path) -> None:
    book = Casebook(suite)
    draft = book.begin("7", "ann", replace=3)
    assert in_child(lambda: save(book, draft, 70, 8, 9, 10), dies_at=1) == 9
    assert in_child(lambda: save(book, draft, 70, 8, 9, 10), dies_at=60) == 0


def test_edits_that_were_shown_as_kept_survive_a_kill(suite: Path) -> None:
    book = Casebook(suite)
    draft = book.begin("7", "ann")

    def work() -> None:
        book.extend(draft, [put(2, 5)])
        os._exit(9)

    assert in_child(work) == 9
    assert Casebook(suite).draft("7", draft.id).edits == (put(2, 5),)


def test_a_torn_line_is_not_a_record(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    append_record(path, {"a": 1})
    with path.open("ab") as file:
        file.write(b'{"a": 2')
    assert read_records(path) == [{"a": 1}]
    append_record(path, {"a": 3})
    assert read_records(path) == [{"a": 1}, {"a": 3}]
    path.write_bytes(b"{}\nnonsense\n")
    with pytest.raises(StoreError, match="line 2"):
        read_records(path)


def test_looking_at_a_suite_writes_nothing(suite: Path) -> None:
    before = sorted(suite.rglob("*"))
    book = Casebook(suite)
    assert book.records() == []
    assert book.drafts() == []
    assert book.case("7", 1).number == 1
    assert sorted(suite.rglob("*")) == before


def test_an_archive_cannot_be_annotated(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not the folder of a suite"):
        Casebook(tmp_path / "suite.tar.gz")


# -- taking back ----------------------------------------------------------------------------------


def test_an_added_case_is_taken_back_and_nothing_is_lost(suite: Path) -> None:
    book = Casebook(suite)
    save(book, book.extend(book.begin("7", "ann"), [put(2, 5)]), 5, 2, 3, 4)
    (saved,) = book.records("7")
    taken = book.take_back("7", 4, "bob", why="the question leaves it open")
    assert not taken.input_path.exists()
    assert not taken.gold_path.exists()
    assert [case.number for case in load_suite(suite).task("7").cases] == [1, 2, 3]
    assert book.records("7") == []
    last = book.history("7")[-1]
    assert (last["author"], last["why"], last["takes_back"]) == (
        "bob",
        "the question leaves it open",
        saved["id"],
    )
    assert book.version(saved["input"]) == doubling_case(5, 2, 3, 4)[0]
    with pytest.raises(UsageError, match="was not saved by"):
        book.take_back("7", 4, "bob")
    with pytest.raises(UsageError, match="was not saved by"):
        book.take_back("7", 1, "bob")
    assert Casebook(suite).begin("7", "ann").number == 4


def test_a_changed_case_is_again_what_it_was(suite: Path) -> None:
    book = Casebook(suite)
    before = book.case("7", 2)
    save(book, book.begin("7", "ann", replace=2), 9, 9, 9, 9)
    assert book.case("7", 2) != before
    book.take_back("7", 2, "ann")
    assert book.case("7", 2) == before


def test_a_case_that_somebody_changed_since_is_not_taken_back(suite: Path) -> None:
    book = Casebook(suite)
    save(book, book.begin("7", "ann"), 5, 2, 3, 4)
    path = suite / "spreadsheet/7/4_7_answer.xlsx"
    path.write_bytes(doubling_case(8, 8, 8, 8)[1])
    with pytest.raises(ConflictError, match="nothing was taken back"):
        book.take_back("7", 4, "ann")
    assert path.exists()


@pytest.mark.parametrize("dies_at", range(1, 5))
def test_a_crash_while_taking_back_is_made_good(suite: Path, dies_at: int) -> None:
    book = Casebook(suite)
    save(book, book.begin("7", "ann"), 5, 2, 3, 4)

    def take_back() -> None:
        Casebook(suite).take_back("7", 4, "ann")

    in_child(take_back, dies_at=dies_at)
    again = Casebook(suite)
    there = (suite / "spreadsheet/7/4_7_input.xlsx").exists()
    assert there == (suite / "spreadsheet/7/4_7_answer.xlsx").exists() == bool(again.records("7"))


def test_numbers_have_no_gaps(suite: Path) -> None:
    book = Casebook(suite)
    first, second = book.begin("7", "ann"), book.begin("7", "bob")
    assert (first.number, second.number) == (4, 5)
    save(book, second, 5, 2, 3, 4)
    book.discard(first)
    assert Casebook(suite).begin("7", "ann").number == 4


def test_a_broken_task_does_not_stop_work_on_another(suite: Path) -> None:
    records = json.loads((suite / "dataset.json").read_text())
    (suite / "dataset.json").write_text(json.dumps([*records, {**records[0], "id": 8}]))
    with pytest.raises(SuiteError):
        Casebook(suite)
    with pytest.raises(SuiteError):
        Casebook(suite, ids=["8"])
    book = Casebook(suite, ids=["7"])
    assert [task.id for task in book.suite.tasks] == ["7"]
    assert any("left out" in note for note in book.suite.notes)
    assert book.begin("7", "ann").number == 4
