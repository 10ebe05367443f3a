"""Applies conditional formats as the published functions do, with their reading of formulas.

A condition is a function of the value of one cell: relative references are resolved for that cell.
References that are absolute in both directions are read as lists. The formulas that can be computed
here are those that occur in conditions of real workbooks.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judge.compare.published.spider2v.looks import SheetLooks, style_parts
from judge.compare.published_error import PublishedError
from judge.compare.rules.book import Book
from judge.compare.rules.methods import window_of
from judge.formulas.lexer import Kind, is_range, tokens
from judge.workbook.address import cell_key, cell_name
from judge.workbook.tree import Element, whole

_NAME = re.compile(r"[A-Za-z_][\w.]*")
_SIGNS = frozenset(("<>", "<=", ">=", *"=<>+-*/^&%(),;"))
_MAX_CHARS = 2000  # of a formula; conditions of real workbooks are shorter
_MAX_DEPTH = 40  # of parentheses and calls


class CannotComputeError(Exception):
    """The formula cannot be computed here."""


@dataclass(frozen=True, slots=True)
class ErrorResult:
    """An error such as ``#VALUE!``."""

    code: str


_VALUE_ERROR = ErrorResult("#VALUE!")
_Node = Callable[[Mapping[str, object]], object]


@dataclass(frozen=True, slots=True)
class Formula:
    """A parsed formula.

    Attributes:
        inputs: its references without dollar signs or repetitions, in alphabetical order.
        node: the function that computes it.
    """

    inputs: tuple[str, ...]
    node: _Node

    def compute(self, given: Mapping[str, object]) -> object:
        """Returns the result of the formula for given values.

        Raises:
            CannotComputeError: a function or a type is not known here.
        """
        return self.node(given)

    def holds(self, given: Mapping[str, object]) -> bool:
        """Returns whether the result counts as true.

        Raises:
            CannotComputeError: a function or a type is not known here.
        """
        result = self.node(given)
        return True if isinstance(result, ErrorResult) else bool(result)


def read_formula(text: str) -> Formula:
    """Reads a formula without its leading ``=``.

    Raises:
        CannotComputeError: it cannot be computed here.
    """
    if len(text) > _MAX_CHARS:
        raise CannotComputeError("the formula is too long")
    parser = _Parser(text)
    node = parser.expression(0)
    if parser.kind is not None:
        raise CannotComputeError(f"{parser.text!r} is not expected")
    return Formula(tuple(sorted(parser.inputs)), node)


def _read(text: str) -> list[tuple[str, str]]:
    """The kind and the text of each token of a formula, last first.

    Raises:
        CannotComputeError: it contains anything else.
    """
    words = [token for token in tokens(text) if token.kind is not Kind.SPACE]
    read: list[tuple[str, str]] = []
    index = 0
    while index < len(words):
        token = words[index]
        end = index + 1
        if token.kind is Kind.CELL:
            end = index + (3 if is_range(words, index) else 1)
            read.append(("area", "".join(word.text for word in words[index:end])))
        elif token.kind in (Kind.TEXT, Kind.NUMBER):
            read.append((token.kind, token.text))
        elif token.kind in (Kind.NAME, Kind.FUNCTION) and _NAME.fullmatch(token.text):
            read.append(("name", token.text))
        elif token.text in _SIGNS:
            read.append(("sign", token.text))
        else:
            raise CannotComputeError(f"{text[token.start : token.start + 10]!r} cannot be read")
        index = end
    return read[::-1]


