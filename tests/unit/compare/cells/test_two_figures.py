"""Collateral damage, and answers that follow changed inputs: a workbook for each class."""

from __future__ import annotations

import datetime as dt
import io
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import openpyxl
import pytest
from openpyxl.chart import BarChart, Reference
from openpyxl.styles import Font
from openpyxl.workbook.defined_name import DefinedName

from judge.compare.cells.answer_range import prepare
from judge.compare.cells.collateral import Collateral, Harm, find_collateral
from judge.compare.cells.comparison import Comparison, DifferenceClass, Dynamic, Reason
from judge.compare.cells.computing import NoEngines, compute_and_check
from judge.compare.cells.dynamic import constant_answer, measure_dynamic
from judge.compare.cells.dynamic_finding import DynamicFinding
from judge.compare.cells.options import range_spec
from judge.compare.cells.render import comparison_to_json
from judge.compare.cells.requested_formula import Demand, demand_of
from judge.compare.cells.sides import OtherCase, ScopeSources
from judge.compare.profiles import get_profile
from judge.core.submission import Origin
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, WHOLE_SHEET, cell_name, parse_cell
from judge.workbook.cell import CellRange, CellRef, CellValue, ComputedValues
from judge.workbook.reader import Workbook, open_workbook

Cells = dict[str, Any]


def book(cells: Cells, **sheets: Cells) -> Workbook:
    made = openpyxl.Workbook()
    first = made.worksheets[0]
    first.title = "S"
    for name, value in cells.items():
        first[name] = value
    for title, held in sheets.items():
        sheet = made.create_sheet(title)
        for name, value in held.items():
            sheet[name] = value
    return saved(made)


def saved(made: openpyxl.Workbook) -> Workbook:
    data = io.BytesIO()
    made.save(data)
    return open_workbook(data.getvalue())


def area(text: str, sheet: str = "S") -> CellRange:
    first, last = (text.split(":") * 2)[:2]
    one, two = parse_cell(first), parse_cell(last)
    assert one
    assert two
    return CellRange(sheet, *one, *two)


# -- collateral damage -----------------------------------------------------------------------------

INPUT: Cells = {"A1": "item", "B1": 2, "A2": "more", "B2": 3, "A3": "total", "B3": "=SUM(B1:B2)"}
GOLD: Cells = {**INPUT, "C1": 4}


def harm(
    output: Cells, gold: Cells = GOLD, answer: str = "C1", before: Cells = INPUT
) -> Collateral:
    ranges = [area(answer)]
    return find_collateral(book(before), book(gold), book(output), ranges, ranges)


def counts(found: Collateral) -> dict[str, int]:
    return {kind.value: n for kind, n in found.counts.items() if n}


def test_an_answer_alone_is_not_damage() -> None:
    found = harm({**INPUT, "C1": 7})
    assert (found.damage, counts(found), found.exposed) == (0, {}, 6)


def test_cells_that_were_overwritten_and_erased_are_counted() -> None:
    found = harm({**GOLD, "A1": "thing", "B1": None})
    assert counts(found) == {"overwritten": 1, "erased": 1}
    assert found.damage == 2
    assert [(each.harm.value, each.cell) for each in found.cells] == [
        ("overwritten", "A1"),
        ("erased", "B1"),
    ]
    assert "first: S!A1" in str(found)


def test_a_formula_that_became_its_value_is_counted_apart_as_well() -> None:
    found = harm({**GOLD, "B3": 5})
    assert (counts(found), found.formulas_lost) == ({"overwritten": 1}, 1)


def test_a_formula_counts_by_its_text_without_dollars_spaces_and_case() -> None:
    assert harm({**GOLD, "B3": "= sum($B$1:B2)"}).damage == 0
    assert harm({**GOLD, "B3": "=SUM(B1:B1)"}).damage == 1


def test_a_constant_counts_as_the_standard_profile_says() -> None:
    assert harm({**GOLD, "B1": 2.001}).damage == 0
    assert harm({**GOLD, "B1": 2.1}).damage == 1


