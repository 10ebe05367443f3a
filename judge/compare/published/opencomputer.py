"""OpenComputer's own checks of a LibreOffice Calc document, faults included.

Written from the behaviour of ``verifiers/libreoffice_calc/libreoffice_calc.py`` and
``evaluation/runtime/verification.py`` at echo0715/OpenComputer@76c5ec32. The published code checks
the document that is open in LibreOffice, with its formulas computed; this module checks the
workbook with the cascade's values. The faults are numbered O1 to O12 in docs/checklists.md.
"""

from __future__ import annotations

import ast
import csv
import datetime as dt
import io
import itertools
import math
import operator
import posixpath
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from judge.compare.cells.computing import Compute, NoEngines
from judge.compare.published_error import PublishedError, Side
from judge.core.submission import Origin
from judge.errors import WorkbookError
from judge.workbook.address import Window, parse_area, parse_cell
from judge.workbook.cell import Cell, CellRange, CellRef, ComputedValues, ErrorValue
from judge.workbook.facts.book import BookFacts
from judge.workbook.facts.sheets import SheetFacts
from judge.workbook.number_formats import to_serial
from judge.workbook.reader import Workbook

_GRID_ROWS, _GRID_COLUMNS = 50, 26
"""Largest number of rows and columns that ``sheet-data`` and ``range-values`` return."""

_MAX_STEPS = 100_000  # nodes that are evaluated; those of a loop count in every iteration
_MAX_SORTED_ROWS = 100_000  # of a column that is read


@dataclass(frozen=True)
class Document:
    """The document that LibreOffice has open, and the files next to it.

    Attributes:
        workbook: the workbook; None if it is missing or cannot be opened.
        files: paths as checks name them -> bytes.
        compute: computes formulas.
        origin: where the workbook comes from.
    """

    workbook: Workbook | None
    files: Mapping[str, bytes] = field(default_factory=dict)
    compute: Compute = field(default_factory=NoEngines)
    origin: Origin = Origin.FINISHED

    @cached_property
    def _facts(self) -> BookFacts:
        return BookFacts(self._book)

    @cached_property
    def computed(self) -> ComputedValues:
        """Computes the values of all formulas, as LibreOffice does when it opens a workbook.

        Raises:
            PublishedError: there is no document.
        """
        book = self._book
        areas = [area for sheet in book.sheet_names if (area := book.used_range(sheet)) is not None]
        return self.compute.fill(book, areas, origin=self.origin)

    @property
    def _book(self) -> Workbook:
        if self.workbook is None:
            raise PublishedError("error", "no document is open", Side.ANSWER)
        return self.workbook

    def facts(self) -> BookFacts:
        """Returns the features of the workbook other than its cells.

        Raises:
            PublishedError: there is no document.
        """
        return self._facts

    def sheet_named(self, name: str | None) -> str | None:
        """Returns the sheet of a name in any letter case, the active sheet for no name, or None."""
        if not name:
            return self._book.active_sheet
        folded = name.casefold()
        return next((sheet for sheet in self._book.sheet_names if sheet.casefold() == folded), None)

    def sheet(self, name: str | None) -> str:
        """Returns the sheet as the method above does, but raises if it is missing.

        Raises:
            PublishedError: there is no such sheet, or no document.
        """
        sheet = self.sheet_named(name)
        if sheet is None:
            raise PublishedError("error", f"sheet {name!r} not found", Side.ANSWER)
        return sheet

    def cells(self, sheet: str, window: Window) -> Mapping[tuple[int, int], CellFacts]:
        """Returns the stored cells of a window, with computed values.

        Raises:
            PublishedError: the sheet cannot be read.
        """
        area = CellRange.of(sheet, window)
        book = self._book
        try:
            values = self.computed.values
            return {
                position: _facts_of(book, cell, values.get(CellRef(sheet, *position), cell.value))
                for position, cell in book.cells(area).items()
            }
        except WorkbookError as error:
            raise PublishedError("error", error.message, Side.ANSWER) from error

    def cell(self, address: str, sheet: str | None) -> CellFacts:
        """Returns one cell; a blank cell if nothing is stored there.

        Raises:
            PublishedError: there is no such cell, sheet or document.
        """
        position = parse_cell(address)
        if position is None:
            raise PublishedError("error", f"{address!r} is not a cell", Side.RULES)
        window = Window(*position, *position)
        return self.cells(self.sheet(sheet), window).get(position, CellFacts("", "", None, 0))


