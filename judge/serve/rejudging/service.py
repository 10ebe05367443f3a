"""Rejudgings of a running server: opens them, computes costs and changes, and advances them.

Slow work (loading suites, comparing verdicts) is done outside transactions; the state machine then
accepts the result only if nothing has changed since.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

import sqlalchemy as sa

from judge.compare.profiles import get_profile
from judge.core.task import LEFT_OUT_CASES_OPTION, LEFT_OUT_OPTION, CheckerSpec, Task
from judge.grading.case import GradingRules, known_fault
from judge.grading.keys import FileDigests, comparison_key
from judge.report.build import DEFAULT_METHOD
from judge.serve.boards.disclosure import verdicts_of
from judge.serve.boards.versions import Entry, Setting, entries_of, setting_of, ties_among
from judge.serve.catalog import LoadedSuites, revision_of
from judge.serve.context import Server
from judge.serve.problems import Problem
from judge.serve.queue.conditions import checked_options, ensure_conditions, environment_of
from judge.serve.rejudging import states
from judge.serve.rejudging.states import Opening, Scope, in_scope
from judge.serve.store import tables as t
from judge.serve.store.database import Actor, Transaction, all_rows, first_row
from judge.serve.store.tables import JudgingState, Level, RejudgingState
from judge.suites.suite import Suite

_ACTOR = Actor("rejudging")
_OF_RUNS = ("limits", "sandbox")
"""The conditions on which the key of a run depends."""
_OF_COMPARISONS = ("profile", "style", "checker", "recalc")
"""The conditions, apart from the suite, on which the key of a comparison depends."""


@dataclass(frozen=True, slots=True)
class RejudgingRequest:
    """A request for a rejudging.

    Attributes:
        suite: row of the suite.
        revision: row of the revision to judge by.
        scope: what is judged again.
        reason: the reason, shown on the boards' pages.
        opened_by: id of the account that opens it.
        options: options of judging that replace those of the suite; None for the suite's own.
        disputes: ids of the accepted disputes that it settles.
    """

    suite: Mapping[str, Any]
    revision: dict[str, Any]
    scope: Scope
    reason: str
    opened_by: str
    options: Mapping[str, Any] | None = None
    disputes: tuple[str, ...] = ()


def open_requested(transaction: Transaction, request: RejudgingRequest) -> str:
    """Makes a draft; :func:`compute_cost` computes its cost.

    Returns:
        Its id.

    Raises:
        Problem: 409 or 422, see :func:`judge.serve.rejudging.states.open_rejudging`.
        UsageError: an option is not valid.
    """
    environment = environment_of(transaction.connection)
    if environment is None:
        raise Problem("conflict", "No dispatcher has been started on this server yet.")
    options = request.suite["options"]
    if request.options is not None:
        options = checked_options(dict(request.options))
    conditions = ensure_conditions(transaction, request.revision, options, environment)
    return states.open_rejudging(
        transaction,
        Opening(
            request.suite["id"],
            conditions,
            request.scope,
            request.reason,
            request.opened_by,
            request.disputes,
            None if request.options is None else options,
        ),
    )


def compute_cost(server: Server, rejudging: str) -> dict[str, Any]:
    """Computes the cost of a draft, and records it.

    Returns:
        The cost, see :func:`cost_of`.

    Raises:
        JudgeError: the files of a revision are missing.
    """
    with server.database.reading() as connection:
        row = _row(connection, rejudging)
        target = _conditions(connection, row["conditions"])
        scope = Scope.of_document(row["scope"])
        used = connection.scalars(
            states.in_scope(row["suite"], scope)
            .order_by(None)
            .with_only_columns(t.judging.c.conditions)
            .distinct()
        ).all()
        befores = [_conditions(connection, digest) for digest in sorted(used)]
    suites = loaded_suites(server)
    changes = {before["digest"]: _change(suites, before, target) for before in befores}
    with server.database.reading() as connection:
        cost = cost_of(connection, row["suite"], scope, changes)
    with server.database.writing(_ACTOR) as transaction:
        transaction.execute(
            sa.update(t.rejudging)
            .where(t.rejudging.c.id == rejudging, t.rejudging.c.state == RejudgingState.DRAFT)
            .values(diff={"cost": cost})
        )
    return cost


def _change(suites: LoadedSuites, before: Mapping[str, Any], target: Mapping[str, Any]) -> Change:
    old, new = before["document"], target["document"]
    return change_between(
        suites.suite(before["revision"]),
        suites.suite(target["revision"]),
        runs=any(old.get(name) != new.get(name) for name in _OF_RUNS),
        comparisons=any(old.get(name) != new.get(name) for name in _OF_COMPARISONS),
    )


def _conditions(connection: sa.Connection, digest: str) -> dict[str, Any]:
    row = first_row(connection, sa.select(t.conditions).where(t.conditions.c.digest == digest))
    assert row is not None, "a foreign key guarantees it"
    return {**row, "revision": revision_of(connection, row["revision"])}


def loaded_suites(server: Server) -> LoadedSuites:
    """The suites that this process has loaded."""
    suites: LoadedSuites = server.shared.setdefault("suites", LoadedSuites(server.folder))
    return suites


def advance(server: Server) -> int:
    """Advances every open rejudging as far as possible: cost, late submissions, differences.

    Returns:
        How many have become ready.
    """
    with server.database.reading() as connection:
        rows = all_rows(
            connection, sa.select(t.rejudging).where(t.rejudging.c.state.in_(states.OPEN))
        )
    ready = 0
    for row in rows:
        if row["state"] == RejudgingState.DRAFT:
            if row["diff"] is None:
                compute_cost(server, row["id"])
            continue
        with server.database.writing(_ACTOR) as transaction:
            states.add_late_members(transaction, row["id"])
        with server.database.reading() as connection:
            row = _row(connection, row["id"])  # noqa: PLW2901  its current state
            complete = states.progress_of(connection, row["id"]).is_complete
            if row["state"] != RejudgingState.RUNNING or not complete:
                continue
            diff = diff_of(connection, row, compare_boards)
        with server.database.writing(_ACTOR) as transaction:
            ready += states.make_ready(transaction, row["id"], diff, diff["members"])
    return ready


def _row(connection: sa.Connection, rejudging: str) -> dict[str, Any]:
    row = first_row(connection, sa.select(t.rejudging).where(t.rejudging.c.id == rejudging))
    assert row is not None, "the caller has seen it"
    return row


CaseName = tuple[str, int]
"""Task and number of a case."""


@dataclass(frozen=True, slots=True)
class CaseFacts:
    """Hashes of the parts of a suite that the keys of a case depend on.

    Attributes:
        inputs: hash of the input files, which the run depends on.
        comparison: hash of golds, checker and options, which the comparison depends on.
        rule: like ``comparison``, but without the list of cases that are left out; if it changes,
            this case itself was corrected.
    """

    inputs: str
    comparison: str
    rule: str


def case_facts(suite: Suite) -> dict[CaseName, CaseFacts]:
    """The facts about every case of a suite, with corrections applied."""
    digests, rules = FileDigests(), GradingRules(get_profile("standard"))
    facts: dict[CaseName, CaseFacts] = {}
    for task in suite.tasks:
        for case in task.cases:
            # The run's key is left empty: only the part that the suite decides is compared.
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
    """The differences between the conditions of earlier judgings and the new conditions.

    Attributes:
        runs: whether something that every run depends on has changed (limits, sandbox).
        comparisons: whether something that every comparison depends on has changed (profile,
            engines, version of the judge).
        inputs: cases whose input files have changed.
        compared: cases whose golds, checker or options have changed.
        corrected: cases that were corrected, without the other cases of their tasks.
    """

    runs: bool
    comparisons: bool
    inputs: frozenset[CaseName]
    compared: frozenset[CaseName]
    corrected: frozenset[CaseName]


def change_between(before: Suite, after: Suite, *, runs: bool, comparisons: bool) -> Change:
    """Compares two revisions; ``runs`` and ``comparisons`` are those of :class:`Change`."""
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
    """Computes the cost of a rejudging before it is started.

    Args:
        connection: a connection.
        suite: id of the suite.
        scope: what is judged again.
        changes: digest of the conditions of earlier judgings -> what changes for them.

    Returns:
        ``submissions``; ``cases`` by what happens to them: ``copied``, ``compared`` and ``run``;
        ``corrected``: [task, case] of each corrected case.
    """
    cases = {"copied": 0, "compared": 0, "run": 0}
    submissions = all_rows(connection, in_scope(suite, scope))
    for digest, change in changes.items():
        rows = [row for row in submissions if row["conditions"] == digest]
        on_record = _cases_on_record(connection, [row["current_judging"] for row in rows])
        for (task, case), count in on_record.items():
            name = (task, case)
            if change.runs or name in change.inputs or scope.judges_afresh(task):
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


_IDS_PER_QUERY = 500  # databases limit the parameters of a statement


def _cases_on_record(connection: sa.Connection, judgings: list[str]) -> dict[CaseName, int]:
    counts: dict[CaseName, int] = {}
    for first in range(0, len(judgings), _IDS_PER_QUERY):
        rows = connection.execute(
            sa.select(t.verdict.c.task, t.verdict.c.case, sa.func.count())
            .where(t.verdict.c.judging.in_(judgings[first : first + _IDS_PER_QUERY]))
            .group_by(t.verdict.c.task, t.verdict.c.case)
        )
        for task, case, count in rows:
            counts[task, case] = counts.get((task, case), 0) + count
    return counts


def corrected_cases(diff: Mapping[str, Any] | None) -> frozenset[CaseName]:
    """The corrected cases, from a rejudging's column ``diff``."""
    entries: Iterable[Any] = (diff or {}).get("cost", {}).get("corrected", ())
    return frozenset((str(task), int(case)) for task, case in entries)


