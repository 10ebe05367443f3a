"""The weighted vote: decides which of the engines' values for a cell is taken. Pure.

1. The value or the error that an engine gives for a cell is its vote. An error that only shows that
   the engine lacks a feature does not count.
2. The benchmark has a record of how often each engine was right, by function and by shape of its
   arguments, with values and errors counted separately. A small record is filled up from the next
   larger one. The weakest call of a formula counts.
3. The weight of a vote is the logarithm of its odds of being right, so a vote that is more often
   wrong than right counts against its value.
4. Engines that agree count as independent: their weights add up.
5. An engine that was overruled in a cell has no vote in the cells that read that cell.
6. If IronCalc and formualizer agree on an error but LibreOffice has another one, or a value where
   theirs is #DIV/0!, #N/A or #NUM!, they win: LibreOffice reports the last error among several
   arguments, and accepts arguments that Excel refuses.
7. Otherwise the value with the greatest weight is taken. No value is taken if that weight is not
   positive, if its lead over the next value is too small, or if only one engine gives it and that
   engine was never measured with a function of the formula.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import NamedTuple

from judge.formulas.shapes import Call
from judge.recalc.agreement import is_doubtful, same_value, with_logical
from judge.recalc.names import LIBREOFFICE
from judge.recalc.trust import FIRST_CHANCE_OF_ERROR, PAIR, PAIR_ENGINES, TrustTable
from judge.workbook.cell import CellValue, ErrorValue

MIN_CHANCE = 0.02
MAX_CHANCE = 0.998
"""Bounds of the probability that a vote is right; they limit the weight of a single vote."""

LEAD = 0.05
"""A value is taken only if its weight exceeds that of the next value by at least this much."""

VOTERS = frozenset((LIBREOFFICE, *PAIR_ENGINES))
"""The engines whose answers count for every cell."""

Votes = Mapping[str, CellValue]
"""Engine -> the value or error that it gives for a cell."""


class Choice(NamedTuple):
    """The value that is taken for a cell.

    Attributes:
        value: the value.
        engines: the engines that gave it.
        against: engine -> its value, if the engines disagree and that is worth a note.
        why: why the value is taken, for people; empty if the engines simply agree.
    """

    value: CellValue
    engines: tuple[str, ...]
    against: Mapping[str, CellValue] | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Open:
    """A cell whose value depends on a missing answer.

    Attributes:
        engines: engines that could change the value: not asked yet, out of time, or ended. Empty
            if only an engine that is not available could change it.
    """

    engines: frozenset[str]


_READ_OTHERWISE = "LibreOffice reads something that the cell depends on differently from Excel"
_CONFIRMED = f"{_READ_OTHERWISE}, and another engine confirms its value"


def chosen_if_office_misreads(votes: Votes) -> Choice | None:
    """The choice for a cell in which LibreOffice is known to misread something.

    LibreOffice's value is taken only if another engine agrees with it. Failing that, the pair's
    value is taken if the two agree.
    """
    office = votes[LIBREOFFICE]
    quick = [votes[name] for name in PAIR_ENGINES if name in votes]
    for vote in quick:
        likewise = with_logical(office, vote)
        if same_value(likewise, vote):
            return Choice(likewise, (LIBREOFFICE,), why=_CONFIRMED)
    if len(quick) < len(PAIR_ENGINES) or any(map(is_doubtful, quick)):
        return None
    why = f"they agree, and {_READ_OTHERWISE}"
    return Choice(quick[0], PAIR_ENGINES, votes, why) if same_value(*quick) else None


def are_alike(first: Choice | None, second: Choice | None) -> bool:
    """Whether two choices have the same value, or both have no value."""
    if first is None or second is None:
        return first is second
    return same_value(first.value, second.value)


@dataclass(slots=True)
class Candidate:
    """A value that one or more engines give.

    Attributes:
        value: the value.
        engines: the engines that give it.
        weight: the sum of the weights of their votes.
    """

    value: CellValue
    engines: list[str] = field(default_factory=list)
    weight: float = 0.0


def is_error(vote: CellValue, instead: CellValue) -> bool:
    """Whether a vote is an error, or the value that the formula gives instead of one.

    Args:
        vote: the vote.
        instead: what the formula gives instead of an error; None if it gives the error.
    """
    return isinstance(vote, ErrorValue) or (instead is not None and same_value(vote, instead))


def weight(
    trust: TrustTable,
    engine: str,
    calls: Sequence[Call],
    vote: CellValue,
    instead: CellValue = None,
) -> float:
    """The weight of an engine's vote: the logarithm of its odds of being right."""
    chance = trust.chance(engine, calls, is_error=is_error(vote, instead))
    chance = min(max(chance, MIN_CHANCE), MAX_CHANCE)
    return math.log(chance / (1 - chance))


