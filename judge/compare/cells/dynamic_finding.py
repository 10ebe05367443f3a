"""Whether an answer follows its inputs: the result for one output, and how it is classified."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from judge.compare.cells.changes import Change
from judge.compare.cells.comparison import Dynamic
from judge.compare.cells.requested_formula import Demand
from judge.core.records.cases import DynamicChangeRecord, DynamicRecord
from judge.workbook.editing.sheet_xml import address, content_to_json

_MAX_EDITS = 20  # cells of a change in a record


@dataclass(frozen=True, slots=True)
class Trial:
    """A change of inputs, and its effect.

    Attributes:
        change: the change.
        moved: how many eligible cells of the gold changed by more than the tolerance.
        followed: how many of these agree in the output.
        false_moves: how many eligible cells changed in the output only.
        constants: how many of the gold's changed cells hold a constant in the output.
    """

    change: Change
    moved: int
    followed: int
    false_moves: int
    constants: int

    @property
    def follows(self) -> bool:
        """Whether the output changed as the gold did."""
        return self.followed == self.moved and not self.false_moves

    def to_json(self) -> DynamicChangeRecord:
        """Returns the change as it is written to records, complete enough to repeat it."""
        record: DynamicChangeRecord = {
            "case": self.change.case,
            "edits": len(self.change.edits),
            "cells": [
                {"cell": address(edit.ref), "value": content_to_json(edit.content)}
                for edit in self.change.edits[:_MAX_EDITS]
            ],
            "moved": self.moved,
            "followed": self.followed,
            "false_moves": self.false_moves,
        }
        return record


@dataclass(frozen=True, slots=True)
class DynamicFinding:
    """Whether one output follows its inputs, and the changes that were tried.

    Attributes:
        kind: class of the output.
        reason: why this was not measurable; empty if it was.
        demand: whether the question asks for a formula.
        eligible: how many cells of the answer could be measured.
        trials: the changes that affected the gold's answer.
    """

    kind: Dynamic
    reason: str
    demand: Demand
    eligible: int = 0
    trials: tuple[Trial, ...] = ()

    @property
    def is_fault(self) -> bool:
        """Whether the answer does not follow its inputs although a formula is required."""
        measured = self.kind not in {Dynamic.LIVE, Dynamic.NOT_MEASURABLE}
        return measured and self.demand is Demand.FORMULA

    def __str__(self) -> str:
        if self.kind is Dynamic.NOT_MEASURABLE:
            return f"whether the answer follows its inputs was not measured: {self.reason}"
        if self.kind is Dynamic.LIVE:
            return "the answer follows its inputs"
        text = {
            Dynamic.HARD_CODED: "the answer is constants, which do not follow the inputs",
            Dynamic.STALE: "the answer has formulas, and does not follow what was changed",
            Dynamic.PARTIAL: "the answer follows its inputs only in part",
        }[self.kind]
        number = next(trial for trial in self.trials if not trial.follows)
        first = number.change.edits[0]
        value = content_to_json(first.content)
        more = len(number.change.edits) - 1
        text += f" (changed: {address(first.ref)} to {value!r}" + (
            f" and {more:,} more cells, as in case {number.change.case})" if more else ")"
        )
        if self.demand is Demand.FORMULA:
            return f"{text}; the question asks for a formula"
        return f"{text}; nobody asked for a formula, so this is not a fault"

    def to_json(self, mode: str) -> DynamicRecord:
        """Returns the finding as it is written to records.

        Args:
            mode: ``note`` or ``fail``.
        """
        record: DynamicRecord = {
            "as": mode,
            "class": self.kind.value,
            "asked": self.demand.value,
            "eligible": self.eligible,
            "changes": [trial.to_json() for trial in self.trials],
        }
        if self.reason:
            record["reason"] = self.reason
        return record


def kind_of(trials: Sequence[Trial]) -> Dynamic:
    """Returns the class of an output, from the effects of at least one change."""
    if all(trial.follows for trial in trials):
        return Dynamic.LIVE
    if any(trial.followed for trial in trials):
        return Dynamic.PARTIAL
    constant = all(trial.constants == trial.moved for trial in trials)
    return Dynamic.HARD_CODED if constant else Dynamic.STALE
