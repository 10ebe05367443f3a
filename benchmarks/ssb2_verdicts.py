"""Reproduces the recorded verdicts of SpreadsheetBench 2's published functions.

    python benchmarks/ssb2_verdicts.py DATA [--out docs/ssb2-disagreements.md] [--score]

DATA is the folder with the published suites and the recorded verdicts. Prints how many rows the
profile ``ssb2-official`` reproduces, the processor time, and where ``ssb2`` disagrees. With
``--score``, every row becomes a task of a suite of SpreadsheetBench 2 with its finished workbook,
and `judge score` judges them with the profile as the only option.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from click.testing import CliRunner

from benchmarks.command_line import existing, run_command
from benchmarks.pairs import SUITE
from judge.cli.main import judge as judge_command
from judge.compare.cells.answer_range import check, prepare
from judge.compare.cells.comparison import Comparison, DifferenceClass
from judge.compare.cells.options import CELLS, GROUPS, range_spec
from judge.compare.cells.sides import Side
from judge.compare.cells.value import comparator
from judge.compare.profiles import get_profile
from judge.compare.published.spreadsheetbench2 import values_agree
from judge.workbook.cell import CellValue
from judge.workbook.reader import Workbook, open_workbook

FOLDER, VERDICTS, VALUES = "ssb2", "published_verdicts.jsonl", "published_values.jsonl"

_STYLES = {"color": ("font_color",)}


@dataclass(frozen=True, slots=True)
class Row:
    """A recorded verdict on an output, its gold and its input.

    Attributes:
        task: the task of SpreadsheetBench from which the workbooks come.
        kind: the kind of output: the gold itself, the untouched input, the gold of another case.
        gold, output, before: the three workbooks.
        position: the answer position.
        mode: ``value``, ``color`` or ``formula``.
        published: the values that the functions returned.
    """

    task: str
    kind: str
    gold: Path
    output: Path
    before: Path
    position: str
    mode: str
    published: dict[str, Any]

    def compare(self, profile: str, *, accept: str) -> Comparison:
        """Compares with a profile; workbooks are opened once for all rows of a task."""
        options = {"formulas": self.mode == "formula", "accept": accept}
        gold, output = _opened(self.gold), _opened(self.output)
        plan = prepare(range_spec(self.position, options=options), gold=gold, output=output)
        return check(
            plan,
            Side(gold),
            Side(output),
            profile=get_profile(profile),
            style=_STYLES.get(self.mode, ()),
            before=None if (before := _opened(self.before)) is None else Side(before),
            max_differences=1,
            ask_official=False,
        )

    def is_reproduced(self) -> bool:
        """Returns whether everything recorded is reproduced: verdicts, counts, shares, crashes."""
        ruled = self.compare("ssb2-official", accept=GROUPS)
        assert ruled.shares is not None
        counts = {
            group.name: [group.cells - group.differing_cells, group.cells] for group in ruled.groups
        }
        falls_over = any("the published script crashes" in note for note in ruled.notes)
        published = self.published
        return (
            (not falls_over and not ruled.differing_cells) is published["correct"]
            and ruled.equal is (published["accuracy"] == 1)
            and falls_over is bool(published["crash"])
            and ruled.shares.modification == published["modification_accuracy"]
            and ruled.shares.regression == published["regression_accuracy"]
            and counts.get("modification", [0, 0]) == published["modification"]
            and counts.get("regression", [0, 0]) == published["regression"]
        )


@lru_cache(maxsize=8)
def _opened(path: Path) -> Workbook:
    return open_workbook(path)


def recorded_rows(data: Path) -> Iterator[Row]:
    """Yields every recorded row, with the rows of a task together."""
    for line in (data / FOLDER / VERDICTS).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        folder = data / SUITE / "spreadsheet" / row["task"]
        gold = folder / row["gold"]
        yield Row(
            task=row["task"],
            kind=row["kind"],
            gold=gold,
            output=folder / row["output"],
            before=gold.with_name(gold.name.replace("_answer.", "_input.")),
            position=row["position"],
            mode=row["mode"],
            published=row["published"],
        )


def recorded_values(data: Path) -> Iterator[tuple[CellValue, CellValue, bool]]:
    """Yields every recorded pair of values, with the result of the published function."""
    for line in (data / FOLDER / VALUES).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        yield _value(row["gold"]), _value(row["output"]), row["published"]


def _value(written: str) -> CellValue:
    """Reads a value as Python writes it: None, a boolean, a number, a string, a date or a time."""
    if (match := re.fullmatch(r"datetime\.(datetime|date|time)\(([\d, ]*)\)", written)) is not None:
        value: CellValue = getattr(dt, match[1])(*map(int, match[2].split(",")))
        return value
    if written.startswith("'"):
        return written[1:-1]
    constants: dict[str, CellValue] = {"None": None, "True": True, "False": False}
    if written in constants:
        return constants[written]
    return int(written) if re.fullmatch(r"-?\d+", written) else float(written)


# -- the same rows through `judge score` -----------------------------------------------------------

# The folder of a row's input tells `judge score` how to compare, as in the published suite.
_CATEGORIES = {
    "value": ("Template", "Plain"),
    "color": ("Debugging", "Font Color"),
    "formula": ("Debugging", "Embedded"),
}


def score_rows(rows: Sequence[Row], folder: Path) -> list[str]:
    """Judges rows with `judge score --profile ssb2-official`, formulas computed as by default.

    Args:
        rows: the rows; each becomes a task.
        folder: an empty folder for the suite, the finished workbooks and the results.

    Returns:
        A line for every row whose result differs from the recorded one.
    """
    suite, outputs, results = (folder / name for name in ("suite", "outputs", "results"))
    _write_suite(rows, suite, outputs)
    arguments = ["score", str(outputs), "--dataset", str(suite), "--out", str(results)]
    done = CliRunner().invoke(judge_command, [*arguments, "--profile", "ssb2-official"])
    assert done.exit_code == 0, done.output
    lines = (results / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    records = {record["task"]: record for record in map(json.loads, lines)}
    assert len(records) == len(rows)
    return [
        f"{row.task}, {row.kind}, {row.mode}: {records[task_id]['verdict']}"
        for task_id, row in _named(rows)
        if not _is_recorded_verdict(row, records[task_id])
    ]


def _named(rows: Sequence[Row]) -> Iterator[tuple[str, Row]]:
    return ((f"row_{number:04}", row) for number, row in enumerate(rows, 1))


def _write_suite(rows: Sequence[Row], suite: Path, outputs: Path) -> None:
    outputs.mkdir(parents=True)
    definitions: dict[str, list[dict[str, str]]] = {}
    for task_id, row in _named(rows):
        category, mode = _CATEGORIES[row.mode]
        files = suite / category / "spreadsheet" / mode / row.task
        files.mkdir(parents=True, exist_ok=True)
        for path in (row.gold, row.before):
            shutil.copyfile(path, files / path.name)
        shutil.copyfile(row.output, outputs / f"{task_id}_output.xlsx")
        definitions.setdefault(category, []).append(
            {
                "id": task_id,
                "instruction": "The workbook as recorded.",
                "spreadsheet_path": f"spreadsheet/{mode}/{row.task}/{row.before.name}",
                "golden_response_path": f"spreadsheet/{mode}/{row.task}/{row.gold.name}",
                "answer_position": row.position,
            }
        )
    for category, records in definitions.items():
        text = json.dumps(records, ensure_ascii=False)
        (suite / category / "dataset.json").write_text(text, encoding="utf-8")


def _is_recorded_verdict(row: Row, record: Mapping[str, Any]) -> bool:
    """Returns whether a record of cases.jsonl has the verdict, counts and shares of a row."""
    comparison, published = record["comparison"], row.published
    counts = {
        name: [group["cells"] - group["differing_cells"], group["cells"]]
        for name, group in comparison["groups"].items()
    }
    falls_over = any("the published script crashes" in note for note in comparison["notes"])
    return (
        (record["verdict"] == "AC") is (published["accuracy"] == 1)
        and (not falls_over and not comparison["differing_cells"]) is published["correct"]
        and falls_over is bool(published["crash"])
        and all(
            (comparison["shares"][name] or 0) == published[f"{name}_accuracy"]
            and counts.get(name, [0, 0]) == published[name]
            for name in ("modification", "regression")
        )
    )


# -- where ``ssb2`` and the functions disagree -----------------------------------------------------


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A verdict that ``ssb2`` does not share.

    Attributes:
        row: the row.
        by: what decides: every cell, or the rule of the task.
        accepts: whether ``ssb2`` accepts the output.
        reason: why, in one line, which is the same for equal causes.
    """

    row: Row
    by: str
    accepts: bool
    reason: str