def _candidate_with(candidates: Sequence[Candidate], vote: CellValue) -> Candidate | None:
    for candidate in candidates:
        if same_value(candidate.value, vote):
            return candidate
    return None


def ranked_candidates(votes: Votes, weights: Mapping[str, float]) -> list[Candidate]:
    """The different values among some votes, the one with the greatest weight first."""
    distinct: list[Candidate] = []
    # LibreOffice may show TRUE as 1, so its 1 counts as the TRUE of another engine.
    for engine in (*(name for name in votes if name != LIBREOFFICE), LIBREOFFICE):
        if engine not in votes:
            continue
        vote = votes[engine]
        joined = _candidate_with(distinct, vote)
        if joined is None and engine == LIBREOFFICE and vote in (0, 1):
            joined = _candidate_with(distinct, bool(vote))
        if joined is None:
            joined = Candidate(vote)
            distinct.append(joined)
        joined.engines.append(engine)
        joined.weight += weights[engine]
    return sorted(distinct, key=lambda candidate: -candidate.weight)


def winner(
    votes: Votes, calls: Sequence[Call], trust: TrustTable, instead: CellValue = None
) -> Candidate | None:
    """The value that is taken for a cell; None if no value is taken.

    Args:
        votes: the values that the engines give; engines without a value are left out.
        calls: what the formula calls.
        trust: the records.
        instead: what the formula gives instead of an error, by
            :func:`judge.formulas.shapes.fallback`.
    """
    refusal = _refusal(votes, calls, trust)
    if refusal is not None:
        return refusal
    votes = _without_unmeasured(votes, calls, trust, instead)
    weights = {name: weight(trust, name, calls, vote, instead) for name, vote in votes.items()}
    ranked = ranked_candidates(votes, weights)
    if any(call.is_of_arrays for call in calls):
        for candidate in ranked:
            if set(candidate.engines) == set(PAIR_ENGINES):
                candidate.weight = min(
                    candidate.weight, weight(trust, PAIR, calls, candidate.value, instead)
                )
        ranked.sort(key=lambda candidate: -candidate.weight)
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


_OF_THE_ENGINE = frozenset(("#VALUE!", "#REF!", "#NAME?", "#NULL!", "#SPILL!", "#CALC!"))
"""Errors that may only mean that a quick engine lacks something that LibreOffice supports."""


def _refusal(votes: Votes, calls: Sequence[Call], trust: TrustTable) -> Candidate | None:
    """The error on which the quick engines agree, if it counts more than LibreOffice's answer."""
    first, second = (votes.get(name) for name in PAIR_ENGINES)
    office = votes.get(LIBREOFFICE)
    if office is None or not _may_refuse(office, first, calls, trust):
        return None
    return Candidate(first, list(PAIR_ENGINES)) if first == second else None


def _may_refuse(
    office: CellValue, quick: CellValue, calls: Sequence[Call], trust: TrustTable
) -> bool:
    """Whether an error wins against LibreOffice's answer if both quick engines have it."""
    if not isinstance(quick, ErrorValue) or office == quick:
        return False
    if not isinstance(office, ErrorValue) and quick.code in _OF_THE_ENGINE:
        return False
    return not any(call.is_of_arrays for call in calls) and all(
        trust.chance(name, calls, is_error=True) >= FIRST_CHANCE_OF_ERROR for name in PAIR_ENGINES
    )


