"""The two figures on unusual workbooks: one workbook for each edge case."""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Callable, Sequence

import openpyxl
import pytest
from openpyxl.styles import Font
from openpyxl.utils.datetime import CALENDAR_MAC_1904
from openpyxl.workbook.defined_name import DefinedName
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.formula import ArrayFormula, DataTableFormula
from openpyxl.worksheet.table import Table

from judge.compare.cells.collateral import find_collateral
from judge.compare.cells.comparison import Dynamic, Reason
from judge.compare.cells.dynamic import measure_dynamic
from judge.compare.cells.dynamic_finding import DynamicFinding
from judge.compare.cells.requested_formula import Demand
from judge.compare.cells.sides import OtherCase, ScopeSources
from judge.compare.profiles import get_profile
from judge.core.submission import Origin
from judge.workbook.address import COLUMN_BITS
from judge.workbook.cell import CellRange, CellRef, ComputedValues
from judge.workbook.reader import Workbook
from tests.unit.compare.cells.test_two_figures import (
    INPUT,
    Arithmetic,
    Cells,
    area,
    book,
    case,
    counts,
    follow,
    harm,
    saved,
)

# -- collateral damage: lines that were inserted or deleted ----------------------------------------

TABLE: Cells = {f"{c}{n}": f"{c} of {n}" for c in "ABC" for n in range(1, 9)}


def shifted(cells: Cells, rows: Callable[[int], int], right: int = 0) -> Cells:
    moved = {}
    for name, value in cells.items():
        column, row = name[0], int(name[1:])
        moved[f"{chr(ord(column) + right)}{rows(row)}"] = value
    return moved


def inserted_at(row: int) -> Callable[[int], int]:
    return lambda number: number + (number >= row)


def test_a_row_is_inserted_and_a_column_of_helpers_is_added() -> None:
    output = shifted(TABLE, inserted_at(3)) | {f"D{n}": n for n in range(1, 10)}
    found = harm(output, TABLE, "H1", TABLE)
    assert (found.moved, found.damage, counts(found)) == (1, 0, {"added": 9})


def test_a_row_is_inserted_and_a_column_is_overwritten() -> None:
    output = shifted(TABLE, inserted_at(3)) | {f"C{n}": "x" for n in range(1, 10)}
    found = harm(output, TABLE, "H1", TABLE)
    assert (found.moved, counts(found)) == (1, {"overwritten": 8, "added": 1})


def test_a_row_and_a_column_are_inserted() -> None:
    found = harm(shifted(TABLE, inserted_at(1), right=1), TABLE, "H1", TABLE)
    assert (found.moved, found.damage, counts(found)) == (2, 0, {})


def test_a_row_is_inserted_among_equal_rows() -> None:
    before: Cells = {f"A{n}": "same" for n in range(1, 7)} | {"A7": "last"}
    found = harm(shifted(before, inserted_at(1)) | {"A1": "title"}, before, "H1", before)
    assert (found.moved, found.damage, counts(found)) == (1, 0, {"added": 1})


def test_rows_are_inserted_in_two_places() -> None:
    output = shifted(shifted(TABLE, inserted_at(6)), inserted_at(2))
    found = harm(output, TABLE, "H1", TABLE)
    assert (found.moved, found.damage) == (2, 0)


def test_a_row_that_was_cleared_is_erased_and_nothing_has_moved() -> None:
    found = harm({k: v for k, v in TABLE.items() if k[1:] != "4"}, TABLE, "H1", TABLE)
    assert (found.moved, counts(found)) == (0, {"erased": 3})


def test_the_gold_inserts_the_row_and_so_does_the_output() -> None:
    gold = shifted(TABLE, inserted_at(3)) | {"A3": "new"}
    found = harm(gold, gold, "H1", TABLE)
    assert (found.damage, counts(found)) == (0, {"as_gold": 1})


def test_the_gold_deletes_a_row_that_the_output_keeps() -> None:
    gold = shifted({k: v for k, v in TABLE.items() if k[1:] != "2"}, lambda n: n - (n > 2))
    found = harm(TABLE, gold, "H1", TABLE)
    assert (found.moved, found.damage) == (0, 0)


def test_a_total_above_the_row_that_was_inserted_reads_further_and_is_not_damage() -> None:
    before = TABLE | {"D1": "=SUM(E2:E8)"}
    output = shifted(TABLE, inserted_at(5)) | {"D1": "=SUM(E2:E9)"}
    found = harm(output, before, "H1", before)
    assert (found.moved, found.damage) == (1, 0)