class _Parser:
    """Reads a formula by precedence."""

    def __init__(self, text: str) -> None:
        self._tokens = _read(text)
        self.inputs: set[str] = set()
        self._depth = 0

    @property
    def kind(self) -> str | None:
        return self._tokens[-1][0] if self._tokens else None

    @property
    def text(self) -> str:
        return self._tokens[-1][1] if self._tokens else ""

    def _take(self) -> str:
        return self._tokens.pop()[1]

    def _expect(self, sign: str) -> None:
        if self.text != sign:
            raise CannotComputeError(f"expected {sign!r}, found {self.text!r}")
        self._take()

    def expression(self, least: int) -> _Node:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise CannotComputeError("the formula nests too deep")
        left = self._operand()
        while self.kind == "sign" and (binary := _BINARY.get(self.text)) and binary[0] > least:
            self._take()
            left = _joined(binary[1], left, self.expression(binary[0]))
        self._depth -= 1
        return left

    def _operand(self) -> _Node:
        if self.kind is None:
            raise CannotComputeError("the formula ends too early")
        kind = self.kind
        word = self._take()
        node: _Node
        if kind == "number":
            amount = float(word)
            node = lambda _: amount  # noqa: E731
        elif kind == "text":
            text = word[1:-1].replace('""', '"')
            node = lambda _: text  # noqa: E731
        elif kind == "area":
            name = _plain_area(word)
            self.inputs.add(name)
            node = lambda given: given[name]  # noqa: E731
        elif kind == "name":
            node = self._named(word.upper())
        elif word in "+-":
            inner = self.expression(5)
            node = inner if word == "+" else _joined(operator.sub, lambda _: 0.0, inner)
        elif word == "(":
            node = self.expression(0)
            self._expect(")")
        else:
            raise CannotComputeError(f"{word!r} is not expected")
        while self.text == "%":
            self._take()
            node = _joined(operator.truediv, node, lambda _: 100.0)
        return node

    def _named(self, name: str) -> _Node:
        if self.text != "(":
            if name in {"TRUE", "FALSE"}:
                return lambda _: name == "TRUE"
            raise CannotComputeError(f"the name {name} is not known")
        self._take()
        arguments: list[_Node] = []
        while self.text != ")":
            arguments.append(self.expression(0))
            if self.text != ")":
                self._expect(",")
        self._take()
        if name in {"TRUE", "FALSE"} and not arguments:
            return lambda _: name == "TRUE"
        function = _FUNCTIONS.get(name)
        if function is None:
            raise CannotComputeError(f"the function {name} is not known")
        return lambda given: _called(function, [argument(given) for argument in arguments])


def _plain_area(reference: str) -> str:
    ends = reference.replace("$", "").upper().split(":")
    return ends[0] if len(set(ends)) == 1 else ":".join(ends)


def _called(function: Callable[..., object], arguments: Sequence[object]) -> object:
    if function not in _TAKES_ERRORS:
        for argument in arguments:
            if isinstance(argument, ErrorResult):
                return argument
    try:
        return function(*arguments)
    except TypeError as error:
        raise CannotComputeError(str(error)) from error
    except (ValueError, ZeroDivisionError, OverflowError, AttributeError):
        return _VALUE_ERROR


def _joined(join: Callable[[object, object], object], left: _Node, right: _Node) -> _Node:
    def compute(given: Mapping[str, object]) -> object:
        first, second = left(given), right(given)
        for operand in (first, second):
            if isinstance(operand, ErrorResult):
                return operand
            if isinstance(operand, list):
                raise CannotComputeError("a range where one value belongs")
        try:
            return join(first, second)
        except ZeroDivisionError:
            return ErrorResult("#DIV/0!")
        except (TypeError, ValueError, OverflowError):
            return _VALUE_ERROR

    return compute


def _rank(value: object) -> tuple[int, object]:
    """Excel's order of types: numbers, strings, truth values."""
    if isinstance(value, bool):
        return 2, value
    if isinstance(value, str):
        return 1, value.upper()
    if value is None:
        raise TypeError("a blank has no order")
    return 0, value


def _ordered(compare: Callable[[Any, Any], Any]) -> Callable[[object, object], object]:
    return lambda first, second: bool(compare(_rank(first), _rank(second)))


def _equal(first: object, second: object) -> bool:
    if first is None or second is None:
        return first is second
    return _rank(first) == _rank(second)


def _amount(value: object) -> float:
    if value is None:
        return 0.0
    return float(value)  # type: ignore[arg-type]


def _arithmetic(compute: Callable[[float, float], float]) -> Callable[[object, object], object]:
    return lambda first, second: compute(_amount(first), _amount(second))


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


