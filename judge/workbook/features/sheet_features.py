"""Rules of a worksheet: data validations, conditional formats, sparklines, merged cells.

Excel writes the rules that refer to another sheet into the extension part of the worksheet
([MS-XLSX] 2.2.4), others before it. Both are read, and count as the same rules.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from judge.formulas.shift import formula_shape
from judge.workbook.address import Window, parse_window
from judge.workbook.features.features import FeatureKind, Features
from judge.workbook.package import Package
from judge.workbook.sheets.surroundings import scan_surroundings
from judge.workbook.workbook_parts import Tab

_FORMULAS = {"formula", "formula1", "formula2", "f"}
_RULES = {
    "x14:dataValidation": "dataValidation",
    "x14:conditionalFormatting": "conditionalFormatting",
    "x14:cfRule": "cfRule",
    "x14:sparkline": "sparkline",
    "x14:formula1": "formula1",
    "x14:formula2": "formula2",
    "x14:id": "id",
    "xm:f": "f",
    "xm:sqref": "sqref",
}
"""What the extension part of a worksheet calls the same things."""

_TERMS = ("type", "operator", "text", "timePeriod", "rank", "percent", "bottom", "aboveAverage")
_MAX_EXACT = 200
"""Rectangles of one rule up to which cells that two of them cover count once."""


@dataclass(slots=True)
class _Rule:
    """A validation, a conditional format or a group of sparklines."""

    kind: FeatureKind
    attributes: dict[str, str]
    reference: str = ""
    formulas: list[str] = field(default_factory=list)

    @property
    def terms(self) -> list[str]:
        default = {"type": "none"} if self.kind is FeatureKind.VALIDATION else {}
        given = {**default, **self.attributes}
        return [f"{name}={given[name]}" for name in _TERMS if name in given]

    @property
    def content(self) -> str:
        return "\x00".join([*self.terms, *map(formula_shape, self.formulas)])

    @property
    def label(self) -> str:
        what = self.kind.value.replace("_", " ")
        kind = self.attributes.get("type", "")
        return " ".join(filter(None, (what, kind, ", ".join(self.formulas))))


class _RuleCollector:
    """Hears what is around the rows of a worksheet."""

    def __init__(self, package: Package) -> None:
        self.rules: list[_Rule] = []
        self.merges: list[Window] = []
        self.bars: set[str] = set()
        self._budget = package.budget
        self._rule: _Rule | None = None
        self._pending: list[_Rule] = []
        self._reference = ""
        self._before = ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Called when an element begins."""
        tag = _RULES.get(tag, tag)
        if tag == "mergeCell":
            self._budget.take_cells(1)
            if (window := parse_window(attributes.get("ref", ""))) is not None:
                self.merges.append(window)
        elif tag == "dataValidation":
            self._begin(_Rule(FeatureKind.VALIDATION, attributes, attributes.get("sqref", "")))
        elif tag == "conditionalFormatting":
            self._reference = attributes.get("sqref", "")
            self._pending = []
        elif tag == "cfRule":
            self._begin(_Rule(FeatureKind.FORMAT, attributes, self._reference))
            self._pending.extend(self.rules[-1:])
        elif tag == "sparkline":
            self._begin(_Rule(FeatureKind.SPARKLINE, {}))

    def _begin(self, rule: _Rule) -> None:
        self._budget.take_cells(1)
        self._rule = rule
        self.rules.append(rule)

    def end(self, tag: str, text: list[str]) -> None:
        """Called when an element ends."""
        tag = _RULES.get(tag, tag)
        if tag in _FORMULAS and self._rule is not None:
            written = "".join(text)
            # In the extension part, <formula1><f>…</f></formula1> ends twice with one text.
            if tag == "f" or self._before != "f":
                self._budget.take_chars(len(written))
                self._rule.formulas.append(written)
        elif tag == "sqref":
            self._place("".join(text))
        elif tag == "id" and self._rule is not None:
            self.bars.add("".join(text).strip())
        elif tag in {"dataValidation", "cfRule", "sparkline"}:
            self._rule = None
        self._before = tag

    def _place(self, reference: str) -> None:
        """The cells of rules in the extension part follow them."""
        self._budget.take_chars(len(reference))
        if self._rule is not None:
            self._rule.reference = reference
            return
        for rule in self._pending:
            rule.reference = rule.reference or reference


def read_sheet_features(package: Package, tab: Tab, found: Features) -> None:
    """Adds the rules and merged cells of a worksheet.

    The second part of a data bar, which only says how it is drawn, is not a rule of its own.

    Args:
        package: the workbook.
        tab: the worksheet.
        found: where features go.

    Raises:
        WorkbookError: the worksheet is missing, broken or over a limit.
    """
    heard = scan_surroundings(package, tab.part, lambda: _RuleCollector(package))
    for rule in heard.rules:
        if rule.kind is FeatureKind.FORMAT and rule.attributes.get("id") in heard.bars:
            continue
        windows = [
            window for each in rule.reference.split() if (window := parse_window(each)) is not None
        ]
        if not windows or any("#REF!" in formula for formula in rule.formulas):
            # It applies to nothing, or refers to nothing.
            continue
        cells = len(windows) if rule.kind is FeatureKind.SPARKLINE else covered_cells(windows)
        content = "" if rule.kind is FeatureKind.SPARKLINE else rule.content
        found.add(
            rule.kind,
            content,
            rule.label,
            measure=cells,
            sheet=tab.name,
            place=str(windows[0]),
        )
    for window in heard.merges:
        rows = window.max_row - window.min_row + 1
        columns = window.max_column - window.min_column + 1
        shape = f"{rows} x {columns}"
        found.add(
            FeatureKind.MERGE,
            shape,
            f"merged cells, {shape}",
            sheet=tab.name,
            place=str(window),
        )


def covered_cells(windows: Sequence[Window]) -> int:
    """How many cells some rectangles cover, those that several of them cover once.

    Of more than a few hundred rectangles, only equal ones count once.
    """
    distinct = list(dict.fromkeys(windows))
    if len(distinct) > _MAX_EXACT:
        return sum(
            (each.max_row - each.min_row + 1) * (each.max_column - each.min_column + 1)
            for each in distinct
        )
    edges = sorted({row for each in distinct for row in (each.min_row, each.max_row + 1)})
    covered = 0
    for top, below in itertools.pairwise(edges):
        columns = sorted(
            (each.min_column, each.max_column)
            for each in distinct
            if each.min_row <= top and each.max_row >= top
        )
        width = last = 0
        for first, end in columns:
            width += max(0, end - max(first, last + 1) + 1)
            last = max(last, end)
        covered += width * (below - top)
    return covered