def disagreements(row: Row) -> Iterator[Disagreement]:
    """Yields the verdicts of a row that ``ssb2`` does not share, with the reason."""
    for by, accept, field in (("every cell", CELLS, "correct"), ("the rule", GROUPS, "accuracy")):
        comparison = row.compare("ssb2", accept=accept)
        if comparison.equal is not bool(row.published[field]):
            yield Disagreement(row, by, comparison.equal, _reason(row, comparison))


def _reason(row: Row, comparison: Comparison) -> str:
    published = row.compare("ssb2-official", accept=GROUPS)
    notes = " ".join(published.notes)
    if "the published script crashes" in notes:
        return "they crash on the position"
    if comparison.equal and "accepts no output" in notes:
        return "no cell to change, or none to keep, counts as a share of 0"
    if "as the published script looks for it" in notes:
        return "cells of a sheet that the input lacks do not count"
    if comparison.difference_counts.keys() == {DifferenceClass.NOT_CALCULATED}:
        return "a formula without a value counts as blank"
    if any(isinstance(difference.expected, dt.datetime) for difference in comparison.differences):
        return "dates agree up to 1 % of their serial number"
    if comparison.difference_counts.keys() == {DifferenceClass.STYLE}:
        return "conditional formats do not count"
    return "unknown"


