"""Writes values in number formats, as Excel's TEXT does with English (US) settings. Pure.

Sources: ECMA-376 part 1, 18.8.30 and 18.8.31 (numFmt); Microsoft's pages on TEXT and on creating
custom number formats. Anything that is not documented there raises :class:`UnsureError`.
"""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from judge.recalc.functions.conversions import (
    LAST_SERIAL,
    UnsureError,
    day_parts,
    decimal_digits,
    general_text,
    round_half_up,
)
from judge.recalc.functions.regions import ENGLISH, Names
from judge.workbook.cell import ErrorValue

MAX_SECTIONS = 4
MAX_FORMAT_CHARS = 255

_TOKEN = re.compile(
    r"""
    (?P<quoted>"[^"]*") | \\(?P<escaped>.) | (?P<bracket>\[[^\]]*\]) | _(?P<space>.) | \*(?P<fill>.)
  | (?P<general>[Gg][Ee][Nn][Ee][Rr][Aa][Ll]) | (?P<half>[Aa][Mm]/[Pp][Mm]|[Aa]/[Pp])
  | (?P<exponent>[Ee][+-]) | (?P<date>[yY]+|[mM]+|[dD]+|[hH]+|[sS]+) | (?P<digit>[0#?])
  | (?P<sign>[.,%/@;]) | (?P<literal>[-+$():!^&'~{}<>=\ ]) | (?P<letter>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r'\\.|"[^"]*"|[_*].', re.DOTALL)
_OPEN_QUOTE = re.compile('"')
_CONDITION = re.compile(r"(<=|>=|<>|<|>|=) *(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)")
_COLOURS = re.compile(
    r"black|blue|cyan|green|magenta|red|white|yellow|color ?\d{1,2}", re.IGNORECASE
)
_IN_ENGLISH = re.compile(r"\[\$.*-(0*409|en-us)\]", re.IGNORECASE | re.DOTALL)


class _Token(NamedTuple):
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class _Section:
    """One section of a format.

    Attributes:
        tokens: its tokens, without conditions and colours.
        condition: operator and number, if it has one.
        in_english: whether it asks for English names of months and days.
    """

    tokens: tuple[_Token, ...]
    condition: tuple[str, float] | None
    in_english: bool

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset(token.kind for token in self.tokens)

    def has(self, sign: str) -> bool:
        return _Token("sign", sign) in self.tokens


def formatted(value: float | str, code: str, names: Names = ENGLISH) -> str | ErrorValue:
    """Writes a number or a string in a number format; an error if a quote is not closed.

    Args:
        value: the number or the string.
        code: the format.
        names: the names of months and days, unless the format asks for English names.

    Raises:
        UnsureError: the format is not documented, depends on the region, or cannot show the value.
    """
    if len(code) > MAX_FORMAT_CHARS:
        raise UnsureError
    if _OPEN_QUOTE.search(_ESCAPED.sub("", code)):
        return ErrorValue("#VALUE!")
    sections = _sections(code)
    if isinstance(value, str):
        return _of_text(value, sections)
    if not math.isfinite(value):
        raise UnsureError
    if not code:
        return ""
    numeric = [section for section in sections if not section.has("@")] or list(sections)
    if numeric[0].has("@"):
        raise UnsureError
    if len(numeric) == 1 and numeric[0].condition and not _holds(value, *numeric[0].condition):
        return ("-" if value < 0 else "") + general_text(abs(value))
    section, shows_sign = _chosen(value, numeric)
    sign = "-" if value < 0 and shows_sign else ""
    return _of_number(abs(value), sign, section, ENGLISH if section.in_english else names)


@functools.lru_cache(maxsize=512)
def _sections(code: str) -> tuple[_Section, ...]:
    sections: list[_Section] = []
    tokens: list[_Token] = []
    condition: tuple[str, float] | None = None
    in_english = False
    for match in _TOKEN.finditer(code):
        kind, text = match.lastgroup or "", match[match.lastgroup or 0]
        if kind == "sign" and text == ";":
            sections.append(_Section(tuple(tokens), condition, in_english))
            tokens, condition, in_english = [], None, False
            continue
        if kind == "bracket":
            in_english = in_english or _IN_ENGLISH.fullmatch(text) is not None
            stated = _CONDITION.fullmatch(text[1:-1])
            if stated is not None:
                condition = (stated[1], float(stated[2]))
                continue
        token = _read(kind, text)
        if token is not None:
            tokens.append(token)
    sections.append(_Section(tuple(tokens), condition, in_english))
    if len(sections) > MAX_SECTIONS:
        raise UnsureError
    return tuple(sections)


def _read(kind: str, text: str) -> _Token | None:
    """Makes the token for a part of a format; None if that part shows nothing."""
    if kind == "quoted":
        return _Token("literal", text[1:-1])
    if kind == "escaped":
        return _Token("literal", text)
    if kind == "space":
        return _Token("literal", " ")
    if kind == "fill":
        return None
    if kind == "bracket":
        inner = text[1:-1]
        if _COLOURS.fullmatch(inner):
            return None
        if re.fullmatch("h+|m+|s+", inner, re.IGNORECASE):
            return _Token("elapsed", inner.lower())
        if inner.startswith("$"):
            symbol, dash, _ = inner[1:].partition("-")
            if dash and not symbol and _IN_ENGLISH.fullmatch(text) is None:
                raise UnsureError
            return _Token("literal", symbol)
        raise UnsureError
    if kind == "letter":
        if (not text.isascii() and not text.isalnum()) or text in "123456789":
            return _Token("literal", text)
        raise UnsureError  # some letters are codes in other regions, or not accepted
    return _Token(kind, text.lower() if kind == "date" else text)


def _of_text(value: str, sections: tuple[_Section, ...]) -> str:
    with_text = [section for section in sections if section.has("@")]
    if len(sections) == MAX_SECTIONS:
        section = sections[-1]
    elif with_text:
        section = with_text[-1]
    else:
        return value
    if section.kinds - {"literal", "sign"}:
        raise UnsureError
    return "".join(value if token == ("sign", "@") else token.text for token in section.tokens)


def _chosen(value: float, sections: list[_Section]) -> tuple[_Section, bool]:
    """The format section for a number, and whether a negative number keeps its minus sign there."""
    if not any(section.condition for section in sections):
        if len(sections) == 1:
            return sections[0], True
        if value < 0:
            return sections[1], False
        if value == 0 and len(sections) > 2:
            return sections[2], False
        return sections[0], False
    for index, section in enumerate(sections):
        if section.condition is None:
            if index == 0:
                raise UnsureError
            holds = index == len(sections) - 1 or (index == 1 and value < 0)
        else:
            holds = _holds(value, *section.condition)
        if holds:
            # A section with a condition shows the sign unless only negative numbers can meet it.
            if value < 0 and section.condition is not None:
                operator, limit = section.condition
                one_sided = operator in ("<", "<=", "=") and limit <= 0
                return section, not one_sided
            if value < 0:
                raise UnsureError
            return section, True
    raise UnsureError


def _holds(value: float, operator: str, limit: float) -> bool:
    return {
        "<": value < limit, "<=": value <= limit, ">": value > limit, ">=": value >= limit,
        "=": value == limit, "<>": value != limit,
    }[operator]  # fmt: skip


def _of_number(value: float, sign: str, section: _Section, names: Names) -> str | ErrorValue:
    kinds = section.kinds
    if "date" in kinds or "elapsed" in kinds or "half" in kinds:
        return _of_date(value, sign, section, names)
    if "general" in kinds:
        if kinds - {"general", "literal"} or section.has("%"):
            raise UnsureError
        text = general_text(value)
        return sign + "".join(
            text if token.kind == "general" else token.text for token in section.tokens
        )
    if section.has("@"):
        raise UnsureError
    if "digit" not in kinds:
        if section.has(".") or section.has(","):
            raise UnsureError
        text = "".join(token.text for token in section.tokens)
        return sign + text if section.tokens else sign
    if "exponent" in kinds:
        return _in_e_notation(value, sign, section)
    if section.has("/"):
        return _as_fraction(value, sign, section)
    return _decimal(value, sign, section)


class _Layout(NamedTuple):
    """How a decimal number is shown: the tokens up to the decimal point, and those from there on.

    Attributes:
        whole: tokens before the decimal point.
        part: the decimal point and the tokens after it.
        thousands: whether the digits are grouped.
        scale: how many times the number is divided by 1,000.
    """

    whole: list[_Token]
    part: list[_Token]
    thousands: bool
    scale: int


def _layout(tokens: tuple[_Token, ...]) -> _Layout:
    """Splits the tokens of a number at the decimal point; commas group or divide by 1,000.

    Only a comma directly after a digit has this meaning; any other comma is shown as it is, and so
    is a second point.
    """
    digits = [at for at, token in enumerate(tokens) if token.kind == "digit"]
    points = [at for at, token in enumerate(tokens) if token == ("sign", ".")]
    point = points[0] if points else len(tokens)
    thousands, scale = False, 0
    shown: list[list[_Token]] = [[], []]
    counts = False
    for at, token in enumerate(tokens):
        counts = token.kind == "digit" or (counts and token == ("sign", ","))
        if token == ("sign", ",") and counts:
            if any(at < index < point for index in digits):
                thousands = True
            elif at < point or not any(index > at for index in digits):
                scale += 1
        elif token == ("sign", ",") and not any(index < at for index in digits):
            raise UnsureError
        else:
            is_literal = token == ("sign", ",") or (token == ("sign", ".") and at > point)
            shown[at >= point].append(_Token("literal", token.text) if is_literal else token)
    return _Layout(shown[0], shown[1], thousands, scale)


def _decimal(value: float, sign: str, section: _Section) -> str:
    layout = _layout(section.tokens)
    percents = sum(token == ("sign", "%") for token in section.tokens)
    places = sum(token.kind == "digit" for token in layout.part)
    exact = _shifted(value, 2 * percents - 3 * layout.scale)
    rounded = _rounded(exact, places)
    whole, _, part = f"{rounded:f}".partition(".")
    text = _with_whole(whole if whole != "0" else "", layout.whole, thousands=layout.thousands)
    text += _with_part(part, layout.part)
    return text if not sign or not rounded else sign + text


def _shifted(value: float, power: int) -> Decimal:
    digits, exponent = decimal_digits(value)
    return Decimal((0, tuple(map(int, digits)), exponent - len(digits) + 1)).scaleb(power)


def _rounded(value: Decimal, places: int) -> Decimal:
    if value.adjusted() + places > 25:
        raise UnsureError
    return value.quantize(Decimal(1).scaleb(-places), rounding="ROUND_HALF_UP")


def _with_whole(digits: str, tokens: list[_Token], *, thousands: bool) -> str:
    """Puts the digits of a whole number into the positions of a format, from the right."""
    places = sum(token.kind == "digit" for token in tokens)
    pieces: list[str] = []
    left, done = digits, 0
    for token in reversed(tokens):
        if token.kind != "digit":
            if token.kind not in ("literal", "sign"):
                raise UnsureError
            pieces.append(token.text)
            continue
        places -= 1
        taken = left if places == 0 else left[-1:]
        left = left[: len(left) - len(taken)]
        if not taken:
            taken = {"0": "0", "?": " ", "#": ""}[token.text]
            done += not taken  # a position that shows nothing still counts for the groups
        for digit in reversed(taken):
            if thousands and done and done % 3 == 0:
                pieces.append("," if digit != " " else " ")
            pieces.append(digit)
            done += 1
    if left and left != "0":
        raise UnsureError
    return "".join(reversed(pieces))


def _with_part(digits: str, tokens: list[_Token]) -> str:
    """The decimal point and the digits after it; trailing zeros only where the format has 0."""
    digit_indices = [at for at, token in enumerate(tokens) if token.kind == "digit"]
    pieces: list[str] = []
    for at, token in enumerate(tokens):
        if token.kind != "digit":
            pieces.append(token.text)
            continue
        index = digit_indices.index(at)
        digit = digits[index : index + 1] or "0"
        zeros = any(tokens[digit_index].text == "0" for digit_index in digit_indices[index:])
        if digits[index:].strip("0") or (zeros and token.text != "#"):
            pieces.append(digit)
        else:
            pieces.append({"#": "", "?": " "}[token.text])
    return "".join(pieces)


def _in_e_notation(value: float, sign: str, section: _Section) -> str:
    at = next(at for at, token in enumerate(section.tokens) if token.kind == "exponent")
    mantissa, tail = section.tokens[:at], section.tokens[at + 1 :]
    if any(token.kind == "literal" and token.text.isdigit() for token in section.tokens):
        raise UnsureError
    layout = _layout(mantissa)
    width = sum(token.kind == "digit" for token in layout.whole)
    places = sum(token.kind == "digit" for token in layout.part)
    if layout.thousands or layout.scale or not width or any(t.kind == "sign" for t in tail):
        raise UnsureError
    if width > 1 and any(t.text != "#" for t in layout.whole[:-1] if t.kind == "digit"):
        raise UnsureError
    exponent = 0
    number = Decimal(0)
    if value:
        exponent = math.floor(decimal_digits(value)[1] / width) * width
        number = _rounded(_shifted(value, -exponent), places)
        if number >= Decimal(10) ** width:
            exponent += width
            number = _rounded(_shifted(value, -exponent), places)
    whole, _, part = f"{number:f}".partition(".")
    text = _with_whole(whole if whole != "0" else "", layout.whole, thousands=False)
    text += _with_part(part, layout.part)
    shown = str(abs(exponent)).rjust(sum(token.text == "0" for token in tail), "0")
    mark = section.tokens[at].text
    letters = "E" + ("-" if exponent < 0 else "+" if mark[1] == "+" else "")
    rest = "".join(token.text for token in tail if token.kind != "digit")
    return sign + text + letters + shown + rest


def _as_fraction(value: float, sign: str, section: _Section) -> str:
    tokens = section.tokens
    at = tokens.index(_Token("sign", "/"))
    upper = [t.text for t in tokens[:at]]
    lower = [t.text for t in tokens[at + 1 :]]
    pattern = re.fullmatch(
        r"(?:([#0?]+)( +))?([#0?]+)/([#0?]+|\d+)", "".join([*upper, "/", *lower])
    )
    if pattern is None or any(t.kind not in ("digit", "literal", "sign") for t in tokens):
        raise UnsureError
    whole_code, gap, numerator_code, denominator_code = pattern.groups()
    exact = Fraction(_shifted(value, 0))
    whole = int(exact) if whole_code else 0
    rest = exact - whole
    fixed = denominator_code.isdigit() and denominator_code.strip("0") != ""
    if fixed:
        numerator = math.floor(rest * int(denominator_code) + Fraction(1, 2))
        denominator = int(denominator_code)
    else:
        nearest = rest.limit_denominator(10 ** len(denominator_code) - 1)
        numerator, denominator = nearest.numerator, nearest.denominator
    if whole_code and numerator == denominator:
        whole, numerator, denominator = whole + 1, 0, denominator if fixed else 1
    blank = numerator == 0 and whole_code is not None
    if blank and "0" in numerator_code:
        raise UnsureError
    width = len(numerator_code)
    if numerator_code.strip("#?") or denominator_code.strip("#?0123456789"):
        raise UnsureError
    above = str(numerator).rjust(width) if "?" in numerator_code else str(numerator)
    below = str(denominator)
    if "?" in denominator_code:
        below = below.ljust(len(denominator_code))
    text = f"{above}/{below}"
    if blank:
        if "#" in numerator_code:
            raise UnsureError
        text = " " * len(text)
    if whole_code:
        shown = str(whole) if whole or "0" in whole_code or blank else ""
        text = (shown or (" " if "?" in whole_code else "")) + (gap or "") + text
    return sign + text if whole or numerator else text


# -- dates and times -------------------------------------------------------------------------------


def _of_date(value: float, sign: str, section: _Section, names: Names) -> str | ErrorValue:
    if any(
        token.kind in ("date", "elapsed", "half") and token.text[0].lower() in names.other_codes
        for token in section.tokens
    ):
        raise UnsureError
    tokens = _with_minutes(section.tokens)
    elapsed = any(token.kind == "elapsed" for token in tokens)
    if not elapsed and (sign or value >= LAST_SERIAL + 1):
        return ErrorValue("#VALUE!")
    places = _fraction_places(tokens)
    shows_seconds = places or any(t.text.startswith("s") for t in tokens if t.kind != "literal")
    clock = _clock(value, places, whole_seconds=bool(shows_seconds))
    counted = {token.text[0] for token in tokens if token.kind == "elapsed"}
    # If one code of a unit shows elapsed time, all codes of that unit do.
    tokens = [
        _Token("elapsed", token.text)
        if token.kind == "date" and token.text[0] in counted
        else token
        for token in tokens
    ]
    half = any(token.kind == "half" for token in tokens)
    pieces = [sign if clock.ticks else ""]
    in_fraction = False
    for token in tokens:
        if token.kind == "digit":
            if not in_fraction:
                raise UnsureError
            continue
        in_fraction = token == ("sign", ".")
        if in_fraction and places:
            pieces.append(f".{clock.ticks % 10**places:0{places}d}")
        else:
            pieces.append(_date_piece(token, clock, names, half=half))
    return "".join(pieces)


class _Clock(NamedTuple):
    """A moment in time.

    Attributes:
        days: whole days since day 0.
        ticks: time since day 0, in units of ``1 / per_second`` seconds.
        per_second: a power of ten.
    """

    days: int
    ticks: int
    per_second: int

    @property
    def seconds(self) -> int:
        """Whole seconds since day 0."""
        return self.ticks // self.per_second


def _clock(value: float, places: int, *, whole_seconds: bool) -> _Clock:
    """Converts a serial number to a clock that can show some decimal places of a second.

    Raises:
        UnsureError: no seconds are shown, and rounding would change the minute.
    """
    per_second = 10**places
    exact = Fraction(_shifted(value, 0)) * 86_400 * per_second
    ticks = math.floor(exact + Fraction(1, 2))
    if (
        not whole_seconds
        and abs(exact - ticks) > Fraction(1, 10_000)
        and ((exact // (60 * per_second)) != (ticks // (60 * per_second)))
    ):
        raise UnsureError
    return _Clock(ticks // (86_400 * per_second), ticks, per_second)


def _with_minutes(tokens: tuple[_Token, ...]) -> list[_Token]:
    """Replaces ``m`` by ``n`` where it means minutes: after hours or before seconds."""
    replaced = list(tokens)
    units = [at for at, token in enumerate(replaced) if token.kind in ("date", "elapsed")]
    for index, at in enumerate(units):
        token = replaced[at]
        if token.kind != "date" or token.text not in ("m", "mm"):
            continue
        before = replaced[units[index - 1]].text if index else ""
        after = replaced[units[index + 1]].text if index + 1 < len(units) else ""
        if before.startswith(("h", "s")) or after.startswith("s"):
            replaced[at] = _Token("date", token.text.replace("m", "n"))
    return replaced


def _fraction_places(tokens: list[_Token]) -> int:
    """How many decimal places of the seconds a format shows."""
    for at, token in enumerate(tokens):
        if token == ("sign", "."):
            places = 0
            while at + 1 + places < len(tokens) and tokens[at + 1 + places] == ("digit", "0"):
                places += 1
            if places > 3:
                raise UnsureError
            if places:
                return places
    return 0


def _date_piece(token: _Token, clock: _Clock, names: Names, *, half: bool) -> str:
    kind, text = token
    if kind in ("literal", "sign"):
        if text in ("%", "@") or text.isdigit():
            raise UnsureError
        return text
    if kind == "elapsed":
        unit = {"h": 3600, "m": 60, "s": 1}[text[0]]
        return f"{clock.seconds // unit:0{len(text)}d}"
    hour = clock.seconds % 86_400 // 3600
    if kind == "half":
        letters = text.split("/")
        return letters[hour >= 12] if text.upper() == text or "/" in text else text
    if kind != "date":
        raise UnsureError
    return _unit_text(text, clock, names, hour % 12 or 12 if half else hour)


def _unit_text(text: str, clock: _Clock, names: Names, hour: int) -> str:
    """Writes one code of a date or time format, such as ``yyyy``."""
    seconds = clock.seconds
    numbers = {"h": hour, "n": seconds % 3600 // 60, "s": seconds % 60}
    if text[0] in numbers:
        return f"{numbers[text[0]]:0{min(len(text), 2)}d}"
    if clock.days > LAST_SERIAL:
        raise UnsureError
    year, month, day = day_parts(clock.days)
    if text[0] == "y":
        return f"{year % 100:02d}" if len(text) <= 2 else f"{year:04d}"
    if text[0] == "m":
        if len(text) <= 2:
            return f"{month:0{len(text)}d}"
        name = _sure((names.short_months if len(text) == 3 else names.months)[month - 1])
        if len(text) == 5 and name[0].isdigit():
            raise UnsureError
        return name[0] if len(text) == 5 else name
    if len(text) <= 2:
        return f"{day:0{len(text)}d}"
    return _sure((names.short_days if len(text) == 3 else names.days)[(clock.days - 1) % 7])


def _sure(name: str | None) -> str:
    if name is None:
        raise UnsureError
    return name


def fixed(number: float, places: int, *, thousands: bool) -> str:
    """Writes a number with a fixed number of decimals, as FIXED does."""
    rounded = round_half_up(number, places)
    text = f"{abs(rounded):{',' if thousands else ''}.{max(places, 0)}f}"
    return f"-{text}" if rounded < 0 else text
