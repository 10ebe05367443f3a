from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from openpyxl.formatting.rule import Rule
from openpyxl.styles import PatternFill
from openpyxl.styles.differential import DifferentialStyle

from judge.annotate.casebook import ConflictError
from judge.annotate.web.server import show_state
from judge.annotate.web.session import AnnotationSession
from judge.annotate.web.view import colour_changes, rule_lines
from judge.errors import SandboxError, UsageError, WorkbookError
from judge.suites import load_suite
from judge.workbook.cell import CellRange
from judge.workbook.reader import open_workbook
from tests.unit.annotate.books import make_book, values
from tests.unit.annotate.web.conftest import MakeDesk, gold, program


def typed(session: AnnotationSession, book: str = "input", **cells: str) -> None:
    listed = [{"cell": cell, "text": text} for cell, text in cells.items()]
    session.change(session.revision, {"book": book, "sheet": "Sheet", "cells": listed})


def state(session: AnnotationSession) -> dict[str, Any]:
    return show_state(session, "suite", "Ann")


ANSWER = (CellRange("Sheet", 2, 2, 5, 2),)
AGREEING = {"references": [program("a"), program("b")]}


def results(*numbers: object, base: tuple[object, ...] = (1, 2, 3, 4)) -> list[Any]:
    """Two right references on the changed input, then on the original case."""
    return [gold(*numbers), gold(*numbers), gold(*base), gold(*base)]


def test_before_anything_is_changed_there_is_no_draft(make_session: MakeDesk, suite: Path) -> None:
    session = make_session()
    shown = state(session)
    assert (shown["edits"], shown["number"], shown["preview"]) == ([], None, None)
    assert shown["sheets"] == {"input": ("Sheet",), "gold": ("Sheet",)}
    assert shown["answer"] == [{"sheet": "Sheet", "row": 2, "column": 2}]
    assert session.compute() is None
    assert not list((suite / "annotations").glob("drafts/*/*"))


def test_a_change_is_on_the_disk_before_it_is_shown(make_session: MakeDesk) -> None:
    typed(make_session(), A3="50")
    # Another process, which knows nothing of the first one's memory.
    again = make_session()
    assert again.resumed
    assert state(again)["edits"] == ["'Sheet'!A3 = 50"]
    assert make_session("Bob").resumed is False


def test_the_gold_follows_and_the_case_is_saved(make_session: MakeDesk, suite: Path) -> None:
    session = make_session(results=results(1, 50, 30, 4), **AGREEING)
    typed(session, A3="50", A4="30")
    assert state(session)["preview"] is None
    session.compute()
    preview = state(session)["preview"]
    assert preview["errors"] == preview["warnings"] == []
    assert [(x["cell"], x["before"], x["after"]) for x in preview["moved"]] == [
        ("B3", "4", "100"),
        ("B4", "6", "60"),
    ]
    shown = session.window("gold", "Sheet", (1, 1))
    assert shown["rows"][2][:2] == ["50", "100"]
    assert set(shown["marked"]) == {"B3", "B4"}
    saved = session.save(session.revision, note="larger numbers")
    assert saved["number"] == 4
    case = load_suite(suite).task(7).cases[3]
    assert values(case.input_path.read_bytes())[3, 1] == 50
    assert values(case.gold_path.read_bytes())[3, 2] == 100
    after = state(session)
    assert (after["saved"]["number"], after["edits"], after["cases"]) == (4, [], [1, 2, 3, 4])


def test_what_was_computed_before_a_change_is_not_saved_after_it(make_session: MakeDesk) -> None:
    session = make_session(results=results(1, 50, 3, 4), **AGREEING)
    typed(session, A3="50")
    session.compute()
    typed(session, A4="9")
    assert session.preview is None
    with pytest.raises(UsageError, match="no computed case"):
        session.save(session.revision)


def test_the_manuals_rules_hold_a_case_back(make_session: MakeDesk) -> None:
    session = make_session(results=results(1, 2, 3, 4), **AGREEING)
    typed(session, A6="text below the data")
    session.compute()
    assert "no cell of the answer" in state(session)["preview"]["errors"][0]
    with pytest.raises(UsageError, match="manual forbid it"):
        session.save(session.revision)
    assert state(session)["edits"]


def test_without_any_source_the_gold_is_made_by_hand(make_session: MakeDesk, suite: Path) -> None:
    session = make_session()
    typed(session, A3="50")
    session.compute()
    assert not state(session)["preview"]["has_gold"]
    with pytest.raises(UsageError, match="no source gives the answer"):
        session.save(session.revision)
    typed(session, book="gold", B3="100")
    assert state(session)["edits"][1] == "gold: 'Sheet'!B3 = 100"
    session.compute()
    assert any("only 1 independent" in line for line in state(session)["preview"]["warnings"])
    session.save(session.revision)
    assert values((suite / "spreadsheet/7/4_7_answer.xlsx").read_bytes())[3, 2] == 100


