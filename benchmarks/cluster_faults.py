"""Kills workers, scheduler and client of a cluster while a run is judged, and checks the result.

    python benchmarks/cluster_faults.py SUITE SOLUTIONS [--workers 2] [--rounds 3] [--only NAME]

Each round begins in a new results directory; its report is compared with the report of threads:

* ``workers``: three workers are killed at random moments; every case must be on record once, none
  as a judge error, and report.json must be the same, byte for byte.
* ``scheduler``: the process with the scheduler is killed; the command must end with exit code 11,
  and the same command again must give the same report.
* ``joins``: a worker that starts while the others judge must be at work 5 s after it registers with
  the scheduler, with a judged program among its descendants.
* ``interrupt`` and ``client``: the client is ended by Ctrl-C or SIGKILL; 3 s later, no process of
  the run may be alive.

The exit code is 0 if all checks passed. Caches of recalculation are shared between the rounds, so
times are not meaningful.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.command_line import existing, run_command

COMMAND = (sys.executable, "-c", "from judge.cli.main import main; main()")
HOST = "judge.grading.cluster.programs"
INSIDE = "python3 -s -P -c"
GRACE_S = 3.0


def main() -> int:
    """Runs the requested rounds; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite")
    parser.add_argument("solutions", type=existing)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=ROUNDS, action="append")
    parser.add_argument("--expected", type=existing, help="report.json of threads, if it is there")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    # A shell lets background processes ignore Ctrl-C, and all child processes would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    good = True
    with tempfile.TemporaryDirectory(prefix="judge-faults-") as scratch:
        trial = Trial(options.suite, options.solutions, options.workers, Path(scratch), chance)
        trial.expect(options.expected)
        for name in options.only or ROUNDS:
            for number in range(options.rounds if name == "workers" else 1):
                passed, summary = ROUNDS[name](trial)
                print(
                    f"{name} {number + 1}: {'held' if passed else 'FAILED'}: {summary}", flush=True
                )
                good = good and passed
    return 0 if good else 1


class Trial:
    """A suite and its solutions, which are judged again and again."""

    def __init__(
        self, suite: str, solutions: Path, workers: int, scratch: Path, chance: random.Random
    ) -> None:
        self.suite, self.solutions, self.workers = suite, solutions, workers
        self.scratch, self.chance = scratch, chance
        self.report = b""
        self.cases = 0

    def expect(self, report: Path | None) -> None:
        """Returns the report that threads give."""
        if report is None:
            out = self.scratch / "threads"
            started = time.monotonic()
            assert self.start(out, cluster=None).wait() in {0, 1}
            print(f"threads: {time.monotonic() - started:.0f} s", flush=True)
            report = out / "report.json"
        self.report = report.read_bytes()
        self.cases = sum(json.loads(self.report)["overall"]["verdicts"].values())

    def start(self, out: Path, *, cluster: str | None = "") -> subprocess.Popen[bytes]:
        """Starts scoring: on its own workers, on those of an address, or on threads."""
        cluster_options = (
            [] if cluster is None else ["--cluster", cluster or f"local:{self.workers}"]
        )
        arguments = ["score", str(self.solutions), "--dataset", self.suite, "--out", str(out), "-q"]
        return subprocess.Popen(
            [*COMMAND, *arguments, *cluster_options],
            stdout=subprocess.DEVNULL,
            stderr=(self.scratch / "errors.txt").open("ab"),
            start_new_session=True,
        )

    def recorded(self, out: Path) -> list[tuple[str, int, int, str]]:
        """Returns every record as task, sample, case and verdict."""
        path = out / "cases.jsonl"
        if not path.is_file():
            return []
        records = []
        for line in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            records.append((record["task"], record["sample"], record["case"], record["verdict"]))
        return records

    def await_records(self, process: subprocess.Popen[bytes], out: Path, count: int) -> None:
        """Waits until a number of cases is on record."""
        while process.poll() is None and len(self.recorded(out)) < count:
            time.sleep(0.1)

    def whole(self, out: Path) -> tuple[bool, str]:
        """Returns whether a results directory has the expected records and report."""
        records = self.recorded(out)
        twice = sum(count > 1 for count in Counter(record[:3] for record in records).values())
        errors = sum(record[3] == "JE" for record in records)
        same = (out / "report.json").read_bytes() == self.report
        summary = f"{len({each[:3] for each in records})} of {self.cases} cases on record, "
        summary += f"{twice} twice, {errors} JE, report {'identical' if same else 'DIFFERENT'}"
        return same and not twice and not errors and len(records) == self.cases, summary


def killed_workers(trial: Trial) -> tuple[bool, str]:
    """Kills three workers at random moments."""
    out = Path(tempfile.mkdtemp(dir=trial.scratch))
    process = trial.start(out)
    moments = sorted(trial.chance.uniform(0.05, 0.9) for _ in range(3))
    killed = 0
    for moment in moments:
        trial.await_records(process, out, int(moment * trial.cases))
        workers: list[int] = []
        while process.poll() is None and not workers:
            workers = worker_processes(process.pid)
            time.sleep(0.05)
        if workers:
            os.kill(trial.chance.choice(workers), signal.SIGKILL)
            killed += 1
    code = process.wait()
    passed, summary = trial.whole(out)
    moments_text = ", ".join(f"{moment:.0%}" for moment in moments)
    return passed and killed == 3, f"{killed} killed at {moments_text}, exit code {code}, {summary}"


