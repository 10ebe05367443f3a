"""Compares conversions and criteria as the judge computes them with Excel's results.

    python -m benchmarks.conversions
    python -m benchmarks.conversions --sources ../shared/data/excel_battery
    python -m benchmarks.conversions --workbooks ../shared/data/excel_battery

`conversions.yaml` has the formulas, each with Excel's result and its source: a page of Microsoft's
function reference, or a cell of a workbook that Excel saved. Exits with 1 if a result is wrong.

With ``--sources``, every result from a workbook is compared with the value in that cell of the
file; results from pages are counted by what the page says of them.

With ``--workbooks``, every formula of some saved workbooks that the judge computes itself is
compared with the value in the file. The values that it reads are taken from the file, so each
formula is checked independently.
"""

from __future__ import annotations

import argparse
import functools
import math
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml

from benchmarks.command_line import existing, run_command
from judge.errors import WorkbookError
from judge.formulas.references import Reference
from judge.formulas.traits import traits
from judge.formulas.tree import tree
from judge.recalc.explaining import address
from judge.recalc.functions.contents import Contents, plain_scalar
from judge.recalc.functions.conversions import UnsureError
from judge.recalc.functions.criteria import Cells, Scalar
from judge.recalc.functions.own import FUNCTIONS, OwnValues, converted_values
from judge.recalc.functions.regions import UNITED_STATES, Region
from judge.recalc.functions.scalars import Evaluation
from judge.workbook.address import parse_cell
from judge.workbook.cell import CellRef, ErrorValue
from judge.workbook.cell_values import written_controls
from judge.workbook.dependency import FormulaIndex
from judge.workbook.reader import open_workbook, sheet_formulas

_Result = TypeVar("_Result")

CONVERSIONS = Path(__file__).with_name("conversions.yaml")


@dataclass(frozen=True, slots=True)
class Conversion:
    """A formula with Excel's result.

    Attributes:
        formula: the formula as in a file.
        expected: Excel's result.
        source: a page, a workbook, or a note.
        data: (row, column) -> constant.
        seen: what the source says: the cell of a workbook; for a page, `example`, `remark` or
            `definition`; nothing for a note.
    """

    formula: str
    expected: Scalar
    source: str
    data: Mapping[tuple[int, int], Scalar]
    seen: str = ""


class Table:
    """The cells of one sheet, as the evaluation reads them."""

    charset = "cp1252"
    date_1904 = False

    def __init__(self, data: Mapping[tuple[int, int], Scalar]) -> None:
        self._data = data

    def value(self, reference: Reference) -> Scalar:
        """Returns the value of one cell."""
        if reference.size != 1:
            raise UnsureError
        return self._data.get((reference.min_row, reference.min_column))

    @property
    def region(self) -> Region:
        """The order is that of the United States."""
        return UNITED_STATES

    def formula(self, reference: Reference) -> None:
        """No cell of the sheet holds a formula."""
        del reference

    def cells(self, reference: Reference) -> Cells:
        """Returns the values of a rectangle."""
        _, top, left, bottom, right = reference
        values = {
            (row - top, column - left): value
            for (row, column), value in self._data.items()
            if top <= row <= bottom and left <= column <= right
        }
        return Cells(bottom - top + 1, right - left + 1, values)

    searched = cells

    def kept_array(
        self, key: Hashable, compute: Callable[[], tuple[Cells, bool]]
    ) -> tuple[Cells, bool]:
        """Computes an array, and keeps none."""
        del key
        return compute()

    def repeated(self, part: Hashable, compute: Callable[[], _Result]) -> _Result:
        """Computes a part of a formula."""
        del part
        return compute()

    def spend(self, cells: int) -> None:
        """Allows any number of cells."""

    def hidden(self, reference: Reference) -> tuple[frozenset[int], bool]:
        """No row of the sheet is hidden."""
        del reference
        return frozenset(), False

    def subtotals(self, reference: Reference) -> Mapping[tuple[int, int], str]:
        """No cell of the sheet holds a formula."""
        del reference
        return {}


def conversions() -> Iterator[Conversion]:
    """Reads every formula of the table."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    for entry in yaml.load(CONVERSIONS.read_text(encoding="utf-8"), Loader=loader):
        cells = ((parse_cell(name), value) for name, value in entry.get("data", {}).items())
        data = {position: _scalar(value) for position, value in cells if position is not None}
        source = entry["source"]
        for formula, expected, *seen in entry["cases"]:
            said = seen[0] if seen else "example" if source.startswith("https:") else ""
            yield Conversion(formula, _scalar(expected), source, data, said)


def _scalar(value: Any) -> Scalar:
    return ErrorValue(value["error"]) if isinstance(value, dict) else value


def computed(conversion: Conversion) -> Scalar:
    """Returns the value that the judge computes.

    Raises:
        UnsureError: the judge leaves the formula to the engines.
    """
    node = tree(conversion.formula)
    if node is None:
        raise UnsureError
    return Evaluation(Table(conversion.data), FUNCTIONS).scalar(node)


def is_right(value: Scalar, expected: Scalar) -> bool:
    """Returns whether a value is Excel's; numbers are compared to 15 digits."""
    if isinstance(value, bool) or isinstance(expected, bool):
        return value is expected
    if isinstance(value, (int, float)) and isinstance(expected, (int, float)):
        return math.isclose(value, expected, rel_tol=1e-14, abs_tol=1e-15)
    return value == expected


