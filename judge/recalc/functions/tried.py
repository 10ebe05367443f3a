"""Decides which formulas the judge computes itself, before or after the engines. Pure."""

from __future__ import annotations

import functools
import re

from judge.formulas.functions import PREFIX
from judge.formulas.references import with_form
from judge.formulas.traits import traits
from judge.recalc.functions.dates_and_units import ADD_IN
from judge.recalc.functions.integers import INTEGER_FUNCTIONS
from judge.recalc.functions.refusals import REFUSALS
from judge.workbook.cell import Cell

WITH_CRITERIA = frozenset(
    """
    COUNTIF COUNTIFS SUMIF SUMIFS AVERAGEIF AVERAGEIFS MAXIFS MINIFS DSUM DAVERAGE DMAX DMIN
    DPRODUCT DVAR DVARP DSTDEV DSTDEVP DCOUNT DCOUNTA DGET
    """.split()  # noqa: SIM905 - a list of two lines says no more
)
"""Functions that compare cells with criteria."""
_CONVERTING = WITH_CRITERIA.union(
    ADD_IN,
    REFUSALS,
    (PREFIX.sub("", name) for name in INTEGER_FUNCTIONS),
    """
    TEXT VALUE NUMBERVALUE DATEVALUE TIMEVALUE FIXED DOLLAR DATE YEAR MONTH DAY CONCATENATE CONCAT
    CHAR CODE XLOOKUP XMATCH RANK RANK.EQ LEN LEFT RIGHT MID FIND SEARCH SUBSTITUTE REPLACE REPT
    TRIM CLEAN UPPER LOWER EXACT TEXTJOIN TEXTBEFORE TEXTAFTER BAHTTEXT ENCODEURL GROUPBY PIVOTBY
    TRIMRANGE FORMULATEXT HOUR MINUTE SECOND FREQUENCY T.TEST TTEST F.TEST FTEST CHISQ.TEST CHITEST
    TYPE NPV ACCRINT ADDRESS ARRAYTOTEXT
    """.split(),  # noqa: SIM905 - as above
)
"""Formulas without ``&`` and these functions are examined only when the engines have answered."""


def has_criteria(formula: str) -> bool:
    """Whether a formula calls a function that compares cells with criteria."""
    return not with_form(formula)[0].traits.functions.isdisjoint(WITH_CRITERIA)


def may_convert(formula: str) -> bool:
    """Whether the judge tries to compute a formula before it asks the engines."""
    return "&" in formula or not with_form(formula)[0].traits.functions.isdisjoint(_CONVERTING)


_OWN_PLACE = re.compile(r"\b(?:ROW|COLUMN)\s*\(\s*\)", re.IGNORECASE)


def own_position(cell: Cell) -> tuple[int, int] | None:
    """The row and column of a cell, if its formula asks for one of them and fills no other cell."""
    asks = _OWN_PLACE.search(cell.formula or "") is not None
    return (cell.row, cell.column) if asks and ":" not in (cell.array_range or "") else None


