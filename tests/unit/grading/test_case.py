"""From facts to verdicts, as a table."""

from __future__ import annotations

import io

import openpyxl
import pytest
from openpyxl.formatting.rule import Rule
from openpyxl.styles import Font
from openpyxl.styles.differential import DifferentialStyle

from judge.compare.cells.checker import finding_of_comparison
from judge.compare.cells.comparison import Comparison, DifferenceClass
from judge.compare.cells.computing import Computed
from judge.compare.cells.options import range_spec
from judge.compare.cells.sides import NO_ANSWERS
from judge.compare.profiles import get_profile
from judge.console import visible
from judge.core.limits import Limits
from judge.core.submission import Answer, Origin, Submission
from judge.core.task import Gold, Task, TestCase
from judge.core.verdict import Verdict
from judge.grading.case import CaseJudge, GradingRules, case_result, verdict_of_finding
from judge.grading.running import last_error_line, run_program, verdict_of_run
from judge.recalc.policy import Recalculator
from judge.sandbox.contract import OutputStatus, RunResult, RunStatus
from judge.sandbox.scripted import ScriptedSandbox
from judge.suites.spreadsheetbench import InstructionType
from judge.workbook.cell import NOTHING_COMPUTED
from judge.workbook.styles import conditional

TRACEBACK = b"""a warning before it all
Traceback (most recent call last):
  File "/mnt/data/solution.py", line 3, in <module>
    frame["nothing"]
  File "/usr/lib/python3/x.py", line 1, in __getitem__
    raise KeyError(key)
KeyError: 'nothing'
"""


@pytest.mark.parametrize(
    ("status", "output", "expected"),
    [
        (RunStatus.OK, OutputStatus.COLLECTED, None),
        (RunStatus.OK, OutputStatus.MISSING, Verdict.NO),
        (RunStatus.OK, OutputStatus.NOT_A_FILE, Verdict.NO),
        (RunStatus.OK, OutputStatus.TOO_LARGE, Verdict.OLE),
        (RunStatus.OK, OutputStatus.LINK, Verdict.SV),
        (RunStatus.OK, OutputStatus.SPECIAL, Verdict.SV),
        (RunStatus.EXITED, OutputStatus.COLLECTED, Verdict.RE),
        (RunStatus.EXITED, OutputStatus.MISSING, Verdict.RE),
        (RunStatus.EXITED, OutputStatus.LINK, Verdict.SV),
        (RunStatus.COMPILE_ERROR, OutputStatus.MISSING, Verdict.CE),
        (RunStatus.SIGNALED, OutputStatus.MISSING, Verdict.RE),
        (RunStatus.CPU_LIMIT, OutputStatus.COLLECTED, Verdict.TLE),
        (RunStatus.WALL_LIMIT, OutputStatus.MISSING, Verdict.TLE),
        (RunStatus.WALL_LIMIT, OutputStatus.SPECIAL, Verdict.SV),
        (RunStatus.MEMORY_LIMIT, OutputStatus.MISSING, Verdict.MLE),
        (RunStatus.DISK_LIMIT, OutputStatus.MISSING, Verdict.OLE),
    ],
)
def test_the_verdict_of_a_run(
    status: RunStatus, output: OutputStatus, expected: Verdict | None
) -> None:
    verdict, cause = verdict_of_run(RunResult(status=status, output_status=output, exit_code=1))
    assert verdict is expected
    assert bool(cause) == (expected is not None)


@pytest.mark.parametrize("status", list(RunStatus))
@pytest.mark.parametrize("output", list(OutputStatus))
def test_every_combination_of_facts_has_a_verdict(status: RunStatus, output: OutputStatus) -> None:
    verdict, _ = verdict_of_run(RunResult(status=status, output_status=output))
    assert (verdict is None) == (status is RunStatus.OK and output is OutputStatus.COLLECTED)


def test_the_cause_of_a_runtime_error_is_the_exception() -> None:
    result = RunResult(
        RunStatus.EXITED, OutputStatus.MISSING, exit_code=1, stderr=TRACEBACK + b"bye\n"
    )
    assert verdict_of_run(result) == (Verdict.RE, "KeyError: 'nothing'")


def test_a_signal_is_named() -> None:
    result = RunResult(RunStatus.SIGNALED, OutputStatus.MISSING, signal=11)
    assert verdict_of_run(result) == (Verdict.RE, "ended by SIGSEGV")


def test_an_allocation_that_was_refused_is_a_matter_of_memory() -> None:
    stderr = b"Traceback (most recent call last):\n  File x\nMemoryError\n"
    result = RunResult(RunStatus.EXITED, OutputStatus.MISSING, exit_code=1, stderr=stderr)
    assert verdict_of_run(result) == (Verdict.MLE, "MemoryError")


