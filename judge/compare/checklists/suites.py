"""Published checks as items: whose code decides them, in both readings.

An item of kind ``published`` names a suite and has one of its checks as data. ``official`` is what
the suite's own code returns (:mod:`judge.compare.published`), ``standard`` what the check is meant
to say. A suite is one module with a :class:`PublishedSuite`, and one row of :data:`SUITES`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from judge.compare.checklists.items import Outcome
from judge.compare.checklists.workspace import Workspace
from judge.errors import UsageError

SUITES: dict[str, str] = {
    "ib-bench": "judge.compare.checklists.published.ib_bench:SUITE",
    "officebench": "judge.compare.checklists.published.officebench:SUITE",
    "opencomputer": "judge.compare.checklists.published.opencomputer:SUITE",
    "rewardkit": "judge.compare.checklists.rewardkit:SUITE",
    "skillsbench": "judge.compare.checklists.published.skillsbench:SUITE",
    "waa-v2": "judge.compare.checklists.published.waa:SUITE",
}
"""Name of a suite -> its module, and its name there."""

Decide = Callable[[object, Workspace], Outcome]
"""Decides a check, which is data of the suite, on what an answer left.

It may raise ``PublishedError`` (the published code raises here), ``MissingError`` (the answer lacks
what the check is about), ``WorkbookError`` and ``PatternError``.
"""


@dataclass(frozen=True, slots=True)
class PublishedSuite:
    """The checks of a published suite.

    Attributes:
        official: as its own code decides.
        standard: as the check is meant; where that differs for a fault with a number, the outcome
            names it.
        words: a check as a sentence.
        faults: what is wrong with a check as data, a line each; empty if nothing is.
        of_workbook: whether a check is about the workbook of an answer alone, so that a workbook
            that is a gold decides it.
    """

    official: Decide
    standard: Decide
    words: Callable[[object], str]
    faults: Callable[[object], tuple[str, ...]] = lambda _: ()
    of_workbook: Callable[[object], bool] = lambda _: False


@cache
def suite_named(name: str) -> PublishedSuite:
    """The checks of a suite by its name.

    Raises:
        UsageError: there is no such suite.
    """
    if name not in SUITES:
        raise UsageError(
            f"no suite {name!r} has published checks", hint=f"Suites: {', '.join(SUITES)}."
        )
    module, _, attribute = SUITES[name].partition(":")
    suite: PublishedSuite = getattr(importlib.import_module(module), attribute)
    return suite
