"""OpenComputer's checks of a LibreOffice Calc document as items.

For a finished file, the document is as LibreOffice would load it, with computed formulas.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import SupportsIndex

from judge.compare.checklists.items import Outcome, State, not_judged
from judge.compare.checklists.suites import (
    NOTHING,
    ItemDetails,
    PublishedSuite,
    as_check,
    as_intended,
)
from judge.compare.checklists.workspace import WORKBOOK_SUFFIXES, Workspace
from judge.compare.published import opencomputer
from judge.compare.published.opencomputer import CellFacts, Document, Expression, ExpressionError
from judge.compare.published_error import PublishedError, Side
from judge.errors import WorkbookError
from judge.formulas.lexer import Kind, tokens
from judge.workbook.address import Window, parse_cell
from judge.workbook.cell import CellRange, CellRef
from judge.workbook.reader import Workbook, open_workbook

DOCUMENTS = "/home/user/Documents"
"""The folder of the tasks' files."""

_ROUNDING_ERROR = 1e-9  # relative
_MAX_SORTED_ROWS = 100_000  # of a column that is read


def _document(workspace: Workspace) -> Document:
    return workspace.once("opencomputer", lambda: _open(workspace))


def _open(workspace: Workspace) -> Document:
    files = {f"{DOCUMENTS}/{name}": data for name, data in workspace.files.items()}
    return Document(_workbook(workspace), files, workspace.compute, workspace.origin)


def _workbook(workspace: Workspace) -> Workbook | None:
    """Returns the first workbook; None if it is missing or cannot be opened."""
    for name, data in workspace.files.items():
        if name.lower().endswith(WORKBOOK_SUFFIXES):
            try:
                return open_workbook(data)
            except WorkbookError:
                return None
    return None


def _official(check: object, workspace: Workspace) -> Outcome:
    written, document = as_check(check), _document(workspace)
    try:
        right = opencomputer.judge_check(written, document)
    except PublishedError as error:
        # If the answer causes the error, it fails; if the check itself does, no answer can pass.
        state = State.ERROR if error.side is Side.RULES else None
        return Outcome(0.0, detail=f"the verifier gives {error}", state=state)
    return _shown(written, document).outcome(right=right)


def _shown(check: Mapping[str, object], document: Document) -> ItemDetails:
    """Returns the expected and the actual value for a check of one cell."""
    name, *words = _words(check)
    if name not in {"cell-value", "check-cell-value", "check-cell-formatted"} or not words:
        return NOTHING
    sheet = words[2 if name != "cell-value" else 1 :][:1]
    try:
        cell = document.cell(words[0], sheet[0] if sheet else None)
    except (PublishedError, WorkbookError):
        return NOTHING
    expected: object = words[1] if name == "check-cell-value" else check.get("eval")
    actual: object = cell.formula if cell.formula and name == "cell-value" else cell.value
    if name == "check-cell-formatted":
        expected, actual = "bold", None
    return ItemDetails(expected, actual, "!".join([*sheet, words[0]]))


def _words(check: Mapping[str, object]) -> list[str]:
    try:
        return shlex.split(str(check.get("command", ""))) or [""]
    except ValueError:
        return [""]


# -- as intended --------------------------------------------------------------------------------


def _standard(check: object, workspace: Workspace) -> Outcome:
    written, document = as_check(check), _document(workspace)
    name, *words = _words(written)
    words = [*words, *[""] * 4]
    shown = _shown(written, document)
    if "eval" in written:
        right, fault = _evaluated(written, document)
        return as_intended(_official(check, workspace), shown, fault, right=right)
    if name == "check-calc-pref":
        return replace(
            not_judged("a preference of the desktop, which no output file records"), fault="O10"
        )
    decide = _INTENDED.get(name)
    if decide is None:
        return _official(check, workspace)
    try:
        right, fault = decide(document, words)
    except (PublishedError, WorkbookError) as error:
        right, fault, shown = False, "", replace(shown, detail=str(error))
    return as_intended(_official(check, workspace), shown, fault, right=right)


def _plain_value(document: Document, address: str, sheet: str | None) -> tuple[object, CellFacts]:
    """Returns a cell's value, however it is displayed, and the cell as the verifier reads it."""
    cell = document.cell(address, sheet)
    key, real = parse_cell(address), document.sheet(sheet)
    workbook = document.workbook
    if workbook is None or key is None:
        return None, cell
    window = Window(*key, *key)
    stored = workbook.cells(CellRange.of(real, window)).get(key)
    if stored is None:
        return None, cell
    return document.computed.values.get(CellRef(real, *key), stored.value), cell


def _cell_value(document: Document, words: list[str]) -> tuple[bool, str]:
    """Returns whether a cell has the stated number or string, and any fault (O1, O3 or O7)."""
    value, cell = _plain_value(document, words[0], words[2])
    expected = _number(words[1])
    if expected is None:
        return words[1].lower() in {str(cell.value).lower(), cell.shown.lower()}, "O3"
    if isinstance(value, str) or value is None:
        return False, "O7"
    actual = 0.0 if cell.formula and isinstance(cell.value, str) else cell.value
    if isinstance(actual, str):
        return False, "O7"
    half_unit = 0.5 * 10.0 ** -_decimals(words[1]) if "." in words[1] else 0.0
    near = abs(actual - expected) <= max(
        half_unit * (1 + _ROUNDING_ERROR), abs(expected) * _ROUNDING_ERROR
    )
    return near, "O3" if isinstance(cell.value, str) else "O1"


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _decimals(text: str) -> int:
    return len(text.partition(".")[2].strip())