def test_looks_go_with_their_row() -> None:
    def styled(cells: Cells, bold: Sequence[str]) -> Workbook:
        made = openpyxl.load_workbook(io.BytesIO(book(cells).data))
        for name in bold:
            made["S"][name].font = Font(bold=True)
        return saved(made)

    before, down = styled(TABLE, ["A4"]), shifted(TABLE, inserted_at(2))
    where = [area("H1")]
    assert find_collateral(before, before, styled(down, ["A5"]), where, where).style == 0
    assert find_collateral(before, before, styled(down, ["A5", "B5"]), where, where).style == 1


# -- collateral damage: other workbooks ------------------------------------------------------------


def test_a_sheet_that_is_gone_is_not_taken_for_one_whose_name_begins_alike() -> None:
    before = book(INPUT, Data={"A1": 1}, Data2={"A1": 2})
    gold = book(INPUT, Data={"A1": 1}, Data2={"A1": 2})
    where = [area("C1")]
    found = find_collateral(before, gold, book(INPUT, Data2={"A1": 2}), where, where)
    assert (found.features, counts(found)) == (1, {})


def test_a_sheet_in_other_case_is_the_same_sheet() -> None:
    before = book(INPUT, Data={"A1": 1})
    where = [area("C1")]
    found = find_collateral(before, before, book(INPUT, DATA={"A1": 2}), where, where)
    assert counts(found) == {"overwritten": 1}


def test_the_text_in_a_formula_counts_as_it_is_written() -> None:
    before: Cells = {"A1": '=TEXT(B1,"$0 a")'}
    assert harm({"A1": '=text($B$1, "$0 a")'}, before, "H1", before).damage == 0
    assert harm({"A1": '=TEXT(B1,"0 a")'}, before, "H1", before).damage == 1


def test_the_prefix_of_a_newer_function_does_not_count() -> None:
    before: Cells = {"A1": "=_xlfn.CONCAT(B1:B2)"}
    assert harm({"A1": "=CONCAT(B1:B2)"}, before, "H1", before).damage == 0


def test_what_an_array_formula_fills_belongs_to_the_formula() -> None:
    def filled(formula: str) -> Workbook:
        made = openpyxl.load_workbook(io.BytesIO(book({"A1": 1, "A2": 2}).data))
        made["S"]["B1"] = ArrayFormula("B1:B2", formula)
        made["S"]["B2"] = 9
        return saved(made)

    before, where = filled("=A1:A2*2"), [area("H1")]
    found = find_collateral(before, before, filled("=A1:A2*3"), where, where)
    assert counts(found) == {"overwritten": 1}


def test_a_formula_that_the_gold_changed_otherwise_is_counted_apart() -> None:
    gold = {**INPUT, "B3": "=SUM(B1:B2)*2"}
    found = harm({**INPUT, "B3": 5}, gold)
    assert (found.damage, found.formulas_lost, counts(found)) == (0, 0, {"other_than_gold": 1})


def test_error_values_that_are_new_are_counted_in_the_whole_workbook() -> None:
    before: Cells = {**TABLE, "E1": "#N/A"}
    output = shifted(TABLE, inserted_at(1)) | {"E2": "#N/A", "H1": "#REF!", "G5": "#DIV/0!"}
    found = harm(output, before, "H1", before)
    assert (found.moved, found.errors_left) == (1, 2)


# -- answers that follow ---------------------------------------------------------------------------

BEFORE: Cells = {"A1": 20, "A2": 30}
GOLD: Cells = {**BEFORE, "C1": "=A1+A2"}


def changed(cells: Cells, change: Callable[[openpyxl.Workbook], None]) -> Workbook:
    made = openpyxl.load_workbook(io.BytesIO(book(cells).data))
    change(made)
    return saved(made)


def measured(
    before: Workbook,
    gold: Workbook,
    output: Workbook,
    others: Sequence[OtherCase] = (),
    answer: str = "C1",
) -> DynamicFinding:
    where = [area(answer)]
    return measure_dynamic(
        ScopeSources(before, others=tuple(others)),
        gold,
        output,
        (where, where),
        profile=get_profile("standard"),
        compute=Arithmetic(),
        demand=Demand.NOTHING,
    )


def everywhere(change: Callable[[openpyxl.Workbook], None], gold: Cells = GOLD) -> DynamicFinding:
    """The gold as the answer, after a change in all three workbooks."""
    return measured(changed(BEFORE, change), changed(gold, change), changed(gold, change))


def inputs_of(found: DynamicFinding) -> list[str]:
    return sorted(trial.to_json()["cells"][0]["cell"] for trial in found.trials)