def main() -> int:
    """Checks the table, or saved workbooks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", type=existing, metavar="FOLDER", help="workbooks of the table")
    parser.add_argument("--workbooks", type=existing, metavar="FOLDER", help="saved workbooks")
    parser.add_argument("--names", default="*.xlsx", help="which of them [*.xlsx]")
    options = parser.parse_args()
    if options.sources is not None:
        return check_sources(options.sources)
    if options.workbooks is None:
        return check_table()
    return check_workbooks(sorted(options.workbooks.rglob(options.names)))


def check_sources(folder: Path) -> int:
    """Compares results from workbooks with their cells, and counts the other sources."""
    said = Counter[str]()
    differing = 0
    places = [folder, *sorted(path for path in folder.iterdir() if path.is_dir())]
    for conversion in conversions():
        if not conversion.source.endswith(".xlsx"):
            said[conversion.seen or conversion.source] += 1
            continue
        path = next(at / conversion.source for at in places if (at / conversion.source).is_file())
        sheet, _, cell = conversion.seen.rpartition("!")
        stored = _stored(path, sheet.strip("'")).get(parse_cell(cell))
        if is_close(stored, conversion.expected):
            said["recorded in a workbook"] += 1
            continue
        differing += 1
        print(f"differs: {conversion.formula}, {conversion.source} {conversion.seen}: {stored!r}")
    for name, total in said.most_common():
        print(f"{total:4} {name}")
    print(f"{said.total() + differing} results, {differing} differ from the workbook")
    return 1 if differing else 0


@functools.cache
def _stored(path: Path, sheet: str) -> dict[tuple[int, int] | None, Scalar]:
    cells = sheet_formulas(open_workbook(path), sheet)
    return {(cell.row, cell.column): _plain(cell.value) for cell in cells}


def _plain(value: Any) -> Scalar:
    return written_controls(value) if isinstance(value, str) else plain_scalar(value)


def check_workbooks(paths: Sequence[Path]) -> int:
    """Computes the formulas of saved workbooks and prints which differ from the stored values."""
    computed_cells = wrong = 0
    started = time.process_time()
    for path in paths:
        try:
            workbook = open_workbook(path)
            index = FormulaIndex(workbook.sheet_names, functools.partial(sheet_formulas, workbook))
            stored = {
                CellRef(sheet, cell.row, cell.column): cell
                for sheet in workbook.sheet_names
                for cell in sheet_formulas(workbook, sheet)
                if cell.has_cached_value
            }
            taken = {ref: cell.value for ref, cell in stored.items()}
            own = OwnValues(Contents(workbook, index), taken)
            values = converted_values(own, stored, lambda _: False)
        except WorkbookError as error:
            print(f"{path}: {error.message}")
            continue
        for ref, value in values.items():
            cell = stored[ref]
            if traits(cell.formula or "").volatile:
                continue
            computed_cells += 1
            expected = plain_scalar(cell.value)
            read = _plain(value)
            if not is_close(read, expected):
                wrong += 1
                print(f"wrong: {path.name} {address(ref)} {cell.formula}: {read!r}, {expected!r}")
    spent = time.process_time() - started
    counts = f"{len(paths)} workbooks, {computed_cells} cells computed here, {wrong} wrong"
    print(f"{counts}, {spent:.1f} s of processor time")
    return 1 if wrong else 0


def is_close(value: Scalar, expected: Scalar) -> bool:
    """Returns whether a value is the stored one: numbers to 1e-6, a blank as empty text or 0."""
    if isinstance(value, bool) or isinstance(expected, bool):
        return value is expected
    if isinstance(value, (int, float)) and isinstance(expected, (int, float)):
        return math.isclose(value, expected, rel_tol=1e-6, abs_tol=1e-9)
    blanks = (None, "", 0)
    return value == expected or (
        (value is None or expected in (None, "")) and value in blanks and expected in blanks
    )


def check_table() -> int:
    """Computes the table and prints which results are right, by function."""
    right, all_of = Counter[str](), Counter[str]()
    wrong = 0
    for conversion in conversions():
        names = sorted(traits(conversion.formula).functions) or ["operators"]
        all_of.update(names)
        try:
            value = computed(conversion)
        except UnsureError:
            print(f"not computed: {conversion.formula} ({conversion.source} {conversion.seen})")
            continue
        if is_right(value, conversion.expected):
            right.update(names)
            continue
        wrong += 1
        print(
            f"wrong: {conversion.formula} gives {value!r}, Excel {conversion.expected!r} "
            f"({conversion.source} {conversion.seen})"
        )
    for name, total in all_of.most_common():
        print(f"{name:12} {right[name]:4} of {total:4} right")
    print(f"{sum(1 for _ in conversions())} formulas, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    run_command(main)
