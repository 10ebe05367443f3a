"""Counts how often the triage rules reject questions that the benchmark's authors selected.

    python benchmarks/triage.py SUITE [--show]

People selected every instruction of a published suite from forum posts, so each "no" of a rule is
wrong, and each "unsure" is a question for a chat model or a person. How the rules handle posts that
people rejected cannot be measured, since those were not published.
"""

from __future__ import annotations

import argparse
from collections import Counter

from benchmarks.command_line import run_command
from judge.authoring.triage import QUESTIONS, Answer, Post, apply_rules, propose
from judge.suites import load_suite


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("suite")
    parser.add_argument(
        "--show", action="store_true", help="print the words that made a rule say no"
    )
    options = parser.parse_args()
    tasks = load_suite(options.suite).tasks
    answers: dict[str, Counter[str]] = {name: Counter() for name in QUESTIONS}
    proposals: Counter[str] = Counter()
    for task in tasks:
        # What a forum would show with the question: that it is solved and has a workbook.
        names = (task.cases[0].input_path.name,)
        post = Post(task.id, "", task.instruction, (), None, True, names, "")
        judgements = apply_rules(post)
        proposals[propose(judgements).value] += 1
        for name, judgement in judgements.items():
            answers[name][judgement.answer.value] += 1
            if options.show and judgement.answer is Answer.NO:
                print(f"{task.id} {name}: {judgement.why}")
    for name, counts in answers.items():
        print(f"{name:20}", *(f"{answer.value} {counts[answer.value]}" for answer in Answer))
    print(f"{len(tasks)} questions; proposed:", dict(proposals))


if __name__ == "__main__":
    run_command(main)
