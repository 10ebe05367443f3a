from __future__ import annotations

from typing import Any

import pytest

from judge.core.submission import AnswerForm
from judge.core.task import TaskQuestion
from judge.suites.spreadsheetbench import FORMAT
from judge.suites.submission_lines import SolutionPaths, solution_paths

QUESTION = TaskQuestion("7-1", "Sum.", "Cell-Level Manipulation", {}, AnswerForm.WORKBOOK, ())
DEFAULTS = SolutionPaths("/mnt/data/input/1_7-1_input.xlsx", "/mnt/data/output/1_7-1_output.xlsx")


def found(code: str | None, **recorded: Any) -> SolutionPaths:
    return solution_paths(QUESTION, code, FORMAT, **recorded)


@pytest.mark.parametrize(
    "code",
    [
        None,
        "",
        "open('in.xlsx')",
        "open('1_7-1_input.xlsx')",  # not absolute
        "open('/data/1_8-1_input.xlsx')",  # of another task
        "open('/data/../etc/1_7-1_input.xlsx')",  # not a plain path
        "# open('/data/1_7-1_input.xlsx')",  # a comment is not code
        "open('/data/1_7-1_input.xlsx.bak')",
    ],
)
def test_defaults(code: str | None) -> None:
    assert found(code) == DEFAULTS


@pytest.mark.parametrize("end", ["", "\nprint('"])
def test_literals_in_the_code_whether_it_parses_or_not(end: str) -> None:
    code = """
import openpyxl
wb = openpyxl.load_workbook("/mnt/data/spreadsheet/7-1/1_7-1_input.xlsx")
wb.save('/mnt/data/outputs/single_x/1_7-1_output.xlsx')
"""
    assert found(code + end) == SolutionPaths(
        "/mnt/data/spreadsheet/7-1/1_7-1_input.xlsx",
        "/mnt/data/outputs/single_x/1_7-1_output.xlsx",
    )


def test_the_naming_of_the_verified_suite() -> None:
    paths = found("x = '/in/1_7-1_init.xlsx'")
    assert paths == SolutionPaths("/in/1_7-1_init.xlsx", DEFAULTS.output_path)


@pytest.mark.parametrize(
    "conversation",
    [
        [
            "Read /told/1_7-1_input.xlsx, write `/told/1_7-1_output.xlsx`.",
            "/answer/1_7-1_input.xlsx",
        ],
        [
            {"role": "assistant", "content": "I use /answer/1_7-1_input.xlsx"},
            {"role": "user", "content": "Use /told/1_7-1_input.xlsx and /told/1_7-1_output.xlsx"},
        ],
    ],
)
def test_what_the_prompt_said_goes_before_the_code(conversation: object) -> None:
    code = "x = '/code/1_7-1_input.xlsx', '/code/1_7-1_output.xlsx'"
    assert found(code, conversation=conversation) == SolutionPaths(
        "/told/1_7-1_input.xlsx", "/told/1_7-1_output.xlsx"
    )


@pytest.mark.parametrize("conversation", ["", "text", 3, [3], [{"role": "user", "content": 3}]])
def test_other_conversations_say_nothing(conversation: object) -> None:
    assert found(None, conversation=conversation) == DEFAULTS


def test_recorded_paths_go_first() -> None:
    code = "x = '/code/1_7-1_input.xlsx', '/code/1_7-1_output.xlsx'"
    paths = found(code, input_path="/a.xlsx")
    assert paths == SolutionPaths("/a.xlsx", "/code/1_7-1_output.xlsx")


def test_hostile_code_costs_nothing() -> None:
    assert found("(" * 100_000) == DEFAULTS
    assert found("x = '\\ud800\0'") == DEFAULTS
    huge = "#" * 1_000_000 + "\nx = '/in/1_7-1_input.xlsx'"
    assert found(huge).input_path == "/in/1_7-1_input.xlsx"