@dataclass(frozen=True, slots=True)
class CellFacts:
    """A cell as the verifier reports it.

    Attributes:
        value: its number or text; for a formula with the result 0, its displayed text (O3).
        shown: the displayed text.
        formula: its formula in LibreOffice's notation; None for a constant.
        style: index of its format.
    """

    value: float | str
    shown: str
    formula: str | None
    style: int


def _facts_of(book: Workbook, cell: Cell, value: object) -> CellFacts:
    formula = None if cell.formula is None else _in_office_notation(cell.formula)
    number: float | None = None
    if isinstance(value, bool):
        number, shown = float(value), str(value).upper()
    elif isinstance(value, int | float):
        number, shown = float(value), f"{value:.15g}"
    elif isinstance(value, dt.datetime | dt.date | dt.time | dt.timedelta):
        number, shown = to_serial(value, date_1904=book.date_1904), str(value)
    elif isinstance(value, ErrorValue):
        shown = value.code
    else:
        shown = "" if value is None else str(value)
    if number is None or not math.isfinite(number):
        return CellFacts(shown, shown, formula, cell.style)
    whole = int(number) if number == int(number) else number
    if formula is not None and number == 0 and shown != "0":
        return CellFacts(shown, shown, formula, cell.style)
    return CellFacts(whole, shown, formula, cell.style)


_SHEET_PREFIX = re.compile(r"('(?:[^']|'')+'|[\w.]+)!")


def _in_office_notation(formula: str) -> str:
    """Returns a formula as LibreOffice writes it, as far as the checks search for it."""
    parts = re.split(r'("(?:[^"]|"")*")', formula)
    for at in range(0, len(parts), 2):
        parts[at] = _SHEET_PREFIX.sub(r"$\1.", parts[at].replace(",", ";"))
    return "".join(parts)


# -- a check ---------------------------------------------------------------------------------------


def judge_check(check: Mapping[str, object], document: Document) -> bool:
    """Returns whether a published check passes.

    Args:
        check: ``command`` with ``key`` and ``expected``, or with ``eval``.
        document: the document that it checks.

    Raises:
        PublishedError: the verifier reports an error, which counts as a failure.
    """
    try:
        words = shlex.split(str(check.get("command", "")))
    except ValueError as error:
        raise PublishedError("ValueError", str(error), Side.RULES) from error
    command = COMMANDS.get(words[0]) if words else None
    if command is None:
        raise PublishedError("error", f"unknown command {words[:1]}", Side.RULES)
    try:
        result = command(document, [*words[1:], *[""] * 4])
    except PublishedError as error:
        if "eval" not in check:
            raise
        result = {"error": str(error)}
    except WorkbookError as error:
        raise PublishedError("error", error.message, Side.ANSWER) from error
    if "eval" in check:
        try:
            return bool(Expression(str(check["eval"])).value({"result": result}))
        except ExpressionError as error:
            raise PublishedError("eval", str(error)) from error
    return bool(result.get(str(check.get("key"))) == check.get("expected"))


Result = dict[str, object]
Command = Callable[[Document, Sequence[str]], Result]


def _cell_value(document: Document, words: Sequence[str]) -> Result:
    cell = document.cell(words[0], words[1])
    kind = "formula" if cell.formula is not None else "text"
    kind = "value" if kind == "text" and not isinstance(cell.value, str) else kind
    result: Result = {"value": cell.value, "type": kind, "display": cell.shown}
    if cell.value == "" and cell.formula is None:
        result["value"], result["type"] = None, "empty"
    result["formula"] = cell.formula
    return result


def _check_cell_value(document: Document, words: Sequence[str]) -> Result:
    actual, expected = document.cell(words[0], words[2]), words[1]
    try:
        number = float(expected)
    except ValueError:
        number = None
    if number is not None:
        try:
            return {"match": float(actual.value) == number}
        except ValueError:
            pass
    return {
        "match": expected.lower() in {str(actual.value).lower(), actual.shown.lower()},
    }


