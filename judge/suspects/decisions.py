"""What people decided about suspects: an append-only log next to ``suspects.json``.

Each line is one decision of one reviewer about one suspect. The last one of each reviewer counts;
the earlier ones stay. A decision belongs to the gold that the reviewer saw: if the audit is of
another file, it no longer counts.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NotRequired, TypedDict

from judge.errors import StoreError
from judge.files.documents import MalformedError, written
from judge.files.forms import Sha256, checked
from judge.files.json_lines import read_json_lines
from judge.suspects.model import Audit, CaseFiles, Suspect

SuspectKey = tuple[str, int | None, str]
"""Task, case and sign: :attr:`judge.suspects.model.Suspect.key`."""


class Finding(enum.StrEnum):
    """What a reviewer found."""

    FAULT = "fault"
    """The suite is at fault; the decision holds what is right."""
    FINE = "fine"
    """The gold is as it should be."""
    UNCLEAR = "unclear"
    """The question can be read in more than one way, or the files do not decide it."""


class DecisionFiles(TypedDict):
    """The files of a case as the reviewer saw them."""

    case: int
    input_sha256: Sha256 | None
    gold_sha256: Sha256 | None


class DecisionRecord(TypedDict):
    """A line of the log; ``finding`` is null where a reviewer takes a decision back."""

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
    """What one reviewer found out about one suspect.

    Attributes:
        key: which suspect.
        finding: what was found; None if an earlier decision is taken back.
        by: who.
        at: when, in ISO format.
        reason: what a reader sees in the question.
        evidence: what the cells show.
        files: the files that the reviewer saw.
        corrections: for a fault, what is right, each in the form of ``dataset/corrections``.
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
        """The line of the log."""
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
        MalformedError: names what does not fit.
    """
    known = checked(record, DecisionRecord)
    finding = known["finding"]
    if finding is not None and finding not in set(Finding):
        raise MalformedError(
            f"field finding: expected one of {', '.join(Finding)}, found {written(finding)}"
        )
    return Decision(
        key=(known["task"], known["case"], known["sign"]),
        finding=None if finding is None else Finding(finding),
        by=known["by"],
        at=known["at"],
        reason=known["reason"],
        evidence=known["evidence"],
        files=tuple(
            CaseFiles(known["task"], each["case"], each["input_sha256"], each["gold_sha256"])
            for each in known["files"]
        ),
        corrections=tuple(known.get("corrections", ())),
    )


def decisions_path(suspects: Path) -> Path:
    """Where the decisions about the suspects of a file are: next to it."""
    return suspects.with_suffix(".decisions.jsonl")


def read_decisions(path: Path) -> tuple[Decision, ...]:
    """All decisions of a log in order; none if there is no file.

    Raises:
        StoreError: it cannot be read, or a line is not a decision.
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
    """Suspect -> reviewer -> the decision that counts; those taken back are left out."""
    found: dict[SuspectKey, dict[str, Decision]] = {}
    for decision in decisions:
        by_reviewer = found.setdefault(decision.key, {})
        by_reviewer.pop(decision.by, None)
        if decision.finding is not None:
            by_reviewer[decision.by] = decision
    return {key: by_reviewer for key, by_reviewer in found.items() if by_reviewer}


def files_of(audit: Audit, suspect: Suspect) -> tuple[CaseFiles, ...]:
    """The files that a suspect is about: those of its case, or of all cases of its task."""
    return tuple(
        file
        for file in audit.files
        if file.task == suspect.task and suspect.case in {None, file.case}
    )


def still_counts(decision: Decision, files: Sequence[CaseFiles]) -> bool:
    """Whether a reviewer saw the golds that the audit is about."""
    seen = {file.case: file.gold_sha256 for file in decision.files}
    return all(seen.get(file.case, file.gold_sha256) == file.gold_sha256 for file in files)
