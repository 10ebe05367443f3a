"""Makes MATCH over a computed range give what Excel gives outside array formulas.

In Excel, ``MATCH(1,(A1:A9="x")*(B1:B9="y"),0)`` is #VALUE! unless it is entered as an array
formula: see "How to correct a #VALUE! error in INDEX/MATCH functions" in Microsoft's support pages;
golds saved by Excel confirm it. LibreOffice intersects ranges implicitly as Excel does, but always
computes the second argument of MATCH as an array.

Standard library only: this text goes into the sandbox.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

ARRAYS_INSIDE = frozenset(
    """
    SUMPRODUCT LOOKUP MMULT MINVERSE MDETERM FREQUENCY LINEST LOGEST TREND GROWTH TRANSPOSE SUMX2MY2
    SUMX2PY2 SUMXMY2 FILTER SORT SORTBY UNIQUE XLOOKUP XMATCH TOCOL TOROW VSTACK HSTACK TAKE DROP
    CHOOSECOLS CHOOSEROWS WRAPCOLS WRAPROWS EXPAND MAP REDUCE SCAN BYROW BYCOL MAKEARRAY LET LAMBDA
    TEXTSPLIT AGGREGATE
    """.split()  # noqa: SIM905 - a list of twenty lines says no more
)
"""Functions in whose arguments Excel computes arrays in any formula."""

_TOKEN = re.compile(
    r"""
    (?P<text>"(?:[^"]++|"")*+")
  | (?P<range>(?:(?:'(?:[^']++|'')*+'|[^\W\d][\w.]*+)!)?
      (?: \$?[A-Za-z]{1,3}\$?\d{1,7}:\$?[A-Za-z]{1,3}\$?\d{1,7}
        | \$?[A-Za-z]{1,3}:\$?[A-Za-z]{1,3}
        | \$?\d{1,7}:\$?\d{1,7}
      )(?![\w(.:]))
  | (?P<quoted>'(?:[^']++|'')*+')
  | (?P<array>\{[^}]*\})
  | (?P<call>[^\W\d][\w.]*\s*\()
  | (?P<word>[^\W\d][\w.]*)
  | (?P<open>\()
  | (?P<close>\))
  | (?P<comma>,)
  | (?P<operator><=|>=|<>|[-+*/^&=<>])
    """,
    re.VERBOSE,
)
_PREFIX = re.compile(r"(?:_xlfn\.|_xlws\.)+", re.IGNORECASE)


@dataclass
class _Bracket:
    """An open bracket: that of a call, or a plain one, whose name is empty."""

    name: str
    arrays: bool
    around: _Bracket | None = None
    """The nearest call around it."""
    argument: int = 0
    computed: bool = False
    ranges: list[re.Match[str]] = field(default_factory=list)


def as_plain_formula(formula: str, *, is_array: bool) -> str:
    """Writes #VALUE! into a formula where Excel gives it; not for array formulas."""
    if is_array:
        return formula
    stack = [_Bracket("", arrays=False)]
    replaced: list[re.Match[str]] = []
    # If a brace is never closed, the rest would be searched again for each further brace.
    closed = formula.rfind("}") + 1
    for found in _TOKEN.finditer(formula[:closed] + formula[closed:].replace("{", "\0")):
        kind = found.lastgroup
        if kind in {"call", "open"}:
            name = _PREFIX.sub("", found[0][:-1].strip()).upper() if kind == "call" else ""
            outer = stack[-1]
            around = outer if outer.name else outer.around
            stack.append(_Bracket(name, outer.arrays or name in ARRAYS_INSIDE, around))
        elif kind in {"comma", "close"}:
            bracket = stack[-1]
            if bracket.name == "MATCH" and bracket.argument == 1 and bracket.computed:
                replaced.extend(bracket.ranges)
            if kind == "close" and len(stack) > 1:
                stack.pop()
            elif kind == "comma":
                bracket.argument += 1
        elif kind in {"operator", "range"}:
            function = stack[-1] if stack[-1].name else stack[-1].around or stack[0]
            if function.name == "MATCH" and function.argument == 1 and not function.arrays:
                if kind == "range":
                    function.ranges.append(found)
                else:
                    function.computed = True
    return _replace(formula, replaced)


def _replace(formula: str, ranges: list[re.Match[str]]) -> str:
    pieces = []
    done = 0
    for found in sorted(ranges, key=lambda each: each.start()):
        pieces += [formula[done : found.start()], "#VALUE!"]
        done = found.end()
    return "".join((*pieces, formula[done:]))
