"""Measures time and memory of rule lists: the judge, openpyxl and pandas in the same run.

    python -m benchmarks.rules DATA [times|memory]

DATA is the folder with ``spider2v_calc`` (recorded verdicts and workbooks). Each recorded call is
judged from the files, under ``official`` and under ``standard`` without engines. Immediately after
that, openpyxl opens both workbooks, and pandas reads the first sheet of both, as the published
function does before it compares anything; so the machine is equally busy for both. Times are
processor time of one call after a warm-up. Memory is the peak that Python allocates during one
call, in a separate process that may use 512 MB more than at its start, for the calls with the
largest files.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd

from benchmarks.command_line import existing, parser_of, run_command
from judge.compare.cells.computing import NoEngines
from judge.compare.published_error import Side
from judge.compare.rules.book import Book
from judge.compare.rules.checker import finding_of_standard, published_verdict
from judge.compare.rules.options import RuleOptions
from judge.core.submission import Origin
from judge.workbook.reader import open_workbook
from tests.bounds import bound_process

LARGEST = 4
MEMORY_BYTES = 512 << 20


def main() -> None:
    """Prints the median and the worst time of each way."""
    parser = parser_of(__doc__)
    parser.add_argument("data", type=existing)
    parser.add_argument(
        "figures", nargs="*", choices=["times", "memory", []], metavar="times|memory"
    )
    options = parser.parse_args()
    root = options.data / "spider2v_calc"
    lines = (root / "published_verdicts.jsonl").read_text().splitlines()
    records = [record for record in map(json.loads, lines) if record["kind"] != "header"]
    ways: dict[str, Callable[[dict[str, Any], Path], object]] = {
        "official": _official,
        "standard": _standard,
        "openpyxl and pandas": _libraries,
    }
    warnings.simplefilter("ignore")
    chosen = options.figures or ["times", "memory"]
    for way in ways.values():
        way(records[0], root)
    if "times" in chosen:
        _print_times(ways, records, root)
    if "memory" in chosen:
        _print_memory(ways, records, root)


_Ways = dict[str, Callable[[dict[str, Any], Path], object]]


def _print_times(ways: _Ways, records: list[dict[str, Any]], root: Path) -> None:
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for record in records:
        for name, way in ways.items():
            started = time.process_time()
            way(record, root)
            taken[name].append(1000 * (time.process_time() - started))
    for name, times in taken.items():
        median, worst = statistics.median(times), max(times)
        print(f"{name:20} {len(times)} calls: median {median:.1f} ms, worst {worst:.0f} ms")


def _print_memory(ways: _Ways, records: list[dict[str, Any]], root: Path) -> None:
    largest = sorted(records, key=lambda record: -(root / record["result_path"]).stat().st_size)
    for name, way in ways.items():
        peak = max(_peak_mb(way, record, root) for record in largest[:LARGEST])
        print(f"{name:20} memory at most {peak:.1f} MB")


def _peak_mb(way: Callable[[dict[str, Any], Path], object], record: Any, root: Path) -> float:
    """Measures the peak memory that a call allocates."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        bound_process(cpu_s=60, memory_bytes=MEMORY_BYTES)
        tracemalloc.start()
        way(record, root)
        os.write(writing, str(tracemalloc.get_traced_memory()[1] / (1 << 20)).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        output = pipe.read()
    _, status = os.waitpid(child, 0)
    if not output:
        sys.exit(f"a call ended with {os.waitstatus_to_exitcode(status)}")
    return float(output)


def _opened(record: dict[str, Any], root: Path) -> tuple[Book, Book, RuleOptions]:
    answer = Book(open_workbook(root / record["result_path"]), Side.ANSWER)
    gold = Book(open_workbook(root / record["expected_path"]), Side.GOLD)
    document = {"rules": record["rules"], "evaluator": record["evaluator"]}
    return answer, gold, RuleOptions.of(document)


def _official(record: dict[str, Any], root: Path) -> object:
    verdict = published_verdict(*_opened(record, root))
    assert verdict.equal == bool(record["value"])
    return verdict


def _standard(record: dict[str, Any], root: Path) -> object:
    answer, gold, options = _opened(record, root)
    return finding_of_standard(answer, gold, options, NoEngines(), Origin.FINISHED, "standard")


def _libraries(record: dict[str, Any], root: Path) -> object:
    paths = [root / record["result_path"], root / record["expected_path"]]
    books = [openpyxl.load_workbook(path) for path in paths]
    return books, [pd.read_excel(path) for path in paths]


if __name__ == "__main__":
    run_command(main)
