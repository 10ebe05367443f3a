"""People's decisions about suspects, what follows from them, and the cases that are set aside.

Decisions are in an append-only log next to ``suspects.json``. Each line is one decision of one
reviewer about one suspect. Each reviewer's last decision counts; the earlier ones are kept. A
decision is about the gold that the reviewer saw: if the audit read a different file, it no longer
counts.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NotRequired, TypedDict

from judge.errors import StoreError, UsageError
from judge.files.documents import MalformedError, written
from judge.files.forms import Sha256, checked
from judge.files.json_lines import read_json_lines
from judge.grading.keys import FileDigests
from judge.grading.store import SUSPECTS_FILE, RunDirectory
from judge.suites import Suite
from judge.suites.corrections import Correction, CorrectionFaultError, correction_of
from judge.suites.suite import shown_source
from judge.suspects.model import (
    About,
    Audit,
    CaseFiles,
    Certainty,
    Suspect,
    audit_of,
    document_of,
    read_suspects,
)

SuspectKey = tuple[str, int | None, str]
"""The key of a suspect: task, case and sign (:attr:`judge.suspects.model.Suspect.key`)."""


class Finding(enum.StrEnum):
    """The finding of a reviewer."""

    FAULT = "fault"
    """The suite is at fault; the decision contains what is right."""
    FINE = "fine"
    """The gold is right."""
    UNCLEAR = "unclear"
    """The question has more than one meaning, or the files do not decide it."""


class DecisionFiles(TypedDict):
    """The files of a case that the reviewer saw."""

    case: int
    input_sha256: Sha256 | None
    gold_sha256: Sha256 | None


class DecisionRecord(TypedDict):
    """A line of the log; ``finding`` is null if the reviewer withdraws a decision."""

    task: str
    case: int | None
    sign: str
    finding: str | None
    by: str
    at: str
    reason: str
    evidence: str
    files: list[DecisionFiles]
    corrections: NotRequired[list[dict[str, object]]]


@dataclass(frozen=True, slots=True)
class Decision:
    """One reviewer's decision about one suspect.

    Attributes:
        key: the key of the suspect.
        finding: the finding; None if an earlier decision is withdrawn.
        by: the name of the reviewer.
        at: the time, in ISO format.
        reason: why, according to the question.
        evidence: what the cells show.
        files: the files that the reviewer saw.
        corrections: the corrections of a fault, in the format of ``dataset/corrections``.
    """

    key: SuspectKey
    finding: Finding | None
    by: str
    at: str
    reason: str = ""
    evidence: str = ""
    files: tuple[CaseFiles, ...] = ()
    corrections: tuple[Mapping[str, object], ...] = ()

    def to_json(self) -> DecisionRecord:
        """Returns the decision as a line of the log."""
        task, case, sign = self.key
        record: DecisionRecord = {
            "task": task,
            "case": case,
            "sign": sign,
            "finding": None if self.finding is None else self.finding.value,
            "by": self.by,
            "at": self.at,
            "reason": self.reason,
            "evidence": self.evidence,
            "files": [
                {
                    "case": file.case,
                    "input_sha256": file.input_sha256,
                    "gold_sha256": file.gold_sha256,
                }
                for file in self.files
            ],
        }
        if self.corrections:
            record["corrections"] = [dict(correction) for correction in self.corrections]
        return record


def decision_of(record: object) -> Decision:
    """Reads a line of the log.

    Raises:
        MalformedError: a field is missing or wrong; the message names it.
    """
    fields = checked(record, DecisionRecord)
    finding = fields["finding"]
    if finding is not None and finding not in set(Finding):
        raise MalformedError(
            f"field finding: expected one of {', '.join(Finding)}, found {written(finding)}"
        )
    return Decision(
        key=(fields["task"], fields["case"], fields["sign"]),
        finding=None if finding is None else Finding(finding),
        by=fields["by"],
        at=fields["at"],
        reason=fields["reason"],
        evidence=fields["evidence"],
        files=tuple(
            CaseFiles(fields["task"], file["case"], file["input_sha256"], file["gold_sha256"])
            for file in fields["files"]
        ),
        corrections=tuple(fields.get("corrections", ())),
    )


def decisions_path(suspects: Path) -> Path:
    """Returns the path of the decisions about the suspects in a file: next to that file."""
    return suspects.with_suffix(".decisions.jsonl")


def read_decisions(path: Path) -> tuple[Decision, ...]:
    """Reads all decisions of a log, in order; none if there is no file.

    Raises:
        StoreError: the log cannot be read, or a line is not a decision.
    """
    return tuple(_decisions(path))


def _decisions(path: Path) -> Iterator[Decision]:
    for number, record in read_json_lines(path, StoreError, whole=True):
        try:
            yield decision_of(record)
        except MalformedError as problem:
            raise StoreError(
                f"{path}, line {number}: {problem}",
                hint="It was not written by this judge. Remove the line, and decide again.",
            ) from problem


def latest(decisions: Iterable[Decision]) -> dict[SuspectKey, dict[str, Decision]]:
    """Returns the decisions that count, by suspect and reviewer, without withdrawn ones."""
    latest: dict[SuspectKey, dict[str, Decision]] = {}
    for decision in decisions:
        by_reviewer = latest.setdefault(decision.key, {})
        by_reviewer.pop(decision.by, None)
        if decision.finding is not None:
            by_reviewer[decision.by] = decision
    return {key: by_reviewer for key, by_reviewer in latest.items() if by_reviewer}


def files_of(audit: Audit, suspect: Suspect) -> tuple[CaseFiles, ...]:
    """Returns the files of a suspect's case, or of all cases of its task."""
    return tuple(
        file
        for file in audit.files
        if file.task == suspect.task and suspect.case in {None, file.case}
    )


