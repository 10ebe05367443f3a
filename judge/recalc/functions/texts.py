"""Computes functions of text, and conversions between numbers and text. Pure."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterator, Sequence

from judge.formulas.tree import Missing, Node
from judge.recalc.functions.arrays import (
    MAX_VALUES,
    ArrayResult,
    all_of,
    of_rows,
    reference_of,
    single,
)
from judge.recalc.functions.conversions import NA, VALUE, UnsureError, round_half_up, text_number
from judge.recalc.functions.criteria import Cells, Scalar
from judge.recalc.functions.formats import fixed, formatted
from judge.recalc.functions.scalars import (
    MAX_TEXT_CHARS,
    Evaluation,
    Function,
    OfValues,
    joined,
)
from judge.workbook.cell import ErrorValue
from judge.workbook.number_formats import is_date_format

MAX_PLACES = 127
"""The largest number of decimal places that FIXED and DOLLAR accept."""


def _text(evaluation: Evaluation, value: Scalar, code: Scalar) -> Scalar:
    evaluation.converted = True
    if isinstance(code, (bool, int, float)) or code is None:
        code = evaluation.text(code)
    if not isinstance(code, str):
        raise UnsureError
    if evaluation.values.date_1904 and is_date_format(code):
        raise UnsureError
    if isinstance(value, bool):
        return evaluation.text(value)
    region = evaluation.values.region
    if isinstance(value, str):
        number = text_number(value, region)
        return formatted(value if number is None else number, code, region.names)
    if isinstance(value, ErrorValue):
        return value
    return formatted(float(value or 0), code, region.names)


def _value(evaluation: Evaluation, value: Scalar) -> Scalar:
    if isinstance(value, bool):
        evaluation.converted = True
        return VALUE
    return evaluation.number(value)


def _numbervalue(
    evaluation: Evaluation, value: Scalar, decimal: Scalar = ".", *groups: Scalar
) -> Scalar:
    evaluation.converted = True
    point = evaluation.text(decimal)[:1]
    comma = evaluation.text(groups[0])[:1] if groups else ","
    if not groups and point == comma:
        raise UnsureError
    if not point or not comma or point == comma:
        return VALUE
    text = "".join(evaluation.text(value).split())
    if not text:
        return 0
    percents = text.count("%")
    text = text.rstrip("%")
    negative = text.startswith("(") and text.endswith(")")
    text = text[1:-1].rstrip("%") if negative else text
    if "%" in text or (negative and text.startswith("-")):
        return VALUE
    text, exponent, power = text.partition("E" if "E" in text else "e")
    whole, separator, part = text.partition(point)
    if separator and (comma in part or point in part):
        return VALUE
    whole = whole.replace(comma, "")
    digits = whole.removeprefix("-") + part
    if not digits.isascii() or not digits.isdigit():
        raise UnsureError
    number = text_number((f"{whole or '0'}.{part}" if separator else whole) + exponent + power)
    if number is None:
        return VALUE
    return (-number if negative else number) / float(100**percents)


def _fixed(
    evaluation: Evaluation, value: Scalar, places: Scalar = 2, plain: Scalar = False
) -> Scalar:
    evaluation.converted = True
    number, digits = evaluation.number(value), evaluation.number(places)
    if isinstance(number, ErrorValue) or isinstance(digits, ErrorValue):
        return VALUE
    if digits >= MAX_PLACES + 1:
        return VALUE
    if isinstance(plain, str) or abs(digits) > 20:
        raise UnsureError
    return fixed(number, math.trunc(digits), thousands=not plain)


def _dollar(evaluation: Evaluation, value: Scalar, places: Scalar = 2) -> Scalar:
    evaluation.converted = True
    number, digits = evaluation.number(value), evaluation.number(places)
    if isinstance(number, ErrorValue) or isinstance(digits, ErrorValue):
        return VALUE
    if digits >= MAX_PLACES + 1:
        return VALUE
    if abs(digits) > 20:
        raise UnsureError
    text = fixed(abs(number), math.trunc(digits), thousands=True)
    is_zero = not text.strip("0.,")
    return f"(${text})" if number < 0 and not is_zero else f"${text}"


def _valuetotext(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    if not 1 <= len(arguments) <= 2:
        raise UnsureError
    value = evaluation.scalar(arguments[0])
    form = evaluation.scalar(arguments[1]) if len(arguments) == 2 else 0
    if isinstance(form, (str, ErrorValue)) or form is None:
        raise UnsureError
    evaluation.converted = True
    if int(form) not in (0, 1):
        return VALUE
    return _shown(evaluation, value, quoted=bool(form))


def _shown(evaluation: Evaluation, value: Scalar, *, quoted: bool) -> str:
    """A value as VALUETOTEXT and ARRAYTOTEXT write it; ``quoted`` if they write text in quotes."""
    if isinstance(value, ErrorValue):
        return value.code
    text = evaluation.text(value)
    return '"' + text.replace('"', '""') + '"' if quoted and isinstance(value, str) else text


def _arraytotext(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    if not 1 <= len(arguments) <= 2:
        raise UnsureError
    cells = all_of(evaluation, arguments[0])
    form = evaluation.scalar(arguments[1]) if len(arguments) == 2 else 0
    if isinstance(form, (str, ErrorValue)) or cells.size > MAX_VALUES:
        raise UnsureError
    form = int(form or 0)
    if form not in (0, 1):
        return evaluation.refused(VALUE)
    evaluation.converted = True
    texts = [_shown(evaluation, value, quoted=bool(form)) for value in cells.all_values()]
    if not form:
        return joined(evaluation, (", ".join(texts),))
    rows = (texts[at : at + cells.columns] for at in range(0, len(texts), cells.columns))
    return joined(evaluation, ("{", ";".join(map(",".join, rows)), "}"))


def _formulatext(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    """FORMULATEXT: engines show the formula as it was rewritten for them."""
    if len(arguments) != 1:
        raise UnsureError
    shown = evaluation.values.formula(reference_of(evaluation, arguments[0]))
    evaluation.converted = True
    return NA if shown is None else shown


def _t(evaluation: Evaluation, value: Scalar) -> Scalar:
    del evaluation
    return value if isinstance(value, str) else ""


def _concatenate(evaluation: Evaluation, *values: Scalar) -> Scalar:
    return joined(evaluation, map(evaluation.text, values))


def _length(evaluation: Evaluation, value: Scalar) -> Scalar:
    return len(_units(evaluation, evaluation.text(value)))


def _units(evaluation: Evaluation, text: str) -> str:
    """The text with each character beyond 16 bits as its two halves, which Excel counts.

    Only a workbook that was saved with the second version of Excel's calculation counts them once.
    """
    if text.isascii() or max(text) <= "\uffff":
        return text
    evaluation.converted = True
    return "".join(map(chr, memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")))


def _joined_units(text: str) -> str:
    """Puts halves of characters together; raises UnsureError if one is left alone."""
    try:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise UnsureError from None


def _left(evaluation: Evaluation, value: Scalar, count: Scalar = 1) -> Scalar:
    text, number = _units(evaluation, evaluation.text(value)), evaluation.number(count)
    if isinstance(number, ErrorValue) or number < 0:
        return VALUE
    return _joined_units(text[: int(number)])


def _right(evaluation: Evaluation, value: Scalar, count: Scalar = 1) -> Scalar:
    text, number = _units(evaluation, evaluation.text(value)), evaluation.number(count)
    if isinstance(number, ErrorValue) or number < 0:
        return VALUE
    return _joined_units(text[max(len(text) - int(number), 0) :])


def _mid(evaluation: Evaluation, value: Scalar, start: Scalar, count: Scalar) -> Scalar:
    text = _units(evaluation, evaluation.text(value))
    first, number = evaluation.number(start), evaluation.number(count)
    if isinstance(first, ErrorValue) or isinstance(number, ErrorValue):
        return VALUE
    if first < 1 or number < 0:
        return VALUE
    return _joined_units(text[int(first) - 1 : int(first) - 1 + int(number)])


def _char(evaluation: Evaluation, value: Scalar) -> Scalar:
    number = evaluation.number(value)
    if isinstance(number, ErrorValue) or not 1 <= number < 256:
        return VALUE
    evaluation.converted = True
    try:
        return bytes((int(number),)).decode(evaluation.values.charset)
    except UnicodeDecodeError:  # five numbers have no character of their own there
        return chr(int(number))


_FIRST_UNMAPPED, _COMPATIBILITY_FORMS = "\u3040", "\uf900"
"""Characters between these, such as Chinese ones, resemble no character of a Windows character set.
Some of the others do: a Greek alpha has the code of ``a``.
"""


def _code(evaluation: Evaluation, value: Scalar) -> Scalar:
    text = evaluation.text(value)
    if not text:
        return evaluation.refused(VALUE)
    try:
        number = text[0].encode(evaluation.values.charset)[0]
    except UnicodeEncodeError:
        if not (_FIRST_UNMAPPED <= text[0] < _COMPATIBILITY_FORMS or text[0] > "\uffff"):
            raise UnsureError from None
        number = ord("?")
        evaluation.converted = True
    evaluation.converted = evaluation.converted or number > 127
    return float(number)


def _unicode(evaluation: Evaluation, value: Scalar) -> Scalar:
    text = evaluation.text(value)
    return float(ord(text[0])) if text else VALUE


def _unichar(evaluation: Evaluation, value: Scalar) -> Scalar:
    number = evaluation.number(value)
    if isinstance(number, ErrorValue) or not 1 <= number < 0x110000:
        return VALUE
    if int(number) in range(0xD800, 0xE000):
        return NA
    return chr(int(number))


def _cased(change: Callable[[str], str]) -> Function:
    def plain(evaluation: Evaluation, value: Scalar) -> Scalar:
        text = evaluation.text(value)
        if not text.isascii():
            raise UnsureError
        return change(text)

    return OfValues(1, 1, plain)


def _trimmed(text: str) -> str:
    return " ".join(part for part in text.split(" ") if part)


def _cleaned(text: str) -> str:
    return "".join(letter for letter in text if letter >= " ")


def _position(evaluation: Evaluation, text: str, inside: str, start: Scalar) -> Scalar:
    first = evaluation.number(start)
    units = _units(evaluation, inside)
    if isinstance(first, ErrorValue) or not 1 <= first <= len(units) + bool(not text):
        return VALUE
    at = units.find(_units(evaluation, text), int(first) - 1)
    return VALUE if at < 0 else at + 1


def _find(evaluation: Evaluation, text: Scalar, inside: Scalar, start: Scalar = 1) -> Scalar:
    return _position(evaluation, evaluation.text(text), evaluation.text(inside), start)


def _search(evaluation: Evaluation, text: Scalar, inside: Scalar, start: Scalar = 1) -> Scalar:
    sought = evaluation.text(text).lower()
    if any(letter in sought for letter in "*?~"):
        raise UnsureError
    return _position(evaluation, sought, evaluation.text(inside).lower(), start)


def _exact(evaluation: Evaluation, first: Scalar, second: Scalar) -> Scalar:
    return evaluation.text(first) == evaluation.text(second)


def _substitute(evaluation: Evaluation, *values: Scalar) -> Scalar:
    text, old, new = map(evaluation.text, values[:3])
    if not old:
        raise UnsureError
    if len(values) == 3:
        if len(text) + text.count(old) * (len(new) - len(old)) > MAX_TEXT_CHARS:
            return evaluation.refused(VALUE)
        return text.replace(old, new)
    nth = evaluation.number(values[3])
    if isinstance(nth, ErrorValue) or nth < 1:
        return VALUE
    if any(old.startswith(old[-size:]) for size in range(1, len(old))):
        raise UnsureError  # occurrences may overlap, and Microsoft does not say how they count
    parts = text.split(old)
    at = int(nth)
    if at >= len(parts):
        return text
    return joined(evaluation, (old.join(parts[:at]), new, old.join(parts[at:])))


def _replace(evaluation: Evaluation, *values: Scalar) -> Scalar:
    text = _units(evaluation, evaluation.text(values[0]))
    new = _units(evaluation, evaluation.text(values[3]))
    first, count = evaluation.number(values[1]), evaluation.number(values[2])
    if isinstance(first, ErrorValue) or isinstance(count, ErrorValue):
        return VALUE
    if first < 1 or count < 0:
        return VALUE
    start = int(first) - 1
    return joined(evaluation, [_joined_units(text[:start] + new + text[start + int(count) :])])


def _repeated(evaluation: Evaluation, value: Scalar, count: Scalar) -> Scalar:
    text, number = evaluation.text(value), evaluation.number(count)
    if isinstance(number, ErrorValue) or number < 0:
        return VALUE
    if len(text) * int(number) > MAX_TEXT_CHARS:
        return evaluation.refused(VALUE)
    return text * int(number)


def _or_empty(evaluation: Evaluation, node: Node) -> Scalar:
    """The value of a node; an empty text if it is blank."""
    value = evaluation.scalar(node)
    return "" if value is None else value


def _beside_separator(*, before: bool) -> Function:
    """TEXTBEFORE and TEXTAFTER.

    Raises:
        UnsureError: the separators overlap; Microsoft's pages do not say how those are counted.
    """

    def call(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
        if not 2 <= len(arguments) <= 6:
            raise UnsureError
        value = evaluation.scalar(arguments[0])
        marks = list(all_of(evaluation, arguments[1]).all_values())
        numbers = [1.0, 0.0, 0.0]
        options = [
            default if isinstance(node, Missing) else evaluation.scalar(node)
            for default, node in zip(numbers, arguments[2:5], strict=False)
        ]
        for given in (value, *marks, *options):
            if isinstance(given, ErrorValue):
                return evaluation.refused(given)
        text, separators = evaluation.text(value), [evaluation.text(mark) for mark in marks]
        if len(_units(evaluation, text)) > len(text):
            raise UnsureError
        for at, option in enumerate(options):
            number = evaluation.number(option)
            if isinstance(number, ErrorValue):
                return evaluation.refused(number)
            numbers[at] = number
        nth, ignores_case, at_end = map(math.floor, numbers)
        evaluation.converted = evaluation.converted or len(marks) > 1
        if not text:
            raise UnsureError
        is_beyond = bool(options) and abs(nth) * min(map(len, separators)) > len(text)
        if not nth or is_beyond or ignores_case not in (0, 1) or at_end not in (0, 1):
            return evaluation.refused(VALUE)
        spans = _separators(text, separators, ignores_case=bool(ignores_case))
        if at_end:
            spans = [*spans, (len(text), len(text))] if nth > 0 else [(0, 0), *spans]
        if abs(nth) > len(spans):
            is_given = len(arguments) == 6 and not isinstance(arguments[5], Missing)
            return _or_empty(evaluation, arguments[5]) if is_given else evaluation.refused(NA)
        start, end = spans[nth - 1 if nth > 0 else nth]
        return text[:start] if before else text[end:]

    return call


def _separators(
    text: str, separators: Sequence[str], *, ignores_case: bool
) -> list[tuple[int, int]]:
    """The spans of separators; raises UnsureError if it is not documented how they are counted."""
    if not text.isascii() and ignores_case:
        raise UnsureError
    if not all(separators) or any(
        len(one) > 1 and (one in other or _overlaps(one, other))
        for number, one in enumerate(separators)
        for index, other in enumerate(separators)
        if index != number or _overlaps(one, one)
    ):
        raise UnsureError
    return spans_of(text, separators, ignores_case=ignores_case)


def spans_of(text: str, separators: Sequence[str], *, ignores_case: bool) -> list[tuple[int, int]]:
    """Where the separators of a string start and end, from left to right, without overlaps."""
    pattern = "|".join(map(re.escape, separators))
    flags = re.IGNORECASE if ignores_case else re.NOFLAG
    return [match.span() for match in re.finditer(pattern, text, flags)]


def _overlaps(one: str, other: str) -> bool:
    """Whether a proper end of one string is the beginning of another."""
    return any(other.startswith(one[size:]) for size in range(1, len(one)))


# -- regular expressions ---------------------------------------------------------------------------

MAX_MATCHING_STEPS = 20_000_000
"""Limit on the steps that a pattern may need: the length of the text to the power of the number of
repetitions in the pattern, and one."""

STEPS_OF_A_CELL = 1_000
"""So many of these steps count as one cell towards the limit on compared cells."""

_REPETITION = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(?P<many>[*+]|\{\d*,?\d*\})\??|(?P<maybe>\?)\??"
)
_OTHERWISE = re.compile(
    r"\\[^dDwWsSbBntrf.\\/()\[\]{}|*+?^$-]|\(\?(?![:=!]|<[=!])|\[\[:|[*+?}]\+|\(\*|\)[*+{]|[^\x20-\x7e]"
)
"""What Python reads differently from Excel (PCRE2), or not at all; and repeated groups, which may
take a time that grows exponentially."""


def _pattern(evaluation: Evaluation, text: str, pattern: Scalar, case: Scalar) -> re.Pattern[str]:
    """Compiles a pattern of Excel.

    Raises:
        UnsureError: Python may read it differently, or it may take too long.
    """
    if isinstance(case, str) or not isinstance(pattern, str) or _OTHERWISE.search(pattern):
        raise UnsureError
    ignores_case = evaluation.number(case)
    if ignores_case not in (0, 1) or not text.isascii():
        raise UnsureError
    repetitions = list(_REPETITION.finditer(pattern))
    many = sum(repetition["many"] is not None for repetition in repetitions)
    maybe = sum(repetition["maybe"] is not None for repetition in repetitions)
    steps = 2**maybe * (len(text) + 1) ** (many + 1)
    if steps > MAX_MATCHING_STEPS:
        raise UnsureError
    evaluation.values.spend(steps // STEPS_OF_A_CELL)
    try:
        return re.compile(pattern, re.ASCII | (re.IGNORECASE if ignores_case else re.NOFLAG))
    except (re.error, OverflowError):
        raise UnsureError from None


def _regextest(evaluation: Evaluation, value: Scalar, pattern: Scalar, case: Scalar = 0) -> Scalar:
    text = evaluation.text(value)
    evaluation.converted = True
    return _pattern(evaluation, text, pattern, case).search(text) is not None


def _regexextract(evaluation: Evaluation, arguments: Sequence[Node]) -> Cells:
    """REGEXEXTRACT: the first match, all matches, or the groups of the first match, in a row."""
    if not 2 <= len(arguments) <= 4:
        raise UnsureError
    values = [evaluation.scalar(argument) for argument in arguments]
    for value in values:
        if isinstance(value, ErrorValue):
            return single(evaluation.refused(value))
    text = evaluation.text(values[0])
    mode = evaluation.number(values[2]) if len(values) > 2 else 0
    pattern = _pattern(evaluation, text, values[1], values[3] if len(values) > 3 else 0)
    evaluation.converted = True
    matches = list(pattern.finditer(text))
    if not matches:
        return single(NA)
    if mode == 0:
        return single(matches[0][0])
    if mode == 1:
        return of_rows([[match[0] for match in matches]])
    if mode != 2 or not pattern.groups or None in matches[0].groups():
        raise UnsureError
    return of_rows([list(matches[0].groups())])


_GROUP = re.compile(r"\$(?:(\d)|\{(\d)\})")


def _regexreplace(
    evaluation: Evaluation,
    value: Scalar,
    pattern: Scalar,
    replacement: Scalar,
    occurrence: Scalar = 0,
    case: Scalar = 0,
) -> Scalar:
    """REGEXREPLACE: every match, or one that is counted from the start or from the end."""
    text, new = evaluation.text(value), evaluation.text(replacement)
    which = evaluation.number(occurrence)
    compiled = _pattern(evaluation, text, pattern, case)
    groups = {int(one or two) for one, two in _GROUP.findall(new)}
    if isinstance(which, ErrorValue) or max(groups, default=0) > compiled.groups:
        raise UnsureError
    if "\\" in new or "$" in _GROUP.sub("", new):
        raise UnsureError
    matches = list(compiled.finditer(text))
    number = math.trunc(which)
    if number:
        at = number - 1 if number > 0 else number
        matches = [matches[at]] if abs(number) <= len(matches) else []
    evaluation.converted = True
    return joined(evaluation, _replaced(text, matches, new))


def _replaced(text: str, matches: Sequence[re.Match[str]], new: str) -> Iterator[str]:
    end = 0
    for match in matches:
        yield text[end : match.start()]
        yield _GROUP.sub(functools.partial(_filled_in, match), new)
        end = match.end()
    yield text[end:]


def _filled_in(match: re.Match[str], group: re.Match[str]) -> str:
    return match[int(group[1] or group[2])] or ""


_UNESCAPED = frozenset("-_.")
_NOT_DOCUMENTED = frozenset("!*'()~")


def _encodeurl(evaluation: Evaluation, value: Scalar) -> Scalar:
    """ENCODEURL: writes all characters except letters, digits and ``-_.`` as ``%`` and their bytes.

    Raises:
        UnsureError: Microsoft's page does not say whether a character of the text is kept.
    """
    text = evaluation.text(value)
    if not _NOT_DOCUMENTED.isdisjoint(text) or not text.isprintable():
        raise UnsureError
    evaluation.converted = True
    return joined(
        evaluation,
        (
            letter
            if letter.isascii() and (letter.isalnum() or letter in _UNESCAPED)
            else "".join(f"%{byte:02X}" for byte in letter.encode())
            for letter in text
        ),
    )


_THAI_DIGITS = ("ศูนย์", "หนึ่ง", "สอง", "สาม", "สี่", "ห้า", "หก", "เจ็ด", "แปด", "เก้า")
_THAI_PLACES = ("", "สิบ", "ร้อย", "พัน", "หมื่น", "แสน")


def _in_thai(number: int) -> str:
    """A whole number from 1 in Thai words.

    Raises:
        UnsureError: its last digit is 1 after a 0, which is read in two ways.
    """
    millions, rest = divmod(number, 1_000_000)
    words = [_in_thai(millions), "ล้าน"] if millions else []
    if number > 10 and rest % 100 == 1:
        raise UnsureError
    for power, digit in reversed([*enumerate(map(int, reversed(str(rest))))]):
        if not digit:
            continue
        if power == 1 and digit <= 2:
            words.append("ยี่" if digit == 2 else "")
        else:
            is_eleventh = power == 0 and digit == 1 and rest > 10
            words.append("เอ็ด" if is_eleventh else _THAI_DIGITS[digit])
        words.append(_THAI_PLACES[power])
    return "".join(words)


def _bahttext(evaluation: Evaluation, value: Scalar) -> Scalar:
    """BAHTTEXT: an amount of money in Thai words.

    Raises:
        UnsureError: the amount is less than a baht, or too large.
    """
    number = evaluation.number(value)
    if isinstance(number, ErrorValue):
        return number
    if not (number == 0 or 1 <= abs(number) < 1e12):
        raise UnsureError
    evaluation.converted = True
    baht, satang = divmod(int(round_half_up(abs(number), 2) * 100), 100)
    words = f"{_in_thai(baht) if baht else _THAI_DIGITS[0]}บาท"
    words += f"{_in_thai(satang)}สตางค์" if satang else "ถ้วน"
    return f"ลบ{words}" if number < 0 else words


def _hyperlink(evaluation: Evaluation, link: Scalar, *shown: Scalar) -> Scalar:
    """HYPERLINK: what the cell shows, which is the address if nothing else is given."""
    del evaluation
    address = "" if link is None else link
    return address if isinstance(link, ErrorValue) or not shown else shown[0]


TEXT_FUNCTIONS: dict[str, Function] = {
    "BAHTTEXT": OfValues(1, 1, _bahttext),
    "_XLFN.ENCODEURL": OfValues(1, 1, _encodeurl),
    "_XLFN.REGEXTEST": OfValues(2, 3, _regextest),
    "_XLFN.REGEXEXTRACT": ArrayResult(_regexextract),
    "_XLFN.REGEXREPLACE": OfValues(3, 5, _regexreplace),
    "TEXT": OfValues(2, 2, _text),
    "VALUE": OfValues(1, 1, _value),
    "_XLFN.NUMBERVALUE": OfValues(1, 3, _numbervalue),
    "_XLFN.VALUETOTEXT": _valuetotext,
    "_XLFN.ARRAYTOTEXT": _arraytotext,
    "FIXED": OfValues(1, 3, _fixed),
    "DOLLAR": OfValues(1, 2, _dollar),
    "_XLFN.FORMULATEXT": _formulatext,
    "HYPERLINK": OfValues(1, 2, _hyperlink),
    "T": OfValues(1, 1, _t),
    "CONCATENATE": OfValues(1, 255, _concatenate),
    "CHAR": OfValues(1, 1, _char),
    "CODE": OfValues(1, 1, _code),
    "_XLFN.UNICHAR": OfValues(1, 1, _unichar),
    "_XLFN.UNICODE": OfValues(1, 1, _unicode),
    "LEN": OfValues(1, 1, _length),
    "LEFT": OfValues(1, 2, _left),
    "RIGHT": OfValues(1, 2, _right),
    "MID": OfValues(3, 3, _mid),
    "UPPER": _cased(str.upper),
    "LOWER": _cased(str.lower),
    "TRIM": _cased(_trimmed),
    "CLEAN": _cased(_cleaned),
    "FIND": OfValues(2, 3, _find),
    "SEARCH": OfValues(2, 3, _search),
    "EXACT": OfValues(2, 2, _exact),
    "SUBSTITUTE": OfValues(3, 4, _substitute),
    "REPLACE": OfValues(4, 4, _replace),
    "REPT": OfValues(2, 2, _repeated),
    "_XLFN.TEXTBEFORE": _beside_separator(before=True),
    "_XLFN.TEXTAFTER": _beside_separator(before=False),
}
