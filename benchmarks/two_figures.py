"""Measures collateral damage and dynamic correctness of a run's stored outputs, and of golds.

    python benchmarks/two_figures.py SUITE RUN
    python benchmarks/two_figures.py SUITE RUN --draw 29 [--verdicts]

For dynamic correctness, it also checks that a gold is live as its own answer, and hard-coded if its
formulas are replaced by their values; and that an accepted output with formulas follows the values
of case k exactly if the program is accepted on case k.

With `--draw SEED`, prints 20 verdicts of a run that was scored with both figures, drawn at random,
for somebody to read: question, files, and the program. The verdicts are printed only with
`--verdicts`, so that a reader can write down his own first.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.command_line import existing, run_command
from judge.api.comparing import Engines
from judge.compare.cells.answer_range import prepare
from judge.compare.cells.checker import other_cases
from judge.compare.cells.collateral import Harm, find_collateral
from judge.compare.cells.comparison import Dynamic
from judge.compare.cells.dynamic import constant_answer, measure_dynamic
from judge.compare.cells.dynamic_finding import DynamicFinding
from judge.compare.cells.requested_formula import demand_of
from judge.compare.cells.sides import ScopeSources
from judge.compare.profiles import get_profile
from judge.core.statistics import wilson
from judge.core.task import Task
from judge.core.verdict import CaseResult, Verdict
from judge.grading.store import RunDirectory
from judge.report.load import load_run
from judge.suites.suite import load_suite
from judge.workbook.reader import Workbook, open_workbook

_Results = dict[tuple[str, int], CaseResult]

DRAWN = {"live or not": 9, "not measurable": 3, "changes outside": 5, "nothing outside": 3}
"""Group of verdicts -> how many are drawn; a draw from all of them would tell a reader little."""

_OUTSIDE = ("damage", "added", "other_than_gold", "features", "style")


def share(part: int, total: int) -> str:
    """Formats a share with its 95 % Wilson interval."""
    if not total:
        return "0 of 0"
    estimate = wilson(part, total)
    low, high = 100 * (estimate.low or 0), 100 * (estimate.high or 0)
    return f"{part} of {total} ({100 * part / total:.1f} %, {low:.1f} to {high:.1f})"


def collateral(tasks: list[Task], results: _Results, store: RunDirectory) -> None:
    """Counts what outputs changed outside the answer."""
    harmed: dict[str, set[tuple[str, int]]] = {}
    cells: dict[str, list[int]] = {}
    outputs, accepted, seconds = 0, set[tuple[str, int]](), []
    for task in tasks:
        for case in task.cases:
            key = task.id, case.number
            data = _output(results, key, store)
            if data is None:
                continue
            before, gold, output = (
                open_workbook(case.input_path),
                open_workbook(case.golds[0].read()),
                open_workbook(data),
            )
            plan = prepare(task.checker, gold=gold, output=output)
            started = time.thread_time()
            collateral = find_collateral(before, gold, output, plan.gold_ranges, plan.output_ranges)
            seconds.append(time.thread_time() - started)
            outputs += 1
            if results[key].verdict is Verdict.AC:
                accepted.add(key)
            changed = {
                "damage": collateral.damage,
                "added": collateral.counts[Harm.ADDED],
                "other than the gold": collateral.counts[Harm.OTHER],
            }
            changed["any of these"] = sum(changed.values())
            for name, count in changed.items():
                if count:
                    harmed.setdefault(name, set()).add(key)
                    cells.setdefault(name, []).append(count)
    print(f"collateral: {outputs} outputs, {median(seconds):.3f} s of processor time (median)")
    for name, keys in harmed.items():
        tasks_of = len({task for task, _ in keys})
        print(f"  {name}: outputs {share(len(keys), outputs)}, tasks {tasks_of}; ", end="")
        print(f"accepted outputs {share(len(keys & accepted), len(accepted))}; ", end="")
        print(f"cells: median {median(cells[name]):g}, largest {max(cells[name]):,}")


class DynamicTally:
    """Counts whether answers follow their inputs, for outputs and for golds."""

    def __init__(self) -> None:
        self.outputs: dict[str, Counter[str]] = {
            "outputs": Counter(),
            "accepted outputs": Counter(),
        }
        self.golds, self.constants, self.reasons = Counter[str](), Counter[str](), Counter[str]()
        self.identity = Counter[bool]()
        self.by_question: dict[str, Counter[str]] = {}
        self.seconds: list[float] = []

    def add_output(self, task: Task, finding: DynamicFinding, results: _Results) -> None:
        """Counts an output of the first case, and compares it with the verdicts on the others."""
        self.outputs["outputs"][finding.kind.value] += 1
        if results[task.id, task.cases[0].number].verdict is not Verdict.AC:
            return
        self.outputs["accepted outputs"][finding.kind.value] += 1
        self.by_question.setdefault(finding.demand.value, Counter())[finding.kind.value] += 1
        if finding.kind not in {Dynamic.LIVE, Dynamic.NOT_MEASURABLE}:
            print(f"  {task.id}: {finding.kind}, {finding}")
        if finding.kind is Dynamic.HARD_CODED:
            return
        for trial in finding.trials:
            result = results.get((task.id, trial.change.case or 0))
            if result is not None:
                same = trial.follows == (result.verdict is Verdict.AC)
                self.identity[same] += 1
                if not same:
                    print(f"  {task.id} case {trial.change.case}: {result.verdict}, {trial}")

    def show(self) -> None:
        """Prints the figures."""
        print(f"golds against themselves: {dict(self.golds)}; as constants: {dict(self.constants)}")
        print(f"  not measurable: {dict(self.reasons)}")
        for name, counts in self.outputs.items():
            measured = counts.total() - counts[Dynamic.NOT_MEASURABLE.value]
            live = counts[Dynamic.LIVE.value]
            print(f"{name}: live {share(live, measured)}; {dict(counts)}")
        for name, counts in self.by_question.items():
            print(f"  accepted, asked for {name}: {dict(counts)}")
        print(f"identity: {self.identity[True]} of {self.identity.total()} case changes")
        if self.seconds:
            print(
                f"{median(self.seconds):.2f} s a task (median), {max(self.seconds):.2f} s at most"
            )


def dynamic(tasks: list[Task], results: _Results, store: RunDirectory) -> None:
    """Measures the golds of all tasks, and the outputs where the gold is measurable."""
    tally = DynamicTally()
    with Engines() as engines:
        for task in tasks:
            case = task.cases[0]
            gold = open_workbook(case.golds[0].read())
            look = partial(_look, engines, task, open_workbook(case.input_path), gold)
            own = look(gold)
            tally.golds[own.kind.value] += 1
            if own.kind is not Dynamic.LIVE:
                if own.kind is not Dynamic.NOT_MEASURABLE:
                    print(f"  gold of {task.id}: {own}")
                tally.reasons[own.reason] += 1
                continue
            ranges = prepare(task.checker, gold=gold, output=gold).gold_ranges
            if (fixed := constant_answer(gold, ranges, engines)) is not None:
                kind = look(fixed).kind
                tally.constants[kind.value] += 1
                if kind is not Dynamic.HARD_CODED:
                    print(f"  gold of {task.id} as constants: {kind}")
            data = _output(results, (task.id, case.number), store)
            if data is not None:
                started = time.perf_counter()
                finding = look(open_workbook(data))
                tally.seconds.append(time.perf_counter() - started)
                tally.add_output(task, finding, results)
    tally.show()


def _look(
    engines: Engines, task: Task, before: Workbook, gold: Workbook, output: Workbook
) -> DynamicFinding:
    plan = prepare(task.checker, gold=gold, output=output)
    return measure_dynamic(
        ScopeSources(before, task.instruction, others=other_cases(task)),
        gold,
        output,
        (plan.gold_ranges, plan.output_ranges),
        profile=get_profile("standard"),
        compute=engines,
        demand=demand_of(task.instruction),
    )


def _output(results: _Results, key: tuple[str, int], store: RunDirectory) -> bytes | None:
    result = results.get(key)
    digest = None if result is None else result.run.get("output_sha256")
    return store.get_workbook(digest) if digest else None


def draw(results: _Results, seed: int) -> list[tuple[str, str, int]]:
    """Draws verdicts to be read, in an order that reveals nothing: group, task and case of each."""
    groups: dict[str, list[tuple[str, int]]] = {name: [] for name in DRAWN}
    for (task, case), result in sorted(results.items()):
        dynamic = result.comparison.get("dynamic")
        outside = result.comparison.get("collateral")
        if dynamic is not None:
            measured = dynamic["class"] != Dynamic.NOT_MEASURABLE.value
            groups["live or not" if measured else "not measurable"].append((task, case))
        if outside is not None:
            changed = any(outside.get(name) for name in _OUTSIDE)
            groups["changes outside" if changed else "nothing outside"].append((task, case))
    chosen = random.Random(seed)
    drawn = [
        (group, task, case)
        for group, keys in groups.items()
        for task, case in chosen.sample(keys, DRAWN[group])
    ]
    chosen.shuffle(drawn)
    return drawn


def show_drawn(
    tasks: list[Task], path: Path, results: _Results, *, seed: int, with_verdicts: bool
) -> None:
    """Prints what a reader needs for the drawn verdicts; the verdicts themselves if ``told``."""
    lines = (path / "submissions.jsonl").read_text(encoding="utf-8").splitlines()
    programs = {str(record["id"]): record.get("solution") for record in map(json.loads, lines)}
    by_id = {task.id: task for task in tasks}
    for group, task_id, number in draw(results, seed):
        result = results[task_id, number]
        figure = "dynamic" if group in {"live or not", "not measurable"} else "collateral"
        print(f"# {task_id}, case {number}: {figure}")
        if with_verdicts:
            print(f"{group}; {result.verdict}; {json.dumps(result.comparison.get(figure))}")
            continue
        case = next(case for case in by_id[task_id].cases if case.number == number)
        print(f"{by_id[task_id].instruction}\n\nanswer: {by_id[task_id].checker}")
        print(f"input: {case.input_path}\ngold: {case.golds[0].path}")
        print(f"output: SHA-256 {result.run.get('output_sha256')}")
        print(f"\n{programs.get(task_id)}\n")


def main() -> None:
    """Prints both figures, or drawn verdicts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", type=existing)
    parser.add_argument("run", type=existing)
    parser.add_argument("--draw", type=int, metavar="SEED")
    parser.add_argument("--verdicts", action="store_true")
    arguments = parser.parse_args()
    loaded = load_run(arguments.run, str(arguments.suite))
    results = {
        (submission.task_id, number): result
        for submission in loaded.submissions
        for number, result in submission.results.items()
    }
    tasks = [task for task in load_suite(arguments.suite).tasks if not task.reason_left_out()]
    if arguments.draw is not None:
        show_drawn(
            tasks, loaded.path, results, seed=arguments.draw, with_verdicts=arguments.verdicts
        )
        return
    with RunDirectory(loaded.path) as store:
        measured = [task for task in tasks if any(key[0] == task.id for key in results)]
        collateral(measured, results, store)
        dynamic(tasks, results, store)


if __name__ == "__main__":
    run_command(main)
