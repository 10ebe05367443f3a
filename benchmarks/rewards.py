"""Measures the overhead of a reward over its program: 1,000 rewards of a warm judge, in bubblewrap.

    python benchmarks/rewards.py [--rewards 1000] [--jobs 1] [--solutions FILE --dataset SUITE]

The replies are the sample suite's submissions that end before their limits (or those of the file),
repeated. The judge measures the wall-clock time of each program; the rest of a reward's time is the
judge's own: starting the program's process, reading and comparing workbooks, computing formulas.
Each reply's reward is compared with the verdict of `judge score`.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

import judge
from benchmarks.command_line import existing, run_command
from judge.api.rewards import reward_of
from judge.core.score import score_verdicts
from judge.core.verdict import Verdict
from judge.grading.store import RunDirectory
from judge.suites import Suite
from judge.suites.submissions import load_submissions

SLOW = {"TLE", "MLE"}


@dataclass(frozen=True)
class Took:
    """The seconds of one reward per case, and the programs' part of them."""

    all_s: float
    run_s: float


def replies(suite: Suite, path: Path) -> list[judge.Submission]:
    """Reads the submissions of a file, except those made to run into a limit."""
    return [
        submission
        for submission in load_submissions(path, suite)
        if not SLOW & set(submission.expected or ())
    ]


def expected(path: Path, suite: Suite, chosen: list[judge.Submission]) -> dict[str, float]:
    """Returns the verdicts of `judge score`, by task and sample."""
    with tempfile.TemporaryDirectory(prefix="judge-rewards-") as folder:
        out = Path(folder) / "run"
        options = judge.ScoreOptions(dataset=str(suite.root), out=out, sandbox="bubblewrap")
        judge.score(path, options)
        cases: dict[str, list[tuple[int, Verdict]]] = {}
        for case in RunDirectory(out).read_records("cases.jsonl"):
            key = f"{case['task']}/{case['sample']}"
            cases.setdefault(key, []).append(
                (int(str(case["case"])), Verdict(str(case["verdict"])))
            )
    wanted = {f"{submission.task_id}/{submission.sample}" for submission in chosen}
    by_key = {}
    for key, verdicts in cases.items():
        codes = [verdict for _, verdict in sorted(verdicts)]
        soft = score_verdicts("", 0, codes, [float(code is Verdict.AC) for code in codes]).soft
        if key in wanted and soft is not None:
            by_key[key] = soft
    return by_key


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rewards", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--solutions", type=existing)
    parser.add_argument("--dataset", default="sample")
    arguments = parser.parse_args()
    suite = judge.load_suite(arguments.dataset)
    path = arguments.solutions or suite.root / "submissions.jsonl"
    chosen = replies(suite, path)
    expected_rewards = expected(path, suite, chosen)
    options = judge.JudgingOptions(jobs=arguments.jobs, sandbox="bubblewrap")
    differing: set[str] = set()
    with judge.Rewards(suite, "soft", options) as rewards:

        def one(submission: judge.Submission) -> Took:
            started = time.perf_counter()
            judged = rewards.judge(submission.task_id, submission)
            reward = reward_of(judged, "soft")
            took_s = time.perf_counter() - started
            if reward != expected_rewards.get(f"{submission.task_id}/{submission.sample}"):
                differing.add(f"{submission.task_id}/{submission.sample}")
            run_s = sum(case.timings_s.get("run", 0.0) for case in judged.cases)
            return Took(took_s / len(judged.cases), run_s / len(judged.cases))

        with ThreadPoolExecutor(arguments.jobs) as threads:
            list(threads.map(one, chosen))  # engines start with the first formula
            started = time.perf_counter()
            timings = list(threads.map(one, islice(cycle(chosen), arguments.rewards)))
            wall_s = time.perf_counter() - started
    ran = [timing for timing in timings if timing.run_s]
    print(
        f"{len(timings)} rewards of {len(chosen)} replies, {arguments.jobs} at a time, "
        f"{wall_s:.0f} s: {len(timings) / wall_s:.1f} rewards a second"
    )
    for name, values in (
        ("a reward", [timing.all_s for timing in ran]),
        ("the program's own time", [timing.run_s for timing in ran]),
        ("beside it", [timing.all_s - timing.run_s for timing in ran]),
    ):
        print(
            f"  {name}: median {statistics.median(values) * 1e3:.0f} ms a case, 95th percentile "
            f"{statistics.quantiles(values, n=20)[-1] * 1e3:.0f} ms"
        )
    print(f"  replies whose reward is not what `judge score` says: {sorted(differing) or 'none'}")


if __name__ == "__main__":
    run_command(main)
