"""Measures how strong a suite's cases are, and whether suggested cases kill programs that pass.

    .venv/bin/python benchmarks/strength.py SOLUTIONS.jsonl SUITE --out FOLDER

Judges the solutions on all cases, makes wrong variants of every solution that all cases accept,
judges these too, and prints the kill matrix. Then, for every task with a wrong solution that all
cases accept, it tries suggested cases until one kills such a solution. The gold of a suggestion is
the output of the accepted solution; if the published gold has formulas, these must agree with it.

`--limit N` only searches N tasks; `--all-mutators` also uses mutators that seldom kill. Continues
the results in FOLDER. Details are written to FOLDER/kills.jsonl, one line for each task: `killed`
names the fault of the solution, and `sources` lists the sources that agree on the gold.
"""

from __future__ import annotations

import argparse
import itertools
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.command_line import existing, run_command
from judge.annotate.annotator import Annotator
from judge.annotate.answers import ProgramRuns, formulas_problem
from judge.annotate.archive import append_record, read_records
from judge.annotate.casebook import CaseData
from judge.annotate.edits import describe
from judge.annotate.gold import GoldMaker
from judge.annotate.mutants import NAMES
from judge.annotate.strength import (
    TaskStrength,
    Trial,
    judge_solutions,
    killed,
    solution_name,
    strength_of,
    try_case,
    verdicts_by_name,
    wrong_solutions,
)
from judge.annotate.suggest import Suggestion, suggest
from judge.compare.profiles import get_profile
from judge.core.limits import Limits
from judge.core.submission import Submission
from judge.core.task import Task
from judge.core.verdict import Verdict
from judge.errors import JudgeError
from judge.grading.batch import Settings
from judge.grading.case import GradingRules
from judge.recalc.policy import Recalculator
from judge.sandbox.contract import Sandbox
from judge.suites.submissions import load_submissions
from judge.suites.suite import load_suite