def still_counts(decision: Decision, files: Sequence[CaseFiles]) -> bool:
    """Returns whether a reviewer saw the same golds as the audit."""
    seen = {file.case: file.gold_sha256 for file in decision.files}
    return all(seen.get(file.case, file.gold_sha256) == file.gold_sha256 for file in files)


DECISIONS_FILE = "suspects.decisions.jsonl"
"""The file in a results directory that holds the decisions about its suspects."""


class SuspectStatus(enum.StrEnum):
    """The status of a suspect."""

    OPEN = "open"
    """Nobody has decided."""
    FAULT = "fault"
    """The suite is at fault, according to every reviewer who decided."""
    FINE = "fine"
    """The gold is right, according to every reviewer who decided."""
    UNCLEAR = "unclear"
    """A reviewer could not decide."""
    DISPUTED = "disputed"
    """Reviewers contradict each other."""
    CORRECTED = "corrected"
    """The run was judged with a correction of this fault."""

    @property
    def counts(self) -> bool:
        """Whether the case is left out of scores that exclude suspects."""
        return self not in {SuspectStatus.FINE, SuspectStatus.CORRECTED}


@dataclass(frozen=True, slots=True)
class ReviewedSuspect:
    """A suspect, with its status.

    Attributes:
        suspect: the suspect.
        status: the status that follows from the decisions.
        decisions: the last decision of each reviewer, if it still counts.
    """

    suspect: Suspect
    status: SuspectStatus
    decisions: tuple[Decision, ...] = ()

    @property
    def certainty(self) -> Certainty:
        """How certain the suspicion is; a fault that reviewers confirmed is certain."""
        return Certainty.SURE if self.status is SuspectStatus.FAULT else self.suspect.certainty


def status_of(decisions: Iterable[Decision]) -> SuspectStatus:
    """Returns the status that follows from the reviewers' decisions about a suspect."""
    findings = {decision.finding for decision in decisions}
    if not findings:
        return SuspectStatus.OPEN
    if findings >= {Finding.FAULT, Finding.FINE}:
        return SuspectStatus.DISPUTED
    if Finding.UNCLEAR in findings:
        return SuspectStatus.UNCLEAR
    return SuspectStatus.FAULT if Finding.FAULT in findings else SuspectStatus.FINE