_MAY_BE_MIXED = frozenset(
    """
    SCAN BYROW BYCOL MAP REDUCE MAKEARRAY VALUETOTEXT POWER LOG SUBTOTAL AGGREGATE OFFSET LOOKUP
    VLOOKUP HLOOKUP MATCH TEXTJOIN SUMPRODUCT SUMX2MY2 SUMX2PY2 SUMXMY2 MDETERM MINVERSE MMULT MODE
    MODE.SNGL VAR VARP VAR.S VAR.P STDEV STDEVP STDEV.S STDEV.P DEVSQ AVEDEV MEDIAN MAX MIN PRODUCT
    SUM AVERAGE XNPV XIRR AND OR XOR FILTER UNIQUE COUNT COUNTA SUMIF COUNTIF AVERAGEIF SUMIFS
    COUNTIFS N T COUNTBLANK ERROR.TYPE TOCOL TOROW ROW COLUMN INDEX
    """.split()  # noqa: SIM905 - as above
)
_MIXED = re.compile(
    r"\b(?:SCAN|BYROW|BYCOL|MAP|REDUCE|MAKEARRAY|VALUETOTEXT|POWER|LOG|SUBTOTAL|AGGREGATE"
    r"|SUMX2MY2|SUMX2PY2|SUMXMY2|MDETERM|MINVERSE|MMULT|MODE(?:\.SNGL)?|XNPV|XIRR"
    r"|AND|X?OR|FILTER|UNIQUE|TOCOL|TOROW|ERROR\.TYPE)\s*\("
    r"|\b(?:VARP?|VAR\.[SP]|STDEVP?|STDEV\.[SP]|DEVSQ|AVEDEV|MEDIAN|MAX|MIN|PRODUCT|SUM|AVERAGE)"
    r"\s*\((?:[^()\"]*,)?\""
    r"|\b(?:VARP?|VAR\.[SP]|STDEVP?|STDEV\.[SP]|DEVSQ|AVEDEV)\s*\((?:[^()]*,)?\s*(?:TRUE|FALSE)\b"
    r"|\bOFFSET\s*\(.*-|\b(?:[VH]?LOOKUP|MATCH)\s*\(.*\{|\bTEXTJOIN\s*\([^\",{:]*+[{:]"
    r"|\bLOOKUP\s*\([^()\"]*\)|\b(?:[VH]?LOOKUP|MATCH)\s*\(\s*[\d.]+E\+?\d{3}\s*,"
    r"|\b(?:ROW|COLUMN)\s*\(\s*(?:INDIRECT|OFFSET)\s*\(|\bINDEX\s*\(\s*\("
    r"|\bSUM\s*\([^()\"]*\)\s*(?:=|<>)"
    r"|[A-Z]\$?\d+ +\$?[A-Z]+\$?\d"
    r"|\b(?:SUM|AVERAGE|COUNT|MAX|MIN|PRODUCT)\s*\([^()\"]*[<>=][^()]*\)"
    r"|\b(?:SUMIFS?|COUNTIFS?|AVERAGEIFS?|N|T|COUNTBLANK)\s*\((?:[^()\"]*,)?\s*"
    r"(?:OFFSET|INDIRECT)\s*\(",
    re.IGNORECASE,
)
_SUMPRODUCT = re.compile(r"\bSUMPRODUCT\s*\(", re.IGNORECASE)
_COMPARISON = re.compile(r"[<>=]")
_ARITHMETIC = re.compile(r"[-*+/]")


@functools.lru_cache(maxsize=16_384)
def is_of_mixed_arrays(formula: str) -> bool:
    """Whether a formula may contain something that engines compute differently, or not at all.

    These are array constants, arrays of logical values (which SUMPRODUCT does not count) and arrays
    that a LAMBDA makes; also OFFSET with a negative size, powers of 0, a logarithm to base 1, and
    subtotals of rows of which some are hidden.
    """
    if "{" in formula or "^" in formula:
        return True
    if traits(formula).functions.isdisjoint(_MAY_BE_MIXED):
        return False
    return _MIXED.search(formula) is not None or _sums_comparisons(formula)


def is_tried(formula: str) -> bool:
    """Whether the judge tries to compute a formula, whatever the engines' values are."""
    return may_convert(formula) or is_of_mixed_arrays(formula)


def _sums_comparisons(formula: str) -> bool:
    """Whether an argument of SUMPRODUCT may be a comparison that is not turned into a number."""
    starts: set[int] = set()
    line_end = 0
    for call in _SUMPRODUCT.finditer(formula):
        starts.add(call.end())
        if call.end() >= line_end:  # otherwise the commas of its line were already added
            line, _, _ = formula[call.end() :].partition("\n")
            line_end = call.end() + len(line)
            starts.update(call.end() + comma.end() for comma in re.finditer(",", line))
    arguments = (formula[start:].partition(",")[0] for start in starts)
    return any(_COMPARISON.search(text) and not _ARITHMETIC.search(text) for text in arguments)
