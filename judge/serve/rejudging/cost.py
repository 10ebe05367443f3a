"""What a rejudging depends on in the files of two revisions, and what it will cost.

The keys of a case (:mod:`judge.grading.keys`) decide: if both are unchanged, its record is copied;
if only the comparison's is changed, the stored output is compared again and no program runs;
otherwise the program runs. A draft says how many of each there are without opening a sandbox: it
compares the parts of the keys that come from the suite, and the conditions for the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from judge.compare.profiles import get_profile
from judge.core.task import LEFT_OUT_CASES_OPTION, LEFT_OUT_OPTION, CheckerSpec, Task
from judge.grading.case import GradingRules, known_fault
from judge.grading.keys import FileDigests, comparison_key
from judge.serve.rejudging.machine import Scope, in_scope
from judge.serve.store import tables as t
from judge.serve.store.database import all_rows
from judge.suites.suite import Suite

CaseName = tuple[str, int]
"""Task and number of a case."""


@dataclass(frozen=True, slots=True)
class CaseFacts:
    """What the keys of a case take from a suite.

    Attributes:
        inputs: hash of what the run depends on.
        comparison: hash of what the comparison depends on: golds, checker, options.
        rule: the same without what is left out in other cases of the task: two revisions in which
            it differs want another thing of this case.
    """

    inputs: str
    comparison: str
    rule: str


def case_facts(suite: Suite) -> dict[CaseName, CaseFacts]:
    """The facts of every case of a suite, corrections applied."""
    digests, rules = FileDigests(), GradingRules(get_profile("standard"))
    facts: dict[CaseName, CaseFacts] = {}
    for task in suite.tasks:
        for case in task.cases:
            # Any run does: only the part that the suite decides is compared.
            key = comparison_key("", task, case, rules, digests)
            fault = known_fault(task, case.number) or ""
            rule = comparison_key(fault, _without_left_out(task), case, rules, digests)
            inputs = digests.of_inputs(case.question) if task.answer.is_file else ""
            facts[task.id, case.number] = CaseFacts(inputs, key, rule)
    return facts


def _without_left_out(task: Task) -> Task:
    spec = task.checker
    left = {LEFT_OUT_OPTION, LEFT_OUT_CASES_OPTION}
    options = {name: value for name, value in spec.options.items() if name not in left}
    return replace(task, checker=CheckerSpec(spec.name, options))


@dataclass(frozen=True, slots=True)
class Change:
    """What differs between the conditions that submissions were judged under and the new ones.

    Attributes:
        runs: whether every run depends on something that has changed (limits, sandbox).
        comparisons: whether every comparison does (profile, engines, version of the judge).
        inputs: cases whose input files have changed.
        compared: cases whose golds, checker or options have changed.
        corrected: those of them of which the suite wants another thing now, and no other cases of
            their tasks.
    """

    runs: bool
    comparisons: bool
    inputs: frozenset[CaseName]
    compared: frozenset[CaseName]
    corrected: frozenset[CaseName]


def change_between(before: Suite, after: Suite, *, runs: bool, comparisons: bool) -> Change:
    """What differs between two revisions; ``runs`` and ``comparisons`` as in :class:`Change`."""
    old, new = case_facts(before), case_facts(after)

    def differing(fact: Callable[[CaseFacts], str]) -> frozenset[CaseName]:
        return frozenset(
            name for name, facts in new.items() if name not in old or fact(old[name]) != fact(facts)
        )

    return Change(
        runs,
        comparisons,
        inputs=differing(lambda facts: facts.inputs),
        compared=differing(lambda facts: facts.comparison),
        corrected=differing(lambda facts: facts.rule),
    )


def cost_of(
    connection: sa.Connection, suite: str, scope: Scope, changes: Mapping[str, Change]
) -> dict[str, Any]:
    """What a rejudging would cost, before it is started.

    Args:
        connection: a connection.
        suite: id of the suite.
        scope: what is judged again.
        changes: what changes for submissions that were judged under conditions, by their digest.

    Returns:
        ``submissions``; ``cases`` by what happens to them: ``copied``, ``compared`` and ``run``;
        ``corrected``: [task, case] of each case that the suite's change is about.
    """
    cases = {"copied": 0, "compared": 0, "run": 0}
    submissions = all_rows(connection, in_scope(suite, scope))
    for digest, change in changes.items():
        rows = [row for row in submissions if row["conditions"] == digest]
        on_record = _cases_on_record(connection, [row["current_judging"] for row in rows])
        for (task, case), count in on_record.items():
            name = (task, case)
            if change.runs or name in change.inputs or scope.judges_anew(task):
                cases["run"] += count
            elif change.comparisons or name in change.compared:
                cases["compared"] += count
            else:
                cases["copied"] += count
        expected = sum(row["cases"] for row in rows)
        cases["run"] += max(expected - sum(on_record.values()), 0)
    corrected = frozenset().union(*(change.corrected for change in changes.values()))
    return {
        "submissions": len(submissions),
        "cases": cases,
        "corrected": sorted([task, case] for task, case in corrected),
    }


_AT_ONCE = 500


def _cases_on_record(connection: sa.Connection, judgings: list[str]) -> dict[CaseName, int]:
    counts: dict[CaseName, int] = {}
    for first in range(0, len(judgings), _AT_ONCE):
        rows = connection.execute(
            sa.select(t.verdict.c.task, t.verdict.c.case, sa.func.count())
            .where(t.verdict.c.judging.in_(judgings[first : first + _AT_ONCE]))
            .group_by(t.verdict.c.task, t.verdict.c.case)
        )
        for task, case, count in rows:
            counts[task, case] = counts.get((task, case), 0) + count
    return counts


def corrected_cases(diff: Mapping[str, Any] | None) -> frozenset[CaseName]:
    """The cases that the change of the suite is about, from a rejudging's column ``diff``."""
    entries: Iterable[Any] = (diff or {}).get("cost", {}).get("corrected", ())
    return frozenset((str(task), int(case)) for task, case in entries)
