"""Which run got which verdict on which task, and where outputs differ, cell by cell. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judge.compare.cells.render import has_values, is_uncomputed, place_of, shown
from judge.core.records.cases import DifferenceRecord
from judge.core.verdict import CaseResult, Verdict
from judge.report.load import LoadedRun

MAX_TASKS = 2_000
"""Tasks that a matrix lists; those on which the runs disagree come before the others."""

MAX_CELLS_OF_CASE = 20
MAX_CELLS = 20_000
"""Cells shown of one case, and of all cases together."""

_WIDEST_VALUE = 60

AGREES = "agrees"
NOT_RECORDED = "not on record"
NO_VALUE = "no value"


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """One cell of an answer in which at least one run is wrong.

    Attributes:
        where: sheet and address.
        expected: the gold's value as text.
        outputs: what each run left there, as text, or one of ``AGREES`` and ``NOT_RECORDED``;
            None for a run without a compared output.
    """

    where: str
    expected: str
    outputs: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class MatrixCase:
    """One test case of a task.

    Attributes:
        sample: 0-based number among several solutions of the task.
        case: 1-based number of the test case.
        verdicts: the code of each run; None where a run has none.
        cells: the first cells in which a run is wrong.
        more: further cells that differ in some run.
    """

    sample: int
    case: int
    verdicts: tuple[str | None, ...]
    cells: tuple[MatrixCell, ...] = ()
    more: int = 0


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """A task in all of the compared runs.

    Attributes:
        task: its id.
        disagree: whether the runs have different verdicts on some case.
        cases: its cases, by sample and number.
    """

    task: str
    disagree: bool
    cases: tuple[MatrixCase, ...]

    def to_json(self) -> dict[str, Any]:
        """The row without its cells, which only pages show."""
        return {
            "task": self.task,
            "disagree": self.disagree,
            "cases": [
                {"sample": case.sample, "case": case.case, "verdicts": list(case.verdicts)}
                for case in self.cases
            ],
        }


def task_matrix(runs: Sequence[LoadedRun], tasks: Iterable[str]) -> tuple[MatrixRow, ...]:
    """Verdicts of several runs on the same tasks, those on which they disagree first.

    Args:
        runs: the runs; details of single cells come from their records.
        tasks: the tasks that all of them have, in the order of the suite.
    """
    results = [_results(run) for run in runs]
    keys: dict[str, set[tuple[int, int]]] = {task: set() for task in tasks}
    for of_run in results:
        for task, sample, case in of_run:
            if task in keys:
                keys[task].add((sample, case))
    rows = [_row(task, sorted(cases), results) for task, cases in keys.items()]
    # Sorting is stable: each half stays in the order of the suite.
    rows.sort(key=lambda row: not row.disagree)
    budget = MAX_CELLS
    filled = []
    for row in rows[:MAX_TASKS]:
        cases = tuple(_with_cells(row.task, case, results, budget) for case in row.cases)
        budget -= sum(len(case.cells) for case in cases)
        filled.append(MatrixRow(row.task, row.disagree, cases))
    return tuple(filled)


_Results = Mapping[tuple[str, int, int], CaseResult]


def _results(run: LoadedRun) -> dict[tuple[str, int, int], CaseResult]:
    return {
        (submission.task_id, submission.sample, number): result
        for submission in run.submissions
        for number, result in submission.results.items()
    }


def _row(task: str, cases: Sequence[tuple[int, int]], results: Sequence[_Results]) -> MatrixRow:
    found = []
    for sample, case in cases:
        of_runs = [of_run.get((task, sample, case)) for of_run in results]
        verdicts = tuple(None if each is None else each.verdict.value for each in of_runs)
        found.append(MatrixCase(sample, case, verdicts))
    disagree = any(len(set(each.verdicts)) > 1 for each in found)
    return MatrixRow(task, disagree, tuple(found))


def _with_cells(
    task: str, case: MatrixCase, results: Sequence[_Results], budget: int
) -> MatrixCase:
    """A case with the cells in which a run is wrong, in the order in which they are recorded."""
    of_runs = [of_run.get((task, case.sample, case.case)) for of_run in results]
    recorded = [_differences(each) for each in of_runs]
    places: dict[str, DifferenceRecord] = {}
    for differences in recorded:
        for place, difference in differences.items():
            places.setdefault(place, difference)
    listed = list(places.items())[: max(0, min(MAX_CELLS_OF_CASE, budget))]
    cells = tuple(
        MatrixCell(
            where=place,
            expected=shown(difference["expected"], width=_WIDEST_VALUE),
            outputs=tuple(
                _output(each, differences, place)
                for each, differences in zip(of_runs, recorded, strict=True)
            ),
        )
        for place, difference in listed
    )
    unlisted = max((_differing(each) for each in of_runs), default=0) - len(cells)
    return MatrixCase(case.sample, case.case, case.verdicts, cells, max(0, unlisted))


def _differences(result: CaseResult | None) -> dict[str, DifferenceRecord]:
    if result is None:
        return {}
    listed = result.comparison.get("differences", ())
    return {place_of(each): each for each in listed if each["cell"] and has_values(each)}


def _differing(result: CaseResult | None) -> int:
    return 0 if result is None else result.comparison.get("differing_cells") or 0


def _output(
    result: CaseResult | None, differences: Mapping[str, DifferenceRecord], place: str
) -> str | None:
    if result is None or "equal" not in result.comparison:
        return AGREES if result is not None and result.verdict is Verdict.AC else None
    difference = differences.get(place)
    if difference is not None:
        if is_uncomputed(difference):
            return NO_VALUE
        return shown(difference["actual"], width=_WIDEST_VALUE)
    # Records list the first differences only: an unlisted cell agrees if none was left out.
    everything = _differing(result) <= len(result.comparison.get("differences", ()))
    return AGREES if everything else NOT_RECORDED
