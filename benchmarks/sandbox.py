"""Measures the cost of isolation: latency of a small job, and throughput of real solutions.

    .venv/bin/python -m benchmarks.sandbox latency [--rounds 30]
    .venv/bin/python -m benchmarks.sandbox throughput SOLUTIONS.jsonl SUITE [--jobs 2] [--limit N]
    .venv/bin/python -m benchmarks.sandbox both SOLUTIONS.jsonl SUITE
    .venv/bin/python -m benchmarks.sandbox imports SOLUTIONS.jsonl SUITE
    .venv/bin/python -m benchmarks.sandbox endurance --sandbox docker [--runs 10000]

All contestants run interleaved, so that a machine that slows down slows them all. ``subprocess`` is
a plain ``python solution.py`` without isolation and with the same packages; paths are replaced in
its text, since it has no ``/mnt/data``.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import queue
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import openpyxl

from benchmarks.command_line import existing, run_command
from judge.closable import Closable
from judge.sandbox import open_sandbox
from judge.sandbox.backends.bubblewrap import BubblewrapSandbox
from judge.sandbox.backends.cgroups import find_groups
from judge.sandbox.backends.docker import DockerSandbox, image_tags
from judge.sandbox.contract import OutputStatus, RunRequest, RunStatus, Sandbox
from judge.sandbox.roots import python_root
from judge.suites import load_suite
from judge.suites.submissions import load_submissions

YARDSTICK = """\
import openpyxl
workbook = openpyxl.load_workbook("/mnt/data/input/1_1_input.xlsx")
workbook.active["A1"] = 5
workbook.save("/mnt/data/output/1_1_output.xlsx")
"""


class Session(Protocol):
    """Runs the cases of one submission."""

    def run(self, request: RunRequest) -> Any:
        """Runs one case."""
        ...

    def close(self) -> None:
        """Ends it."""
        ...


class Contestant(Protocol):
    """A way to run solutions."""

    def session(self) -> Session:
        """Opens a place for one submission."""
        ...

    def close(self) -> None:
        """Ends it."""
        ...


@dataclass(frozen=True)
class PlainResult:
    """The part of a result that the benchmark needs."""

    status: RunStatus
    output_status: OutputStatus
    wall_s: float


class PlainSession(Closable):
    """Runs a separate process for each case, without isolation."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()

    def run(self, request: RunRequest) -> PlainResult:
        """Runs one program."""
        root = Path(self._folder.name)
        started = time.perf_counter()
        for path, content in request.files.items():
            target = root / path[1:]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        assert request.collect is not None
        output = root / request.collect[1:]
        output.parent.mkdir(parents=True, exist_ok=True)
        program = root / "solution.py"
        program.write_text(request.program.replace("/mnt/", f"{root}/mnt/"), encoding="utf-8")
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{python_root()}/opt/judge/site"}
        environment |= {"OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
        done = subprocess.run(
            [sys.executable, str(program)],
            capture_output=True,
            check=False,
            env=environment,
            cwd=root,
        )
        exists = output.is_file()
        if exists:
            output.read_bytes()
            output.unlink()
        return PlainResult(
            RunStatus.OK if done.returncode == 0 else RunStatus.EXITED,
            OutputStatus.COLLECTED if exists else OutputStatus.MISSING,
            time.perf_counter() - started,
        )

    def close(self) -> None:
        """Removes the folder."""
        self._folder.cleanup()


class Plain:
    """The contestant without isolation."""

    def session(self) -> PlainSession:
        """Opens a folder."""
        return PlainSession()

    def close(self) -> None:
        """Does nothing: there is nothing to end."""


CONTESTANTS: dict[str, Callable[[int], Contestant]] = {
    "subprocess": lambda _: Plain(),
    "docker": lambda jobs: open_sandbox("docker", jobs=jobs),
    "docker, used once": lambda jobs: DockerSandbox(image_tags(), jobs=jobs, nested=False),
    "bubblewrap": lambda jobs: open_sandbox("bubblewrap", jobs=jobs),
    "bubblewrap, used once": lambda jobs: BubblewrapSandbox(jobs=jobs, reuse=False),
}


@contextmanager
def contestants(names: Sequence[str], jobs: int) -> Iterator[dict[str, Contestant]]:
    """Opens all contestants."""
    opened: dict[str, Contestant] = {}
    try:
        for name in names:
            opened[name] = CONTESTANTS[name](jobs)
        yield opened
    finally:
        for contestant in opened.values():
            contestant.close()


def latency(arguments: argparse.Namespace) -> dict[str, Any]:
    """Measures milliseconds of the standard job, warm: open, first case, next case, close."""
    request = RunRequest(
        YARDSTICK,
        {"/mnt/data/input/1_1_input.xlsx": workbook()},
        "/mnt/data/output/1_1_output.xlsx",
    )
    times: dict[str, dict[str, list[float]]] = {}
    with contestants(arguments.contestants, 1) as opened:
        for turn in range(arguments.rounds + 2):
            for name, contestant in opened.items():
                steps = one_latency(contestant, request)
                time.sleep(arguments.pause)  # the pool prepares the next sandbox
                if turn >= 2:
                    for step, seconds in steps.items():
                        times.setdefault(name, {}).setdefault(step, []).append(seconds * 1000)
    return {
        name: {step: round(statistics.median(values), 1) for step, values in steps.items()}
        for name, steps in times.items()
    }


def one_latency(contestant: Contestant, request: RunRequest) -> dict[str, float]:
    """Measures seconds of each step of a submission with two cases."""
    marks = [time.perf_counter()]
    session = contestant.session()
    marks.append(time.perf_counter())
    for _ in range(2):
        result = session.run(request)
        assert result.output_status is OutputStatus.COLLECTED, result
        marks.append(time.perf_counter())
    session.close()
    marks.append(time.perf_counter())
    names = ("open", "first_case", "next_case", "close")
    return {name: marks[i + 1] - marks[i] for i, name in enumerate(names)}


def workbook() -> bytes:
    """Makes a workbook of about 10 KB."""
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in range(1, 120):
        for column in range(1, 9):
            sheet.cell(row, column, row * column + 0.5 if column % 2 else f"text {row}")
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def throughput(arguments: argparse.Namespace) -> dict[str, Any]:
    """Measures cases per second on real solutions; the contestants take turns."""
    suite = load_suite(arguments.suite)
    work = []
    for submission in load_submissions(arguments.solutions, suite)[: arguments.limit]:
        inputs = [case.input_path.read_bytes() for case in suite.task(submission.task_id).cases]
        requests = [
            RunRequest(
                submission.code or "", {submission.input_path: content}, submission.output_path
            )
            for content in inputs
        ]
        work.append(requests)
    cases = sum(len(requests) for requests in work)
    seconds: dict[str, list[float]] = {name: [] for name in arguments.contestants}
    outcomes: dict[str, list[tuple[str, str]]] = {name: [] for name in arguments.contestants}
    inner = dict.fromkeys(arguments.contestants, 0.0)
    with contestants(arguments.contestants, arguments.jobs) as opened:
        for contestant in opened.values():
            run_all(contestant, work[:1], 1)  # starts pools and fills the page cache
            time.sleep(1)
        for first in range(0, len(work), arguments.batch):
            part = work[first : first + arguments.batch]
            for name, contestant in opened.items():
                started = time.perf_counter()
                results = run_all(contestant, part, arguments.jobs)
                seconds[name].append(time.perf_counter() - started)
                outcomes[name] += [
                    (result.status.value, result.output_status.value) for result in results
                ]
                inner[name] += sum(result.wall_s for result in results)
                time.sleep(0.5)
    plain = seconds.get("subprocess")
    return {
        name: {
            "cases": cases,
            "seconds": round(sum(seconds[name]), 2),
            "cases_per_s": round(cases / sum(seconds[name]), 2),
            "times_subprocess": round(sum(plain) / sum(seconds[name]), 2) if plain else None,
            "median_of_batches": _median_ratio(plain, seconds[name]) if plain else None,
            "mean_wall_ms": round(1000 * inner[name] / cases, 1),
            "other_outcomes": sum(
                a != b for a, b in zip(outcomes[name], next(iter(outcomes.values())), strict=True)
            ),
        }
        for name in arguments.contestants
    }


def _median_ratio(plain: list[float], own: list[float]) -> float:
    """Computes speed ratios for each batch, so that a busy minute only affects one batch."""
    return round(statistics.median(a / b for a, b in zip(plain, own, strict=True)), 2)


def both(arguments: argparse.Namespace) -> dict[str, Any]:
    """Measures latency and throughput in one run."""
    return {"latency_ms": latency(arguments), "throughput": throughput(arguments)}


def run_all(contestant: Contestant, work: list[list[RunRequest]], jobs: int) -> list[Any]:
    """Runs submissions with ``jobs`` workers; returns results in order."""

    def one(requests: list[RunRequest]) -> list[Any]:
        session = contestant.session()
        try:
            return [session.run(request) for request in requests]
        finally:
            session.close()

    with ThreadPoolExecutor(jobs) as pool:
        return [result for results in pool.map(one, work) for result in results]


IMPORTS = """\
import atexit, builtins, json, sys, time
def ends(had=set(sys.modules), spent=[0.0, 0], real=builtins.__import__, clock=time.process_time):
    def timed(*given, **named):
        started = None if spent[1] else clock()
        spent[1] += 1
        try:
            return real(*given, **named)
        finally:
            spent[1] -= 1
            if started is not None:
                spent[0] += clock() - started
    builtins.__import__ = timed
    def report():
        modules = sorted(set(sys.modules) - had)
        sys.stderr.write("\\n@" + json.dumps([modules, spent[0], clock()]))
    atexit.register(report)
ends()
"""
"""Begins a program that reports, at its end, the modules that it imported, and the seconds."""


def imports(arguments: argparse.Namespace) -> dict[str, Any]:
    """Counts the modules that solutions import beyond those that are imported in advance."""
    suite = load_suite(arguments.suite)
    modules: Counter[str] = Counter()
    spent = [0.0, 0.0]
    unknown = 0
    with contextlib.closing(CONTESTANTS[arguments.sandbox](arguments.jobs)) as opened:
        for submission in load_submissions(arguments.solutions, suite)[: arguments.limit]:
            content = suite.task(submission.task_id).cases[0].input_path.read_bytes()
            program = IMPORTS + (submission.code or "")
            files = {submission.input_path: content}
            (result,) = run_all(opened, [[RunRequest(program, files, submission.output_path)]], 1)
            _, mark, report = result.stderr.rpartition(b"\n@")
            if not mark:
                unknown += 1  # it was ended from outside, or did not compile
                continue
            imported, *seconds = json.loads(report)
            modules.update(imported)
            spent = [total + more for total, more in zip(spent, seconds, strict=True)]
    return {
        "programs without a report": unknown,
        "import_s": round(spent[0], 3),
        "all_s": round(spent[1], 3),
        "modules": dict(modules.most_common()),
    }


def endurance(arguments: argparse.Namespace) -> dict[str, Any]:
    """Runs many programs in one pool: memory, descriptors and processes must not grow."""
    opened: Sandbox = CONTESTANTS[arguments.sandbox](arguments.jobs)  # type: ignore[assignment]
    request = RunRequest("print('ran')", {}, None)
    left: queue.SimpleQueue[int] = queue.SimpleQueue()
    submissions = arguments.runs // arguments.cases
    for number in range(submissions):
        left.put(number)
    samples: list[dict[str, Any]] = []
    lock = threading.Lock()
    started = time.perf_counter()

    def work() -> None:
        while True:
            try:
                number = left.get_nowait()
            except queue.Empty:
                return
            session = opened.session()
            try:
                for _ in range(arguments.cases):
                    assert session.run(request).stdout == b"ran\n"
            finally:
                session.close()
            if number % max(1, submissions // 10) == 0:
                with lock:
                    samples.append({"runs": number * arguments.cases, **footprint()})

    try:
        with ThreadPoolExecutor(arguments.jobs) as pool:
            for future in [pool.submit(work) for _ in range(arguments.jobs)]:
                future.result()
        seconds = time.perf_counter() - started
    finally:
        opened.close()
    time.sleep(2)
    samples.append({"runs": "closed", **footprint()})
    for sample in samples:
        print(sample, file=sys.stderr)
    return {"runs": arguments.runs, "seconds": round(seconds, 1), "samples": samples}


def footprint() -> dict[str, Any]:
    """Counts the present resources of the judge and its children."""
    children = subprocess.run(
        ["pgrep", "-c", "-P", str(os.getpid())], capture_output=True, text=True, check=False
    )
    containers = subprocess.run(
        ["docker", "ps", "-aq", "--filter", "label=judge.sandbox"],
        capture_output=True,
        text=True,
        check=False,
    )
    tree = find_groups()
    homes = set(tree.homes.values()) if tree is not None else set()
    groups = sum(1 for home in homes for _ in home.glob(f"judge-{os.getpid()}-*"))
    return {
        "resident_mib": round(int(Path("/proc/self/statm").read_text().split()[1]) / 256, 1),
        "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        "descriptors": sum(1 for _ in Path("/proc/self/fd").iterdir()),
        "threads": threading.active_count(),
        "children": int(children.stdout or 0),
        "containers": len(containers.stdout.split()),
        "control_groups": groups,
        **docker_disk(),
    }


def docker_disk() -> dict[str, int]:
    """Counts layers and containers' folders on the daemon's disk, if that is on this machine."""
    docker_info = subprocess.run(
        ["docker", "info", "--format", "{{.DockerRootDir}}"],
        capture_output=True,
        text=True,
        check=False,
    )
    root = Path(docker_info.stdout.strip() or "/nowhere")
    counts = {}
    for name, folder in (("docker_layers", "overlay2"), ("docker_folders", "containers")):
        with contextlib.suppress(OSError):
            counts[name] = sum(1 for _ in (root / folder).iterdir())
    return counts


def main() -> None:
    """Reads the command line and prints the figures as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(required=True)
    for function in (latency, throughput, both, imports, endurance):
        command = commands.add_parser(function.__name__, help=function.__doc__)
        command.set_defaults(function=function)
        command.add_argument(
            "--contestants", nargs="+", choices=CONTESTANTS, default=list(CONTESTANTS)
        )
        command.add_argument("--jobs", type=int, default=2)
        if function in (latency, both):
            command.add_argument("--rounds", type=int, default=30)
            command.add_argument("--pause", type=float, default=0.7)
        if function in (throughput, both, imports):
            command.add_argument("solutions", type=existing)
            command.add_argument("suite")
            command.add_argument("--limit", type=int)
            command.add_argument("--batch", type=int, default=10)
        if function in (imports, endurance):
            command.add_argument("--sandbox", choices=list(CONTESTANTS)[1:], default="docker")
        if function is endurance:
            command.add_argument("--runs", type=int, default=10_000)
            command.add_argument("--cases", type=int, default=10)
    arguments = parser.parse_args()
    print(json.dumps(arguments.function(arguments), indent=2))


if __name__ == "__main__":
    run_command(main)
