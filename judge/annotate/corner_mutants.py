"""Mutators that set inputs to values that a program written for a single input does not expect.

Each mutator changes one or two cells of a group of constants
(:class:`judge.annotate.support.Group`), so that the effect on the answer is not hidden by other
changes.
"""

from __future__ import annotations

import datetime as dt
import random
import re
from collections.abc import Callable, Iterator, Sequence

from judge.annotate.edits import CellContent, Edit, Formula, SetCell
from judge.annotate.idea import Idea, Subject
from judge.annotate.support import Group
from judge.annotate.tables import Kind
from judge.workbook.address import column_letters
from judge.workbook.cell import CellValue

_INTEGER_RUN = re.compile(r"\d+")
_NUMBER_RUN = re.compile(r"\d+(?:\.\d+)?")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")

Change = tuple[str, int, CellContent]
"""A change: its title for people, the row, and the new content of the cell."""


def reordered_text(group: Group, subject: Subject, rng: random.Random) -> Iterator[Change]:
    """Swaps two numbers, or two words, in a string."""
    del subject
    for pattern, units in ((_INTEGER_RUN, "two numbers"), (_WORD, "two words")):
        rows = [row for row in _texts(group) if len(_different(pattern, _text(group, row))) > 1]
        if rows:
            row = rng.choice(rows)
            yield (
                f"{units} of a string swapped",
                row,
                _swapped(pattern, _text(group, row)),
            )


def _different(pattern: re.Pattern[str], text: str) -> set[str]:
    return set(pattern.findall(text))


def _swapped(pattern: re.Pattern[str], text: str) -> str:
    matches = list(pattern.finditer(text))
    first = matches[0]
    last = next(match for match in reversed(matches) if match[0] != first[0])
    between = text[first.end() : last.start()]
    return text[: first.start()] + last[0] + between + first[0] + text[last.end() :]


def text_shapes(group: Group, subject: Subject, rng: random.Random) -> Iterator[Change]:
    """Changes a string: lengthens, shortens or removes a number in it; adds or removes a word."""
    del subject
    rows = [row for row in _texts(group) if len(_text(group, row)) > 2]
    with_numbers = [row for row in rows if _NUMBER_RUN.search(_text(group, row))]
    if with_numbers:
        changes: dict[str, Callable[[re.Match[str]], str]] = {
            "a longer number in a string": lambda match: f"1{match[0]}0",
            "a shorter number in a string": lambda match: match[0][:1],
            "a decimal number in a string": lambda match: f"{match[0].partition('.')[0]}.5",
        }
        for description, change in changes.items():
            row = rng.choice(with_numbers)
            yield description, row, _NUMBER_RUN.sub(change, _text(group, row), count=1)
        at_end = [row for row in with_numbers if _text(group, row)[-1].isdigit()]
        if len(at_end) == len(rows):
            row = rng.choice(at_end)
            yield "a letter after the last number of a string", row, f"{_text(group, row)}B"
        if len(with_numbers) == len(rows):
            row = rng.choice(with_numbers)
            yield (
                "a string without its numbers",
                row,
                _NUMBER_RUN.sub("", _text(group, row)).strip(),
            )
    with_words = [row for row in rows if len(_WORD.findall(_text(group, row))) > 1]
    if with_words:
        row = rng.choice(with_words)
        words = list(_WORD.finditer(_text(group, row)))
        yield "a string with one word less", row, _text(group, row)[words[1].start() :]
        row = rng.choice(with_words)
        words = list(_WORD.finditer(_text(group, row)))
        middle = words[1].start()
        text = _text(group, row)
        yield "a string with one word more", row, f"{text[:middle]}{words[0][0]} {text[middle:]}"


_TIME = re.compile(r"(?<![\d:])\d{1,2}:\d\d(?![\d:])")


