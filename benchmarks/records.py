"""Makes the records by which engines are trusted, and measures how right the cascade is with them.

    python -m benchmarks.records SUITE --corpus FOLDER --corpus FOLDER --write --folds 10
    python -m benchmarks.records --probes benchmarks/shapes.yaml

Every engine computes every formula cell in the golds of a suite, in the battery, and in the
workbooks of some folders (saved by Excel), with no stored value trusted. The results, compared with
Excel's values, make the table of records (``judge/recalc/trust.json``, which ``--write`` writes).
Then the cascade computes everything with the table of the package (``plain``). With ``--folds`` it
computes each file again with a table that was made without the file's fold, and with
``--without-each`` again without each engine.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.battery import BATTERY as BATTERY_FILE
from benchmarks.battery import PLACE, PLACE_RANGE, SHEET, probes
from benchmarks.command_line import existing, run_command
from benchmarks.evidence import Sample, fold_of, samples_of, trust_data
from benchmarks.golds import Gold, agrees, golds, read_gold, stale_golds
from benchmarks.remembered import RememberedEngine
from judge.core.submission import Origin
from judge.errors import JudgeError
from judge.recalc.contract import Engine
from judge.recalc.explaining import address
from judge.recalc.names import FORMULAS, JUDGE
from judge.recalc.policy import Recalculator
from judge.recalc.select import available_engines, make_engines
from judge.recalc.trust import TrustTable, read_table, trust_table
from judge.sandbox import open_sandbox
from judge.workbook.cell import CellRef, CellValue, ComputedValues, ErrorValue
from judge.workbook.dependency import FormulaIndex
from judge.workbook.number_formats import to_serial
from judge.workbook.reader import open_workbook, sheet_formulas

TRUST = Path(__file__).parent.parent / "judge" / "recalc" / "trust.json"
GOLDS = "golds"
BATTERY = "battery"
EMPTY = read_table({"measured_with": {}, "functions": {}})

Counts = Counter[tuple[str, str]]
"""Counts of cells by source and outcome, or by source and engine."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A workbook with Excel's values.

    Attributes:
        corpus: the collection that contains it.
        source: the corpus and the file, or the task of which the file is one case.
        gold: its formula cells with Excel's values.
        package: the workbook that is computed.
        saved: the workbook as Excel saved it, whose values show in which order dates in text are
            read; None if Excel saved none.
        counted: the cells that count: none that depends on a volatile formula.
        accepts: returns whether a value of a cell is Excel's.
    """

    corpus: str
    source: str
    gold: Gold
    package: bytes
    saved: bytes | None
    counted: AbstractSet[CellRef]
    accepts: Callable[[CellRef, CellValue], bool]


def is_excels(expected: CellValue, actual: CellValue) -> bool:
    """Returns whether a value is Excel's: numbers to a millionth, errors by code, blank as ""."""
    if isinstance(expected, ErrorValue) or isinstance(actual, ErrorValue):
        return expected == actual
    if expected is None or actual is None:
        return (expected or 0) in (0, "") and (actual or 0) in (0, "")
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    if isinstance(expected, str) or isinstance(actual, str):
        return expected == actual
    first, second = _number(expected), _number(actual)
    return abs(first - second) <= max(1e-9, 1e-6 * max(abs(first), abs(second)))


def _number(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) else to_serial(value)


def of_folder(folder: Path) -> Iterator[Measured]:
    """Reads the workbooks of a folder."""
    for path in sorted(folder.rglob("*.xlsx")):
        with contextlib.suppress(JudgeError):
            gold = read_gold(path.name, open_workbook(path), ())
            if gold is not None:
                source = f"{folder.name}/{path.relative_to(folder)}"
                counted = gold.expected.keys() - gold.volatile
                accepts = _strictly(gold)
                package = path.read_bytes()
                yield Measured(folder.name, source, gold, package, package, counted, accepts)


def _strictly(gold: Gold) -> Callable[[CellRef, CellValue], bool]:
    return lambda ref, value: is_excels(gold.expected[ref], value)