def _check_bold(document: Document, words: Sequence[str]) -> Result:
    cell = document.cell(words[0], words[2])
    book = document.workbook
    bold = book is not None and book.style(cell.style).bold
    return {"match": bold == (words[1].lower() == "true")}


def _check_saved(document: Document, _: Sequence[str]) -> Result:
    document.facts()
    return {"saved": True}


def _sheet_exists(document: Document, words: Sequence[str]) -> Result:
    document.facts()
    return {"exists": document.sheet_named(words[0]) is not None}


def _sheet_count(document: Document, words: Sequence[str]) -> Result:
    return {"match": len(document.facts().tabs) == int(words[0])}


def _grid(document: Document, sheet: str, window: Window) -> Result:
    cells = document.cells(sheet, window)
    rows = range(window.min_row, min(window.max_row, window.min_row + _GRID_ROWS - 1) + 1)
    last = min(window.max_column, window.min_column + _GRID_COLUMNS - 1)
    data = [
        [
            None if cell is None or cell.value == "" else cell.value
            for column in range(window.min_column, last + 1)
            for cell in [cells.get((row, column))]
        ]
        for row in rows
    ]
    return {"data": data}


def _sheet_data(document: Document, words: Sequence[str]) -> Result:
    sheet = document.sheet(words[0])
    used = document.facts().workbook.used_range(sheet)
    if used is None:
        return {"data": []}
    return _grid(document, sheet, Window(1, 1, used.max_row, used.max_column))


def _range_values(document: Document, words: Sequence[str]) -> Result:
    window = parse_area(words[0])
    if window is None:
        raise PublishedError("error", f"{words[0]!r} is not a range", Side.RULES)
    return _grid(document, document.sheet(words[1]), window)


def _file_exists(document: Document, words: Sequence[str]) -> Result:
    return {"exists": posixpath.normpath(words[0]) in document.files}


def _csv_rows(document: Document, words: Sequence[str]) -> Result:
    data = document.files.get(posixpath.normpath(words[0]))
    if data is None:
        return {"match": False}
    try:
        rows = sum(1 for _ in csv.reader(io.StringIO(data.decode("utf-8"), newline="")))
    except (UnicodeDecodeError, csv.Error) as error:
        raise PublishedError("error", str(error), Side.ANSWER) from error
    return {"match": rows - (words[2].lower() in {"", "true"}) == int(words[1])}


def _preference(_: Document, words: Sequence[str]) -> Result:
    problem = f"{words[0]} is a preference of the desktop, and no output file records it (O10)"
    raise PublishedError("error", problem, Side.RULES)


def _column_sorted(document: Document, words: Sequence[str]) -> Result:
    column = parse_cell(f"{words[0]}1")
    first = int(words[2] or 1)
    if column is None:
        raise PublishedError("error", f"{words[0]!r} is not a column", Side.RULES)
    window = Window(first, column[1], first + _MAX_SORTED_ROWS, column[1])
    cells = document.cells(document.sheet(words[3]), window)
    values = [cell.value for cell in cells.values() if cell.value != ""]
    if not values:
        raise PublishedError("error", "the column holds nothing", Side.ANSWER)
    if words[1].lower() == "desc":
        values.reverse()
    try:
        return {"sorted": all(not after < value for value, after in itertools.pairwise(values))}  # type: ignore[operator]
    except TypeError:
        return {"sorted": False}


def _named_range(_: Document, __: Sequence[str]) -> Result:
    raise PublishedError("error", "getNamedRanges", Side.RULES)


def _autofilter(document: Document, words: Sequence[str]) -> Result:
    document.sheet(words[0])
    return {"match": False}


def _frozen_rows(document: Document, words: Sequence[str]) -> Result:
    pane = _sheet_facts(document, words[1]).view.pane
    frozen = 0 if pane is None or not pane.frozen else int(pane.rows)
    return {"match": 0 < frozen == int(words[0])}


def _merged(document: Document, words: Sequence[str]) -> Result:
    merges = _sheet_facts(document, words[1]).merges
    return {"merged": words[0].replace("$", "").upper() in {merged.upper() for merged in merges}}


def _validation(document: Document, words: Sequence[str]) -> Result:
    position = parse_cell(words[0])
    rules = _sheet_facts(document, words[1]).validations
    return {
        "match": position is not None
        and any(
            rule.kind not in {None, "none"} and _covers(rule.places, position) for rule in rules
        )
    }


