"""Computes functions of text, and conversions between numbers and text. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from judge.formulas.tree import Node
from judge.recalc.conversions import UnsureError, text_number
from judge.recalc.criteria import Scalar
from judge.recalc.formats import fixed, formatted
from judge.recalc.scalars import MAX_TEXT_CHARS, NA, VALUE, Evaluation, Function, of_values
from judge.workbook.cell import ErrorValue
from judge.workbook.number_formats import is_date_format


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
    if isinstance(value, str):
        number = text_number(value)
        return formatted(value if number is None else number, code)
    return formatted(float(value or 0), code) if not isinstance(value, ErrorValue) else value


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
    if isinstance(plain, str) or abs(digits) > 20:
        raise UnsureError
    return fixed(number, math.trunc(digits), thousands=not plain)


def _dollar(evaluation: Evaluation, value: Scalar, places: Scalar = 2) -> Scalar:
    evaluation.converted = True
    number, digits = evaluation.number(value), evaluation.number(places)
    if isinstance(number, ErrorValue) or isinstance(digits, ErrorValue):
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
    if isinstance(value, ErrorValue):
        return value.code
    text = evaluation.text(value)
    return '"' + text.replace('"', '""') + '"' if form and isinstance(value, str) else text


def _t(evaluation: Evaluation, value: Scalar) -> Scalar:
    del evaluation
    return value if isinstance(value, str) else ""


def _concatenate(evaluation: Evaluation, *values: Scalar) -> Scalar:
    joined = "".join(map(evaluation.text, values))
    if len(joined) > MAX_TEXT_CHARS:
        raise UnsureError
    return joined


def _length(evaluation: Evaluation, value: Scalar) -> Scalar:
    return _units(evaluation.text(value))


def _units(text: str) -> int:
    if any(ord(letter) > 0xFFFF for letter in text):
        raise UnsureError  # some versions of Excel count them twice, others once
    return len(text)


def _left(evaluation: Evaluation, value: Scalar, count: Scalar = 1) -> Scalar:
    text, number = evaluation.text(value), evaluation.number(count)
    _units(text)
    if isinstance(number, ErrorValue) or number < 0:
        return VALUE
    return text[: int(number)]


def _right(evaluation: Evaluation, value: Scalar, count: Scalar = 1) -> Scalar:
    text, number = evaluation.text(value), evaluation.number(count)
    _units(text)
    if isinstance(number, ErrorValue) or number < 0:
        return VALUE
    return text[max(len(text) - int(number), 0) :]


def _mid(evaluation: Evaluation, value: Scalar, start: Scalar, count: Scalar) -> Scalar:
    text, first, number = (
        evaluation.text(value), evaluation.number(start), evaluation.number(count),
    )  # fmt: skip
    _units(text)
    if isinstance(first, ErrorValue) or isinstance(number, ErrorValue):
        return VALUE
    if first < 1 or number < 0:
        return VALUE
    return text[int(first) - 1 : int(first) - 1 + int(number)]


def _char(evaluation: Evaluation, value: Scalar) -> Scalar:
    number = evaluation.number(value)
    if isinstance(number, ErrorValue) or not 1 <= number < 256:
        return VALUE
    evaluation.converted = True
    try:
        return bytes((int(number),)).decode(evaluation.values.charset)
    except UnicodeDecodeError:  # five numbers have no character of their own there
        return chr(int(number))


def _code(evaluation: Evaluation, value: Scalar) -> Scalar:
    text = evaluation.text(value)
    if not text:
        return VALUE
    try:
        number = text[0].encode(evaluation.values.charset)[0]
    except UnicodeEncodeError:
        raise UnsureError from None
    evaluation.converted = evaluation.converted or number > 127
    return float(number)


def _unicode(evaluation: Evaluation, value: Scalar) -> Scalar:
    text = evaluation.text(value)
    return float(ord(text[0])) if text else VALUE


def _cased(change: Callable[[str], str]) -> Function:
    def plain(evaluation: Evaluation, value: Scalar) -> Scalar:
        text = evaluation.text(value)
        if not text.isascii():
            raise UnsureError
        return change(text)

    return of_values(1, 1, plain)


def _trimmed(text: str) -> str:
    return " ".join(part for part in text.split(" ") if part)


def _cleaned(text: str) -> str:
    return "".join(letter for letter in text if letter >= " ")


def _found(evaluation: Evaluation, text: str, inside: str, start: Scalar) -> Scalar:
    first = evaluation.number(start)
    if isinstance(first, ErrorValue) or not 1 <= first <= _units(inside) + bool(not text):
        return VALUE
    at = inside.find(text, int(first) - 1)
    return VALUE if at < 0 else at + 1


def _find(evaluation: Evaluation, text: Scalar, inside: Scalar, start: Scalar = 1) -> Scalar:
    return _found(evaluation, evaluation.text(text), evaluation.text(inside), start)


def _search(evaluation: Evaluation, text: Scalar, inside: Scalar, start: Scalar = 1) -> Scalar:
    sought = evaluation.text(text).lower()
    if any(letter in sought for letter in "*?~"):
        raise UnsureError
    return _found(evaluation, sought, evaluation.text(inside).lower(), start)


def _exact(evaluation: Evaluation, first: Scalar, second: Scalar) -> Scalar:
    return evaluation.text(first) == evaluation.text(second)


def _substitute(evaluation: Evaluation, *values: Scalar) -> Scalar:
    text, old, new = map(evaluation.text, values[:3])
    if not old:
        raise UnsureError
    if len(values) == 3:
        return _limited(text.replace(old, new))
    nth = evaluation.number(values[3])
    if isinstance(nth, ErrorValue) or nth < 1:
        return VALUE
    if any(old.startswith(old[-size:]) for size in range(1, len(old))):
        raise UnsureError  # occurrences may overlap, and Microsoft does not say how they count
    parts = text.split(old)
    at = int(nth)
    if at >= len(parts):
        return text
    return _limited(old.join(parts[:at]) + new + old.join(parts[at:]))


def _replace(evaluation: Evaluation, *values: Scalar) -> Scalar:
    text, new = evaluation.text(values[0]), evaluation.text(values[3])
    first, count = evaluation.number(values[1]), evaluation.number(values[2])
    _units(text)
    if isinstance(first, ErrorValue) or isinstance(count, ErrorValue):
        return VALUE
    if first < 1 or count < 0:
        return VALUE
    start = int(first) - 1
    return _limited(text[:start] + new + text[start + int(count) :])


def _repeated(evaluation: Evaluation, value: Scalar, count: Scalar) -> Scalar:
    text, number = evaluation.text(value), evaluation.number(count)
    if isinstance(number, ErrorValue) or number < 0:
        return VALUE
    if len(text) * number > MAX_TEXT_CHARS:
        raise UnsureError
    return text * int(number)


def _limited(text: str) -> str:
    if len(text) > MAX_TEXT_CHARS:
        raise UnsureError
    return text


def _beside_separator(*, before: bool) -> Function:
    """Returns TEXTBEFORE or TEXTAFTER, for one separator and without their other options."""

    def plain(evaluation: Evaluation, value: Scalar, mark: Scalar, nth: Scalar = 1) -> Scalar:
        text, separator = evaluation.text(value), evaluation.text(mark)
        number = evaluation.number(nth)
        if isinstance(number, ErrorValue) or not separator or not number.is_integer() or not number:
            raise UnsureError
        if abs(number) > len(text):
            raise UnsureError
        parts = text.split(separator)
        at = int(number) if number > 0 else len(parts) + int(number)
        if not 1 <= at < len(parts):
            return NA
        return separator.join(parts[:at] if before else parts[at:])

    return of_values(2, 3, plain)


TEXT_FUNCTIONS: dict[str, Function] = {
    "TEXT": of_values(2, 2, _text),
    "VALUE": of_values(1, 1, _value),
    "_XLFN.NUMBERVALUE": of_values(1, 3, _numbervalue),
    "_XLFN.VALUETOTEXT": _valuetotext,
    "FIXED": of_values(1, 3, _fixed),
    "DOLLAR": of_values(1, 2, _dollar),
    "T": of_values(1, 1, _t),
    "CONCATENATE": of_values(1, 255, _concatenate),
    "_XLFN.CONCAT": of_values(1, 254, _concatenate),
    "CHAR": of_values(1, 1, _char),
    "CODE": of_values(1, 1, _code),
    "_XLFN.UNICODE": of_values(1, 1, _unicode),
    "LEN": of_values(1, 1, _length),
    "LEFT": of_values(1, 2, _left),
    "RIGHT": of_values(1, 2, _right),
    "MID": of_values(3, 3, _mid),
    "UPPER": _cased(str.upper),
    "LOWER": _cased(str.lower),
    "TRIM": _cased(_trimmed),
    "CLEAN": _cased(_cleaned),
    "FIND": of_values(2, 3, _find),
    "SEARCH": of_values(2, 3, _search),
    "EXACT": of_values(2, 2, _exact),
    "SUBSTITUTE": of_values(3, 4, _substitute),
    "REPLACE": of_values(4, 4, _replace),
    "REPT": of_values(2, 2, _repeated),
    "_XLFN.TEXTBEFORE": _beside_separator(before=True),
    "_XLFN.TEXTAFTER": _beside_separator(before=False),
}
