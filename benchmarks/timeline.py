"""Draws one run of ``judge score``: what each thread did when, and seconds by kind of work.

    .venv/bin/python -m benchmarks.timeline SOLUTIONS.jsonl SUITE [--limit N] [--jobs 2]
        [--sandbox KIND] [--clone CLONE] [--out timeline.html]

Only the sandbox's roots are cached. ``--clone`` draws the judge of another clone, such as an
earlier commit. A lane is a thread: the workers, the main thread (records and the report), threads
that start wardens, threads that run LibreOffice in parallel to the quick engines. The table counts
what the workers did, and the rest of their time: before the first job, after the last, waiting for
the last worker, and unexplained. It shows wall-clock seconds and the processor seconds of the
thread itself: if a kind of work has more of the former, it waits for a program, an engine, the
disk, the interpreter's lock, or a processor on a busy machine.
"""

from __future__ import annotations

import argparse
import functools
import gc
import html
import importlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.command_line import existing, run_command

ROOT = Path(__file__).parent.parent

PROGRAM, OPENING, CLOSING, LAST, NOBODY = (
    "program",
    "before the first job",
    "after the last job",
    "waiting for the last worker",
    "nobody's",
)

KINDS = {
    "judge.grading.jobs:_SharedJobs.take": "next job and its keys",
    "judge.grading.jobs:Worker.run": "worker, rest",
    "judge.grading.jobs:run_case": "reading inputs",
    "judge.sandbox.pool:Pool.take": "waiting for a warden",
    "judge.sandbox.pool:Pool.close": "ending wardens",
    "judge.sandbox.link:WardenLink.run": "sandbox",
    "judge.sandbox.link:WardenLink._warm_up": "imports of a warden",
    "judge.sandbox.backends.bubblewrap:BubblewrapSandbox._prepare": "starting a warden",
    "judge.sandbox.backends.docker:DockerSandbox._prepare": "starting a warden",
    "judge.recalc.service:ServicePool._start": "starting an engine",
    "judge.recalc.service:ServicePool.ask": "engines",
    "judge.recalc.service:ServicePool.close": "ending engines",
    "judge.recalc.policy:Recalculator.fill": "recalculation, what to compute",
    "judge.recalc.calculation:Calculation._prepared": "recalculation, the question",
    "judge.recalc.cascade:Cascade.compute": "recalculation, weighted vote",
    "judge.recalc.cache:ResultCache.put": "recalculation, cache",
    "judge.grading.case:CaseJudge.conclude": "comparison",
    "judge.workbook.reader:Workbook.__init__": "opening workbooks",
    "judge.grading.store:RunDirectory.append": "records",
    "judge.grading.store:RunDirectory.put_workbook": "keeping outputs",
    "judge.api.scoring:RunScorer._suite": "opening the suite",
    "judge.api.scoring:RunScorer._submissions": "opening the solutions",
    "judge.api.resources:JudgingResources.settings_for": "opening sandbox and engines",
    "judge.api.reporting:RunReporter.report": "report",
}
"""Function -> the kind of its own seconds, without those of functions that it calls."""


@dataclass(frozen=True)
class Span:
    """A call, in seconds since the run began.

    Attributes:
        lane: the thread.
        kind: the kind of work.
        start: when it began.
        end: when it ended.
        own_s: its seconds without those of calls inside it.
        cpu_s: processor seconds of the thread, also without calls inside it.
        depth: how many calls contain it.
    """

    lane: str
    kind: str
    start: float
    end: float
    own_s: float
    cpu_s: float
    depth: int


@dataclass
class _Open:
    """A call that has not ended."""

    began: float
    cpu: float
    inside_s: float = 0.0
    inside_cpu_s: float = 0.0


