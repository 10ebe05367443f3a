"""Measures how close to Excel the calculation engines are, and how fast: golds and battery.

    python -m benchmarks.recalc ../shared/data/spreadsheetbench_912_dev300 --json out.json

The values of all golds' formula cells are removed and computed again, by each engine alone and by
the cascade; the results are compared with Excel's values by the rules of the published script.
Values that depend on volatile functions, and golds that are known to be stale (``stale.yaml``), are
listed separately. Without a suite, only the battery is measured. ``benchmarks.records`` writes the
table by which the cascade chooses.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from benchmarks.battery import PLACE, PLACE_RANGE, Probe, probes
from benchmarks.command_line import existing, run_command
from benchmarks.conversion import Converter
from benchmarks.golds import Gold, agrees, golds, stale_golds
from judge.collector import rarely_collecting
from judge.core.submission import Origin
from judge.errors import RecalcError
from judge.recalc.asking import covering
from judge.recalc.contract import Dialect, Engine
from judge.recalc.names import FORMULAS
from judge.recalc.policy import Recalculator
from judge.recalc.select import available_engines, make_engines
from judge.recalc.wanted import reader_value
from judge.sandbox import open_sandbox
from judge.workbook.cell import CellRef, CellValue, ErrorValue
from judge.workbook.reader import open_workbook

CASCADE = "cascade"


@dataclass
class Standing:
    """The results of one engine (or the cascade)."""

    cells: int = 0
    right: int = 0
    answer_cells: int = 0
    answer_right: int = 0
    files: int = 0
    files_right: int = 0
    answer_files: int = 0
    answer_files_right: int = 0
    not_opened: int = 0
    seconds: list[float] = field(default_factory=list)
    wrong: dict[str, list[str]] = field(default_factory=dict)

    def add(self, gold: Gold, kept: Iterable[CellRef], values: dict[CellRef, CellValue]) -> None:
        """Adds the results of one gold."""
        outcomes = {ref: agrees(gold.expected[ref], values.get(ref)) for ref in kept}
        if not outcomes:
            return
        self.cells += len(outcomes)
        self.right += sum(outcomes.values())
        self.files += 1
        self.files_right += all(outcomes.values())
        answer = [good for ref, good in outcomes.items() if ref in gold.answer]
        self.answer_cells += len(answer)
        self.answer_right += sum(answer)
        self.answer_files += bool(answer)
        self.answer_files_right += bool(answer) and all(answer)
        bad = [ref for ref, good in outcomes.items() if not good]
        if bad:
            self.wrong[gold.name] = [
                f"{ref.sheet}!R{ref.row}C{ref.column} {gold.cells[ref].formula} "
                f"Excel {_shown(gold.expected[ref])}, here {_shown(values.get(ref))}"
                for ref in bad[:3]
            ] + ([f"… {len(bad)} cells in all"] if len(bad) > 3 else [])

    def as_json(self) -> dict[str, Any]:
        """Returns the figures, including shares."""
        return {
            "cells": self.cells,
            "cells_right": self.right,
            "cells_share": _share(self.right, self.cells),
            "files": self.files,
            "files_right": self.files_right,
            "files_share": _share(self.files_right, self.files),
            "answer_cells": self.answer_cells,
            "answer_cells_share": _share(self.answer_right, self.answer_cells),
            "answer_files": self.answer_files,
            "answer_files_share": _share(self.answer_files_right, self.answer_files),
            "not_opened": self.not_opened,
            "ms": spread_ms(self.seconds),
            "wrong": self.wrong,
        }


def spread_ms(seconds: Sequence[float]) -> dict[str, float]:
    """Computes median and 95th percentile in milliseconds."""
    if len(seconds) < 2:
        return {}
    return {
        "median": round(median(seconds) * 1000, 2),
        "p95": round(quantiles(seconds, n=20)[-1] * 1000, 2),
        "total": round(sum(seconds) * 1000, 1),
    }


def _share(part: int, total: int) -> float:
    return round(part / total, 5) if total else 0.0


def _shown(value: CellValue) -> str:
    return value.code if isinstance(value, ErrorValue) else repr(value)[:50]


def vote(
    engine: Engine, gold: Gold, timeout_s: float, standing: Standing
) -> dict[CellRef, CellValue]:
    """Computes a gold's formula cells with a single engine."""
    started = time.perf_counter()
    try:
        dialect = Dialect(date_1904=gold.date_1904)
        ranges = covering(gold.cells)
        result = engine.compute(gold.stripped, ranges, timeout_s=timeout_s, dialect=dialect)
    except RecalcError:
        standing.not_opened += 1
        return {}
    finally:
        standing.seconds.append(time.perf_counter() - started)
    return {
        ref: reader_value(result.values[ref], cell.number_format, date_1904=gold.date_1904)
        for ref, cell in gold.cells.items()
        if ref in result.values
    }


