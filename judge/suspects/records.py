"""``suspects.json``: the types of its fields, and an audit written to it and read from it."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import NotRequired, TypedDict, TypeVar

from judge.errors import StoreError
from judge.files.documents import MalformedError, dump_json, read_json
from judge.files.forms import Count, Sha256, checked
from judge.files.writing import naming_what_is_written, write_whole
from judge.suspects.model import (
    Audit,
    CaseFiles,
    Certainty,
    Evidence,
    EvidenceFile,
    Problem,
    SignRun,
    Suspect,
)

SCHEMA_VERSION = 1

_Word = TypeVar("_Word", bound=enum.StrEnum)


class EvidenceRecord(TypedDict):
    """See :class:`judge.suspects.model.Evidence`."""

    file: str
    sheet: str
    cell: str
    expected: object
    found: object
    note: str
    case: int | None


class SuspectRecord(TypedDict):
    """See :class:`judge.suspects.model.Suspect`."""

    task: str
    case: int | None
    sign: str
    certainty: str
    summary: str
    why: str
    evidence: list[EvidenceRecord]
    evidence_count: Count


class CaseFilesRecord(TypedDict):
    """See :class:`judge.suspects.model.CaseFiles`."""

    task: str
    case: int
    input_sha256: Sha256 | None
    gold_sha256: Sha256 | None


class SignRecord(TypedDict):
    """See :class:`judge.suspects.model.SignRun`."""

    name: str
    title: str
    blind_spots: list[str]
    tasks: Count


class ProblemRecord(TypedDict):
    """See :class:`judge.suspects.model.Problem`."""

    task: str
    case: int | None
    message: str
    sign: str


class SuspectsSuite(TypedDict):
    """The suite that was audited."""

    name: str
    format: str
    digest: Sha256


class SuspectsDocument(TypedDict):
    """The document of suspects.json; see :class:`judge.suspects.model.Audit`."""

    schema_version: int
    suite: SuspectsSuite
    tasks: Count
    cases: Count
    signs: list[SignRecord]
    suspects: list[SuspectRecord]
    files: list[CaseFilesRecord]
    submissions: NotRequired[list[str]]
    not_examined: NotRequired[dict[str, str]]
    problems: NotRequired[list[ProblemRecord]]


def document_of(audit: Audit) -> SuspectsDocument:
    """An audit as JSON."""
    return {
        "schema_version": SCHEMA_VERSION,
        "suite": {"name": audit.suite, "format": audit.format, "digest": audit.digest},
        "tasks": audit.tasks,
        "cases": audit.cases,
        "signs": [
            {
                "name": sign.name,
                "title": sign.title,
                "blind_spots": list(sign.blind_spots),
                "tasks": sign.tasks,
            }
            for sign in audit.signs
        ],
        "suspects": [_suspect_record(suspect) for suspect in audit.suspects],
        "files": [
            {
                "task": file.task,
                "case": file.case,
                "input_sha256": file.input_sha256,
                "gold_sha256": file.gold_sha256,
            }
            for file in audit.files
        ],
        "submissions": list(audit.submissions),
        "not_examined": dict(audit.not_examined),
        "problems": [
            {
                "task": problem.task,
                "case": problem.case,
                "message": problem.message,
                "sign": problem.sign,
            }
            for problem in audit.problems
        ],
    }


def _suspect_record(suspect: Suspect) -> SuspectRecord:
    return {
        "task": suspect.task,
        "case": suspect.case,
        "sign": suspect.sign,
        "certainty": suspect.certainty.value,
        "summary": suspect.summary,
        "why": suspect.why,
        "evidence": [
            {
                "file": each.file.value,
                "sheet": each.sheet,
                "cell": each.cell,
                "expected": each.expected,
                "found": each.found,
                "note": each.note,
                "case": each.case,
            }
            for each in suspect.evidence
        ],
        "evidence_count": suspect.evidence_count,
    }


def audit_of(document: object) -> Audit:
    """The audit that a document of suspects.json holds.

    Raises:
        MalformedError: names the first field that does not fit.
    """
    known = checked(document, SuspectsDocument)
    if known["schema_version"] != SCHEMA_VERSION:
        raise MalformedError(
            f"field schema_version: expected {SCHEMA_VERSION}, found {known['schema_version']}"
        )
    suite = known["suite"]
    return Audit(
        suite=suite["name"],
        format=suite["format"],
        digest=suite["digest"],
        tasks=known["tasks"],
        cases=known["cases"],
        suspects=tuple(_suspect(each) for each in known["suspects"]),
        files=tuple(
            CaseFiles(each["task"], each["case"], each["input_sha256"], each["gold_sha256"])
            for each in known["files"]
        ),
        signs=tuple(
            SignRun(each["name"], each["title"], tuple(each["blind_spots"]), each["tasks"])
            for each in known["signs"]
        ),
        submissions=tuple(known.get("submissions", ())),
        not_examined=known.get("not_examined", {}),
        problems=tuple(
            Problem(each["task"], each["case"], each["message"], each["sign"])
            for each in known.get("problems", ())
        ),
    )


def _suspect(record: SuspectRecord) -> Suspect:
    return Suspect(
        task=record["task"],
        case=record["case"],
        sign=record["sign"],
        certainty=_word(Certainty, record["certainty"], "certainty"),
        summary=record["summary"],
        why=record["why"],
        evidence=tuple(
            Evidence(
                file=_word(EvidenceFile, each["file"], "file"),
                sheet=each["sheet"],
                cell=each["cell"],
                expected=each["expected"],
                found=each["found"],
                note=each["note"],
                case=each["case"],
            )
            for each in record["evidence"]
        ),
        evidence_count=record["evidence_count"],
    )


def _word(words: type[_Word], text: str, name: str) -> _Word:
    try:
        return words(text)
    except ValueError:
        expected = ", ".join(word.value for word in words)
        raise MalformedError(f"field {name}: expected one of {expected}, found {text!r}") from None


def write_suspects(path: Path, audit: Audit) -> None:
    """Writes ``suspects.json``; the file appears as a whole or not at all.

    Raises:
        StoreError: it cannot be written.
    """
    text = dump_json(document_of(audit), indent=1)
    with naming_what_is_written(path, StoreError):
        write_whole(path, f"{text}\n".encode(), mode=0o644)


def read_suspects(path: Path) -> Audit:
    """Reads ``suspects.json``.

    Raises:
        StoreError: there is no such file, or it holds something else.
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
