"""Rewrites formulas so that LibreOffice computes what Excel does.

Each rewriting is for a case in which LibreOffice was measured to differ from Excel for the same
formula. The rewritten formula means the same to Excel.

Standard library only: this text goes into the sandbox.
"""

from __future__ import annotations

import re
from collections.abc import Callable

Rewriting = Callable[[list[str]], str | None]

TRIGGER = re.compile(
    rb"(?:DATEVALUE|EOMONTH|EDATE|SMALL|LARGE|DAY|MONTH|YEAR|DATE|MATCH|NPV|FREQUENCY|MROUND|DOLLAR|ATAN2"
    rb"|_xlfn\.BINOM\.DIST\.RANGE|NUMBERVALUE|AGGREGATE|REGEXTEST|REGEXEXTRACT|REGEXREPLACE|FORECAST\.ETS(?:\.\w+)?|_xlfn\.SINGLE|__xludf\.DUMMYFUNCTION)\s*\("
    rb"|[VH]LOOKUP\s*\([^(),]*,[^(),]*,\s*(?:0|-\d+)\s*[,)]",
    re.IGNORECASE,
)
"""Formulas that match none of these stay as they are."""

_CALL = re.compile(
    r"""
    "(?:[^"]++|"")*+" | '(?:[^']++|'')*+' | (?P<name>[A-Za-z_][\w.]*)\s*\(
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


def moved_date(name: str) -> Rewriting:
    """EDATE and EOMONTH: concatenated text is a date; before Excel's first day comes #NUM!."""

    def rewrite(arguments: list[str]) -> str | None:
        if len(arguments) != 2:
            return None
        start, months = arguments
        if joins_text(start):
            start = f"DATEVALUE({_SPELT_DATE.format(start)})"
        call = f"{name}({start},{months})"
        if _FORWARD.fullmatch(months):
            return call
        return f"IF({call}<0,{_NUM},{call})"

    return rewrite


_FORWARD = re.compile(r"\s*\d+\s*")
_NUM = "SQRT(-1)"


def part_of_date(name: str) -> Rewriting:
    """To Excel, day 0 and a blank cell are in January 1900, and day 59 is the 28th of February.

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
    """To Excel, a year below 1900 is added to 1900, and a year below 0 is an error."""
    if len(arguments) != 3 or _LATE_YEAR.fullmatch(arguments[0]):
        return None
    year = f"({arguments[0]})"
    call = f"DATE(IF({year}<0,{_NUM},{year}+1900*({year}<1900)),{arguments[1]},{arguments[2]})"
    return f"({call}-({call}<61))"


_LATE_YEAR = re.compile(r"\s*(?:19(?!00)\d\d|20\d\d|YEAR\s*\(.*\))\s*", re.IGNORECASE)


def ranked(name: str) -> Rewriting:
    """If there are too few numbers, Excel gives #NUM!, LibreOffice #VALUE!."""

    def rewrite(arguments: list[str]) -> str | None:
        if len(arguments) != 2:
            return None
        values = arguments[0]
        call = f"{name}({values},{arguments[1]})"
        return f"IFERROR({call},IF(ISERROR(SUM({values})),{call},SQRT(-1)))"

    return rewrite


def nearest(arguments: list[str]) -> str | None:
    """The last value that is not an error, as in ``MATCH(2,1/(A1:A9="x"))``.

    LibreOffice's LOOKUP finds it; its MATCH stops at the first error that it meets.
    """
    if len(arguments) not in (2, 3) or not _MAY_HOLD_ERRORS.search(_TEXT.sub("", arguments[1])):
        return None
    if len(arguments) == 3 and arguments[2].strip().upper() not in ("1", "TRUE", "TRUE()"):
        return None
    sought, values = arguments[0], arguments[1]
    return f"LOOKUP({sought},{values},_xlfn.SEQUENCE(ROWS({values}),COLUMNS({values})))"


_TEXT = re.compile(r'"(?:[^"]++|"")*+"|\'(?:[^\']++|\'\')*+\'')
_MAY_HOLD_ERRORS = re.compile(r"/|\bIF\s*\(", re.IGNORECASE)


def by_rows(arguments: list[str]) -> str | None:
    """Excel reads limits in several columns row by row, LibreOffice column by column."""
    if len(arguments) != 2 or _PLAIN_REFERENCE.fullmatch(arguments[1]):
        return None
    return f"FREQUENCY({arguments[0]},_xlfn.TOCOL({arguments[1]},1))"


_PLAIN_REFERENCE = re.compile(
    r"""\s*(?:'(?:[^']|'')*'!|[^\W\d][\w.]*!)?\$?[A-Z]{1,3}\$?\d+(?::\$?[A-Z]{1,3}\$?\d+)?\s*""",
    re.IGNORECASE,
)


def present_value(arguments: list[str]) -> str | None:
    """Excel skips strings in an array; to LibreOffice they are an error."""
    if len(arguments) != 2 or not _COMPUTED.search(_TEXT.sub("", arguments[1])):
        return None
    rate, values = arguments
    call = f"NPV({rate},{values})"
    numbers = f"_xlfn._xlws.FILTER({values},ISNUMBER({values}))"
    return f"IFERROR({call},IF(ISERROR(SUM({values})),{call},NPV({rate},{numbers})))"


_COMPUTED = re.compile(r"[-+*/^&=<>({]")


def same_sign(arguments: list[str]) -> str | None:
    """Excel gives #NUM! for rounding to a multiple of the opposite sign."""
    if len(arguments) != 2:
        return None
    number, multiple = arguments
    return f"IF(({number})*({multiple})<0,{_NUM},MROUND({number},{multiple}))"


def in_brackets(arguments: list[str]) -> str | None:
    """Negative dollars are written in parentheses."""
    if len(arguments) not in (1, 2):
        return None
    rest = "".join(f",{argument}" for argument in arguments[1:])
    value = f"({arguments[0]})"
    return f'IF({value}<0,"("&DOLLAR(-{value}{rest})&")",DOLLAR({value}{rest}))'


def no_direction(arguments: list[str]) -> str | None:
    """Excel has no angle for the origin."""
    if len(arguments) != 2:
        return None
    x, y = arguments
    return f"IF((({x})=0)*(({y})=0),1/0,ATAN2({x},{y}))"


def with_separators(arguments: list[str]) -> str | None:
    """LibreOffice reads a percent sign only if the separators are given as arguments."""
    if len(arguments) != 1:
        return None
    return f'_xlfn.NUMBERVALUE({arguments[0]},".",",")'


def without_rank(arguments: list[str]) -> str | None:
    """Excel gives #VALUE! for a ranking without a rank."""
    ranks = len(arguments) == 3 and arguments[0].strip() in ("14", "15", "16", "17", "18", "19")
    return "#VALUE!" if ranks else None


def column_below_one(arguments: list[str]) -> str | None:
    """Excel gives #VALUE! for a look-up in a column before the first."""
    if len(arguments) not in (3, 4) or not re.fullmatch(r"\s*(?:0|-\d+)\s*", arguments[2]):
        return None
    return "#VALUE!"


def intersection(arguments: list[str]) -> str | None:
    """Removes the @ of a formula: LibreOffice cannot read it, and plain formulas need none."""
    return f"({arguments[0]})" if len(arguments) == 1 else None


_REGEX = "_xlfn.ORG.LIBREOFFICE.REGEX"


def _pattern(pattern: str, case: str) -> str | None:
    """Makes a pattern ignore case if the argument of Excel's function requests it."""
    if case.strip() in ("", "0", "FALSE", "FALSE()"):
        return pattern
    return f'"(?i)"&({pattern})' if case.strip() in ("1", "TRUE", "TRUE()") else None


def regex_test(arguments: list[str]) -> str | None:
    """LibreOffice has a single function for patterns, which has no value if nothing matches."""
    if len(arguments) not in (2, 3):
        return None
    pattern = _pattern(arguments[1], "".join(arguments[2:]))
    return pattern and f"NOT(ISNA({_REGEX}({arguments[0]},{pattern})))"


def regex_extract(arguments: list[str]) -> str | None:
    """Extracts the first match; other return modes of Excel's function give arrays."""
    if len(arguments) not in (2, 3, 4) or (
        arguments[2:3] and arguments[2].strip() not in ("", "0")
    ):
        return None
    pattern = _pattern(arguments[1], "".join(arguments[3:]))
    return pattern and f"{_REGEX}({arguments[0]},{pattern})"


def regex_replace(arguments: list[str]) -> str | None:
    """Replaces every match, or the one with some number; counting from the end is not rewritten."""
    if len(arguments) not in (3, 4, 5):
        return None
    pattern = _pattern(arguments[1], "".join(arguments[4:]))
    which = "".join(arguments[3:4]).strip()
    if pattern is None or not re.fullmatch(r"\d*", which):
        return None
    which = which if which.strip("0") else '"g"'
    return f"{_REGEX}({arguments[0]},{pattern},{arguments[2]},{which})"


def sure_level(arguments: list[str]) -> str | None:
    """LibreOffice crashes if the confidence level is text, so it gets no array of levels."""
    if len(arguments) < 4 or not arguments[3].strip():
        return None
    if ":" in arguments[3] or "{" in arguments[3]:
        return unknown_function(arguments)
    call = f"_xlfn.FORECAST.ETS.CONFINT({','.join(arguments)})"
    return f"IF(ISERROR({arguments[3]}+0),#VALUE!,{call})"


def without_prefix(name: str) -> Rewriting:
    """LibreOffice finds some functions in files only by its own name, without the prefix."""
    return lambda arguments: f"{name}({','.join(arguments)})"


def unknown_function(arguments: list[str]) -> str:
    """Google Sheets' placeholder for a function that Excel lacks is #NAME? in Excel."""
    del arguments
    return "JUDGE.UNKNOWN()"


def forecast(place: int) -> Rewriting:
    """FORECAST.ETS crashes LibreOffice if its aggregation is not one of Excel's seven.

    Args:
        place: index of the aggregation among the arguments.
    """

    def rewriting(arguments: list[str]) -> str | None:
        if len(arguments) <= place or arguments[place].strip() in AGGREGATIONS:
            return None
        return "JUDGE.UNKNOWN()"

    return rewriting


AGGREGATIONS = frozenset("1234567")


def sure_forecast(arguments: list[str]) -> str | None:
    """FORECAST.ETS.CONFINT, whose level and whose aggregation can crash LibreOffice."""
    return sure_level(arguments) or forecast(6)(arguments)


REWRITINGS: dict[str, Rewriting] = {
    "_XLFN.BINOM.DIST.RANGE": without_prefix("B"),
    "_XLFN.FORECAST.ETS": forecast(5),
    "_XLFN.FORECAST.ETS.SEASONALITY": forecast(3),
    "_XLFN.FORECAST.ETS.STAT": forecast(6),
    "DATEVALUE": spelt_date,
    "EOMONTH": moved_date("EOMONTH"),
    "EDATE": moved_date("EDATE"),
    "DAY": part_of_date("DAY"),
    "MONTH": part_of_date("MONTH"),
    "YEAR": part_of_date("YEAR"),
    "DATE": early_year,
    "SMALL": ranked("SMALL"),
    "LARGE": ranked("LARGE"),
    "MATCH": nearest,
    "NPV": present_value,
    "FREQUENCY": by_rows,
    "MROUND": same_sign,
    "DOLLAR": in_brackets,
    "ATAN2": no_direction,
    "_XLFN.NUMBERVALUE": with_separators,
    "AGGREGATE": without_rank,
    "_XLFN.AGGREGATE": without_rank,
    "VLOOKUP": column_below_one,
    "HLOOKUP": column_below_one,
    "_XLFN.SINGLE": intersection,
    "_XLFN.REGEXTEST": regex_test,
    "_XLFN.REGEXEXTRACT": regex_extract,
    "_XLFN.REGEXREPLACE": regex_replace,
    "_XLFN.FORECAST.ETS.CONFINT": sure_forecast,
    "__XLUDF.DUMMYFUNCTION": unknown_function,
}

OF_1900 = frozenset(("DAY", "MONTH", "YEAR", "DATE"))
"""Functions that are rewritten only if the workbook counts days from 1900."""

DEEPEST = 12
"""Calls nested deeper than this stay as they are: some rewritings repeat their arguments."""

LONGEST = 8192
"""Excel's own limit; a formula that would grow past it stays as it is."""


def for_libreoffice(formula: str, *, date_1904: bool = False) -> str:
    """Rewrites the text of a formula, without its ``=``, for LibreOffice.

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
            break  # a bracket is never closed: LibreOffice does not read the formula
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
    """Splits the arguments of a call.

    Args:
        formula: the whole text.
        start: where the first argument begins.

    Returns:
        The arguments and the position after the closing bracket; None for the arguments if the
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
    """Whether an argument joins strings with ``&`` at its top level."""
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