MAX_LISTED = 5_000
"""How many changed verdicts are listed; all of them are counted."""

_NONE = "none"


class ChangedVerdict(TypedDict):
    """A case whose verdict changes."""

    submission: str
    task: str
    sample: int
    case: int
    before: str
    after: str
    outside: bool


class ChangedScore(TypedDict):
    """A submission whose scores change."""

    submission: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class Diff(TypedDict):
    """What a rejudging would change.

    ``changed`` and ``outside`` count verdicts; ``transitions`` counts them by old and new verdict
    (``WA → AC``); ``work`` counts cases by what was done with them: ``copied``, ``compared`` and
    ``run``; ``boards`` has the entries and pairs of each board before and after.
    """

    members: int
    cases: int
    changed: int
    outside: int
    transitions: dict[str, int]
    verdicts: list[ChangedVerdict]
    scores: list[ChangedScore]
    work: dict[str, int]
    boards: list[dict[str, Any]]


BoardDiff = Callable[[sa.Connection, Mapping[str, str]], list[dict[str, Any]]]
"""Compares boards before and after; called with submission -> judging of each member."""


def diff_of(connection: sa.Connection, row: Mapping[str, Any], boards: BoardDiff) -> Diff:
    """Computes what applying a rejudging would change.

    Args:
        connection: a connection that sees one state of the database.
        row: the rejudging's row; all of its members are judged.
        boards: the function that compares boards.
    """
    corrected = corrected_cases(row["diff"])
    verdicts: list[ChangedVerdict] = []
    scores: list[ChangedScore] = []
    transitions: Counter[str] = Counter()
    work = {"copied": 0, "compared": 0, "run": 0}
    cases = 0
    members = _members(connection, row["id"])
    for member in members:
        before = _verdicts(connection, member["judging_before"])
        after = _verdicts(connection, member["judging"])
        cases += len(after)
        for name, now in after.items():
            was = before.get(name)
            work[_work(was, now)] += 1
            if was is not None and was["verdict"] == now["verdict"]:
                continue
            verdicts.append(_changed(member["submission"], name, was, now, corrected))
        verdicts.extend(
            _changed(member["submission"], name, before[name], None, corrected)
            for name in before.keys() - after.keys()
        )
        if member["scores_before"] != member["scores"]:
            scores.append(
                {
                    "submission": member["submission"],
                    "before": member["scores_before"],
                    "after": member["scores"],
                }
            )
    transitions.update(f"{change['before']} → {change['after']}" for change in verdicts)
    order = {member["submission"]: number for number, member in enumerate(members)}

    def sort_key(change: ChangedVerdict) -> tuple[bool, str, int, int, int]:
        submission = order[change["submission"]]
        return not change["outside"], change["task"], change["case"], submission, change["sample"]

    verdicts.sort(key=sort_key)
    return {
        "members": len(members),
        "cases": cases,
        "changed": len(verdicts),
        "outside": sum(change["outside"] for change in verdicts),
        "transitions": dict(transitions.most_common()),
        "verdicts": verdicts[:MAX_LISTED],
        "scores": scores,
        "work": work,
        "boards": boards(connection, {row["submission"]: row["judging"] for row in members}),
    }


