"""Mean shares of the cells to change and of the cells to keep, where these decide. Pure."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean

from judge.core.records.reports import GroupSharesReport
from judge.core.verdict import CaseResult, Verdict


def has_shares(results: Sequence[CaseResult]) -> bool:
    """Whether any case of a run was judged by its groups of cells."""
    return any("shares" in result.comparison for result in results)


def shares_of(results: Iterable[CaseResult]) -> GroupSharesReport:
    """The means over the cases that have an output.

    An output that is not a workbook has nothing right. A group without cells is in no mean, unless
    the profile gives it a share.

    Args:
        results: the cases of a group of tasks, in a run in which groups of cells decide.
    """
    tally = ShareTally()
    for result in results:
        tally.add(result)
    return shares_of_tallies([tally])


class ShareTally:
    """The same collected case by case; eight bytes for each share.

    Attributes:
        cases: cases that were judged by their groups of cells.
        unreadable: outputs that are not workbooks.
        change: the known shares of the cells to change.
        keep: the known shares of the cells to keep.
    """

    __slots__ = ("cases", "change", "keep", "unreadable")

    def __init__(self) -> None:
        self.cases = self.unreadable = 0
        self.change, self.keep = array("d"), array("d")

    def add(self, result: CaseResult) -> None:
        """Takes a case."""
        self.unreadable += result.verdict is Verdict.IW
        shares = result.comparison.get("shares")
        if shares is not None:
            self.cases += 1
            if (change := shares["modification"]) is not None:
                self.change.append(change)
            if (keep := shares["regression"]) is not None:
                self.keep.append(keep)


def shares_of_tallies(tallies: Sequence[ShareTally]) -> GroupSharesReport:
    """The means over the cases of several tallies."""
    unreadable = sum(tally.unreadable for tally in tallies)
    return {
        "cases": sum(tally.cases for tally in tallies) + unreadable,
        "modification": _mean([share for tally in tallies for share in tally.change], unreadable),
        "regression": _mean([share for tally in tallies for share in tally.keep], unreadable),
    }


def _mean(shares: Sequence[float], unreadable: int) -> float | None:
    known = [*shares, *[0.0] * unreadable]
    return fmean(known) if known else None


def share_lines(groups: Mapping[str, GroupSharesReport | None]) -> Iterator[str]:
    """The same for people: a line for each group that has outputs.

    Args:
        groups: name of a group -> its shares.
    """
    for name, shares in groups.items():
        if shares is not None and shares["cases"]:
            yield (
                f"{name}, {shares['cases']:,} outputs: on average, "
                f"{_percent(shares['modification'])} of the cells to change are right, and "
                f"{_percent(shares['regression'])} of the cells to keep"
            )


def _percent(share: float | None) -> str:
    return "none" if share is None else f"{100 * share:.2f} %"