class Recorder:
    """Records the calls of functions as spans."""

    def __init__(self) -> None:
        self.began = time.perf_counter()
        self.spans: list[Span] = []
        self._local = threading.local()

    def watch(self, home: str, kind: str) -> None:
        """Records the calls of one function, unless the clone does not have it."""
        module, _, name = home.partition(":")
        owner: Any = importlib.import_module(module)
        *classes, function = name.split(".")
        for class_ in classes:
            owner = getattr(owner, class_, None)
        called = getattr(owner, function, None)
        if called is not None:
            setattr(owner, function, self._recorded(called, kind))

    def _recorded(self, called: Callable[..., Any], kind: str) -> Callable[..., Any]:
        @functools.wraps(called)
        def record(*arguments: Any, **named: Any) -> Any:
            calls: list[_Open] = self._local.__dict__.setdefault("calls", [])
            call = _Open(time.perf_counter(), time.thread_time())
            calls.append(call)
            try:
                result = called(*arguments, **named)
                if kind == "sandbox":
                    self._add_program(call, result.wall_s, len(calls))
                return result
            finally:
                calls.pop()
                self._end(call, kind, calls)

        return record

    def watch_collections(self) -> None:
        """Records garbage collections, inside the calls that they interrupt."""

        def noted(phase: str, _: dict[str, int]) -> None:
            calls: list[_Open] = self._local.__dict__.setdefault("calls", [])
            if phase == "start":
                calls.append(_Open(time.perf_counter(), time.thread_time()))
            elif calls:
                self._end(calls.pop(), "collecting garbage", calls)

        gc.callbacks.append(noted)

    def _end(self, call: _Open, kind: str, around: list[_Open]) -> None:
        now, cpu_s = time.perf_counter(), time.thread_time() - call.cpu
        seconds = now - call.began
        if around:
            around[-1].inside_s += seconds
            around[-1].inside_cpu_s += cpu_s
        own_s, own_cpu_s = seconds - call.inside_s, cpu_s - call.inside_cpu_s
        self._add(kind, call.began, now, own_s, own_cpu_s, len(around))

    def _add_program(self, call: _Open, wall_s: float, depth: int) -> None:
        """Records the program's own part of a run, which ends just before the answer."""
        now = time.perf_counter()
        start = max(call.began, now - wall_s)
        call.inside_s += now - start
        self._add(PROGRAM, start, now, now - start, 0.0, depth)

    def _add(
        self, kind: str, start: float, end: float, own_s: float, cpu_s: float, depth: int
    ) -> None:
        name = threading.current_thread().name
        lane = "asking LibreOffice" if name.startswith("ThreadPoolExecutor") else name
        times = (start - self.began, end - self.began)
        self.spans.append(Span(lane, kind, *times, own_s, cpu_s, depth))


def turn(arguments: argparse.Namespace) -> None:
    """Grades in this process, and prints the spans and the facts of the run."""
    from judge import api  # noqa: PLC0415  of whichever clone is on the path

    recorder = Recorder()
    for home, kind in KINDS.items():
        recorder.watch(home, kind)
    recorder.watch_collections()
    with tempfile.TemporaryDirectory() as folder:
        options = api.ScoreOptions(
            dataset=arguments.suite,
            out=Path(folder) / "run",
            jobs=arguments.jobs,
            limit=arguments.limit,
            sandbox=arguments.sandbox,
        )
        recorder.began = time.perf_counter()
        cpu_s = time.process_time()
        (run,) = api.score(arguments.solutions, options)
        seconds = time.perf_counter() - recorder.began
        cpu_s = time.process_time() - cpu_s
    figures = {
        "seconds": seconds,
        "judge_cpu_s": cpu_s,
        "program_cpu_s": sum(result.run.get("cpu_s") or 0.0 for result in run.results),
        "cases": len(run.results),
        "spans": [asdict(span) for span in recorder.spans],
    }
    print(json.dumps(figures))


def by_kind(spans: Sequence[Span], seconds: float) -> dict[str, tuple[int, float, float]]:
    """Sums calls, seconds and processor seconds of the workers by kind, the longest first.

    The seconds of all kinds add up to the seconds of the run times the number of workers.
    """
    lanes = defaultdict(list)
    for span in spans:
        if span.lane.startswith("judge-worker"):
            lanes[span.lane].append(span)
    table: dict[str, tuple[int, float, float]] = {}

    def add(kind: str, own_s: float, cpu_s: float = 0.0) -> None:
        count, so_far_s, cpu_so_far_s = table.get(kind, (0, 0.0, 0.0))
        table[kind] = (count + 1, so_far_s + own_s, cpu_so_far_s + cpu_s)

    last = max((span.end for worker in lanes.values() for span in worker), default=0.0)
    for worker in lanes.values():
        for span in worker:
            add(span.kind, span.own_s, span.cpu_s)
        first, end = min(span.start for span in worker), max(span.end for span in worker)
        add(OPENING, first)
        add(LAST, last - end)
        add(CLOSING, seconds - last)
        add(NOBODY, end - first - sum(span.own_s for span in worker))
    return dict(sorted(table.items(), key=lambda entry: -entry[1][1]))