def cascade_vote(
    recalculator: Recalculator, gold: Gold, standing: Standing
) -> dict[CellRef, CellValue]:
    """Computes a gold with the cascade, from the opened workbook to typed values."""
    workbook = open_workbook(gold.stripped)
    workbook.preload(gold.ranges)
    saved = open_workbook(gold.saved)
    started = time.perf_counter()
    computed = recalculator.fill(workbook, gold.ranges, origin=Origin.SOLUTION, like=saved)
    standing.seconds.append(time.perf_counter() - started)
    return dict(computed.values)


def measure_golds(
    golds_: Sequence[Gold], engines: Sequence[Engine], timeout_s: float, slow_every: int
) -> dict[str, Standing]:
    """Measures each engine alone on all golds (the slow one on some)."""
    standings = {engine.name: Standing() for engine in engines}
    stale = stale_golds()
    for number, gold in enumerate(golds_):
        timed = [e for e in engines if e.name != FORMULAS or number % slow_every == 0]
        kept = kept_cells(gold, stale)
        for engine in timed:
            standing = standings[engine.name]
            standing.add(gold, kept, vote(engine, gold, timeout_s, standing))
        _progress(f"{gold.name}: {len(gold.cells)} cells")
    return standings


def kept_cells(gold: Gold, stale: dict[str, str]) -> list[CellRef]:
    """Returns the cells of a gold that count."""
    return [] if gold.name in stale else [ref for ref in gold.cells if ref not in gold.volatile]


def measure_cascade(
    golds_: Sequence[Gold], recalculator: Recalculator, converter: Converter | None, every: int
) -> tuple[Standing, list[float]]:
    """Measures the cascade on all golds, and in between the plain way on one gold out of several.

    The two take turns, so that a busy machine affects both equally.
    """
    standing, converting = Standing(), []
    stale = stale_golds()
    for number, gold in enumerate(golds_):
        standing.add(gold, kept_cells(gold, stale), cascade_vote(recalculator, gold, standing))
        if converter is not None and number % every == 0:
            converting.append(converter.convert(gold.stripped))
    return standing, converting


def measure_battery(
    engines: Sequence[Engine], timeout_s: float
) -> list[tuple[Probe, dict[str, CellValue]]]:
    """Measures each engine alone on the battery."""
    answers = []
    for probe in probes():
        workbook = probe.workbook()
        values: dict[str, CellValue] = {}
        for engine in engines:
            with contextlib.suppress(RecalcError):
                result = engine.compute(workbook, [PLACE_RANGE], timeout_s=timeout_s)
                values[engine.name] = result.values.get(PLACE)
        answers.append((probe, values))
    return answers


def battery_by_cascade(
    answers: list[tuple[Probe, dict[str, CellValue]]], recalculator: Recalculator
) -> None:
    """Adds the answers of the cascade to those of the battery."""
    for probe, values in answers:
        workbook = open_workbook(probe.workbook())
        computed = recalculator.fill(workbook, [PLACE_RANGE], origin=Origin.SOLUTION)
        value = computed.values.get(PLACE)
        values[CASCADE] = value


