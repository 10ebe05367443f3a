"""Tasks that are judged by a checklist, in suites of the judge's own format.

Items are proposed from an input, a gold and the instruction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from judge.authoring.kinds import PROPOSED
from judge.authoring.proposals import Proposal, Proposals, propose, rule_lists
from judge.authoring.rules_kind import Definition, RulesFields, RulesKind
from judge.compare.cells.requested_formula import words_for_formula
from judge.compare.checklists.items import NAME as CHECKER
from judge.compare.checklists.items import ChecklistOptions
from judge.compare.checklists.kinds import words_of
from judge.compare.registry import check_options
from judge.core.task import CheckerSpec
from judge.errors import UsageError
from judge.workbook.address import Window, cell_name
from judge.workbook.cell import Cell, CellRange, json_value
from judge.workbook.reader import Workbook, open_workbook

_FEW_CELLS = 12
"""Up to this many changed cells of a sheet become one item each; more become one range."""
_MAX_RANGE = 2_000
_RELATIVE = 0.0001
"""Relative tolerance of computed numbers, which engines round differently."""
_BY_VALUES = "sheet_data"

Item = dict[str, Any]


def propose_items(question: Path, gold: Path, instruction: str) -> Proposals:
    """Proposes items for the differences between an input and its gold.

    Values become items of the kinds ``cell`` and ``range``; formats and objects become items of the
    kind ``rules``. Formulas are required only if the instruction asks for one; otherwise they are
    not mentioned.

    Args:
        question: the input workbook.
        gold: the gold workbook.
        instruction: the question.

    Raises:
        WorkbookError: a workbook cannot be read.
        UsageError: the golds do not have the same sheets.
    """
    before, after = open_workbook(question), open_workbook(gold)
    asks_formula = bool(words_for_formula(instruction))
    items: list[tuple[str, Item]] = []
    uncovered: list[str] = []
    for sheet in after.sheet_names:
        changed = _changed(before, after, sheet)
        without = [cell for cell in changed if cell.formula is not None and cell.value is None]
        if without:
            first = cell_name(without[0].row, without[0].column)
            uncovered.append(
                f"values of {len(without)} formulas of the sheet {sheet!r} (from {first} on): the "
                "gold stores none, so save it with a spreadsheet program first"
            )
        if sheet not in before.sheet_names:
            items.append(("", {"kind": "sheet", "sheet": sheet}))
        items += [("", item) for item in _value_items(after, sheet, changed)]
        formulas = [cell for cell in changed if cell.formula is not None]
        if formulas and asks_formula:
            cells = [cell_name(cell.row, cell.column) for cell in formulas[:500]]
            items.append(("", {"kind": "formula", "sheet": sheet, "cells": cells}))
    proposed = propose([(question, gold)])
    for proposal in proposed.listed:
        (rule,) = proposal.rules
        if rule.get("type") != _BY_VALUES and not _is_said(rule, items):
            items.append((proposal.words, {"kind": "rules", "rules": [rule]}))
    return Proposals(tuple(_proposals(items)), (*uncovered, *proposed.uncovered), "items")


def _is_said(rule: Mapping[str, Any], items: Sequence[tuple[str, Item]]) -> bool:
    """Whether a rule is redundant, because another item already requires the sheet."""
    sheets = any(item["kind"] == "sheet" for _, item in items)
    return rule.get("type") == "sheet_name" and sheets


def _proposals(items: Sequence[tuple[str, Item]]) -> Iterator[Proposal]:
    for number, (words, item) in enumerate(items, start=1):
        numbered: Item = {"id": f"{number} {item['kind']}", "points": 1, **item}
        (read,) = ChecklistOptions.of({"items": [numbered]}).items
        yield Proposal(words or words_of(read), (numbered,))


def _changed(before: Workbook, after: Workbook, sheet: str) -> list[Cell]:
    """The filled cells of a gold whose content differs from that in the input."""
    used = after.used_range(sheet)
    if used is None:
        return []
    old_cells = before.cells(used) if sheet in before.sheet_names else {}
    changed = []
    for key, cell in after.cells(used).items():
        old = old_cells.get(key)
        same = old is not None and (old.formula, old.value) == (cell.formula, cell.value)
        if not same and (cell.value is not None or cell.formula is not None):
            changed.append(cell)
    return sorted(changed, key=lambda cell: (cell.row, cell.column))


def _value_items(workbook: Workbook, sheet: str, changed: Sequence[Cell]) -> Iterator[Item]:
    valued = [cell for cell in changed if cell.value is not None]
    if len(valued) <= _FEW_CELLS:
        for cell in valued:
            name = cell_name(cell.row, cell.column)
            item: Item = {"kind": "cell", "sheet": sheet, "cell": name}
            yield {**item, "expected": json_value(cell.value), **_tolerance(cell)}
        return
    rows = [cell.row for cell in valued]
    columns = [cell.column for cell in valued]
    window = Window(min(rows), min(columns), max(rows), max(columns))
    if window.size > _MAX_RANGE:
        return
    cells = workbook.cells(CellRange.of(sheet, window))
    expected = [
        [
            json_value(stored.value) if (stored := cells.get((row, column))) is not None else None
            for column in range(window.min_column, window.max_column + 1)
        ]
        for row in range(window.min_row, window.max_row + 1)
    ]
    area = f"{cell_name(*window.first)}:{cell_name(window.max_row, window.max_column)}"
    yield {
        "kind": "range",
        "sheet": sheet,
        "range": area,
        "expected": expected,
        "relative": _RELATIVE,
    }


def _tolerance(cell: Cell) -> Item:
    """The tolerance of a cell; empty unless its value was computed."""
    computed = cell.formula is not None and isinstance(cell.value, float)
    return {"relative": _RELATIVE} if computed else {}


class ChecklistKind(RulesKind):
    """Like the tasks that are judged by rules, but with items instead of rules."""

    name = "checklist"
    marks: ClassVar[tuple[str, ...]] = ("items",)
    example = "--instruction QUESTION --from GOLD --input INPUT --items proposed"

    def proposals(self, options: Mapping[str, Any]) -> Proposals | None:
        """Proposes items for the differences between input and gold, unless items were given."""
        if options.get("items") != PROPOSED:
            return None
        (files,) = self.files_of(options)
        return propose_items(files.inputs[0], files.gold, str(options.get("instruction") or ""))

    def fields_of(self, options: Mapping[str, Any]) -> RulesFields:
        """The fields of the task; its items come from a file, or are the kept proposals."""
        given = dict(options)
        items = given.pop("items", None)
        kept = given.pop("kept", None)
        fields = super().fields_of(given)
        if kept is not None:
            return replace(fields, definition=_definition(rule_lists(kept, 1)[0]))
        return fields if items is None else replace(fields, definition=_definition(items))


KIND = ChecklistKind()


def _definition(document: Any) -> Definition:
    """Reads the items: a list, or an object with the options of the checker."""
    options = {"items": document} if isinstance(document, list) else document
    if not isinstance(options, dict) or "items" not in options:
        raise UsageError(
            "--items: must be a list of items, or an object with the field 'items'",
            hint="docs/checklists.md lists the kinds of items.",
        )
    check_options(CheckerSpec(CHECKER, options))
    return Definition(CHECKER, options, {})