def _members(connection: sa.Connection, rejudging: str) -> list[Mapping[str, Any]]:
    before = t.judging.alias("before")
    statement = (
        sa.select(
            t.rejudging_member.c.submission,
            t.rejudging_member.c.judging,
            t.submission.c.current_judging.label("judging_before"),
            t.judging.c.scores,
            before.c.scores.label("scores_before"),
        )
        .join(t.submission, t.submission.c.id == t.rejudging_member.c.submission)
        .join(t.judging, t.judging.c.id == t.rejudging_member.c.judging)
        .join(before, before.c.id == t.submission.c.current_judging)
        .where(
            t.rejudging_member.c.rejudging == rejudging,
            t.judging.c.state == JudgingState.DONE,
            before.c.state != JudgingState.CANCELLED,
        )
        .order_by(t.submission.c.seq)
    )
    return [dict(row) for row in connection.execute(statement).mappings()]


_Name = tuple[str, int, int]


def _verdicts(connection: sa.Connection, judging: str) -> dict[_Name, t.VerdictRow]:
    rows = verdicts_of(connection, judging)
    return {(row["task"], row["sample"], row["case"]): row for row in rows}


def _work(was: t.VerdictRow | None, now: t.VerdictRow) -> str:
    if was is None or was["run_key"] != now["run_key"]:
        return "run"
    return "copied" if was["comparison_key"] == now["comparison_key"] else "compared"


