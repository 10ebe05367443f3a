"""Applies conditional formats as the published functions do, with their reading of formulas.

A condition is a function of the value of one cell: every relative reference is taken as that cell.
References that are absolute in both directions are read as lists. The formulas that can be computed
here are those that occur in conditions of real workbooks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from judge.compare.published.spider2v.looks import SheetLooks, style_parts
from judge.compare.published.spider2v.mini_formulas import CannotComputeError, Formula, read_formula
from judge.compare.rules.book import Book
from judge.compare.rules.methods import window_of
from judge.compare.rules.published_error import PublishedError
from judge.workbook.address import cell_key, cell_name
from judge.workbook.tree import Element, whole

_ABSOLUTE = re.compile(r"\$([A-Z]{1,3})\$(\d+)(?::\$([A-Z]{1,3})\$(\d+))?")
_AS_FORMULA = {
    "expression",
    "containsText",
    "notContainsText",
    "endsWith",
    "beginsWith",
    "containsErrors",
    "notContainsErrors",
}
_MAX_CELLS = 200_000
_MAX_BLANKS = 50

Condition = Callable[[object], bool]


@dataclass(frozen=True, slots=True)
class Active:
    """A conditional look, and the keys of the cells in which it is active."""

    look: Element | None
    keys: Sequence[int]


def active_looks(book: Book, sheet: str, *, osworld: bool) -> Iterator[Active]:
    """The conditional looks of a sheet, in the order in which they are applied.

    Raises:
        PublishedError: the published function raises.
        WorkbookError: a part is broken or over a limit.
    """
    tab = book.tab(sheet)
    if tab is None:
        return
    # openpyxl joins rules of the same cells, in the order of their first mention.
    joined: dict[str, list[Element]] = {}
    for holder in book.facts.tree(tab).all("conditionalFormatting"):
        places = joined.setdefault(holder.attributes.get("sqref", ""), [])
        places.extend(holder.all("cfRule"))
    looks = style_parts(book).looks if joined else []
    for written, rules in joined.items():
        for rule in rules:
            condition = _condition(book, sheet, rule, osworld=osworld)
            if condition is None:
                continue
            index = whole(rule.attributes.get("dxfId"))
            look = looks[index] if index is not None and 0 <= index < len(looks) else None
            yield Active(look, list(_active(book, sheet, written, condition, osworld=osworld)))


def _active(
    book: Book, sheet: str, written: str, condition: Condition, *, osworld: bool
) -> Iterator[int]:
    blanks = 0
    for range_text in written.split():
        window = window_of(range_text)
        for row in range(window.min_row, window.max_row + 1):
            for column in range(window.min_column, window.max_column + 1):
                with book.workbook.package.blamed():
                    book.workbook.package.budget.take_cells(1)
                book.touch(sheet, row, column)
                value = book.texts.read(sheet, cell_name(row, column), osworld=osworld)
                if osworld and value is None:
                    blanks += 1
                    if blanks > _MAX_BLANKS:
                        break
                    continue
                if condition(value):
                    yield cell_key(row, column)
            else:
                continue
            break


def _condition(book: Book, sheet: str, rule: Element, *, osworld: bool) -> Condition | None:
    """Returns the condition of a rule; None if the rule is skipped."""
    kind = rule.attributes.get("type", "")
    formulas = [element.text for element in rule.all("formula")]
    if not osworld:
        if kind != "expression":
            raise PublishedError("NotImplementedError", f"Not Implemented Condition Type: {kind}")
        if not formulas:
            raise PublishedError("IndexError", "list index out of range")
        formulas = formulas[:1]
    try:
        read = [
            (_read(formula), _arguments(book, sheet, formula, osworld=osworld))
            for formula in formulas
        ]
    except CannotComputeError as error:
        if osworld:
            return None
        raise PublishedError("FormulaError", f"{formulas[0]}: {error}") from error
    if kind in _AS_FORMULA:
        if not read:
            raise PublishedError("IndexError", "list index out of range")
        formula, arguments = read[0]
        return lambda value: _holds(formula, [value, *arguments], osworld=osworld)
    if kind != "cellIs":
        return None
    operator = rule.attributes.get("operator", "")
    references = []
    for formula, _ in read:
        try:
            references.append(formula.compute({}) if not formula.inputs else None)
        except CannotComputeError:
            return None
        if formula.inputs:
            return None
    return lambda value: _compared(operator, value, references)


def _read(text: str) -> Formula:
    return read_formula(text)


def _arguments(book: Book, sheet: str, formula: str, *, osworld: bool) -> list[object]:
    """The values of the absolute references of a formula.

    Raises:
        PublishedError: one is a single cell; the published function raises an error there.
    """
    arguments: list[object] = []
    for match in _ABSOLUTE.finditer(formula):
        if match[3] is None:
            name = f"{match[1]}{match[2]}:"
            raise PublishedError("ValueError", f"{name} is not a valid coordinate or range")
        window = window_of(f"{match[1]}{match[2]}:{match[3]}{match[4]}")
        rows = window.rows
        if rows * window.columns > _MAX_CELLS:
            raise CannotComputeError("too many cells")
        arguments.append(
            [
                book.texts.read(sheet, cell_name(row, column), osworld=osworld)
                for row in range(window.min_row, window.max_row + 1)
                for column in range(window.min_column, window.max_column + 1)
            ]
        )
    return arguments


def _holds(formula: Formula, given: Sequence[object], *, osworld: bool) -> bool:
    names = formula.inputs
    if len(given) != len(names):
        if osworld:
            return False
        if len(given) > len(names):
            raise PublishedError("TypeError", "too many positional arguments")
        raise PublishedError("TypeError", f"missing a required argument: {names[len(given)]!r}")
    try:
        return formula.holds(dict(zip(names, given, strict=True)))
    except CannotComputeError as error:
        if osworld:
            return False
        raise PublishedError("FormulaError", str(error)) from error


_OPERATORS: Mapping[str, Callable[[object, Sequence[object]], bool]] = {
    "lessThanOrEqual": lambda value, refs: value <= refs[0],  # type: ignore[operator]
    "lessThan": lambda value, refs: value < refs[0],  # type: ignore[operator]
    "equal": lambda value, refs: value == refs[0],
    "greaterThanOrEqual": lambda value, refs: value >= refs[0],  # type: ignore[operator]
    "notEqual": lambda value, refs: value != refs[0],
    "greaterThan": lambda value, refs: value > refs[0],  # type: ignore[operator]
    "between": lambda value, refs: min(refs) <= value <= max(refs),  # type: ignore[type-var, operator]
    "notBetween": lambda value, refs: not min(refs) <= value <= max(refs),  # type: ignore[type-var, operator]
}


def _compared(operator: str, value: object, references: Sequence[object]) -> bool:
    compare = _OPERATORS.get(operator)
    if compare is None:
        return False
    try:
        return bool(compare(value, references))
    except (TypeError, IndexError):
        return False


def look_of_sheet(
    looks: SheetLooks, book: Book, sheet: str, asked: Sequence[str], *, osworld: bool
) -> dict[int, tuple[object, ...]]:
    """Returns the effect of conditional formats on cells: key -> requested properties.

    Raises:
        PublishedError: the published function raises.
        WorkbookError: a part is broken or over a limit.
    """
    look_by_key: dict[int, tuple[object, ...]] = {}
    for look in active_looks(book, sheet, osworld=osworld):
        for key in look.keys:
            state = looks.state(key)
            look_by_key[key] = tuple(looks.property(name, state, look.look) for name in asked)
    return look_by_key
