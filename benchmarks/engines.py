"""Shows which verdicts of a run would change with a single calculation engine, and why.

    python -m benchmarks.engines results/dev100 [--markdown table.md] [--json out.json]

The stored outputs of a run are judged again, with the cascade and with each engine alone; no
program is run. Lists every case whose verdict differs: *lost* if only the cascade accepts it, *won*
if only the single engine accepts it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

from benchmarks.command_line import existing, run_command
from judge.compare.profiles import get_profile
from judge.core.records.cases import DifferenceRecord
from judge.core.submission import Answer, Origin
from judge.core.task import Task, TestCase
from judge.core.verdict import Verdict
from judge.errors import WorkbookError
from judge.formulas.traits import traits
from judge.grading.case import CaseJudge, GradingRules, Judgement
from judge.grading.store import CASES_FILE, RunDirectory
from judge.recalc.names import FORMULAS
from judge.recalc.policy import DEFAULT_TIMEOUT_S, Recalculator
from judge.recalc.select import available_engines, make_engines
from judge.sandbox import open_sandbox
from judge.suites.suite import load_suite
from judge.workbook.address import parse_window
from judge.workbook.cell import CellRange, CellRef, CellValue, ErrorValue
from judge.workbook.reader import open_workbook

CASCADE = "cascade"


@dataclass(frozen=True, slots=True)
class StoredCase:
    """A case of a run whose output can be judged again, or whose verdict needs no output.

    Attributes:
        task: the task.
        case: the test case.
        output: the output workbook; None if there was none to judge.
        verdict: the recorded verdict.
    """

    task: Task
    case: TestCase
    output: bytes | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Difference:
    """A case with different verdicts by a single engine and by the cascade.

    Attributes:
        task: id of the task.
        case: number of the case.
        engine: the single engine.
        won: whether the case is accepted with the single engine, and not with the cascade.
        cell: the first cell that makes the difference.
        why: the difference in that cell.
        functions: the functions that the formula in the cell calls.
        formula: the formula.
    """

    task: str
    case: int
    engine: str
    won: bool
    cell: str
    why: str
    functions: tuple[str, ...]
    formula: str


def stored_cases(run: Path, suite: Path) -> Iterator[StoredCase]:
    """Reads the cases of a run from its records."""
    tasks = {task.id: task for task in load_suite(suite).tasks}
    store = RunDirectory(run)
    latest = {
        (str(record["task"]), int(str(record["case"]))): record
        for record in store.read_records(CASES_FILE)
    }
    for (task_id, number), record in latest.items():
        task = tasks[task_id]
        facts = record.get("run")
        digest = facts.get("output_sha256") if isinstance(facts, dict) else None
        yield StoredCase(
            task=task,
            case=next(case for case in task.cases if case.number == number),
            output=store.get_workbook(str(digest)) if digest else None,
            verdict=Verdict(str(record["verdict"])),
        )


def judged(stored: StoredCase, recalculator: Recalculator, rules: GradingRules) -> Judgement | None:
    """Returns the verdict on a stored output; None if there is no output."""
    if stored.output is None:
        return None
    answer = Answer.of_workbook(stored.output, Origin.SOLUTION)
    return CaseJudge(recalculator, rules).judge(stored.task, stored.case, answer)


def differing(judgement: Judgement) -> dict[str, DifferenceRecord]:
    """Maps sheet and cell to the difference there."""
    differences = judgement.comparison.get("differences", ())
    return {f"{difference['sheet']}!{difference['cell']}": difference for difference in differences}


def explained(
    stored: StoredCase, engine: str, alone: Recalculator, single: Judgement, cascade: Judgement
) -> Difference:
    """Finds the cell that makes the difference, and the single engine's value there."""
    won = single.verdict is Verdict.AC
    bad = differing(cascade if won else single)
    good = differing(single if won else cascade)
    name = next((cell_name for cell_name in bad if cell_name not in good), "")
    formula, why = "", single.cause or cascade.cause
    if name and stored.output is not None:
        sheet, _, cell = name.rpartition("!")
        formula = _formula(stored.output, sheet, cell)
        why = (
            _said(stored.output, sheet, cell, alone) if not won else f"cascade: {bad[name]['kind']}"
        )
    calls = tuple(sorted(traits(formula).functions)) if formula else ()
    return Difference(stored.task.id, stored.case.number, engine, won, name, why, calls, formula)


def _formula(output: bytes, sheet: str, cell: str) -> str:
    with contextlib.suppress(WorkbookError):
        formula_cells = open_workbook(output).formula_cells(_area(sheet, cell))
        return next((cell.formula or "" for cell in formula_cells), "")
    return ""


def _area(sheet: str, cell: str) -> CellRange:
    window = parse_window(cell)
    assert window is not None
    return CellRange(sheet, window.min_row, window.min_column, window.max_row, window.max_column)


def _said(output: bytes, sheet: str, cell: str, alone: Recalculator) -> str:
    area = _area(sheet, cell)
    ref = CellRef(sheet, area.min_row, area.min_column)
    computed = alone.fill(open_workbook(output), [area], origin=Origin.SOLUTION)
    if ref in computed.not_calculated:
        return f"no value: {computed.not_calculated[ref]}"
    return kind_of(computed.values.get(ref))