def test_constants_next_to_formulas_follow_in_part() -> None:
    gold = {**GOLD, "C2": "=A1*2"}
    found = follow({**BEFORE, "C1": 50, "C2": "=A1*2"}, gold, before=BEFORE, answer="C1:C2")
    assert found.kind is Dynamic.PARTIAL


def test_a_formula_that_is_right_by_chance_and_follows_nowhere_is_stale() -> None:
    found = follow({**BEFORE, "C1": "=A1*2.5"}, GOLD, before=BEFORE)
    assert found.kind is Dynamic.STALE
    assert "does not follow" in str(found)


def test_the_golds_helper_cells_are_not_compared() -> None:
    found = follow(GOLD, {**BEFORE, "E1": "=A1*1", "C1": "=E1+A2"}, before=BEFORE)
    assert found.kind is Dynamic.LIVE


def test_an_answer_that_is_elsewhere_is_wrong_before() -> None:
    found = follow({**BEFORE, "D1": "=A1+A2"}, GOLD, before=BEFORE)
    assert (found.kind, found.reason) == (Dynamic.NOT_MEASURABLE, Reason.WRONG_BEFORE)


def test_inputs_that_the_output_moved_say_why() -> None:
    found = follow({"B1": 20, "B2": 30, "C1": "=B1+B2"}, GOLD, before=BEFORE)
    assert found.kind is Dynamic.NOT_MEASURABLE
    assert found.reason.startswith(Reason.MOVED_INPUT)


def test_an_input_that_became_a_formula_is_not_where_it_was() -> None:
    found = follow({**GOLD, "A1": "=10*2"}, GOLD, before=BEFORE)
    assert inputs_of(found) == ["'S'!A2"]


@pytest.mark.parametrize(
    ("rule", "inputs"),
    [
        (DataValidation("whole", operator="between", formula1="1", formula2="100"), 2),
        (DataValidation("whole", operator="between", formula1="1", formula2="30"), 1),
        (DataValidation("whole", operator="lessThan", formula1="$A$3"), 0),
        (DataValidation("decimal", operator="notBetween", formula1="0", formula2="10"), 2),
        (DataValidation("list", formula1='"20,27,30"'), 1),
        (DataValidation("list", formula1="$A$1:$A$2"), 0),
        (DataValidation("textLength", operator="equal", formula1="2"), 2),
        (DataValidation("custom", formula1="A1>0"), 0),
    ],
)
def test_a_data_validation_allows_the_new_value_or_it_stays(
    rule: DataValidation, inputs: int
) -> None:
    def change(made: openpyxl.Workbook) -> None:
        rule.sqref = type(rule.sqref)()
        rule.add("A1:A2")
        made["S"].add_data_validation(rule)
        made["S"]["A3"] = 25

    found = everywhere(change)
    assert len(found.trials) == inputs
    if not inputs:
        assert (found.kind, found.reason) == (Dynamic.NOT_MEASURABLE, Reason.NO_INPUT)


def test_of_merged_inputs_the_first_cell_is_changed() -> None:
    found = everywhere(lambda made: made["S"].merge_cells("A1:B1"))
    assert inputs_of(found) == ["'S'!A1", "'S'!A2"]


def test_dates_that_count_from_1904_move_by_a_day() -> None:
    def from_1904(made: openpyxl.Workbook) -> None:
        made.epoch = CALENDAR_MAC_1904

    before: Cells = {"A1": dt.datetime(2024, 2, 28)}  # noqa: DTZ001  a cell has no zone
    gold = {**before, "C1": "=A1"}
    found = measured(changed(before, from_1904), changed(gold, from_1904), book(gold))
    assert found.kind is Dynamic.LIVE
    assert found.trials[0].to_json()["cells"][0]["value"] == {"date": "2024-02-29T00:00:00"}


def test_calculation_by_hand_is_calculated_all_the_same() -> None:
    def by_hand(made: openpyxl.Workbook) -> None:
        made.calculation.calcMode = "manual"

    assert everywhere(by_hand).kind is Dynamic.LIVE


@pytest.mark.parametrize("cells", [{"C1": "=A1+D1", "D1": "=C1-A1"}, {"C1": "=C1+A1"}])
def test_golds_that_may_depend_on_themselves_are_left_out(cells: Cells) -> None:
    def iterating(made: openpyxl.Workbook) -> None:
        made.calculation.iterate = True

    found = everywhere(iterating, {**BEFORE, **cells})
    assert (found.kind, found.reason) == (Dynamic.NOT_MEASURABLE, Reason.CIRCULAR)