def test_a_number_that_became_text_is_another_content_and_a_date_is_a_number() -> None:
    assert counts(harm({**GOLD, "B1": "2"})) == {"overwritten": 1}
    day = {**GOLD, "D1": dt.date(2024, 1, 3)}
    assert counts(harm({**GOLD, "D1": "2024-01-03"}, day, before=day)) == {"overwritten": 1}
    serial = {**GOLD, "D1": 45294}
    assert counts(harm(serial, day, before=day)) == {}


def test_helper_cells_are_no_damage_and_are_counted() -> None:
    found = harm({**GOLD, "D1": 1, "D2": 2})
    assert (found.damage, counts(found)) == (0, {"added": 2})


def test_the_change_of_the_gold_is_right_and_another_is_counted_apart() -> None:
    gold = {**GOLD, "A1": "changed"}
    assert counts(harm(gold, gold)) == {"as_gold": 1}
    found = harm({**GOLD, "A1": "in another way"}, gold)
    assert (found.damage, counts(found)) == (0, {"other_than_gold": 1})


def test_a_sheet_that_was_lost_is_one_feature() -> None:
    before, gold = book(INPUT, Notes={"A1": 1, "A2": 2}), book(GOLD, Notes={"A1": 1, "A2": 2})
    found = find_collateral(before, gold, book(GOLD), [area("C1")], [area("C1")])
    assert (found.features, found.damage, counts(found)) == (1, 1, {})


def _furnished(
    cells: Cells,
    name: str | None = "S!$B$1:$B$2",
    *,
    hidden: str = "Lists",
    charts: int = 1,
    protects: bool = True,
) -> Workbook:
    """A workbook with a name, a chart with title, series and legend, two more sheets; protected."""
    made = openpyxl.load_workbook(io.BytesIO(book(cells, Lists={"A1": 1}, Log={"A1": 1}).data))
    for sheet in made.worksheets:
        sheet.sheet_state = "hidden" if sheet.title in hidden.split() else "visible"
    made["S"].protection.sheet = made["Log"].protection.sheet = protects
    if name is not None:
        made.defined_names["Rates"] = DefinedName("Rates", attr_text=name)
    chart = BarChart()
    chart.title = "T"
    chart.add_data(Reference(made["S"], min_col=2, min_row=1, max_row=2))
    if charts:
        made.worksheets[0].add_chart(chart, "G9")
    return saved(made)


def _without(workbook: Workbook, sheet: str) -> Workbook:
    made = openpyxl.load_workbook(io.BytesIO(workbook.data))
    del made[sheet]
    return saved(made)


@pytest.mark.parametrize(
    ("make_output", "features"),
    [
        (partial(_furnished, {**GOLD, "C1": 7}), 0),
        (partial(_furnished, GOLD, hidden=""), 1),
        (partial(_furnished, GOLD, hidden="Lists Log"), 1),
        (partial(_furnished, GOLD, "'S'!B1:$B$2"), 0),
        (partial(_furnished, GOLD, "S!$B$1"), 1),
        (partial(_furnished, GOLD, "Lists!$B$1:$B$2"), 1),
        (partial(_furnished, GOLD, None), 1),
        (partial(_furnished, GOLD, charts=0), 1),
        (partial(_furnished, GOLD, protects=False), 2),
        (lambda: _without(_furnished(GOLD), "Log"), 1),
    ],
)
def test_each_lost_or_redefined_feature_counts_once(
    make_output: Callable[[], Workbook], features: int
) -> None:
    before, gold = _furnished(INPUT), _furnished(GOLD)
    found = find_collateral(before, gold, make_output(), [area("C1")], [area("C1")])
    assert (found.features, found.damage, counts(found)) == (features, features, {})


def test_a_name_may_change_as_in_the_gold_or_with_its_rows() -> None:
    before, gold = _furnished(INPUT), _furnished(GOLD, "S!$B$1:$B$3")
    for name in ("S!$B$1:$B$3", "S!$B$1:$B$9"):
        found = find_collateral(before, gold, _furnished(GOLD, name), [area("C1")], [area("C1")])
        assert found.features == 0
    down = {"A1": "new", **{f"{k[0]}{int(k[1:]) + 1}": value for k, value in ROWS.items()}}
    down |= {f"B{n + 1}": f"=C{n + 1}*2" for n in range(1, 9)}
    moved = _furnished(down, "S!$B$2:$B$3")
    found = find_collateral(_furnished(ROWS), _furnished(ROWS), moved, [area("F1")], [area("F1")])
    assert (found.moved, found.features) == (1, 0)


