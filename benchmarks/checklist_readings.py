"""Counts by fault where ``standard`` differs from ``official`` on outputs of checklist suites.

    python -m benchmarks.checklist_readings DATA [--suite NAME] [--list FAULT] [--engines]

DATA is a folder as for ``benchmarks/checklists.py``. Each item of each output is judged under both
interpretations. For each suite, prints how many items become right or wrong, by the number of the
published fault (docs/checklists.md); an item that loses a published pass without such a number is
an error. For IB-bench, also prints the points of the published runs under ``official``.

``--engines`` prints something else: the cells of IB-bench's published answers with a formula but
without a stored value are computed by each engine of the sandbox alone, and by the judge's rule for
choosing an engine; it prints which results are right.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.checklist_tasks import Job, items_of
from benchmarks.checklists import SUITES, engines, jobs_in
from benchmarks.command_line import existing, run_command
from judge.compare.cells.computing import Compute
from judge.compare.checklists.checker import JudgedItem
from judge.compare.checklists.items import Judged, State
from judge.core.submission import Origin
from judge.errors import JudgeError
from judge.recalc.policy import Recalculator
from judge.recalc.select import available_engines, open_recalculator
from judge.sandbox import open_sandbox
from judge.workbook.address import parse_cell
from judge.workbook.cell import CellRange, CellRef
from judge.workbook.reader import Workbook, open_workbook

RIGHT, WRONG, OPEN = "turn right", "turn wrong", "are not judged"


@dataclass(frozen=True, slots=True)
class Difference:
    """An item whose results under the two interpretations differ."""

    job: str
    item: str
    fault: str
    turn: str


def difference_of(job: Job, entry: JudgedItem) -> Difference | None:
    """Returns how the two results of an item differ; None if they do not."""
    if entry.other is None:
        return None
    official = entry.outcome.ended is State.HOLDS
    standard = entry.other.ended
    if official == (standard is State.HOLDS) and standard is not State.NOT_JUDGED:
        return None
    if standard is State.NOT_JUDGED and not official and not entry.other.fault:
        return None
    turn = OPEN if standard is State.NOT_JUDGED else WRONG if official else RIGHT
    return Difference(str(job["job"]), entry.item.id, entry.other.fault, turn)


def differences(data: Path, suite: str, compute: Compute) -> Iterator[Difference]:
    """Yields every item of a suite's outputs whose two results differ."""
    for job in jobs_in(data, [suite]):
        try:
            items = items_of(data, job, compute, both=True)
        except (JudgeError, OSError, KeyError) as error:
            print(f"{suite} {job.get('job')}: not judged: {error!r}", file=sys.stderr)
            continue
        for entry in items:
            difference = difference_of(job, entry)
            if difference is not None:
                yield difference


@dataclass
class Points:
    """The points and criteria of the programmatic items of a run."""

    earned: float = 0.0
    possible: float = 0.0
    passed: int = 0
    criteria: int = 0

    def add(self, items: list[JudgedItem]) -> None:
        """Adds the items of an answer."""
        for entry in items:
            if entry.judged is Judged.DETERMINISTIC:
                self.earned += entry.earned
                self.possible += entry.item.points
                self.passed += entry.outcome.ended is State.HOLDS
                self.criteria += 1


def print_table(suite: str, entries: list[Difference], *, listed: str | None) -> None:
    """Counts the differences of a suite by fault."""
    counts: Counter[tuple[str, str]] = Counter((entry.fault, entry.turn) for entry in entries)
    for fault in sorted({fault for fault, _ in counts}, key=_order):
        turns = ", ".join(f"{counts[fault, turn]:,} {turn}" for turn in (RIGHT, WRONG, OPEN))
        print(f"{suite:14}{fault or 'no number':10}{turns}")
    for entry in entries:
        if entry.fault == listed:
            print("   ", entry.job, entry.item, entry.turn)


def _order(fault: str) -> tuple[str, int]:
    return fault[:1], int(fault[1:] or 0)


def published_jobs(data: Path) -> Iterator[tuple[str, Job]]:
    """Lists the published answers of IB-bench by run, each as a job.

    Responses that were blocked, or that could not be parsed, are left out.
    """
    responses = data / "ib-bench/responses"
    for path in sorted(responses.glob("*/*/?-???.json")):
        response = json.loads(path.read_text(encoding="utf-8"))
        if response.get("stop_reason") == "content_filter" or not response.get("parsed_response"):
            continue
        files = [
            {"name": file.name, "path": str(file.relative_to(data))}
            for file in (path.parent / name for name in response.get("output_files") or ())
            if file.is_file()
        ]
        job = {"suite": "ib-bench", "task": path.stem, "files": files, "response": response}
        yield path.parent.relative_to(responses).as_posix(), job


