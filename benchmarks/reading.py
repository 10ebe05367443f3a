"""Measures the cost of reading ranges of a large worksheet, also with another version.

.venv/bin/python -m benchmarks.reading [OLD_TREE ...]
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import time
from pathlib import Path

ROWS = 40_000
RANGES = {
    "all cells": (1, 1, ROWS, 8),
    "two columns": (1, 2, ROWS, 3),
    "the first ten rows": (1, 1, 10, 8),
    "ten rows in the middle": (ROWS // 2, 1, ROWS // 2 + 9, 8),
    "the last ten rows": (ROWS - 9, 1, ROWS, 8),
}
REPEATS = 5


def workbook() -> bytes:
    """Makes a workbook with eight columns, as openpyxl writes it: 12 MB of XML."""
    import openpyxl  # noqa: PLC0415

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("S")
    for row in range(1, ROWS + 1):
        sheet.append([row, f"text {row % 977}", row * 1.5, "b", row % 7 == 0, 3.25, None, row * 17])
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def measured(data: bytes) -> dict[str, float]:
    """Measures milliseconds of processor time for each range, the best of several tries."""
    from judge.workbook.address import Window  # noqa: PLC0415 - maybe of another version
    from judge.workbook.reader import open_workbook  # noqa: PLC0415

    times = {}
    for name, corners in RANGES.items():
        best = float("inf")
        for _ in range(REPEATS):
            sheet = open_workbook(data).sheet("S")
            started = time.process_time()
            sheet.values(Window(*corners))
            best = min(best, time.process_time() - started)
        times[name] = round(best * 1000, 1)
    return times


def main() -> None:
    """Prints a line for each range."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("trees", type=Path, nargs="*", metavar="OLD_TREE")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measured(workbook())))
        return
    for tree in options.trees:
        if not (tree / "judge").is_dir():
            parser.error(f"{tree} is no clone of the judge: it has no folder judge")
    trees = [*options.trees, Path(__file__).parents[1]]
    times = []
    for tree in trees:
        program = f"import runpy, sys; sys.path.insert(0, {str(tree.resolve())!r})\n"
        program += (
            f"sys.argv[1:] = ['--measure']\nrunpy.run_path({__file__!r}, run_name='__main__')"
        )
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tree
        )
        times.append(json.loads(done.stdout))
    for name in RANGES:
        print(f"{name:24}", *(f"{tree_times[name]:8.1f} ms" for tree_times in times))


if __name__ == "__main__":
    main()
