"""Logs in the format of the benchmark's own scripts are written and read again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judge.grading.store import SUBMISSIONS_FILE, RunDirectory
from judge.inference.logs import export_log, import_log, setting_of_name
from judge.suites import Suite, load_suite

LOOK = "```python\nprint('Sheet1')\n```"


def paths(task: int) -> tuple[str, str]:
    folder = f"/mnt/data/spreadsheet/{task}"
    return f"{folder}/1_{task}_input.xlsx", f"/mnt/data/outputs/multi_row/1_{task}_output.xlsx"


def solution(task: int) -> str:
    told_input, told_output = paths(task)
    return (
        f"import openpyxl\nwb = openpyxl.load_workbook('{told_input}')\nwb.save('{told_output}')\n"
    )


def line(task: int, *texts: str, solution: str) -> dict[str, Any]:
    told_input, told_output = paths(task)
    prompt = f"### spreadsheet_path\n{told_input}\n\n### output_path\n{told_output}\n"
    return {
        "id": task,
        "instruction_type": "Cell-Level Manipulation",
        "conversation": [prompt, *texts],
        "solution": solution,
    }


@pytest.fixture
def suite() -> Suite:
    return load_suite("sample")


@pytest.fixture
def log(tmp_path: Path, suite: Suite) -> Path:
    first, second, third, fourth = (int(task.id) for task in suite.tasks[:4])
    error = "NameError: name 'x' is not defined\nCell In[1], line 1"
    program = f"```python\n{solution(first)}```"
    lines = [
        line(first, LOOK, "Sheet1\n", "```python\nx\n```", error, program, "",
             solution=solution(first)),
        line(second, "I cannot.", "Error occur when running code.", solution="I cannot."),
        {"id": third, "instruction_type": "Cell-Level Manipulation", "conversation": "",
         "solution": ""},
        line(fourth, LOOK, "Sheet1\n", solution="print('Sheet1')\n"),
    ]  # fmt: skip
    path = tmp_path / "conv_multi_row_react_exec_gpt-4o.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in lines), encoding="utf-8")
    return path


def test_round_trip(log: Path, suite: Suite, tmp_path: Path) -> None:
    with RunDirectory(tmp_path / "run") as store:
        assert import_log(log, suite, "sample", store) == 4
        records: list[dict[str, Any]] = list(store.read_records(SUBMISSIONS_FILE))
        assert export_log(store, tmp_path / "out.jsonl") == 4
        run: Any = store.read_run()
    assert (run["model"], run["setting"]) == ("gpt-4o", "multi/row-react-exec")
    solved, unsolved, failed, looked = records
    assert (solved["input_path"], solved["output_path"]) == paths(int(solved["id"]))
    assert unsolved["solution"] is None
    assert failed["solution"] is None
    assert looked["solution"] == "print('Sheet1')\n"
    before = [json.loads(each) for each in log.read_text("utf-8").splitlines()]
    after = [json.loads(each) for each in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    assert after == before
    conversation = json.loads((tmp_path / "run" / solved["conversation"]).read_text("utf-8"))
    roles = "".join(message["role"][0] for message in conversation["messages"])
    assert roles == "uauauau"


@pytest.mark.parametrize(
    ("name", "model", "setting"),
    [
        ("conv_single_gpt-4o.jsonl", "gpt-4o", "single"),
        ("conv_multi_row_exec_llama_3.jsonl", "llama_3", "multi/row-exec"),
        ("conv_multi_react_exec_x.jsonl", "x", "multi/react-exec"),
        ("conv_multi_row_react_exec_x.jsonl", "x", "multi/row-react-exec"),
        ("solutions.jsonl", None, None),
    ],
)
def test_names_of_logs(name: str, model: str | None, setting: str | None) -> None:
    assert setting_of_name(name) == (model, setting)
