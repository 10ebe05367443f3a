"""The findings of a case for its page: sentences of rules, cells that differ, formats as swatches.

To show differences, the gold and the stored output are read again, but only for cases in which a
rule does not hold, and within the limits of the reader.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from judge.compare.cells.comparison import DifferenceClass
from judge.compare.contract import Requirements
from judge.compare.published_error import PublishedError, Side
from judge.compare.rules.book import Book, text_of, values_agree
from judge.compare.rules.looks import WholeLooks, differing_formats
from judge.compare.rules.standard import MISSING_SHEET
from judge.compare.rules.words import properties_in_words
from judge.console import clipped
from judge.core.finding import Subject
from judge.core.records.cases import (
    AboutRecord,
    CaseComparison,
    DifferenceRecord,
    DifferingCellRecord,
    SheetRecord,
)
from judge.errors import JudgeError
from judge.report.grid import GridRules, Sides, encode_block
from judge.report.grid_marks import Marks
from judge.report.grid_window import Block, GridBounds
from judge.report.html import finding_tables as tables
from judge.report.html.charts import show_charts
from judge.report.html.finding_tables import clip, row, show_pivots
from judge.workbook.address import WHOLE_SHEET, Window, cell_key, parse_cell
from judge.workbook.reader import Workbook, open_workbook

_MAX_ROWS = 50


def cell_rows(cells: Sequence[DifferingCellRecord]) -> list[dict[str, Any]]:
    """Single cells that differ, as a table."""
    return [
        row(cell["cell"], cell.get("expected"), cell.get("actual")) for cell in cells[:_MAX_ROWS]
    ]


def show_values(
    gold: tuple[Workbook, str],
    output: tuple[Workbook, str],
    before: Workbook | None,
    about: AboutRecord,
    rules: GridRules,
    bounds: GridBounds,
) -> dict[str, Any]:
    """Two sheets, shown as a block of a grid.

    Args:
        gold: the workbook with the right answer, and its sheet.
        output: the workbook that is judged, and its sheet.
        before: the input; None if the case has no input.
        about: the record of the difference.
        rules: how the run was judged.
        bounds: how much is shown.

    Returns:
        See :func:`judge.report.grid.encode_block`.

    Raises:
        WorkbookError: a workbook is broken or over a limit.
    """
    window = _window(gold, output)
    sides = Sides(gold[0], output[0], before, rules)
    block = Block(gold[1], output[1], (window,), window)
    return encode_block(block, sides, _marks(gold, output, about), bounds)


def _window(*sheets: tuple[Workbook, str]) -> Window:
    """The rectangle from A1 that covers the cells in use on both sheets."""
    used = [
        window for book, name in sheets if (window := book.sheet(name).used_window()) is not None
    ]
    return Window(
        1,
        1,
        max((window.max_row for window in used), default=1),
        max((window.max_column for window in used), default=1),
    )


def _marks(gold: tuple[Workbook, str], output: tuple[Workbook, str], about: AboutRecord) -> Marks:
    """The cells that differ, by the record and by the files."""
    sheet = gold[1]
    recorded: dict[tuple[str, int], DifferenceRecord] = {}
    for cell in about.get("cells", ()):
        position = parse_cell(cell["cell"])
        if position is not None:
            recorded[sheet, cell_key(*position)] = _difference(sheet, cell)
    kinds = {position: difference["kind"] for position, difference in recorded.items()}
    doubtful = not recorded or about.get("all_cells", 0) > len(recorded)
    if doubtful:
        for key, kind in _stored_differences(gold, output, about.get("decimals", 4)).items():
            kinds.setdefault((sheet, key), kind)
    return Marks(kinds, recorded, doubtful=doubtful)


def _difference(sheet: str, cell: DifferingCellRecord) -> DifferenceRecord:
    expected, actual = cell.get("expected"), cell.get("actual")
    kind = _kind(expected, actual)
    return {
        "kind": kind, "sheet": sheet, "cell": cell["cell"], "expected": expected, "actual": actual,
    }  # fmt: skip


def _kind(expected: object, actual: object) -> str:
    if actual is None:
        return DifferenceClass.MISSING.value
    return (DifferenceClass.EXTRA if expected is None else DifferenceClass.WRONG_VALUE).value


def _stored_differences(
    gold: tuple[Workbook, str], output: tuple[Workbook, str], decimals: int
) -> dict[int, str]:
    """Cells whose stored values differ, unless one of the two is a formula."""
    sheets = [book.sheet(name) for book, name in (gold, output)]
    first, second = (sheet.values(WHOLE_SHEET) for sheet in sheets)
    computed = {key for sheet in sheets for key in sheet.formula_keys(WHOLE_SHEET)}
    return {
        key: _kind(first.get(key), second.get(key))
        for key in first.keys() | second.keys()
        if key not in computed and not values_agree(first.get(key), second.get(key), decimals)
    }


_MAX_CELLS = 50
_SAMPLE = "Abc 123"
_MAX_SAMPLE_CHARS = 24


class StyledSheet:
    """A sheet with the styles of its cells.

    Args:
        book: the workbook.
        sheet: name of the sheet.
    """

    def __init__(self, book: Book, sheet: str) -> None:
        self.looks = WholeLooks(book, sheet)
        self._values = book.workbook.sheet(sheet).values(WHOLE_SHEET)

    def swatch(self, key: int) -> dict[str, Any]:
        """The appearance of a cell.

        Returns:
            ``text`` (as the cell shows it, or a sample), ``blank``, ``fill`` and ``ink`` (six
            hexadecimal digits; null without a fill), ``pattern``, ``bold``, ``italic``,
            ``underline``, ``font`` (name and size) and ``number_format``.

        Raises:
            WorkbookError: the style sheet is broken or over a limit.
        """
        look = self.looks.book.workbook.style(self.looks.styles.get(key, 0))
        shown = text_of(self._values.get(key))
        size = self.looks.property("font_size", key)
        font = [
            self.looks.property("font_name", key),
            f"{size:g}" if isinstance(size, float) else "",
        ]
        return {
            "text": (shown or _SAMPLE)[:_MAX_SAMPLE_CHARS],
            "blank": not shown,
            "fill": next((colour for colour in look.fill.colours if colour), None),
            "pattern": look.fill.pattern,
            "ink": look.font_color,
            "bold": look.bold,
            "italic": look.italic,
            "underline": look.underline != "none",
            "font": " ".join(str(part) for part in font if part)[:60],
            "number_format": look.number_format[:60],
        }


def show_looks(
    gold: StyledSheet | None,
    output: StyledSheet,
    counted: Sequence[str],
    cells: Sequence[DifferingCellRecord],
    all_cells: int,
) -> dict[str, Any]:
    """Differing cells as swatches.

    Args:
        gold: the sheet with the right answer; None if no sheet has it.
        output: the sheet that is judged.
        counted: names of the properties that count.
        cells: the first cells that differ, as recorded; empty if they are not on record.
        all_cells: how many cells differ.

    Returns:
        ``cells``, each with ``cell``, ``how`` (a line), ``gold`` and ``output`` (see
        :meth:`StyledSheet.swatch`; null if the sheet does not exist), and ``more``: how many cells
        are not shown.

    Raises:
        PublishedError: there is no such property.
        WorkbookError: a workbook is broken or over a limit.
    """
    listed: list[tuple[str, str]]
    if cells or gold is None:
        listed = [(cell["cell"], _how(cell)) for cell in cells]
    else:
        listed = list(differing_formats(gold.looks, output.looks, counted).items())
        all_cells = len(listed)
    shown = []
    for name, how in listed[:_MAX_CELLS]:
        position = parse_cell(name)
        if position is None:
            continue
        key = cell_key(*position)
        shown.append(
            {
                "cell": name,
                "how": clip(how),
                "gold": None if gold is None else gold.swatch(key),
                "output": output.swatch(key),
            }
        )
    return {"cells": shown, "more": max(0, all_cells - len(shown))}


def _how(cell: DifferingCellRecord) -> str:
    if "detail" in cell:
        return cell["detail"]
    return f"{cell.get('expected')}; found {cell.get('actual')!r}"


_POINTS, _FEW_POINTS = 200, 40
_MANY_CELLS = 30_000
"""If a page has room for this many cells in grids, its charts show all of their points."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A difference with the sheets that show it.

    Attributes:
        about: the record of the difference.
        expected: the expected value, as recorded.
        gold: the sheet with the right answer; None if no sheet has it.
        output: the sheet that is judged; None if there is no such sheet.
        before: the input; None if the case has no input.
        rules: how the run was judged.
        bounds: how much is shown.
    """

    about: AboutRecord
    expected: object
    gold: tables.Sheet | None
    output: tables.Sheet | None
    before: Workbook | None
    rules: GridRules
    bounds: GridBounds


def part_of(shown: Shown) -> dict[str, Any] | None:
    """The part of a page that shows a difference.

    Returns:
        An object with ``kind`` (``charts``, ``pivots``, ``looks``, ``grid``, ``rows``) and the
        fields that this kind needs (rows have ``heads``, the names of both sides, if these are not
        gold and output); None if there is nothing to show.

    Raises:
        PublishedError: there is no such property.
        WorkbookError: a workbook is broken or over a limit.
    """
    subject = shown.about["subject"]
    objects = _OBJECTS.get(subject)
    if objects is not None:
        return None if shown.gold is None else objects(shown, shown.gold, shown.output)
    if shown.output is None:
        return None
    alone = _OF_THE_OUTPUT.get(subject)
    if alone is not None:
        return alone(shown, shown.output)
    show = _OF_BOTH.get(subject)
    return None if show is None or shown.gold is None else show(shown, shown.gold, shown.output)


def _charts(shown: Shown, gold: tables.Sheet, output: tables.Sheet | None) -> dict[str, Any]:
    few = shown.bounds.cells < _MANY_CELLS
    charts = show_charts(
        (gold[0].workbook, gold[0].facts.charts(gold[1])),
        (gold[0].workbook, ())
        if output is None
        else (output[0].workbook, output[0].facts.charts(output[1])),
        shown.about["asked"],
        max_pairs=shown.bounds.blocks,
        max_points=_FEW_POINTS if few else _POINTS,
    )
    return {"kind": "charts", **charts}


def _pivots(shown: Shown, gold: tables.Sheet, output: tables.Sheet | None) -> dict[str, Any]:
    pivots = show_pivots(
        (gold[0], gold[0].facts.pivots(gold[1])),
        (gold[0], ()) if output is None else (output[0], output[0].facts.pivots(output[1])),
        shown.about["asked"],
        max_pairs=shown.bounds.blocks,
    )
    return {"kind": "pivots", **pivots}


def _values(shown: Shown, gold: tables.Sheet, output: tables.Sheet) -> dict[str, Any]:
    block = show_values(
        (gold[0].workbook, gold[1].name),
        (output[0].workbook, output[1].name),
        shown.before,
        shown.about,
        shown.rules,
        shown.bounds,
    )
    return {"kind": "grid", "block": block}


def _lines(shown: Shown, gold: tables.Sheet, output: tables.Sheet) -> dict[str, Any]:
    of_rows = shown.about["subject"] == Subject.ROWS
    return _table(tables.line_rows(gold, output, shown.about["asked"], of_rows=of_rows))


def _looks(shown: Shown, output: tables.Sheet) -> dict[str, Any]:
    gold = shown.gold
    looks = show_looks(
        None if gold is None else StyledSheet(gold[0], gold[1].name),
        StyledSheet(output[0], output[1].name),
        shown.about["asked"],
        shown.about.get("cells", ()),
        shown.about.get("all_cells", 0),
    )
    return {"kind": "looks", **looks}


def _zoom(shown: Shown, output: tables.Sheet) -> dict[str, Any]:
    return {
        **_table(tables.zoom_rows(str(shown.expected or ""), output)),
        "heads": ["asked", "output"],
    }


def _validations(shown: Shown, output: tables.Sheet) -> dict[str, Any]:
    rules = [properties_in_words(shown.expected)] if isinstance(shown.expected, dict) else []
    heads = ["wanted, and not found", "in the output"]
    return {**_table(tables.validation_rows(rules, output)), "heads": heads}


def _table(rows: tables.Rows) -> dict[str, Any]:
    return {"kind": "rows", "rows": rows}


def _table_of(
    rows: Callable[[tables.Sheet, tables.Sheet], tables.Rows],
) -> Callable[[Shown, tables.Sheet, tables.Sheet], dict[str, Any]]:
    return lambda _, gold, output: _table(rows(gold, output))


_OBJECTS: Mapping[str, Callable[[Shown, tables.Sheet, tables.Sheet | None], dict[str, Any]]] = {
    Subject.CHARTS: _charts,
    Subject.PIVOTS: _pivots,
}
_OF_THE_OUTPUT: Mapping[str, Callable[[Shown, tables.Sheet], dict[str, Any]]] = {
    Subject.LOOKS: _looks,
    Subject.ZOOM: _zoom,
    Subject.VALIDATIONS: _validations,
}
_OF_BOTH: Mapping[str, Callable[[Shown, tables.Sheet, tables.Sheet], dict[str, Any]]] = {
    Subject.CELLS: _values,
    Subject.ROWS: _lines,
    Subject.COLUMNS: _lines,
    Subject.PANES: _table_of(tables.pane_rows),
    Subject.FILTER: _table_of(tables.filter_rows),
    Subject.FORMATS: _table_of(tables.format_rows),
    Subject.SPARKLINES: _table_of(tables.sparkline_rows),
}


_MAX_FINDINGS = 40
_MAX_VALUE_CHARS = 300
_WHOLE = {"charts", "pivots", "looks", "elsewhere"}
"""Kinds of parts that show the whole difference, so that no description is needed."""
_MERGED = {Subject.CHARTS.value, Subject.PIVOTS.value, Subject.FORMATS.value, Subject.FILTER.value}
"""Subjects that are shown only once, however many rules are about the same sheets."""
_ON_A_SHEET = {subject.value for subject in Subject} - {Subject.SHEETS.value}


@dataclass(frozen=True, slots=True)
class CaseFiles:
    """The files that findings are shown from.

    Attributes:
        gold: the gold that was compared; None if it is not available.
        output: the output; None if it is no longer available.
        before: the input; None if the case has no input.
    """

    gold: bytes | Path | None
    output: bytes | None
    before: Path | None


def rules_of_case(
    record: CaseComparison,
    required: Requirements,
    files: CaseFiles,
    rules: GridRules,
    bounds: GridBounds,
) -> dict[str, Any] | None:
    """The rules of a case, for its page.

    Args:
        record: the comparison as recorded in cases.jsonl; empty if nothing was compared.
        required: the task's requirements; empty if the suite is not available.
        files: gold, output and input.
        rules: how the run was judged.
        bounds: how much is shown.

    Returns:
        ``rules``, each with ``number``, ``words``, ``state`` (``holds``, ``fails``, ``unknown``,
        ``unjudged``) and ``findings`` (see :class:`_Findings`); ``published`` (the other verdict
        on record, or null) and ``profile``. None if the task has no rules.
    """
    differences = sorted(
        (difference for difference in record.get("differences", ()) if "words" in difference),
        key=lambda difference: difference.get("rule", 0),
    )
    if not required.rules and not differences:
        return None
    words = dict(enumerate(required.rules, start=1))
    failing: dict[int, list[dict[str, Any]]] = {}
    shown = _Findings(files, rules, bounds, _asked_of(differences))
    for difference in differences:
        number = difference.get("rule", 0)
        words[number] = difference["words"]
        failing.setdefault(number, []).append(shown.of(difference))
    return {
        "rules": [
            {
                "number": number,
                "words": words[number],
                "state": "fails" if number in failing else _state(record, required, number),
                "findings": failing.get(number, []),
            }
            for number in sorted(words)
        ],
        "published": _published(record, required),
        "profile": record.get("profile", ""),
    }


_Place = tuple[str, str, str]


def _place_of(about: AboutRecord) -> _Place:
    """The key of a part that several rules share: the subject and both sheets."""
    return about["subject"], json.dumps(about["expected"]), json.dumps(about["found"])


def _asked_of(differences: Sequence[DifferenceRecord]) -> dict[_Place, list[str]]:
    """The properties that count in the rules about each subject and pair of sheets."""
    counted: dict[_Place, list[str]] = {}
    for difference in differences:
        if (about := difference.get("about")) is not None and about["subject"] in _MERGED:
            names = counted.setdefault(_place_of(about), [])
            names += [name for name in about["asked"] if name not in names]
    return counted


def _state(record: CaseComparison, required: Requirements, number: int) -> str:
    """The state of a rule without a recorded difference, if the record determines it."""
    differences = record.get("differences", ())
    if "equal" not in record:
        return "unjudged"
    if record.get("differing_cells", 0) > len(differences):
        return "unknown"
    if record["equal"]:
        return "holds"
    if not required.complete or any("words" not in difference for difference in differences):
        return "unknown"  # the differences may be about any rule
    if record.get("profile") == "official" and required.ends_early:
        first = min((difference.get("rule", 0) for difference in differences), default=number)
        return "holds" if number <= first else "unknown"
    return "holds"


def _published(record: CaseComparison, required: Requirements) -> dict[str, Any] | None:
    if "official_equal" not in record:
        return None
    return {
        "name": required.published,
        "equal": record.get("official_equal"),
        "error": clip(record["published_error"]) if "published_error" in record else None,
    }


class _Findings:
    """Shows differences from the workbooks, which are opened when the first one needs them.

    Args:
        files: gold, output and input.
        rules: how the run was judged.
        bounds: how much is shown.
        counted: the properties that count, by subject and pair of sheets.
    """

    def __init__(
        self,
        files: CaseFiles,
        rules: GridRules,
        bounds: GridBounds,
        counted: Mapping[_Place, list[str]],
    ) -> None:
        self._files = files
        self._counted = counted
        self._first: dict[_Place, int] = {}
        self._rules = rules
        self._bounds = bounds
        self._books: dict[bool, Book | JudgeError | None] = {}
        self._shown = 0

    def _book(self, *, in_gold: bool) -> Book | None:
        """The gold or the output; None if it is not available.

        Raises:
            WorkbookError: it cannot be read.
        """
        if in_gold not in self._books:
            source = self._files.gold if in_gold else self._files.output
            side = Side.GOLD if in_gold else Side.ANSWER
            try:
                book = None if source is None else Book(open_workbook(source), side)
            except JudgeError as error:
                self._books[in_gold] = error
            else:
                self._books[in_gold] = book
        opened = self._books[in_gold]
        if isinstance(opened, JudgeError):
            raise opened
        return opened

    @cached_property
    def _before(self) -> Workbook | None:
        try:
            return None if self._files.before is None else open_workbook(self._files.before)
        except JudgeError:
            return None

    def of(self, difference: DifferenceRecord) -> dict[str, Any]:
        """A difference as a page shows it.

        Returns:
            ``kind``, ``sheet``, ``expected`` and ``found`` (text; null if the part shows it
            better), ``detail``, ``part`` (null, or an object with ``kind`` and the fields that this
            kind needs) and ``note`` (why there is no part).
        """
        about = difference.get("about")
        part, note = None, ""
        self._shown += 1
        if about is not None and self._shown <= _MAX_FINDINGS:
            try:
                part = self._once(about, difference)
            except (JudgeError, PublishedError) as error:
                message = error.message
                note = f"the difference cannot be shown: {clip(message)}"
        is_missing = difference["kind"] == MISSING_SHEET
        lacks = about is not None and about["found"] is None and about["subject"] in _ON_A_SHEET
        if is_missing or lacks:
            note = note or "the output has no such sheet"
        has_rows = part is not None and (part["kind"] != "rows" or bool(part["rows"]))
        is_whole = part is not None and part["kind"] in _WHOLE
        texts = [
            None if is_missing or has_rows else _plain(difference.get(name))
            for name in ("expected", "actual")
        ]
        return {
            "kind": difference["kind"],
            "sheet": "" if is_missing else difference["sheet"],
            "expected": texts[0],
            "found": texts[1],
            "detail": "" if is_whole else clip(difference.get("detail", "")),
            "part": part,
            "note": note,
        }

    def _once(self, about: AboutRecord, difference: DifferenceRecord) -> dict[str, Any] | None:
        """A part of a page, or a reference to the rule that already shows it."""
        if about["subject"] in _MERGED:
            key = _place_of(about)
            if key in self._first:
                return {"kind": "elsewhere", "rule": self._first[key]}
            self._first[key] = difference.get("rule", 0)
            about = {**about, "asked": self._counted[key]}
        return self._part(about, difference)

    def _part(self, about: AboutRecord, difference: DifferenceRecord) -> dict[str, Any] | None:
        if about["subject"] == Subject.CELLS and "decimals" not in about:
            return {"kind": "rows", "rows": cell_rows(about.get("cells", ()))}
        if about["subject"] == Subject.SHEETS:
            gold, output = self._book(in_gold=True), self._book(in_gold=False)
            if gold is None or output is None:
                return None
            return {"kind": "rows", "rows": tables.sheet_rows(gold, output)}
        expected, actual = self._sheet(about["expected"]), self._sheet(about["found"])
        value = difference.get("expected")
        shown = Shown(about, value, expected, actual, self._before, self._rules, self._bounds)
        with ExitStack() as stack:
            for sheet in (expected, actual):
                if sheet is not None:
                    stack.enter_context(sheet[0].workbook.package.budget.working())
            return part_of(shown)

    def _sheet(self, named: SheetRecord | None) -> tables.Sheet | None:
        if named is None:
            return None
        book = self._book(in_gold=named["file"] == "gold")
        tab = None if book is None else book.tab(named["sheet"])
        return None if book is None or tab is None else (book, tab)


def _plain(value: object) -> str | None:
    """A recorded value as text."""
    if value is None or isinstance(value, str):
        return None if value is None else clip(value)
    text = json.dumps(value, ensure_ascii=False)
    return clipped(text, _MAX_VALUE_CHARS)
