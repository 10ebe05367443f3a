"""Relations between a program's answers to two inputs, which reveal mistakes without any source.

If neither formulas nor references give the answer for a new input, a program can still be compared
with itself. The order of the rows must not change a sorted list; a word in another letter case is
either the same word or a different one; a list that contains each key once must still do so. A
broken relation does not show what the right answer is; a person has to decide this.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from judge.annotate.edits import Edit, Formula, SetCell
from judge.annotate.idea import MAX_TABLES, Idea, Subject, Twin, Values
from judge.annotate.support import Group
from judge.annotate.tables import Column, Kind, Table, kind_of_value
from judge.formulas.shift import shift_formula
from judge.workbook.cell import CellRange, CellValue

MAX_ROWS = 2_000
"""Largest number of rows in a table that is put into another order."""

MAX_WORDS = 4
"""The largest number of words whose letter case is changed."""

MIN_SORTED = 3
"""How many different values a column must hold to count as sorted."""

RELATION_NAMES = ("sorted-whatever-the-order", "same-word-or-another", "word-of-the-macro")
"""Names of the mutators of this module."""


def relation_ideas(
    subject: Subject, instruction: str, golds: Sequence[Values], seed: str
) -> Iterator[Idea]:
    """Ideas whose answer follows from a relation.

    Args:
        subject: the contents of the input.
        instruction: the question.
        golds: the answers of all published cases; the base case's comes first.
        seed: the same seed gives the same ideas.
    """
    yield from _other_order(subject, golds)
    rng = random.Random(f"{seed}/words")  # noqa: S311 - no secret
    yield from _words_of_macros(subject, instruction, rng)
    words = {value for gold in golds for value in gold.values() if isinstance(value, str)}
    yield from _words_in_other_case(subject, words, rng)


# -- rows in another order ------------------------------------------------------------------------


def _other_order(subject: Subject, golds: Sequence[Values]) -> Iterator[Idea]:
    """Puts rows into another order, if all golds are sorted by one of the columns.

    Rows that are equal in that column keep their order, so ties do not change the list.
    """
    for table in subject.tables[:MAX_TABLES]:
        column = _sorted_by(table, subject.answer, golds)
        if column is None or len(table.rows) > MAX_ROWS:
            continue
        keys = _keys(column)
        rows = list(keys)
        order = sorted(rows, key=lambda row: keys[row], reverse=True)
        edits = [
            edit
            for target, source in zip(rows, order, strict=True)
            if target != source
            for edit in moved_row(table, source, target, in_place=column.is_answer)
        ]
        if edits and not any(row in table.rows for row, _ in table.covered):
            yield Idea(
                RELATION_NAMES[0],
                f"rows of {table.sheet!r} in another order",
                tuple(edits),
                twins=(Twin("the rows in their old order", ()),),
                relation="all golds are sorted by the same column, so the answer cannot depend on "
                "the order of the rows, but the program's does",
            )


def _sorted_by(table: Table, answer: Sequence[CellRange], golds: Sequence[Values]) -> Column | None:
    """The column of a table that the answers of all golds contain entirely and in order, or None.

    A column that is already sorted in the input does not count.
    """
    for area in answer:
        for number in range(area.min_column, area.max_column + 1):
            lists = [_down(gold, area.sheet, number) for gold in golds]
            up = all(map(_is_ascending, lists))
            if not up and not all(_is_ascending(values[::-1]) for values in lists):
                continue
            ordered = [_comparable(value) for value in lists[0]]
            for column in table.columns:
                key_values = list(_keys(column).values())
                if Counter(ordered) == Counter(key_values) and ordered != key_values:
                    return column
    return None


def _down(values: Values, sheet: str, column: int) -> list[CellValue]:
    """The values in a column of an answer, without headings above values of another kind."""
    refs = sorted(ref for ref in values if ref.sheet == sheet and ref.column == column)
    constants = [values[ref] for ref in refs if values[ref] not in {None, ""}]
    kinds = [kind_of_value(value) for value in constants]
    while len(constants) > 1 and kinds[0] is Kind.TEXT and kinds[-1] is not Kind.TEXT:
        constants, kinds = constants[1:], kinds[1:]
    return constants


def _is_ascending(values: Sequence[CellValue]) -> bool:
    keys = [_comparable(value) for value in values]
    if len(set(keys)) < MIN_SORTED or None in keys or len({type(key) for key in keys}) > 1:
        return False
    return keys == sorted(keys)  # type: ignore[type-var]


def _keys(column: Column) -> dict[int, float | str]:
    """Row -> sort key, for the rows of a column in order; values of another kind are left out."""
    columns = {
        row: key
        for row in sorted(column.cells)
        if column.cells[row].formula is None
        and (key := _comparable(column.cells[row].value)) is not None
    }
    kind = str if column.kind is Kind.TEXT else float
    return {row: key for row, key in columns.items() if isinstance(key, kind)}


def _comparable(value: CellValue) -> float | str | None:
    if isinstance(value, bool) or value in {None, ""}:
        return None
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, str):
        return value.casefold()
    return value.timestamp() if hasattr(value, "timestamp") else None


def moved_row(table: Table, source: int, target: int, *, in_place: bool) -> list[Edit]:
    """The edits that copy a row over another; copied formulas refer to their new row.

    Args:
        table: the table.
        source: the row that is copied.
        target: the row that gets its cells.
        in_place: whether the columns of the answer are copied too.
    """
    edits: list[Edit] = []
    for column in table.columns:
        if column.is_answer and not in_place:
            continue
        new, old = column.cells.get(source), column.cells.get(target)
        if new is None and old is None:
            continue
        content: Formula | CellValue = new.value if new is not None else None
        if new is not None and new.formula is not None:
            content = Formula(shift_formula(new.formula[1:], target - source, 0))
        style = new.style if new is not None else None
        edits.append(SetCell(table.ref(target, column.number), content, style))
    return edits


# -- words in the other case ----------------------------------------------------------------------


def _words_in_other_case(
    subject: Subject, existing_words: Collection[str], rng: random.Random
) -> Iterator[Idea]:
    """Changes the letter case of one of several equal words, which may make it a different word.

    A word that already occurs in the other case is not changed.
    """
    word_count = 0
    existing_words = {
        *existing_words,
        *(text for group in subject.groups for text in _texts(group)),
    }
    for group in subject.groups:
        if group.kind is not Kind.TEXT or group.is_looked_up:
            continue
        rows = group.rows(Kind.TEXT)
        words = [str(group.cells[row].value) for row in rows]
        folded = {word.casefold() for word in words}
        for word in sorted({word_ for word_ in words if words.count(word_) > 2}):
            other = _other_case(word)
            if (
                word_count == MAX_WORDS
                or not _is_one_word(word)
                or other in existing_words
                or len(folded) < 2
            ):
                continue
            word_count += 1
            rows_with_word = [row for row in rows if group.cells[row].value == word]
            row = rng.choice(rows_with_word[1:])
            yield Idea(
                RELATION_NAMES[1],
                f"{word!r} as {other!r} in one row of {group.sheet!r}",
                (SetCell(group.ref(row), other),),
                twins=(
                    Twin(f"{word!r} as it was", ()),
                    Twin(*_with_new_word(group, row, word)),
                ),
                relation=f"the program treats {other!r} neither as {word!r} nor as another word",
                word=other,
                plain=word,
            )


def _with_new_word(group: Group, row: int, word: str) -> tuple[str, tuple[Edit, ...], str]:
    new = f"{word}2"
    return f"{new!r} in its place", (SetCell(group.ref(row), new),), new


def _texts(group: Group) -> list[str]:
    return [value for value in group.values() if isinstance(value, str)]


def _is_one_word(text: str) -> bool:
    return re.fullmatch(r"[^\W\d_]{3,}", text) is not None


def _other_case(word: str) -> str:
    """The word in another letter case: Anna becomes anna, and STATIONERY becomes Stationery."""
    return word.capitalize() if word.isupper() or word.islower() else word.lower()


_MACRO = re.compile(r"\b(?:End Sub|End Function|Dim \w+ As|\.Cells\(|\.Range\()", re.IGNORECASE)
_COMPARED = re.compile(r"(?:\.Value2?|\))\s*(?:=|<>)\s*[\"\u201c]([^\"\u201d\n]{2,30})[\"\u201d]")
_FOLDED = re.compile(
    r"UCase|LCase|StrComp|vbTextCompare|Compare Text|MatchCase|AutoFilter", re.IGNORECASE
)


def _words_of_macros(subject: Subject, instruction: str, rng: random.Random) -> Iterator[Idea]:
    """Changes the letter case of a word that a macro in the question compares with.

    ``=`` in a macro is case-sensitive by default, so for the macro it becomes a different word.
    """
    if not _MACRO.search(instruction) or _FOLDED.search(instruction):
        return
    compared = set(_COMPARED.findall(instruction))
    for group in subject.groups:
        rows = [row for row in group.rows(Kind.TEXT) if group.cells[row].value in compared]
        if rows:
            row = rng.choice(rows)
            word = str(group.cells[row].value)
            other = _other_case(word)
            yield Idea(
                RELATION_NAMES[2],
                f"{word!r}, which the question's macro compares with, as {other!r}",
                (SetCell(group.ref(row), other),),
                twins=(Twin(*_with_new_word(group, row, word)),),
                relation=f"the macro in the question matches only {word!r} in this letter case; "
                f"the program does not treat {other!r} as it treats other words",
                word=other,
                plain=word,
            )


# -- what all golds have in common ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DistinctColumn:
    """A column of the answer that has no repeated value in any gold, although the inputs have.

    Attributes:
        sheet, column: the column.
    """

    sheet: str
    column: int

    def broken_by(self, answer: Values) -> str:
        """A value that an answer repeats in this column, or empty."""
        return _again(answer, self.sheet, self.column)


def _again(answer: Values, sheet: str, column: int) -> str:
    texts = [value for value in _down(answer, sheet, column) if isinstance(value, str)]
    counts = Counter(text.casefold() for text in texts)
    return next((text for text in texts if counts[text.casefold()] > 1), "")


def distinct_column(
    golds: Sequence[Values],
    inputs: Sequence[Sequence[Sequence[CellValue]]],
    headings: Mapping[tuple[str, int], str],
    instruction: str,
) -> DistinctColumn | None:
    """The text column whose values repeat in the inputs, but never within a gold.

    Several columns may have this property by chance. One of them is the key of the answer only if
    the question names its heading, and no heading of the others.

    Args:
        golds: the answers of all published cases.
        inputs: for each published case, the columns of text in its input.
        headings: sheet and number of a column of the answer -> its heading.
        instruction: the question.
    """
    repeated = []
    for sheet, column in sorted({(ref.sheet, ref.column) for ref in golds[0]}):
        lists = [[_comparable(value) for value in _down(gold, sheet, column)] for gold in golds]
        texts = [[value for value in values if isinstance(value, str)] for values in lists]
        heading = headings.get((sheet, column), "").strip()
        if not heading or not _names(instruction, heading):
            continue
        if all(len(set(text)) == len(text) > 1 for text in texts) and all(
            _repeats(set(column), columns) for column, columns in zip(texts, inputs, strict=True)
        ):
            repeated.append(DistinctColumn(sheet, column))
    return repeated[0] if len(repeated) == 1 else None


def _names(instruction: str, heading: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(heading)}(?!\w)", instruction, re.IGNORECASE) is not None


def _repeats(words: set[str], columns: Sequence[Sequence[CellValue]]) -> bool:
    """Whether a column holds all the words or all but one, and at least one word repeatedly."""
    for values in columns:
        terms = [_comparable(value) for value in values]
        repeated = any(terms.count(word) > 1 for word in words)
        if repeated and sum(word in terms for word in words) >= len(words) - 1:
            return True
    return False