def of_suite(suite: Path) -> Iterator[Measured]:
    """Reads the golds of a suite; the cases of a task are one source."""
    stale = stale_golds()
    for gold in golds(suite):
        if gold.name not in stale:
            source = f"{GOLDS}/{gold.name.split('_')[1]}"
            counted = gold.expected.keys() - gold.volatile
            saved = gold.saved
            yield Measured(GOLDS, source, gold, gold.stripped, saved, counted, _as_published(gold))


def _as_published(gold: Gold) -> Callable[[CellRef, CellValue], bool]:
    return lambda ref, value: agrees(gold.expected[ref], value)


def of_battery(path: Path = BATTERY_FILE) -> Iterator[Measured]:
    """Reads the formulas of the battery, or of a similar file; those of one page are one source."""
    for number, probe in enumerate(probes(path)):
        package = probe.workbook()
        workbook = open_workbook(package)
        by_sheet = {name: list(sheet_formulas(workbook, name)) for name in workbook.sheet_names}
        cells = by_sheet[SHEET]
        gold = Gold(
            name=f"{probe.page} {number}",
            saved=package,
            stripped=package,
            cells={CellRef(SHEET, cell.row, cell.column): cell for cell in cells},
            expected={PLACE: probe.expected},
            volatile=frozenset(),
            answer=frozenset(),
            ranges=(PLACE_RANGE,),
            index=FormulaIndex(workbook.sheet_names, by_sheet.__getitem__),
            date_1904=False,
        )
        source = f"{BATTERY}/{probe.page}"
        accepts = _accepted_by(probe.accepts)
        yield Measured(BATTERY, source, gold, package, None, gold.expected.keys(), accepts)


def _accepted_by(accepts: Callable[[CellValue], bool]) -> Callable[[CellRef, CellValue], bool]:
    return lambda _, value: accepts(value)


def record(measured: Iterable[Measured], engines: Sequence[Engine]) -> tuple[list[Sample], Counts]:
    """Makes samples from every engine's answers for every cell; counts the right cells of each."""
    recalculator = Recalculator(engines, trust=EMPTY)
    samples: list[Sample] = []
    alone: Counts = Counter()
    for item in measured:
        like = None if item.saved is None else open_workbook(item.saved)
        answers = recalculator.votes(open_workbook(item.package), item.gold.ranges, like)
        samples += samples_of(item.gold, answers, item.source, item.accepts)
        for ref in item.counted:
            votes = answers[ref].typed if ref in answers else {}
            right = [name for name, vote in votes.items() if item.accepts(ref, vote)]
            any_engine = ["any"] if set(right) - {JUDGE} else []
            for name in (*right, *any_engine, "cells"):
                alone[item.source, name] += 1
        print(f"{item.source}: {len(answers)} cells", file=sys.stderr, flush=True)
    return samples, alone


def judged(
    measured: Iterable[Measured], tables: Callable[[str], Recalculator], miss: Callable[[str], None]
) -> Counts:
    """Counts the cells of each source that the cascade has right, wrong, or not computed.

    Args:
        measured: the workbooks.
        tables: source -> a recalculator with the records for it.
        miss: receives a line of JSON for every cell that is not right.
    """
    counts: Counts = Counter()
    for item in measured:
        workbook = open_workbook(item.package)
        like = None if item.saved is None else open_workbook(item.saved)
        computed = tables(item.source).fill(
            workbook, item.gold.ranges, origin=Origin.SOLUTION, like=like
        )
        for ref in item.counted:
            if ref not in computed.values:
                outcome = "open"
            elif item.accepts(ref, computed.values[ref]):
                outcome = "right"
            else:
                outcome = "wrong"
            if outcome != "right":
                miss(_as_line(item, ref, computed))
            counts[item.source, outcome] += 1
            counts[item.source, "cells"] += 1
    return counts