def test_a_new_sheet_is_an_addition() -> None:
    found = find_collateral(
        book(INPUT), book(GOLD), book(GOLD, Extra={"A1": 1}), [area("C1")], [area("C1")]
    )
    assert (found.damage, counts(found)) == (0, {"added": 1})


ROWS: Cells = {f"A{n}": f"row {n}" for n in range(1, 9)} | {
    f"B{n}": f"=C{n}*2" for n in range(1, 9)
}


def test_a_row_that_was_inserted_is_one_shift() -> None:
    down = {"A1": "new", **{f"A{n + 1}": f"row {n}" for n in range(1, 9)}}
    down |= {f"B{n + 1}": f"=C{n + 1}*2" for n in range(1, 9)}
    found = harm(down, ROWS, "F1", ROWS)
    assert (found.moved, found.damage, counts(found)) == (1, 0, {"added": 1})


def test_a_row_that_was_deleted_is_erased_and_shifts_the_others() -> None:
    up = {f"A{n}": f"row {n if n < 3 else n + 1}" for n in range(1, 8)}
    up |= {f"B{n}": f"=C{n}*2" for n in range(1, 8)}
    found = harm(up, ROWS, "F1", ROWS)
    assert (found.moved, counts(found)) == (1, {"erased": 2})


def test_a_column_that_was_inserted_is_one_shift() -> None:
    before = {f"{c}{n}": f"{c}{n}" for c in "ABCD" for n in range(1, 4)}
    after = {f"{b}{n}": f"{a}{n}" for a, b in zip("ABCD", "ACDE", strict=True) for n in range(1, 4)}
    found = harm(after, before, "H1", before)
    assert (found.moved, found.damage) == (1, 0)


def test_rows_that_were_sorted_are_overwritten_and_not_shifted() -> None:
    turned = {f"A{n}": f"row {9 - n}" for n in range(1, 9)}
    plain = {f"A{n}": f"row {n}" for n in range(1, 9)}
    found = harm(turned, plain, "F1", plain)
    assert (found.moved, counts(found)) == (0, {"overwritten": 8})


def test_looks_are_counted_apart() -> None:
    def styled(bold: bool) -> Workbook:
        made = openpyxl.load_workbook(io.BytesIO(book(GOLD).data))
        made["S"]["A1"].font = Font(bold=bold)
        return saved(made)

    found = find_collateral(book(INPUT), book(GOLD), styled(True), [area("C1")], [area("C1")])
    assert (found.style, found.damage) == (1, 0)
    found = find_collateral(book(INPUT), styled(True), styled(True), [area("C1")], [area("C1")])
    assert found.style == 0


def test_cells_that_a_merged_range_hides_have_no_look() -> None:
    """openpyxl saves them without the look that Excel gave them."""

    def merged(bold: Sequence[str], window: str = "A1:B1") -> Workbook:
        made = openpyxl.load_workbook(io.BytesIO(book(GOLD).data))
        for name in bold:
            made["S"][name].font = Font(bold=True)
        # Not merge_cells, which takes the look of the hidden cells away.
        made["S"].merged_cells.add(window)
        return saved(made)

    sides = [area("C1")], [area("C1")]
    before = merged(["A1", "B1"])
    assert find_collateral(before, before, merged(["A1"]), *sides).style == 0
    assert find_collateral(before, before, merged(["B1"]), *sides).style == 1
    # B1 is visible in the output.
    assert find_collateral(before, before, merged(["A1"], "A2:B2"), *sides).style == 1


# -- answers that follow ---------------------------------------------------------------------------


