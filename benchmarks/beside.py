"""Compares two checkouts of the judge: how long starting, comparing and scoring take.

    .venv/bin/python -m benchmarks.beside OTHER DATA [--rounds 5] [--limit 30] [--only NAME …]

OTHER is another checkout with its own ``.venv``; DATA is the folder of the published suites. Each
round runs every measurement in a separate process, in one checkout and then in the other, in
alternating order. Processor seconds are those of the process and its children, which include the
engines and sandboxed programs that `judge score` starts. Prints medians, and the median of the
ratios of all rounds.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.command_line import existing, run_command
from benchmarks.pairs import SUITE

HERE = Path(__file__).resolve().parent.parent
SOLUTIONS = "model_solutions/single_claude_dev100.jsonl"

COMPARE = """
import sys
try:
    from judge.compare.cells.computing import compare_files
except ImportError:  # a checkout of before
    from judge.comparison.api import compare_workbooks as compare_files
from judge import load_suite
suite = load_suite(sys.argv[1])
for task in suite.tasks[:int(sys.argv[2])]:
    details = getattr(task, "details", None)
    if details is None:
        position, sheet = task.answer_position, task.answer_sheet
    else:
        position, sheet = details["answer_position"], details.get("answer_sheet")
    for case in task.cases:
        compare_files(case.gold_path, case.gold_path, position, answer_sheet=sheet)
        compare_files(case.gold_path, case.input_path, position, answer_sheet=sheet)
"""


STARTED = [  # the commands whose start is measured
    *("score", "run", "report", "compare-runs", "view", "rejudge", "audit", "verify", "compare"),
    *("facts", "recalc", "engines", "infer", "desktop", "dataset", "annotate", "hack", "cluster"),
    *("sandbox", "doctor"),
]


def commands(root: Path, data: Path, limit: int, out: Path) -> dict[str, list[str]]:
    """Returns the commands that are measured in a checkout, in their order."""
    python, judge = str(root / ".venv/bin/python"), str(root / ".venv/bin/judge")
    suite = str(data / SUITE)
    score = [
        judge, "score", str(data / SOLUTIONS), "--dataset", suite, "--out", str(out),
        "--sandbox", "bubblewrap", "--limit", str(limit), "--json",
    ]  # fmt: skip
    return {
        "import judge": [python, "-c", "import judge"],
        "judge --version": [judge, "--version"],
        **{f"judge {name} --help": [judge, name, "--help"] for name in STARTED},
        "compare golds and inputs": [python, "-c", COMPARE, suite, "300"],
        "judge score": score,
        "judge score, verdicts reused": score,
        "judge report": [judge, "report", str(out), "--out", str(out / "page.html")],
    }


def environment() -> dict[str, str]:
    """The environment of all commands; without it, some machines compile every module each time."""
    return {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def measure(command: list[str], root: Path) -> tuple[float, float]:
    """Measures the wall-clock and processor seconds that a command takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    done = subprocess.run(
        command, cwd=root, env=environment(), capture_output=True, text=True, check=False
    )
    wall_s = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    cpu_s = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return wall_s, cpu_s


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("other", type=existing)
    parser.add_argument("data", type=existing)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--limit", type=int, default=30, help="tasks that `judge score` grades")
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    roots = {"other": options.other.resolve(), "this": HERE}
    data = options.data.resolve()
    measured: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for root in roots.values():  # an installed judge is compiled, too
        compiling = [str(root / ".venv/bin/python"), "-m", "compileall", "-q", str(root / "judge")]
        subprocess.run(compiling, env=environment(), check=True)
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(options.rounds):
            for side in sorted(roots, reverse=bool(number % 2)):
                out = Path(scratch) / f"{side}-{number}"
                for name, command in commands(roots[side], data, options.limit, out).items():
                    if not options.only or name in options.only:
                        times = measure(command, roots[side])
                        measured.setdefault((name, side), []).append(times)
    print(
        f"{'medians of ' + str(options.rounds):28}{'other s':>20}{'this s':>20}{'this / other':>16}"
    )
    for name in dict.fromkeys(name for name, _ in measured):
        for kind, label in enumerate(("clock", "processor")):
            other, this = ([times[kind] for times in measured[name, side]] for side in roots)
            ratios = [mine / theirs for mine, theirs in zip(this, other, strict=True)]
            print(
                f"{name + ', ' + label:40}{statistics.median(other):8.3f}"
                f"{statistics.median(this):20.3f}{statistics.median(ratios):16.2f}"
            )


if __name__ == "__main__":
    run_command(main)
