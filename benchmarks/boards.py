"""Judges golds of SheetCopilot by their boards: verdicts, time, mutants, golds saved again.

    python -m benchmarks.boards ../shared/data
    python -m benchmarks.boards ../shared/data --resave openpyxl --resave libreoffice

DATA is the folder with ``sheetcopilot`` (the published folder ``dataset``, and the verdicts of a
trial on the files alone in ``file_verdicts.jsonl``). Prints each recorded verdict that ``official``
does not reproduce; the golds and untouched inputs that ``standard`` judges differently; processor
time for each board; and the mutants of golds that change the verdict although no board checks the
change, or do not change it although a board does. With ``--resave``, the first gold of each task is
saved again by another program (LibreOffice in the sandbox's office root), and the reasons why a
gold is then no longer accepted under ``standard`` are printed.
"""

from __future__ import annotations

import argparse
import io
import json
import statistics
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openpyxl

from benchmarks.board_mutants import mutants
from benchmarks.command_line import existing, run_command
from benchmarks.office_save import save_with_office
from judge.api.comparing import Engines
from judge.compare.boards.board import Board
from judge.compare.boards.checker import finding_by_board
from judge.compare.boards.standard import UnusableBoardError
from judge.compare.cells.computing import Compute, NoEngines
from judge.compare.published_error import Side
from judge.compare.rules.book import Book
from judge.core.finding import Finding
from judge.core.submission import Origin
from judge.errors import SuiteError
from judge.files.yaml_documents import read_yaml
from judge.workbook.reader import open_workbook

VERDICTS = "sheetcopilot/file_verdicts.jsonl"
DATASET = "sheetcopilot/dataset"
_MAX_SHOWN = 12
PROFILES = ("official", "standard")


@dataclass(frozen=True)
class Row:
    """A recorded verdict on a gold and its board, and on the untouched input."""

    record: Mapping[str, Any]
    gold: Path
    input: Path
    board: Board

    @property
    def name(self) -> str:
        """The key: number of the task, and the gold."""
        return f"{self.record['order']} {self.record['gold']}"


def recorded(data: Path) -> tuple[list[Row], int]:
    """Returns the rows whose workbooks exist, and the number of the other rows."""
    rows, absent = [], 0
    for line in (data / VERDICTS).read_text().splitlines():
        record = json.loads(line)
        sheet = record["task"].partition("_")[2]
        folder = data / DATASET / record["version"] / sheet / record["task"]
        gold = folder / record["gold"]
        if not gold.is_file():
            absent += 1
            continue
        document = read_yaml(gold.with_name(f"{gold.stem}_check.yaml"), SuiteError)
        source = data / DATASET / "task_sheets" / f"{sheet}.xlsx"
        rows.append(Row(record, gold, source, Board.of(document)))
    return rows, absent


def judged(
    row: Row, answer: Path | bytes, profile: str, compute: Compute | None = None
) -> Finding | None:
    """Returns the finding about an answer; None if the board has no effect."""
    try:
        return finding_by_board(
            Book(open_workbook(answer), Side.ANSWER),
            Book(open_workbook(row.gold), Side.GOLD),
            row.board,
            compute or NoEngines(),
            Origin.FINISHED,
            published=profile == "official",
            profile=profile,
        )
    except UnusableBoardError:
        return None


def verdict(finding: Finding | None) -> bool | None:
    """Returns whether an answer is accepted; None if the board has no effect."""
    return None if finding is None else finding.agrees


@dataclass(frozen=True)
class Judged:
    """A verdict, with the recorded one."""

    row: Row
    what: str
    recorded: bool
    given: bool | None
    seconds: float


def verdicts(rows: list[Row], profile: str) -> Iterator[Judged]:
    """Judges each gold as an answer, and each untouched input."""
    for row in rows:
        for kind, path, recorded in (
            ("gold", row.gold, row.record["self"]),
            ("input", row.input, row.record["input_passes"]),
        ):
            started = time.process_time()
            accepted = verdict(judged(row, path, profile))
            yield Judged(row, kind, recorded, accepted, time.process_time() - started)


