"""Computes what a comparison needs: formulas of cells, and conditions of conditional formats.

Conditions that differ only in which blank cells they refer to are computed once: a rule for a whole
column covers thousands of cells below the data, where it refers only to blank cells and has the
same result in all of them.

Conditions are computed as formulas in a copy of the workbook, in cells that nothing refers to:
below the last row, in the last column, of the sheet that they refer to. Their
references mean the same there as in any other cell of the sheet, and no reference to whole columns
or rows of data includes them.
"""

from __future__ import annotations

import contextlib
import io
import re
import time
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judge.compare.cells.sides import (
    MAX_CONDITIONS,
    NOT_EVALUATED,
    Answers,
    ConditionAnswers,
    ConditionKey,
    ConditionQuestions,
    Questions,
)
from judge.core.submission import Origin
from judge.errors import RecalcError, WorkbookError
from judge.formulas.lexer import Kind, tokens
from judge.formulas.references import references
from judge.formulas.traits import traits
from judge.recalc.engines import INSTALL_COMMAND, ServiceEngine
from judge.recalc.names import LIBREOFFICE
from judge.recalc.policy import Recalculator
from judge.recalc.rewrite import NOT_XML, sheet_parts
from judge.workbook.address import MAX_COLUMN, MAX_ROW, Window, cell_name
from judge.workbook.cell import NOTHING_COMPUTED, CellRange, CellRef, CellValue, ComputedValues
from judge.workbook.editing.parts import escape_text
from judge.workbook.reader import Workbook, open_workbook

_ROW = re.compile(rb"<(?:\w+:)?row\b([^>]*)>")
_NUMBER = re.compile(rb"""\sr\s*=\s*["'](\d{1,7})["']""")
_DATA = re.compile(rb"<(?P<prefix>\w+:)?sheetData\b[^>]*?(?P<empty>/?)>")
_DIMENSION = re.compile(rb"<(?:\w+:)?dimension\b[^>]*?/>")


@dataclass(frozen=True, slots=True)
class ScratchFormula:
    """A formula to compute on a sheet.

    Attributes:
        text: the formula without its leading ``=``.
        is_array: whether it is entered as an array formula.
    """

    text: str
    is_array: bool = False


def with_formulas(
    package: bytes, formulas: Mapping[str, Sequence[ScratchFormula]]
) -> tuple[bytes, dict[str, list[CellRef]]]:
    """A copy of a workbook with additional formulas.

    Args:
        package: the workbook.
        formulas: worksheet -> formulas to add to it.

    Returns:
        The copy, and for each worksheet the cells of its formulas in order.

    Raises:
        WorkbookError: a sheet cannot be found, is broken, or has no room.
    """
    target = io.BytesIO()
    cells_by_sheet: dict[str, list[CellRef]] = {}
    with zipfile.ZipFile(io.BytesIO(package)) as archive:
        parts = sheet_parts(package)
        names = {}
        for sheet in formulas:
            if sheet not in parts:
                raise WorkbookError(f"no worksheet {sheet!r} in the workbook")
            names[parts[sheet]] = sheet
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as copy:
            for entry in archive.infolist():
                content = archive.read(entry)
                sheet = names.get(entry.filename, "")
                if sheet:
                    content, rows = _filled(content, formulas[sheet])
                    cells_by_sheet[sheet] = [CellRef(sheet, row, MAX_COLUMN) for row in rows]
                copy.writestr(entry, content, compress_type=zipfile.ZIP_DEFLATED)
    return target.getvalue(), cells_by_sheet


def _filled(xml: bytes, formulas: Sequence[ScratchFormula]) -> tuple[bytes, range]:
    data = _DATA.search(xml)
    if data is None:
        raise WorkbookError("a worksheet has no cells")
    prefix = data["prefix"] or b""
    if data["empty"]:
        before, after = xml[: data.start()] + b"<" + prefix + b"sheetData>", xml[data.end() :]
    else:
        end = xml.rfind(b"</" + prefix + b"sheetData")
        if end < data.end():
            raise WorkbookError("the cells of a worksheet have no end tag")
        before, after = xml[:end], xml[end:].partition(b">")[2]
    first = _last_row(xml) + 2
    if first + len(formulas) > MAX_ROW:
        raise WorkbookError("there is no room below the last row")
    rows = range(first, first + len(formulas))
    cells = b"".join(
        _cell(prefix, row, formula) for row, formula in zip(rows, formulas, strict=True)
    )
    end_tag = b"</" + prefix + b"sheetData>"
    # The range that the file states for the sheet does not include our cells.
    return _DIMENSION.sub(b"", before, count=1) + cells + end_tag + after, rows


