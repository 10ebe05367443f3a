"""Checks whether suggested cases make accepted programs fail, and what the sources answer.

    .venv/bin/python benchmarks/corner_cases.py SOLUTIONS.jsonl SUITE --out FOLDER

Judges the solutions on all cases. For each solution that passes all cases, `judge annotate suggest`
searches for cases that make this program fail, with the published gold's formulas as the source.
Prints for each task the suggestions that kill the program: those that the tool calls sound, and
those that it leaves to a person, with the answers of both sides.

With `--wrong`, the programs are those of benchmarks/wrong_programs.yaml, which readers found wrong
on a plausible input. Prints the suggestion that kills each program for that reason, its rank, and
how many void suggestions come before it. With `--check`, each is run on the readers' input first.

Continues the results in FOLDER; `--ids` names tasks, `--limit N` takes the first N. Details are
written to FOLDER/corner_cases.jsonl, one line for each task.
"""

from __future__ import annotations

import argparse
import re
import statistics
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.command_line import existing, run_command
from benchmarks.processor_time import Meter
from benchmarks.strength import accepted_of
from judge.annotate.annotator import Annotator
from judge.annotate.answers import answer_of, run_on_workbook
from judge.annotate.archive import append_record, read_records
from judge.annotate.casebook import CaseData
from judge.annotate.edit import apply_edits
from judge.annotate.edits import content_text, describe, parse_assignment
from judge.annotate.gold import GoldMaker
from judge.annotate.strength import Trial
from judge.annotate.suggest import Progress, Suggestion, suggest
from judge.annotate.worth import SAME_EFFECT, doubt_of, ranked
from judge.compare.cells.render import difference_lines
from judge.compare.profiles import get_profile
from judge.core.limits import Limits
from judge.core.submission import Submission
from judge.core.task import Task
from judge.errors import JudgeError, SuiteError
from judge.files.yaml_documents import read_yaml
from judge.grading.batch import Settings
from judge.grading.case import GradingRules
from judge.suites.submissions import load_submissions
from judge.suites.suite import load_suite
from judge.workbook.reader import open_workbook

WRONG = Path(__file__).with_name("wrong_programs.yaml")
LIMITS = Limits(cpu_s=20, wall_s=30)
SHOWN_EDITS = 6
SHOWN_CELLS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("solutions", type=existing)
    parser.add_argument("suite", type=existing)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0, help="of the suggestions")
    parser.add_argument("--ids", default="", help="only these tasks, separated by commas")
    parser.add_argument("--limit", type=int, help="search only the first N tasks")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--sandbox", default="auto", help="docker or bubblewrap")
    parser.add_argument("--show", action="store_true", help="print every suggestion that kills")
    parser.add_argument(
        "--wrong", action="store_true", help="the programs that readers found wrong"
    )
    parser.add_argument(
        "--check", action="store_true", help="first run these programs on the readers' inputs"
    )
    options = parser.parse_args()
    readings = read_yaml(WRONG, SuiteError) if options.wrong else []
    meter = Meter()
    suite = load_suite(options.suite)
    pairs = [
        (suite.task(submission.task_id), submission)
        for submission in load_submissions(options.solutions, suite)
    ]
    target = options.out / "corner_cases.jsonl"
    recorded = {record["task"] for record in read_records(target)}
    wanted = set(filter(None, options.ids.split(","))) or {reading["task"] for reading in readings}
    pairs = [pair for pair in pairs if not wanted or pair[0].id in wanted]
    with Annotator.engines(options.sandbox, jobs=options.jobs) as (sandbox, recalculator):
        rules = GradingRules(get_profile("standard"), engines=recalculator.identity)
        settings = Settings(sandbox, recalculator, rules, LIMITS, jobs=options.jobs)
        options.out.mkdir(parents=True, exist_ok=True)
        accepted = pairs if readings else accepted_of(pairs, settings, options.out / "solutions")
        work = [pair for pair in accepted if pair[0].id not in recorded][: options.limit]
        print(f"accepted on all cases: {len(accepted)}; to go: {len(work)}", flush=True)
        maker = GoldMaker(recalculator, sandbox, rules=rules, limits=LIMITS)
        if options.check:
            check(readings, {pair[0].id: pair for pair in pairs}, maker)
        lock = threading.Lock()

        def one(pair: tuple[Task, Submission]) -> None:
            record = search(pair[0], pair[1], maker, options.seed, meter)
            with lock:
                append_record(target, record)
                print(line_of(record), flush=True)

        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(one, work))
    report(read_records(target), show=options.show)
    if readings:
        report_ranks(readings, {record["task"]: record for record in read_records(target)})