def times_of_day(group: Group, subject: Subject, rng: random.Random) -> Iterator[Change]:
    """Changes a time in text: the end of a day becomes 24:00, or an hour has one digit."""
    del subject
    rows = [row for row in _texts(group) if _TIME.search(_text(group, row))]
    if not rows:
        return
    row = rng.choice(rows)
    text = _text(group, row)
    last = list(_TIME.finditer(text))[-1]
    yield "the end of a day as 24:00", row, f"{text[: last.start()]}24:00{text[last.end() :]}"
    row = rng.choice(rows)
    text = _text(group, row)
    yield "an hour of one digit", row, _TIME.sub("9:05", text, count=1)


def _texts(group: Group) -> list[int]:
    return [row for row in group.rows(Kind.TEXT) if isinstance(group.cells[row].value, str)]


def _text(group: Group, row: int) -> str:
    value = group.cells[row].value
    assert isinstance(value, str)
    return value


MAX_GROUPS = 8
"""How many columns are changed, beginning with those on which the answer depends most directly."""

MAX_WORDS = 6

_IDENTIFIER = re.compile(
    r"\b(?:id|ids|no|nr|num|number|code|sku|zip|phone|serial|index|item|invoice|account|part)\b",
    re.IGNORECASE,
)

GroupMutator = Callable[[Group, Subject, random.Random], Iterator[Change]]


def corner_ideas(subject: Subject, seed: str) -> Iterator[Idea]:
    """Corner cases that change cells on which the answer depends.

    Args:
        subject: the contents of the input.
        seed: the same seed gives the same ideas.
    """
    for name, mutate in CORNER_MUTATORS.items():
        for index, group in enumerate(subject.groups[:MAX_GROUPS]):
            rng = random.Random(f"{seed}/{name}/{index}")  # noqa: S311 - no secret
            for description, row, content in mutate(group, subject, rng):
                if _same(group.cells[row].value, content):
                    continue
                where = f"column {column_letters(group.column)} of {group.sheet!r}"
                yield Idea(
                    name,
                    f"{description} in {where}",
                    (SetCell(group.ref(row), content),),
                    same_values=name == "constant-to-formula",
                )
    rng = random.Random(f"{seed}/pairs")  # noqa: S311 - no secret
    yield from _swapped_pairs(subject, rng)
    yield from _blank_rows(subject, rng)


def _same(value: CellValue, content: CellContent) -> bool:
    return type(value) is type(content) and value == content


def _row(group: Group, rng: random.Random, kind: Kind | None = None) -> int | None:
    rows = group.rows(kind or group.kind)
    return rng.choice(rows) if rows else None


# -- how values are stored ------------------------------------------------------------------------


def _constant_to_formula(group: Group, subject: Subject, rng: random.Random) -> Iterator[Change]:
    """Turns a number or a date into a formula, as in real sheets."""
    del subject
    if group.kind not in {Kind.NUMBER, Kind.DATE} or _are_identifiers(group):
        return
    row = _row(group, rng)
    formula = _formula_of(group.cells[row].value) if row is not None else None
    if row is not None and formula is not None:
        yield "a constant becomes a formula of the same value", row, formula


MIN_IDENTIFIER = 10**5
"""A column whose numbers are all whole and at least this large holds identifiers."""


def _are_identifiers(group: Group) -> bool:
    """Whether a column holds numbers that nobody calculates with: ids, codes, keys of a table."""
    if group.kind is not Kind.NUMBER:
        return False
    values = [value for value in group.values() if isinstance(value, int | float)]
    long = all(float(value).is_integer() and abs(value) >= MIN_IDENTIFIER for value in values)
    return bool(_IDENTIFIER.search(group.heading)) or group.is_looked_up or long


def _formula_of(value: CellValue) -> Formula | None:
    if isinstance(value, dt.datetime):
        if value.microsecond or value.year < 1901:
            return None
        day = f"DATE({value.year},{value.month},{value.day})"
        if value.time() == dt.time():
            return Formula(day)
        return Formula(f"{day}+TIME({value.hour},{value.minute},{value.second})")
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < abs(value) < 10**9:
        return None
    if float(value).is_integer():
        whole = int(value)
        return Formula(f"{whole - 1}+1") if whole > 1 else Formula(f"{whole + 1}-1")
    return Formula(f"{value * 2!r}/2")


