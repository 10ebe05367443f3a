"""Measures the cost of a comparison: the published rules with openpyxl, and the judge.

    python benchmarks/compare.py DATA [--limit N] [--plots FOLDER] [--json FILE]

Every gold of the 300 tasks is compared with itself, by each contender in a separate process, one
after the other. Measures processor seconds, wall-clock seconds and the peak memory of the process.
The published rules are those of SpreadsheetBench's script: both workbooks are opened with openpyxl
and the cells compared one by one. ``ours`` reads a file only once if both are the same file;
``ours_apart`` reads it twice, as for any gold and output.

Exits with 1 unless ``ours`` takes at most a fifteenth of the total time, a fiftieth of the time in
the worst case, and a fifth of the memory.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.command_line import existing, run_command
from benchmarks.pairs import SUITE, golds
from benchmarks.scatter import Series, scatter
from judge.compare.cells.computing import compare_files

GOALS = {"total": 15.0, "worst": 50.0, "memory": 5.0}
"""By which factors the judge must be cheaper."""

Case = tuple[Path, str, str | None]


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one comparison.

    Attributes:
        file: name of the gold.
        cells: cells of the answer range.
        file_bytes: size of the workbook.
        cpu_s: processor seconds.
        wall_s: wall-clock seconds.
        accepted: the verdict.
    """

    file: str
    cells: int
    file_bytes: int
    cpu_s: float
    wall_s: float
    accepted: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """The cost of all comparisons for one contender.

    Attributes:
        costs: the cost of each comparison.
        peak_bytes: peak memory of its process.
        idle_bytes: peak memory after the imports and a first, small comparison.
    """

    costs: list[Cost]
    peak_bytes: int
    idle_bytes: int

    @property
    def total_s(self) -> float:
        """The processor seconds of all comparisons."""
        return sum(cost.cpu_s for cost in self.costs)

    @property
    def worst(self) -> Cost:
        """The most expensive comparison."""
        return max(self.costs, key=lambda cost: cost.cpu_s)


def measure(name: str, cases: Sequence[Case], cells: Sequence[int]) -> Outcome:
    """Runs a contender on all cases in a separate process."""
    request = json.dumps([(str(path), position, sheet) for path, position, sheet in cases])
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.contenders", name],
        input=request,
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).resolve().parent.parent,
    )
    record = json.loads(done.stdout)
    costs = [
        Cost(path.name, count, path.stat().st_size, *cost)
        for (path, _, _), count, cost in zip(cases, cells, record["costs"], strict=True)
    ]
    return Outcome(costs, record["peak_bytes"], record["idle_bytes"])


def figures(outcome: Outcome) -> dict[str, Any]:
    """Returns the figures of one contender."""
    times = sorted(cost.cpu_s for cost in outcome.costs)
    return {
        "comparisons": len(times),
        "accepted": sum(cost.accepted for cost in outcome.costs),
        "total_cpu_s": round(outcome.total_s, 3),
        "total_wall_s": round(sum(cost.wall_s for cost in outcome.costs), 3),
        "median_ms": round(statistics.median(times) * 1000, 2),
        "p95_ms": round(times[int(len(times) * 0.95)] * 1000, 2),
        "worst_ms": round(outcome.worst.cpu_s * 1000, 1),
        "worst_file": outcome.worst.file,
        "peak_mib": round(outcome.peak_bytes / 2**20, 1),
        "idle_mib": round(outcome.idle_bytes / 2**20, 1),
    }


def times_less(published: Outcome, mine: Outcome) -> dict[str, float]:
    """Computes the factors by which the judge is cheaper."""
    return {
        "total": published.total_s / mine.total_s,
        "worst": published.worst.cpu_s / mine.worst.cpu_s,
        "memory": published.peak_bytes / mine.peak_bytes,
        "memory_above_idle": (published.peak_bytes - published.idle_bytes)
        / max(1, mine.peak_bytes - mine.idle_bytes),
    }


def plots(published: Outcome, mine: Outcome, folder: Path) -> list[Path]:
    """Plots the cost against the size of the range and of the workbook."""
    folder.mkdir(parents=True, exist_ok=True)
    axes: dict[str, tuple[str, Callable[[Any], float]]] = {
        "compare-range": ("cells in the answer range", lambda cost: float(cost.cells)),
        "compare-workbook": ("size of the workbook, kB", lambda cost: cost.file_bytes / 1000),
    }
    written = []
    for name, (title, size) in axes.items():
        series = [
            Series(label, [(max(size(cost), 0.5), cost.cpu_s * 1000) for cost in outcome.costs])
            for label, outcome in (("published rules, openpyxl", published), ("ours", mine))
        ]
        path = folder / f"{name}.svg"
        drawn = scatter("One comparison", title, "processor time, ms", series)
        path.write_text(drawn, encoding="utf-8")
        written.append(path)
    return written


def main(arguments: list[str] | None = None) -> int:
    """Measures and prints the figures, and whether the goals are reached."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=existing, help="folder with the published suites")
    parser.add_argument("--limit", type=int, help="compare only the first N golds")
    parser.add_argument("--plots", type=Path, help="folder for the SVG plots")
    parser.add_argument("--json", type=Path, help="file for the cost of each comparison")
    options = parser.parse_args(arguments)
    cases = [
        (path.resolve(), position, sheet)
        for path, position, sheet in list(golds(options.data / SUITE))[: options.limit]
    ]
    cells = [
        compare_files(path, path, position, answer_sheet=sheet).cells
        for path, position, sheet in cases
    ]
    outcomes: dict[str, Outcome] = {}
    for name in ("ours", "published", "ours_apart") * 2:
        turn = measure(name, cases, cells)
        # The cheaper of two turns counts, for all contenders: other programs slow the machine.
        outcomes[name] = _better(outcomes[name], turn) if name in outcomes else turn
    published = outcomes["published"]
    ratios = {name: times_less(published, outcomes[name]) for name in ("ours", "ours_apart")}
    reached = {name: ratios["ours"][name] >= goal for name, goal in GOALS.items()}
    report = {name: figures(outcome) for name, outcome in outcomes.items()} | {
        "times_less": {
            name: {key: round(ratio, 1) for key, ratio in ratio.items()}
            for name, ratio in ratios.items()
        },
        "goals": GOALS,
        "reached": reached,
    }
    print(json.dumps(report, indent=2))
    if options.plots is not None:
        for path in plots(published, outcomes["ours_apart"], options.plots):
            print(f"{path}: written", file=sys.stderr)
    if options.json is not None:
        every = {name: asdict(outcome) for name, outcome in outcomes.items()}
        options.json.write_text(json.dumps(every), encoding="utf-8")
    return 0 if all(reached.values()) else 1


def _better(first: Outcome, second: Outcome) -> Outcome:
    """Takes the cheaper of two turns for each comparison, and the higher of the peaks."""
    costs = [
        min(pair, key=lambda cost: cost.cpu_s)
        for pair in zip(first.costs, second.costs, strict=True)
    ]
    return replace(first, costs=costs, peak_bytes=max(first.peak_bytes, second.peak_bytes))


if __name__ == "__main__":
    run_command(main)
