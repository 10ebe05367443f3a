"""Cell accuracy: how near an answer comes to its golds. Pure: results in, numbers out."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

from judge.core.verdict import CaseResult, Verdict


def cell_accuracy(result: CaseResult) -> float | None:
    """The share of the compared cells of a case that are right, from 0 to 1; None if not scored.

    An accepted case has 1. Any other has less: 0 if nothing was compared (no program, an exception,
    a limit, no readable workbook), otherwise the share, in which cells count as wrong that should
    have been left alone, and at least one cell counts as wrong.

    Args:
        result: what the judge says, by a checker that counts cells.
    """
    if not result.verdict.is_scored:
        return None
    if result.verdict is Verdict.AC:
        return 1.0
    cells = result.comparison.get("cells") or 0
    if not cells:
        return 0.0
    differing = result.comparison.get("differing_cells") or 0
    touched = result.comparison.get("touched_cells") or 0
    return 1.0 - min(max(differing + touched, 1), cells) / cells


def mean_cell_accuracy(results: Iterable[CaseResult]) -> float | None:
    """The mean over the cases that are scored; None if there is none."""
    scored = [share for result in results if (share := cell_accuracy(result)) is not None]
    return fmean(scored) if scored else None