_BINARY: Mapping[str, tuple[int, Callable[[object, object], object]]] = {
    "=": (1, _equal),
    "<>": (1, lambda first, second: not _equal(first, second)),
    "<": (1, _ordered(operator.lt)),
    ">": (1, _ordered(operator.gt)),
    "<=": (1, _ordered(operator.le)),
    ">=": (1, _ordered(operator.ge)),
    "&": (2, lambda first, second: _text(first) + _text(second)),
    "+": (3, _arithmetic(operator.add)),
    "-": (3, _arithmetic(operator.sub)),
    "*": (4, _arithmetic(operator.mul)),
    "/": (4, _arithmetic(operator.truediv)),
    "^": (5, _arithmetic(math.pow)),
}


def _numbers(arguments: Sequence[object]) -> list[float]:
    flat: list[object] = []
    for argument in arguments:
        flat.extend(argument if isinstance(argument, list) else [argument])
    return [
        float(value)
        for value in flat
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]


def _search(text: object, within: object, start: object = 1.0) -> float:
    return _text(within).upper().index(_text(text).upper(), int(_amount(start)) - 1) + 1.0


def _find(text: object, within: object, start: object = 1.0) -> float:
    return _text(within).index(_text(text), int(_amount(start)) - 1) + 1.0


def _is_error(value: object) -> bool:
    return isinstance(value, ErrorResult)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _if(condition: object, then: object = True, otherwise: object = False) -> object:
    return then if condition else otherwise


def _right(text: object, count: object = 1.0) -> str:
    length = int(_amount(count))
    return _text(text)[-length:] if length else ""


_FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "AND": lambda *values: all(map(bool, values)),
    "OR": lambda *values: any(map(bool, values)),
    "NOT": lambda value: not value,
    "IF": _if,
    "MAX": lambda *values: max(_numbers(values), default=0.0),
    "MIN": lambda *values: min(_numbers(values), default=0.0),
    "SUM": lambda *values: math.fsum(_numbers(values)),
    "AVERAGE": lambda *values: math.fsum(_numbers(values)) / len(_numbers(values)),
    "COUNT": lambda *values: float(len(_numbers(values))),
    "ABS": lambda value: abs(_amount(value)),
    "INT": lambda value: float(math.floor(_amount(value))),
    "MOD": lambda value, by: (
        _amount(value) - _amount(by) * math.floor(_amount(value) / _amount(by))
    ),
    "ROUND": lambda value, digits: round(_amount(value), int(_amount(digits))),
    "LEN": lambda value: float(len(_text(value))),
    "LEFT": lambda value, count=1.0: _text(value)[: int(_amount(count))],
    "RIGHT": _right,
    "MID": lambda value, start, count: _text(value)[
        int(_amount(start)) - 1 : int(_amount(start)) - 1 + int(_amount(count))
    ],
    "UPPER": lambda value: _text(value).upper(),
    "LOWER": lambda value: _text(value).lower(),
    "TRIM": lambda value: " ".join(_text(value).split()),
    "SEARCH": _search,
    "FIND": _find,
    "ISNUMBER": _is_number,
    "ISTEXT": lambda value: isinstance(value, str),
    "ISERROR": _is_error,
    "ISBLANK": lambda value: False,  # noqa: ARG005 - the argument is never a blank cell
}
_TAKES_ERRORS = {_is_error, _is_number, _FUNCTIONS["ISTEXT"]}


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
_MAX_CELLS = 200_000  # of a reference that a condition reads
_MAX_BLANKS = 50

Condition = Callable[[object], bool]


@dataclass(frozen=True, slots=True)
class Active:
    """A conditional look, and the keys of the cells in which it is active."""

    look: Element | None
    keys: Sequence[int]


def active_looks(book: Book, sheet: str, *, osworld: bool) -> Iterator[Active]:
    """The conditional formats of a sheet, in the order in which they are applied.

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
        of_cells = joined.setdefault(holder.attributes.get("sqref", ""), [])
        of_cells.extend(holder.all("cfRule"))
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
            (_formula_of(formula), _arguments(book, sheet, formula, osworld=osworld))
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


def _formula_of(text: str) -> Formula:
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
    looks: SheetLooks, book: Book, sheet: str, property_names: Sequence[str], *, osworld: bool
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
            look_by_key[key] = tuple(
                looks.property(name, state, look.look) for name in property_names
            )
    return look_by_key
