"""The result of auditing a suite: suspects, their evidence, and what was not examined.

These types are also the records of ``suspects.json``, which is written and read here.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TypedDict

from judge.errors import StoreError
from judge.files.documents import MalformedError, as_object, dump_json, read_json
from judge.files.forms import Count, Sha256, checked, plain
from judge.files.writing import naming_what_is_written, write_whole

MAX_EVIDENCE = 20
"""How many pieces of evidence are kept for a suspect; all of them are counted."""


class Certainty(enum.StrEnum):
    """How likely a careful reader will agree that the gold is at fault."""

    SURE = "sure"
    """Nearly always: the files themselves show it."""
    LIKELY = "likely"
    """More often than not."""
    POSSIBLE = "possible"
    """A reason to look."""

    @property
    def rank(self) -> int:
        """The rank of the certainty; 0 is the surest."""
        return list(Certainty).index(self)


class EvidenceFile(enum.StrEnum):
    """The file in which a piece of evidence was found."""

    INPUT = "input"
    GOLD = "gold"
    OTHER_CASE = "other case"
    SUBMISSION = "submission"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One cell or file that supports a suspicion.

    Attributes:
        file: the file.
        sheet: the sheet's real name; empty if the evidence is not about a sheet.
        cell: address of the cell or range; empty if it is about a whole sheet or file.
        expected: the value that follows from all other data, as JSON (:func:`value_to_json
            <judge.compare.cells.render.value_to_json>`).
        found: the value in the file, as JSON.
        note: a line for people, if the values do not explain everything.
        case: number of the case that the file belongs to, if it is not the suspect's case.
    """

    file: EvidenceFile
    sheet: str = ""
    cell: str = ""
    expected: object = None
    found: object = None
    note: str = ""
    case: int | None = None


class About(enum.StrEnum):
    """The list of an audit that a suspect belongs to; each needs a different kind of review."""

    GOLD = "gold"
    """The gold may be wrong: a right answer would be rejected."""
    CASE = "case"
    """The case tests nothing, or too little: a wrong answer would be accepted."""

    @property
    def heading(self) -> str:
        """The heading of the list."""
        return {
            About.GOLD: "golds that may be wrong",
            About.CASE: "cases that test nothing, or too little",
        }[self]


@dataclass(frozen=True, slots=True)
class SeenContent:
    """The content of a cell.

    Attributes:
        value: its value, as JSON.
        formula: its formula with the leading ``=``; empty for a constant.
    """

    value: object = None
    formula: str = ""


@dataclass(frozen=True, slots=True)
class SeenCell:
    """A cell of a suspect's evidence, with its content in all files of the case.

    Attributes:
        sheet: the sheet's name.
        cell: its address in input and gold.
        in_answer: whether it belongs to the answer.
        input: its content in the input.
        gold: its content in the gold, with the value as it is compared.
        outputs: run -> its content in the run's output, for cells of the answer.
    """

    sheet: str
    cell: str
    in_answer: bool
    input: SeenContent
    gold: SeenContent
    outputs: Mapping[str, SeenContent] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """A run that answered a suspected case.

    Attributes:
        run: the run, as the user named it.
        verdict: the verdict on record; empty if no verdict is recorded.
    """

    run: str
    verdict: str = ""


@dataclass(frozen=True, slots=True)
class Suspect:
    """A gold, or a whole task, that may be at fault.

    Attributes:
        task: the task's id.
        case: 1-based number of the case; None for the task as a whole.
        sign: name of the sign that found it.
        certainty: how sure the suspicion is.
        summary: one line for people: what was found, and where.
        why: why it matters for the answer.
        evidence: the first pieces of evidence, at most :data:`MAX_EVIDENCE`.
        evidence_count: how many pieces there are in all.
        about: the list to which it belongs.
        seen: the first cells of the evidence, side by side in input, gold and outputs.
        runs: the runs that answered the case.
    """

    task: str
    case: int | None
    sign: str
    certainty: Certainty
    summary: str
    why: str
    evidence: tuple[Evidence, ...] = ()
    evidence_count: Count = 0
    about: About = About.GOLD
    seen: tuple[SeenCell, ...] = ()
    runs: tuple[RunVerdict, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "evidence_count", max(self.evidence_count, len(self.evidence)))
        object.__setattr__(self, "evidence", tuple(self.evidence[:MAX_EVIDENCE]))

    @property
    def key(self) -> tuple[str, int | None, str]:
        """The key that identifies a suspect within an audit: task, case and sign."""
        return (self.task, self.case, self.sign)


@dataclass(frozen=True, slots=True)
class CaseFiles:
    """The files of a case about which a suspicion was raised.

    Attributes:
        task: the task's id.
        case: number of the case.
        input_sha256: hash of the first input; None if the case has no input.
        gold_sha256: hash of the first gold; None if it is not a file.
    """

    task: str
    case: int
    input_sha256: Sha256 | None
    gold_sha256: Sha256 | None


