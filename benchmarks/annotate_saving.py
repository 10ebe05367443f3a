"""Checks which parts of a workbook's package change when a changed cell is saved.

    .venv/bin/python benchmarks/annotate_saving.py SUITE [--limit 100] [--json FILE]

Takes one workbook per task: the first input. Three cells are changed and saved: a constant on which
formulas depend (or else the first constant) gets another value, a formula (if there is one) is
replaced by a number, and text is written to a new row below the data. Then the package is compared
with the old one: which parts are missing, new or different. In a different worksheet, all cells
except the changed ones and the formulas that depend on them must have the same value, formula and
format, and everything outside the cells must be the same byte for byte. The last check opens the
saved workbook with openpyxl, which is independent of the judge.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

import openpyxl

from benchmarks.command_line import existing, run_command
from judge.annotate.edit import apply_edits, dependents
from judge.annotate.edits import SetCell, describe
from judge.errors import JudgeError
from judge.recalc.policy import Recalculator
from judge.recalc.select import open_recalculator
from judge.sandbox import open_sandbox
from judge.suites.suite import load_suite
from judge.workbook.address import parse_window
from judge.workbook.cell import CellRange, CellRef
from judge.workbook.reader import Workbook, filling_cells, open_workbook


@dataclass
class Saving:
    """The effects of saving one workbook."""

    name: str
    edits: list[str] = field(default_factory=list)
    parts: int = 0
    same: int = 0
    differing: dict[str, str] = field(default_factory=dict)
    dependents: int = 0
    emptied: int = 0
    unexplained: list[str] = field(default_factory=list)
    problem: str = ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suite", type=existing)
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    sandbox = open_sandbox("auto")
    recalculator = open_recalculator(sandbox)
    savings: list[Saving] = []
    try:
        for task in load_suite(options.suite).tasks:
            if sum(not saving.problem for saving in savings) == options.limit:
                break
            path = task.cases[0].input_path
            saving = Saving(path.name)
            try:
                save_one(path.read_bytes(), saving, recalculator)
            except JudgeError as error:
                saving.problem = error.message
            savings.append(saving)
    finally:
        recalculator.close()
        sandbox.close()
    report(savings)
    if options.json:
        options.json.write_text(json.dumps([vars(saving) for saving in savings], indent=1))


def save_one(data: bytes, saving: Saving, recalculator: Recalculator) -> None:
    before = open_workbook(data)
    edits = choose(before)
    if not edits:
        saving.problem = "not used: no constant that can be changed"
        return
    saving.edits = [describe(edit) for edit in edits]
    edited = apply_edits(data, edits, recalculator=recalculator)
    after = open_workbook(edited.data)
    changed = {edit.ref for edit in edits}
    stale = dependents(after, changed)
    saving.dependents = len(stale)
    saving.emptied = len(edited.emptied)
    compare_packages(data, edited.data, before, saving)
    compare_cells(before, after, changed, stale, saving)
    openpyxl.load_workbook(io.BytesIO(edited.data))


def choose(workbook: Workbook) -> list[SetCell]:
    """Chooses a constant on which many formulas depend, a formula, and a cell below the data."""
    best: tuple[int, SetCell] | None = None
    formula: SetCell | None = None
    for sheet in workbook.sheet_names:
        used = workbook.used_range(sheet)
        if used is None:
            continue
        merges = workbook.sheet(sheet).tail.merges
        filled = [parse_window(cell.array_range or "") for cell in filling_cells(workbook, sheet)]
        tried = 0
        for (row, column), cell in workbook.cells(used).items():
            taken = any(area is not None and area.holds(row, column) for area in [*filled, *merges])
            if taken or row == used.min_row or tried >= TRIED:
                continue
            ref = CellRef(sheet, row, column)
            if cell.formula is not None:
                formula = formula or SetCell(ref, 12345)
            elif isinstance(cell.value, int | float | str) and not isinstance(cell.value, bool):
                text = isinstance(cell.value, str)
                edit = SetCell(ref, f"{cell.value} x" if text else cell.value + 1)  # type: ignore[operator]
                rests = len(dependents(workbook, [ref]))
                tried += 1
                if best is None or rests > best[0]:
                    best = (rests, edit)
    if best is None:
        return []
    home = best[1].ref.sheet
    used = workbook.used_range(home)
    assert used is not None
    below = SetCell(CellRef(home, used.max_row + 2, used.min_column), "new & <below>")
    return [best[1], below] if formula is None else [best[1], formula, below]


TRIED = 5


def compare_packages(old: bytes, new: bytes, workbook: Workbook, saving: Saving) -> None:
    with zipfile.ZipFile(io.BytesIO(old)) as first, zipfile.ZipFile(io.BytesIO(new)) as second:
        names = first.namelist()
        saving.parts = len(names)
        if [name for name in names if name in second.namelist()] != second.namelist():
            saving.unexplained.append("parts have a different order, or are new")
        sheets = {workbook.sheet(name).part for name in workbook.sheet_names}
        for name in names:
            if name not in second.namelist():
                saving.differing[name] = "gone"
                if "calcChain" not in name:
                    saving.unexplained.append(f"{name} is gone")
                continue
            before, after = first.read(name), second.read(name)
            if before == after:
                saving.same += 1
            elif name in sheets:
                saving.differing[name] = "cells"
                if _outside(before) != _outside(after):
                    saving.unexplained.append(f"{name} differs outside its cells")
            elif "calcChain" in name:
                saving.differing[name] = "entries"
            else:
                saving.differing[name] = "other"
                saving.unexplained.append(f"{name} differs")


def _outside(xml: bytes) -> bytes:
    """Returns a worksheet's XML without its rows and its stated dimension."""
    xml = re.sub(rb"<(?:\w+:)?dimension\b[^>]*>", b"", xml)
    return re.sub(rb"<(?:\w+:)?sheetData\b.*</(?:\w+:)?sheetData>", b"", xml, flags=re.DOTALL)