def _cell(prefix: bytes, row: int, formula: ScratchFormula) -> bytes:
    name = cell_name(row, MAX_COLUMN)
    kind = f' t="array" ref="{name}"' if formula.is_array else ""
    text = escape_text(NOT_XML.sub("", formula.text))
    mark = prefix.decode()
    return (
        f'<{mark}row r="{row}"><{mark}c r="{name}"><{mark}f{kind}>{text}</{mark}f></{mark}c>'
        f"</{mark}row>"
    ).encode()


def _last_row(xml: bytes) -> int:
    last = row = 0
    for match in _ROW.finditer(xml):
        number = _NUMBER.search(match[1])
        row = int(number[1]) if number else row + 1
        last = max(last, row)
    return last


_PLACES = frozenset(("ROW", "ROWS", "COLUMN", "COLUMNS", "ADDRESS", "INDIRECT", "OFFSET", "CELL"))
"""Functions whose result depends on the position of a cell, not only on its value."""

_ROW_NUMBER = re.compile(r"(?<=[A-Za-z$])[0-9]+")


_EVERYTHING = Window(1, 1, 1 << 21, 1 << 15)
"""The used range of a sheet that cannot be read, so that none of its cells counts as blank."""


class BlankCells:
    """Finds out which conditions of a workbook are equivalent.

    Args:
        workbook: the workbook; its sheets are read when they are needed.
    """

    def __init__(self, workbook: Workbook) -> None:
        self._workbook = workbook
        self._used: dict[str, Window | None] = {}

    def meaning(self, sheet: str, formula: str) -> object:
        """A key that two conditions share only if they always have the same result.

        Args:
            sheet: the sheet of the condition.
            formula: the condition as its cell sees it.
        """
        facts = traits(formula)
        exact = (sheet, formula)
        if (
            facts.names
            or facts.opaque
            or facts.broken
            or facts.functions & _PLACES
            or "!" in formula
        ):
            return exact
        used = self._used_window(sheet)
        regions: list[object] = []
        is_blank = False
        for reference in references(formula):
            if used is not None and reference.min_row <= used.max_row:
                regions.append(
                    (
                        reference.min_row,
                        reference.min_column,
                        reference.max_row,
                        reference.max_column,
                    )
                )
            else:
                is_blank = True
                regions.append(
                    (
                        reference.max_row - reference.min_row,
                        reference.min_column,
                        reference.max_column,
                    )
                )
        if not is_blank:
            return exact
        plain = tuple(
            _ROW_NUMBER.sub("#", token.text) if token.kind in (Kind.CELL, Kind.ROWS) else token.text
            for token in tokens(formula)
        )
        return (sheet, plain, tuple(regions))

    def _used_window(self, sheet: str) -> Window | None:
        if sheet not in self._used:
            try:
                self._used[sheet] = self._workbook.sheet(sheet).used_window()
            except WorkbookError:
                self._used[sheet] = _EVERYTHING
        return self._used[sheet]


_VOLATILE = "a condition depends on a volatile function, such as TODAY"


def answer_conditions(
    recalculator: Recalculator,
    questions: ConditionQuestions,
    gold: Workbook,
    output: Workbook,
    *,
    origin: Origin,
) -> ConditionAnswers:
    """Evaluates the conditions of both workbooks that a comparison needs.

    Args:
        recalculator: computes formulas.
        questions: the result of :func:`judge.compare.cells.answer_range.wanted_conditions`.
        gold: the gold workbook.
        output: the output workbook.
        origin: where the output comes from.

    Raises:
        EngineUnavailableError: an engine cannot be started.
    """
    return ConditionAnswers(
        gold=_answers(recalculator, questions.gold, gold, Origin.GOLD, gold),
        output=_answers(recalculator, questions.output, output, origin, gold),
    )


