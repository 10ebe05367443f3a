"""Checks that a busy machine changes no verdict: judges ten workbooks with many formulas often.

    python -m benchmarks.under_load                      # 200 times each, 4 busy processes a core
    python -m benchmarks.under_load --times 20 --busy 8

Every judging begins with empty caches and computes each formula. A verdict is the outcome of the
comparison with its differences and with every computed value. Exits with 1 if a workbook got
different verdicts.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import openpyxl

from benchmarks.command_line import run_command
from judge.compare.cells.computing import compare_files
from judge.core.submission import Origin
from judge.recalc.computing import EngineCompute
from judge.recalc.policy import Recalculator
from judge.recalc.select import available_engines, make_engines
from judge.sandbox import open_sandbox
from judge.workbook.cell import CellRange, ComputedValues
from judge.workbook.reader import Workbook

NAMES = ("Anna", "Boris", "Chloe", "Dev", "Emil", "Fatou", "Goran", "Hana", "Ines", "Jo")
ACCENTED = ("René", "Zoë", "Åsa", "Ünal")

WINDOW = 200
"""How many rows a formula reads at most."""

Written = Callable[[int, int], tuple[str, object]]
"""Row and number of rows -> the formula in column D, and the value that Excel shows for it."""


def names_of(row: int, *, accented: bool) -> str:
    """Returns the content of column A in a row."""
    if accented and row % 290 == 0:
        return ACCENTED[row // 290 % len(ACCENTED)]
    return f"{NAMES[row % len(NAMES)]}_{row}"


def number(row: int) -> int:
    """Returns the content of column B in a row."""
    return row * 7919 % 1000


def group(row: int) -> str:
    """Returns the content of column C in a row."""
    return NAMES[row % len(NAMES)]


def _upper(row: int, _: int) -> tuple[str, object]:
    return f"=UPPER(A{row})", names_of(row, accented=True).upper()


def _window(row: int, rows: int) -> tuple[int, int]:
    """Returns the rows that the formula of a row reads, so that work grows only linearly."""
    first = max(1, min(row - WINDOW // 2, rows - WINDOW + 1))
    return first, min(rows, first + WINDOW - 1)


def _running(row: int, rows: int) -> tuple[str, object]:
    first, last = _window(row, rows)
    return f"=SUM(B{first}:B{last})", sum(map(number, range(first, last + 1)))


def _sumifs(row: int, rows: int) -> tuple[str, object]:
    first, last = _window(row, rows)
    total = sum(
        number(other_row) for other_row in range(first, last + 1) if group(other_row) == group(row)
    )
    return f"=SUMIFS(B{first}:B{last},C{first}:C{last},C{row})", total


def _countif(row: int, rows: int) -> tuple[str, object]:
    first, last = _window(row, rows)
    count = sum(number(other_row) > number(row) for other_row in range(first, last + 1))
    return f'=COUNTIF(B{first}:B{last},">"&B{row})', count


def _lookup(row: int, rows: int) -> tuple[str, object]:
    first, last = _window(row, rows)
    return f"=VLOOKUP(A{row},A{first}:B{last},2,FALSE)", number(row)


def _match(row: int, rows: int) -> tuple[str, object]:
    first, last = _window(row, rows)
    return f"=INDEX(C{first}:C{last},MATCH(A{row},A{first}:A{last},0))", group(row)


def _branch(row: int, _: int) -> tuple[str, object]:
    size = "large" if number(row) > 600 else "middle" if number(row) > 300 else "small"
    return f'=IF(B{row}>600,"large",IF(B{row}>300,"middle","small"))', size


def _pieces(row: int, _: int) -> tuple[str, object]:
    text = names_of(row, accented=False)
    return (
        f'=MID(A{row},FIND("_",A{row})+1,9)&"-"&LEFT(A{row},2)',
        f"{text.split('_')[1]}-{text[:2]}",
    )


def _lower(row: int, _: int) -> tuple[str, object]:
    return f"=LOWER(A{row})", names_of(row, accented=True).lower()


def _product(row: int, rows: int) -> tuple[str, object]:
    return f"=SUMPRODUCT(B{row}:B{row + 2},B{row}:B{row + 2})", sum(
        number(other_row) ** 2 for other_row in range(row, min(row + 3, rows + 1))
    )


BOOKS: dict[str, tuple[Written, bool]] = {
    "UPPER with accents": (_upper, True),
    "LOWER with accents": (_lower, True),
    "SUM": (_running, False),
    "SUMIFS": (_sumifs, False),
    "COUNTIF": (_countif, False),
    "VLOOKUP": (_lookup, False),
    "INDEX and MATCH": (_match, False),
    "nested IF": (_branch, False),
    "pieces of text": (_pieces, False),
    "SUMPRODUCT": (_product, False),
}
"""Name -> the kind of its formulas, and whether its strings have accents."""


def book(written: Written, rows: int, *, accented: bool, with_values: bool) -> bytes:
    """Makes one of the workbooks; a gold has values instead of the formulas."""
    workbook = openpyxl.Workbook()
    sheet = workbook.worksheets[0]
    sheet.title = "S"
    for row in range(1, rows + 1):
        formula, value = written(row, rows)
        result = value if with_values else formula
        sheet.append([names_of(row, accented=accented), number(row), group(row), result])
    stream = io.BytesIO()
    workbook.save(stream)
    return stream.getvalue()


class Watched(EngineCompute):
    """Engines that remember everything they computed, values as well as reasons."""

    def __init__(self, recalculator: Recalculator) -> None:
        super().__init__(recalculator)
        self.computed = hashlib.sha256()

    def fill(
        self,
        workbook: Workbook,
        ranges: Sequence[CellRange],
        *,
        origin: Origin,
        like: Workbook | None = None,
    ) -> ComputedValues:
        """Computes with the engines."""
        computed = super().fill(workbook, ranges, origin=origin, like=like)
        outcome = (
            sorted(computed.values.items()),
            sorted(computed.not_calculated),
            computed.engines,
        )
        self.computed.update(repr(outcome).encode())
        return computed


def busy(parent: int) -> None:
    """Keeps a processor busy as long as the parent process exists."""
    while os.getppid() == parent:
        for _ in range(1_000_000):
            pass


@contextlib.contextmanager
def load(processes: int) -> Iterator[None]:
    """Runs a number of busy processes for as long as this is open."""
    started = [
        multiprocessing.Process(target=busy, args=(os.getpid(),), daemon=True)
        for _ in range(processes)
    ]
    for process in started:
        process.start()
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.join()


def main() -> int:
    """Judges all workbooks in turns, and prints the verdicts of each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--busy", type=int, default=4, help="busy processes for each core")
    parser.add_argument("--sandbox", default="auto")
    arguments = parser.parse_args()
    pairs = {
        name: tuple(
            book(written, arguments.rows, accented=accented, with_values=with_values)
            for with_values in (True, False)
        )
        for name, (written, accented) in BOOKS.items()
    }
    verdicts: dict[str, Counter[str]] = {name: Counter() for name in pairs}
    started = time.monotonic()
    with contextlib.ExitStack() as stack:
        sandbox = stack.enter_context(contextlib.closing(open_sandbox(arguments.sandbox)))
        engines = make_engines(sandbox, available_engines(sandbox))
        for engine in engines:
            stack.callback(engine.close)
        stack.enter_context(load(arguments.busy * (os.cpu_count() or 1)))
        for turn in range(1, arguments.times + 1):
            for name, (gold, output) in pairs.items():
                compute = Watched(Recalculator(engines))
                comparison = compare_files(gold, output, f"S!D1:D{arguments.rows}", compute=compute)
                computed = compute.computed.hexdigest()[:8]
                verdict = (
                    "equal"
                    if comparison.equal
                    else f"{sum(comparison.difference_counts.values())} differ"
                )
                verdicts[name][f"{verdict}, values {computed}"] += 1
            if turn in {1, 2, 5} or turn % 10 == 0:
                seconds = time.monotonic() - started
                print(
                    f"{turn} times each, {seconds / turn:.1f} s a turn", file=sys.stderr, flush=True
                )
    for name, seen in verdicts.items():
        counts = "; ".join(f"{verdict}: {count} times" for verdict, count in seen.items())
        print(f"{name:20} {counts}")
    varied = [name for name, seen in verdicts.items() if len(seen) > 1]
    print(f"{len(varied)} of {len(verdicts)} workbooks got more than one verdict")
    return 1 if varied else 0


if __name__ == "__main__":
    run_command(main)