def document(entries: Sequence[Disagreement], rows: int) -> str:
    """Formats the disagreements as Markdown."""
    lines = [
        "# Where `ssb2` and the published functions of SpreadsheetBench 2 disagree",
        "",
        f"Of the {rows:,} recorded comparisons (golds, untouched inputs and golds of other cases",
        "of SpreadsheetBench), `ssb2-official` reproduces all verdicts, counts and shares. `ssb2`",
        f"gives another verdict {len(entries)} times, by every cell or by the rule of the task.",
        "Formulas were not computed. Written by",
        "`python benchmarks/ssb2_verdicts.py DATA --out docs/ssb2-disagreements.md`.",
        "",
    ]
    for accepts in (True, False):
        title = "accepts, the functions do not" if accepts else "rejects, the functions accept"
        lines += [f"## `ssb2` {title}", "", "| decided by | what the functions do | verdicts |"]
        lines.append("|---|---|---|")
        counted = Counter((entry.by, entry.reason) for entry in entries if entry.accepts is accepts)
        for (by, reason), count in sorted(counted.items()):
            lines.append(f"| {by} | {reason} | {count} |")
        lines.append("")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    """Prints what is reproduced, and writes where ``ssb2`` disagrees."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("data", type=existing)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--score", action="store_true", help="judge the rows with `judge score`")
    options = parser.parse_args(arguments)
    started = time.process_time()
    rows = list(recorded_rows(options.data))
    if options.score:
        with TemporaryDirectory() as folder:
            others = score_rows(rows, Path(folder))
        print(f"judge score: {len(rows) - len(others):,} of {len(rows):,} rows are reproduced")
        print(*others, sep="\n", end="\n" if others else "")
        return
    reproduced = sum(row.is_reproduced() for row in rows)
    print(f"ssb2-official: {reproduced:,} of {len(rows):,} rows are reproduced")
    values = list(recorded_values(options.data))
    agreeing = sum(values_agree(gold, output) is expected for gold, output, expected in values)
    print(f"ssb2-official: {agreeing} of {len(values)} pairs of values are reproduced")
    print(f"processor time: {time.process_time() - started:.1f} s")
    agree = comparator(get_profile("ssb2"))
    shared = sum(agree(gold, output) is expected for gold, output, expected in values)
    print(f"ssb2: {shared} of {len(values)} pairs of values get the same result")
    entries = [entry for row in rows for entry in disagreements(row)]
    text = document(entries, len(rows))
    if options.out is None:
        print(text)
    else:
        options.out.write_text(text, encoding="utf-8")
        print(f"{options.out}: written")


if __name__ == "__main__":
    run_command(main)
