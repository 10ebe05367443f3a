"""The rule of belief: which of the engines' values for a cell is taken. Pure.

1. A word is the value or the error that an engine gives for a cell. An error that only shows that
   the engine lacks a feature does not count.
2. The benchmark has a record of how often each engine was right, by function and by shape of its
   arguments, with values and errors counted separately. A small record is filled up from the next
   larger one. The weakest call of a formula counts.
3. The weight of a word is the logarithm of its odds of being right, so a word that is more often
   wrong than right counts against its value.
4. Engines that agree are independent witnesses: their weights add up.
5. An engine that was overruled in a cell has no word in the cells that read that cell.
6. The value with the greatest weight is taken. No value is taken if that weight is not positive, if
   its lead over the next value is too small, or if only one engine gives it and that engine was
   never measured with a function of the formula.
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
from judge.recalc.contract import LIBREOFFICE
from judge.recalc.trust import PAIR, PAIR_ENGINES, TrustTable
from judge.workbook.cell import CellRef, CellValue, ErrorValue

MIN_CHANCE = 0.02
MAX_CHANCE = 0.998
"""Bounds of the probability that a word is right; they limit how much it can weigh."""

LEAD = 0.05
"""How much greater the weight of a value has to be than that of the next value."""

WITNESSES = frozenset((LIBREOFFICE, *PAIR_ENGINES))
"""The engines whose answers count for every cell."""

Words = Mapping[str, CellValue]
"""Engine -> the value or error that it gives for a cell."""


@dataclass(slots=True)
class Verdict:
    """A value that one or more engines give.

    Attributes:
        value: the value.
        engines: the engines that give it.
        weight: the sum of the weights of their words.
    """

    value: CellValue
    engines: list[str] = field(default_factory=list)
    weight: float = 0.0


def is_error(word: CellValue, instead: CellValue) -> bool:
    """Whether a word is an error, or the value that the formula gives instead of one.

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
    """The weight of an engine's word: the logarithm of its odds of being right."""
    chance = trust.chance(engine, calls, is_error=is_error(word, instead))
    chance = min(max(chance, MIN_CHANCE), MAX_CHANCE)
    return math.log(chance / (1 - chance))


def _saying(candidates: Sequence[Verdict], word: CellValue) -> Verdict | None:
    for verdict in candidates:
        if same_value(verdict.value, word):
            return verdict
    return None


def verdicts(words: Words, weights: Mapping[str, float]) -> list[Verdict]:
    """The different values among some words, in descending order of weight."""
    distinct: list[Verdict] = []
    # LibreOffice may show TRUE as 1, so its 1 counts as the TRUE of another engine.
    for engine in (*(name for name in words if name != LIBREOFFICE), LIBREOFFICE):
        if engine not in words:
            continue
        word = words[engine]
        joined = _saying(distinct, word)
        if joined is None and engine == LIBREOFFICE and word in (0, 1):
            joined = _saying(distinct, bool(word))
        if joined is None:
            joined = Verdict(word)
            distinct.append(joined)
        joined.engines.append(engine)
        joined.weight += weights[engine]
    return sorted(distinct, key=lambda verdict: -verdict.weight)


def believe(
    words: Words, calls: Sequence[Call], trust: TrustTable, instead: CellValue = None
) -> Verdict | None:
    """The value that is taken for a cell; None if no value is taken.

    Args:
        words: the values that the engines give; engines without a value are left out.
        calls: what the formula calls.
        trust: the records.
        instead: what the formula gives instead of an error, by
            :func:`judge.formulas.shapes.fallback`.
    """
    words = _of_able(words, calls, trust, instead)
    weights = {name: weight(trust, name, calls, word, instead) for name, word in words.items()}
    ranked = verdicts(words, weights)
    if any(call.is_of_arrays for call in calls):
        for verdict in ranked:
            if set(verdict.engines) == set(PAIR_ENGINES):
                verdict.weight = min(
                    verdict.weight, weight(trust, PAIR, calls, verdict.value, instead)
                )
        ranked.sort(key=lambda verdict: -verdict.weight)
        ranked = _office_before_one_alone(ranked, instead)
    if not ranked:
        return None
    first = ranked[0]
    if len(ranked) == 1 and _is_unanimous(first, instead):
        return first
    if first.weight <= 0:
        return None
    if len(ranked) > 1 and first.weight - ranked[1].weight < LEAD:
        return None
    if len(first.engines) == 1 and not trust.is_measured(first.engines[0], calls):
        return None
    return first


def _of_able(words: Words, calls: Sequence[Call], trust: TrustTable, instead: CellValue) -> Words:
    """Removes errors that may only show that an engine cannot do without an optional argument.

    Where an argument is left out, the error of an engine counts against the value of another engine
    only if the former was measured with that shape.
    """
    omitting = [call for call in calls if call.omits]
    if not omitting or all(is_error(word, instead) for word in words.values()):
        return words
    return {
        name: word
        for name, word in words.items()
        if not is_error(word, instead) or trust.is_shaped(name, omitting)
    }


