"""Where each suspect stands: open, decided by reviewers, or corrected; and what that sets aside."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from judge.errors import StoreError, UsageError
from judge.files.documents import MalformedError
from judge.grading.keys import FileDigests
from judge.grading.store import SUSPECTS_FILE, RunDirectory
from judge.suites import Suite
from judge.suites.locate import said_source
from judge.suspects.decisions import (
    Decision,
    Finding,
    SuspectKey,
    decision_of,
    decisions_path,
    files_of,
    latest,
    read_decisions,
    still_counts,
)
from judge.suspects.model import Audit, CaseFiles, Certainty, Suspect
from judge.suspects.records import audit_of, document_of, read_suspects

DECISIONS_FILE = "suspects.decisions.jsonl"
"""What was decided about the suspects that a results directory keeps."""


class Standing(enum.StrEnum):
    """What is known about a suspect."""

    OPEN = "open"
    """Nobody has decided."""
    FAULT = "fault"
    """The suite is at fault: every reviewer who decided says so."""
    FINE = "fine"
    """The gold is right: every reviewer who decided says so."""
    UNCLEAR = "unclear"
    """A reviewer could not decide."""
    DISPUTED = "disputed"
    """Reviewers contradict each other."""
    CORRECTED = "corrected"
    """The run was judged with a correction of it."""

    @property
    def counts(self) -> bool:
        """Whether the case is set aside in scores without suspects."""
        return self not in {Standing.FINE, Standing.CORRECTED}


@dataclass(frozen=True, slots=True)
class Standpoint:
    """A suspect, and what is known about it.

    Attributes:
        suspect: the suspect.
        standing: what is known about it.
        decisions: those that count, by reviewer.
    """

    suspect: Suspect
    standing: Standing
    decisions: tuple[Decision, ...] = ()

    @property
    def certainty(self) -> Certainty:
        """How sure the suspicion is; a fault that reviewers found is sure."""
        return Certainty.SURE if self.standing is Standing.FAULT else self.suspect.certainty


def standing_of(decisions: Iterable[Decision]) -> Standing:
    """Where a suspect stands, by what its reviewers decided."""
    findings = {decision.finding for decision in decisions}
    if not findings:
        return Standing.OPEN
    if findings >= {Finding.FAULT, Finding.FINE}:
        return Standing.DISPUTED
    if Finding.UNCLEAR in findings:
        return Standing.UNCLEAR
    return Standing.FAULT if Finding.FAULT in findings else Standing.FINE


@dataclass(frozen=True)
class Suspicions:
    """The suspects of a suite, with what reviewers decided.

    Attributes:
        audit: the suspects.
        decisions: all decisions, in the order in which they were made.
        corrected: (task, case) of what a run was judged with corrections of; None for a whole task.
    """

    audit: Audit
    decisions: tuple[Decision, ...] = ()
    corrected: frozenset[tuple[str, int | None]] = field(default_factory=frozenset)

    @cached_property
    def points(self) -> tuple[Standpoint, ...]:
        """Every suspect with its standing, the surest first."""
        decided = latest(self.decisions)
        return tuple(self._point(suspect, decided) for suspect in self.audit.suspects)

    def _point(
        self, suspect: Suspect, decided: Mapping[SuspectKey, Mapping[str, Decision]]
    ) -> Standpoint:
        files = files_of(self.audit, suspect)
        counting = tuple(
            each for each in decided.get(suspect.key, {}).values() if still_counts(each, files)
        )
        standing = standing_of(counting)
        if self._is_corrected(suspect, standing):
            standing = Standing.CORRECTED
        return Standpoint(suspect, standing, counting)

    def _is_corrected(self, suspect: Suspect, standing: Standing) -> bool:
        if (suspect.task, suspect.case) in self.corrected:
            return True
        if standing is not Standing.FAULT:
            return False
        # A fault may be put right for the task as a whole, or, if it is one of the task, in a case.
        cases = {case for task, case in self.corrected if task == suspect.task}
        return None in cases or (suspect.case is None and bool(cases))

    @cached_property
    def _by_case(self) -> Mapping[tuple[str, int | None], Sequence[Standpoint]]:
        found: dict[tuple[str, int | None], list[Standpoint]] = {}
        for point in self.points:
            found.setdefault((point.suspect.task, point.suspect.case), []).append(point)
        return found

    def of_case(self, task: str, case: int) -> tuple[Standpoint, ...]:
        """The suspects that are about a case, or about its task as a whole, the surest first."""
        found = (*self._by_case.get((task, case), ()), *self._by_case.get((task, None), ()))
        return tuple(sorted(found, key=lambda each: each.certainty.rank))

    def is_set_aside(self, task: str, case: int, least: Certainty) -> bool:
        """Whether a case is left out of the scores without suspects that are this sure or surer."""
        return any(
            each.standing.counts and each.certainty.rank <= least.rank
            for each in self.of_case(task, case)
        )

    def with_corrections(self, corrections: Iterable[Mapping[str, object]]) -> Suspicions:
        """The same for a run that was judged with corrections, as run.json names them."""
        corrected = {
            (
                str(correction.get("task")),
                case if isinstance(case := correction.get("case"), int) else None,
            )
            for correction in corrections
        }
        return replace(self, corrected=frozenset(corrected))


def read_suspicions(path: Path) -> Suspicions:
    """The suspects of a file, and the decisions next to it.

    Raises:
        StoreError: one of the files cannot be read.
    """
    return Suspicions(read_suspects(path), read_decisions(decisions_path(path)))


def fit_to_suite(suspicions: Suspicions, suite: Suite, named: str) -> Suspicions:
    """The suspects that are about the files of a suite.

    If the suite's content is not that which was audited, each suspect's files are compared by their
    hashes, and suspects of other files are left out.

    Args:
        suspicions: the suspects.
        suite: the suite as its files are, without corrections.
        named: where the suspects come from, for messages.

    Raises:
        UsageError: the suspects are about another suite.
    """
    audit = suspicions.audit
    if audit.digest == suite.digest:
        return suspicions
    same = _same_files(audit, suite)
    fitting = tuple(
        suspect
        for suspect in audit.suspects
        if (files := files_of(audit, suspect)) and all((f.task, f.case) in same for f in files)
    )
    if audit.suspects and not fitting:
        raise UsageError(
            f"{named}: the suspects are of the suite {audit.suite!r} with the digest "
            f"{audit.digest}, not of {suite.root}, whose digest is {suite.digest}",
            hint=f"`judge verify {said_source(suite.root)} --audit` finds those of this suite.",
        )
    return replace(suspicions, audit=replace(audit, suspects=fitting))


def _same_files(audit: Audit, suite: Suite) -> set[tuple[str, int]]:
    digests = FileDigests()
    known = {(task.id, case.number): case for task in suite.tasks for case in task.cases}
    same = set()
    for file in audit.files:
        case = known.get((file.task, file.case))
        if case is None:
            continue
        gold = case.golds[0].path if case.golds else None
        found = CaseFiles(
            file.task,
            file.case,
            digests.of(case.inputs[0].path) if case.inputs else None,
            None if gold is None else digests.of(gold),
        )
        if found == file:
            same.add((file.task, file.case))
    return same


# -- kept with a run ------------------------------------------------------------------------------


def keep_suspicions(store: RunDirectory, suspicions: Suspicions) -> None:
    """Writes suspects and decisions into a results directory, so that later reports have them.

    Raises:
        StoreError: they cannot be written.
    """
    store.replace_records(
        DECISIONS_FILE, [dict(decision.to_json()) for decision in suspicions.decisions]
    )
    store.write_document(SUSPECTS_FILE, dict(document_of(suspicions.audit)))


def keep_suspects_of(path: Path, store: RunDirectory, suite: Suite) -> None:
    """Writes the suspects of a file, and the decisions next to it, into a results directory.

    Args:
        path: ``suspects.json``.
        store: the results directory.
        suite: the suite that it answers.

    Raises:
        UsageError: the suspects are about another suite.
        StoreError: a file cannot be read or written.
    """
    keep_suspicions(store, fit_to_suite(read_suspicions(path), suite, str(path)))


def kept_suspicions(store: RunDirectory) -> Suspicions | None:
    """The suspects that a results directory keeps; None if it keeps none.

    Raises:
        StoreError: a file is not in the form that the judge writes.
    """
    document = store.read_document(SUSPECTS_FILE)
    if document is None:
        return None
    try:
        audit = audit_of(document)
        decisions = tuple(decision_of(record) for record in store.read_records(DECISIONS_FILE))
    except MalformedError as problem:
        raise StoreError(
            f"{store.path / SUSPECTS_FILE}: {problem}",
            hint="Give --suspects FILE again, or remove the file.",
        ) from problem
    return Suspicions(audit, decisions)