def _conditional_format(document: Document, words: Sequence[str]) -> Result:
    sought = parse_area(words[0])
    formats = _sheet_facts(document, words[1]).formats
    return {
        "match": sought is not None
        and any(
            area is not None and area.overlaps(sought)
            for rule in formats
            for area in map(parse_area, rule.places)
        )
    }


def _covers(ranges: Sequence[str], position: tuple[int, int]) -> bool:
    return any(area is not None and area.holds(*position) for area in map(parse_area, ranges))


def _sheet_facts(document: Document, name: str) -> SheetFacts:
    facts = document.facts()
    tab = facts.tab(document.sheet(name))
    if tab is None:
        raise PublishedError("error", f"sheet {name!r} not found", Side.ANSWER)
    return facts.sheet(tab)


COMMANDS: Mapping[str, Command] = {
    "cell-value": _cell_value,
    "check-autofilter": _autofilter,
    "check-calc-pref": _preference,
    "check-cell-formatted": _check_bold,
    "check-cell-value": _check_cell_value,
    "check-column-sorted": _column_sorted,
    "check-conditional-format": _conditional_format,
    "check-csv-rows": _csv_rows,
    "check-data-validation": _validation,
    "check-file-exists": _file_exists,
    "check-file-saved": _check_saved,
    "check-frozen-rows": _frozen_rows,
    "check-merged-cells": _merged,
    "check-named-range": _named_range,
    "check-sheet-count": _sheet_count,
    "check-sheet-exists": _sheet_exists,
    "range-values": _range_values,
    "sheet-data": _sheet_data,
}
"""Name of a command of the verifier -> the function that emulates it."""


# -- expressions over a result ---------------------------------------------------------------------


class ExpressionError(Exception):
    """The expression raises, or is not of the supported kinds."""