@dataclass(frozen=True)
class Suspicions:
    """The suspects of a suite, with the decisions of reviewers.

    Attributes:
        audit: the audit that found the suspects.
        decisions: all decisions, in the order in which they were made.
        corrected: (task, case) of each correction that a run was judged with; None as the case
            if the correction is about the whole task.
    """

    audit: Audit
    decisions: tuple[Decision, ...] = ()
    corrected: frozenset[tuple[str, int | None]] = field(default_factory=frozenset)

    @cached_property
    def reviewed(self) -> tuple[ReviewedSuspect, ...]:
        """Returns every suspect with its status, the surest first."""
        decided = latest(self.decisions)
        return tuple(self._reviewed(suspect, decided) for suspect in self.audit.suspects)

    def _reviewed(
        self, suspect: Suspect, decided: Mapping[SuspectKey, Mapping[str, Decision]]
    ) -> ReviewedSuspect:
        files = files_of(self.audit, suspect)
        counting = tuple(
            decision
            for decision in decided.get(suspect.key, {}).values()
            if still_counts(decision, files)
        )
        status = status_of(counting)
        if self._is_corrected(suspect, status):
            status = SuspectStatus.CORRECTED
        return ReviewedSuspect(suspect, status, counting)

    def _is_corrected(self, suspect: Suspect, status: SuspectStatus) -> bool:
        if (suspect.task, suspect.case) in self.corrected:
            return True
        if status is not SuspectStatus.FAULT:
            return False
        # A fault of a case may be corrected for the whole task, and the other way round.
        cases = {case for task, case in self.corrected if task == suspect.task}
        return None in cases or (suspect.case is None and bool(cases))

    @cached_property
    def _by_case(self) -> Mapping[tuple[str, int | None], Sequence[ReviewedSuspect]]:
        by_case: dict[tuple[str, int | None], list[ReviewedSuspect]] = {}
        for reviewed in self.reviewed:
            by_case.setdefault((reviewed.suspect.task, reviewed.suspect.case), []).append(reviewed)
        return by_case

    def of_case(self, task: str, case: int) -> tuple[ReviewedSuspect, ...]:
        """Returns the suspects about a case or about its whole task, the surest first."""
        reviewed = (*self._by_case.get((task, case), ()), *self._by_case.get((task, None), ()))
        return tuple(sorted(reviewed, key=lambda item: item.certainty.rank))

    def is_set_aside(
        self, task: str, case: int, least: Certainty, about: About | None = None
    ) -> bool:
        """Returns whether scores without suspects of at least this certainty leave a case out.

        Args:
            task: the task's id.
            case: number of the case.
            least: the lowest certainty that is left out.
            about: the list that is left out; None for both lists.
        """
        return any(
            reviewed.status.counts
            and reviewed.certainty.rank <= least.rank
            and about in {None, reviewed.suspect.about}
            for reviewed in self.of_case(task, case)
        )

    def with_corrections(self, corrections: Iterable[Mapping[str, object]]) -> Suspicions:
        """Adds the corrections that a run was judged with, as run.json lists them."""
        corrected = {
            (
                str(correction.get("task")),
                case if isinstance(case := correction.get("case"), int) else None,
            )
            for correction in corrections
        }
        return replace(self, corrected=frozenset(corrected))


def read_suspicions(path: Path) -> Suspicions:
    """Reads the suspects in a file, and the decisions in the file next to it.

    Raises:
        StoreError: one of the files cannot be read.
    """
    return Suspicions(read_suspects(path), read_decisions(decisions_path(path)))


