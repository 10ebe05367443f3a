"""Measures the overhead of `judge.Judge` over programs: 10,000 calls from 8 threads; a sandbox.

    python benchmarks/warm_judge.py [--calls 10000] [--threads 8] [--sandboxed 200]

The first part uses a scripted sandbox (``judge.sandbox.scripted``), so that only the judge's own
work is measured: memory and open files are read after every tenth of the calls. The second part
runs programs of the sample suite in bubblewrap; the overhead of a call is its time minus the
program's wall-clock time, as the sandbox measured it. `judge run` as a separate process is also
measured.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from pathlib import Path

import judge
from benchmarks.command_line import run_command
from judge.core.task import Task
from judge.sandbox.contract import OutputStatus, RunRequest, RunResult, RunStatus
from judge.sandbox.scripted import ScriptedSandbox
from judge.suites.submissions import load_submissions

TASK = "1001"


class ForgetfulSandbox(ScriptedSandbox):
    """Answers every run with the gold of its input, and stores no request."""

    def __init__(self, task: Task) -> None:
        super().__init__()
        self._golds = {
            case.input_path.read_bytes(): case.gold_path.read_bytes() for case in task.cases
        }

    def play(self, request: RunRequest) -> RunResult:
        """Returns the gold."""
        (data,) = request.files.values()
        output = self._golds[data]
        return RunResult(
            RunStatus.OK, OutputStatus.COLLECTED, output=output, output_bytes=len(output)
        )


def memory_mb() -> float:
    """Returns the resident memory of this process."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def open_files() -> int:
    """Counts the open descriptors of this process."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def scripted(calls: int, threads: int) -> None:
    """Measures many calls that run no program."""
    suite = judge.load_suite("sample")
    task = suite.task(TASK)
    options = judge.JudgingOptions(jobs=threads, recalc="never")
    print(f"{calls} calls from {threads} threads, {len(task.cases)} cases each, scripted sandbox")
    with (
        judge.Judge(suite, options, sandbox=ForgetfulSandbox(task)) as opened,
        ThreadPoolExecutor(threads) as pool,
    ):

        def call(number: int) -> float:
            started = time.perf_counter()
            assert opened(TASK, f"print({number})").hard == 1.0
            return time.perf_counter() - started

        started, cpu = time.perf_counter(), time.process_time()
        for part in range(10):
            seconds = list(pool.map(call, range(calls // 10)))
            print(
                f"  after {(part + 1) * (calls // 10):>6} calls: {memory_mb():6.1f} MB, "
                f"{open_files()} descriptors, median call {statistics.median(seconds) * 1e3:.1f} ms"
            )
        wall_s, cpu_s = time.perf_counter() - started, time.process_time() - cpu
    print(f"  {calls / wall_s:.0f} calls/s, {cpu_s / calls * 1e3:.2f} ms of processor time a call")


def programs() -> Iterator[judge.Submission]:
    """Returns the programs of the sample suite that run to their end."""
    suite = judge.load_suite("sample")
    for submission in load_submissions(suite.root / "submissions.jsonl", suite):
        if submission.expected == ("AC",) and submission.code is not None:
            yield submission


def sandboxed(calls: int) -> None:
    """Measures the overhead of calls over the programs' own time, one call after the other."""
    chosen = list(programs())
    options = judge.JudgingOptions(jobs=1, sandbox="bubblewrap")
    started = time.perf_counter()
    with judge.Judge("sample", options) as opened:
        opened(chosen[0].task_id, chosen[0])
        print(f"bubblewrap: opened, and the first call, in {time.perf_counter() - started:.2f} s")
        for submission in chosen:  # engines start with the first formula
            opened(submission.task_id, submission)
        overheads, own = [], []
        for submission in islice(cycle(chosen), calls):
            started = time.perf_counter()
            judged = opened(submission.task_id, submission)
            seconds = time.perf_counter() - started
            ran = sum(case.timings_s["run"] for case in judged.cases)
            cases = len(judged.cases)
            overheads.append((seconds - ran) / cases)
            own.append(ran / cases)
    print(
        f"  {calls} calls of {len(chosen)} programs: median of the program's own time "
        f"{statistics.median(own) * 1e3:.1f} ms a case, beside it "
        f"{statistics.median(overheads) * 1e3:.1f} ms (95th percentile "
        f"{statistics.quantiles(overheads, n=20)[-1] * 1e3:.1f} ms)"
    )


def processes(times: int = 5) -> None:
    """Measures the same with a separate process for each call."""
    submission = next(programs())
    with tempfile.TemporaryDirectory(prefix="judge-warm-") as folder:
        program = Path(folder) / "solution.py"
        program.write_text(submission.code or "")
        command = [
            str(Path(sys.executable).with_name("judge")),
            "run",
            submission.task_id,
            str(program),
        ]
        command += ["--dataset", "sample", "--sandbox", "bubblewrap"]
        seconds = []
        for _ in range(times):
            started = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            seconds.append(time.perf_counter() - started)
    print(f"`judge run` as a process: median {statistics.median(seconds):.2f} s a call")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--sandboxed", type=int, default=200, help="0 for none")
    arguments = parser.parse_args()
    scripted(arguments.calls, arguments.threads)
    if arguments.sandboxed:
        sandboxed(arguments.sandboxed)
        processes()


if __name__ == "__main__":
    run_command(main)
