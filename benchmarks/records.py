"""The records by which engines are believed, and how right the cascade is with them.

    python -m benchmarks.records SUITE --corpus FOLDER --corpus FOLDER --write --folds

Every formula cell of the golds of a suite, of the battery, and of the workbooks of some folders
(saved by Excel) is computed by every engine with nothing trusted. What comes out, held against
Excel's values, is the table of records (``judge/recalc/trust.json``; ``--write`` writes it). Then
the cascade computes all of it again with that table, and with ``--folds`` once more, each file with
a table that was made without its fold, one of ten.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.battery import PLACE, PLACE_RANGE, probes
from benchmarks.evidence import FOLDS, Sample, fold_of, samples_of, trust_data
from benchmarks.golds import Gold, agrees, golds, read_gold, stale_golds
from judge.core.submission import Origin
from judge.errors import JudgeError
from judge.recalc.contract import Engine
from judge.recalc.dependency import FormulaIndex
from judge.recalc.names import FORMULAS
from judge.recalc.policy import Recalculator
from judge.recalc.select import available_engines, make_engines
from judge.recalc.trust import read_table
from judge.sandbox import open_sandbox
from judge.workbook.cell import CellRef, CellValue, ErrorValue
from judge.workbook.number_formats import to_serial
from judge.workbook.reader import open_workbook, sheet_formulas

TRUST = Path(__file__).parent.parent / "judge" / "recalc" / "trust.json"
GOLDS = "golds"
BATTERY = "battery"
EMPTY = read_table({"measured_with": {}, "functions": {}})


@dataclass(frozen=True, slots=True)
class Measured:
    """A workbook with values of Excel's.

    Attributes:
        corpus: the collection that it is from.
        source: the corpus and the file, or the task of which the file is one case.
        gold: its formula cells with Excel's values.
        package: what is computed.
        accepts: whether a value of a cell is Excel's.
    """

    corpus: str
    source: str
    gold: Gold
    package: bytes
    accepts: Callable[[CellRef, CellValue], bool]


def is_excels(expected: CellValue, actual: CellValue) -> bool:
    """Whether a value is Excel's: numbers to a millionth, errors by their code, blank as ""."""
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
    """The workbooks of a folder."""
    for path in sorted(folder.rglob("*.xlsx")):
        with contextlib.suppress(JudgeError):
            gold = read_gold(path.name, open_workbook(path), ())
            if gold is not None:
                source = f"{folder.name}/{path.relative_to(folder)}"
                yield Measured(folder.name, source, gold, path.read_bytes(), _strictly(gold))


def _strictly(gold: Gold) -> Callable[[CellRef, CellValue], bool]:
    return lambda ref, value: is_excels(gold.expected[ref], value)


def of_suite(suite: Path) -> Iterator[Measured]:
    """The golds of a suite; the cases of a task are one source."""
    stale = stale_golds()
    for gold in golds(suite):
        if gold.name not in stale:
            source = f"{GOLDS}/{gold.name.split('_')[1]}"
            yield Measured(GOLDS, source, gold, gold.stripped, _as_published(gold))


def _as_published(gold: Gold) -> Callable[[CellRef, CellValue], bool]:
    return lambda ref, value: agrees(gold.expected[ref], value)


def of_battery() -> Iterator[Measured]:
    """The formulas of the battery; those of one page are one source."""
    for number, probe in enumerate(probes()):
        package = probe.workbook()
        workbook = open_workbook(package)
        (sheet,) = workbook.sheet_names
        cells = list(sheet_formulas(workbook, sheet))
        gold = Gold(
            name=f"{probe.page} {number}",
            stripped=package,
            cells={CellRef(sheet, cell.row, cell.column): cell for cell in cells},
            expected={PLACE: probe.expected},
            volatile=frozenset(),
            answer=frozenset(),
            ranges=(PLACE_RANGE,),
            index=FormulaIndex(workbook.sheet_names, {sheet: cells}.__getitem__),
            date_1904=False,
        )
        source = f"{BATTERY}/{probe.page}"
        yield Measured(BATTERY, source, gold, package, _accepted_by(probe.accepts))


def _accepted_by(accepts: Callable[[CellValue], bool]) -> Callable[[CellRef, CellValue], bool]:
    return lambda _, value: accepts(value)


def record(
    measured: Iterator[Measured], engines: Sequence[Engine], alone: Counter[tuple[str, str]]
) -> list[Sample]:
    """What every engine says of every cell, as samples; ``alone`` counts who was right where."""
    recalculator = Recalculator(engines, trust=EMPTY)
    found: list[Sample] = []
    for item in measured:
        heard = recalculator.explain(
            open_workbook(item.package), item.gold.ranges, origin=Origin.SOLUTION
        )
        found += samples_of(item.gold, heard, item.source, item.accepts)
        for ref in item.gold.expected.keys() - item.gold.volatile:
            words = heard[ref].typed if ref in heard else {}
            right = [name for name, word in words.items() if item.accepts(ref, word)]
            for name in (*right, *(["any"] if right else [])):
                alone[category(item), name] += 1
        print(f"{item.source}: {len(heard)} cells", file=sys.stderr, flush=True)
    return found


