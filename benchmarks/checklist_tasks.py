"""Judges recorded outputs of checklist suites as tasks of the suites that the judge opens.

For ``benchmarks/checklists.py --tasks`` and ``benchmarks/checklist_readings.py``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from judge.compare.cells.computing import Compute
from judge.compare.checklists.checker import JudgedItem, judged_items, with_gates, workspace_of
from judge.compare.checklists.items import ChecklistOptions, Reading
from judge.compare.checklists.kinds import judge_item
from judge.compare.checklists.workspace import REPLY, answer_of_folder
from judge.core.submission import Answer, AnswerFile, Origin
from judge.core.task import Gold, Task
from judge.suites.suite import Suite, load_suite

Job = Mapping[str, Any]


@lru_cache(maxsize=8)
def opened_suite(data: Path, name: str) -> Suite:
    """Opens a suite of the data.

    Raises:
        SuiteError: it cannot be read.
    """
    return load_suite(data / name)


def task_of(data: Path, job: Job) -> Task:
    """Returns the task that an output answers.

    Raises:
        UsageError: the suite has no such task.
        SuiteError: the suite cannot be read.
    """
    suite = opened_suite(data, job["suite"])
    name = str(job["task"])
    task_id = next((task.id for task in suite.tasks if name in (task.id, *task.aliases)), name)
    task = suite.task(task_id)
    if "gold" in job:
        gold = Gold(located(data, job, job["gold"]["path"]))
        task = replace(task, cases=(replace(task.cases[0], golds=(gold,)),))
    return task


def located(data: Path, job: Job, path: str) -> Path:
    """Finds a file that a job names: next to its list of jobs, or else in the data folder."""
    path_beside_jobs = Path(job.get("beside", data)) / path
    return (path_beside_jobs if path_beside_jobs.exists() else data / path).resolve()


def left_files(data: Path, job: Job) -> dict[str, bytes]:
    """Reads the files of an output.

    Raises:
        OSError: a file does not exist.
    """
    return {
        file["name"]: located(data, job, file["path"]).read_bytes()
        for file in job["files"]
        if "path" in file
    }


def response_of(data: Path, job: Job) -> Mapping[str, Any]:
    """Reads the recorded response of an answer of IB-bench.

    Raises:
        OSError: it does not exist.
    """
    response = job.get("response")
    if response is None:
        published = str(job["job"]).removeprefix("published/")
        path = located(data, job, f"ib-bench/responses/{published}.json")
        response = json.loads(path.read_text(encoding="utf-8"))
    return dict(response)


def answer_of(data: Path, job: Job, task: Task) -> Answer:
    """Makes the answer that the checker judges from an output."""
    files = left_files(data, job)
    if job["suite"] == "officebench" and job.get("workspace") == "testbed":
        files = {file.name: file.path.read_bytes() for file in task.cases[0].inputs} | files
    if job["suite"] == "ib-bench":
        files[REPLY] = json.dumps(response_of(data, job).get("parsed_response")).encode()
    if job["suite"] in {"skillsbench", "waa-v2"}:
        # These outputs are recorded without names: each is the file that its task requires.
        file_name = str(task.context.get("file", "output.xlsx"))
        files = dict.fromkeys([file_name] if files else [], next(iter(files.values()), b""))
    if job["suite"] == "opencomputer":
        listed = tuple(AnswerFile(name, content) for name, content in files.items())
        return Answer(Origin.SOLUTION, listed)
    return answer_of_folder(files, Origin.FINISHED)


def items_of(data: Path, job: Job, compute: Compute, *, both: bool = False) -> list[JudgedItem]:
    """Judges every item of the task that an output answers, under ``official``.

    Args:
        data: the folder with the outputs.
        job: the output.
        compute: computes formulas.
        both: whether the items are judged under ``standard`` as well.

    Raises:
        JudgeError: the suite has no such task, or cannot be read.
        OSError: a file of the output does not exist.
    """
    task = task_of(data, job)
    case = task.cases[0]
    workspace = workspace_of(case, case.golds, answer_of(data, job, task), compute)
    options = ChecklistOptions.of(task.checker.own_options)
    if both:
        return judged_items(options, workspace, Reading.OFFICIAL)
    items = [
        JudgedItem(item, judge_item(item, workspace, Reading.OFFICIAL)) for item in options.items
    ]
    return with_gates(items, Reading.OFFICIAL)