def fit_to_suite(suspicions: Suspicions, suite: Suite, named: str) -> Suspicions:
    """Selects the suspects that are about the files of a suite.

    If the suite has changed since the audit, the files of each suspect are compared by their
    hashes, and suspects about other files are left out.

    Args:
        suspicions: the suspects.
        suite: the suite without corrections.
        named: the source of the suspects, for messages.

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
            hint=f"`judge verify {shown_source(suite.root)} --audit` finds those of this suite.",
        )
    return replace(suspicions, audit=replace(audit, suspects=fitting))


def _same_files(audit: Audit, suite: Suite) -> set[tuple[str, int]]:
    digests = FileDigests()
    cases = {(task.id, case.number): case for task in suite.tasks for case in task.cases}
    same = set()
    for file in audit.files:
        case = cases.get((file.task, file.case))
        if case is None:
            continue
        gold = case.golds[0].path if case.golds else None
        case_files = CaseFiles(
            file.task,
            file.case,
            digests.of(case.inputs[0].path) if case.inputs else None,
            None if gold is None else digests.of(gold),
        )
        if case_files == file:
            same.add((file.task, file.case))
    return same


# -- stored with a run ----------------------------------------------------------------------------


_Key = tuple[str, int | None, str]


@dataclass(frozen=True, slots=True)
class MergedCorrections:
    """The corrections that follow from all decisions.

    Attributes:
        corrections: the corrections without a conflict, in the order of the suspects.
        conflicts: a line for each correction that is left out.
    """

    corrections: tuple[Correction, ...]
    conflicts: tuple[str, ...]


def merge_decisions(suspicions: Suspicions, suite_format: str) -> MergedCorrections:
    """Merges the corrections of all faults that no reviewer disputes.

    Decisions about several suspects of a gold, or by several reviewers, may all correct cells of
    it: these corrections are combined. If two of them give different values for a cell, the gold is
    not corrected.

    Args:
        suspicions: the suspects with the decisions about them.
        suite_format: the format of the suite.
    """
    corrections: dict[_Key, Correction] = {}
    conflicts: dict[_Key, str] = {}
    broken: list[str] = []
    for reviewed in suspicions.reviewed:
        if reviewed.status is SuspectStatus.DISPUTED:
            task, case, sign = reviewed.suspect.key
            named = f"task {task}" + ("" if case is None else f", case {case}")
            broken.append(f"{named}: reviewers contradict each other on {sign}")
        if reviewed.status is not SuspectStatus.FAULT:
            continue
        for correction in _corrections(reviewed.decisions, suite_format, broken):
            key = (correction.task, correction.case, correction.field)
            earlier = corrections.get(key)
            merged = correction if earlier is None else _merge(earlier, correction)
            if merged is None:
                conflicts[key] = (
                    f"{_named(correction)}: two decisions give different {_noun(correction)}"
                )
            else:
                corrections[key] = merged
    for task, case, name in list(corrections):
        excluded = (task, case, "exclude") in corrections
        if name == "gold" and (excluded or (task, None, "exclude") in corrections):
            correction = corrections[task, case, name]
            conflicts[task, case, name] = f"{_named(correction)}: it is both corrected and left out"
    undisputed = tuple(
        correction for key, correction in corrections.items() if key not in conflicts
    )
    return MergedCorrections(undisputed, (*broken, *conflicts.values()))


def _corrections(
    decisions: Sequence[Decision], suite_format: str, broken: list[str]
) -> Iterator[Correction]:
    for decision in decisions:
        if decision.finding is not Finding.FAULT:
            continue
        for entry in decision.corrections:
            try:
                yield correction_of(suite_format, entry)
            except CorrectionFaultError as fault:
                broken.append(f"task {decision.key[0]}, decision of {decision.by}: {fault}")


def _merge(first: Correction, second: Correction) -> Correction | None:
    """Merges two corrections; None if they contradict each other."""
    if first.field == "gold":
        cells = {cell.ref: cell for cell in first.cells}
        for cell in second.cells:
            if cells.setdefault(cell.ref, cell) != cell:
                return None
        if first.gold_sha256 != second.gold_sha256:
            return None
        first = replace(first, cells=tuple(cells.values()))
    elif first.field != "exclude" and first.now != second.now:
        return None
    return replace(
        first,
        by=", ".join(dict.fromkeys([*first.by.split(", "), second.by])),
        at=max(first.at, second.at),
        reason=_both(first.reason, second.reason),
        evidence=_both(first.evidence, second.evidence),
        source=_both(first.source, second.source),
    )


def _both(first: str, second: str) -> str:
    return first if second in first else f"{first} / {second}"


def _named(correction: Correction) -> str:
    return f"task {correction.task}" + (
        "" if correction.case is None else f", case {correction.case}"
    )


def _noun(correction: Correction) -> str:
    return "values of a cell" if correction.field == "gold" else f"values of {correction.field}"


def keep_suspicions(store: RunDirectory, suspicions: Suspicions) -> None:
    """Writes suspects and decisions into a results directory for later reports.

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
        suite: the suite that was judged in it.

    Raises:
        UsageError: the suspects are about another suite.
        StoreError: a file cannot be read or written.
    """
    keep_suspicions(store, fit_to_suite(read_suspicions(path), suite, str(path)))


def kept_suspicions(store: RunDirectory) -> Suspicions | None:
    """Reads the suspects in a results directory; None if it has no suspects.

    Raises:
        StoreError: a file does not have the format that the judge writes.
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
