"""Splits an answer range into cells to change and cells to keep.

The rule that decides by these groups whether a task is solved is that of SpreadsheetBench 2.
:func:`published_shares` is its published form, which rounds and treats a group without cells as a
failure; :func:`exact_shares` does neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from judge.compare.cells.comparison import CellGroup, Differences, GroupShares, GroupsVerdict
from judge.compare.cells.options import CheckOptions
from judge.compare.cells.range_check import compare_range, differing_keys
from judge.compare.cells.sides import Side
from judge.compare.cells.value import comparator
from judge.compare.profiles import Profile
from judge.workbook.cell import CellRange

MODIFICATION, REGRESSION = "modification", "regression"
"""Names of the groups: cells in which the gold differs from the input, and all others."""

KEPT_SHARE = 0.998
"""If at least this share of the cells to keep agrees, all of them count as kept.

Source: SpreadsheetBench 2, ``evaluation.py``.
"""

_DIGITS = 4


def judge_groups(groups: Sequence[CellGroup], *, published: bool) -> GroupsVerdict:
    """Decides whether a task is solved: all cells to change, and nearly all cells to keep, agree.

    Args:
        groups: the two groups of the task.
        published: whether to judge like the published script, which rounds to four decimals and
            treats a group without cells as a share of 0, so that no output is accepted.
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
    return GroupsVerdict(accepted, tuple(groups), shares, tuple(notes))


def published_shares(change: CellGroup, keep: CellGroup) -> GroupShares:
    """Returns the two shares as the published script computes them, from 0 to 1.

    Args:
        change: the cells to change.
        keep: the cells to keep.
    """
    kept = _rounded(keep)
    return GroupShares(_rounded(change), 1.0 if kept >= KEPT_SHARE else kept)


def exact_shares(change: CellGroup, keep: CellGroup) -> GroupShares:
    """Returns the shares of the cells that agree; None for a group without cells.

    Args:
        change: the cells to change.
        keep: the cells to keep.
    """
    return GroupShares(_share(change), _share(keep))


def _share(group: CellGroup) -> float | None:
    return (group.cells - group.differing_cells) / group.cells if group.cells else None


def _rounded(group: CellGroup) -> float:
    return round(_share(group) or 0.0, _DIGITS)


def group_cells(
    before: Side,
    gold: Side,
    ranges: Sequence[CellRange],
    differing: Sequence[set[int] | None],
    profile: Profile,
    options: CheckOptions,
    style: tuple[str, ...],
) -> tuple[CellGroup, CellGroup]:
    """Splits the cells of an answer range into those to change and those to keep.

    Gold and input are compared by the rules for output and gold, except that rows have to be in
    order and that extra values count. A sheet that the input lacks counts as blank, so all content
    of the gold's sheet had to be added.

    Args:
        before: the input.
        gold: the gold.
        ranges: rectangles of the gold.
        differing: for each rectangle, keys of the cells in which the output differs, or
            None if all cells differ.
        profile: the rules for comparing gold and input.
        options: options of the task's checker.
        style: style attributes that are compared in addition to the values.

    Raises:
        WorkbookError: a sheet cannot be read.
    """
    rules = replace(profile, unordered_rows=False, ignore_extra=False)
    to_change = wrong_changes = cells = wrong = 0
    for window, wrong_keys in zip(ranges, differing, strict=True):
        new = gold.area(window)
        placed = before.counterpart(window)
        if placed is None:
            agree = comparator(rules, actual_1904=gold.workbook.date_1904)
            changing = {*differing_keys({}, new.values(), agree), *new.uncomputed()}
        else:
            old = before.area(placed)
            changing = compare_range(
                old, new, rules, options, style=style, differences=Differences(0)
            )
        cells += window.size
        wrong += window.size if wrong_keys is None else len(wrong_keys)
        to_change += len(changing)
        wrong_changes += len(changing if wrong_keys is None else changing & wrong_keys)
    return (
        CellGroup(MODIFICATION, to_change, wrong_changes),
        CellGroup(REGRESSION, cells - to_change, wrong - wrong_changes),
    )