def _without_unmeasured(
    votes: Votes, calls: Sequence[Call], trust: TrustTable, instead: CellValue
) -> Votes:
    """Removes answers that may only show that an engine requires an optional argument.

    Where an argument is left out, the error of an engine counts against the value of another engine
    only if the former was measured with that shape; so does a value of a quick engine against one
    of LibreOffice, since the quick engines often read 0 there instead of the argument's default.
    """
    omitting = [call for call in calls if call.omits]
    if not omitting or all(is_error(vote, instead) for vote in votes.values()):
        return votes
    office = votes.get(LIBREOFFICE)
    if office is not None and is_error(office, instead):
        office = None

    def counts(name: str, vote: CellValue) -> bool:
        if trust.is_shaped(name, omitting):
            return True
        if is_error(vote, instead) or name == LIBREOFFICE or office is None:
            return not is_error(vote, instead)
        return same_value(with_logical(office, vote), vote)

    return {name: vote for name, vote in votes.items() if counts(name, vote)}


def _office_before_one_alone(ranked: list[Candidate], instead: CellValue) -> list[Candidate]:
    """Drops the first candidate if only one quick engine gives it and LibreOffice gives the next.

    For arrays, the quick engines outweigh LibreOffice only if they agree with each other.
    """
    if len(ranked) < 2 or len(ranked[0].engines) > 1:
        return ranked
    first = ranked[0].value
    if is_error(first, instead) and not (
        isinstance(first, ErrorValue) and first.code in _OF_THE_ENGINE
    ):
        return ranked
    is_next = LIBREOFFICE in ranked[1].engines and ranked[1].weight > 0
    return ranked[1:] if is_next else ranked


def _is_unanimous(candidate: Candidate, instead: CellValue) -> bool:
    """Whether LibreOffice and a quick engine agree on a value, or all three on an error."""
    enough = len(VOTERS) if is_error(candidate.value, instead) else 2
    return LIBREOFFICE in candidate.engines and len(candidate.engines) >= enough


def is_settled(
    votes: Votes,
    calls: Sequence[Call],
    trust: TrustTable,
    missing: Iterable[str],
    instead: CellValue = None,
) -> bool:
    """Whether the missing engines can no longer change the value that wins now.

    False does not mean that an answer can change it; to find out, the caller has to try all
    :func:`possible_votes`.
    """
    if _may_be_refused(votes, calls, trust):
        return False
    weights = {name: weight(trust, name, calls, vote, instead) for name, vote in votes.items()}
    ranked = ranked_candidates(votes, weights)
    if not ranked or not _keeps_its_voters(ranked[0], votes, calls, trust, instead):
        return False
    first, second = ranked[0].weight, max(0.0, *(candidate.weight for candidate in ranked[1:]), 0.0)
    if any(call.is_of_arrays for call in calls) and set(ranked[0].engines) == set(PAIR_ENGINES):
        first = min(first, weight(trust, PAIR, calls, ranked[0].value, instead))
    for name in missing:
        possible = [weight(trust, name, calls, vote) for vote in (0, ErrorValue("#N/A"))]
        first += min(0.0, *possible)
        second += max(0.0, *possible)
    return first - second >= LEAD


def _may_be_refused(votes: Votes, calls: Sequence[Call], trust: TrustTable) -> bool:
    """Whether the quick engines have, or may still get, an error that counts more than a value."""
    given = [votes[name] for name in PAIR_ENGINES if name in votes] or [_new(0)[1]]
    office = votes.get(LIBREOFFICE, _new(1)[0])
    return all(_may_refuse(office, vote, calls, trust) for vote in given)