@pytest.mark.parametrize(
    ("stderr", "line"),
    [
        (TRACEBACK, "KeyError: 'nothing'"),
        (b"", ""),
        (b"plain words\n", "plain words"),
        (b"\xff\xfe broken", "\ufffd\ufffd broken"),
        (b"Traceback (most recent call last):\n  File cut off", ""),
        (
            TRACEBACK
            + b"\nDuring handling of the above exception, another exception occurred:\n\n"
            + TRACEBACK.replace(b"KeyError: 'nothing'", b"ValueError: two\nlines"),
            "ValueError: two",
        ),
    ],
)
def test_the_line_that_names_the_exception(stderr: bytes, line: str) -> None:
    assert last_error_line(stderr) == line


def test_a_very_long_exception_is_cut() -> None:
    line = last_error_line(b"ValueError: " + b"x" * 10_000)
    assert len(line) == 300
    assert line.endswith("…")


def _compared(counts: dict[DifferenceClass, int]) -> tuple[Comparison, Computed]:
    comparison = Comparison(
        equal=not counts,
        profile="standard",
        ranges=(),
        cells=10,
        differing_cells=sum(counts.values()),
        difference_counts=counts,
        differences=(),
    )
    return comparison, Computed(comparison, NOTHING_COMPUTED, NOTHING_COMPUTED, NO_ANSWERS)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({}, Verdict.AC),
        ({DifferenceClass.WRONG_VALUE: 1}, Verdict.WA),
        ({DifferenceClass.NOT_CALCULATED: 3}, Verdict.NC),
        ({DifferenceClass.NOT_CALCULATED: 3, DifferenceClass.MISSING: 1}, Verdict.WA),
        ({DifferenceClass.NOT_CALCULATED: 3, DifferenceClass.MISSING: 0}, Verdict.NC),
        ({DifferenceClass.MISSING_SHEET: 1}, Verdict.WA),
    ],
)
def test_the_verdict_of_a_comparison(counts: dict[DifferenceClass, int], expected: Verdict) -> None:
    finding = finding_of_comparison(*_compared(counts))
    assert verdict_of_finding(finding) is expected


def _workbook(*, formats: int = 0) -> bytes:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet["A1"] = 42
    rules = sheet.conditional_formatting
    look = DifferentialStyle(font=Font(bold=True))
    for number in range(formats):
        rules.add("A1", Rule(type="expression", formula=[f"A1={number}"], dxf=look))
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("gold", "output", "verdict"),
    [(0, 0, Verdict.AC), (0, 300, Verdict.IW), (300, 0, Verdict.BT)],
)
def test_whose_fault_is_what_only_comparing_finds(
    gold: int, output: int, verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conditional, "_MAX_WORK", 100)  # as much as takes a moment
    case = TestCase(1, (), (Gold(data=_workbook(formats=gold)),))
    task = Task(
        id="1",
        instruction="Write 42 into A1.",
        kind=InstructionType.CELL_LEVEL.value,
        checker=range_spec("A1"),
        cases=(case,),
    )
    judge = CaseJudge(
        Recalculator([], mode="never"), GradingRules(get_profile("standard"), style=("bold",))
    )
    answer = Answer.of_workbook(_workbook(formats=output), Origin.SOLUTION)
    judgement = judge.judge(task, case, answer)
    assert judgement.verdict is verdict, judgement.cause


def test_nothing_of_a_solution_steers_a_terminal() -> None:
    assert visible("Größe 表\u00a0 42\n\tKeyError: 'x'") == "Größe 表\u00a0 42\n\tKeyError: 'x'"
    assert visible("\x1b]0;title\x07") == "\\u001b]0;title\\u0007"
    assert visible("100 %\r  0 %") == "100 %\\r  0 %"
    assert visible("\x9b31m\u202ered") == "\\u009b31m\\u202ered"


def test_records_and_causes_are_visible() -> None:
    error = b"Traceback (most recent call last):\nValueError: \x1b[31mred\n"
    result = RunResult(RunStatus.EXITED, OutputStatus.MISSING, exit_code=1, stderr=error)
    session = ScriptedSandbox([result]).session()
    submission = Submission("1", "raise ValueError", "/mnt/data/in.xlsx", "/mnt/data/out.xlsx")
    outcome = run_program(session, submission, {submission.input_path: b""}, Limits())
    judged = case_result("1", 0, 1, outcome, None)
    assert judged.cause == "ValueError: \\u001b[31mred"
    assert "\x1b" not in str(judged.run["stderr"])