def drawn(spans: Sequence[Span], seconds: float, title: str, table: str) -> str:
    """Makes the page: a lane for each thread, a colour for each kind."""
    kinds = sorted({span.kind for span in spans})
    colours = {
        kind: f"hsl({360 * number / len(kinds):.0f} 65% {55 if number % 2 else 40}%)"
        for number, kind in enumerate(kinds)
    }
    lanes = sorted({span.lane for span in spans}, key=lambda lane: ("worker" not in lane, lane))
    width, height = max(1200, int(seconds * 40)), 34
    body = []
    for number, lane in enumerate(lanes):
        top = 20 + number * (height + 18)
        body.append(f'<text x="2" y="{top - 4}">{html.escape(lane)}</text>')
        # Calls inside others are drawn later, and so on top of them.
        for span in sorted((s for s in spans if s.lane == lane), key=lambda s: s.depth):
            left, wide = span.start / seconds * width, (span.end - span.start) / seconds * width
            label = f"{span.kind}: {span.start:.3f} to {span.end:.3f} s"
            body.append(
                f'<rect x="{left:.2f}" y="{top}" width="{max(wide, 0.2):.2f}" height="{height}" '
                f'fill="{colours[span.kind]}"><title>{html.escape(label)}</title></rect>'
            )
    bottom = 20 + len(lanes) * (height + 18)
    ticks = (
        f'<text x="{s / seconds * width:.0f}" y="{bottom}">{s} s</text>' for s in _marks(seconds)
    )
    key = " ".join(
        f'<span style="background:{colour};color:#fff;padding:2px 6px">{html.escape(kind)}</span>'
        for kind, colour in colours.items()
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f"<style>body{{font:13px sans-serif}}text{{font-size:11px}}p{{line-height:2.2}}</style>"
        f"<h1>{html.escape(title)}</h1><p>{key}</p>"
        f'<div style="overflow-x:auto"><svg width="{width}" height="{bottom + 10}">'
        f"{''.join(body)}{''.join(ticks)}</svg></div><pre>{html.escape(table)}</pre></html>\n"
    )


def _marks(seconds: float) -> Iterator[int]:
    step = max(1, int(seconds / 20))
    yield from range(0, int(seconds) + 1, step)


def main() -> None:
    """Draws a run, and prints the seconds by kind."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("solutions", type=existing)
    parser.add_argument("suite")
    parser.add_argument("--limit", type=int, help="tasks (default: all)")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--sandbox", default="auto")
    parser.add_argument(
        "--clone", type=existing, default=ROOT, help="the clone whose judge is drawn"
    )
    parser.add_argument("--out", type=Path, default=Path("timeline.html"))
    parser.add_argument("--turn", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.turn:
        turn(arguments)
        return
    from judge.files.paths import cache_folder  # noqa: PLC0415  a turn takes its own judge

    with tempfile.TemporaryDirectory() as cache:
        (Path(cache) / "roots").symlink_to(cache_folder() / "roots")
        done = subprocess.run(
            [sys.executable, __file__, *sys.argv[1:], "--turn"],
            env=os.environ | {"PYTHONPATH": str(arguments.clone.resolve()), "JUDGE_CACHE": cache},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    figures = json.loads(done.stdout.splitlines()[-1])
    spans = [Span(**span) for span in figures["spans"]]
    lines = [f"{'kind':34}{'calls':>8}{'seconds':>10}{'processor':>11}"]
    for kind, (count, own_s, cpu_s) in by_kind(spans, figures["seconds"]).items():
        lines.append(f"{kind:34}{count:8}{own_s:10.2f}{cpu_s:11.2f}")
    title = (
        f"{figures['cases']} cases, {arguments.jobs} workers: {figures['seconds']:.1f} s; "
        f"processor seconds: programs {figures['program_cpu_s']:.1f}, the judge's own process "
        f"{figures['judge_cpu_s']:.1f}"
    )
    table = "\n".join(lines)
    arguments.out.write_text(drawn(spans, figures["seconds"], title, table), encoding="utf-8")
    print(f"{title}\n\n{table}\n\n{arguments.out}")


if __name__ == "__main__":
    run_command(main)