def _changed(
    submission: str,
    name: _Name,
    was: t.VerdictRow | None,
    now: t.VerdictRow | None,
    corrected: frozenset[CaseName],
) -> ChangedVerdict:
    task, sample, case = name
    return {
        "submission": submission,
        "task": task,
        "sample": sample,
        "case": case,
        "before": _NONE if was is None else was["verdict"],
        "after": _NONE if now is None else now["verdict"],
        "outside": (task, case) not in corrected,
    }


# -- what it would do to boards --------------------------------------------------------------------


def compare_boards(connection: sa.Connection, judgings: Mapping[str, str]) -> list[dict[str, Any]]:
    """Compares boards before and after the judgings of some submissions are replaced.

    Args:
        connection: a connection that sees one state of the database.
        judgings: submission -> the judging that would count.

    Returns:
        For each board with one of these submissions: its name as ``board``, the changed
        ``entries``, and ``pairs`` of accounts whose difference is significant only before or only
        after. An entry has ``account``, ``before`` and ``after`` (``ranks``, ``score`` and
        ``submission``; null if the account has no entry). Only for authors, as nothing is withheld.
    """
    phases = sa.select(t.submission.c.phase).where(t.submission.c.id.in_(list(judgings)))
    boards = all_rows(
        connection, sa.select(t.board).where(t.board.c.phase.in_(phases)).order_by(t.board.c.name)
    )
    compared = []
    for board in boards:
        setting = setting_of(connection, board)
        open_setting = _for_authors(setting)
        sides = [
            _side(entries_of(connection, open_setting, chosen), open_setting)
            for chosen in ({}, judgings)
        ]
        names = list(dict.fromkeys([*sides[0].places, *sides[1].places]))
        entries = [
            {
                "account": name,
                "before": sides[0].places.get(name),
                "after": sides[1].places.get(name),
            }
            for name in names
        ]
        compared.append(
            {
                "board": board["name"],
                "entries": [entry for entry in entries if entry["before"] != entry["after"]],
                "pairs": sorted(list(pair) for pair in sides[0].better ^ sides[1].better),
            }
        )
    return compared


def _for_authors(setting: Setting) -> Setting:
    values = {name: getattr(setting, name) for name in Setting.__slots__}
    return Setting(**{**values, "level": Level.VERDICTS, "published": True})


@dataclass(frozen=True, slots=True)
class _Side:
    places: dict[str, dict[str, Any]]
    better: set[tuple[str, str]]


def _side(entries: Sequence[Entry], setting: Setting) -> _Side:
    ties = ties_among(entries, setting)
    names = [entry.row["account_name"] for entry in entries]
    ranks = () if ties is None else ties.ranks
    rows = {
        name: {"ranks": list(rank), "score": entry.score, "submission": entry.row["submission"]}
        for name, rank, entry in zip(names, ranks, entries, strict=True)
    }
    level = 1 - DEFAULT_METHOD.confidence
    pairs = {} if ties is None else ties.p_holm
    # Entries are sorted, so the first of a pair is the better one.
    return _Side(rows, {(names[a], names[b]) for (a, b), p in pairs.items() if p <= level})