def published_points(data: Path, compute: Compute) -> dict[str, Points]:
    """Computes the programmatic points of each published run of IB-bench."""
    points: dict[str, Points] = {}
    for run, job in published_jobs(data):
        points.setdefault(run, Points()).add(items_of(data, job, compute))
    return points


# -- formulas without stored values, engine by engine ----------------------------------------------


@dataclass(frozen=True, slots=True)
class UncachedCell:
    """A cell of a criterion whose formula has no stored value.

    Attributes:
        name: run, task and cell.
        workbook: the workbook.
        cell: the cell.
        expected: the right number.
        tolerance: how far a right value may differ from it.
    """

    name: str
    workbook: Workbook
    cell: CellRange
    expected: float
    tolerance: float

    def value(self, recalculator: Recalculator) -> object:
        """Returns the value from one engine, or from the judge's rule; None if there is none."""
        try:
            computed = recalculator.fill(self.workbook, [self.cell], origin=Origin.SOLUTION)
        except JudgeError:
            return None
        key = CellRef(self.cell.sheet, self.cell.min_row, self.cell.min_column)
        return computed.values.get(key)

    def is_right(self, value: object) -> bool:
        """Returns whether a value is the expected number."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return abs(value - self.expected) <= self.tolerance


def uncached_cells(data: Path) -> Iterator[UncachedCell]:
    """Finds the criteria's cells in published answers with a formula but no stored value."""
    for run, job in published_jobs(data):
        rubric = json.loads((data / "ib-bench/tasks" / job["task"] / "rubric.json").read_text())
        first = next((file for file in job["files"] if file["name"].endswith(".xlsx")), None)
        if first is None:
            continue
        workbook = open_workbook(data / first["path"])
        for criterion in rubric["criteria"].values():
            if criterion.get("match_type") != "excel_cell_value":
                continue
            sheet = criterion.get("sheet") or workbook.active_sheet
            position = parse_cell(criterion["cell"])
            if sheet not in workbook.sheet_names or position is None:
                continue
            area = CellRange(sheet, *position, *position)
            cell = workbook.cells(area).get(position)
            if cell is not None and cell.formula is not None and not cell.has_cached_value:
                name = f"{run} {job['task']} {sheet}!{criterion['cell']}"
                tolerance = float(criterion.get("tolerance") or 0)
                yield UncachedCell(name, workbook, area, float(criterion["expected"]), tolerance)


def print_engines(data: Path) -> None:
    """Counts which uncached cells are right: by each engine alone and by the judge's rule."""
    cells = list(uncached_cells(data))
    print(f"{len(cells)} cells hold a formula without a stored value")
    values: dict[str, list[object]] = {}
    with contextlib.closing(open_sandbox()) as sandbox:
        for engine in [*available_engines(sandbox), "auto"]:
            recalculator = open_recalculator(sandbox, mode="always", engine=engine)
            values[engine] = [cell.value(recalculator) for cell in cells]
    for engine, computed in values.items():
        numbers = sum(isinstance(value, int | float) for value in computed)
        right = sum(cell.is_right(value) for cell, value in zip(cells, computed, strict=True))
        name = "weighted vote" if engine == "auto" else engine
        print(
            f"{name:16}{right} right, {numbers - right} wrong numbers, "
            f"{len(cells) - numbers} others"
        )
    for number, cell in enumerate(cells):
        by_engine = {engine: computed[number] for engine, computed in values.items()}
        if any(map(cell.is_right, by_engine.values())):
            by_engine_text = ", ".join(f"{engine} {value}" for engine, value in by_engine.items())
            print(f"right: {cell.name} = {cell.expected:g}: {by_engine_text}")


def print_points(points: Mapping[str, Points]) -> None:
    """Prints the programmatic points of each published run."""
    for run, sums in sorted(points.items()):
        if sums.criteria:
            print(
                f"{run:56}{sums.earned:>5,.0f} / {sums.possible:,.0f}"
                f"  {sums.passed} / {sums.criteria}"
            )


def main() -> int:
    """Judges the outputs and prints the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("data", type=existing)
    parser.add_argument("--suite", choices=sorted(SUITES), action="append")
    parser.add_argument("--list", metavar="FAULT", dest="listed")
    parser.add_argument(
        "--engines", action="store_true", help="compute formulas without values instead"
    )
    arguments = parser.parse_args()
    if arguments.engines:
        print_engines(arguments.data)
        return 0
    compute = engines()
    unnumbered = 0
    for suite in arguments.suite or sorted(SUITES):
        entries = list(differences(arguments.data, suite, compute))
        print_table(suite, entries, listed=arguments.listed)
        if suite == "ib-bench":
            print_points(published_points(arguments.data, compute))
        unnumbered += sum(not entry.fault and entry.turn == WRONG for entry in entries)
    print(f"{unnumbered:,} published passes fail under standard without the number of a fault")
    return 1 if unnumbered else 0


if __name__ == "__main__":
    run_command(main)