JOBS = 2
LIMITS = Limits(cpu_s=20, wall_s=30)
VICTIMS = 5
ROUNDS = (
    ("one-more-row", "edge-rows", "fractions", "lookup-edges", "limits", "repeated-keys"),
    (
        *("equal-columns", "duplicate-keys", "shuffled-rows", "categories", "zeros-and-blanks"),
        *("blank-columns", "one-row", "case"),
    ),
)
"""The mutators that are used, the most promising first; --all-mutators also uses the others."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("solutions", type=existing)
    parser.add_argument("suite", type=existing)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0, help="of the suggestions")
    parser.add_argument("--victims", type=int, default=VICTIMS, help="wrong programs per task")
    parser.add_argument("--again", action="store_true", help="search tasks without a kill again")
    parser.add_argument("--all-mutators", action="store_true")
    parser.add_argument("--limit", type=int, help="search only N tasks with survivors")
    options = parser.parse_args()
    suite = load_suite(options.suite)
    submissions = load_submissions(options.solutions, suite)
    with Annotator.engines(jobs=JOBS) as (sandbox, recalculator):
        rules = GradingRules(get_profile("standard"), engines=recalculator.identity)
        settings = Settings(sandbox, recalculator, rules, LIMITS, jobs=JOBS)
        pairs = [(suite.task(submission.task_id), submission) for submission in submissions]
        matrix(pairs, settings, options.out / "solutions", "the given solutions")
        accepted = accepted_of(pairs, settings, options.out / "solutions")
        mutants = [
            (task, wrong) for task, right in accepted for wrong in wrong_solutions(task, right)
        ]
        strengths = matrix(
            mutants, settings, options.out / "mutants", "wrong solutions made of the accepted ones"
        )
        by_kind(mutants, strengths)
        search(
            Search(
                sandbox,
                recalculator,
                rules,
                options.out / "kills.jsonl",
                all_mutators=options.all_mutators,
                seed=options.seed,
                victims=options.victims,
                again=options.again,
            ),
            accepted,
            mutants,
            strengths,
            options.limit,
        )
    report(options.out / "kills.jsonl")


def matrix(
    pairs: Sequence[tuple[Task, Submission]], settings: Settings, out: Path, title: str
) -> dict[str, TaskStrength]:
    names = {submission.key: solution_name(submission) for _, submission in pairs}
    verdicts = verdicts_by_name(judge_solutions(out, pairs, settings), names)
    tasks = {task.id: task for task, _ in pairs}
    strengths = {
        task_id: strength_of(
            task,
            {
                solution_name(submission): submission
                for other, submission in pairs
                if other.id == task_id
            },
            verdicts.get(task_id, {}),
        )
        for task_id, task in tasks.items()
    }
    print(f"\n{title}: {len(pairs)} on {len(tasks)} tasks")
    rows: Counter[str] = Counter()
    for strength in strengths.values():
        for count, number in enumerate(strength.cases, start=1):
            rows[f"kills {count}"] += len(strength.kills[number])
            rows[f"adds {count}"] += len(strength.adds[number])
        rows[f"smallest {len(strength.smallest)}"] += 1
        rows["survive"] += len(strength.survivors)
        rows["tasks with survivors"] += bool(strength.survivors)
        rows["killed"] += len(strength.solutions) - len(strength.survivors)
    print(f"  killed by some case: {rows['killed']}, accepted by all: {rows['survive']}")
    for count in (1, 2, 3):
        kills, adds = rows[f"kills {count}"], rows[f"adds {count}"]
        print(f"  case {count} kills {kills}, of which {adds} no other case kills")
    for size in range(4):
        print(f"  tasks whose kills need {size} cases: {rows[f'smallest {size}']}")
    print(f"  tasks with a solution that all cases accept: {rows['tasks with survivors']}")
    return strengths


def accepted_of(
    pairs: Sequence[tuple[Task, Submission]], settings: Settings, out: Path
) -> list[tuple[Task, Submission]]:
    results = judge_solutions(out, pairs, settings)
    lost = {
        (result.task_id, result.sample) for result in results if result.verdict is not Verdict.AC
    }
    return [pair for pair in pairs if pair[1].key not in lost]


def by_kind(
    mutants: Sequence[tuple[Task, Submission]], strengths: Mapping[str, TaskStrength]
) -> None:
    mistakes: Counter[str] = Counter()
    passed: Counter[str] = Counter()
    for task, wrong in mutants:
        mistake = (wrong.label or "").partition(",")[0]
        mistakes[mistake] += 1
        passed[mistake] += solution_name(wrong) in strengths[task.id].survivors
    print("  mistake: made, accepted by all cases")
    for mistake, count in mistakes.most_common():
        print(f"    {mistake}: {count}, {passed[mistake]}")


# -- suggested cases ----------------------------------------------------------------------------


class Search:
    """The data that the search for killing cases needs."""

    def __init__(
        self,
        sandbox: Sandbox,
        recalculator: Recalculator,
        rules: GradingRules,
        out: Path,
        *,
        all_mutators: bool = False,
        seed: int = 0,
        victims: int = VICTIMS,
        again: bool = False,
    ) -> None:
        self.sandbox = sandbox
        self.recalculator = recalculator
        self.rules = rules
        self.out = out
        self.all_mutators = all_mutators
        self.seed = seed
        self.victims = victims
        self.lock = threading.Lock()
        self.known = {
            record["task"] for record in read_records(out) if record.get("kills") or not again
        }

    def write(self, record: Mapping[str, Any]) -> None:
        with self.lock:
            append_record(self.out, record)


def search(
    tools: Search,
    accepted: Sequence[tuple[Task, Submission]],
    mutants: Sequence[tuple[Task, Submission]],
    strengths: Mapping[str, TaskStrength],
    limit: int | None,
) -> None:
    work = []
    for task, right in accepted:
        survivors = {
            solution_name(mutant): mutant
            for other, mutant in mutants
            if other.id == task.id and solution_name(mutant) in strengths[task.id].survivors
        }
        if survivors and task.id not in tools.known:
            work.append((task, right, survivors))
    # First the tasks whose gold has formulas, a second source of right answers; of these the
    # small ones first.
    work.sort(key=lambda item: _expense(item[0]))
    work = work[:limit]
    print(f"\nlooking for cases that kill: {len(work)} tasks to go", flush=True)

    def one(item: tuple[Task, Submission, dict[str, Submission]]) -> None:
        task, right, survivors = item
        try:
            tools.write(search_task(tools, task, right, survivors))
        except JudgeError as error:
            tools.write({"task": task.id, "problem": error.message})

    with ThreadPoolExecutor(JOBS) as pool:
        list(pool.map(one, work))


def _first_case(task: Task) -> CaseData:
    case = task.cases[0]
    return CaseData(case.number, case.input_path.read_bytes(), case.gold_path.read_bytes())


def _expense(task: Task) -> tuple[bool, int]:
    case = _first_case(task)
    return bool(formulas_problem(task, case, ())), len(case.input)


def search_task(
    tools: Search, task: Task, right: Submission, survivors: dict[str, Submission]
) -> dict[str, Any]:
    with ProgramRuns(tools.sandbox, LIMITS) as runs:
        return search_with(runs, tools, task, right, survivors)


def search_with(
    runs: ProgramRuns,
    tools: Search,
    task: Task,
    right: Submission,
    survivors: dict[str, Submission],
) -> dict[str, Any]:
    maker = GoldMaker(tools.recalculator, tools.sandbox, rules=tools.rules)
    cases = [
        CaseData(case.number, case.input_path.read_bytes(), case.gold_path.read_bytes())
        for case in task.cases
    ]
    victims = spread(survivors, tools.victims)
    record: dict[str, Any] = {
        "task": task.id,
        "seed": tools.seed,
        "survivors": sorted(survivors),
        "tried": 0,
        "sound": 0,
        "rejected": Counter(),
        "disagreements": [],
        "kills": [],
    }
    rounds = [*ROUNDS]
    if tools.all_mutators:
        rounds.append(tuple(name for name in NAMES if not any(name in round_ for round_ in ROUNDS)))
    suggestions = itertools.chain.from_iterable(
        suggest(
            task, cases[0], maker, references=[right], others=cases[1:], seed=tools.seed, only=only
        )
        for only in rounds
    )
    for suggestion in suggestions:
        record["tried"] += 1
        unusable = suggestion.rejected or suggestion.proposal is None or suggestion.proposal.is_open
        if unusable:
            why = suggestion.rejected or suggestion.contested
            record["rejected"][why.partition(":")[0][:60]] += 1
            note_disagreement(record, suggestion)
            continue
        record["sound"] += 1
        assert suggestion.proposal is not None
        assert suggestion.proposal.gold is not None
        new = CaseData(0, suggestion.proposal.input, suggestion.proposal.gold)
        for name, victim in victims.items():
            trials = try_case(task, new, {name: victim}, runs, tools.recalculator, tools.rules)
            if killed(trials):
                record["kills"].append(kill_record(suggestion, trials[0]))
                return record
    return record


def spread(survivors: dict[str, Submission], most: int) -> dict[str, Submission]:
    """Chooses survivors with as many kinds of mistakes as possible; mistakes with blanks last.

    Most programs that do not check for blanks are right anyway.
    """
    kinds: dict[str, list[str]] = {}
    for name, survivor in survivors.items():
        kinds.setdefault((survivor.label or "").partition(",")[0], []).append(name)
    ordered = sorted(kinds, key=lambda kind: ("blank" in kind, "hard-coded" in kind))
    chosen: list[str] = []
    while len(chosen) < most and any(kinds.values()):
        for kind in ordered:
            if kinds[kind] and len(chosen) < most:
                chosen.append(kinds[kind].pop(0))
    return {name: survivors[name] for name in chosen}


def kill_record(suggestion: Suggestion, trial: Trial) -> dict[str, Any]:
    assert suggestion.proposal is not None
    return {
        "suggestion": suggestion.number,
        "mutator": suggestion.idea.mutator,
        "title": suggestion.idea.title,
        "edits": [describe(edit) for edit in suggestion.idea.edits[:12]],
        "sources": list(suggestion.proposal.agreeing),
        "moved": len(suggestion.proposal.moved),
        "killed": trial.name,
        "verdict": trial.verdict.value,
        "cause": trial.cause,
    }


def note_disagreement(record: dict[str, Any], suggestion: Suggestion) -> None:
    if suggestion.proposal is not None and suggestion.proposal.disagreeing:
        record["disagreements"].append(
            {
                "suggestion": suggestion.number,
                "mutator": suggestion.idea.mutator,
                "edits": [describe(edit) for edit in suggestion.idea.edits[:12]],
                "why": suggestion.rejected or suggestion.contested,
            }
        )


def report(path: Path) -> None:
    # If a task was searched again, the last search counts.
    records = list({record["task"]: record for record in read_records(path)}.values())
    killing = [record for record in records if record.get("kills")]
    two = [e for e in killing if any(len(kill["sources"]) > 1 for kill in e["kills"])]
    print(
        f"\ntasks searched: {len(records)}, with a problem: {sum('problem' in e for e in records)}"
    )
    tried, sound = (sum(record.get(key, 0) for record in records) for key in ("tried", "sound"))
    print(f"suggestions: {tried}, with an answer that no source contradicts: {sound}")
    rejected: Counter[str] = Counter()
    for record in records:
        rejected.update(record.get("rejected", {}))
    for why, count in rejected.most_common(12):
        print(f"  rejected: {count} {why}")
    print(f"tasks with a suggestion that kills what all published cases accept: {len(killing)}")
    print(f"  of which two independent sources agree on the gold: {len(two)}")
    mutators = Counter(kill["mutator"] for record in killing for kill in record["kills"])
    print("  kills by mutator:", ", ".join(f"{name} {n}" for name, n in mutators.most_common()))
    print("  tasks:", ", ".join(str(record["task"]) for record in killing))
    differing = [record["task"] for record in records if record.get("disagreements")]
    print(f"tasks where the accepted solution and the gold's formulas disagree: {len(differing)}")
    print("  tasks:", ", ".join(map(str, differing)))


if __name__ == "__main__":
    run_command(main)