def _keeps_its_voters(
    first: Candidate,
    votes: Votes,
    calls: Sequence[Call],
    trust: TrustTable,
    instead: CellValue,
) -> bool:
    """Whether the votes for a candidate still count whatever the missing engines answer."""
    if any(call.omits for call in calls) and (
        is_error(first.value, instead) or LIBREOFFICE not in first.engines
    ):
        # Against a value, such an answer counts only if its engine was measured with that shape.
        return False
    alone = len(first.engines) == 1
    if alone and not trust.is_measured(first.engines[0], calls):
        return False
    if LIBREOFFICE not in first.engines:
        # For arrays, LibreOffice has precedence over a single quick engine.
        return not (alone and any(call.is_of_arrays for call in calls))
    office = votes[LIBREOFFICE]
    # LibreOffice's 1 may mean TRUE: it counts for the engines with 1 or, failing that, with TRUE.
    joins = office in (0, 1) and not isinstance(office, bool)
    return not (joins and (alone or isinstance(first.value, bool)))


def possible_votes(
    votes: Mapping[str, CellValue], missing: Iterable[str]
) -> Iterator[dict[str, CellValue]]:
    """Yields every kind of outcome: the given votes, and votes that missing engines may add.

    A missing engine may have no vote, the vote of another engine, or a new one of any kind.
    """
    names = sorted(missing)
    present: list[CellValue] = [*votes.values()]
    logical: list[CellValue] = [True, 1, False, 0]
    for pair in (logical[:2], logical[2:]):
        if any(same_value(vote, value) for vote in present for value in pair):
            present.extend(pair)
    kinds = [None, *present, *(new for number in range(len(names)) for new in _new(number))]
    for added in product(kinds, repeat=len(names)):
        yield {
            **votes,
            **{name: vote for name, vote in zip(names, added, strict=True) if vote is not None},
        }


_NEW = "\0new "
"""Prefix of a string that no engine returns; the string stands for a value unlike any other."""


def pattern(votes: Votes, instead: CellValue) -> Hashable:
    """A key of everything about some votes that a decision can depend on.

    If the patterns of two cells are equal, :func:`winner` and :func:`is_settled` decide both in
    the same way, whatever :func:`possible_votes` adds. A pattern holds the kinds of the votes,
    which of them are the same value, which stand for an error, and every value that the rule treats
    specially (0, 1, TRUE, FALSE, errors).

    Args:
        votes: engine -> the value that it gives for the cell.
        instead: what the formula gives instead of an error.
    """
    given = list(votes.values())
    if instead is None and len(given) > 1 and all(is_identical(given[0], vote) for vote in given):
        return tuple(votes), kind(given[0])
    kinds = tuple(map(kind, given))
    alike = tuple(same_value(first, second) for first, second in combinations(given, 2))
    return (
        tuple(votes),
        kinds,
        alike,
        None if instead is None else (instead, *(same_value(vote, instead) for vote in given)),
    )


def is_identical(first: CellValue, second: CellValue) -> bool:
    """Whether two values are equal to the last digit and so of the same kind."""
    return type(first) is type(second) and first == second


_PLAIN_NUMBER = ("number", False, False, False, False)


def kind(vote: CellValue) -> Hashable:
    """The properties of a vote on which a decision can depend."""
    if isinstance(vote, (bool, ErrorValue)):
        return type(vote).__name__, vote
    if isinstance(vote, (int, float)):
        if vote > 2 or vote < -2:
            return _PLAIN_NUMBER
        if type(vote) is int:
            return "number", vote == 0, vote == 1, vote == 0, vote == 1
        return "number", vote == 0, vote == 1, same_value(vote, 0), same_value(vote, 1)
    if isinstance(vote, str) and not vote.startswith(_NEW):
        return "text"
    return type(vote).__name__, vote


def _new(number: int) -> tuple[CellValue, ...]:
    """A string and an error that no engine returns."""
    return f"{_NEW}{number}", ErrorValue(f"#NEW{number}!")