def _office_before_one_alone(ranked: list[Verdict], instead: CellValue) -> list[Verdict]:
    """Drops the first verdict if one quick engine alone gives it, and LibreOffice has the next one.

    For arrays, the quick engines are a witness only if they agree; one of them alone is less.
    """
    if len(ranked) < 2 or len(ranked[0].engines) > 1 or is_error(ranked[0].value, instead):
        return ranked
    is_next = LIBREOFFICE in ranked[1].engines and ranked[1].weight > 0
    return ranked[1:] if is_next else ranked


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
    """Whether no answer of the missing engines can change the value that is believed now.

    False does not mean that an answer can change it: :func:`possible_words` finds that out.
    """
    weights = {name: weight(trust, name, calls, word, instead) for name, word in words.items()}
    ranked = verdicts(words, weights)
    if not ranked or not _keeps_its_witnesses(ranked[0], words, calls, trust, instead):
        return False
    first, second = ranked[0].weight, max(0.0, *(verdict.weight for verdict in ranked[1:]), 0.0)
    if any(call.is_of_arrays for call in calls) and set(ranked[0].engines) == set(PAIR_ENGINES):
        first = min(first, weight(trust, PAIR, calls, ranked[0].value, instead))
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
    """Whether the engines of a verdict still support it, whatever the missing engines answer."""
    if any(call.omits for call in calls) and is_error(first.value, instead):
        return False  # against a value, the error counts only if its engine was measured with that
    alone = len(first.engines) == 1
    if alone and not trust.is_measured(first.engines[0], calls):
        return False
    if LIBREOFFICE not in first.engines:
        # For arrays, LibreOffice has precedence over a single quick engine.
        return not (alone and any(call.is_of_arrays for call in calls))
    office = words[LIBREOFFICE]
    # Its 1 may be TRUE: it joins the engines that say 1, or else those that say TRUE.
    joins = office in (0, 1) and not isinstance(office, bool)
    return not (joins and (alone or isinstance(first.value, bool)))


def possible_words(
    words: Mapping[str, CellValue], missing: Iterable[str]
) -> Iterator[dict[str, CellValue]]:
    """Yields the words of all engines, for every kind of word that the missing ones could give.

    A missing engine may give no word, the word of another engine, or a new one of any kind.
    """
    names = sorted(missing)
    present: list[CellValue] = [*words.values()]
    logical: list[CellValue] = [True, 1, False, 0]
    for pair in (logical[:2], logical[2:]):
        if any(same_value(word, value) for word in present for value in pair):
            present.extend(pair)
    kinds = [None, *present, *(new for number in range(len(names)) for new in _new(number))]
    for added in product(kinds, repeat=len(names)):
        yield {
            **words,
            **{name: word for name, word in zip(names, added, strict=True) if word is not None},
        }


_NEW = "\0new "
"""Prefix of text that no engine gives, which stands for a new value."""


def pattern(words: Words, instead: CellValue) -> Hashable:
    """Everything about some words that a decision can depend on.

    If the patterns of two cells are equal, :func:`believe` and :func:`is_settled` decide both in
    the same way, whatever :func:`possible_words` adds. A pattern holds the kinds of the words,
    which of them are the same value, which stand for an error, and every value that the rule treats
    specially (0, 1, TRUE, FALSE, errors).

    Args:
        words: engine -> the value that it gives for the cell.
        instead: what the formula gives instead of an error.
    """
    given = list(words.values())
    if len(given) > 1 and all(_is_identical(given[0], word) for word in given):
        kinds: tuple[Hashable, ...] = (_kind(given[0]),) * len(given)
        alike: tuple[bool, ...] = (True,) * math.comb(len(given), 2)
    else:
        kinds = tuple(map(_kind, given))
        alike = tuple(same_value(first, second) for first, second in combinations(given, 2))
    return (
        tuple(words),
        kinds,
        alike,
        None if instead is None else (instead, *(same_value(word, instead) for word in given)),
    )


def _is_identical(first: CellValue, second: CellValue) -> bool:
    """Whether two values are equal to the last digit; then they are of one kind."""
    return type(first) is type(second) and first == second


_PLAIN_NUMBER = ("number", False, False, False, False)


def _kind(word: CellValue) -> Hashable:
    if isinstance(word, (bool, ErrorValue)):
        return type(word).__name__, word
    if isinstance(word, (int, float)):
        if word > 2 or word < -2:
            return _PLAIN_NUMBER
        return "number", word == 0, word == 1, same_value(word, 0), same_value(word, 1)
    if isinstance(word, str) and not word.startswith(_NEW):
        return "text"
    return type(word).__name__, word


def _new(number: int) -> tuple[CellValue, ...]:
    """A string and an error that no engine gives."""
    return f"{_NEW}{number}", ErrorValue(f"#NEW{number}!")


class Overruled:
    """The cells in which engines were overruled; their answers in dependent cells do not count."""

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
        """The engines that were overruled in some cell of the rectangles that a formula reads.

        Args:
            home: the sheet of the formula.
            reads: the rectangles.
            named: returns the real name of a sheet; None if there is no such sheet.
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
