"""Proposes rules for the published pairs of Spider2-V, and compares them with the published ones.

    python -m benchmarks.proposals DATA

DATA is the folder with ``spider2v_calc``. For each pair of input and gold, all proposals are kept.
Counts how many published types of rules are among the proposed ones, how many golds pass, and how
many untouched inputs pass. Nothing is calculated: the values stored in the files count.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from typing import Any

from benchmarks.command_line import existing, parser_of, run_command
from judge.authoring.proposals import propose
from judge.compare.profiles import get_profile
from judge.compare.registry import checker_of
from judge.core.task import CheckerSpec, Task
from judge.grading.case import CaseJudge, GradingRules
from judge.grading.verify import verify_case
from judge.recalc.policy import Recalculator
from judge.suites import load_suite


def main() -> None:
    """Prints a line for each pair whose proposals lack a published type, and the counts."""
    parser = parser_of(__doc__)
    parser.add_argument("data", type=existing)
    suite = load_suite(parser.parse_args().data / "spider2v_calc")
    judge = CaseJudge(Recalculator((), mode="never"), GradingRules(get_profile("standard")))
    counts: Counter[str] = Counter()
    seen = set()
    started = time.process_time()
    for task in suite.tasks:
        (case,) = task.cases
        question, gold = case.input_path, case.gold_path
        pair = question.read_bytes(), gold.read_bytes()
        if pair in seen:
            continue
        seen.add(pair)
        rules = [proposal.rules[0] for proposal in propose([(question, gold)]).listed]
        published, proposed = _types(task.checker.options["rules"]), _types(rules)
        counts["pairs"] += 1
        counts["published types"] += len(published)
        counts["published types proposed"] += len(published & proposed)
        counts["proposed types"] += len(proposed)
        check = verify_case(_with(task, rules), case, judge)
        counts["golds accepted"] += check.gold_accepted
        counts["untouched inputs accepted"] += check.untouched_accepted is True
        if published - proposed:
            print(f"{task.id}: not proposed: {', '.join(sorted(published - proposed))}")
    for name, count in counts.items():
        print(f"{name}: {count}")
    print(f"seconds of processor time: {time.process_time() - started:.1f}")


def _types(rules: Any) -> set[str]:
    return {str(rule["type"]) for rule in rules}


def _with(task: Task, rules: Any) -> Task:
    """Returns the task with other rules."""
    spec = CheckerSpec("rules", {"rules": tuple(rules)})
    checker_of(spec).check_options(spec.options)
    return replace(task, checker=spec)


if __name__ == "__main__":
    run_command(main)
