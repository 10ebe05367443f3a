"""A checker's finding about an answer: whether it is right, and where it differs from the gold."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field

from judge.core.records.cases import (
    AboutRecord,
    CaseComparison,
    DifferenceRecord,
    DifferingCellRecord,
    SheetRecord,
)

_MAX_VALUES_CHARS = 120
"""A one-line message shows both values only if they have at most this many characters together."""


class LocationKind(enum.StrEnum):
    """Kinds of location that a difference can have."""

    CELL = "cell"
    SHEET = "sheet"
    CHART = "chart"
    KEY = "key"
    """A named value of an answer that is given as values, not as a file."""
    RULE = "rule"
    """A rule over a whole workbook."""


@dataclass(frozen=True, slots=True)
class DifferenceLocation:
    """Where an answer differs from its gold.

    Attributes:
        kind: the kind of location.
        name: address of the cell, name of the chart, key or rule; empty for a sheet.
        sheet: name of the sheet; empty if the location is on no sheet.
    """

    kind: LocationKind
    name: str = ""
    sheet: str = ""

    def __str__(self) -> str:
        parts = [part for part in (self.sheet, self.name) if part]
        return "!".join(parts) if self.kind is LocationKind.CELL else " ".join((self.kind, *parts))


class Subject(enum.StrEnum):
    """The aspect of a workbook that differs, if pages can read and show it."""

    SHEETS = "sheets"
    CELLS = "cells"
    """The values of cells."""
    LINES = "lines"
    """The content of a sheet, compared as lines of text."""
    LOOKS = "looks"
    """The fonts, fills and number formats of cells."""
    CHARTS = "charts"
    PIVOTS = "pivot_tables"
    SPARKLINES = "sparklines"
    PANES = "panes"
    ZOOM = "zoom"
    FILTER = "filter"
    VALIDATIONS = "validations"
    FORMATS = "conditional_formats"
    ROWS = "rows"
    COLUMNS = "columns"


def sheet_of(name: str, *, in_gold: bool) -> SheetRecord:
    """A sheet of one of the two workbooks.

    Args:
        name: its name.
        in_gold: true for a sheet of the gold, false for a sheet of the output.
    """
    return {"file": "gold" if in_gold else "output", "sheet": name}


def differing_cell(
    cell: str, expected: object = None, actual: object = None, detail: str = ""
) -> DifferingCellRecord:
    """A cell that differs.

    Args:
        cell: its address.
        expected: the value that it should have, as JSON.
        actual: the value that it has, as JSON.
        detail: a line for people that replaces the values, if they do not show the difference.
    """
    if detail:
        return {"cell": cell, "detail": detail}
    return {"cell": cell, "expected": expected, "actual": actual}


def about(
    subject: Subject,
    expected: SheetRecord | None = None,
    actual: SheetRecord | None = None,
    properties: Sequence[str] = (),
    decimals: int | None = None,
    cells: Sequence[DifferingCellRecord] = (),
    all_cells: int = 0,
) -> AboutRecord:
    """What a difference is about, for pages that show it from the workbooks.

    Args:
        subject: the aspect of the workbook that differs.
        expected: the sheet with the right content; None if no sheet has it.
        actual: the sheet that is judged; None if it does not exist.
        properties: names of the properties that are compared, as the checker calls them.
        decimals: to how many decimals numbers are compared, if whole sheets are compared by value.
        cells: the first cells that differ.
        all_cells: how many cells differ.
    """
    record: AboutRecord = {
        "subject": subject.value,
        "expected": expected,
        "found": actual,
        "asked": list(properties),
    }
    if decimals is not None:
        record["decimals"] = decimals
    if cells:
        record["cells"] = list(cells)
        record["all_cells"] = all_cells
    return record


def in_words(value: object) -> str:
    """Writes a JSON value of a difference in words, without braces, brackets or ``null``."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        if value.keys() == {"date"}:
            return str(value["date"]).removesuffix("T00:00:00").replace("T", " ")
        if value.keys() == {"error"}:
            return str(value["error"])
        return ", ".join(f"{name} {in_words(item)}" for name, item in value.items()) or "nothing"
    if isinstance(value, list | tuple):
        nested = any(isinstance(item, list | tuple | dict) and len(item) > 1 for item in value)
        return ("; " if nested else ", ").join(map(in_words, value)) or "nothing"
    return repr(value)