def _as_line(item: Measured, ref: CellRef, computed: ComputedValues) -> str:
    cell = [item.source, item.gold.name, address(ref), item.gold.cells[ref].formula]
    value = repr(computed.values.get(ref))
    return json.dumps(
        [*cell, repr(item.gold.expected[ref]), value, computed.not_calculated.get(ref)]
    )


def main() -> None:
    arguments = _arguments()

    def measured() -> Iterator[Measured]:
        for folder in arguments.corpus:
            yield from of_folder(folder)
        if arguments.suite:
            yield from of_suite(arguments.suite)
        yield from of_battery(arguments.probes)

    if arguments.write_own:
        data = json.loads(TRUST.read_text(encoding="utf-8"))
        data |= with_own(data, record(measured(), ())[0])
        TRUST.write_text(as_text(data), encoding="utf-8")
        return
    with contextlib.ExitStack() as stack:
        kept_in = arguments.answers or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        sandbox = stack.enter_context(contextlib.closing(open_sandbox(arguments.sandbox)))
        names = [name for name in available_engines(sandbox) if name != FORMULAS]
        engines = [
            RememberedEngine(engine, kept_in) for engine in make_engines(sandbox, tuple(names))
        ]
        for engine in engines:
            stack.callback(engine.close)
        versions = {engine.name: engine.version for engine in engines}
        samples, alone = record(measured(), engines)
        table = trust_table()
        if arguments.write:
            data = {"corpora": _sizes(alone), **trust_data(samples, versions)}
            TRUST.write_text(as_text(data), encoding="utf-8")
            table = read_table(data)
        misses = arguments.misses
        lines = None if misses is None else stack.enter_context(misses.open("w", encoding="utf-8"))

        def judge(way: str, tables: Callable[[str], Recalculator]) -> None:
            def miss(line: str) -> None:
                if lines is not None:
                    print(f"{way}\t{line}", file=lines, flush=True)

            report[way] = judged(measured(), tables, miss)

        report: dict[str, Counts] = {}
        judge("plain", _always(engines, table))
        if arguments.folds:
            folds = arguments.folds
            tables = {
                fold: Recalculator(engines, trust=table)
                for fold, table in _without_folds(samples, versions, folds)
            }
            judge("folds", lambda source: tables[fold_of(source, folds)])
        for name in names if arguments.without_each else arguments.without:
            rest = [engine for engine in engines if engine.name != name]
            judge(f"without {name}", _always(rest, table))
    print_report(report, alone, [*names, JUDGE])


def with_own(data: Mapping[str, Any], samples: Sequence[Sample]) -> dict[str, Any]:
    """Replaces the judge's own records in a table, and keeps those of the engines.

    Args:
        data: the table.
        samples: what the judge computed.
    """
    newer = trust_data([sample for sample in samples if sample.engine == JUDGE], {})
    parts = {}
    for part in ("functions", "shapes"):
        kept = {
            name: {engine: counts for engine, counts in records.items() if engine != JUDGE}
            for name, records in data[part].items()
        }
        names = sorted(kept.keys() | newer[part].keys())
        merged = {
            name: dict(sorted({**kept.get(name, {}), **newer[part].get(name, {})}.items()))
            for name in names
        }
        parts[part] = {name: records for name, records in merged.items() if records}
    return parts


def _always(engines: Sequence[Engine], table: TrustTable) -> Callable[[str], Recalculator]:
    recalculator = Recalculator(engines, trust=table)
    return lambda _: recalculator


def _without_folds(
    samples: Sequence[Sample], versions: Mapping[str, str], folds: int
) -> Iterator[tuple[int, TrustTable]]:
    """Makes, for each fold, the records without it."""
    for fold in range(folds):
        others = [sample for sample in samples if fold_of(sample.source, folds) != fold]
        yield fold, read_table(trust_data(others, versions))