_FUNCTIONS: Mapping[str, Callable[..., object]] = {
    function.__name__: function
    for function in (abs, all, any, bool, float, int, len, max, min, round, str, sum)
}
_TYPES = {"int": int, "float": float, "str": str, "bool": bool, "list": list, "dict": dict}
_METHODS: Mapping[type, frozenset[str]] = {
    dict: frozenset({"get", "items", "keys", "values"}),
    str: frozenset(
        ("count", "endswith", "find", "lower", "replace", "split", "startswith", "strip", "upper")
    ),
    list: frozenset({"count", "index"}),
}
_OPERATORS: Mapping[type, Callable[[Any, Any], object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}
_MAX_TEXT_CHARS = 1_000_000  # of a string that an expression makes


def _no_number(value: object) -> object:
    raise ExpressionError(f"{type(value).__name__} has no sign")


class Expression:
    """A Python expression of a small grammar, which is interpreted and never run as Python.

    The grammar covers what the published checks use: comparison, ``and``, ``or``, ``not``,
    arithmetic, methods of strings and of ``result``, a few functions, and generators over the
    values of a result.

    Args:
        text: the expression.

    Raises:
        ExpressionError: the text is not an expression.
    """

    def __init__(self, text: str) -> None:
        try:
            self._body = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ExpressionError(str(error)) from error
        self._steps = 0

    def value(self, names: Mapping[str, object]) -> object:
        """Returns the value of the expression.

        Raises:
            ExpressionError: the expression raises, takes too many steps, or is not in the grammar.
        """
        try:
            return self._follow(self._body, names)
        except (ArithmeticError, LookupError, TypeError, ValueError, RecursionError) as error:
            raise ExpressionError(f"{type(error).__name__}: {error}") from error

    def _follow(self, node: ast.expr, names: Mapping[str, object]) -> object:
        self._steps += 1
        if self._steps > _MAX_STEPS:
            raise ExpressionError(f"the expression takes more than {_MAX_STEPS:,} steps")
        follow = getattr(self, f"_{type(node).__name__.lower()}", None)
        if follow is None:
            raise ExpressionError(f"{type(node).__name__} is not understood")
        value: object = follow(node, names)
        return value

    def _constant(self, node: ast.Constant, _: Mapping[str, object]) -> object:
        return node.value

    def _name(self, node: ast.Name, names: Mapping[str, object]) -> object:
        if node.id in names:
            return names[node.id]
        if node.id in _TYPES:
            return _TYPES[node.id]
        raise ExpressionError(f"name {node.id!r} is not defined")

    def _list(self, node: ast.List, names: Mapping[str, object]) -> object:
        return [self._follow(item, names) for item in node.elts]

    def _tuple(self, node: ast.Tuple, names: Mapping[str, object]) -> object:
        return tuple(self._follow(item, names) for item in node.elts)

    def _boolop(self, node: ast.BoolOp, names: Mapping[str, object]) -> object:
        stops_at = isinstance(node.op, ast.Or)
        value: object = None
        for operand in node.values:
            value = self._follow(operand, names)
            if bool(value) is stops_at:
                break
        return value

    def _unaryop(self, node: ast.UnaryOp, names: Mapping[str, object]) -> object:
        value = self._follow(node.operand, names)
        if isinstance(node.op, ast.Not):
            return not value
        if isinstance(node.op, ast.USub):
            return 0 - value if isinstance(value, int | float) else _no_number(value)
        return value

    def _binop(self, node: ast.BinOp, names: Mapping[str, object]) -> object:
        left, right = self._follow(node.left, names), self._follow(node.right, names)
        numbers = isinstance(left, int | float) and isinstance(right, int | float)
        if type(node.op) not in _OPERATORS or not (numbers or isinstance(node.op, ast.Add)):
            raise ExpressionError(f"{type(node.op).__name__} is not understood")
        return _OPERATORS[type(node.op)](left, right)

    def _compare(self, node: ast.Compare, names: Mapping[str, object]) -> object:
        left = self._follow(node.left, names)
        for sign, comparator in zip(node.ops, node.comparators, strict=True):
            right = self._follow(comparator, names)
            if isinstance(sign, ast.In | ast.NotIn):
                holds = operator.contains(right, left) == isinstance(sign, ast.In)  # type: ignore[arg-type]
            else:
                holds = bool(_OPERATORS[type(sign)](left, right))
            if not holds:
                return False
            left = right
        return True

    def _ifexp(self, node: ast.IfExp, names: Mapping[str, object]) -> object:
        return self._follow(node.body if self._follow(node.test, names) else node.orelse, names)

    def _subscript(self, node: ast.Subscript, names: Mapping[str, object]) -> object:
        value = self._follow(node.value, names)
        return operator.getitem(value, self._follow(node.slice, names))  # type: ignore[call-overload]

    def _call(self, node: ast.Call, names: Mapping[str, object]) -> object:
        if node.keywords:
            raise ExpressionError("named arguments are not understood")
        if isinstance(node.func, ast.Attribute):
            owner = self._follow(node.func.value, names)
            methods = (names for kind, names in _METHODS.items() if isinstance(owner, kind))
            if node.func.attr not in next(methods, ()):
                raise ExpressionError(f"{type(owner).__name__} has no {node.func.attr!r}")
            function = getattr(owner, node.func.attr)
        elif isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            function = isinstance
        elif isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
            function = _FUNCTIONS[node.func.id]
        else:
            raise ExpressionError("only a few functions are understood")
        value = function(*[self._follow(argument, names) for argument in node.args])
        if isinstance(value, str) and len(value) > _MAX_TEXT_CHARS:
            raise ExpressionError("the text is too long")
        return value

    def _generatorexp(self, node: ast.GeneratorExp, names: Mapping[str, object]) -> object:
        return self._elements(node.elt, node.generators, names)

    def _listcomp(self, node: ast.ListComp, names: Mapping[str, object]) -> object:
        return list(self._elements(node.elt, node.generators, names))

    def _elements(
        self, value: ast.expr, loops: Sequence[ast.comprehension], names: Mapping[str, object]
    ) -> Iterator[object]:
        if not loops:
            yield self._follow(value, names)
            return
        loop, *rest = loops
        items = self._follow(loop.iter, names)
        if not isinstance(loop.target, ast.Name) or not isinstance(items, list | tuple):
            raise ExpressionError("only loops over lists are understood")
        for item in items:
            inner = {**names, loop.target.id: item}
            if all(self._follow(condition, inner) for condition in loop.ifs):
                yield from self._elements(value, rest, inner)
