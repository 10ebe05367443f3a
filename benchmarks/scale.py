"""Measures cases per second by workers, the client's memory by cases, and the share of each phase.

    python benchmarks/scale.py [--copies 8] [--workers 1,2,4,8] [--plots docs/plots]
        [--suite SUITE --solutions SOLUTIONS.jsonl] [--json FILE]

The solutions of the sample suite with accepted or wrong answers, each as several samples, are
judged by threads, by ``local:N`` for each number of workers, and by threads again: as many threads
as processors. A first round, which is not counted, fills the cache of recalculation for all of
them. All reports of a round must be identical.

Processor time is that of a control group around each command, including all programs and
calculation engines that it started; without the right to make a group, the script ends. The
client's memory is read from ``/proc`` while it works.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.cluster_faults import host_process
from benchmarks.command_line import existing, run_command
from benchmarks.lines import bars, lines
from benchmarks.scatter import Series
from judge.sandbox.backends.cgroups import find_groups
from judge.suites import load_suite
from judge.suites.submissions import load_submissions

COMMAND = (sys.executable, "-c", "from judge.cli.main import main; main()")
PHASES = ("run", "recalculation", "comparison")
SAMPLE = Path(__file__).resolve().parents[1] / "dataset" / "sample" / "submissions.jsonl"
COMPARED = {"AC", "WA"}


@dataclass
class Round:
    """The measurements of one command.

    Attributes:
        name: ``threads`` or ``local:N``.
        workers: how many cases are judged at a time.
        cases: how many cases were judged.
        wall_s: wall-clock seconds.
        cpu_s: processor seconds of everything that was started.
        phases: phase -> wall-clock seconds, summed over all cases.
        memory: pairs of cases on record and bytes of the client, over time.
        own_s: processor seconds of the client, and of its process with the scheduler, from the
            first record on.
        report: the report.
    """

    name: str
    workers: int
    cases: int = 0
    wall_s: float = 0.0
    cpu_s: float = 0.0
    phases: dict[str, float] = field(default_factory=dict)
    memory: list[tuple[int, int]] = field(default_factory=list)
    own_s: dict[str, float] = field(default_factory=dict)
    report: bytes = b""

    @property
    def rate(self) -> float:
        """The number of cases per second."""
        return self.cases / self.wall_s


def main() -> None:
    """Measures, prints and draws."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", default="sample")
    parser.add_argument("--solutions", type=existing, default=SAMPLE)
    parser.add_argument("--copies", type=int, default=8)
    parser.add_argument("--workers", default="1,2,4,8")
    parser.add_argument("--plots", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    counts = [int(count) for count in options.workers.split(",")]
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(prefix="judge-scale-") as scratch:
        folder = Path(scratch)
        once = copied(options.suite, options.solutions, 1, folder / "once.jsonl")
        measure(options.suite, once, Round("warm", cores), folder)
        many = copied(options.suite, options.solutions, options.copies, folder / "many.jsonl")
        plan = [Round("threads", cores), *(Round(f"local:{n}", n) for n in counts)]
        plan.append(Round("threads again", cores))
        rounds = [measure(options.suite, many, planned, folder) for planned in plan]
    show(rounds)
    if options.json is not None:
        figures = [{**asdict(round_), "report": len(round_.report)} for round_ in rounds]
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    if options.plots is not None:
        draw(rounds, options.plots)
    if len({round_.report for round_ in rounds}) != 1:
        sys.exit("the reports differ")


def copied(suite: str, solutions: Path, copies: int, out: Path) -> Path:
    """Writes each solution several times, as further samples of its task."""
    loaded = load_suite(suite)
    samples: dict[str, int] = {}
    with out.open("w", encoding="utf-8") as file:
        for submission in load_submissions(solutions, loaded):
            if submission.expected and not set(submission.expected) <= COMPARED:
                continue
            for _ in range(copies):
                sample = samples[submission.task_id] = samples.get(submission.task_id, -1) + 1
                record = {
                    "id": submission.task_id,
                    "sample": sample,
                    "solution": f"```python\n{submission.code}\n```",
                    "input_path": submission.input_path,
                    "output_path": submission.output_path,
                }
                file.write(json.dumps(record) + "\n")
    return out


def measure(suite: str, solutions: Path, round_: Round, folder: Path) -> Round:
    """Runs one command."""
    out = folder / round_.name.replace(":", "-").replace(" ", "-")
    arguments = ["score", str(solutions), "--dataset", suite, "--out", str(out), "--quiet"]
    if round_.name.startswith("local:"):
        arguments += ["--cluster", round_.name]
    else:
        arguments += ["--jobs", str(round_.workers)]
    group, started = Group(), time.monotonic()
    command = [*group.entering(), *COMMAND, *arguments]
    client = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    first: dict[str, float] = {}
    while client.poll() is None:
        used = _own_s(client.pid)
        first = first or (used if _lines(out / "cases.jsonl") else {})
        round_.own_s = {name: seconds - first.get(name, seconds) for name, seconds in used.items()}
        round_.memory.append((_lines(out / "cases.jsonl"), _resident_bytes(client.pid)))
        time.sleep(0.5)
    round_.wall_s = time.monotonic() - started
    round_.cpu_s = group.end()
    records = [json.loads(line) for line in (out / "cases.jsonl").read_text().splitlines()]
    round_.cases = len(records)
    round_.phases = {
        name: sum(record["timings_s"].get(name, 0.0) for record in records) for name in PHASES
    }
    round_.report = (out / "report.json").read_bytes()
    round_.memory = [sample for sample in round_.memory if sample[0] and sample[1]]
    print(
        f"{round_.name}: {round_.cases} cases, {round_.wall_s:.1f} s, {round_.cpu_s:.1f} s of CPU"
    )
    return round_


class Group:
    """Makes a control group whose processor time is measured."""

    def __init__(self) -> None:
        groups = find_groups()
        if groups is None:
            sys.exit("no control group can be made here: run as root, or with systemd-run --scope")
        self._folder = groups.homes["cpu"] / f"scale-{os.getpid()}-{time.monotonic_ns()}"
        self._folder.mkdir()

    def entering(self) -> list[str]:
        """Returns the beginning of a command that enters the group."""
        return ["sh", "-c", 'echo $$ > "$0" && exec "$@"', str(self._folder / "cgroup.procs")]

    def end(self) -> float:
        """Waits for the last process, removes the group; returns its processor seconds."""
        while any(path.read_text().strip() for path in self._folder.rglob("cgroup.procs")):
            time.sleep(0.05)
        used = self._used_s()
        for folder in sorted(self._folder.rglob("*"), reverse=True):
            if folder.is_dir():
                folder.rmdir()
        self._folder.rmdir()
        return used

    def _used_s(self) -> float:
        usage = self._folder / "cpuacct.usage"
        if usage.is_file():
            return int(usage.read_text()) / 1e9
        line = (self._folder / "cpu.stat").read_text().splitlines()[0]
        return int(line.split()[1]) / 1e6


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.is_file() else 0


def _own_s(client: int) -> dict[str, float]:
    """Returns the processor seconds so far of a client and of its process with the scheduler."""
    pids = {"client": client}
    with contextlib.suppress(StopIteration, KeyError):
        pids["scheduler"] = host_process(client)
    used = {}
    for name, pid in pids.items():
        with contextlib.suppress(OSError):
            fields = (
                Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
            )
            used[name] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return used


def _resident_bytes(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    for line in status.splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def show(rounds: Sequence[Round]) -> None:
    """Prints a table."""
    threads = [round_ for round_ in rounds if round_.name.startswith("threads")]
    usual = sum(round_.cpu_s for round_ in threads) / len(threads)
    titles = ("", "cases/s", "processor s", "against threads", "client, MB", "ms a case in it")
    print(f"| {' | '.join((*titles, 'ms a case in the scheduler'))} |")
    print("|---|---|---|---|---|---|---|")
    for round_ in rounds:
        memory = round_.memory[-1][1] / 1e6 if round_.memory else 0.0
        extra = round_.cpu_s / usual - 1
        own = [
            1000 * round_.own_s.get(name, 0.0) / round_.cases for name in ("client", "scheduler")
        ]
        print(
            f"| {round_.name} | {round_.rate:.2f} | {round_.cpu_s:.1f} | {extra:+.1%} "
            f"| {memory:.0f} | {own[0]:.1f} | {own[1]:.1f} |"
        )


def draw(rounds: Sequence[Round], folder: Path) -> None:
    """Writes the plots."""
    clusters = [round_ for round_ in rounds if round_.name.startswith("local:")]
    threads = next(round_ for round_ in rounds if round_.name == "threads")
    measured = Series("local:N", [(round_.workers, round_.rate) for round_ in clusters])
    baseline = Series("threads", [(threads.workers, threads.rate)])
    plots = {
        "scale-rate": lines("Cases per second", "workers", "cases/s", [measured, baseline]),
        "scale-memory": lines(
            "Memory of the client",
            "cases on record",
            "MB",
            [
                Series(round_.name, [(cases, size / 1e6) for cases, size in round_.memory])
                for round_ in (threads, clusters[-1])
            ],
        ),
        "scale-phases": bars(
            "Where the time of the workers goes",
            {
                round_.name: {
                    **round_.phases,
                    "all else": max(
                        0.0, round_.workers * round_.wall_s - sum(round_.phases.values())
                    ),
                }
                for round_ in (threads, *clusters)
            },
        ),
    }
    for name, svg in plots.items():
        (folder / f"{name}.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    run_command(main)
