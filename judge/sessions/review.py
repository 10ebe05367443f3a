"""A reviewer's session and its page: the suspects, and the decisions about them.

Every decision is written to disk before the page shows it as kept: first a line of the log, then
the file of corrections, which is derived from the log. Several reviewers can work at the same time,
each in a separate session: the log is locked while a line is appended, and read again for each
request.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from starlette.requests import Request

from judge.core.records.cases import CaseComparison
from judge.core.task import Task, TestCase
from judge.errors import StoreError, UsageError
from judge.files.documents import dump_json, utc_now
from judge.files.json_lines import LineAppender
from judge.files.writing import naming_what_is_written, take_lock
from judge.local_page import INLINE_POLICY, LocalPage, object_of
from judge.report.grid import MARKS, GridRules, build_grid
from judge.report.grid_window import GridBounds
from judge.report.html.page import Assets, inline_json, render_page
from judge.report.html.pages import KINDS
from judge.sessions.corrections import (
    SOURCE,
    Signed,
    Typed,
    corrections_of,
    entries_of,
    typed_again,
)
from judge.suites import Suite
from judge.suites.corrections import (
    load_corrections,
    write_corrections,
)
from judge.suspects.decisions import (
    Decision,
    Finding,
    MergedCorrections,
    ReviewedSuspect,
    SuspectStatus,
    Suspicions,
    decisions_path,
    files_of,
    fit_to_suite,
    merge_decisions,
    read_decisions,
)
from judge.suspects.material import Output
from judge.suspects.model import Audit, Evidence, EvidenceFile, Suspect
from judge.workbook.address import Window, parse_window
from judge.workbook.cell import CellRef

BOUNDS = GridBounds(cells=12_000, columns=60, blocks=6, text_chars=2_000)
MAX_PLACES = 500
"""How many cells of one suspect are marked; a piece of evidence may be a whole range."""

_COMPARED_AGAIN: CaseComparison = {"differing_cells": 1}
"""A record that counts a difference but lists none, so that the files are compared again."""

_PANES = {EvidenceFile.INPUT: "input", EvidenceFile.GOLD: "gold", EvidenceFile.SUBMISSION: "output"}


@dataclass(frozen=True, slots=True)
class ShownCase:
    """The case, output and values that the page shows next to a suspect.

    Attributes:
        number: number of the case.
        output: an output of the case; None to show no output.
    """

    number: int
    output: Path | None


def show_case(task: Task, suspect: Suspect, shown: ShownCase) -> dict[str, Any]:
    """The parts of a case's workbooks around its answer and the evidence.

    Args:
        task: the task.
        suspect: the suspect; its evidence is marked.
        shown: the files and values to show.

    Returns:
        A JSON object: ``case``, ``grid`` (see :func:`judge.report.grid.build_grid`), ``marks``, and
        ``evidence``, each piece with its ``file``, ``sheet``, ``cell``, ``case``, ``expected``,
        ``found``, ``note``, ``pane`` (if it is in a workbook that is shown) and ``places``, the
        ``[row, column]`` of its cells.

    Raises:
        UsageError: the task does not have this case.
    """
    case = next((candidate for candidate in task.cases if candidate.number == shown.number), None)
    if case is None:
        raise UsageError(f"task {task.id} has no case {shown.number}")
    evidence = [_evidence(item, suspect, shown.number) for item in suspect.evidence]
    evidence_cells = [
        CellRef(item["sheet"], row, column)
        for item in evidence
        if item["pane"]
        for row, column in item["places"]
    ]
    grid = _grid(task, case, shown.output, evidence_cells[:MAX_PLACES])
    return {"case": shown.number, "grid": grid, "marks": MARKS, "evidence": evidence}


def _grid(
    task: Task, case: TestCase, output: Path | None, evidence_cells: Sequence[CellRef]
) -> dict[str, Any]:
    notes: list[str] = []
    data = None
    record: CaseComparison = {}
    if output is not None:
        try:
            data, record = output.read_bytes(), _COMPARED_AGAIN
        except OSError as error:
            notes.append(f"{output} cannot be read: {error.strerror}")
    grid = build_grid(task, case, record, data, GridRules(), BOUNDS, evidence_cells)
    return {"blocks": grid["blocks"], "notes": [*notes, *grid["notes"]]}


def _evidence(evidence: Evidence, suspect: Suspect, shown: int) -> dict[str, Any]:
    own = evidence.case if evidence.case is not None else suspect.case
    pane = _PANES.get(evidence.file)
    if evidence.file is EvidenceFile.OTHER_CASE:
        pane = "gold"
    if own is not None and own != shown:
        pane = None
    return {
        "file": evidence.file.value,
        "sheet": evidence.sheet,
        "cell": evidence.cell,
        "case": own,
        "expected": evidence.expected,
        "found": evidence.found,
        "note": evidence.note,
        "pane": pane,
        "places": list(_cells_shown(evidence.cell)),
    }


def _cells_shown(cell: str) -> Iterator[tuple[int, int]]:
    window = parse_window(cell.replace("$", "")) if cell else None
    if window is None or _size(window) > MAX_PLACES:
        if window is not None:
            yield window.min_row, window.min_column
        return
    for row in range(window.min_row, window.max_row + 1):
        for column in range(window.min_column, window.max_column + 1):
            yield row, column


def _size(window: Window) -> int:
    return (window.max_row - window.min_row + 1) * (window.max_column - window.min_column + 1)


Outputs = Mapping[tuple[str, int], Sequence[Output]]


class ReviewSession:
    """One reviewer's session on the suspects of a suite.

    Args:
        suite: the suite, with the contents of its files.
        audit: its suspects.
        suspects: the file with the suspects; the decisions are next to it.
        corrections: the file of corrections to write.
        by: the reviewer.
        outputs: outputs of submissions, by task and case.
        ids: tasks to review; empty for all.

    Attributes:
        left_out: how many suspects are about files that the suite does not have.

    Raises:
        UsageError: the suspects are about another suite, or the file of corrections holds some that
            were not written by a review.
        SuiteError: the file of corrections cannot be read.
        StoreError: the log of decisions cannot be read.
    """

    def __init__(
        self,
        suite: Suite,
        audit: Audit,
        suspects: Path,
        corrections: Path,
        *,
        by: str,
        outputs: Outputs | None = None,
        ids: Collection[str] = (),
    ) -> None:
        self.suite = suite
        self.by = by
        self.corrections_path = corrections
        self.log_path = decisions_path(suspects)
        self._outputs = outputs or {}
        fitting = fit_to_suite(Suspicions(audit), suite, str(suspects)).audit
        self.left_out = len(audit.suspects) - len(fitting.suspects)
        self._audit = fitting
        self._places = [
            index
            for index, suspect in enumerate(fitting.suspects)
            if not ids or suspect.task in ids
        ]
        self.suspicions()
        _check_replaceable(corrections)

    @cached_property
    def suspects(self) -> tuple[Suspect, ...]:
        """The suspects to review, the most certain first; they are identified by position."""
        return tuple(self._audit.suspects[index] for index in self._places)

    def _reviewed(self, suspicions: Suspicions) -> list[ReviewedSuspect]:
        return [suspicions.reviewed[index] for index in self._places]

    def suspicions(self) -> Suspicions:
        """The suspects with all decisions that are on disk now."""
        return Suspicions(self._audit, read_decisions(self.log_path))

    # -- what the page shows ----------------------------------------------------------------------

    def overview(self) -> dict[str, Any]:
        """Every suspect with its status, and the state of the file of corrections."""
        suspicions = self.suspicions()
        merged = merge_decisions(suspicions, self.suite.format)
        return {
            "suite": self.suite.name,
            "by": self.by,
            "log": str(self.log_path),
            "corrections": str(self.corrections_path),
            "written": len(merged.corrections),
            "conflicts": list(merged.conflicts),
            "suspects": [
                {
                    "task": reviewed.suspect.task,
                    "case": reviewed.suspect.case,
                    "sign": reviewed.suspect.sign,
                    "certainty": reviewed.suspect.certainty.value,
                    "summary": reviewed.suspect.summary,
                    "status": self._shown_status(reviewed).value,
                    "mine": None if (mine := self._mine(reviewed)) is None else str(mine.finding),
                }
                for reviewed in self._reviewed(suspicions)
            ],
        }

    def workbook(
        self, index: int, case: int | None, output: int | None, role: str
    ) -> dict[str, Any]:
        """A workbook of a suspect's case, to open in an office program.

        Args:
            index: position of the suspect in the list, from 0.
            case: number of the case; None for the suspect's case, or the first.
            output: which output of the case; None for the first.
            role: ``input``, ``gold`` or ``output``.

        Returns:
            A JSON object: ``name`` of the file, and its ``data`` in base64.

        Raises:
            UsageError: there is no such suspect or file, or it cannot be read.
        """
        suspect = self._suspect(index)
        task = self.suite.task(suspect.task)
        number = case or suspect.case or task.cases[0].number
        path = self._files(task, number, output or 0).get(role)
        if path is None:
            raise UsageError(f"task {task.id}, case {number} has no file {role!r}")
        try:
            data = path.read_bytes()
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror}") from error
        return {"name": path.name, "data": b64encode(data).decode("ascii")}

    def _files(self, task: Task, number: int, output: int) -> dict[str, Path | None]:
        """The workbooks of a case by role: its input, its gold, and the chosen output."""
        outputs = self._outputs.get((task.id, number), ())
        case = next((candidate for candidate in task.cases if candidate.number == number), None)
        return {
            "input": case.inputs[0].path if case and case.inputs else None,
            "gold": case.golds[0].path if case and case.golds else None,
            "output": outputs[output].path if 0 <= output < len(outputs) else None,
        }

    def suspect(self, index: int, case: int | None, output: int | None) -> dict[str, Any]:
        """One suspect with its evidence and the workbooks of a case.

        Args:
            index: position of the suspect in the list, from 0.
            case: number of the case to show; None for the suspect's case, or the first.
            output: which output of the case to show; None for the first.

        Raises:
            UsageError: there is no such suspect or case.
        """
        suspect = self._suspect(index)
        task = self.suite.task(suspect.task)
        reviewed = self._reviewed(self.suspicions())[index]
        number = case or suspect.case or task.cases[0].number
        outputs = self._outputs.get((task.id, number), ())
        chosen = output or 0
        shown = ShownCase(number, outputs[chosen].path if chosen < len(outputs) else None)
        mine = self._mine(reviewed)
        return {
            "place": index,
            "task": {
                "id": task.id,
                "instruction": task.instruction,
                "kind": task.kind,
                "position": task.details.get("answer_position", ""),
            },
            "cases": [candidate.number for candidate in task.cases],
            "suspect": {
                "case": suspect.case,
                "sign": suspect.sign,
                "certainty": suspect.certainty.value,
                "summary": suspect.summary,
                "why": suspect.why,
                "evidence_count": suspect.evidence_count,
            },
            "files": [role for role, path in self._files(task, number, chosen).items() if path],
            "outputs": [shown.run for shown in outputs],
            "output": chosen,
            "mine": None if mine is None else _shown_decision(mine),
            # Other reviewers' findings would influence a reviewer who has not decided yet.
            "others": [
                _shown_decision(decision)
                for decision in reviewed.decisions
                if mine is not None and decision.by != self.by
            ],
            **show_case(task, suspect, shown),
        }

    def _mine(self, reviewed: ReviewedSuspect) -> Decision | None:
        return next((decision for decision in reviewed.decisions if decision.by == self.by), None)

    def _shown_status(self, reviewed: ReviewedSuspect) -> SuspectStatus:
        if self._mine(reviewed) is None and reviewed.decisions:
            return SuspectStatus.OPEN
        return reviewed.status

    def _suspect(self, index: int) -> Suspect:
        if not 0 <= index < len(self.suspects):
            raise UsageError(f"there is no suspect {index + 1}")
        return self.suspects[index]

    # -- decisions --------------------------------------------------------------------------------

    def decide(
        self,
        index: int,
        finding: Finding,
        *,
        reason: str,
        evidence: str = "",
        typed: Typed | None = None,
    ) -> Decision:
        """Records a decision, and writes the corrections that follow from all decisions.

        Args:
            index: position of the suspect in the list, from 0.
            finding: the reviewer's finding.
            reason: the reason that the question gives to a reader.
            evidence: the reason that the cells give.
            typed: for a fault, the corrections.

        Raises:
            UsageError: a reason is missing, or a correction does not fit the task.
            StoreError: the decision cannot be written, and does not count.
            SuiteError: the decision is kept, but the file of corrections cannot be written.
        """
        suspect = self._suspect(index)
        reason, evidence = " ".join(reason.split()), " ".join(evidence.split())
        if not reason:
            raise UsageError("a reason is missing: say what a reader sees in the question")
        if finding is Finding.FAULT and not evidence:
            raise UsageError("a fault needs both reasons: say also what the cells show")
        at = utc_now()
        files = files_of(self._audit, suspect)
        entries: tuple[Mapping[str, object], ...] = ()
        if finding is Finding.FAULT:
            signed = Signed(self.by, at, reason, evidence, suspect.sign)
            task = self.suite.task(suspect.task)
            entries = entries_of(
                corrections_of(task, files, typed or Typed(), signed, self.suite.format)
            )
        decision = Decision(suspect.key, finding, self.by, at, reason, evidence, files, entries)
        self._keep(decision)
        return decision

    def withdraw(self, index: int) -> None:
        """Withdraws the reviewer's own decision.

        Raises:
            UsageError: the reviewer has not decided about this suspect.
            StoreError: the withdrawal cannot be written.
        """
        suspect = self._suspect(index)
        if self._mine(self._reviewed(self.suspicions())[index]) is None:
            raise UsageError("you have not decided about this suspect")
        at = utc_now()
        self._keep(Decision(suspect.key, None, self.by, at))

    def merged(self) -> MergedCorrections:
        """The corrections that follow from all decisions."""
        return merge_decisions(self.suspicions(), self.suite.format)

    def _keep(self, decision: Decision) -> None:
        with naming_what_is_written(self.log_path, StoreError):
            lock = take_lock(self.log_path.with_suffix(".lock"), wait=True)
        with lock:
            with naming_what_is_written(self.log_path, StoreError):
                log = LineAppender(self.log_path, durable=True)
                try:
                    log.append(dump_json(decision.to_json()).encode())
                finally:
                    log.close()
            # Both files change under one lock, so the corrections always match the whole log.
            write_corrections(self.corrections_path, self.suite.format, self.merged().corrections)


def _check_replaceable(path: Path) -> None:
    """Refuses to replace a file of corrections unless everything in it came from reviews."""
    if not path.is_file():
        return
    decided_elsewhere = [
        correction
        for correction in load_corrections(path)
        if not correction.source.startswith(SOURCE)
    ]
    if decided_elsewhere:
        raise UsageError(
            f"{path} holds corrections that were not written by a review "
            f"(task {decided_elsewhere[0].task}), and would be replaced",
            hint="Name another file with --out.",
        )


def _shown_decision(decision: Decision) -> dict[str, Any]:
    return {
        "finding": str(decision.finding),
        "by": decision.by,
        "at": decision.at,
        "reason": decision.reason,
        "evidence": decision.evidence,
        "typed": typed_again(decision.corrections),
    }


_ASSETS = Assets(
    scripts=("base.js", "ask.js", "grid.js", "review.js"), styles=("style.css", "review.css")
)
_COMMAND = "judge verify --review"


class ReviewPage(LocalPage):
    """The suspects of a session, one at a time.

    Args:
        session: the session.
        port: the port that requests must name.
    """

    def __init__(self, session: ReviewSession, port: int = 0) -> None:
        super().__init__(_COMMAND, INLINE_POLICY, port)
        self._session = session

    def index(self) -> str:
        """The page with its token."""
        kinds = {
            kind: {"letter": letter, "words": words} for kind, (letter, words) in KINDS.items()
        }
        context = {
            "token": self.token,
            "command": _COMMAND,
            "suite": self._session.suite.name,
            "by": self._session.by,
            "kinds_json": inline_json(kinds),
        }
        return render_page("review.html", context, _ASSETS, connects=True)

    def respond(
        self, method: str, path: str, request: Request, body: bytes
    ) -> dict[str, Any] | None:
        """The answers to the page's script."""
        match method, path:
            case "GET", "/api/overview":
                return self._session.overview()
            case "GET", "/api/suspect" | "/api/workbook":
                query = request.query_params
                index, case, output = (_number(query.get(n)) for n in ("place", "case", "output"))
                if index is None:
                    raise UsageError("which suspect?")
                if path == "/api/workbook":
                    role = query.get("file", "")
                    return self._session.workbook(index, case, output, role)
                return self._session.suspect(index, case, output)
            case "POST", "/api/decide":
                self._decide(object_of(body))
                return self._session.overview()
            case "POST", "/api/withdraw":
                self._session.withdraw(_suspect_index(object_of(body)))
                return self._session.overview()
        return None

    def _decide(self, body: Mapping[str, Any]) -> None:
        try:
            finding = Finding(_text(body, "finding"))
        except ValueError as error:
            raise UsageError(f"a decision needs a finding, one of {', '.join(Finding)}") from error
        self._session.decide(
            _suspect_index(body),
            finding,
            reason=_text(body, "reason"),
            evidence=_text(body, "evidence"),
            typed=_typed(body),
        )


def _typed(body: Mapping[str, Any]) -> Typed:
    cells, left_out = body.get("cells") or {}, body.get("left_out") or []
    if not isinstance(cells, dict) or not isinstance(left_out, list):
        raise UsageError("cells must be given by case, and left-out cases as a list")
    numbers = {_number(str(number)): str(text) for number, text in cells.items()}
    return Typed(
        cells={number: text for number, text in numbers.items() if number is not None},
        position=_text(body, "position"),
        style=_text(body, "style"),
        left_out=tuple(number for number in left_out if isinstance(number, int)),
        task_left_out=body.get("task_left_out") is True,
    )


def _text(body: Mapping[str, Any], name: str) -> str:
    return str(body.get(name) or "")


def _suspect_index(body: Mapping[str, Any]) -> int:
    index = body.get("place")
    if not isinstance(index, int) or isinstance(index, bool):
        raise UsageError("which suspect?")
    return index


def _number(text: str | None) -> int | None:
    if text is None or text == "":
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 9):
        raise UsageError(f"{text!r} is not a number")
    return int(text)