class Arithmetic:
    """Computes sums, products, comparisons, IF and references to other cells."""

    def fill(
        self,
        workbook: Workbook,
        ranges: Sequence[CellRange],
        *,
        origin: Origin,
        like: Workbook | None = None,
    ) -> ComputedValues:
        values: dict[CellRef, CellValue] = {}
        for each in ranges:
            for key in workbook.sheet(each.sheet).formula_keys(each.window):
                row, column = key >> COLUMN_BITS, key & COLUMN_MASK
                value = _value(workbook, each.sheet, cell_name(row, column))
                values[CellRef(each.sheet, row, column)] = value
        return ComputedValues(values)

    answer_conditions = NoEngines.answer_conditions


def _value(workbook: Workbook, sheet: str, name: str) -> CellValue:
    place = parse_cell(name)
    assert place
    key = (place[0] << COLUMN_BITS) | place[1]
    read = workbook.sheet(sheet)
    stored = read.values(WHOLE_SHEET).get(key)
    formula = read.formula(key)
    if formula is None:
        return stored
    text = re.sub(r"SUM\(([A-Z]+)(\d+):[A-Z]+(\d+)\)", _terms, formula[1:].replace("$", ""))
    text = re.sub(r"(?<![<>])=", "==", text).replace("IF(", "_if(").replace("TODAY()", "1")

    def of(match: re.Match[str]) -> str:
        return repr(_value(workbook, sheet, match[0]) or 0)

    text = re.sub(r"\b[A-Z]+\d+\b", of, text)
    return eval(text, {"_if": lambda test, one, two: one if test else two, "datetime": dt})  # type: ignore[no-any-return]


def _terms(match: re.Match[str]) -> str:
    rows = range(int(match[2]), int(match[3]) + 1)
    return "(" + "+".join(f"{match[1]}{row}" for row in rows) + ")"


BEFORE: Cells = {"A1": 20, "A2": 30, "B1": "note"}
RIGHT: Cells = {**BEFORE, "C1": "=SUM(A1:A2)"}
OTHER: Cells = {"A1": 5, "A2": 6, "B1": "note"}


def case(before: Cells = OTHER, gold: Cells | None = None, number: int = 2) -> OtherCase:
    known = {**before, "C1": 11} if gold is None else gold
    return OtherCase(number, lambda: book(before), lambda: book(known))


def follow(
    output: Cells,
    gold: Cells = RIGHT,
    others: Sequence[OtherCase] = (),
    *,
    before: Cells = BEFORE,
    answer: str = "C1",
    profile: str = "standard",
) -> DynamicFinding:
    ranges = [area(answer)]
    return measure_dynamic(
        ScopeSources(book(before), others=tuple(others)),
        book(gold),
        book(output),
        (ranges, ranges),
        profile=get_profile(profile),
        compute=Arithmetic(),
        demand=Demand.NOTHING,
    )


def test_an_answer_that_follows_another_case_is_live() -> None:
    found = follow({**BEFORE, "C1": "=A1+A2"}, others=[case()])
    assert found.kind is Dynamic.LIVE
    ((trial,)) = found.trials
    assert (trial.change.case, trial.moved, trial.followed) == (2, 1, 1)
    assert trial.to_json()["cells"] == [
        {"cell": "'S'!A1", "value": 5},
        {"cell": "'S'!A2", "value": 6},
    ]


def test_a_constant_is_hard_coded_which_is_worded_as_a_fact() -> None:
    found = follow({**BEFORE, "C1": 50}, others=[case()])
    assert found.kind is Dynamic.HARD_CODED
    assert "not a fault" in str(found)
    assert not found.is_fault


def test_a_formula_that_depends_on_something_else_is_stale() -> None:
    found = follow({**BEFORE, "D1": 50, "C1": "=D1"}, others=[case()])
    assert found.kind is Dynamic.STALE


def test_a_formula_that_is_right_by_chance_is_partial() -> None:
    first, second = case(), case({**BEFORE, "A1": 1}, {**BEFORE, "A1": 1, "C1": 31}, 3)
    found = follow({**BEFORE, "C1": "=IF(A2=30,A1+A2,0)"}, others=[first, second])
    assert found.kind is Dynamic.PARTIAL
    assert [trial.follows for trial in found.trials] == [False, True]