@dataclass(frozen=True, slots=True)
class FoundDifference:
    """One difference between an answer and its gold.

    Attributes:
        kind: the class of the difference, as the checker calls it.
        location: where the difference is.
        expected: the gold's value, as JSON.
        actual: the answer's value, as JSON.
        detail: a line for people, if the values do not explain the difference.
        number: the number of the rule that does not hold, from 1, if the task lists rules.
        words: that rule as a sentence.
        about: the subject, for pages that show the difference from the workbooks.
    """

    kind: str
    location: DifferenceLocation
    expected: object = None
    actual: object = None
    detail: str = ""
    number: int | None = None
    words: str = ""
    about: AboutRecord | None = None

    def __str__(self) -> str:
        values = f"expected {in_words(self.expected)}, found {in_words(self.actual)}"
        has_values = (self.expected, self.actual) != (None, None)
        if not self.words:
            text = f"{self.location}: {self.kind.replace('_', ' ')}"
            text = f"{text}: {values}" if has_values else text
            return f"{text} ({self.detail})" if self.detail else text
        parts = [self.detail] if self.detail else []
        # As JSON, objects are long: the sentence of the rule and the detail say enough.
        if has_values and len(values) <= _MAX_VALUES_CHARS:
            parts.append(values)
        text = f"rule {self.number} does not hold: {self.words.removesuffix('.')}"
        return f"{text} ({'; '.join(parts)})" if parts else text


@dataclass(frozen=True, slots=True)
class Finding:
    """A checker's finding about an answer.

    Attributes:
        agrees: whether the answer is right.
        cause: one line that says what is wrong; empty if the answer is right.
        record: the comparison as it is written to ``cases.jsonl``: ``equal``, ``cells`` and
            ``differing_cells`` (how many units were compared, and how many differ),
            ``difference_counts``, ``differences``, ``notes``, and further fields of the checker.
        undecided: whether all differences are values that could not be computed.
    """

    agrees: bool
    cause: str = ""
    record: CaseComparison = field(default_factory=CaseComparison)
    undecided: bool = False

    @property
    def differing_share(self) -> float:
        """The share of the compared units that differ, from 0 up."""
        units, differing = self.record.get("cells"), self.record.get("differing_cells")
        if units is None or differing is None:
            return float(not self.agrees)
        return differing / max(units, 1)


def finding_of(
    differences: Sequence[FoundDifference],
    *,
    units: int,
    notes: Sequence[str] = (),
    max_kept: int = 50,
    undecided: bool = False,
) -> Finding:
    """Makes the finding of a checker that lists one difference for each differing unit.

    Args:
        differences: the differences; empty if the answer is right.
        units: how many units (cells, keys, rules …) were compared.
        notes: where the checker was lenient, and what it could not check.
        max_kept: how many differences are recorded at most; all are counted.
        undecided: as in :class:`Finding`.
    """
    counts: dict[str, int] = {}
    for difference in differences:
        counts[difference.kind] = counts.get(difference.kind, 0) + 1
    cause = ""
    if differences:
        more = len(differences) - 1
        cause = str(differences[0]) + (f" (and {more:,} more of {units:,})" if more else "")
    return Finding(
        agrees=not differences,
        cause=cause,
        record={
            "equal": not differences,
            "cells": units,
            "differing_cells": len(differences),
            "difference_counts": counts,
            "differences": [_as_json(difference) for difference in differences[:max_kept]],
            "notes": list(notes),
        },
        undecided=undecided,
    )


def _as_json(difference: FoundDifference) -> DifferenceRecord:
    location = difference.location
    record: DifferenceRecord = {
        "kind": difference.kind,
        "sheet": location.sheet,
        "cell": location.name if location.kind is LocationKind.CELL else "",
        "expected": difference.expected,
        "actual": difference.actual,
    }
    if location.kind is not LocationKind.CELL:
        record["place"] = {"kind": location.kind.value, "name": location.name}
    if difference.detail:
        record["detail"] = difference.detail
    if difference.words:
        record["words"] = difference.words
    if difference.number is not None:
        record["rule"] = difference.number
    if difference.about is not None:
        record["about"] = difference.about
    return record


def nearest(findings: Sequence[tuple[str, Finding]]) -> Finding:
    """Chooses the finding that counts if there are several golds.

    It belongs to the first gold that the answer agrees with or, if there is no such gold, to the
    nearest one.

    Args:
        findings: name and finding of each gold, in the order of the golds; at least one.

    Returns:
        The chosen finding; if there are several golds, its notes name the gold.
    """
    name, finding = next(
        ((name, finding) for name, finding in findings if finding.agrees),
        min(findings, key=lambda named_finding: named_finding[1].differing_share),
    )
    if len(findings) == 1:
        return finding
    text = f"agrees with {name}" if finding.agrees else f"{name} is the nearest"
    notes = finding.record.get("notes")
    noted = [
        f"of {len(findings)} golds, the answer {text}"
        if finding.agrees
        else f"of {len(findings)} golds, {text}"
    ]
    noted += list(notes) if isinstance(notes, list | tuple) else []
    record: CaseComparison = {**finding.record, "notes": noted, "gold": name}
    return Finding(finding.agrees, finding.cause, record, finding.undecided)