def test_a_disagreement_is_shown_in_its_cells(make_session: MakeDesk) -> None:
    wrong = gold(1, 50, 3, 5)
    right = gold(1, 2, 3, 4)
    session = make_session(results=[gold(1, 50, 3, 4), wrong, right, right], **AGREEING)
    typed(session, A3="50")
    session.compute()
    assert session.window("gold", "Sheet", (1, 1))["differs"] == ["B5"]
    assert any("b says something else" in line for line in state(session)["preview"]["warnings"])


def test_a_reference_that_gets_the_old_case_wrong_is_named(make_session: MakeDesk) -> None:
    new = gold(1, 50, 3, 4)
    session = make_session(results=[new, new, gold(1, 2, 3, 4), gold(1, 2, 3, 9)], **AGREEING)
    typed(session, A3="50")
    session.compute()
    warnings = state(session)["preview"]["warnings"]
    assert [line for line in warnings if line.startswith("b gets the unchanged case 1 wrong")]
    assert not [line for line in warnings if line.startswith("a gets")]


def test_undo_takes_back_one_change_at_a_time(make_session: MakeDesk) -> None:
    session = make_session()
    typed(session, A3="50", A4="60")
    typed(session, A5="70")
    session.undo(session.revision)
    assert state(session)["edits"] == ["'Sheet'!A3 = 50", "'Sheet'!A4 = 60"]
    session.undo(session.revision)
    assert state(session)["edits"] == []
    session.undo(session.revision)
    assert session.window("input", "Sheet", (1, 1))["rows"][2][0] == "2"


def test_rows_are_inserted_and_deleted(make_session: MakeDesk) -> None:
    session = make_session()
    change = {"book": "input", "sheet": "Sheet"}
    session.change(session.revision, {**change, "insert_rows": 3, "count": 2})
    column = [row[0] for row in session.window("input", "Sheet", (1, 1))["rows"]]
    assert column[:7] == ["number", "1", "", "", "2", "3", "4"]
    session.change(session.revision, {**change, "delete_rows": 2})
    assert session.window("input", "Sheet", (1, 1))["rows"][1][0] == ""
    with pytest.raises(UsageError, match="follow those of the input"):
        session.change(session.revision, {"book": "gold", "sheet": "Sheet", "delete_rows": 2})


def test_a_background_keeps_what_the_cells_hold(make_session: MakeDesk) -> None:
    session = make_session()
    change = {"book": "input", "sheet": "Sheet", "fill": "#ff0000", "range": "A2:A3"}
    session.change(session.revision, change)
    shown = session.window("input", "Sheet", (1, 1))
    assert "background-color:#FF0000" in shown["styles"]["A3"]
    assert [row[0] for row in shown["rows"][1:3]] == ["1", "2"]


def test_a_change_to_what_was_not_seen_is_refused(make_session: MakeDesk) -> None:
    """The same annotator in two windows: the second one has not seen the first one's change."""
    first = make_session()
    typed(first, A3="50")
    second = make_session()
    typed(second, A4="60")
    with pytest.raises(ConflictError, match="another window"):
        typed(first, A3="51")
    # What it has seen since, it may change.
    assert state(first)["edits"] == ["'Sheet'!A3 = 50", "'Sheet'!A4 = 60"]
    typed(first, A3="51")
    assert state(make_session())["edits"][-1] == "'Sheet'!A3 = 51"


def test_two_annotators_do_not_touch_each_others_work(make_session: MakeDesk, suite: Path) -> None:
    ann = make_session("Ann", results=results(1, 50, 3, 4), **AGREEING)
    bob = make_session("Bob", results=results(1, 2, 33, 4), **AGREEING)
    typed(ann, A3="50")
    typed(bob, A4="33")
    ann.compute()
    bob.compute()
    assert {ann.save(ann.revision)["number"], bob.save(bob.revision)["number"]} == {4, 5}
    task = load_suite(suite).task(7)
    inputs = [values(case.input_path.read_bytes()) for case in task.cases[3:]]
    assert (inputs[0][3, 1], inputs[0][4, 1]) == (50, 3)
    assert (inputs[1][3, 1], inputs[1][4, 1]) == (2, 33)


def test_a_draft_that_was_saved_elsewhere_is_not_written_to(make_session: MakeDesk) -> None:
    first = make_session()
    typed(first, A3="50")
    second = make_session(results=results(1, 50, 3, 4), **AGREEING)
    second.compute()
    second.save(second.revision)
    with pytest.raises(ConflictError, match="saved or discarded"):
        typed(first, A3="51")