def _answers(
    recalculator: Recalculator,
    questions: Questions,
    workbook: Workbook,
    origin: Origin,
    gold: Workbook,
) -> Answers:
    if questions.is_empty:
        return NOT_EVALUATED
    try:
        values = recalculator.fill(workbook, list(questions.ranges), origin=origin, like=gold)
    except WorkbookError:
        # The comparison finds and reports the same fault when it reads the values.
        values = NOTHING_COMPUTED
    unknown: dict[ConditionKey, str] = {}
    stands_for: dict[ConditionKey, ConditionKey] = {}
    key_by_meaning: dict[object, ConditionKey] = {}
    blanks = BlankCells(workbook)
    for key in questions.conditions:
        if traits(key[1]).volatile:
            unknown[key] = _VOLATILE
            continue
        meaning = blanks.meaning(*key)
        if meaning in key_by_meaning or len(key_by_meaning) < MAX_CONDITIONS:
            stands_for[key] = key_by_meaning.setdefault(meaning, key)
    if not key_by_meaning:
        return Answers({}, unknown, values, engines=values.engines)
    try:
        cells, book, computed = _computed(
            recalculator, workbook, list(key_by_meaning.values()), gold
        )
        changing = recalculator.changing_cells(book, list(computed.values))
    except WorkbookError as error:
        reason = f"conditions cannot be computed in this workbook: {error.message}"
        unknown |= dict.fromkeys(stands_for, reason)
        return Answers({}, unknown, values, engines=values.engines)
    truths: dict[ConditionKey, bool] = {}
    for key, representative in stands_for.items():
        ref = cells[representative]
        if ref in changing:
            unknown[key] = _VOLATILE
        elif ref in computed.values:
            truths[key] = _is_true(computed.values[ref])
        else:
            unknown[key] = computed.not_calculated.get(ref, "nothing computed it")
    return Answers(
        truths,
        unknown,
        values,
        engines=tuple(dict.fromkeys((*values.engines, *computed.engines))),
    )


def _computed(
    recalculator: Recalculator,
    workbook: Workbook,
    conditions: Sequence[ConditionKey],
    gold: Workbook,
) -> tuple[dict[ConditionKey, CellRef], Workbook, ComputedValues]:
    by_sheet: dict[str, list[ConditionKey]] = defaultdict(list)
    for key in conditions:
        by_sheet[key[0]].append(key)
    formulas = {
        sheet: [ScratchFormula(text, traits(text).array_sensitive) for _, text in keys]
        for sheet, keys in by_sheet.items()
    }
    data, cells_by_sheet = with_formulas(workbook.data, formulas)
    cells = {
        key: ref
        for sheet, keys in by_sheet.items()
        for key, ref in zip(keys, cells_by_sheet[sheet], strict=True)
    }
    book = open_workbook(data)
    areas = [_around(refs) for refs in cells_by_sheet.values()]
    return cells, book, recalculator.fill(book, areas, origin=Origin.SOLUTION, like=gold)


def _around(refs: Sequence[CellRef]) -> CellRange:
    first, last = refs[0], refs[-1]
    return CellRange(first.sheet, first.row, first.column, last.row, last.column)


def _is_true(value: CellValue) -> bool:
    """Whether the value of a condition counts as true; strings and errors do not."""
    return bool(value) if isinstance(value, bool | int | float) else False


_FILE_TIMEOUT_S = 30.0


class EngineCompute:
    """Computes formulas with a recalculator; see :class:`judge.compare.cells.computing.Compute`.

    Args:
        recalculator: decides what is computed, and computes it.

    Attributes:
        spent_s: seconds that this object has computed so far; meaningful for one thread.
    """

    def __init__(self, recalculator: Recalculator) -> None:
        self._recalculator = recalculator
        self.spent_s = 0.0

    @contextlib.contextmanager
    def _clock(self) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self.spent_s += time.perf_counter() - started

    def fill(
        self,
        workbook: Workbook,
        ranges: Sequence[CellRange],
        *,
        origin: Origin,
        like: Workbook | None = None,
    ) -> ComputedValues:
        """Computes the formula cells of some ranges that have no trusted value."""
        with self._clock():
            return self._recalculator.fill(workbook, ranges, origin=origin, like=like)

    def answer_conditions(
        self, questions: ConditionQuestions, gold: Workbook, output: Workbook, *, origin: Origin
    ) -> ConditionAnswers:
        """Finds out which conditions of conditional formats hold."""
        with self._clock():
            return answer_conditions(self._recalculator, questions, gold, output, origin=origin)

    def print_sheet(self, workbook: bytes, number: int) -> list[str]:
        """Returns the lines of a sheet as text; see :class:`judge.compare.sealed.SealedFiles`."""
        with self._clock():
            engine = self._engine(office=True)
            return engine.print_sheet(workbook, number, timeout_s=_FILE_TIMEOUT_S)

    def read_file(self, reader: str, data: bytes, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Reads a file; see :class:`judge.compare.sealed.SealedFiles`."""
        with self._clock():
            engine = self._engine(office=False)
            return engine.read_file(reader, data, options, timeout_s=_FILE_TIMEOUT_S)

    def _engine(self, *, office: bool) -> ServiceEngine:
        for engine in self._recalculator.engines:
            if isinstance(engine, ServiceEngine) and (engine.name == LIBREOFFICE) is office:
                return engine
        engines = "LibreOffice" if office else "the engines of the Python root"
        raise RecalcError(
            f"cannot read a file with {engines}: not in the sandbox, or excluded by the options",
            hint=f"Run `{INSTALL_COMMAND}`, and leave --recalc and --engine as they are.",
        )