def compare_cells(
    old: Workbook,
    new: Workbook,
    changed: set[CellRef],
    stale: Collection[CellRef],
    saving: Saving,
) -> None:
    for sheet in old.sheet_names:
        used = old.used_range(sheet)
        if used is None:
            continue
        area = CellRange(sheet, 1, 1, used.max_row + 5, used.max_column + 5)
        before, after = old.cells(area), new.cells(area)
        for position in before.keys() | after.keys():
            ref = CellRef(sheet, *position)
            first, second = before.get(position), after.get(position)
            if ref in changed:
                if first is not None and second is not None and first.style != second.style:
                    saving.unexplained.append(f"{ref} has a different format")
            elif ref in stale and first is not None and second is not None:
                if (first.style, first.formula) != (second.style, second.formula):
                    saving.unexplained.append(f"{ref} has a different format or formula")
            elif first != second:
                saving.unexplained.append(f"{ref}: {first} became {second}")


def report(savings: list[Saving]) -> None:
    done = [saving for saving in savings if not saving.problem]
    parts = sum(saving.parts for saving in done)
    same = sum(saving.same for saving in done)
    kinds = Counter(kind for saving in done for kind in saving.differing.values())
    print(f"workbooks: {len(savings)}, saved and compared with the old package: {len(done)}")
    print(f"parts: {parts}, the same byte for byte: {same}, different: {parts - same}")
    print(f"different: worksheets in which cells changed: {kinds['cells']}")
    print(f"           calculation chains: {kinds['entries']}, removed: {kinds['gone']}")
    print(f"           anything else: {kinds['other']}")
    rest, empty = sum(saving.dependents for saving in done), sum(saving.emptied for saving in done)
    print(f"formulas that depend on the changed cells: {rest}, now without a value: {empty}")
    print(f"workbooks with an unexplained difference: {sum(bool(e.unexplained) for e in done)}")
    for saving in savings:
        for line in saving.unexplained[:3]:
            print(f"  {saving.name}: {line}")
        if saving.problem:
            print(f"  {saving.name}: {saving.problem}")


if __name__ == "__main__":
    run_command(main)