def _named_range(document: Document, words: list[str]) -> tuple[bool, str]:
    """Whether the file defines a name whose reference contains a string."""
    sought, inside = words[0].casefold(), words[1].casefold()
    names = [name for name in document.facts().names if name.name.casefold() == sought]
    return any(inside in name.refers_to.casefold() for name in names), "O2"


def _autofilter(document: Document, words: list[str]) -> tuple[bool, str]:
    """Whether a sheet, or a table on it, has a filter."""
    facts = document.facts()
    tab = facts.tab(document.sheet(words[0]))
    sheet = None if tab is None else facts.sheet(tab)
    tables = () if sheet is None else sheet.tables
    return sheet is not None and (
        sheet.filter is not None or any(table.filter is not None for table in tables)
    ), "O11"


def _sorted(document: Document, words: list[str]) -> tuple[bool, str]:
    """Whether a column is in order: numbers before strings, blanks last."""
    column = parse_cell(f"{words[0]}1")
    if column is None:
        return False, "O12"
    first = int(words[2] or 1)
    window = Window(first, column[1], first + _MAX_SORTED_ROWS, column[1])
    cells = document.cells(document.sheet(words[3]), window)
    filled = {row: cell.value for (row, _), cell in cells.items() if cell.value != ""}
    if not filled:
        return False, "O12"
    values = list(filled.values())
    descending = words[1].lower() == "desc"
    order = sorted(values, key=_typed, reverse=descending)
    whole = sorted(filled) == list(range(first, first + len(filled)))
    return whole and values == order, "O12"


def _typed(value: float | str) -> tuple[int, float, str]:
    return (1, 0.0, value.casefold()) if isinstance(value, str) else (0, value, "")


Intended = Callable[[Document, list[str]], tuple[bool, str]]
_INTENDED: Mapping[str, Intended] = {
    "check-autofilter": _autofilter,
    "check-cell-value": _cell_value,
    "check-column-sorted": _sorted,
    "check-named-range": _named_range,
}
"""Command whose published code has a fault -> the command as intended, with the fault's number."""


# -- expressions -----------------------------------------------------------------------------------


class FormulaText(str):
    """A formula; a search in it finds only whole words outside strings (O5).

    ``'SUMIF' in formula`` is true if the formula calls SUMIF or SUMIFS. It is false if ``SUMIF`` is
    only in a string or is part of another name.
    """

    __slots__ = ()

    @staticmethod
    def of(formula: str) -> FormulaText:
        """Returns a formula without the content of its strings and without dollar signs."""
        parts = (
            '""' if token.kind is Kind.TEXT else token.text.replace("$", "")
            for token in tokens(formula)
        )
        return FormulaText("".join(parts))

    def _positions(self, word: object) -> list[int]:
        text = str(word).replace("$", "")
        before = r"(?<![\w.])" if text[:1].isalnum() else ""
        after = r"(?:[SAB]|\.[A-Z.]+)?(?![\w])" if text[-1:].isalpha() else ""
        after = after or (r"(?![\w])" if text[-1:].isalnum() else "")
        return [match.start() for match in re.finditer(before + re.escape(text) + after, self)]

    def __contains__(self, word: object) -> bool:
        return bool(self._positions(word))

    def count(self, word: str, *_: SupportsIndex | None) -> int:
        """Returns how often a word occurs."""
        return len(self._positions(word))

    def find(self, word: str, *_: SupportsIndex | None) -> int:
        """Returns the position at which a word first occurs; -1 if it does not occur."""
        return next(iter(self._positions(word)), -1)

    def upper(self) -> FormulaText:
        """Returns the formula in capitals."""
        return FormulaText(str.upper(self))

    def replace(self, old: str, new: str, *_: SupportsIndex) -> FormulaText:
        """Returns the formula with one string replaced by another."""
        return FormulaText(str.replace(self, old, new))


def _evaluated(check: Mapping[str, object], document: Document) -> tuple[bool, str]:
    """Returns what an expression should have returned, and the fault that explains a difference."""
    name, *words = _words(check)
    try:
        result = opencomputer.COMMANDS[name](document, [*words, *[""] * 4])
    except (KeyError, PublishedError, WorkbookError):
        return False, "O4"
    if name != "cell-value":
        return _holds(check, result), "O4"
    if result.get("type") == "empty":
        return False, "O4"
    formula = result.get("formula")
    intended = dict(result)
    if result.get("type") == "formula" and isinstance(result.get("value"), str):
        value, _ = _plain_value(document, words[0], words[1] if len(words) > 1 else "")
        if isinstance(value, int | float):
            intended["value"] = value
    by_value = _holds(check, intended)
    if isinstance(formula, str):
        intended["formula"] = FormulaText.of(formula)
    right = _holds(check, intended)
    return right, "O5" if right != by_value else "O3"


def _holds(check: Mapping[str, object], result: Mapping[str, object]) -> bool:
    """Whether an expression holds; an expression that raises an error does not (O6)."""
    try:
        return bool(Expression(str(check["eval"])).value({"result": result}))
    except ExpressionError:
        return False


# -- the suite -------------------------------------------------------------------------------------


def _in_words(check: object) -> str:
    written = as_check(check)
    return str(written.get("description") or written.get("command", ""))


def _faults(check: object) -> tuple[str, ...]:
    written = as_check(check)
    name = _words(written)[0]
    if name not in opencomputer.COMMANDS:
        return (f"there is no command {name!r} of the verifier",)
    if "eval" in written:
        try:
            Expression(str(written["eval"]))
        except ExpressionError as error:
            return (f"the expression cannot be read: {error}",)
        return ()
    return () if "key" in written else ("the check has neither key nor eval",)


SUITE = PublishedSuite(_official, _standard, _in_words, _faults)
