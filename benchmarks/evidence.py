"""Turns measured cells into the table of which engine is right for which function and shape.

A cell counts for an engine only if the engine was right in every formula cell to which it refers,
so that a mistake is attributed to the formula that caused it. Formulas of a file that differ only
in their row numbers count as at most ten cells.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.golds import Gold
from judge.formulas.references import references
from judge.formulas.shapes import Call, fallback
from judge.formulas.traits import traits
from judge.recalc.agreement import SURE_ERRORS, same_value
from judge.recalc.contract import CellVotes
from judge.recalc.trust import PAIR, PAIR_ENGINES
from judge.recalc.voting import is_error
from judge.workbook.cell import CellRef, CellValue, ErrorValue
from judge.workbook.dependency import Search

_NUMBER = re.compile(r"\d+")
MAX_UPSTREAM = 3_000
MAX_ALIKE = 10
"""However many cells of a file hold formulas of one kind, they count as at most this many cells."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Cells with formulas of one kind in one file, and how often an engine was right there.

    Attributes:
        source: the corpus and the file, or the task of which the file is one case.
        engine: the name of the engine, or of the pair of engines if they agree.
        calls: the functions that the formula calls.
        is_error: whether the engine's result was an error.
        right: in how many cells it was right.
        total: how many cells count.
    """

    source: str
    engine: str
    calls: tuple[Call, ...]
    is_error: bool
    right: int
    total: int


def fold_of(source: str, folds: int) -> int:
    """Returns the fold of a source, whose files are judged by records made without this fold."""
    return int(hashlib.sha256(source.encode()).hexdigest(), 16) % folds


def samples_of(
    gold: Gold,
    answers: Mapping[CellRef, CellVotes],
    source: str,
    accepts: Callable[[CellRef, CellValue], bool],
) -> list[Sample]:
    """Makes samples from a workbook for each engine, and for the pair where it agrees.

    Args:
        gold: the workbook.
        answers: the answers of the engines for its cells.
        source: see :class:`Sample`.
        accepts: returns whether a value of a cell is Excel's.
    """
    right = {
        ref: {engine: accepts(ref, vote) for engine, vote in cell_votes.typed.items()}
        for ref, cell_votes in answers.items()
        if ref in gold.expected
    }
    counts: dict[tuple[str, tuple[Call, ...], str, bool], list[int]] = defaultdict(lambda: [0, 0])
    for ref, good in right.items():
        formula = gold.cells[ref].formula or ""
        formula_traits = traits(formula)
        if ref in gold.volatile or formula_traits.unprefixed:
            continue
        clean = _clean(gold, ref, formula, right) if "[" not in formula else set(good)
        kind = _NUMBER.sub("#", formula)
        votes = answers[ref].votes
        outcomes = {engine: good[engine] for engine in clean & good.keys()}
        plain = not (
            formula_traits.array_sensitive or formula_traits.opaque or gold.cells[ref].array_range
        )
        agreed = pair_word(*(votes.get(engine) for engine in PAIR_ENGINES))
        if plain and agreed is not None and clean.issuperset(PAIR_ENGINES):
            outcomes[PAIR] = good[PAIR_ENGINES[0]]
        for engine, is_right in outcomes.items():
            vote = votes[PAIR_ENGINES[0] if engine == PAIR else engine]
            error = is_error(vote, fallback(answers[ref].formula))
            count = counts[kind, answers[ref].calls, engine, error]
            count[0] += is_right
            count[1] += 1
    return [
        Sample(source, engine, calls, is_error, *_at_most(*count))
        for (_, calls, engine, is_error), count in counts.items()
    ]


def _at_most(right: int, total: int) -> tuple[int, int]:
    """Scales down to few cells with the same share; a mistake among many cells is never lost."""
    cells = min(total, MAX_ALIKE)
    scaled = round(right / total * cells)
    return (cells - 1 if right < total and scaled == cells > 1 else scaled), cells


def pair_word(first: CellValue, second: CellValue) -> CellValue:
    """Returns the pair's answer if it agrees in a way that the cascade accepts; otherwise None."""
    if first is None or second is None or not same_value(first, second):
        return None
    if isinstance(first, ErrorValue) and first.code not in SURE_ERRORS:
        return None
    return first


def _clean(
    gold: Gold, ref: CellRef, formula: str, right: Mapping[CellRef, Mapping[str, bool]]
) -> set[str]:
    """Returns the engines that were right in every formula cell to which a formula refers."""
    clean = {engine for good in (right[ref],) for engine in good}
    search = Search(gold.index)
    looked_at = 0
    for reference in references(formula):
        for sheet, cell in search.unseen(reference, ref.sheet):
            good = right.get(CellRef(sheet, cell.row, cell.column))
            looked_at += 1
            if looked_at > MAX_UPSTREAM:
                return set()
            if good is not None:
                clean = {engine for engine in clean if good.get(engine)}
    return clean


Counts = dict[str, dict[str, list[int]]]
"""Counts by function or shape, then by engine: right, total, right errors, errors."""


def tally(samples: Iterable[Sample]) -> tuple[Counts, Counts]:
    """Makes the records of functions and of shapes.

    A wrong formula that calls several functions only counts against the call that fails most often
    elsewhere: a mistake in EOMONTH is not a mistake of IF.
    """
    all_samples = list(samples)
    failures: Counter[tuple[str, str]] = Counter()
    measured: Counter[tuple[str, str]] = Counter()
    for sample in all_samples:
        for call in sample.calls:
            measured[sample.engine, call.shape] += sample.total
            failures[sample.engine, call.shape] += sample.total - sample.right
    functions: Counts = defaultdict(lambda: defaultdict(lambda: [0, 0, 0, 0]))
    shapes: Counts = defaultdict(lambda: defaultdict(lambda: [0, 0, 0, 0]))

    def add(sample: Sample, call: Call, right: int, wrong: int) -> None:
        for table, name in ((functions, call.function), (shapes, call.shape)):
            counts = table[name][sample.engine]
            counts[0] += right
            counts[1] += right + wrong
            if sample.is_error:
                counts[2] += right
                counts[3] += right + wrong

    for sample in all_samples:
        if sample.right:
            for call in sample.calls:
                add(sample, call, sample.right, 0)
        if sample.right < sample.total:
            blamed = max(
                sorted(sample.calls),
                key=lambda call: (
                    failures[sample.engine, call.shape] / measured[sample.engine, call.shape]
                ),
            )
            add(sample, blamed, 0, sample.total - sample.right)
    return functions, shapes


def trust_data(samples: Iterable[Sample], versions: Mapping[str, str]) -> dict[str, Any]:
    """Formats the trust table as it is in the package."""
    functions, shapes = tally(samples)
    return {
        "measured_with": dict(sorted(versions.items())),
        "functions": _in_order(functions),
        "shapes": _in_order(shapes),
    }


def _in_order(records: Counts) -> dict[str, dict[str, list[int]]]:
    return {
        name: {
            engine: counts if counts[3] else counts[:2]
            for engine, counts in sorted(records[name].items())
        }
        for name in sorted(records)
    }
