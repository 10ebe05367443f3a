"""Published checks as items, in both readings.

An item of kind ``published`` names a suite and contains one of its checks as data. The reading
``official`` gives the result of the suite's own code (:mod:`judge.compare.published`), ``standard``
the result that the check is intended to give. A suite is one module with a :class:`PublishedSuite`,
and one row of :data:`SUITES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pkgutil import resolve_name

from judge.compare.checklists.items import Outcome
from judge.compare.checklists.workspace import Workspace
from judge.errors import UsageError
from judge.files.documents import MalformedError

SUITES: dict[str, str] = {
    "ib-bench": "judge.compare.published.ib_bench:SUITE",
    "officebench": "judge.compare.published.officebench_items:SUITE",
    "opencomputer": "judge.compare.published.opencomputer_items:SUITE",
    "rewardkit": "judge.compare.published.rewardkit:SUITE",
    "skillsbench": "judge.compare.published.skillsbench.items:SUITE",
    "waa-v2": "judge.compare.published.waa:SUITE",
}
"""Name of a suite -> its module and the name of the variable there."""

Decide = Callable[[object, Workspace], Outcome]
"""Decides one of the suite's checks, given as data, on the files of an answer.

It may raise ``PublishedError`` (the published code raises an error), ``MissingError`` (the answer
lacks what the check examines), ``WorkbookError`` and ``PatternError``.
"""


@dataclass(frozen=True, slots=True)
class PublishedSuite:
    """The checks of a published suite.

    Attributes:
        official: decides a check as the suite's own code does.
        standard: decides a check as intended. If a numbered fault makes the readings differ,
            the outcome names the fault.
        words: states a check as a sentence.
        faults: returns what is wrong with a check's data, one line for each fault.
        of_workbook: whether a check examines only the answer's workbook, so that a gold workbook
            suffices to decide it.
    """

    official: Decide
    standard: Decide
    words: Callable[[object], str]
    faults: Callable[[object], tuple[str, ...]] = lambda _: ()
    of_workbook: Callable[[object], bool] = lambda _: False


@cache
def suite_named(name: str) -> PublishedSuite:
    """Returns the checks of the suite with the given name.

    Raises:
        UsageError: there is no such suite.
    """
    if name not in SUITES:
        raise UsageError(
            f"no suite {name!r} has published checks", hint=f"Suites: {', '.join(SUITES)}."
        )
    suite: PublishedSuite = resolve_name(SUITES[name])
    return suite


def as_check(check: object) -> Mapping[str, object]:
    """Returns a check as a JSON object.

    Raises:
        MalformedError: the check is not an object.
    """
    if not isinstance(check, Mapping):
        raise MalformedError("the check is not an object")
    return check


@dataclass(frozen=True, slots=True)
class ItemDetails:
    """The values, position and detail that an item records; see :class:`Outcome`."""

    expected: object = None
    found: object = None
    place: str = ""
    detail: str = ""

    def outcome(self, *, right: bool) -> Outcome:
        """Returns the outcome of a check that holds or fails."""
        share = 1.0 if right else 0.0
        return Outcome(share, self.expected, self.found, self.place, self.detail)


NOTHING = ItemDetails()


def as_intended(official: Outcome, shown: ItemDetails, fault: str, *, right: bool) -> Outcome:
    """Returns the outcome of a check as it was intended.

    Args:
        official: the published outcome.
        shown: the values, position and detail to record.
        fault: number of the fault, which the outcome names only if it differs from ``official``.
        right: whether the check passes as it was intended.
    """
    intended = shown.outcome(right=right)
    return replace(intended, fault=fault) if right != (official.share >= 1) else intended
