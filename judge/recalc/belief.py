"""The rule of belief: which of the values that engines give for a cell is taken. Pure.

1. A word is a value or an error that an engine gives for a cell, unless it only shows that the
   engine lacks something.
2. Of each engine there is a record: how often it was right, by function and by shape of its
   arguments, values and errors apart. A small record is filled up from the next larger one. The
   weakest call of a formula counts.
3. A word weighs the logarithm of its odds to be right, so a word that is more often wrong than
   right counts against its value.
4. Engines that agree are independent witnesses: their weights add up.
5. An engine has no word in a cell that reads one in which it was overruled.
6. The heaviest value is taken. Without weight, without a lead over the next one, or said by one
   engine alone that was never measured with a function of the formula, none is taken.
"""

from __future__ import annotations

import bisect
import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import combinations, product

from judge.formulas.references import Reference
from judge.formulas.shapes import Call
from judge.recalc.agreement import same_value
from judge.recalc.names import LIBREOFFICE
from judge.recalc.trust import PAIR, PAIR_ENGINES, TrustTable
from judge.workbook.cell import CellRef, CellValue, ErrorValue

MIN_CHANCE = 0.02
MAX_CHANCE = 0.998
"""No record makes a word weigh more than these do."""

LEAD = 0.05
"""How much heavier a value has to be than the next one."""

WITNESSES = frozenset((LIBREOFFICE, *PAIR_ENGINES))
"""The engines that have a word in every cell."""

Words = Mapping[str, CellValue]
"""Engine -> what it gives for a cell."""


@dataclass(slots=True)
class Verdict:
    """A value that some engines say.

    Attributes:
        value: what they say.
        engines: which they are.
        weight: the sum of their weights.
    """

    value: CellValue
    engines: list[str] = field(default_factory=list)
    weight: float = 0.0


def is_error(word: CellValue, instead: CellValue) -> bool:
    """Whether a word is an error, or stands for one.

    Args:
        word: the word.
        instead: what the formula gives instead of an error; None if it gives the error.
    """
    return isinstance(word, ErrorValue) or (instead is not None and same_value(word, instead))


def weight(
    trust: TrustTable,
    engine: str,
    calls: Sequence[Call],
    word: CellValue,
    instead: CellValue = None,
) -> float:
    """How much a word of an engine weighs."""
    chance = trust.chance(engine, calls, is_error=is_error(word, instead))
    chance = min(max(chance, MIN_CHANCE), MAX_CHANCE)
    return math.log(chance / (1 - chance))


def _saying(found: Sequence[Verdict], word: CellValue) -> Verdict | None:
    for verdict in found:
        if same_value(verdict.value, word):
            return verdict
    return None


def verdicts(words: Words, weights: Mapping[str, float]) -> list[Verdict]:
    """The different values among some words, the heaviest first."""
    found: list[Verdict] = []
    # LibreOffice may lose that a 1 is TRUE, so it joins the others.
    for engine in (*(name for name in words if name != LIBREOFFICE), LIBREOFFICE):
        if engine not in words:
            continue
        word = words[engine]
        joined = _saying(found, word)
        if joined is None and engine == LIBREOFFICE and word in (0, 1):
            joined = _saying(found, bool(word))
        if joined is None:
            joined = Verdict(word)
            found.append(joined)
        joined.engines.append(engine)
        joined.weight += weights[engine]
    return sorted(found, key=lambda each: -each.weight)


def believe(
    words: Words, calls: Sequence[Call], trust: TrustTable, instead: CellValue = None
) -> Verdict | None:
    """The value that is taken; None if none is.

    Args:
        words: what the engines say, those without a value left out.
        calls: what the formula calls.
        trust: the records.
        instead: what the formula gives instead of an error, by
            :func:`judge.formulas.shapes.fallback`.
    """
    words = _of_able(words, calls, trust, instead)
    weights = {name: weight(trust, name, calls, word, instead) for name, word in words.items()}
    found = verdicts(words, weights)
    if any(call.is_of_arrays for call in calls):
        for verdict in found:
            if set(verdict.engines) == set(PAIR_ENGINES):
                verdict.weight = min(
                    verdict.weight, weight(trust, PAIR, calls, verdict.value, instead)
                )
        found.sort(key=lambda each: -each.weight)
        found = _office_before_one_alone(found, instead)
    if not found:
        return None
    first = found[0]
    if len(found) == 1 and _is_unanimous(first, instead):
        return first
    if first.weight <= 0:
        return None
    if len(found) > 1 and first.weight - found[1].weight < LEAD:
        return None
    if len(first.engines) == 1 and not trust.is_measured(first.engines[0], calls):
        return None
    return first


def _of_able(words: Words, calls: Sequence[Call], trust: TrustTable, instead: CellValue) -> Words:
    """The words without errors that may only show that an engine needs every argument.

    Where an argument is left out, an error counts against a value of another engine only if its
    engine was measured with that shape.
    """
    omitting = [call for call in calls if call.omits]
    if not omitting or all(is_error(word, instead) for word in words.values()):
        return words
    return {
        name: word
        for name, word in words.items()
        if not is_error(word, instead) or trust.is_shaped(name, omitting)
    }


def _office_before_one_alone(found: list[Verdict], instead: CellValue) -> list[Verdict]:
    """The verdicts without a value that one quick engine gives alone where LibreOffice has another.

    The quick engines are a witness of arrays where they agree; one of them alone is less than that.
    """
    if len(found) < 2 or len(found[0].engines) > 1 or is_error(found[0].value, instead):
        return found
    is_next = LIBREOFFICE in found[1].engines and found[1].weight > 0
    return found[1:] if is_next else found


