"""Marks of a run: items that need a mark, sheets for people, and scores that a suite published.

The records, and the points derived from them, are in :mod:`judge.grading.marks`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge.compare.checklists.items import RUBRIC
from judge.core.records.cases import ItemRecord
from judge.core.task import Task
from judge.errors import UsageError
from judge.files.documents import dump_json, read_json
from judge.files.writing import naming_what_is_written, write_new
from judge.grading.marks import ItemKey, MarkedPoints, MarkRecord
from judge.report.load import LoadedRun, LoadedSubmission


@dataclass(frozen=True, slots=True)
class OpenItem:
    """An item of a case that waits for a mark.

    Attributes:
        submission: the submission.
        case: number of the case.
        output_sha256: hash of its output; None if it left no output.
        record: the item as recorded.
    """

    submission: LoadedSubmission
    case: int
    output_sha256: str | None
    record: ItemRecord

    @property
    def key(self) -> ItemKey:
        """The key by which a mark names the item."""
        return self.submission.task_id, self.submission.sample, self.case, self.record["id"]

    def mark(self, by: str, score: float, at: str, why: str = "") -> MarkRecord:
        """A mark for the item.

        Args:
            by: the rater.
            score: from 0 to 1.
            at: when it was given.
            why: the rater's reason.
        """
        task, sample, case, name = self.key
        return MarkRecord(
            task=task,
            sample=sample,
            case=case,
            item=name,
            judged=self.record["judged"],
            by=by,
            at=at,
            score=score,
            output_sha256=self.output_sha256,
            why=why,
        )


def every_item(run: LoadedRun) -> Iterator[OpenItem]:
    """All items of a run, including those already judged, in suite order."""
    for submission in run.submissions:
        for number, result in sorted(submission.automatic.items()):
            for record in result.comparison.get("items", ()):
                yield OpenItem(submission, number, result.run.get("output_sha256"), record)


def open_items(run: LoadedRun, judged: str) -> Iterator[OpenItem]:
    """The items for a model (``llm``), a person (``human``) or a ``program`` to judge."""
    for item in every_item(run):
        if item.record["judged"] == judged and item.record["state"] == "not_judged":
            yield item


def draw_items(run: LoadedRun, size: int, seed: int) -> list[OpenItem]:
    """Draws items for an audit at random, all equally likely; returns them in suite order.

    Raises:
        UsageError: no case of the run was judged by a checklist.
    """
    items = list(every_item(run))
    if not items:
        raise UsageError(f"{run.path}: no case was judged by a checklist")
    chosen = random.Random(seed).sample(range(len(items)), min(size, len(items)))  # noqa: S311  for sampling, not for secrets
    return [items[index] for index in sorted(chosen)]


def marked_points(run: LoadedRun, marks: Sequence[MarkRecord]) -> MarkedPoints:
    """The points of all items of a run, including marks."""
    points = MarkedPoints(marks)
    for submission in run.submissions:
        for result in submission.automatic.values():
            points.add(result)
    return points


def check_score(value: object, where: str) -> float:
    """Checks that a value is a score from 0 to 1.

    Raises:
        UsageError: it is not.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise UsageError(f"{where}: the score is not a number from 0 to 1")
    return float(value)


def fields_of(task: Task | None, item_id: str) -> Mapping[str, Any]:
    """The fields of an item in its task; empty if the suite is not available."""
    listed = () if task is None else task.checker.options.get("items", ())
    for item in listed if isinstance(listed, list | tuple) else ():
        if isinstance(item, Mapping) and item.get("id") == item_id:
            return item
    return {}


# -- sheets for people -----------------------------------------------------------------------------


def write_item_sheet(path: Path, items: Sequence[OpenItem]) -> None:
    """Writes a sheet that a person fills in: the field ``score`` of each item, from 0 to 1.

    Raises:
        UsageError: the file exists; it may be filled in.
        JudgeError: it cannot be written.
    """
    rows = [
        {
            "task": item.submission.task_id,
            "sample": item.submission.sample,
            "case": item.case,
            "item": item.record["id"],
            "words": item.record["words"],
            "points": item.record["points"],
            "output_sha256": item.output_sha256,
            "score": None,
            "why": "",
        }
        for item in items
    ]
    try:
        with naming_what_is_written(path):
            write_new(path, f"{dump_json(rows, indent=2)}\n".encode())
    except FileExistsError as error:
        raise UsageError(
            f"{path} already exists, and may hold scores",
            hint="Read it with `judge checklist take`, move it away, or give another --out.",
        ) from error


