"""The pages of single tasks, as data: question, answer, run and comparison."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

from judge.compare.cells.comparison import OUTSIDE_ANSWER, DifferenceClass
from judge.compare.cells.render import difference_lines
from judge.compare.contract import Requirements, Rules
from judge.compare.profiles import get_profile
from judge.compare.registry import checker_of
from judge.core.conversation import MAX_PARTS, plain_text
from judge.core.records.cases import CaseComparison, CaseRun, DifferenceRecord
from judge.core.replies.extract import recorded_program
from judge.core.submission import AnswerForm
from judge.core.task import Gold, Task, TestCase
from judge.core.verdict import CaseResult, Verdict
from judge.errors import JudgeError, StoreError
from judge.files.documents import dump_json
from judge.grading.marks import key_of
from judge.grading.running import typed_answer
from judge.grading.store import RunDirectory
from judge.report.checklists import items_part
from judge.report.grid import MARKS, GridRules, KeptWorkbooks, build_grid
from judge.report.grid_marks import UNKNOWN
from judge.report.grid_window import GridBounds
from judge.report.html.episode_pages import episode_page, tool_episode_page
from judge.report.html.findings import CaseFiles, rules_of_case
from judge.report.html.page import highlight
from judge.report.html.pictures import PAGE_PICTURES_BYTES, PictureShelf, shown_inputs
from judge.report.load import LoadedRun, LoadedSubmission
from judge.suites.folders import read_answer
from judge.suites.layouts import FoundOutputs, outputs_in
from judge.tools.episodes import has_tool_episodes

KINDS = {
    DifferenceClass.MISSING.value: ("M", "missing"),
    DifferenceClass.EXTRA.value: ("E", "extra"),
    DifferenceClass.WRONG_VALUE.value: ("W", "wrong value"),
    DifferenceClass.NUMBER_AS_TEXT.value: ("T", "number as text"),
    DifferenceClass.TYPE.value: ("Y", "wrong type"),
    DifferenceClass.ERROR_VALUE.value: ("!", "error value"),
    DifferenceClass.NOT_CALCULATED.value: ("N", "not calculated"),
    DifferenceClass.MISSING_SHEET.value: ("S", "missing sheet"),
    DifferenceClass.WRONG_FORMULA.value: ("≠", "wrong formula"),
    DifferenceClass.STYLE.value: ("F", "style"),
    DifferenceClass.TOUCHED.value: ("C", "changed outside"),
    DifferenceClass.LOST.value: ("L", "lost"),
    DifferenceClass.NO_FORMULA.value: ("=", "no formula"),
    DifferenceClass.COLLATERAL.value: ("D", "collateral damage"),
    DifferenceClass.NOT_LIVE.value: ("H", "does not follow its inputs"),
    UNKNOWN: ("?", "not on record"),
    "agrees": ("", "agrees"),
}
"""Class of difference -> its letter, which is shown in addition to the colour, and its name."""

_OUTSIDE = {kind.value for kind in OUTSIDE_ANSWER} | {DifferenceClass.MISSING_SHEET.value}
_MAX_TURN_CHARS = 200_000
_MAX_PICTURES = 100


class TaskPages:
    """The pages of all tasks of a run.

    Args:
        run: the run as it is on disk.
        document: the JSON form of its report, whose ``tasks`` are in the same order.
    """

    def __init__(self, run: LoadedRun, document: Mapping[str, Any]) -> None:
        self._run = run
        self._entries: Sequence[Mapping[str, Any]] = document["tasks"]
        self._submissions = {submission.key: submission for submission in run.submissions}
        self._places = {submission.key: number for number, submission in enumerate(run.submissions)}
        self._store = RunDirectory(run.path)
        self._rules = GridRules.of_run(run.run)
        self._kept = KeptWorkbooks()
        self.pictures = PictureShelf(run.path)
        """The pictures that the pages made so far refer to."""

    def __len__(self) -> int:
        return len(self._entries)

    def page(self, number: int, bounds: GridBounds | None = None) -> dict[str, Any]:
        """Builds the page of one submission.

        Args:
            number: 0-based position in the report's ``tasks``.
            bounds: how much of the workbooks to show.

        Returns:
            A JSON object: ``at`` (JSON pointer of the entry), ``entry`` (the entry itself),
                ``unit`` (the unit of comparison), ``code`` (coloured pieces, or null), ``reply``
                (the text from which a typed answer is read, or null), ``conversation`` (``role``,
                ``content`` and ``pictures``), ``marks`` (to which cells of a grid refer) and
                ``cases``, each with ``episode`` (see
                :func:`judge.report.html.episode_pages.episode_page` and
                :func:`judge.report.html.episode_pages.tool_episode_page`, or null), ``inputs`` (see
                :func:`judge.report.html.pictures.shown_inputs`), ``values`` (name, rule, expected,
                found, kind and detail of each named value), ``items`` (see
                :func:`judge.report.checklists.items_part`, or null), ``rules`` (see
                :func:`judge.report.html.findings.rules_of_case`), ``grid``, ``outside``
                (differences that no other field shows), ``stdout`` and ``stderr``. Pictures are
                named by their hash; :attr:`pictures` has them.

        Raises:
            IndexError: the page does not exist.
        """
        entry = self._entries[number]
        submission = self._submissions[str(entry["task_id"]), int(entry["sample"])]
        form = AnswerForm.WORKBOOK if submission.task is None else submission.task.answer
        cases = [self._case(submission, int(case["case"]), bounds) for case in entry["cases"]]
        by_rules = any(case["rules"] is not None for case in cases)
        by_items = any(case["items"] is not None for case in cases)
        return {
            "at": f"/tasks/{number}",
            "entry": entry,
            "unit": "items" if by_items else "rules" if by_rules else form.unit,
            "code": self._code(submission),
            "reply": _reply(submission),
            "conversation": list(self._conversation(submission)),
            "marks": MARKS,
            "cases": cases,
        }

    def _case(
        self, submission: LoadedSubmission, number: int, bounds: GridBounds | None
    ) -> dict[str, Any]:
        result = submission.automatic.get(number)
        facts = CaseRun() if result is None else result.run
        values = self._values(submission, result)
        key = submission.task_id, submission.sample, number
        marks = [mark for mark in self._run.marks if key_of(mark)[:3] == key]
        items = None if result is None else items_part(result.comparison, marks)
        outside = [] if result is None or values else _outside(result)
        return {
            "episode": self._episode(submission, number, bounds),
            "inputs": self._inputs(submission, number),
            "values": values,
            "items": items,
            "rules": None
            if items is not None
            else self._rules_of(submission, number, result, bounds),
            "grid": self._grid(submission, number, result, bounds),
            "outside": outside,
            "stdout": facts.get("stdout", ""),
            "stderr": facts.get("stderr", ""),
        }

    def _episode(
        self, submission: LoadedSubmission, number: int, bounds: GridBounds | None
    ) -> dict[str, Any] | None:
        result = submission.results.get(number)
        # If not all screenshots fit, those of failed episodes come first.
        solved = result is not None and result.verdict is Verdict.AC
        rank = self._places[submission.key] + (len(self._entries) if solved else 0)
        key = (submission.task_id, submission.sample, number)
        bounds = bounds or GridBounds()
        if has_tool_episodes(self._run.run.get("setting")):
            cases = () if submission.task is None else submission.task.cases
            own = next((case for case in cases if case.number == number), None)
            source = own.input_path if own is not None and own.inputs else None
            return tool_episode_page(self._run.path, key, source, self.pictures, bounds, rank=rank)
        return episode_page(self._run.path, key, self.pictures, bounds, rank=rank)

    def pictures_of(self, page: Mapping[str, Any]) -> dict[str, str]:
        """The pictures of a page that fit into it: SHA-256 -> bytes as base64."""
        named = [
            *(file.get("picture", {}) for case in page["cases"] for file in case["inputs"]),
            *(picture for turn in page["conversation"] for picture in turn["pictures"]),
            *(
                picture
                for case in page["cases"]
                for turn in (case["episode"] or {"turns": ()})["turns"]
                for picture in (
                    turn["picture"] or {},
                    *(picture for call in turn.get("calls", ()) for picture in call["pictures"]),
                )
            ),
        ]
        pictures: dict[str, str] = {}
        left = PAGE_PICTURES_BYTES
        for digest in dict.fromkeys(picture["sha256"] for picture in named if "sha256" in picture):
            text = self.pictures.text_of(digest)
            if text is not None and len(text) <= left:
                pictures[digest] = text
                left -= len(text)
        return pictures

    def _inputs(self, submission: LoadedSubmission, number: int) -> list[dict[str, Any]]:
        case = _case_of(submission.task, number)
        if submission.task is None or case is None:
            return []
        return shown_inputs(submission.task, case, self.pictures)

    def _values(
        self, submission: LoadedSubmission, result: CaseResult | None
    ) -> list[dict[str, Any]]:
        """The named values of a typed answer, each with its gold value."""
        task = submission.task
        answer = None if result is None else typed_answer(result.run)
        case = None if result is None else _case_of(task, result.case)
        if task is None or case is None or answer is None:
            return []
        try:
            checker = checker_of(task.checker)
            values = checker.compared(
                task, case.golds, answer, Rules(get_profile(self._rules.profile))
            )
        except JudgeError:
            return []  # the verdict already shows the fault
        return [
            {**asdict(value), "expected": _written(value.expected), "found": _written(value.found)}
            for value in values
        ]

    def _rules_of(
        self,
        submission: LoadedSubmission,
        number: int,
        result: CaseResult | None,
        bounds: GridBounds | None,
    ) -> dict[str, Any] | None:
        """The rules of a task about whole workbooks, with the findings of those that fail."""
        record = CaseComparison() if result is None else result.comparison
        case = _case_of(submission.task, number)
        golds = () if case is None else case.golds
        named = record.get("gold")
        gold = next((gold for gold in golds if gold.name == named), golds[0] if golds else None)
        output, _ = self._output(submission.task_id, number, result)
        before = case.input_path if case is not None and case.inputs else None
        files = CaseFiles(None if gold is None else gold.data or gold.path, output, before)
        task = submission.task
        required = None if task is None else _requirements(task, gold)
        return rules_of_case(
            record, required or Requirements(), files, self._rules, bounds or GridBounds()
        )

    def _grid(
        self,
        submission: LoadedSubmission,
        number: int,
        result: CaseResult | None,
        bounds: GridBounds | None,
    ) -> dict[str, Any]:
        task = submission.task
        case = _case_of(task, number)
        if task is None or case is None:
            return {"blocks": [], "notes": ["the suite is not available: no file can be shown"]}
        if not task.answer.is_file:
            return {"blocks": [], "notes": []}
        output, notes = self._output(submission.task_id, number, result)
        if _requirements(task, next(iter(case.golds), None)) is not None:
            return {"blocks": [], "notes": notes}
        record = CaseComparison() if result is None else result.comparison
        grid = build_grid(task, case, record, output, self._rules, bounds, kept=self._kept)
        return {"blocks": grid["blocks"], "notes": [*notes, *grid["notes"]]}

    def _output(
        self, task_id: str, number: int, result: CaseResult | None
    ) -> tuple[bytes | None, list[str]]:
        digest = None if result is None else result.run.get("output_sha256")
        if result is None or digest is None:
            return None, []
        output = self._store.get_workbook(digest)
        if output is None:
            output = self._finished_output((task_id, result.sample, number), digest)
        if output is None:
            return None, ["the output workbook is no longer available"]
        return output, []

    def _finished_output(self, key: tuple[str, int, int], digest: str) -> bytes | None:
        """Reads an output that was made elsewhere, if the run does not keep a copy."""
        path = None if self._finished is None else self._finished.of_sample(*key)
        try:
            data = None if path is None else read_answer(path, StoreError)
        except StoreError:
            return None
        return data if data and hashlib.sha256(data).hexdigest() == digest else None

    @cached_property
    def _finished(self) -> FoundOutputs | None:
        folder, suite = self._run.run.get("outputs"), self._run.suite
        if folder is None or suite is None:
            return None
        try:
            return outputs_in(Path(folder), suite, self._run.run.get("layout"))
        except (JudgeError, OSError):
            return None

    def _code(self, submission: LoadedSubmission) -> list[tuple[str, str]] | None:
        code = None if submission.record is None else recorded_program(submission.record)
        return None if code is None else highlight(code)

    # -- conversations ---------------------------------------------------------------------------

    def _conversation(self, submission: LoadedSubmission) -> Iterator[dict[str, Any]]:
        turns = None if submission.record is None else submission.record.get("conversation")
        if isinstance(turns, str):
            turns = self._conversation_file(turns)
        if not isinstance(turns, list):
            return
        for number, turn in enumerate(turns):
            # The benchmark's logs hold bare strings, alternately question and answer.
            role, content = "assistant" if number % 2 else "user", turn
            if isinstance(turn, dict):
                role, content = str(turn.get("role", role)), turn.get("content")
            if content is not None:
                text, pictures = self._split_content(content)
                yield {"role": role, "content": _cut(plain_text(text)), "pictures": pictures}

    def _split_content(self, content: object) -> tuple[object, list[dict[str, Any]]]:
        """Separates a message from its pictures."""
        if not isinstance(content, list):
            return content, []
        parts = content[:MAX_PARTS]
        shown = [part for part in parts if isinstance(part, dict) and part.get("type") == "picture"]
        rest = [part for part in parts if part not in shown]
        return rest, [self.pictures.of_message(part) for part in shown[:_MAX_PICTURES]]

    def _conversation_file(self, name: str) -> object:
        """The messages of a conversation that is stored in a separate file.

        The file name comes from a record that other people may have written, so it must not lead
        out of the results directory.
        """
        root = self._run.path.resolve()
        try:
            path = (root / name).resolve()
            if not path.is_relative_to(root) or path.suffix != ".json":
                return None
            document = self._store.read_document(str(path.relative_to(root)))
        except (JudgeError, OSError, ValueError):
            return None
        return None if document is None else document.get("messages")


def _case_of(task: Task | None, number: int) -> TestCase | None:
    return next((case for case in task.cases if case.number == number), None) if task else None


def _requirements(task: Task, gold: Gold | None) -> Requirements | None:
    """A task's requirements, in sentences; None if its checker does not have any."""
    try:
        return checker_of(task.checker).requirements(task, gold)
    except JudgeError:
        return Requirements()  # the verdict already shows the fault