def judged(
    measured: Iterator[Measured], tables: Mapping[int, Recalculator]
) -> Counter[tuple[str, str]]:
    """How many cells the cascade has right, wrong, and open, by category.

    Args:
        measured: the workbooks.
        tables: fold -> a recalculator with the table for it.
    """
    counts: Counter[tuple[str, str]] = Counter()
    for item in measured:
        recalculator = tables[fold_of(item.source)]
        workbook = open_workbook(item.package)
        computed = recalculator.fill(workbook, item.gold.ranges, origin=Origin.SOLUTION)
        for ref in item.gold.expected.keys() - item.gold.volatile:
            if ref not in computed.values:
                outcome = "open"
            elif item.accepts(ref, computed.values[ref]):
                outcome = "right"
            else:
                outcome = "wrong"
            counts[category(item), outcome] += 1
            counts[category(item), "cells"] += 1
    return counts


def category(item: Measured) -> str:
    """The corpus, and the folder of the file where there are folders."""
    parts = item.source.split("/")
    return "/".join([item.corpus, *parts[1:-1]])


def main() -> None:
    arguments = _arguments()

    def measured() -> Iterator[Measured]:
        for folder in arguments.corpus:
            yield from of_folder(folder)
        if arguments.suite:
            yield from of_suite(arguments.suite)
        yield from of_battery()

    with contextlib.ExitStack() as stack:
        sandbox = stack.enter_context(contextlib.closing(open_sandbox(arguments.sandbox)))
        names = [name for name in available_engines(sandbox) if name != FORMULAS]
        engines = make_engines(sandbox, tuple(names))
        for engine in engines:
            stack.callback(engine.close)
        versions = {engine.name: engine.version for engine in engines}
        alone: Counter[tuple[str, str]] = Counter()
        samples = record(measured(), engines, alone)
        data = trust_data(samples, versions)
        if arguments.write:
            TRUST.write_text(as_text(data), encoding="utf-8")
        whole = Recalculator(engines, trust=read_table(data))
        report = {"plain": judged(measured(), dict.fromkeys(range(FOLDS), whole))}
        if arguments.folds:
            tables = {}
            for fold in range(FOLDS):
                kept = [sample for sample in samples if fold_of(sample.source) != fold]
                table = read_table(trust_data(kept, versions))
                tables[fold] = Recalculator(engines, trust=table)
            report["folds"] = judged(measured(), tables)
    print_report(report, alone, names)


def as_text(data: Mapping[str, Any]) -> str:
    """The table as it stands in the package: a function or a shape on a line."""
    blocks = [f' "measured_with": {json.dumps(data["measured_with"])}']
    for part in ("functions", "shapes"):
        lines = (
            f"  {json.dumps(name)}: {json.dumps(records, separators=(',', ':'))}"
            for name, records in data[part].items()
        )
        blocks.append(f' "{part}": {{\n' + ",\n".join(lines) + "\n }")
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def print_report(
    report: Mapping[str, Counter[tuple[str, str]]],
    alone: Counter[tuple[str, str]],
    engines: Sequence[str],
) -> None:
    """The shares by category and engine, and whole corpora."""
    plain = report["plain"]
    rows = sorted({name for name, _ in plain})
    corpora = sorted({row.split("/")[0] for row in rows})
    ways = [*engines, "any"]
    print("| | cells |", " | ".join([*report, *ways, "wrong", "open"]), "|")
    print("|---|" + "---|" * (len(report) + len(ways) + 3))
    for row in [*corpora, *(row for row in rows if row not in corpora)]:
        below = [name for name in rows if name == row or name.startswith(f"{row}/")]
        cells = sum(plain[name, "cells"] for name in below)
        shares = [sum(counts[name, "right"] for name in below) for counts in report.values()]
        shares += [sum(alone[name, way] for name in below) for way in ways]
        ends = [str(sum(plain[name, end] for name in below)) for end in ("wrong", "open")]
        print(f"| {row} | {cells:,} |", " | ".join([*(f"{n / cells:.2%}" for n in shares), *ends]))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("suite", type=Path, nargs="?")
    parser.add_argument("--corpus", type=Path, action="append", default=[])
    parser.add_argument("--sandbox", default="auto")
    parser.add_argument("--write", action="store_true", help="write judge/recalc/trust.json")
    parser.add_argument("--folds", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
