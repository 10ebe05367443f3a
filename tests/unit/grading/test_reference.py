"""Time limits that follow a reference solution."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from judge.compare.cells.options import range_spec
from judge.core.limits import Limits
from judge.core.submission import Submission
from judge.core.task import Task, TestCase
from judge.errors import SubmissionError
from judge.files.forms import checked
from judge.grading.reference import (
    ReferenceTime,
    ReferenceTimes,
    known_times,
    measure,
    measure_missing,
    reference_digest,
)
from judge.sandbox.contract import OutputStatus, RunResult, RunStatus
from judge.sandbox.scripted import ScriptedSandbox
from judge.suites.spreadsheetbench import InstructionType

FLOOR = Limits(cpu_s=2, wall_s=5)
GOOD = RunResult(RunStatus.OK, OutputStatus.COLLECTED, output=b"x", exit_code=0)


def took(cpu_s: float, wall_s: float) -> RunResult:
    return replace(GOOD, cpu_s=cpu_s, wall_s=wall_s)


@pytest.fixture
def task(tmp_path: Path) -> Task:
    cases = []
    for number in (1, 2, 3):
        path = tmp_path / f"{number}.xlsx"
        path.write_bytes(b"input %d" % number)
        cases.append(TestCase.of_workbooks(number, path, tmp_path / "gold.xlsx"))
    return Task(
        id="7",
        instruction="Sum.",
        kind=InstructionType.CELL_LEVEL.value,
        checker=range_spec("A1"),
        cases=tuple(cases),
    )


SOLUTION = Submission("7", "pass", "/mnt/data/in.xlsx", "/mnt/data/out.xlsx")


@pytest.mark.parametrize(
    ("cpu_s", "wall_s", "factor", "expected"),
    [
        (0.1, 0.2, 10, (2, 5)),  # the floor holds
        (0.5, 0.2, 10, (5, 5)),
        (0.2, 0.71, 10, (2, 7.1)),
        (3.001, 4, 2, (6.1, 8)),  # rounded up to a tenth
        (100, 100, 1, (100, 100)),
    ],
)
def test_the_greater_of_floor_and_multiple(
    cpu_s: float, wall_s: float, factor: float, expected: tuple[float, float]
) -> None:
    limits = ReferenceTime("", cpu_s, wall_s).limits(FLOOR, factor)
    assert (limits.cpu_s, limits.wall_s) == expected
    assert replace(limits, cpu_s=2, wall_s=5) == FLOOR  # all else is the floor's


def test_the_slowest_case_counts(task: Task) -> None:
    sandbox = ScriptedSandbox([took(0.1, 0.5), took(0.3, 0.4), took(0.2, 0.2)])
    found = measure(sandbox, task, SOLUTION, FLOOR)
    assert (found.cpu_s, found.wall_s) == (0.3, 0.5)
    assert found.digest == reference_digest(task, SOLUTION)


@pytest.mark.parametrize(
    "result",
    [
        RunResult(RunStatus.CPU_LIMIT, OutputStatus.COLLECTED, output=b"x", detail="more than 2 s"),
        RunResult(RunStatus.EXITED, OutputStatus.MISSING, exit_code=1, detail="exit code 1"),
        RunResult(RunStatus.OK, OutputStatus.MISSING, exit_code=0),
    ],
)
def test_a_reference_that_fails_is_an_error(task: Task, result: RunResult) -> None:
    with pytest.raises(SubmissionError, match="task 7 fails on case 2") as caught:
        measure(ScriptedSandbox([GOOD, result]), task, SOLUTION, FLOOR)
    assert caught.value.hint


def test_times_are_kept_for_the_same_machine_and_image(task: Task) -> None:
    sandbox = ScriptedSandbox([GOOD, GOOD, GOOD])
    times = measure_missing(sandbox, [(task, SOLUTION)], {}, FLOOR)
    document = checked(ReferenceTimes("machine", "image", times).as_json(), ReferenceTimes)
    assert known_times(document, host="machine", image="image") == times
    assert known_times(document, host="another", image="image") == {}
    assert known_times(document, host="machine", image="newer") == {}
    assert known_times(None, host="machine", image="image") == {}
    # nothing is left in the script, so running anything again would be an error
    assert measure_missing(sandbox, [(task, SOLUTION)], times, FLOOR) == times


@pytest.mark.parametrize("change", ["code", "input", "path"])
def test_what_changed_is_measured_again(task: Task, change: str) -> None:
    known = {"7": ReferenceTime(reference_digest(task, SOLUTION), 9, 9)}
    solution = SOLUTION
    if change == "code":
        solution = replace(SOLUTION, code="pass  # another")
    elif change == "path":
        solution = replace(SOLUTION, output_path="/mnt/data/other.xlsx")
    else:
        task.cases[1].input_path.write_bytes(b"another input")
    sandbox = ScriptedSandbox([took(1, 1)] * 3)
    assert measure_missing(sandbox, [(task, solution)], known, FLOOR)["7"].cpu_s == 1


def test_two_references_of_a_task(task: Task) -> None:
    second = replace(SOLUTION, sample=1)
    with pytest.raises(SubmissionError, match="more than one"):
        measure_missing(ScriptedSandbox([GOOD] * 6), [(task, SOLUTION), (task, second)], {}, FLOOR)
