"""Runs for tests of reports: made-up suites, really judged, with scripted outputs."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import openpyxl

from judge.compare.profiles import get_profile
from judge.core.limits import Limits
from judge.core.records.runs import RunDocument
from judge.grading.batch import Settings, grade
from judge.grading.case import GradingRules
from judge.grading.jobs import ExpectedCost, longest_first
from judge.grading.store import CASES_FILE, REPORT_FILE, SUBMISSIONS_FILE, RunDirectory
from judge.recalc.policy import Recalculator
from judge.report.report_json import build_report
from judge.sandbox.contract import OutputStatus, RunResult, RunStatus
from judge.sandbox.scripted import ScriptedSandbox
from judge.suites import load_suite
from judge.suites.spreadsheetbench import InstructionType
from judge.suites.submissions import load_submissions

Cells = Mapping[str, object]
"""Address on the sheet "Data" -> value or formula."""

MIB = 1 << 20


def workbook(cells: Cells, sheet: str = "Data") -> bytes:
    """Makes a workbook with one sheet."""
    book = openpyxl.Workbook()
    page = book.active
    assert page is not None
    page.title = sheet
    for address, value in cells.items():
        page[address] = value  # type: ignore[assignment]
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


@dataclass(frozen=True)
class MadeCase:
    """A test case, and the program's output; None if the program failed."""

    before: bytes
    gold: bytes
    output: bytes | None
    stderr: str = ""


@dataclass(frozen=True)
class MadeTask:
    """A task with its solution."""

    id: str
    cases: Sequence[MadeCase]
    position: str = "'Data'!B2:B4"
    instruction: str = "Double each number of column A."
    kind: InstructionType = InstructionType.CELL_LEVEL
    solution: str = "import openpyxl\nprint('done')\n"
    record: Mapping[str, object] = field(default_factory=dict)


NUMBERS = {"A1": "n", "A2": 1, "A3": 2, "A4": 3}
GOLD = {**NUMBERS, "B1": "double", "B2": 2, "B3": 4, "B4": 6}


def case(output: Cells | None, *, gold: Cells = GOLD, stderr: str = "") -> MadeCase:
    """A case about the numbers 1 to 3, with the values written next to them."""
    left = None if output is None else workbook({**NUMBERS, **output})
    return MadeCase(workbook(NUMBERS), workbook(gold), left, stderr)


RIGHT = {"B2": 2, "B3": 4, "B4": 6}


def few_tasks() -> list[MadeTask]:
    """Returns one task of each kind for which a filter searches."""
    wrong = {"B2": 2, "B3": 5, "B4": 6}
    return [
        MadeTask("10-1", [case(RIGHT), case(RIGHT), case(RIGHT)]),
        MadeTask(
            "10-2", [case(RIGHT), case(wrong), case({"B2": 2})], kind=InstructionType.SHEET_LEVEL
        ),
        MadeTask("10-3", [case({"B2": 2, "B3": 4, "B4": "6"})]),
        MadeTask("10-4", [case({"B2": "=A2*2", "B3": "=A3*2", "B4": "=A4*2"})]),
        MadeTask(
            "10-5", [case(None, stderr="Traceback (most recent call last)\nValueError: no\n")]
        ),
        MadeTask(
            "10-6",
            [case({"B2": "x2", "B3": 4, "B4": 6, "C9": "beside"})],
            record={
                "conversation": [
                    {"role": "user", "content": "Double it."},
                    {"role": "assistant", "content": "With openpyxl, then."},
                ],
                "rounds": 1,
                "tokens": {"prompt": 1234, "completion": 56},
                "cost": 0.0125,
                "seconds": 3.5,
            },
        ),
        MadeTask(
            "10-7",
            [
                case(
                    {"B2": "two  spaces", "B3": 4, "B4": "O\u2019Hara"},
                    gold={**GOLD, "B2": "two spaces", "B4": "O'Hara"},
                )
            ],
        ),
        # The position names a sheet that does not exist, which gets the case a note.
        MadeTask("10-8", [case(RIGHT)], position="'Data2'!B2:B4"),
    ]


def make_suite(root: Path, tasks: Sequence[MadeTask]) -> Path:
    """Writes a suite in the published format."""
    records = []
    for task in tasks:
        folder = root / "spreadsheet" / task.id
        folder.mkdir(parents=True)
        for number, each in enumerate(task.cases, start=1):
            (folder / f"{number}_{task.id}_input.xlsx").write_bytes(each.before)
            (folder / f"{number}_{task.id}_answer.xlsx").write_bytes(each.gold)
        records.append(
            {
                "id": task.id,
                "instruction": task.instruction,
                "spreadsheet_path": f"spreadsheet/{task.id}",
                "instruction_type": task.kind.value,
                "answer_position": task.position,
            }
        )
    (root / "dataset.json").write_text(json.dumps(records), encoding="utf-8")
    return root


def make_run(
    path: Path, suite_root: Path, tasks: Sequence[MadeTask], *, profile: str = "standard"
) -> Path:
    """Judges the outputs of the tasks' programs as ``judge score`` would, without engines."""
    suite = load_suite(str(suite_root))
    with RunDirectory(path) as store:
        store.replace_records(
            SUBMISSIONS_FILE,
            [
                {"id": each.id, "sample": 0, "model": "made-up", "setting": "multi"}
                | {"solution": each.solution}
                | dict(each.record)
                for each in tasks
            ],
        )
        submissions = load_submissions(path / SUBMISSIONS_FILE, suite)
        made, cost = {each.id: each for each in tasks}, ExpectedCost()
        judged = longest_first(
            [suite.task(each.task_id) for each in submissions],
            lambda task: sum(cost.of(task, each.number) for each in task.cases),
        )
        script = [_facts(each) for task in judged for each in made[task.id].cases]
        settings = Settings(
            sandbox=ScriptedSandbox(script),
            recalculator=Recalculator((), mode="never"),
            rules=GradingRules(profile=get_profile(profile), recalc_mode="never"),
            limits=Limits(),
        )
        pairs = [(suite.task(each.task_id), each) for each in submissions]
        outcome = grade(store, pairs, settings)
        run: RunDocument = {
            "judge_version": "0",
            "created": "2026-01-02T03:04:05+00:00",
            "suite": {
                "name": suite.name,
                "source": str(suite_root),
                "digest": suite.digest,
                "format": suite.format,
            },
            "model": "made-up",
            "setting": "multi",
            "profile": profile,
            "style": [],
            "recalc": {"mode": "never", "engine": "auto", "engines": ["never"]},
        }
        store.write_run(run)
        graded = [(task, submission.sample) for task, submission in pairs]
        store.write_document(REPORT_FILE, build_report(run, graded, outcome.results.values()))
        assert (path / CASES_FILE).is_file()
    return path


def _facts(made: MadeCase) -> RunResult:
    if made.output is None:
        return RunResult(
            RunStatus.EXITED,
            OutputStatus.MISSING,
            exit_code=1,
            stderr=made.stderr.encode(),
            cpu_s=0.1,
            wall_s=0.25,
            peak_memory_bytes=30 * MIB,
        )
    return RunResult(
        RunStatus.OK,
        OutputStatus.COLLECTED,
        exit_code=0,
        output=made.output,
        output_bytes=len(made.output),
        cpu_s=0.0123,
        wall_s=0.0456,
        peak_memory_bytes=28 * MIB,
        stderr=made.stderr.encode(),
    )
