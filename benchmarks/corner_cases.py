"""Whether suggested cases make accepted programs fail, and what the sources say of each.

    .venv/bin/python benchmarks/corner_cases.py SOLUTIONS.jsonl SUITE --out FOLDER

Judges the solutions on all cases. For each one that they all accept, it asks `judge annotate
suggest` for cases with this solution as the program to be made to fail, and the published gold's
formulas as the source. Prints, for each task, the suggestions that kill: those that the tool calls
sound, and those that it leaves to a person, with what each side says.

Continues what FOLDER holds; `--ids` names tasks, `--limit N` takes the first so many. Details go to
FOLDER/corner_cases.jsonl, one line for each task.
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.strength import accepted_of
from judge.annotate.annotator import Annotator
from judge.annotate.archive import append_record, read_records
from judge.annotate.casebook import CaseData
from judge.annotate.edits import describe
from judge.annotate.gold import GoldMaker
from judge.annotate.strength import Trial
from judge.annotate.suggest import Suggestion, suggest
from judge.compare.cells.render import difference_lines
from judge.compare.profiles import get_profile
from judge.core.limits import Limits
from judge.core.submission import Submission
from judge.core.task import Task
from judge.errors import JudgeError
from judge.grading.batch import Settings
from judge.grading.case import GradingRules
from judge.suites.load import load_suite
from judge.suites.submissions import load_submissions

LIMITS = Limits(cpu_s=20, wall_s=30)
SHOWN_EDITS = 6
SHOWN_CELLS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("solutions", type=Path)
    parser.add_argument("suite", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0, help="of the suggestions")
    parser.add_argument("--ids", default="", help="only these tasks, separated by commas")
    parser.add_argument("--limit", type=int, help="only so many tasks")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--sandbox", default="auto", help="docker or bubblewrap")
    parser.add_argument("--show", action="store_true", help="print every suggestion that kills")
    options = parser.parse_args()
    suite = load_suite(options.suite)
    pairs = [
        (suite.task(each.task_id), each) for each in load_submissions(options.solutions, suite)
    ]
    target = options.out / "corner_cases.jsonl"
    known = {record["task"] for record in read_records(target)}
    wanted = set(filter(None, options.ids.split(",")))
    pairs = [pair for pair in pairs if not wanted or pair[0].id in wanted]
    with Annotator.engines(options.sandbox, jobs=options.jobs) as (sandbox, recalculator):
        rules = GradingRules(get_profile("standard"), engines=recalculator.identity)
        settings = Settings(sandbox, recalculator, rules, LIMITS, jobs=options.jobs)
        accepted = accepted_of(pairs, settings, options.out / "solutions")
        work = [pair for pair in accepted if pair[0].id not in known][: options.limit]
        print(f"accepted on all cases: {len(accepted)}; to go: {len(work)}", flush=True)
        maker = GoldMaker(recalculator, sandbox, rules=rules, limits=LIMITS)
        lock = threading.Lock()

        def one(pair: tuple[Task, Submission]) -> None:
            record = search(pair[0], pair[1], maker, options.seed)
            with lock:
                append_record(target, record)
                print(line_of(record), flush=True)

        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(one, work))
    report(read_records(target), show=options.show)


def search(task: Task, program: Submission, maker: GoldMaker, seed: int) -> dict[str, Any]:
    """What `judge annotate suggest --submissions` finds for one accepted program."""
    cases = [
        CaseData(each.number, each.input_path.read_bytes(), each.gold_path.read_bytes())
        for each in task.cases
    ]
    started = time.monotonic()
    found: list[Suggestion] = []
    problem = ""
    try:
        found += suggest(
            task, cases[0], maker, others=cases[1:], seed=seed, victims={"accepted": program}
        )
    except JudgeError as error:
        problem = error.message
    return {
        "task": task.id,
        "seconds": round(time.monotonic() - started, 1),
        "ideas": len(found),
        "problem": problem,
        "rejected": Counter(
            each.rejected.partition(":")[0][:70] for each in found if each.rejected
        ),
        "kills": [kill_of(each) for each in found if not each.rejected],
    }


def kill_of(each: Suggestion) -> dict[str, Any]:
    assert each.proposal is not None
    return {
        "number": each.number,
        "state": each.state,
        "why": each.contested,
        "mutator": each.idea.mutator,
        "title": each.idea.title,
        "edits": [describe(edit) for edit in each.idea.edits[:SHOWN_EDITS]],
        "sources": list(each.proposal.agreeing),
        "against": [said_of(trial) for trial in each.kills],
    }


def said_of(trial: Trial) -> str:
    cells = "; ".join(difference_lines(trial.comparison, SHOWN_CELLS))
    return f"{trial.verdict.value} {cells or trial.cause}"


def line_of(record: Mapping[str, Any]) -> str:
    states = Counter(each["state"] for each in record["kills"])
    return (
        f"{record['task']}: {record['ideas']} ideas in {record['seconds']} s, kills: "
        f"{states['sound']} sound, {states['contested']} contested {record['problem']}"
    )


def report(records: Sequence[Mapping[str, Any]], *, show: bool) -> None:
    if not records:
        return
    seconds = [each["seconds"] for each in records]
    by_state = {
        state: [e for e in records if any(kill["state"] == state for kill in e["kills"])]
        for state in ("sound", "contested")
    }
    either = [each for each in records if each["kills"]]
    print(f"\ntasks: {len(records)}, with a problem: {sum(bool(e['problem']) for e in records)}")
    print(f"seconds for a task: median {statistics.median(seconds)}, worst {max(seconds)}")
    for state, found in by_state.items():
        kills = [kill for e in records for kill in e["kills"] if kill["state"] == state]
        print(f"{state} kills: {len(kills)} in {len(found)} tasks")
        mutators = Counter(kill["mutator"] for kill in kills)
        print("  ", ", ".join(f"{name} {count}" for name, count in mutators.most_common()))
    print(f"tasks whose accepted program some suggestion kills: {len(either)}")
    if show:
        for each in either:
            print(f"\n{each['task']}")
            for kill in each["kills"]:
                print(f"  {kill['number']}. {kill['state']} {kill['mutator']}: {kill['title']}")
                print(f"     {'; '.join(kill['edits'])}")
                print(f"     by {', '.join(kill['sources']) or 'nobody'}; {kill['why']}")
                for said in kill["against"]:
                    print(f"     {said}")


if __name__ == "__main__":
    main()