def test_a_cell_that_moves_where_the_gold_stays_is_a_false_move() -> None:
    gold = {**RIGHT, "C2": "=IF(A1>0,1,2)"}
    expected = {**OTHER, "C1": 11, "C2": 1}
    output = {**RIGHT, "C2": "=IF(A1=20,1,2)"}
    found = follow(output, gold, [case(gold=expected)], answer="C1:C2")
    assert found.kind is Dynamic.PARTIAL
    assert [(each.moved, each.followed, each.false_moves) for each in found.trials] == [(1, 1, 1)]


def test_without_another_case_single_numbers_are_changed() -> None:
    found = follow({**BEFORE, "C1": "=A1+A2"})
    assert (found.kind, [trial.change.case for trial in found.trials]) == (
        Dynamic.LIVE,
        [None, None],
    )
    changed = {each.to_json()["cells"][0]["cell"]: each for each in found.trials}
    assert changed["'S'!A1"].to_json()["cells"] == [{"cell": "'S'!A1", "value": 27}]
    assert follow({**BEFORE, "C1": 50}).kind is Dynamic.HARD_CODED


ROWWISE: Cells = {f"{column}{row}": 10 + row for column in "AB" for row in range(1, 9)}
PRODUCTS: Cells = {f"C{row}": f"=A{row}*B{row}" for row in range(1, 9)}


@pytest.mark.parametrize("row", range(1, 9))
@pytest.mark.parametrize("formula", ["", "=A{row}*{number}"])
def test_one_cell_that_does_not_follow_is_seen_among_many_that_do(row: int, formula: str) -> None:
    number = 10 + row
    odd = formula.format(row=row, number=number) or number * number
    gold = {**ROWWISE, **PRODUCTS}
    found = follow({**gold, f"C{row}": odd}, gold, before=ROWWISE, answer="C1:C8")
    assert found.kind is Dynamic.PARTIAL
    assert follow(gold, gold, before=ROWWISE, answer="C1:C8").kind is Dynamic.LIVE


def test_a_date_moves_by_a_day() -> None:
    before = {"A1": dt.datetime(2024, 2, 28)}  # noqa: DTZ001  a cell has no zone
    gold = {**before, "C1": "=A1"}
    found = follow(gold, gold, before=before)
    assert found.kind is Dynamic.LIVE
    assert found.trials[0].to_json()["cells"][0]["value"] == {"date": "2024-02-29T00:00:00"}


@pytest.mark.parametrize(
    ("output", "gold", "before", "reason"),
    [
        (RIGHT, {**BEFORE, "C1": 50}, BEFORE, Reason.STATIC),
        (RIGHT, RIGHT, RIGHT, Reason.STATIC),
        ({**BEFORE, "C1": 51}, {**BEFORE, "C1": "=A1+A2+TODAY()"}, BEFORE, Reason.CHANGING),
        ({**BEFORE, "C1": 1}, RIGHT, BEFORE, Reason.WRONG_BEFORE),
        ({**RIGHT, "A1": None, "A3": 20, "A2": 30, "C1": "=A2+A3"}, RIGHT, BEFORE, None),
        ({**BEFORE, "C1": 3}, {**BEFORE, "C1": "=1+2"}, BEFORE, Reason.NO_INPUT),
    ],
)
def test_what_cannot_be_measured_says_why(
    output: Cells, gold: Cells, before: Cells, reason: str | None
) -> None:
    found = follow(output, gold, before=before)
    if reason is None:
        # One input is still where it was, and the answer follows it.
        assert found.kind is Dynamic.LIVE
        assert len(found.trials) == 1
        return
    assert (found.kind, found.reason) == (Dynamic.NOT_MEASURABLE, reason)


def test_rows_in_any_order_are_not_measured() -> None:
    spec = range_spec("'S'!C1", None, {"unordered_rows": True, "dynamic": "note"})
    assert figures(spec.options, RIGHT)["dynamic"]["reason"] == Reason.UNORDERED


def test_a_case_with_other_formulas_is_not_a_change_of_values() -> None:
    before = {**BEFORE, "B2": "=A1"}
    other = case({**OTHER, "B2": "=A2"})
    found = follow({**before, "C1": 50}, {**before, "C1": "=SUM(A1:A2)"}, [other], before=before)
    assert {trial.change.case for trial in found.trials} == {None}