def killed_scheduler(trial: Trial) -> tuple[bool, str]:
    """Kills the scheduler, and runs the same command again."""
    out = Path(tempfile.mkdtemp(dir=trial.scratch))
    process = trial.start(out)
    trial.await_records(process, out, trial.cases // 3)
    os.kill(host_process(process.pid), signal.SIGKILL)
    code = process.wait()
    before = len(trial.recorded(out))
    second_code = trial.start(out).wait()
    passed, summary = trial.whole(out)
    summary = f"exit code {code} after {before} cases, then {second_code}, {summary}"
    return passed and code == 11, summary


def ended_client(number: signal.Signals) -> Callable[[Trial], tuple[bool, str]]:
    """Sends the client a signal."""

    def trial_of(trial: Trial) -> tuple[bool, str]:
        out = Path(tempfile.mkdtemp(dir=trial.scratch))
        process = trial.start(out)
        trial.await_records(process, out, trial.cases // 4)
        family = [process.pid, *descendants(process.pid)]
        os.kill(process.pid, number)
        began = time.monotonic()
        left = alive(family)
        while left and time.monotonic() - began < GRACE_S:
            process.poll()
            time.sleep(0.05)
            left = alive(family)
        seconds = time.monotonic() - began
        process.wait()
        summary = f"{len(family)} processes, {len(left)} alive after {seconds:.1f} s"
        return not left and len(family) > trial.workers, summary

    return trial_of


def processes() -> dict[int, tuple[int, str, str]]:
    """Maps the id of every process, except zombies, to parent, start time and command line."""
    processes_by_id = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if fields[0] != "Z":
            processes_by_id[int(entry.name)] = (int(fields[1]), fields[19], line)
    return processes_by_id


def descendants(pid: int) -> list[int]:
    """Returns all descendants of a process."""
    running = processes()

    def below(parent: int) -> Iterator[int]:
        for child, (above, _, _) in running.items():
            if above == parent:
                yield child
                yield from below(child)

    return list(below(pid))


def alive(pids: list[int]) -> list[int]:
    """Returns those processes that are still running."""
    running = processes()
    return [pid for pid in pids if pid in running]


def host_process(client: int) -> int:
    """Finds the client's process in which the scheduler runs."""
    running = processes()
    return next(pid for pid in descendants(client) if HOST in running[pid][2])


def worker_processes(client: int) -> list[int]:
    """Finds the workers of a client: the processes that the scheduler's process has started."""
    running = processes()
    try:
        host = host_process(client)
    except (StopIteration, KeyError):
        return []
    children = [pid for pid, (above, _, _) in running.items() if above == host]
    return [pid for pid in children if "spawn_main" in running[pid][2]]


def joining_worker(trial: Trial) -> tuple[bool, str]:
    """Lets a second worker join a scheduler while its first worker judges."""
    folder = Path(tempfile.mkdtemp(dir=trial.scratch))
    os.environ["JUDGE_CLUSTER_CERTIFICATES"] = str(folder / "keys")
    subprocess.run([*COMMAND, "cluster", "certificates", str(folder / "keys")], check=True)
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> str:
        with (folder / name).open("wb") as log:
            process = subprocess.Popen([*COMMAND, "cluster", *arguments], stdout=log)
        started.append(process)
        while " at " not in (output := (folder / name).read_text()):
            assert process.poll() is None
            time.sleep(0.02)
        return output.split()[-1]

    try:
        address = start("scheduler", "scheduler", "--listen", "tls://127.0.0.1:0")
        start("first", "worker", address, "-n", "1")
        out = folder / "run"
        client = trial.start(out, cluster=address)
        started.append(client)
        trial.await_records(client, out, max(1, trial.cases // 10))
        start("second", "worker", address, "-n", "1")
        joined, second = time.monotonic(), started[-1].pid
        while client.poll() is None and not judging(second):
            time.sleep(0.02)
        seconds = time.monotonic() - joined
        return client.poll() is None and seconds <= 5.0, f"at work after {seconds:.1f} s"
    finally:
        for child in reversed(started):
            child.terminate()
            child.wait()


def judging(worker: int) -> bool:
    """Returns whether a judged program, forked by a warden, runs below a worker."""
    running = processes()
    wardens = {pid for pid in descendants(worker) if pid in running and INSIDE in running[pid][2]}
    return any(running[pid][0] in wardens for pid in wardens)


ROUNDS = {
    "workers": killed_workers,
    "scheduler": killed_scheduler,
    "joins": joining_worker,
    "interrupt": ended_client(signal.SIGINT),
    "client": ended_client(signal.SIGKILL),
}

if __name__ == "__main__":
    run_command(main)