def check(
    readings: Sequence[Mapping[str, Any]],
    pairs: Mapping[str, tuple[Task, Submission]],
    maker: GoldMaker,
) -> None:
    """Runs each program on the input for which a reader found it wrong."""
    for reading in readings:
        if "input" not in reading or reading["task"] not in pairs:
            continue
        task, program = pairs[reading["task"]]
        data = task.cases[0].input_path.read_bytes()
        edits = [parse_assignment(text, "") for text in reading["input"]]
        changed = apply_edits(data, edits, recalculator=maker.recalculator).data
        with maker.sandbox.session() as session:
            outcome = run_on_workbook(session, program, changed, LIMITS)
        answer = f"no answer ({outcome.cause})"
        if outcome.answer is not None and outcome.answer.data is not None:
            gold = maker.answer_in(task, task.cases[0].gold_path.read_bytes(), outcome.answer.data)
            values = answer_of(task, open_workbook(gold or b""), maker.recalculator).values
            ref = parse_assignment(f"{reading['cell']}=", "").ref
            answer = content_text(values.get(ref))
        is_told = answer == reading["gives"] != reading["right"]
        verdict = "wrong, as the reading says" if is_told else "NOT WHAT THE READING SAYS"
        print(
            f"{task.id}: {reading['cell']} is {answer!r}, {verdict}: {reading['right']!r}",
            flush=True,
        )


def report_ranks(
    readings: Sequence[Mapping[str, Any]], records: Mapping[str, Mapping[str, Any]]
) -> None:
    """Prints which suggestion kills each program for the readers' reason, and at which rank."""
    for name in ("first", "second"):
        own = [
            reading
            for reading in readings
            if reading["reading"] == name and reading["task"] in records
        ]
        if not own:
            continue
        first_good: list[int] = []
        for reading in own:
            kills = sorted(records[reading["task"]]["kills"], key=lambda kill: kill["rank"])
            good = [kill for kill in kills if is_good(kill, reading["good"])]
            line = f"no good one of {len(kills)}"
            if good:
                first_good.append(good[0]["rank"] - 1)
                line = f"{good[0]['mutator']} at rank {good[0]['rank']} of {len(kills)}"
            print(f"{name} {reading['task']}: {line}")
        print(f"{name} reading: {len(first_good)} of {len(own)} killed for the readers' reason")
        if first_good:
            median, most = statistics.median(first_good), max(first_good)
            print(f"void suggestions before the first good one: median {median}, largest {most}")
    print_void(readings, records)


def print_void(
    readings: Sequence[Mapping[str, Any]], records: Mapping[str, Mapping[str, Any]]
) -> None:
    """Counts void suggestions among the contested ones, with and without the doubtful ones."""
    kills = [
        (kill, is_good(kill, reading["good"]))
        for reading in readings
        for kill in records.get(reading["task"], {"kills": ()})["kills"]
        if kill["state"] == "contested"
    ]
    shown = [(kill, good) for kill, good in kills if not kill["doubtful"]]
    different = [(kill, good) for kill, good in shown if kill["group"] != SAME_EFFECT]
    for name, listed in (
        ("contested", kills),
        ("contested and not doubtful", shown),
        ("contested, not doubtful, and of another effect than a better one", different),
    ):
        void = sum(not good for _, good in listed)
        share = f" ({void / len(listed):.0%})" if listed else ""
        print(f"{name} suggestions: {len(listed)}, void: {void}{share}")


def is_good(kill: Mapping[str, Any], patterns: Sequence[Mapping[str, str]]) -> bool:
    text = [kill["title"], *kill["edits"]]
    return any(
        kill["mutator"] == pattern["mutator"]
        and any(re.search(pattern.get("change", ""), line) for line in text)
        for pattern in patterns
    )


