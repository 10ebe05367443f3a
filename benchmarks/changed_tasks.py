"""Lists the tasks whose score changes with corrections, and why. Takes two runs of the same
submissions, one scored without and one with `--corrections`.

    judge score RUN; cp -r RUN CORRECTED; judge score CORRECTED --corrections
    python -m benchmarks.changed_tasks RUN CORRECTED
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from benchmarks.command_line import existing, run_command
from judge.suites.corrections import known_faults_folder, load_corrections


def scores(run: Path) -> dict[str, tuple[list[str], float | None, float | None]]:
    """Reads the verdicts, the soft and the hard score of each task of a run."""
    report = json.loads((run / "report.json").read_text(encoding="utf-8"))
    return {
        str(task["id"]): (
            [str(code) for code in task["test_case_results"]],
            task["soft_restriction"],
            task["hard_restriction"],
        )
        for task in report["tasks"]
    }


def reasons(suite_format: str) -> dict[str, list[str]]:
    """Reads the reasons for the corrections that ship with the judge, by task."""
    reasons: dict[str, list[str]] = {}
    for correction in load_corrections(known_faults_folder()):
        if correction.format == suite_format and correction.reason not in reasons.setdefault(
            correction.task, []
        ):
            reasons[correction.task].append(correction.reason)
    return reasons


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("run", type=existing)
    parser.add_argument("corrected", type=existing)
    parser.add_argument("--format", default="spreadsheetbench-v0.1", help="of the suite")
    arguments = parser.parse_args()
    before, after = scores(arguments.run), scores(arguments.corrected)
    why = reasons(arguments.format)
    print("| task | published | corrected | soft | hard | why |")
    print("|---|---|---|---|---|---|")
    for task, old in before.items():
        new = after[task]
        if old[0] == new[0]:
            continue
        soft, hard = (f"{_shown(old[at])} to {_shown(new[at])}" for at in (1, 2))
        reason = " ".join(why.get(task, ["no correction of this task"]))
        print(f"| {task} | {' '.join(old[0])} | {' '.join(new[0])} | {soft} | {hard} | {reason} |")


def _shown(score: object) -> str:
    return "not scored" if score is None else f"{float(str(score)):.2f}"


if __name__ == "__main__":
    run_command(main)