def _sizes(alone: Counts) -> dict[str, dict[str, int]]:
    """Counts the sources and cells of each corpus."""
    sizes: dict[str, dict[str, int]] = defaultdict(lambda: {"sources": 0, "cells": 0})
    for (source, outcome), cells in sorted(alone.items()):
        if outcome == "cells":
            size = sizes[source.partition("/")[0]]
            size["sources"] += 1
            size["cells"] += cells
    return sizes


def as_text(data: Mapping[str, Any]) -> str:
    """Formats the table as it is in the package: one line for each function or shape."""
    blocks = [f' "{part}": {json.dumps(data[part])}' for part in ("measured_with", "corpora")]
    for part in ("functions", "shapes"):
        lines = (
            f"  {json.dumps(name)}: {json.dumps(records, separators=(',', ':'))}"
            for name, records in data[part].items()
        )
        blocks.append(f' "{part}": {{\n' + ",\n".join(lines) + "\n }")
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def rows_of(sources: Mapping[str, int]) -> dict[str, list[str]]:
    """Makes the rows of a report: corpora and their folders, each with its sources.

    If one file has more than a third of the cells of a corpus, there is also a row without it.

    Args:
        sources: source -> number of its cells.
    """
    rows: dict[str, list[str]] = defaultdict(list)
    for source in sorted(sources):
        parts = source.split("/")
        for depth in range(1, len(parts)):
            rows["/".join(parts[:depth])].append(source)
    for corpus in [row for row in rows if "/" not in row]:
        cells = {source: sources[source] for source in rows[corpus]}
        largest = max(cells, key=lambda source: cells[source])
        if cells[largest] > sum(cells.values()) / 3 and len(cells) > 1:
            name = f"{corpus} without {largest.rpartition('/')[2]}"
            rows[name] = [source for source in rows[corpus] if source != largest]
    return dict(sorted(rows.items(), key=lambda row: (row[0].count("/"), row[0])))


def print_report(report: Mapping[str, Counts], alone: Counts, engines: Sequence[str]) -> None:
    """Formats the shares of right cells by corpus and folder, and the other cells of each way."""
    plain = report["plain"]
    sources = {source: cells for (source, outcome), cells in plain.items() if outcome == "cells"}
    ways = [*engines, "any"]
    print("| | cells |", " | ".join([*(f"{way} (wrong, open)" for way in report), *ways]), "|")
    print("|---|" + "---|" * (len(report) + len(ways) + 1))
    for row, below in rows_of(sources).items():
        cells = sum(sources[source] for source in below)
        shares = [
            _with_misses(*(_sum(counts, below, end) for end in ("right", "wrong", "open")))
            for counts in report.values()
        ]
        shares += [f"{_sum(alone, below, way) / cells:.2%}" for way in ways]
        print(f"| {row} | {cells:,} |", " | ".join(shares), "|")


def _sum(counts: Counts, sources: Sequence[str], end: str) -> int:
    return sum(counts[source, end] for source in sources)


def _with_misses(right: int, wrong: int, undecided: int) -> str:
    return f"{right / (right + wrong + undecided):.4%} ({wrong}, {undecided})"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("suite", type=existing, nargs="?")
    parser.add_argument("--corpus", type=existing, action="append", default=[])
    parser.add_argument(
        "--probes", type=existing, default=BATTERY_FILE, help="probes instead of the battery"
    )
    parser.add_argument("--sandbox", default="auto")
    parser.add_argument("--write", action="store_true", help="write judge/recalc/trust.json first")
    parser.add_argument(
        "--write-own", action="store_true", help="only write the judge's own records; no engine"
    )
    parser.add_argument("--folds", type=int, default=0, metavar="N")
    parser.add_argument(
        "--without-each", action="store_true", help="also leave out each engine in turn"
    )
    parser.add_argument("--without", action="append", default=[], metavar="ENGINE")
    parser.add_argument("--misses", type=Path, help="file that lists the cells that are not right")
    parser.add_argument(
        "--answers", type=Path, help="folder that keeps the engines' answers for later runs"
    )
    return parser.parse_args()


if __name__ == "__main__":
    run_command(main)