def _is_unanimous(verdict: Verdict, instead: CellValue) -> bool:
    """Whether LibreOffice and a quick engine agree on a value, or all three on an error."""
    enough = len(WITNESSES) if is_error(verdict.value, instead) else 2
    return LIBREOFFICE in verdict.engines and len(verdict.engines) >= enough


def is_settled(
    words: Words,
    calls: Sequence[Call],
    trust: TrustTable,
    missing: Iterable[str],
    instead: CellValue = None,
) -> bool:
    """Whether no word of the missing engines can change the value that is believed by now.

    False does not mean that one can: :func:`possible_words` finds out.
    """
    weights = {name: weight(trust, name, calls, word, instead) for name, word in words.items()}
    found = verdicts(words, weights)
    if not found or not _keeps_its_witnesses(found[0], words, calls, trust, instead):
        return False
    first, second = found[0].weight, max(0.0, *(each.weight for each in found[1:]), 0.0)
    if any(call.is_of_arrays for call in calls) and set(found[0].engines) == set(PAIR_ENGINES):
        first = min(first, weight(trust, PAIR, calls, found[0].value, instead))
    for name in missing:
        possible = [weight(trust, name, calls, word) for word in (0, ErrorValue("#N/A"))]
        first += min(0.0, *possible)
        second += max(0.0, *possible)
    return first - second >= LEAD


def _keeps_its_witnesses(
    first: Verdict,
    words: Words,
    calls: Sequence[Call],
    trust: TrustTable,
    instead: CellValue,
) -> bool:
    """Whether the engines of a verdict stay witnesses of it, whatever the missing ones say."""
    if any(call.omits for call in calls) and is_error(first.value, instead):
        return False  # beside a value, the error would count only of engines measured with that
    alone = len(first.engines) == 1
    if alone and not trust.is_measured(first.engines[0], calls):
        return False
    if LIBREOFFICE not in first.engines:
        # Of arrays, LibreOffice comes before a quick engine that is alone.
        return not (alone and any(call.is_of_arrays for call in calls))
    office = words[LIBREOFFICE]
    # Its 1 may be TRUE: it joins whoever says either, the number first.
    joins = office in (0, 1) and not isinstance(office, bool)
    return not (joins and (alone or isinstance(first.value, bool)))


def possible_words(
    words: Mapping[str, CellValue], missing: Iterable[str]
) -> Iterator[dict[str, CellValue]]:
    """The words of all engines, for every kind of word that the missing ones could still have.

    It may have no word, that of another engine, or a new one of any kind.
    """
    names = sorted(missing)
    present: list[CellValue] = [*words.values()]
    logical: list[CellValue] = [True, 1, False, 0]
    for pair in (logical[:2], logical[2:]):
        if any(same_value(word, each) for word in present for each in pair):
            present.extend(pair)
    kinds = [None, *present, *(new for number in range(len(names)) for new in _new(number))]
    for added in product(kinds, repeat=len(names)):
        yield {
            **words,
            **{name: word for name, word in zip(names, added, strict=True) if word is not None},
        }


_NEW = "\0new "
"""What the text starts with that no engine gives."""


def pattern(words: Words, instead: CellValue) -> Hashable:
    """Everything about some words that a decision can depend on.

    Where the patterns of two cells are equal, :func:`believe`, :func:`is_settled` and a comparison
    of what :func:`possible_words` adds come out alike for both. A pattern holds the kinds of the
    words, which of them are the same value, which stand for an error, and every value that the rule
    treats on its own (0, 1, TRUE, FALSE, errors).

    Args:
        words: what each engine gives for the cell.
        instead: what the formula gives instead of an error.
    """
    given = list(words.values())
    return (
        tuple(words),
        tuple(map(_kind, given)),
        tuple(same_value(first, second) for first, second in combinations(given, 2)),
        None if instead is None else (instead, *(same_value(word, instead) for word in given)),
    )


def _kind(word: CellValue) -> Hashable:
    if isinstance(word, (bool, ErrorValue)):
        return type(word).__name__, word
    if isinstance(word, (int, float)):
        return "number", word == 0, word == 1, same_value(word, 0), same_value(word, 1)
    if isinstance(word, str) and not word.startswith(_NEW):
        return "text"
    return type(word).__name__, word


def _new(number: int) -> tuple[CellValue, ...]:
    """Text and an error that no engine gives."""
    return f"{_NEW}{number}", ErrorValue(f"#NEW{number}!")


class Overruled:
    """The cells in which engines were overruled, and so are not heard in cells that read them."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str, int], list[int]] = defaultdict(list)
        self._columns: dict[tuple[str, str], set[int]] = defaultdict(set)
        self._engines: set[str] = set()

    def add(self, engine: str, ref: CellRef) -> None:
        """Notes that an engine was overruled in a cell."""
        self._engines.add(engine)
        self._columns[engine, ref.sheet].add(ref.column)
        bisect.insort(self._rows[engine, ref.sheet, ref.column], ref.row)

    def reading(
        self, home: str, reads: Sequence[Reference], named: Callable[[str], str | None]
    ) -> AbstractSet[str]:
        """The engines that were overruled in a cell of some rectangles.

        Args:
            home: the sheet of the formula.
            reads: the rectangles.
            named: the real name of a sheet.
        """
        return {
            engine
            for engine in self._engines
            if any(self._holds(engine, home, read, named) for read in reads)
        }

    def _holds(
        self, engine: str, home: str, read: Reference, named: Callable[[str], str | None]
    ) -> bool:
        sheet = home if read.sheet is None else named(read.sheet)
        if sheet is None:
            return False
        for column in self._columns.get((engine, sheet), ()):
            if read.min_column <= column <= read.max_column:
                rows = self._rows[engine, sheet, column]
                at = bisect.bisect_left(rows, read.min_row)
                if at < len(rows) and rows[at] <= read.max_row:
                    return True
        return False
