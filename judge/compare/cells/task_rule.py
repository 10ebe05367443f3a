"""When a task is solved whose cells are of two groups: those to change, those to keep. Pure.

The rule is that of SpreadsheetBench 2. Its published form, which rounds and takes a group without
cells for a failure, is :func:`published_shares`; :func:`exact_shares` does neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from judge.compare.cells.comparison import CellGroup, GroupShares

MODIFICATION, REGRESSION = "modification", "regression"
"""Names of the groups: cells in which the gold differs from the input, and all others."""

KEPT_SHARE = 0.998
"""From this share of the cells to keep on, all of them count as kept.

Source: SpreadsheetBench 2, ``evaluation.py``.
"""

_DIGITS = 4


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """What the rule says.

    Attributes:
        accepted: whether the task is solved.
        shares: the two shares.
        notes: what decided, where the cells alone do not show it.
    """

    accepted: bool
    shares: GroupShares
    notes: tuple[str, ...] = ()


def judge_groups(groups: Sequence[CellGroup], *, published: bool) -> RuleFinding:
    """Whether a task is solved: no cell to change is wrong, and hardly any cell to keep.

    Args:
        groups: the two groups of the task.
        published: as the published script has it, which rounds to four decimals and takes a group
            without cells for a share of 0, so that nothing can be accepted.
    """
    by_name = {group.name: group for group in groups}
    change, keep = by_name[MODIFICATION], by_name[REGRESSION]
    shares = published_shares(change, keep) if published else exact_shares(change, keep)
    notes = []
    if published:
        accepted = shares.modification == shares.regression == 1.0
        notes += [
            f"no cell of the range is to be {done}: the published rule counts that as a share of "
            "0, so it accepts no output"
            for group, done in ((change, "changed"), (keep, "kept"))
            if not group.cells
        ]
    else:
        accepted = shares.modification in {None, 1.0} and (
            shares.regression is None or shares.regression >= KEPT_SHARE
        )
    wrong = change.differing_cells + keep.differing_cells
    if accepted and wrong:
        notes.append(
            f"{wrong:,} of {change.cells + keep.cells:,} cells differ, which the rule of the task "
            "allows"
        )
    return RuleFinding(accepted, shares, tuple(notes))


def published_shares(change: CellGroup, keep: CellGroup) -> GroupShares:
    """The two ratios as the published script has them, each from 0 to 1.

    Args:
        change: the cells to change.
        keep: the cells to keep.
    """
    kept = _rounded(keep)
    return GroupShares(_rounded(change), 1.0 if kept >= KEPT_SHARE else kept)


def exact_shares(change: CellGroup, keep: CellGroup) -> GroupShares:
    """The shares of the cells that agree; None for a group without cells.

    Args:
        change: the cells to change.
        keep: the cells to keep.
    """
    return GroupShares(_share(change), _share(keep))


def _share(group: CellGroup) -> float | None:
    return (group.cells - group.differing_cells) / group.cells if group.cells else None


def _rounded(group: CellGroup) -> float:
    return round(_share(group) or 0.0, _DIGITS)