def battery_json(answers: list[tuple[Probe, dict[str, CellValue]]]) -> dict[str, Any]:
    """Lists every probe with its answers, and the counts."""
    names = sorted({name for _, values in answers for name in values})
    rows = [
        {
            "page": probe.page,
            "formula": probe.formula,
            "documented": _shown(probe.expected),
            "right": [name for name in names if probe.accepts(values.get(name))],
            "wrong": {
                name: _shown(values.get(name))
                for name in names
                if not probe.accepts(values.get(name))
            },
        }
        for probe, values in answers
    ]
    counts = {name: sum(name in row["right"] for row in rows) for name in names}
    return {"probes": len(rows), "right": counts, "rows": rows}


def _progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    arguments = _arguments()
    with contextlib.ExitStack() as stack:
        stack.enter_context(rarely_collecting())
        sandbox = stack.enter_context(contextlib.closing(open_sandbox(arguments.sandbox)))
        names = arguments.engines.split(",") if arguments.engines else available_engines(sandbox)
        engines = make_engines(sandbox, tuple(names))
        for engine in engines:
            stack.callback(engine.close)
        versions = {engine.name: engine.version for engine in engines}
        golds_ = list(golds(arguments.suite, arguments.limit)) if arguments.suite else []
        if arguments.cascade_only:
            standings: dict[str, Standing] = {}
            answers: list[tuple[Probe, dict[str, CellValue]]] = [(probe, {}) for probe in probes()]
            recalculator = Recalculator(engines)
        else:
            standings = measure_golds(golds_, engines, arguments.timeout, arguments.slow_every)
            answers = measure_battery(engines, arguments.timeout)
            recalculator = Recalculator(engines)
        converter = None
        if arguments.convert and sandbox.has_root("office"):
            converter = stack.enter_context(contextlib.closing(Converter(sandbox)))
        every = max(1, len(golds_) // max(1, arguments.convert))
        standings[CASCADE], converting = measure_cascade(golds_, recalculator, converter, every)
        battery_by_cascade(answers, recalculator)
    report = {
        "versions": versions,
        "golds": len(golds_),
        "volatile_cells": sum(len(gold.volatile) for gold in golds_),
        "volatile_golds": sorted(gold.name for gold in golds_ if gold.volatile),
        "stale_golds": stale_golds(),
        "standings": {name: standing.as_json() for name, standing in standings.items()},
        "conversion_ms": spread_ms(converting),
        "battery": battery_json(answers),
    }
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    print_report(report)


def print_report(report: dict[str, Any]) -> None:
    """Formats the figures as a table."""
    head = f"{'':12} {'cells':>7} {'right':>8} {'files':>6} {'right':>8}"
    print(f"{head} {'answer cells':>13} {'answer files':>13} {'ms':>8} {'p95':>8} {'battery':>8}")
    for name, row in report["standings"].items():
        ms = row["ms"]
        print(
            f"{name:12} {row['cells']:7} {row['cells_share']:8.2%} {row['files']:6} "
            f"{row['files_share']:8.2%} {row['answer_cells_share']:13.2%} "
            f"{row['answer_files_share']:13.2%} {ms.get('median', 0):8.1f} {ms.get('p95', 0):8.1f} "
            f"{report['battery']['right'].get(name, 0):4}/{report['battery']['probes']}"
        )
    if report["conversion_ms"]:
        ms = report["conversion_ms"]
        print(
            f"one soffice --convert-to each: median {ms['median']:.0f} ms, p95 {ms['p95']:.0f} ms"
        )
    print(
        f"listed separately: {report['volatile_cells']} volatile cells, "
        f"stale {report['stale_golds']}"
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("suite", type=existing, nargs="?")
    parser.add_argument("--sandbox", default="auto")
    parser.add_argument("--engines", help="only these engines, separated by commas")
    parser.add_argument("--limit", type=int, help="measure only the first N golds")
    parser.add_argument("--timeout", type=float, default=20.0, help="seconds for one workbook")
    parser.add_argument("--convert", type=int, default=60, help="golds to convert one by one")
    parser.add_argument(
        "--slow-every", type=int, default=6, help="measure the slow engine on one gold out of N"
    )
    parser.add_argument("--cascade-only", action="store_true", help="measure no engine alone")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    run_command(main)