def search(
    task: Task, program: Submission, maker: GoldMaker, seed: int, meter: Meter
) -> dict[str, Any]:
    """Returns what `judge annotate suggest --submissions` finds for one accepted program."""
    cases = [
        CaseData(case.number, case.input_path.read_bytes(), case.gold_path.read_bytes())
        for case in task.cases
    ]
    started, spent = time.monotonic(), meter.seconds
    last = Progress(0, 0, 0, ())

    def note(progress: Progress) -> None:
        nonlocal last
        last = progress

    suggestions: list[Suggestion] = []
    problem = ""
    try:
        suggestions += suggest(
            task,
            cases[0],
            maker,
            others=cases[1:],
            seed=seed,
            victims={"accepted": program},
            on_progress=note,
        )
    except JudgeError as error:
        problem = error.message
    return {
        "task": task.id,
        "seconds": round(time.monotonic() - started, 1),
        "processor_s": round(meter.seconds - spent, 1),
        "ideas": len(suggestions),
        "problem": problem,
        "rejected": Counter(
            suggestion.rejected.partition(":")[0][:70]
            for suggestion in suggestions
            if suggestion.rejected
        ),
        "kills": [
            kill_of(suggestion) | {"rank": rank, "group": group, "doubtful": doubt}
            for rank, (group, suggestion, doubt) in enumerate(
                (
                    (group, member, doubt_of(member, last.contradictions))
                    for group, members in ranked(
                        [suggestion for suggestion in suggestions if not suggestion.rejected],
                        last.contradictions,
                    )
                    for member in members
                ),
                start=1,
            )
        ],
    }


def kill_of(suggestion: Suggestion) -> dict[str, Any]:
    assert suggestion.proposal is not None
    return {
        "number": suggestion.number,
        "state": suggestion.state,
        "why": suggestion.contested,
        "mutator": suggestion.idea.mutator,
        "title": suggestion.idea.title,
        "edits": [describe(edit) for edit in suggestion.idea.edits[:SHOWN_EDITS]],
        "sources": list(suggestion.proposal.agreeing),
        "against": [said_of(trial) for trial in suggestion.kills],
    }


def said_of(trial: Trial) -> str:
    cells = "; ".join(difference_lines(trial.comparison, SHOWN_CELLS))
    return f"{trial.verdict.value} {cells or trial.cause}"


def line_of(record: Mapping[str, Any]) -> str:
    states = Counter(kill["state"] for kill in record["kills"])
    return (
        f"{record['task']}: {record['ideas']} ideas in {record['seconds']} s, kills: "
        f"{states['sound']} sound, {states['contested']} contested {record['problem']}"
    )


def report(records: Sequence[Mapping[str, Any]], *, show: bool) -> None:
    if not records:
        return
    seconds = [record["seconds"] for record in records]
    by_state = {
        state: [e for e in records if any(kill["state"] == state for kill in e["kills"])]
        for state in ("sound", "contested")
    }
    either = [record for record in records if record["kills"]]
    print(f"\ntasks: {len(records)}, with a problem: {sum(bool(e['problem']) for e in records)}")
    print(f"seconds for a task: median {statistics.median(seconds)}, worst {max(seconds)}")
    spent = [record["processor_s"] for record in records]
    print(f"processor seconds: median {statistics.median(spent)}, worst {max(spent)}")
    for state, killing in by_state.items():
        kills = [kill for e in records for kill in e["kills"] if kill["state"] == state]
        print(f"{state} kills: {len(kills)} in {len(killing)} tasks")
        mutators = Counter(kill["mutator"] for kill in kills)
        print("  ", ", ".join(f"{name} {count}" for name, count in mutators.most_common()))
    print(f"tasks whose accepted program some suggestion kills: {len(either)}")
    if show:
        for record in either:
            print(f"\n{record['task']}")
            for kill in record["kills"]:
                print(f"  {kill['number']}. {kill['state']} {kill['mutator']}: {kill['title']}")
                print(f"     {'; '.join(kill['edits'])}")
                print(f"     by {', '.join(kill['sources']) or 'nobody'}; {kill['why']}")
                for answer in kill["against"]:
                    print(f"     {answer}")


if __name__ == "__main__":
    run_command(main)
