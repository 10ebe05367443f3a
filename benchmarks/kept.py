"""Applies ``--keep``, ``--untouched`` and ``--formula-asked`` to a suite and to stored outputs.

    .venv/bin/python -m benchmarks.kept SUITE [RUN ...]

SUITE: judges every gold as an answer. By definition, ``--keep`` cannot reject a gold; this shows
how many golds ``--untouched`` rejects, how many inputs have something to keep, and what a program
loses that opens the input with openpyxl and saves it without a change.

RUN: a results directory of the same suite; lists every loss in its stored outputs.
"""

from __future__ import annotations

import io
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import openpyxl

from benchmarks.command_line import existing, parser_of, run_command
from judge.compare.cells.answer_range import Plan, check, prepare
from judge.compare.cells.comparison import Comparison
from judge.compare.cells.computing import NoEngines, compute_and_check
from judge.compare.cells.scope import Losses, find_losses
from judge.compare.cells.sides import ScopeSources, Side
from judge.compare.profiles import get_profile
from judge.core.submission import Origin
from judge.core.task import Task, TestCase
from judge.core.verdict import Verdict
from judge.errors import JudgeError
from judge.grading.store import RunDirectory
from judge.report.load import load_run
from judge.suites.suite import load_suite
from judge.workbook.reader import Workbook, open_workbook


@dataclass(slots=True)
class Tally:
    """Counts cases with findings, and the findings by kind."""

    cases: int = 0
    found: set[tuple[str, int]] = field(default_factory=set)
    kinds: Counter[str] = field(default_factory=Counter)

    def add(self, key: tuple[str, int], kept: Losses) -> None:
        """Counts a case."""
        self.cases += 1
        if not kept.is_all:
            self.found.add(key)
            self.kinds.update(kept.counts.keys())

    def __str__(self) -> str:
        tasks = len({task for task, _ in self.found})
        kinds = ", ".join(f"{kind} {count}" for kind, count in self.kinds.most_common())
        return f"{len(self.found)} of {self.cases} cases, {tasks} tasks" + (
            f" ({kinds})" if kinds else ""
        )


def _pairs(suite: Path) -> Iterator[tuple[Task, TestCase, Workbook, Workbook, Plan]]:
    for task in load_suite(suite).tasks:
        for case in task.cases:
            try:
                before = open_workbook(case.input_path)
                gold = open_workbook(case.golds[0].read())
                yield task, case, before, gold, prepare(task.checker, gold=gold, output=gold)
            except JudgeError as error:
                print(f"  task {task.id} case {case.number}: {error.message}")


def _resaved(data: bytes) -> bytes:
    """Opens a workbook with openpyxl and saves it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        saved = io.BytesIO()
        openpyxl.load_workbook(io.BytesIO(data)).save(saved)
    return saved.getvalue()


def _untouched(plan: Plan, gold: Workbook, output: Workbook, before: Workbook) -> int:
    """Counts the cells outside the answer range that differ from the input."""
    strict_plan = Plan(
        plan.answer_position,
        plan.gold_ranges,
        plan.output_ranges,
        plan.notes,
        type(plan.options)(untouched=True),
    )
    compared: Comparison = check(
        strict_plan,
        Side(gold),
        Side(output),
        profile=get_profile("standard"),
        before=None if before is None else Side(before),
        ask_official=False,
    )
    return compared.touched_cells or 0


def of_golds(suite: Path) -> None:
    """Judges every gold as an answer, and every input as openpyxl saves it."""
    own, touched, saved = Tally(), Counter[str](), Tally()
    seconds = 0.0
    for task, case, before, gold, plan in _pairs(suite):
        key = task.id, case.number
        saved_again = open_workbook(gold.data)
        own.add(key, find_losses(before, gold, saved_again, plan.gold_ranges))
        touched[task.id] += _untouched(plan, gold, gold, before) > 0
        try:
            output = open_workbook(_resaved(before.data))
        except Exception as error:  # noqa: BLE001  openpyxl lets any exception through
            print(f"  task {task.id} case {case.number}: openpyxl: {error}")
            continue
        started = time.thread_time()
        saved.add(key, find_losses(before, gold, output, plan.gold_ranges))
        seconds += time.thread_time() - started
    print(f"golds that --keep fail rejects: {own}")
    print(f"golds that --untouched rejects: {touched.total()} of {own.cases} cases, ", end="")
    print(f"{sum(count > 0 for count in touched.values())} of {len(touched)} tasks")
    print(f"inputs that openpyxl opens and saves, with losses: {saved}")
    print(f"  {1000 * seconds / max(1, saved.cases):.1f} ms of processor time a case")


def of_run(suite: Path, run: Path) -> None:
    """Judges the stored outputs of a run."""
    loaded = load_run(run, str(suite))
    verdicts = {
        (submission.task_id, number): result
        for submission in loaded.submissions
        for number, result in submission.results.items()
    }
    lost, touched, formula_counts = Tally(), set[tuple[str, int]](), Counter[str]()
    listed: list[str] = []
    with RunDirectory(loaded.path) as store:
        for task, case, before, gold, _ in _pairs(suite):
            key = task.id, case.number
            result = verdicts.get(key)
            digest = None if result is None else result.run.get("output_sha256")
            data = store.get_workbook(digest) if digest else None
            if result is None or data is None:
                continue
            output = open_workbook(data)
            spec = task.checker.with_options({"keep": "note", "formula_asked": "note"})
            compared = compute_and_check(
                plan := prepare(spec, gold=gold, output=output),
                gold,
                output,
                compute=NoEngines(),
                origin=Origin.FINISHED,
                profile=get_profile("standard"),
                sources=ScopeSources(before, task.instruction),
            ).comparison
            scope = compared.scope
            if scope is None or scope.kept is None:
                print(f"  task {task.id} case {case.number}: not examined")
                continue
            lost.add(key, scope.kept)
            listed += [
                f"  {task.id}/{case.number} {result.verdict}: {loss.kind}: {loss}"
                for loss in scope.kept.losses
            ]
            if _untouched(plan, gold, output, before):
                touched.add(key)
            if (formula := scope.formula) is not None and formula.gold_formulas:
                formula_counts["asked"] += 1
                formula_counts["constants"] += formula.is_missing
                formula_counts["accepted constants"] += (
                    formula.is_missing and result.verdict is Verdict.AC
                )
                if formula.is_missing:
                    listed.append(f"  {task.id}/{case.number} {result.verdict}: {formula}")
    accepted = {key for key, result in verdicts.items() if result.verdict is Verdict.AC}
    print(f"outputs with losses: {lost}; {len(lost.found & accepted)} of them accepted")
    print(
        f"outputs that --untouched rejects: {len(touched)} of {lost.cases} cases, "
        f"{len({task for task, _ in touched})} tasks; {len(touched & accepted)} of them accepted; "
        f"{len(touched & lost.found)} of the {len(lost.found)} with losses"
    )
    print(
        f"constants where a formula is requested: {formula_counts['constants']} of "
        f"{formula_counts['asked']} cases, "
        f"{formula_counts['accepted constants']} of them accepted"
    )
    print("\n".join(listed))


def main() -> None:
    """Prints the figures."""
    parser = parser_of(__doc__)
    parser.add_argument("suite", type=existing)
    parser.add_argument("runs", type=existing, nargs="*", metavar="RUN")
    options = parser.parse_args()
    of_golds(options.suite)
    for run in options.runs:
        of_run(options.suite, run)


if __name__ == "__main__":
    run_command(main)
