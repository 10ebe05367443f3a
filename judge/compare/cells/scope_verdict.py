"""How what was found about the scope of an output enters its comparison."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from judge.compare.cells.comparison import Comparison, Difference, DifferenceClass
from judge.compare.cells.options import FAIL, NOTE
from judge.compare.cells.scope import Scope
from judge.core.records.cases import FormulaAskedRecord, KeptRecord

_MAX_NOTES = 5


def with_scope(comparison: Comparison, scope: Scope | None, max_differences: int) -> Comparison:
    """The comparison with what was found: as notes, or as differences where the options say so.

    Args:
        comparison: the comparison of the answer.
        scope: what was found; None if nothing was examined.
        max_differences: how many differences are kept.
    """
    if scope is None:
        return comparison
    notes = [*comparison.notes, *_notes(scope)]
    found = list(_differences(scope))
    counts = dict(comparison.difference_counts)
    for each in found:
        counts[each.kind] = counts.get(each.kind, 0) + 1
    if scope.keep == FAIL and scope.kept is not None and not scope.kept.is_all:
        counts[DifferenceClass.LOST] = sum(scope.kept.counts.values())
    room = max(0, max_differences - len(comparison.differences))
    return replace(
        comparison,
        equal=comparison.equal and not found,
        difference_counts=counts,
        differences=(*comparison.differences, *found[:room]),
        notes=tuple(notes),
        scope=scope,
    )


def _differences(scope: Scope) -> Iterator[Difference]:
    if scope.keep == FAIL and scope.kept is not None:
        for loss in scope.kept.losses:
            yield Difference(DifferenceClass.LOST, loss.sheet, "", detail=str(loss))
    if scope.formula_asked == FAIL and scope.formula is not None and scope.formula.is_missing:
        yield Difference(DifferenceClass.NO_FORMULA, "", "", detail=str(scope.formula))


def _notes(scope: Scope) -> Iterator[str]:
    if (problem := scope.problems.get("keep")) is not None:
        yield f"what the input had was not compared with the output: {problem}"
    if (problem := scope.problems.get("formula_asked")) is not None:
        yield f"formulas of the answer were not examined: {problem}"
    if scope.keep == NOTE and scope.kept is not None:
        losses = scope.kept.losses
        yield from (f"lost: {loss}" for loss in losses[:_MAX_NOTES])
        if (more := sum(scope.kept.counts.values()) - min(len(losses), _MAX_NOTES)) > 0:
            yield f"lost: {more:,} more"
    if scope.formula_asked == NOTE and scope.formula is not None and scope.formula.is_missing:
        yield str(scope.formula)


def kept_to_json(scope: Scope) -> KeptRecord:
    """What was lost, as it goes on record."""
    record: KeptRecord = {"as": scope.keep}
    if (problem := scope.problems.get("keep")) is not None:
        record["problem"] = problem
    if scope.kept is not None:
        record["lost"] = sum(scope.kept.counts.values())
        record["counts"] = dict(scope.kept.counts)
        record["losses"] = [
            {
                "kind": loss.kind,
                "what": loss.label,
                "sheet": loss.sheet,
                "place": loss.place,
                "kept": loss.kept,
                "left": loss.left,
            }
            for loss in scope.kept.losses
        ]
    return record


def formula_to_json(scope: Scope) -> FormulaAskedRecord:
    """What became of a formula that is requested, as it goes on record."""
    record: FormulaAskedRecord = {"as": scope.formula_asked}
    if (problem := scope.problems.get("formula_asked")) is not None:
        record["problem"] = problem
    if (found := scope.formula) is not None:
        record["asked"] = found.asked
        record["words"] = found.words
        record["gold_formulas"] = found.gold_formulas
        record["constants"] = found.constants
    return record