def _key_as_text(group: Group, subject: Subject, rng: random.Random) -> Iterator[Change]:
    """Stores a number as text on one side of a lookup."""
    if group.kind is not Kind.NUMBER or not _partners(group, subject):
        return
    row = _row(group, rng)
    if row is not None:
        value = group.cells[row].value
        text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
        yield "a number stored as text on one side of a lookup", row, text


def _partners(group: Group, subject: Subject) -> list[Group]:
    """Other groups of the same kind that share values with a group."""
    group_values = set(group.values())
    return [
        values
        for values in subject.groups
        if values is not group and values.kind is group.kind and group_values & set(values.values())
    ]


def _minority(group: Group, subject: Subject, rng: random.Random) -> Iterator[Change]:
    """Puts a value of a column's rarer kind into one more row, such as text among dates.

    In a column of only numbers or dates, the value is "n/a".
    """
    del subject
    rare = {
        kind: rows
        for kind in (Kind.TEXT, Kind.NUMBER, Kind.DATE)
        if kind is not group.kind and (rows := group.rows(kind))
    }
    several = len(group.cells) > 2 and not _are_identifiers(group)
    if not rare and group.kind is not Kind.TEXT and several:
        yield "text among values of another kind", rng.choice(group.rows()), "n/a"
    for kind, rows in rare.items():
        row = _row(group, rng)
        if row is not None:
            value = group.cells[rng.choice(rows)].value
            yield f"one more {kind} among values of another kind", row, value
    if rare and (row := _row(group, rng)) is not None:
        first = next(iter(rare.values()))
        yield "a value of the usual kind in place of another", first[0], group.cells[row].value


# -- what is missing ------------------------------------------------------------------------------


def _blank_read(group: Group, subject: Subject, rng: random.Random) -> Iterator[Change]:
    """Blanks one of the numbers or dates that are added up, averaged or compared."""
    del subject
    if group.kind in {Kind.NUMBER, Kind.DATE} and (row := _row(group, rng)) is not None:
        yield "a blank among the values", row, None


def _empty_key(group: Group, subject: Subject, rng: random.Random) -> Iterator[Change]:
    """Blanks a string that is looked up or compared."""
    del subject
    if group.kind is Kind.TEXT and (row := _row(group, rng)) is not None:
        yield "an empty key", row, None


def _unknown_label(group: Group, subject: Subject, rng: random.Random) -> Iterator[Change]:
    """Inserts a label, or a number, that occurs nowhere else in the workbook."""
    row = _row(group, rng)
    if row is None:
        return
    numbers = [value for value in group.values() if _is_number(value)]
    if group.kind is Kind.NUMBER and _partners(group, subject) and numbers:
        yield "a key beyond the largest", row, max(numbers) + 1  # type: ignore[type-var,operator]
        yield "a key below the smallest", row, min(numbers) - 1  # type: ignore[type-var,operator]
    elif group.kind is Kind.TEXT and not group.is_looked_up:
        yield "a label outside the stored rows", row, "Other"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# -- other values ---------------------------------------------------------------------------------


def _named_words(group: Group, subject: Subject, rng: random.Random) -> Iterator[Change]:
    """Inserts words that the question quotes or the gold's formulas test for, one at a time."""
    texts = {str(value).strip().casefold() for value in group.values() if isinstance(value, str)}
    present = [word for word in subject.words if word.casefold() in texts]
    if group.kind is not Kind.TEXT or not (present or len(group.cells) == 1):
        return
    missing = [word for word in subject.words if word.casefold() not in texts]
    for word in [*missing, *present][:MAX_WORDS]:
        if (row := _row(group, rng)) is not None:
            yield f"the word {word!r} that the task names", row, word


