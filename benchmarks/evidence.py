"""From measured cells to the table of which engine is right at which function."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from benchmarks.golds import Gold, agrees
from judge.formulas.references import references
from judge.formulas.traits import traits
from judge.recalc.agreement import SURE_ERRORS, same_value
from judge.recalc.trust import PAIR, PAIR_ENGINES
from judge.workbook.cell import CellRef, CellValue, ErrorValue
from judge.workbook.dependency import Search

_NUMBER = re.compile(r"\d+")
MAX_UPSTREAM = 3_000


@dataclass(frozen=True, slots=True)
class Sample:
    """One computed formula: the functions that it calls, and whether the engine was right."""

    functions: frozenset[str]
    right: bool


Votes = Mapping[str, Mapping[CellRef, CellValue]]
"""Engine -> cell -> value."""


def gold_samples(gold: Gold, votes: Votes) -> dict[str, list[Sample]]:
    """What a gold says of each engine, and of the pair where it agrees.

    A cell counts for an engine only where the engine was right in every formula cell that it
    refers to, so that a mistake is laid at the formula that made it; and formulas that differ in
    their row numbers alone count once, right only if all of them are.
    """
    right = {
        engine: {ref: agrees(gold.expected[ref], values.get(ref)) for ref in gold.cells}
        for engine, values in votes.items()
    }
    found: dict[str, dict[str, tuple[frozenset[str], bool]]] = defaultdict(dict)
    for ref, cell in gold.cells.items():
        if ref in gold.volatile or cell.formula is None:
            continue
        said = traits(cell.formula)
        if said.unknown or said.unprefixed or "[" in cell.formula:
            continue
        upstream = _upstream(gold, ref, cell.formula)
        if upstream is None:
            continue
        kind = _NUMBER.sub("#", cell.formula)
        clean = {e for e in votes if all(right[e].get(other, True) for other in upstream)}
        outcomes = {engine: right[engine][ref] for engine in clean}
        plain = not (said.array_sensitive or said.opaque or cell.array_range)
        if plain and clean.issuperset(PAIR_ENGINES) and _pair_agrees(votes, ref):
            outcomes[PAIR] = right[PAIR_ENGINES[0]][ref]
        for engine, good in outcomes.items():
            _, before = found[engine].get(kind, (said.functions, True))
            found[engine][kind] = (said.functions, before and good)
    return {
        engine: [Sample(functions, good) for functions, good in kinds.values()]
        for engine, kinds in found.items()
    }


def _pair_agrees(votes: Votes, ref: CellRef) -> bool:
    words = [votes[engine].get(ref) for engine in PAIR_ENGINES]
    return pair_word(*words) is not None


def pair_word(first: CellValue, second: CellValue) -> CellValue:
    """What the pair says where it agrees in a way that the cascade would take; else None."""
    if first is None or second is None or not same_value(first, second):
        return None
    if isinstance(first, ErrorValue) and first.code not in SURE_ERRORS:
        return None
    return first


def _upstream(gold: Gold, ref: CellRef, formula: str) -> set[CellRef] | None:
    found: set[CellRef] = set()
    search = Search(gold.index)
    for reference in references(formula):
        for sheet, cell in search.unseen(reference, ref.sheet):
            found.add(CellRef(sheet, cell.row, cell.column))
            if len(found) > MAX_UPSTREAM:
                return None
    return found


def tally(samples: Iterable[Sample]) -> dict[str, list[int]]:
    """Function -> [right, total].

    A wrong formula that calls several functions counts against the one that fails most often
    elsewhere, and says nothing of the others: a mistake in EOMONTH is none of IF.
    """
    known = list(samples)
    failures: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    for sample in known:
        calls.update(sample.functions)
        if not sample.right:
            failures.update(sample.functions)
    table: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for sample in known:
        if sample.right:
            for function in sample.functions:
                table[function][0] += 1
                table[function][1] += 1
        elif sample.functions:
            blamed = max(sorted(sample.functions), key=lambda name: failures[name] / calls[name])
            table[blamed][1] += 1
    return dict(table)


def trust_data(
    samples: Mapping[str, list[Sample]], versions: Mapping[str, str]
) -> dict[str, dict[str, object]]:
    """The trust table as it stands in the package."""
    functions: dict[str, dict[str, list[int]]] = defaultdict(dict)
    for engine, known in sorted(samples.items()):
        for function, counts in tally(known).items():
            functions[function][engine] = counts
    return {
        "measured_with": dict(sorted(versions.items())),
        "functions": {name: functions[name] for name in sorted(functions)},
    }
