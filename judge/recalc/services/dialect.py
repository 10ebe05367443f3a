"""Formulas in the words that LibreOffice understands as Excel does.

Each rewriting stands for a case in which LibreOffice was measured to give something else than
Excel for the same text. What is rewritten means the same to Excel.

Standard library only: this text goes into the sandbox.
"""

from __future__ import annotations

import re
from collections.abc import Callable

Rewriting = Callable[[list[str]], str | None]

TRIGGER = re.compile(
    rb"(?:DATEVALUE|EOMONTH|EDATE|SMALL|LARGE|DAY|MONTH|YEAR|DATE|MATCH|_xlfn\.SINGLE"
    rb"|__xludf\.DUMMYFUNCTION)\s*\(",
    re.IGNORECASE,
)
"""Parts without any of these stay as they are."""

_CALL = re.compile(
    r"""
    "(?:[^"]|"")*" | '(?:[^']|'')*' | (?P<name>[A-Za-z_][\w.]*)\s*\(
    """,
    re.VERBOSE,
)

_SPELT_DATE = (
    '_xlfn.ORG.LIBREOFFICE.REGEX({},"^\\s*([0-9]{{1,2}})[\\s/-]*([A-Za-z]{{3,}})[\\s,/-]*'
    '([0-9]{{4}}|[0-9]{{2}})\\s*$","$1-$2-$3")'
)


def spelt_date(arguments: list[str]) -> str | None:
    """Excel reads "1June2021" and "1 June 2021" as dates, LibreOffice only "1-June-2021"."""
    if len(arguments) != 1:
        return None
    return f"DATEVALUE({_SPELT_DATE.format(arguments[0])})"


def joined_date(name: str) -> Rewriting:
    """A text joined together where a date is wanted."""

    def rewrite(arguments: list[str]) -> str | None:
        if len(arguments) != 2 or not joins_text(arguments[0]):
            return None
        return f"{name}(DATEVALUE({_SPELT_DATE.format(arguments[0])}),{arguments[1]})"

    return rewrite


def part_of_date(name: str) -> Rewriting:
    """Day 0 is in January 1900 to Excel, and 59 the 28th of February; so is a blank cell day 0.

    LibreOffice counts from 1899-12-30, which agrees from day 61 on.
    """

    def rewrite(arguments: list[str]) -> str | None:
        if len(arguments) != 1 or _LATE_DATE.match(arguments[0]):
            return None
        value = f"({arguments[0]})"
        part = f"{name}({value}+({value}<60)+({value}<1))"
        return f"({part}-({value}<1))" if name == "DAY" else part

    return rewrite


_LATE_DATE = re.compile(r"\s*(?:TODAY|NOW|DATE|DATEVALUE)\s*\(", re.IGNORECASE)


def early_year(arguments: list[str]) -> str | None:
    """To Excel a year below 1900 is one after 1900."""
    if len(arguments) != 3 or _LATE_YEAR.fullmatch(arguments[0]):
        return None
    year = f"({arguments[0]})"
    return f"DATE({year}+1900*({year}<1900),{arguments[1]},{arguments[2]})"


_LATE_YEAR = re.compile(r"\s*(?:(?:19|20)\d\d|YEAR\s*\(.*\))\s*", re.IGNORECASE)


def ranked(name: str) -> Rewriting:
    """Where there are fewer numbers than asked for Excel says #NUM!, LibreOffice #VALUE!."""

    def rewrite(arguments: list[str]) -> str | None:
        if len(arguments) != 2:
            return None
        values = arguments[0]
        call = f"{name}({values},{arguments[1]})"
        return f"IFERROR({call},IF(ISERROR(SUM({values})),{call},SQRT(-1)))"

    return rewrite


def intersection(arguments: list[str]) -> str | None:
    """The @ of a formula, which LibreOffice does not read; a plain formula intersects anyway."""
    return f"({arguments[0]})" if len(arguments) == 1 else None


def unknown_function(arguments: list[str]) -> str:
    """What an export of Google Sheets puts in for a function that Excel lacks is #NAME? there."""
    del arguments
    return "JUDGE.UNKNOWN()"


REWRITINGS: dict[str, Rewriting] = {
    "DATEVALUE": spelt_date,
    "EOMONTH": joined_date("EOMONTH"),
    "EDATE": joined_date("EDATE"),
    "DAY": part_of_date("DAY"),
    "MONTH": part_of_date("MONTH"),
    "YEAR": part_of_date("YEAR"),
    "DATE": early_year,
    "SMALL": ranked("SMALL"),
    "LARGE": ranked("LARGE"),
    "_XLFN.SINGLE": intersection,
    "__XLUDF.DUMMYFUNCTION": unknown_function,
}

OF_1900 = frozenset(("DAY", "MONTH", "YEAR", "DATE"))
"""Rewritings that hold for workbooks that count from 1900 alone."""

DEEPEST = 12
"""Calls nested deeper than this stay as they are: some rewritings repeat their arguments."""

LONGEST = 8192
"""Excel's own limit; a formula that would grow past it stays as it is."""


def for_libreoffice(formula: str, *, date_1904: bool = False) -> str:
    """A formula's text, without its ``=``, as LibreOffice is to read it.

    Args:
        formula: the text.
        date_1904: whether the workbook counts its days from 1904.
    """
    rewritten = _rewrite(formula, 0, OF_1900 if date_1904 else frozenset())
    return formula if len(rewritten) > LONGEST else rewritten


def _rewrite(formula: str, depth: int, without: frozenset[str]) -> str:
    if depth > DEEPEST:
        return formula
    pieces = []
    done = position = 0
    while (found := _CALL.search(formula, position)) is not None:
        position = found.end()
        name = found["name"]
        if name is None or name.upper() not in REWRITINGS or name.upper() in without:
            continue
        arguments, end = split_arguments(formula, position)
        if arguments is None:
            continue
        inner = [_rewrite(argument, depth + 1, without) for argument in arguments]
        new = REWRITINGS[name.upper()](inner)
        if new is None:
            new = f"{name}({','.join(inner)})"
        pieces += [formula[done : found.start()], new]
        done = position = end
        if sum(map(len, pieces)) > LONGEST:
            return formula
    pieces.append(formula[done:])
    return "".join(pieces)


def split_arguments(formula: str, start: int) -> tuple[list[str] | None, int]:
    """The arguments of a call.

    Args:
        formula: the whole text.
        start: where the first argument begins.

    Returns:
        The arguments and the position behind the closing bracket; None for the arguments where the
        bracket is never closed.
    """
    arguments: list[str] = []
    depth = 0
    begin = position = start
    while position < len(formula):
        character = formula[position]
        if character in "\"'":
            end = formula.find(character, position + 1)
            if end < 0:
                break
            position = end
        elif character in "({[":
            depth += 1
        elif character in ")}]" and depth:
            depth -= 1
        elif character == "," and not depth:
            arguments.append(formula[begin:position])
            begin = position + 1
        elif character == ")":
            arguments.append(formula[begin:position])
            return arguments, position + 1
        position += 1
    return None, start


def joins_text(argument: str) -> bool:
    """Whether an argument is texts joined by ``&`` at its top level."""
    depth = 0
    quoted = False
    for character in argument:
        if character == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif character in "({[":
            depth += 1
        elif character in ")}]":
            depth -= 1
        elif character == "&" and not depth:
            return True
    return False
