"""What a report needs to know of a run's workbooks: sizes, shapes, cells of the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from judge.compare.contract import GoldFaultError
from judge.compare.registry import checker_of
from judge.core.task import FileKind, Task, TestCase
from judge.errors import UsageError
from judge.files.paths import cache_folder
from judge.report.load import LoadedRun, LoadedSubmission
from judge.report.shapes import ShapeCache, WorkbookShape


@dataclass(frozen=True, slots=True)
class CaseFiles:
    """What is known of the workbooks of one test case.

    Attributes:
        input_bytes: size of the input; None if it is not available.
        shape: size and kind of the input; None where it cannot be read.
        answer_cells: cells of the answer range; None where the gold cannot be read.
    """

    input_bytes: int | None
    shape: WorkbookShape | None
    answer_cells: int | None


UNKNOWN_FILES = CaseFiles(None, None, None)

CaseFilesByCase = Mapping[tuple[str, int], CaseFiles]
"""(task id, case number) -> what is known of its workbooks."""


def inspect_files(
    run: LoadedRun,
    cache: ShapeCache | None = None,
    *,
    on_file: Callable[[], None] = lambda: None,
) -> dict[tuple[str, int], CaseFiles]:
    """Looks at the input workbooks of all cases that a run reports on.

    Args:
        run: the run; if its suite is not available, nothing is known.
        cache: shapes that are already known; None for the one that is kept on this machine.
        on_file: called before each; what it raises ends the work.
    """
    cache = cache or ShapeCache(cache_folder())
    found: dict[tuple[str, int], CaseFiles] = {}
    for submission in run.submissions:
        if submission.task is None:
            continue
        for case in submission.task.cases:
            key = (submission.task_id, case.number)
            if key not in found:
                on_file()
                found[key] = _inspect(submission, submission.task, case, cache)
    return found


def _inspect(
    submission: LoadedSubmission, task: Task, case: TestCase, cache: ShapeCache
) -> CaseFiles:
    # The shape is that of a workbook; other inputs, or none at all, have none.
    first = case.inputs[0] if case.inputs else None
    is_workbook = first is not None and first.kind is FileKind.WORKBOOK
    data = _read(case.input_path) if is_workbook else None
    recorded = None
    if (result := submission.automatic.get(case.number)) is not None:
        recorded = result.comparison.get("cells")
    return CaseFiles(
        input_bytes=None if data is None else len(data),
        shape=None if data is None else cache.of(data),
        answer_cells=_answer_cells(task, case) if recorded is None else recorded,
    )


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _answer_cells(task: Task, case: TestCase) -> int | None:
    """Units of the answer where no comparison has counted them."""
    try:
        return checker_of(task.checker).examine(task, case, None).units
    except (GoldFaultError, UsageError):
        return None
