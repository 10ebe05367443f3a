"""The contenders of ``benchmarks/compare.py``, which runs each one in a separate process.

    python -m benchmarks.contenders NAME < cases.json > costs.json

Since memory is measured, only the modules that a contender needs are imported.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

Contender = Callable[[Path, str, "str | None"], bool]


def published(path: Path, position: str, answer_sheet: str | None) -> bool:
    """Applies the published rules with openpyxl, as the script does."""
    del answer_sheet  # the script never reads it
    import openpyxl  # noqa: PLC0415

    from judge.compare.published.spreadsheetbench import ScriptError, official_parts  # noqa: PLC0415

    gold: Any = openpyxl.load_workbook(path, data_only=True)
    answer: Any = openpyxl.load_workbook(path, data_only=True)
    try:
        parts = official_parts(position, gold.sheetnames, answer.sheetnames)
    except ScriptError:
        return False
    if parts is None:
        return False
    return all(
        part.window is None or _cells_agree(gold[part.sheet], answer[part.sheet], part.window)
        for part in parts
    )


def _cells_agree(gold: Any, answer: Any, window: Any) -> bool:
    from judge.compare.published.spreadsheetbench import official_agree  # noqa: PLC0415
    from judge.workbook.address import column_letters  # noqa: PLC0415

    for column in range(window.min_column, window.max_column + 1):
        letters = column_letters(column)
        for row in range(window.min_row, window.max_row + 1):
            name = f"{letters}{row}"
            if not official_agree(gold[name].value, answer[name].value):
                return False
    return True


def ours(path: Path, position: str, answer_sheet: str | None) -> bool:
    """Compares with the judge: `standard`, together with the result of the published rules."""
    from judge.compare.cells.computing import compare_files  # noqa: PLC0415

    return compare_files(path, path, position, answer_sheet=answer_sheet).equal


def ours_apart(path: Path, position: str, answer_sheet: str | None) -> bool:
    """Compares two equal workbooks with the judge and reads both of them."""
    from judge.compare.cells.answer_range import check, prepare  # noqa: PLC0415
    from judge.compare.cells.options import range_spec  # noqa: PLC0415
    from judge.compare.cells.sides import Side  # noqa: PLC0415
    from judge.compare.profiles import get_profile  # noqa: PLC0415
    from judge.workbook.reader import open_workbook  # noqa: PLC0415

    gold, output = open_workbook(path), open_workbook(path)
    plan = prepare(
        range_spec(position, answer_sheet),
        gold=gold,
        output=output,
    )
    return check(plan, Side(gold), Side(output), profile=get_profile("standard")).equal


CONTENDERS: dict[str, Contender] = {
    "published": published,
    "ours": ours,
    "ours_apart": ours_apart,
}


def _peak_bytes() -> int:
    """Returns the peak memory of this program, without the memory of its parent when it forked."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/self/status has no VmHWM")


def main() -> None:
    """Runs the contender named on the command line on the cases from standard input."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description="Runs a contender of benchmarks.compare.")
    parser.add_argument("name", choices=CONTENDERS)
    contender = CONTENDERS[parser.parse_args().name]
    cases: list[tuple[str, str, str | None]] = json.load(sys.stdin)
    contender(Path(cases[0][0]), cases[0][1], cases[0][2])  # imports are not measured
    idle = _peak_bytes()
    costs = []
    for name, position, answer_sheet in cases:
        path = Path(name)
        wall, cpu = time.perf_counter(), time.process_time()
        accepted = contender(path, position, answer_sheet)
        cpu_s, wall_s = time.process_time() - cpu, time.perf_counter() - wall
        costs.append((round(cpu_s, 6), round(wall_s, 6), accepted))
    json.dump({"costs": costs, "peak_bytes": _peak_bytes(), "idle_bytes": idle}, sys.stdout)


if __name__ == "__main__":
    main()