def kind_of(value: CellValue) -> str:
    """Formats a value for the table, without data of a suite."""
    if isinstance(value, ErrorValue):
        return value.code
    if value is None or value == "":
        return "an empty text"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        return "another text"
    return "0" if value == 0 else "another number"


@dataclass(frozen=True, slots=True)
class Standing:
    """The scores in per cent, and the verdicts, for one way of calculating."""

    soft: float
    hard: float
    verdicts: Mapping[str, int]


def standing(verdicts: Mapping[tuple[str, int], Verdict]) -> Standing:
    """Computes the scores from verdicts."""
    accepted: dict[str, list[bool]] = defaultdict(list)
    for (task, _), verdict in verdicts.items():
        accepted[task].append(verdict is Verdict.AC)
    return Standing(
        soft=round(100 * fmean(fmean(cases) for cases in accepted.values()), 2),
        hard=round(100 * fmean(all(cases) for cases in accepted.values()), 2),
        verdicts=dict(Counter(verdict.value for verdict in verdicts.values())),
    )


def measure(
    cases: Sequence[StoredCase], recalculators: Mapping[str, Recalculator], rules: GradingRules
) -> tuple[dict[str, Standing], list[Difference]]:
    """Judges every case with every way of calculating, the cascade first."""
    verdicts: dict[str, dict[tuple[str, int], Verdict]] = {name: {} for name in recalculators}
    differences: list[Difference] = []
    for stored in cases:
        key = (stored.task.id, stored.case.number)
        cascade = judged(stored, recalculators[CASCADE], rules)
        for name, recalculator in recalculators.items():
            judgement = cascade if name == CASCADE else judged(stored, recalculator, rules)
            verdicts[name][key] = judgement.verdict if judgement is not None else stored.verdict
            if judgement is None or cascade is None:
                continue
            if (judgement.verdict is Verdict.AC) != (cascade.verdict is Verdict.AC):
                differences.append(explained(stored, name, recalculator, judgement, cascade))
        print(f"{key[0]} case {key[1]}", file=sys.stderr, flush=True)
    return {name: standing(by_case) for name, by_case in verdicts.items()}, differences


def markdown(standings: Mapping[str, Standing], differences: Iterable[Difference]) -> str:
    """Formats both tables."""
    lines = ["| computed by | soft % | hard % | verdicts |", "|---|---|---|---|"]
    for name, row in standings.items():
        counts = ", ".join(f"{code} {count}" for code, count in sorted(row.verdicts.items()))
        lines.append(f"| {name} | {row.soft:.2f} | {row.hard:.2f} | {counts} |")
    lines += [
        "",
        "| task | cases | alone | | there it says | functions |",
        "|---|---|---|---|---|---|",
    ]
    groups: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for difference in differences:
        outcome = "won" if difference.won else "lost"
        calls = ", ".join(difference.functions)
        groups[difference.task, difference.engine, outcome, _short(difference.why), calls].append(
            difference.case
        )
    for (task, engine, outcome, why, calls), numbers in groups.items():
        cases = ", ".join(map(str, numbers))
        lines.append(f"| {task} | {cases} | {engine} | {outcome} | {why} | {calls} |")
    return "\n".join(lines) + "\n"


def _short(why: str) -> str:
    return why.replace("|", "/").split(" (")[0][:90]


def main() -> None:
    arguments = _arguments()
    run = RunDirectory(arguments.run).read_run()
    if run is None:
        raise SystemExit(f"{arguments.run}: no run")
    source = run["suite"]
    assert isinstance(source, dict)
    suite = arguments.dataset or Path(str(source["source"]))
    rules = GradingRules(profile=get_profile(arguments.profile))
    with contextlib.ExitStack() as stack:
        sandbox = stack.enter_context(contextlib.closing(open_sandbox(arguments.sandbox)))
        engines = make_engines(sandbox, available_engines(sandbox))
        for engine in engines:
            stack.callback(engine.close)
        recalculators = {CASCADE: Recalculator(engines)}
        for engine in engines:
            limit_s = arguments.slow_timeout if engine.name == FORMULAS else arguments.timeout
            recalculators[engine.name] = Recalculator([engine], timeout_s=limit_s)
        recalculators["nothing"] = Recalculator([], mode="never")
        cases = list(stored_cases(arguments.run, suite))
        standings, differences = measure(cases, recalculators, rules)
    table = markdown(
        standings, (difference for difference in differences if difference.engine != "nothing")
    )
    print(table)
    if arguments.markdown:
        arguments.markdown.write_text(table, encoding="utf-8")
    if arguments.json:
        report = {
            "standings": {name: asdict(row) for name, row in standings.items()},
            "differences": [asdict(difference) for difference in differences],
        }
        arguments.json.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run", type=existing, help="a results directory")
    parser.add_argument("--dataset", type=existing, help="the suite's folder, if it has moved")
    parser.add_argument("--profile", default="standard")
    parser.add_argument("--sandbox", default="auto")
    parser.add_argument("--timeout", type=float, default=DEFAULT_TIMEOUT_S)
    parser.add_argument(
        "--slow-timeout", type=float, default=10.0, help="--timeout for the engine formulas"
    )
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    run_command(main)