@dataclass(frozen=True, slots=True)
class SignRun:
    """A sign that was searched for.

    Attributes:
        name: the name of the sign.
        title: its description in one line.
        blind_spots: faults that it cannot see and cases that mislead it, one line each.
        tasks: in how many tasks it could be searched for.
        about: the list to which its suspects belong.
    """

    name: str
    title: str
    blind_spots: tuple[str, ...]
    tasks: Count
    about: About = About.GOLD


@dataclass(frozen=True, slots=True)
class Problem:
    """A task, or a case of it, that could not be examined, in full or for one sign.

    Attributes:
        task: the task's id.
        case: number of the case; None for the task as a whole.
        message: what happened.
        sign: the sign that could not be searched for; empty if none could be.
    """

    task: str
    case: int | None
    message: str
    sign: str = ""


def _no_reasons() -> Mapping[str, str]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Audit:
    """The suspects of a suite.

    Attributes:
        suite: the name of the suite.
        format: the name of its format.
        digest: the hash of its content.
        tasks: how many tasks were examined.
        cases: how many cases these tasks have.
        suspects: the suspects, the surest first.
        files: the files of every case that a suspect is about; a suspect about a whole task is
            about all its cases.
        signs: the signs that were searched for.
        submissions: the runs and folders whose outputs were compared, as the user named them.
        not_examined: task -> why no sign applies to it.
        problems: what could not be read or computed.
        notes: notes for people about the submissions: copies, or a single run that cannot vote.
    """

    suite: str
    format: str
    digest: Sha256
    tasks: Count
    cases: Count
    suspects: tuple[Suspect, ...]
    files: tuple[CaseFiles, ...]
    signs: tuple[SignRun, ...]
    submissions: tuple[str, ...] = ()
    not_examined: Mapping[str, str] = field(default_factory=_no_reasons)
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()

    def of_case(self, task: str, case: int) -> tuple[Suspect, ...]:
        """Returns the suspects about a case, or about its whole task, the surest first."""
        return tuple(
            suspect
            for suspect in self.suspects
            if suspect.task == task and suspect.case in {None, case}
        )


# -- suspects.json ---------------------------------------------------------------------------------

SCHEMA_VERSION = 1


class AuditedSuite(TypedDict):
    """The suite that was audited."""

    name: str
    format: str
    digest: Sha256


class SuspectsHead(TypedDict):
    """The fields of ``suspects.json`` that an :class:`Audit` stores differently."""

    schema_version: int
    suite: AuditedSuite


def document_of(audit: Audit) -> dict[str, object]:
    """Converts an audit to the content of ``suspects.json``."""
    fields = plain(audit)
    suite = {
        "name": fields.pop("suite"),
        **{name: fields.pop(name) for name in ("format", "digest")},
    }
    counted = {name: fields.pop(name) for name in ("tasks", "cases", "signs")}
    return {"schema_version": SCHEMA_VERSION, "suite": suite, **counted, **fields}


def audit_of(document: object) -> Audit:
    """Reads an audit from the content of ``suspects.json``.

    Raises:
        MalformedError: a field is missing or wrong; the message names the first one.
    """
    head = checked(document, SuspectsHead)
    if head["schema_version"] != SCHEMA_VERSION:
        raise MalformedError(
            f"field schema_version: expected {SCHEMA_VERSION}, found {head['schema_version']}"
        )
    suite = head["suite"]
    identity = {"suite": suite["name"], "format": suite["format"], "digest": suite["digest"]}
    audit = checked({**as_object(document), **identity}, Audit)
    return replace(audit, suspects=tuple(map(_on_its_list, audit.suspects)))


_ABOUT_CASES = frozenset({"says-nothing", "beyond-position", "manual-rule"})


def _on_its_list(suspect: Suspect) -> Suspect:
    """Puts a suspect on its list; needed for files from before suspects had two lists."""
    return replace(suspect, about=About.CASE) if suspect.sign in _ABOUT_CASES else suspect


def write_suspects(path: Path, audit: Audit) -> None:
    """Writes ``suspects.json`` atomically.

    Raises:
        StoreError: it cannot be written.
    """
    text = dump_json(document_of(audit), indent=1)
    with naming_what_is_written(path, StoreError):
        write_whole(path, f"{text}\n".encode(), mode=0o644)


def read_suspects(path: Path) -> Audit:
    """Reads ``suspects.json``.

    Raises:
        StoreError: there is no such file, or it has other content.
    """
    document = read_json(path, StoreError)
    if document is None:
        raise StoreError(
            f"{path}: cannot be read: no such file",
            hint="`judge verify SUITE --audit --out FILE` writes one.",
        )
    try:
        return audit_of(document)
    except MalformedError as problem:
        raise StoreError(
            f"{path}: {problem}", hint="Write it again with `judge verify SUITE --audit`."
        ) from problem
