"""Reads the recorded verdicts of the published script, and the workbooks that they are about."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from judge.compare.cells.answer_range import check, prepare
from judge.compare.cells.comparison import Comparison
from judge.compare.cells.options import range_spec
from judge.compare.cells.sides import Side
from judge.compare.profiles import get_profile
from judge.workbook.reader import Workbook, open_workbook

SUITE = "spreadsheetbench_912_dev300"
VERIFIED = "spreadsheetbench_verified_dev128"
PAIRS = Path("official_verdicts", "workbook_pairs.jsonl")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two workbooks with the verdict of the published script.

    Attributes:
        task: the task's id as text.
        gold: the workbook that is used as the gold.
        prediction: the workbook that is used as the answer.
        position: the task's answer position.
        answer_sheet: the sheet that the suite names in addition.
        accepted: whether the script accepted the answer; false if it crashed.
        raised: class of the exception with which it crashed; empty if it did not.
    """

    task: str
    gold: Path
    prediction: Path
    position: str
    answer_sheet: str | None
    accepted: bool
    raised: str

    @property
    def kind(self) -> str:
        """Which workbook the answer is: the gold, the untouched input, or another case's gold."""
        if self.gold == self.prediction:
            return "gold itself"
        return "untouched input" if "_input" in self.prediction.name else "gold of another case"


def tasks(suite: Path) -> dict[str, dict[str, str | None]]:
    """Reads the records of a suite's tasks from its dataset.json, by id."""
    records = json.loads((suite / "dataset.json").read_text(encoding="utf-8"))
    return {str(record["id"]): record for record in records}


def recorded_pairs(data: Path) -> Iterator[Pair]:
    """Yields every recorded pair, with the pairs of a task together."""
    records = tasks(data / SUITE)
    for line in (data / PAIRS).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        record = records[str(row["task"])]
        folder = data / SUITE / "spreadsheet" / str(row["task"])
        yield Pair(
            task=str(row["task"]),
            gold=folder / row["gold"],
            prediction=folder / row["prediction"],
            position=str(record["answer_position"]),
            answer_sheet=record.get("answer_sheet"),
            accepted=row["accepted"],
            raised=row["raised"],
        )


@lru_cache(maxsize=8)
def _opened(path: Path) -> Workbook:
    return open_workbook(path)


def compare_pair(pair: Pair, profile: str, *, max_differences: int = 3) -> Comparison:
    """Compares a pair under a profile; each workbook is read once for all pairs of its task."""
    gold, prediction = _opened(pair.gold), _opened(pair.prediction)
    plan = prepare(
        range_spec(pair.position, pair.answer_sheet),
        gold=gold,
        output=prediction,
    )
    return check(
        plan,
        Side(gold),
        Side(prediction),
        profile=get_profile(profile),
        max_differences=max_differences,
    )


def golds(suite: Path) -> Iterator[tuple[Path, str, str | None]]:
    """Yields every gold of a suite's folder as (path, answer position, answer sheet)."""
    for identifier, record in tasks(suite).items():
        folder = suite / "spreadsheet" / identifier
        for path in sorted([*folder.glob("*_answer.xlsx"), *folder.glob("*golden.xlsx")]):
            yield path, str(record["answer_position"]), record.get("answer_sheet")