@pytest.mark.parametrize(
    ("formula", "reason"),
    [
        ("=A1+TODAY()", Reason.CHANGING),
        ("=A1+RAND()", Reason.CHANGING),
        ("=A1+[1]Other!B2", Reason.CHANGING),
        ("=A1+'[1]Other sheet'!B2", Reason.CHANGING),
        ("=A1+[1]!Rate", Reason.CHANGING),
        ('=A1+GETPIVOTDATA("x",E1)', Reason.NOT_RECALCULATED),
    ],
)
def test_golds_on_what_is_not_recomputed_are_left_out(formula: str, reason: Reason) -> None:
    found = follow(GOLD, {**BEFORE, "C1": formula}, before=BEFORE)
    assert (found.kind, found.reason) == (Dynamic.NOT_MEASURABLE, reason)


@pytest.mark.parametrize("formula", ["=SUM(E2:E3)", "=A1+E3"])
def test_golds_on_a_data_table_are_left_out(formula: str) -> None:
    def tabled(made: openpyxl.Workbook) -> None:
        made["S"]["E1"] = "=A1*2"
        made["S"]["E2"] = DataTableFormula("E2:E3", dt2D=False, dtr=False, r1="A1")
        made["S"]["E3"] = 60

    found = measured(
        changed(BEFORE, tabled), changed({**BEFORE, "C1": formula}, tabled), book(GOLD)
    )
    assert (found.kind, found.reason) == (Dynamic.NOT_MEASURABLE, Reason.NOT_RECALCULATED)


def test_a_helper_that_changes_by_itself_spoils_only_what_reads_it() -> None:
    gold = {**BEFORE, "C1": "=A1*2", "C2": "=E1+A2", "E1": "=TODAY()"}
    found = follow({**BEFORE, "C1": "=A1+A1", "C2": 31}, gold, before=BEFORE, answer="C1:C2")
    assert (found.kind, found.eligible, inputs_of(found)) == (Dynamic.LIVE, 1, ["'S'!A1"])


def test_an_output_that_changes_by_itself_could_not_be_computed_and_is_not_stale() -> None:
    found = follow({**BEFORE, "C1": "=A1+A2+TODAY()-1"}, GOLD, before=BEFORE)
    assert (found.kind, found.reason) == (Dynamic.NOT_MEASURABLE, Reason.NOT_COMPUTED)


def test_a_number_in_brackets_that_is_a_column_is_not_another_workbook() -> None:
    def with_table(made: openpyxl.Workbook) -> None:
        made["S"]["G1"], made["S"]["G2"] = "2024", 1
        made["S"].add_table(Table(displayName="Sales", ref="G1:G2"))

    found = everywhere(with_table, {**BEFORE, "C1": "=A1+A2", "C2": "=SUM(Sales[2024])"})
    assert found.kind is Dynamic.LIVE


class Given(Arithmetic):
    """Computes formulas with names, with values that are given here for the names."""

    def __init__(self, meaning: dict[str, str]) -> None:
        self._meaning = meaning

    def fill(
        self,
        workbook: Workbook,
        ranges: Sequence[CellRange],
        *,
        origin: Origin,
        like: Workbook | None = None,
    ) -> ComputedValues:
        made = openpyxl.load_workbook(io.BytesIO(workbook.data))
        for row in made["S"].iter_rows():
            for held in row:
                for name, cells in self._meaning.items():
                    if isinstance(held.value, str):
                        held.value = held.value.replace(name, cells)
        return super().fill(saved(made), ranges, origin=origin, like=like)


@pytest.mark.parametrize("below", [False, True])
def test_inputs_behind_a_defined_name_are_inputs(below: bool) -> None:
    def with_name(made: openpyxl.Workbook) -> None:
        if below:
            made["S"]["E1"], made["S"]["E2"] = "=A1*1", "=A2*1"
        column = "E" if below else "A"
        text = f"'S'!${column}$1:${column}$2"
        made.defined_names["Data"] = DefinedName("Data", attr_text=text)

    gold = changed({**BEFORE, "C1": "=SUM(Data)"}, with_name)
    where = [area("C1")]
    found = measure_dynamic(
        ScopeSources(changed(BEFORE, with_name)),
        gold,
        gold,
        (where, where),
        profile=get_profile("standard"),
        compute=Given({"Data": "E1:E2" if below else "A1:A2"}),
        demand=Demand.NOTHING,
    )
    assert (found.kind, inputs_of(found)) == (Dynamic.LIVE, ["'S'!A1", "'S'!A2"])