def test_another_case_to_begin_from(make_session: MakeDesk) -> None:
    session = make_session()
    session.start_from(session.revision, 3)
    assert session.window("input", "Sheet", (1, 1))["rows"][1][0] == "7"
    typed(session, A2="8")
    with pytest.raises(UsageError, match="begins from another case"):
        session.start_from(session.revision, 1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "must name a workbook and a sheet"),
        ({"book": "other", "sheet": "Sheet"}, "must name a workbook"),
        ({"book": "input", "sheet": "Sheet"}, "must have one of"),
        ({"book": "input", "sheet": "Sheet", "cells": "A1"}, "cells are changed"),
        ({"book": "input", "sheet": "Sheet", "cells": [{"cell": "A1"}]}, "an address and text"),
        (
            {"book": "input", "sheet": "Sheet", "cells": [{"cell": "XFE1", "text": ""}]},
            "is not a cell",
        ),
        (
            {"book": "input", "sheet": "Sheet", "cells": [{"cell": "A0", "text": ""}]},
            "is not a cell",
        ),
        ({"book": "input", "sheet": "Sheet", "fill": "red", "range": "A1"}, "is not a colour"),
        ({"book": "input", "sheet": "Sheet", "fill": "ff0000", "range": "A1:XFD9999"}, "in one go"),
        ({"book": "input", "sheet": "Sheet", "insert_rows": 0}, "1 or more"),
        ({"book": "input", "sheet": "Sheet", "insert_rows": True}, "1 or more"),
    ],
)
def test_what_is_not_a_change_is_refused(
    make_session: MakeDesk, change: dict[str, Any], said: str
) -> None:
    session = make_session()
    with pytest.raises(UsageError, match=said):
        session.change(session.revision, change)
    assert session.draft is None


def test_a_change_that_fits_no_sheet_leaves_no_draft(make_session: MakeDesk) -> None:
    session = make_session()
    with pytest.raises(WorkbookError, match="no worksheet"):
        session.change(session.revision, {"book": "input", "sheet": "Nix", "cells": []})
    assert session.draft is None


@pytest.mark.parametrize(
    ("text", "value"),
    [("5", 5), ("'5", "5"), ("  x ", "  x "), ("TRUE", True), ("", None), ("#N/A", "#N/A")],
)
def test_what_is_typed_becomes_what_a_spreadsheet_makes_of_it(
    make_session: MakeDesk, text: str, value: object
) -> None:
    session = make_session()
    typed(session, A3=text)
    held = values(session.books().input.data).get((3, 1))
    assert getattr(held, "code", held) == value
    # What the editor holds makes the same cell again.
    shown = session.window("input", "Sheet", (1, 1))
    assert shown["raw"].get("A3", shown["rows"][2][0]) == text


def test_a_formula_without_engines_has_no_value(make_session: MakeDesk) -> None:
    session = make_session()
    typed(session, D2="=SUM(A2:A5)")
    shown = session.window("input", "Sheet", (1, 1))
    assert (shown["rows"][1][3], shown["raw"]["D2"]) == ("(no value)", "=SUM(A2:A5)")
    assert open_workbook(session.books().input.data).sheet_names == ("Sheet",)


def test_a_colour_of_the_answer_moves_like_a_value(make_session: MakeDesk, suite: Path) -> None:
    session = make_session(results=results(1, 50, 3, 4), **AGREEING)
    typed(session, A3="50")
    change = {"book": "gold", "sheet": "Sheet", "fill": "#ffff00", "range": "B5"}
    session.change(session.revision, change)
    assert session.window("gold", "Sheet", (1, 1))["rows"][4][1] == "8"
    session.compute()
    moved = state(session)["preview"]["moved"]
    assert [(x["cell"], x["before"], x["after"]) for x in moved] == [
        ("B3", "4", "100"),
        ("B5", "no fill", "#FFFF00"),
    ]
    assert set(session.window("gold", "Sheet", (1, 1))["marked"]) == {"B3", "B5"}
    session.save(session.revision)
    saved = open_workbook(suite / "spreadsheet/7/4_7_answer.xlsx")
    assert colour_changes(open_workbook(suite / "spreadsheet/7/1_7_answer.xlsx"), saved, ANSWER)


def test_conditional_formats_are_reported() -> None:
    def fill(book: Any) -> None:
        red = DifferentialStyle(fill=PatternFill(bgColor="FF0000"))
        rule = Rule("cellIs", operator="lessThan", formula=["1"], dxf=red)
        book.active.conditional_formatting.add("B1:B19", rule)

    (line,) = rule_lines(open_workbook(make_book(fill)), "Sheet")
    assert line.startswith("B1:B19: cellIs lessThan 1 paints ")
    assert "#FF0000" in line


def test_a_computation_that_fails_leaves_the_draft_and_can_be_tried_again(
    make_session: MakeDesk,
) -> None:
    right = results(1, 50, 3, 4)
    session = make_session(results=[SandboxError("the daemon is gone"), *right], **AGREEING)
    typed(session, A3="50")
    with pytest.raises(SandboxError):
        session.compute()
    assert (session.preview, state(session)["edits"]) == (None, ["'Sheet'!A3 = 50"])
    assert session.compute() is not None
    assert session.save(session.revision)["number"] == 4


def test_references_are_tried_before_anything_is_changed(make_session: MakeDesk) -> None:
    session = make_session(results=[gold(1, 2, 3, 4), gold(1, 2, 3, 9)], **AGREEING)
    session.warm_up()
    assert [line.split(":")[0] for line in session.distrusted] == [
        "b gets the unchanged case 1 wrong"
    ]
    assert session.draft is None
    # What fails is told when it matters.
    broken = make_session(results=[SandboxError("gone"), SandboxError("gone")], **AGREEING)
    broken.warm_up()
    typed(broken, A3="50")
    with pytest.raises(SandboxError):
        broken.compute()