def wrong_mutants(rows: list[Row], profile: str) -> tuple[Counter[str], list[str]]:
    """Counts mutants by kind and outcome, and lists those that are judged wrongly."""
    counts: Counter[str] = Counter()
    wrong = []
    for row in rows:
        if not verdict(judged(row, row.gold, profile)):
            continue
        for mutant in mutants(row.gold.read_bytes()):
            noticed = mutant.is_noticed(row.board, published=profile == "official")
            accepted = verdict(judged(row, mutant.data, profile))
            counts[f"{mutant.kind}, {'checked' if noticed else 'not checked'}"] += 1
            if accepted is noticed:
                wrong.append(f"{row.name}, sheet {mutant.sheet}: {mutant.kind}")
    return counts, wrong


def resaved(rows: list[Row], program: str, compute: Compute) -> None:
    """Prints how many first golds are accepted after a program saved them again, and why not."""
    chosen = [row for row in rows if row.record["gold"].endswith("_gt1.xlsx")]
    chosen = [row for row in chosen if row.record["version"].endswith("_v2")]
    data = [row.gold.read_bytes() for row in chosen]
    saved = list(map(_by_openpyxl, data)) if program == "openpyxl" else save_with_office(data)
    for profile in PROFILES:
        reasons: dict[str, list[str]] = defaultdict(list)
        accepted = unusable = 0
        for row, answer in zip(chosen, saved, strict=True):
            if answer is None:
                reasons["not saved"].append(row.name)
                continue
            finding = judged(row, answer, profile, compute)
            accepted += bool(finding and finding.agrees)
            unusable += finding is None
            if finding is not None and not finding.agrees:
                kinds = sorted({difference["kind"] for difference in finding.record["differences"]})
                reasons[", ".join(kinds)].append(f"{row.name}: {finding.cause}")
        print(f"\nsaved by {program}, {profile}: {accepted} of {len(chosen)} accepted", end="")
        print(f", {unusable} boards have no effect" if unusable else "")
        for kinds_told, lines in sorted(reasons.items(), key=lambda item: -len(item[1])):
            print(f"  {len(lines)} x {kinds_told}")
            for line in lines[:_MAX_SHOWN]:
                print(f"    {line[:200]}")


def _by_openpyxl(data: bytes) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        openpyxl.load_workbook(io.BytesIO(data)).save(buffer)
    return buffer.getvalue()


def main() -> None:
    """Prints all figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=existing)
    parser.add_argument("--resave", action="append", choices=["openpyxl", "libreoffice"])
    arguments = parser.parse_args()
    rows, absent = recorded(arguments.data)
    print(f"{len(rows)} golds with boards; the workbooks of {absent} more rows are missing")
    if arguments.resave:
        with Engines(recalc="auto", engine="auto", lenient_names=False, sandbox="auto") as engines:
            for program in arguments.resave:
                resaved(rows, program, engines)
        return
    for profile in PROFILES:
        judged_answers = list(verdicts(rows, profile))
        other = [answer for answer in judged_answers if answer.given is not answer.recorded]
        print(
            f"\n{profile}: {len(judged_answers) - len(other)} of {len(judged_answers)} "
            "recorded verdicts"
        )
        for answer in other:
            outcome = {None: "the board has no effect", True: "accepted", False: "refused"}
            print(f"  {answer.row.name}, {answer.what}: {outcome[answer.given]}")
        passed = sorted(
            {
                answer.row.record["order"]
                for answer in judged_answers
                if answer.what == "input" and answer.given
            }
        )
        print(f"  untouched inputs accepted in tasks {', '.join(map(str, passed))}")
        times = [1000 * answer.seconds for answer in judged_answers]
        worst = max(judged_answers, key=lambda answer: answer.seconds)
        print(
            f"  processor time for each board: median {statistics.median(times):.1f} ms, worst "
            f"{1000 * worst.seconds:.0f} ms ({worst.row.name})"
        )
        counts, wrong = wrong_mutants(rows, profile)
        print(f"  mutants: {sum(counts.values())}, {len(wrong)} judged wrongly")
        for kind, count in sorted(counts.items()):
            print(f"    {count} x {kind}")
        for line in wrong:
            print(f"    wrong: {line}")


if __name__ == "__main__":
    run_command(main)