def marks_of_sheet(path: Path, items: Sequence[OpenItem], by: str, at: str) -> list[MarkRecord]:
    """The marks of a sheet that was filled in; items without a score are left out.

    Raises:
        UsageError: it cannot be read or is not such a sheet, or an item is not in this run or has
            another output now.
    """
    document = read_json(path, UsageError)
    if not isinstance(document, list) or not all(isinstance(row, dict) for row in document):
        raise UsageError(f"{path}: is not a list of items, as `judge checklist sheet` writes it")
    by_key = {item.key: item for item in items}
    marks = []
    for number, row in enumerate(document, start=1):
        if row.get("score") is None:
            continue
        key = str(row.get("task")), row.get("sample"), row.get("case"), str(row.get("item"))
        item = by_key.get(key)
        if item is None:
            raise UsageError(
                f"{path}, row {number}: this run has no item {key[3]!r} of task {key[0]!r}"
            )
        if row.get("output_sha256") != item.output_sha256:
            raise UsageError(
                f"{path}, row {number}: the output of task {key[0]} has changed since the sheet "
                "was written"
            )
        score = check_score(row["score"], f"{path}, row {number}")
        marks.append(item.mark(by, score, at, str(row.get("why") or "")[:500]))
    return marks


# -- scores that a suite published -----------------------------------------------------------------

_SCORE = re.compile(r"(?:Human score|Score): [\d.]+ - ")
"""The text that the published scorer writes before a reason."""

_MARKED = frozenset({"llm_judge", "human_judge"})


def marks_of_published(folder: Path, run: LoadedRun, at: str) -> tuple[list[MarkRecord], list[str]]:
    """Reads the scores of models and people that IB-bench published for a run, as marks.

    The rater is ``published MODEL`` or ``published people``.

    Args:
        folder: a folder such as ``eval/scores/MODEL/RUN``, with a file for each task.
        run: the run, with one sample of each task.
        at: the time of the marks.

    Returns:
        The marks, and a line for each file that was skipped, with the reason.

    Raises:
        UsageError: a file cannot be read, or the folder has no such files.
    """
    waiting = [*open_items(run, "llm"), *open_items(run, "human")]
    by_id = {(item.key[0], item.key[3]): item for item in waiting}
    tasks = {submission.task_id: submission.task for submission in run.submissions}
    marks: list[MarkRecord] = []
    notes: list[str] = []
    files = sorted(folder.glob("*.json"))
    if not files:
        raise UsageError(f"{folder}: holds no scores", hint="Name a folder with ID.json of tasks.")
    for path in files:
        document = read_json(path, UsageError)
        if not isinstance(document, dict) or document.get("task_id") not in tasks:
            notes.append(f"{path.name}: has no score for a task of this run")
            continue
        task = tasks[document["task_id"]]
        rubric = None if task is None else task.details.get(RUBRIC)
        if rubric is not None and document.get("rubric_hash") != rubric:
            notes.append(f"{path.name}: scored with another rubric")
            continue
        for criterion in _criteria(document):
            item = by_id.get((document["task_id"], str(criterion.get("id"))))
            score = _published_score(criterion)
            if item is None or score is None:
                continue
            people = criterion["type"] == "human_judge"
            by = "people" if people else str(document.get("judge") or "a model")
            why = _SCORE.sub("", str(criterion.get("details") or ""))[:500]
            marks.append(item.mark(f"published {by}"[:200], score, at, why))
    return marks, notes


def _criteria(document: Mapping[str, object]) -> list[Mapping[str, object]]:
    listed = document.get("criteria")
    return [
        criterion
        for criterion in (listed if isinstance(listed, list) else [])
        if isinstance(criterion, dict) and criterion.get("type") in _MARKED
    ]


def _published_score(criterion: Mapping[str, object]) -> float | None:
    """The score of a criterion; None if it was not scored, or was skipped because of a gate."""
    try:
        score = float(str(criterion.get("actual")))
    except ValueError:
        return None
    return score if 0 <= score <= 1 else None