def test_a_case_whose_gold_is_not_what_the_gold_becomes_says_nothing() -> None:
    found = follow(RIGHT, others=[case(gold={**OTHER, "C1": 12})])
    assert {trial.change.case for trial in found.trials} == {None}


def test_a_copy_of_the_input_is_a_constant() -> None:
    found = follow({**BEFORE, "E1": 20, "E2": 30, "C1": "=SUM(E1:E2)"}, others=[case()])
    assert found.kind is Dynamic.STALE


def test_a_gold_is_live_and_as_constants_hard_coded() -> None:
    gold = book(RIGHT)
    fixed = constant_answer(gold, [area("C1")], Arithmetic())
    assert fixed is not None
    assert fixed.sheet("S").formula_keys(area("C1").window) == []
    ranges = [area("C1")]
    kinds = [
        measure_dynamic(
            ScopeSources(book(BEFORE), others=(case(),)),
            gold,
            output,
            (ranges, ranges),
            profile=get_profile("standard"),
            compute=Arithmetic(),
            demand=Demand.NOTHING,
        ).kind
        for output in (gold, fixed)
    ]
    assert kinds == [Dynamic.LIVE, Dynamic.HARD_CODED]


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("I need a formula for the total", Demand.FORMULA),
        ("write a macro that adds a formula", Demand.PROGRAM),
        ("what is the total?", Demand.NOTHING),
        (None, Demand.FORMULA),
    ],
)
def test_a_question_says_what_it_asks_for(question: str | None, asked: Demand) -> None:
    assert demand_of(question) is asked


# -- as options of a comparison --------------------------------------------------------------------


def compared(
    options: Mapping[str, object], output: Cells, question: str | None = None
) -> Comparison:
    gold, answer = book(RIGHT), book(output)
    spec = range_spec("'S'!C1", None, {k: v for k, v in options.items() if "answer" not in k})
    return compute_and_check(
        prepare(spec, gold=gold, output=answer),
        gold,
        answer,
        compute=Arithmetic(),
        origin=Origin.FINISHED,
        profile=get_profile("standard"),
        sources=ScopeSources(book(BEFORE), question, others=(case(),)),
    ).comparison


def figures(
    options: Mapping[str, object], output: Cells, question: str | None = None
) -> dict[str, Any]:
    return dict(comparison_to_json(compared(options, output, question)))


DAMAGED: Cells = {**RIGHT, "B1": "gone"}
CONSTANT: Cells = {**BEFORE, "C1": 50}


def test_off_nothing_is_on_record() -> None:
    record = figures({}, DAMAGED)
    assert "collateral" not in record
    assert "dynamic" not in record
    assert record["equal"]


def test_a_note_changes_no_verdict() -> None:
    found = compared({"collateral": "note", "dynamic": "note"}, {**CONSTANT, "B1": "gone"})
    assert found.equal
    assert any("1 cells were overwritten" in note for note in found.notes)
    record = comparison_to_json(found)
    assert (record["collateral"]["damage"], record["dynamic"]["class"]) == (1, "hard_coded")


def test_damage_can_be_part_of_the_verdict() -> None:
    found = compared({"collateral": "fail"}, DAMAGED)
    assert not found.equal
    assert dict(found.difference_counts) == {DifferenceClass.COLLATERAL: 1}
    assert compared({"collateral": "fail"}, RIGHT).equal


@pytest.mark.parametrize(
    ("question", "accepted"),
    [("give me a formula", False), ("what is the total?", True), ("write a macro", True)],
)
def test_a_constant_fails_only_where_a_formula_is_asked_for(question: str, accepted: bool) -> None:
    found = compared({"dynamic": "fail"}, CONSTANT, question)
    assert found.equal is accepted
    assert compared({"dynamic": "fail"}, RIGHT, question).equal


def test_only_the_headline_is_damage() -> None:
    assert {Harm.ADDED, Harm.OTHER, Harm.AS_GOLD}.isdisjoint(
        each.harm for each in harm({**GOLD, "A1": "thing", "B1": None}).cells
    )
