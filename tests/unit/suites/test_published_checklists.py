"""Published checklist suites: how their folders are read, and how their answers are found."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from judge.api.options import ScoreOptions
from judge.api.scoring import run_to_score
from judge.core.limits import Limits
from judge.core.submission import AnswerForm, Submission
from judge.core.task import LEFT_OUT_OPTION
from judge.errors import SandboxError, SubmissionError, SuiteError, UsageError
from judge.files.packed_folder import packed, unpacked
from judge.grading.running import run_case
from judge.inference.content import ContentLimits
from judge.inference.desktop.setting import desktop_task
from judge.inference.prompt import PromptFields, Template, build_prompt
from judge.sandbox.contract import OutputStatus, RunResult, RunStatus
from judge.sandbox.scripted import ScriptedSandbox
from judge.suites.folders import read_answer
from judge.suites.formats import SolutionPaths
from judge.suites.layouts import find_outputs
from judge.suites.suite import load_suite
from judge.suites.validate import compute_stats


def book(cells: Mapping[str, object], sheet: str = "Data") -> bytes:
    workbook: Any = openpyxl.Workbook()
    workbook.active.title = sheet
    for address, value in cells.items():
        workbook.active[address] = value
    stream = io.BytesIO()
    workbook.save(stream)
    return stream.getvalue()


def write(root: Path, files: Mapping[str, object]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content))
    return root


CHECK = {
    "command": 'check-cell-value A1 "x"',
    "key": "match",
    "expected": True,
    "description": "A1",
}


@pytest.mark.parametrize("folder", ["tasks", "task_generator/tasks"])
def test_opencomputer(tmp_path: Path, folder: str) -> None:
    record = {"id": "calc_a", "task": "Write x.", "verification": [CHECK]}
    suite = load_suite(
        write(
            tmp_path,
            {
                f"{folder}/calc_a/task.json": record,
                f"{folder}/calc_a/env/a.xlsx": book({}),
            },
        )
    )
    (task,) = suite.tasks
    assert (suite.format, task.id, task.instruction) == ("opencomputer", "calc_a", "Write x.")
    assert task.checker.options["items"] == [
        {"id": "0", "kind": "published", "suite": "opencomputer", "check": CHECK, "words": "A1"}
    ]
    assert [file.name for file in task.cases[0].inputs] == ["a.xlsx"]
    assert task.answer is AnswerForm.FILES
    paths = suite.suite_format.default_paths(task.question)
    assert paths == SolutionPaths("/mnt/data/Documents/a.xlsx", "/mnt/data/Documents/")
    desktop = desktop_task(task.question, task.cases[0].question)
    assert desktop.opened == "/home/user/Documents/a.xlsx"
    assert desktop.collected == "/home/user/Documents/"


def test_a_check_that_the_verifier_does_not_have_is_a_fault(tmp_path: Path) -> None:
    check = {**CHECK, "command": "check-mood A1"}
    record = {"id": "calc_a", "task": "Write x.", "verification": [check]}
    with pytest.raises(SuiteError) as error:
        load_suite(write(tmp_path, {"tasks/calc_a/task.json": record}))
    assert "check-mood" in " ".join(error.value.faults)


RUBRIC = {
    "task_id": "e-001",
    "criteria": {
        "rows": {
            "type": "programmatic",
            "match_type": "substring_one_of",
            "description": "Row",
            "points": 60,
            "accepted_values": ["140"],
            "gates_llm": True,
        },
        "why": {"type": "llm_judge", "description": "Why", "points": 30, "core_concepts": ["a"]},
        "style": {
            "type": "human_judge",
            "description": "Style",
            "points": 10,
            "scoring_guide": "g",
        },
    },
}


def ib_bench(root: Path) -> Path:
    only_people = {"criteria": {"style": RUBRIC["criteria"]["style"]}}  # type: ignore[index]
    return write(
        root,
        {
            "tasks/e-001/rubric.json": RUBRIC,
            "tasks/e-001/meta.yaml": "task:\n  id: e-001\n  type: fix-error\n",
            "tasks/e-001/prompt.md": "---\n\n## Task\n\nFind it.\n",
            "tasks/e-001/input.xlsx": book({"A1": 1}),
            "tasks/e-001/_golden-solution.xlsx": book({"A1": 2}),
            "tasks/h-001/rubric.json": only_people,
            "tasks/h-001/meta.yaml": "task: {}\n",
            "tasks/h-001/prompt.md": "## Task\n\nWrite.\n",
        },
    )


def test_ib_bench(tmp_path: Path) -> None:
    suite = load_suite(ib_bench(tmp_path))
    first, second = suite.tasks
    assert (first.instruction, first.kind) == ("## Task\n\nFind it.", "fix-error")
    assert first.groups == {"difficulty": "easy"}
    items: Any = first.checker.options["items"]
    assert [(item["kind"], item["points"]) for item in items] == [
        ("published", 60),
        ("llm", 30),
        ("human", 10),
    ]
    assert items[0]["gates"] == ["llm"]
    assert first.checker.options["pass_share"] == 0.6
    assert [gold.name for gold in first.cases[0].golds] == ["_golden-solution.xlsx"]
    assert suite.suite_format.default_paths(first.question).output_path == "/mnt/data/output/"
    assert LEFT_OUT_OPTION in second.checker.options
    counts = compute_stats(suite)
    assert counts.items_by_kind == {"human": 2, "llm": 1, "published": 1}
    assert counts.points_by_judge == {"deterministic": 60.0, "human": 20.0, "llm": 30.0}
    assert counts.tasks_by_judging == {"in part": 1, "not at all": 1}


def test_responses_bring_the_workbooks_that_they_list(tmp_path: Path) -> None:
    suite = load_suite(ib_bench(tmp_path / "suite"))
    response = {
        "task_id": "e-001",
        "raw_response": "…",
        "stop_reason": "end_turn",
        "parsed_response": {"rows": "140"},
        "output_files": ["e-001_output_1.xlsx", "../secret.xlsx", "gone.xlsx"],
    }
    model = book({"A1": 3})
    run = write(
        tmp_path / "run",
        {
            "e-001.json": response,
            "e-001_output_1.xlsx": model,
            "e-001_output_2.xlsx": model,
            "config.json": {},
        },
    )
    (tmp_path / "secret.xlsx").write_bytes(model)
    outputs = find_outputs(run, suite)
    assert dict(outputs) == {("e-001", 1): run / "e-001.json"}
    data = read_answer(run / "e-001.json", SubmissionError)
    assert data is not None
    files = unpacked(data)
    assert files == {"reply.json": b'{"rows":"140"}', "e-001_output_1.xlsx": model}


def test_other_json_files_are_what_they_are(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text('{"parsed_response": 1}')
    assert read_answer(path, SubmissionError) == path.read_bytes()
    assert read_answer(tmp_path / "none.json", SubmissionError) is None


def officebench(root: Path) -> Path:
    check = {"function": "evaluate_file_exist", "args": {"file": "data/new.xlsx"}}
    record = {"username": "Bob", "task": "Make it.", "evaluation": [check]}
    return write(
        root,
        {
            "tasks/1-2/subtasks/0.json": record,
            "tasks/1-2/subtasks/10.json": record,
            "tasks/1-2/testbed/data/old.xlsx": book({}),
            "tasks/1-2/reference/gold.xlsx": book({}),
        },
    )


def test_officebench(tmp_path: Path) -> None:
    suite = load_suite(officebench(tmp_path))
    assert [task.id for task in suite.tasks] == ["1-2-0", "1-2-10"]
    (case,) = suite.task("1-2-0").cases
    assert [file.name for file in case.inputs] == ["data/old.xlsx"]
    assert [gold.name for gold in case.golds] == ["gold.xlsx"]
    paths = suite.suite_format.default_paths(suite.task("1-2-0").question)
    assert paths == SolutionPaths("/mnt/data/testbed/data/old.xlsx", "/mnt/data/testbed/")


def test_a_prompt_names_the_files_of_a_workspace_and_the_folder_that_is_judged(
    tmp_path: Path,
) -> None:
    root = officebench(tmp_path)
    (root / "tasks/1-2/testbed/data/note.txt").write_text("x")
    suite = load_suite(root)
    question = suite.task("1-2-0").question
    paths = suite.suite_format.default_paths(question)
    fields = PromptFields(paths.input_path, paths.output_path, 1, "", ContentLimits())
    template = Template("own", "{spreadsheet_path} | {output_path}")
    assert build_prompt(template, question, (), fields) == (
        "/mnt/data/testbed/data/old.xlsx (other files below /mnt/data/testbed/: data/note.txt) | "
        "/mnt/data/testbed/ (a folder: all files in it when the program has ended are the answer)"
    )


def _ran(output: bytes) -> RunResult:
    return RunResult(RunStatus.OK, OutputStatus.COLLECTED, exit_code=0, output=output)


def test_a_program_leaves_the_folder_that_it_worked_in(tmp_path: Path) -> None:
    suite = load_suite(officebench(tmp_path))
    task = suite.task("1-2-0")
    paths = suite.suite_format.default_paths(task.question)
    submission = Submission("1-2-0", "work()", paths.input_path, paths.output_path)
    left = {"data/old.xlsx": b"old", "data/new.txt": b"new"}
    sandbox = ScriptedSandbox([_ran(packed(left))])
    outcome = run_case(sandbox.session(), submission, task.cases[0].question, Limits(), task.answer)
    (request,) = sandbox.requests
    assert list(request.files) == ["/mnt/data/testbed/data/old.xlsx"]
    assert request.collect == "/mnt/data/testbed/"
    assert outcome.answer is not None
    assert unpacked(outcome.answer.data) == left
    broken = ScriptedSandbox([_ran(b"no archive")]).session()
    with pytest.raises(SandboxError, match="came back broken"):
        run_case(broken, submission, task.cases[0].question, Limits(), task.answer)


def test_answers_are_folders_that_are_called_like_their_task(tmp_path: Path) -> None:
    suite = load_suite(officebench(tmp_path / "suite"))
    run = write(
        tmp_path / "run",
        {"1-2/0/data/new.xlsx": book({}), "model/1-2-10/data/new.xlsx": book({})},
    )
    assert dict(find_outputs(run, suite)) == {
        ("1-2-0", 1): run / "1-2/0",
        ("1-2-10", 1): run / "model/1-2-10",
    }
    data = read_answer(run / "1-2/0", SubmissionError)
    assert data is not None
    assert list(unpacked(data)) == ["data/new.xlsx"]
    (run / "1-2-0").mkdir()
    with pytest.raises(SubmissionError, match="two answers"):
        find_outputs(run, suite)


def test_skillsbench_reads_its_workbook_tasks_and_no_other_tasks_of_harbor(tmp_path: Path) -> None:
    task = {
        "task.toml": '[metadata]\ncategory = "data"\n',
        "instruction.md": "Read the receipts.",
        "environment/Dockerfile": "FROM x",
        "environment/workspace/a.jpg": b"x",
        "tests/stat_oracle.xlsx": book({}, "results"),
    }
    root = write(tmp_path, {f"tasks/jpg-ocr-stat/{name}": text for name, text in task.items()})
    write(root, {"tasks/other/task.toml": "", "tasks/other/instruction.md": "x"})
    suite = load_suite(root)
    (only,) = suite.tasks
    assert (only.id, only.kind, only.context["file"]) == ("jpg-ocr-stat", "data", "stat_ocr.xlsx")
    assert [file.name for file in only.cases[0].inputs] == ["workspace/a.jpg"]
    assert [gold.name for gold in only.cases[0].golds] == ["stat_oracle.xlsx"]
    run = write(tmp_path / "run", {"jpg-ocr-stat.xlsx": book({})})
    assert list(find_outputs(run, suite)) == [("jpg-ocr-stat", 1)]


def test_tasks_on_windows_are_left_out_without_their_workbooks(tmp_path: Path) -> None:
    record = {
        "id": "a-WOS",
        "instruction": "Fill.",
        "config": [
            {
                "type": "download",
                "parameters": {"files": [{"url": "u", "path": "C:\\Users\\Docker\\In.xlsx"}]},
            }
        ],
        "evaluator": {
            "func": "compare_table",
            "expected": {"type": "cloud_file", "path": "https://host/Gold.xlsx"},
            "result": {"type": "vm_file", "path": "C:\\Users\\Docker\\In.xlsx"},
            "options": {"rules": [{"type": "sheet_name"}, {"type": "freeze", "sheet_idx0": 0}]},
        },
    }
    folder = "examples/libreoffice_calc"
    root = write(tmp_path, {f"{folder}/a-WOS.json": record})
    (task,) = load_suite(root).tasks
    assert task.reason_left_out() == "these files are missing: In.xlsx, Gold.xlsx"
    write(root, {f"{folder}/a-WOS/In.xlsx": book({}), f"{folder}/a-WOS/Gold.xlsx": book({})})
    suite = load_suite(root)
    (task,) = suite.tasks
    assert (suite.format, task.reason_left_out()) == ("waa-v2", None)
    items: Any = task.checker.options["items"]
    assert [item["check"]["type"] for item in items] == ["sheet_name", "freeze"]


def test_a_folder_of_folders_is_scored_if_the_suite_has_such_answers(tmp_path: Path) -> None:
    suite = officebench(tmp_path / "suite")
    run = write(tmp_path / "run", {"1-2/0/data/new.txt": "x"})
    source = run_to_score(run, ScoreOptions(dataset=suite))
    assert (source.outputs, source.fresh) == (run, True)
    with pytest.raises(UsageError, match="neither runs nor output workbooks"):
        run_to_score(run, ScoreOptions())