def _reply(submission: LoadedSubmission) -> str | None:
    reply = None if submission.record is None else submission.record.get("response")
    return _cut(reply) if isinstance(reply, str) else None


def _cut(text: str) -> str:
    return text[:_MAX_TURN_CHARS] + "…" if len(text) > _MAX_TURN_CHARS else text


def _written(value: object) -> str | None:
    """A value as JSON; None if there is no value."""
    return None if value is None else dump_json(value, spaced=True)


def _outside(result: CaseResult) -> list[str]:
    """Lines about the differences that no grid shows."""
    differences = result.comparison.get("differences", ())
    listed = [difference for difference in differences if _is_outside(difference)]
    return difference_lines({"differences": listed, "differing_cells": len(listed)}, 100)


def _is_outside(difference: DifferenceRecord) -> bool:
    """Whether a difference belongs neither to a cell of an answer range nor to a rule in words."""
    if "words" in difference:
        return False
    return difference["kind"] in _OUTSIDE or not difference["cell"]


def kinds_of(document: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Letters and names of all classes of differences, including those of other checkers.

    Args:
        document: the JSON form of a report.
    """
    others = {difference["kind"] for difference in document["differences"]} - KINDS.keys()
    return {**KINDS, **{kind: ("•", _kind_in_words(kind)) for kind in sorted(others)}}


def _kind_in_words(kind: str) -> str:
    """The name of a class of another checker's differences: ``pivot table``, ``charts: title``."""
    return kind.replace("_", " ").replace(".", ": ")
