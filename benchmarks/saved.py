"""Counts how many formula cells of workbooks that Excel saved the cascade computes as Excel did.

    python -m benchmarks.saved ../shared/data/excel_battery/workbooks
    python -m benchmarks.saved ../shared/data/excel_battery/more

Every formula cell is computed again without trusted or cached values, and compared with the stored
value: numbers within a relative 1e-6 or an absolute 1e-9, equal text and logical values, errors
with the same code; a blank equals "" and 0. Formulas with volatile functions are left out.
"""

from __future__ import annotations

import argparse
import contextlib
from collections import Counter
from pathlib import Path

from benchmarks.command_line import existing, run_command
from benchmarks.conversions import is_close
from judge.core.submission import Origin
from judge.errors import JudgeError
from judge.formulas.traits import traits
from judge.recalc.functions.contents import plain_scalar
from judge.recalc.policy import Recalculator
from judge.recalc.select import open_recalculator
from judge.sandbox import open_sandbox
from judge.workbook.cell import CellRef
from judge.workbook.reader import open_workbook

OUTCOMES = ("right", "wrong", "not calculated")


def outcomes(path: Path, recalculator: Recalculator) -> Counter[str]:
    """Counts the cells of a workbook that are right, wrong, or without a value."""
    counts = Counter[str]()
    workbook = open_workbook(path)
    ranges = [used for name in workbook.sheet_names if (used := workbook.used_range(name))]
    stored = {
        CellRef(area.sheet, cell.row, cell.column): cell
        for area in ranges
        for cell in workbook.formula_cells(area)
        if not traits(cell.formula or "").volatile
    }
    if not stored:
        return counts
    computed = recalculator.fill(workbook, ranges, origin=Origin.SOLUTION)
    for ref, cell in stored.items():
        if ref in computed.not_calculated:
            counts["not calculated"] += 1
        else:
            value, expected = plain_scalar(computed.values.get(ref)), plain_scalar(cell.value)
            counts["right" if is_close(value, expected) else "wrong"] += 1
    return counts


def main() -> None:
    """Prints the workbooks with the most cells that are not right, and the total."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=existing, help="workbooks that Excel saved")
    parser.add_argument("--shown", type=int, default=20, help="workbooks that are listed [20]")
    options = parser.parse_args()
    by_file: dict[str, Counter[str]] = {}
    with (
        contextlib.closing(open_sandbox("auto")) as sandbox,
        contextlib.closing(open_recalculator(sandbox)) as recalculator,
    ):
        for path in sorted(options.folder.rglob("*.xlsx")):
            try:
                by_file[path.name] = outcomes(path, recalculator)
            except JudgeError as error:
                print(f"{path}: {error.message}")
    missed = {name: counts["wrong"] + counts["not calculated"] for name, counts in by_file.items()}
    for name in sorted(missed, key=lambda name: -missed[name])[: options.shown]:
        if missed[name]:
            print(
                f"{name}: "
                + ", ".join(f"{by_file[name][outcome]} {outcome}" for outcome in OUTCOMES)
            )
    total = sum(by_file.values(), Counter[str]())
    cells = total.total()
    print(f"{len(by_file)} workbooks, {cells} cells: {total['right'] / max(cells, 1):.2%} right")


if __name__ == "__main__":
    run_command(main)