def _other_key(group: Group, subject: Subject, rng: random.Random) -> Iterator[Change]:
    """Changes a lookup to another key of the table: the first, the last, or a middle one."""
    if group.is_looked_up:
        return
    for other in _partners(group, subject)[:2]:
        rows = other.rows(group.kind)
        for row_ in dict.fromkeys((rows[0], rows[-1], rows[len(rows) // 2])):
            row = _row(group, rng)
            if row is not None:
                yield "another key of the table", row, other.cells[row_].value


def _other_value(group: Group, subject: Subject, rng: random.Random) -> Iterator[Change]:
    """Copies the value of another row: another category, or an amount that then occurs twice."""
    del subject
    rows = group.rows(group.kind)
    if len(rows) < 2 or group.is_looked_up:
        return
    for _ in range(2):
        first, second = rng.sample(rows, 2)
        description = "equal amounts" if group.kind is Kind.NUMBER else "a value that occurs again"
        yield description, second, group.cells[first].value
    if group.kind is Kind.NUMBER:
        numbers = {row: group.cells[row].value for row in rows}
        best = max(numbers, key=lambda row: float(numbers[row]))  # type: ignore[arg-type]
        other = rng.choice([row for row in rows if row != best])
        yield "equal amounts at the top", other, numbers[best]


MAX_FEW = 5
"""A column with more numbers is a list to search; a shorter column holds values to look up."""


def _at_limits(group: Group, subject: Subject, rng: random.Random) -> Iterator[Change]:
    """Sets numbers to a limit, such as one that the question names, and just above and below it."""
    numbers = [float(value) for value in group.values() if _is_number(value)]  # type: ignore[arg-type]
    if group.kind is not Kind.NUMBER or not numbers:
        return
    most = max(map(abs, numbers))
    limits = [limit for limit in subject.limits if most / 1000 <= abs(limit) <= max(most * 2, 1)]
    if len(numbers) <= MAX_FEW:
        limits += _bounds(group, subject)
    whole = all(number.is_integer() for number in numbers)
    for limit in limits[:3]:
        step = 1 if whole and float(limit).is_integer() else 0.001
        for value in (limit, limit - step, limit + step):
            if (row := _row(group, rng)) is not None:
                yield f"a number at the limit {limit:g}", row, _tidy(value)


def _bounds(group: Group, subject: Subject) -> list[float]:
    """Limits of bands that another column lists in ascending order: the second and the last."""
    factors: list[float] = []
    for other in subject.groups:
        values = [value for value in other.values() if _is_number(value)]
        numbers = [float(value) for value in values]  # type: ignore[arg-type]
        if other is not group and len(numbers) > 2 and numbers == sorted(numbers):
            factors += [numbers[1], numbers[-1]]
    return factors


def _tidy(value: float) -> float | int:
    rounded = round(float(value), 9)
    return int(rounded) if rounded.is_integer() else rounded


def _numbers(group: Group, subject: Subject, rng: random.Random) -> Iterator[Change]:
    """Inserts zero, a negative number, decimals, or a much larger number."""
    del subject
    if group.kind is not Kind.NUMBER:
        return
    for description in ("zero", "a negative number", "decimals", "a much larger number"):
        row = _row(group, rng)
        value = group.cells[row].value if row is not None else None
        if row is None or not isinstance(value, int | float):
            return
        new = {
            "zero": 0,
            "a negative number": -value if value > 0 else value,
            "decimals": _tidy(value + 0.375),
            "a much larger number": value * 1000,
        }[description]
        if description != "a negative number" or value > 0:
            yield description, row, new


def _days(group: Group, subject: Subject, rng: random.Random) -> Iterator[Change]:
    """Inserts a date that a program may not expect.

    It is the same day of the next year, the first or last day of a month, a day with a time, a day
    before or after all others, or a leap day.
    """
    del subject
    if group.kind is not Kind.DATE:
        return
    days = [value for value in group.values() if isinstance(value, dt.datetime)]
    changes: dict[str, Callable[[dt.datetime], dt.datetime]] = {
        "the same day of the next year": lambda day: _in_year(day, day.year + 1),
        "the last day of a month": lambda day: _month_start(day, 1) - dt.timedelta(days=1),
        "the first day of a month": lambda day: _month_start(day, 0),
        "a time of day": lambda day: day.replace(hour=18, minute=30),
        "a day after all others": lambda _: max(days) + dt.timedelta(days=40),
        "a day before all others": lambda _: min(days) - dt.timedelta(days=40),
        "a leap day": lambda _: dt.datetime(2024, 2, 29),  # noqa: DTZ001 - no time zones here
    }
    for description, change in changes.items():
        row = _row(group, rng)
        value = group.cells[row].value if row is not None else None
        if row is not None and isinstance(value, dt.datetime):
            yield description, row, change(value)


def _in_year(day: dt.datetime, year: int) -> dt.datetime:
    return day.replace(year=year, day=min(day.day, 28))


def _month_start(day: dt.datetime, months: int) -> dt.datetime:
    month = day.month - 1 + months
    return dt.datetime(day.year + month // 12, month % 12 + 1, 1)  # noqa: DTZ001 - no time zones


CORNER_MUTATORS: dict[str, GroupMutator] = {
    "constant-to-formula": _constant_to_formula,
    "minority-kinds": _minority,
    "named-words": _named_words,
    "at-limits": _at_limits,
    "blank-read": _blank_read,
    "empty-key": _empty_key,
    "other-key": _other_key,
    "equal-amounts": _other_value,
    "reordered-text": reordered_text,
    "text-shapes": text_shapes,
    "times-of-day": times_of_day,
    "days": _days,
    "numbers": _numbers,
    "unknown-label": _unknown_label,
    "key-as-text": _key_as_text,
}
"""Mutators of a group of constants, by name; the most revealing ones come first."""

CORNER_NAMES = (*CORNER_MUTATORS, "swapped-pair", "blank-numbers-of-a-row")
"""The names of the mutators in :data:`CORNER_MUTATORS`, and of those that change several groups."""


# -- several columns ------------------------------------------------------------------------------


def _swapped_pairs(subject: Subject, rng: random.Random) -> Iterator[Idea]:
    """Swaps two values of a row: an end before its start, or a night shift."""
    count = 0
    groups = subject.groups[:MAX_GROUPS]
    for index, first in enumerate(groups):
        for second in groups[index + 1 :]:
            if second.sheet != first.sheet or second.kind is not first.kind or count == MAX_WORDS:
                continue
            if first.kind not in {Kind.NUMBER, Kind.DATE}:
                continue
            rows = sorted(
                row
                for row in set(first.rows(first.kind)) & set(second.rows(first.kind))
                if first.cells[row].value != second.cells[row].value
            )
            if rows:
                count += 1
                row = rng.choice(rows)
                edits: tuple[Edit, ...] = (
                    SetCell(first.ref(row), second.cells[row].value),
                    SetCell(second.ref(row), first.cells[row].value),
                )
                names = f"{column_letters(first.column)} and {column_letters(second.column)}"
                yield Idea(
                    "swapped-pair", f"values of columns {names} of {first.sheet!r} swapped", edits
                )


def _blank_rows(subject: Subject, rng: random.Random) -> Iterator[Idea]:
    """Blanks all numbers of a row, so that there is nothing to average or to compare."""
    by_sheet: dict[str, list[Group]] = {}
    for group in subject.groups:
        if group.kind in {Kind.NUMBER, Kind.DATE}:
            by_sheet.setdefault(group.sheet, []).append(group)
    for sheet, groups in by_sheet.items():
        rows = sorted({row for group in groups for row in group.rows(group.kind)})
        several = [row for row in rows if _filled(groups, row) > 1]
        if several:
            row = rng.choice(several)
            edits = tuple(
                SetCell(column.ref(row), None) for column in groups if row in column.cells
            )
            yield Idea("blank-numbers-of-a-row", f"row {row} of {sheet!r} without numbers", edits)


def _filled(groups: Sequence[Group], row: int) -> int:
    return sum(row in group.cells for group in groups)
