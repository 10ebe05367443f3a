"""Colours of the answer: which cells got another one, and what conditional formats would paint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from judge.workbook.cell import CellRange, CellRef
from judge.workbook.reader import Workbook
from judge.workbook.sheets.sheet_tail import ConditionalRule
from judge.workbook.styles.style_sheet import CellStyle, ConditionalStyle, attribute_agrees

COLOURS: Mapping[str, str] = {"fill": "background", "font_color": "text"}
"""What is compared -> what people call it."""

_MAX_RULES = 10
_MAX_CONDITION = 80


@dataclass(frozen=True, slots=True)
class Recoloured:
    """A cell whose colour has changed.

    Attributes:
        ref: the cell.
        before, after: its colours, in words.
    """

    ref: CellRef
    before: str
    after: str


def recoloured(
    before: Workbook, after: Workbook, ranges: tuple[CellRange, ...]
) -> tuple[Recoloured, ...]:
    """Cells of some ranges in which two workbooks have different colours.

    Raises:
        WorkbookError: a workbook cannot be read.
    """
    found = []
    for area in ranges:
        if area.sheet not in before.sheet_names or area.sheet not in after.sheet_names:
            continue
        old, new = before.cells(area), after.cells(area)
        for place in sorted(old.keys() | new.keys()):
            was = before.style(old[place].style) if place in old else CellStyle()
            now = after.style(new[place].style) if place in new else CellStyle()
            other = [name for name in COLOURS if not attribute_agrees(name, was, now)]
            if other:
                words = [", ".join(_colour(each, name) for name in other) for each in (was, now)]
                found.append(Recoloured(CellRef(area.sheet, *place), *words))
    return tuple(found)


def _colour(style: CellStyle, name: str) -> str:
    value = getattr(style, name)
    return str(value) if name == "fill" else f"{COLOURS[name]} #{value}"


def rule_lines(workbook: Workbook, sheet: str) -> list[str]:
    """The conditional formats of a sheet for people, which the page does not draw.

    Raises:
        WorkbookError: the sheet cannot be read.
    """
    rules = sorted(workbook.sheet(sheet).tail.rules, key=lambda each: each.priority)
    looks = workbook.style_sheet.conditional
    lines = []
    for rule in rules[:_MAX_RULES]:
        known = rule.style is not None and 0 <= rule.style < len(looks)
        look = looks[rule.style] if known and rule.style is not None else ConditionalStyle()
        lines.append(_rule_line(rule, look))
    if len(rules) > _MAX_RULES:
        lines.append(f"{len(rules) - _MAX_RULES} more conditional formats")
    return lines


def _rule_line(rule: ConditionalRule, look: ConditionalStyle) -> str:
    where = ", ".join(map(str, rule.windows[:3])) + (" …" if len(rule.windows) > 3 else "")
    terms = [value for name, value in rule.terms if name in {"operator", "text", "rank"}]
    condition = " ".join([rule.kind, *terms, *rule.formulas])
    if len(condition) > _MAX_CONDITION:
        condition = condition[: _MAX_CONDITION - 1] + "…"
    paints = [str(look.fill)] if look.fill is not None else []
    paints += [f"text #{look.font_color}"] if look.font_color else []
    paints += ["bold"] if look.bold else []
    return f"{where}: {condition}" + (f" paints {', '.join(paints)}" if paints else "")