def test_a_spilled_result_belongs_to_its_formula_also_where_that_is_outside_the_answer() -> None:
    class Filled(Arithmetic):
        def fill(
            self,
            workbook: Workbook,
            ranges: Sequence[CellRange],
            *,
            origin: Origin,
            like: Workbook | None = None,
        ) -> ComputedValues:
            del origin, like
            values = workbook.sheet("S").values(area("A1:A2").window)
            cells = (
                (ref.sheet, row) for ref in ranges for row in range(ref.min_row, ref.max_row + 1)
            )
            doubled = {}
            for sheet, row in cells:
                number = values.get((row << COLUMN_BITS) | 1)
                assert isinstance(number, int | float)
                doubled[CellRef(sheet, row, 3)] = number * 2
            return ComputedValues(doubled)

    def filled(made: openpyxl.Workbook) -> None:
        made["S"]["C1"] = ArrayFormula("C1:C2", "=A1:A2*2")
        made["S"]["C2"] = 60

    where = [area("C2")]
    found = measure_dynamic(
        ScopeSources(book(BEFORE)),
        changed(BEFORE, filled),
        changed(BEFORE, filled),
        (where, where),
        profile=get_profile("standard"),
        compute=Filled(),
        demand=Demand.NOTHING,
    )
    assert (found.kind, found.eligible, inputs_of(found)) == (Dynamic.LIVE, 1, ["'S'!A2"])


def test_a_gold_whose_ties_fall_otherwise_when_it_is_computed_again_says_nothing() -> None:
    class Restless(Arithmetic):
        """Breaks a tie differently after a change was undone."""

        asked = 0

        def fill(
            self,
            workbook: Workbook,
            ranges: Sequence[CellRange],
            *,
            origin: Origin,
            like: Workbook | None = None,
        ) -> ComputedValues:
            # Gold and output; then, for each change, gold, output, and the gold once more.
            self.asked += 1
            undone = self.asked > 2 and (self.asked - 2) % 3 == 0
            known = super().fill(workbook, ranges, origin=origin, like=like)
            return ComputedValues({ref: -50 if undone else v for ref, v in known.values.items()})

    where, gold = [area("C1")], book(GOLD)
    found = measure_dynamic(
        ScopeSources(book(BEFORE)),
        gold,
        gold,
        (where, where),
        profile=get_profile("standard"),
        compute=Restless(),
        demand=Demand.NOTHING,
    )
    assert (found.kind, found.reason) == (Dynamic.NOT_MEASURABLE, Reason.NOT_REPEATED)


def test_a_table_that_grew_is_not_a_change_of_values() -> None:
    def with_table(rows: int) -> Callable[[openpyxl.Workbook], None]:
        def change(made: openpyxl.Workbook) -> None:
            made["S"].add_table(Table(displayName="Sales", ref=f"G1:G{rows}"))
            for number in range(1, rows + 1):
                made["S"][f"G{number}"] = "head" if number == 1 else number

        return change

    other = OtherCase(
        2,
        lambda: changed({"A1": 5, "A2": 6}, with_table(4)),
        lambda: book({"A1": 5, "A2": 6, "C1": 11}),
    )
    short = with_table(3)
    found = measured(changed(BEFORE, short), changed(GOLD, short), changed(GOLD, short), [other])
    assert {trial.change.case for trial in found.trials} == {None}


def test_text_is_a_key_and_is_not_changed_alone() -> None:
    before: Cells = {"A1": "north"}
    gold = {**before, "C1": "=A1"}
    found = follow(gold, gold, before=before)
    assert (found.kind, found.reason) == (Dynamic.NOT_MEASURABLE, Reason.NO_INPUT)


def test_text_changes_as_in_another_case() -> None:
    before: Cells = {"A1": "north"}
    gold = {**before, "C1": "=A1"}
    found = follow(
        gold, gold, [case({"A1": "south"}, {"A1": "south", "C1": "south"})], before=before
    )
    assert found.kind is Dynamic.LIVE


def test_a_value_that_makes_the_gold_another_kind_of_value_is_not_a_change() -> None:
    gold = {"A1": 20, "C1": "=IF(A1>25,A1>0,A1)"}
    found = follow(gold, gold, before={"A1": 20})
    assert (found.kind, found.reason) == (Dynamic.NOT_MEASURABLE, Reason.OTHER_KIND)


def test_a_move_that_the_comparison_forgives_is_not_a_move() -> None:
    gold = {"A1": 20, "A2": 30, "C1": "=A1+A2*0.0001"}
    found = follow({**gold, "C1": "=A1"}, gold, before={"A1": 20, "A2": 30})
    assert inputs_of(found) == ["'S'!A1"]
