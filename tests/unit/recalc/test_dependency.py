"""Which formulas a cell rests on."""

from judge.compare.cell import Cell
from judge.errors import WorkbookError
from judge.recalc import dependency
from judge.recalc.dependency import Footing, FormulaIndex, footing, footing_or_doubt

SHEETS = {
    "One": {(1, 1): "=A2+Two!A1", (2, 1): "=B5", (5, 2): "=1", (9, 9): "=XLOOKUP(1,A:A,A:A)"},
    "Two": {(1, 1): "=SUM(B:B)", (7, 2): "=TODAY()", (8, 3): "=LEFT(A1)"},
}


def index(sheets: dict[str, dict[tuple[int, int], str]] = SHEETS) -> FormulaIndex:
    return FormulaIndex(
        sheets,
        lambda name: [
            Cell(row, column, None, formula=formula)
            for (row, column), formula in sheets[name].items()
        ],
    )


def of(sheet: str, row: int, column: int, formula: str, array_range: str | None = None) -> Footing:
    cell = Cell(row, column, None, formula=formula, array_range=array_range)
    return footing([(sheet, cell)], index())


def test_only_what_is_reached_counts() -> None:
    said = of("One", 1, 1, "=A2+Two!A1")
    assert said.cells == 5
    assert said.functions == {"SUM", "TODAY"}
    assert said.volatile == {"TODAY"}
    assert not said.unprefixed
    assert said.complete


def test_sheet_names_are_found_in_any_case() -> None:
    assert of("One", 3, 3, "='TWO'!B7").volatile == {"TODAY"}
    assert of("One", 3, 3, "=Three!B7").functions == frozenset()


def test_a_formula_that_reaches_anywhere_rests_on_everything() -> None:
    anywhere = {**SHEETS, "One": {**SHEETS["One"], (3, 3): "=INDIRECT(A9)"}}
    cell = Cell(3, 3, None, formula="=INDIRECT(A9)")
    said = footing([("One", cell)], index(anywhere))
    assert not said.complete
    assert said.opaque
    assert said.unprefixed == {"XLOOKUP"}


def test_circles_end() -> None:
    circle = {"S": {(1, 1): "=B1", (1, 2): "=A1"}}
    said = footing([("S", Cell(1, 1, None, formula="=B1"))], index(circle))
    assert said.cells == 2


def test_too_many_formulas_are_not_followed_one_by_one() -> None:
    limit = dependency.FOLLOWED_LIMIT
    rows = limit + 2
    cells = [Cell(row, 1, None, formula=f"=A{row + 1}") for row in range(1, rows)]
    said = footing([("S", cells[0])], FormulaIndex(["S"], lambda _: cells))
    assert not said.complete


def test_array_formulas_are_seen() -> None:
    assert of("One", 1, 3, "=SUM(A1)", array_range="C1").array_sensitive
    assert not of("One", 1, 3, "=SUM(A9)").array_sensitive


def test_a_sheet_that_cannot_be_read_may_hold_anything() -> None:
    def refuse(_: str) -> list[Cell]:
        raise WorkbookError("broken")

    cell = Cell(1, 1, None, formula="=SUM(B:B)")
    said = footing_or_doubt([("S", cell)], FormulaIndex(["S"], refuse))
    assert not said.complete
    assert said.array_sensitive
    assert said.functions == {"SUM"}
