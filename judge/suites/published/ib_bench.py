"""IB-bench: tasks of investment bankers, answered by a JSON reply and a workbook."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from judge.core.task import LEFT_OUT_OPTION, Gold, InputFile, Task
from judge.errors import SubmissionError, SuiteError
from judge.files.documents import read_json, read_text
from judge.files.yaml_documents import read_yaml
from judge.suites.answer_files import REPLY
from judge.suites.fields import FieldError, Fields
from judge.suites.folders import Boundary, is_regular
from judge.suites.published.reading import (
    ANSWER_CONTENTS,
    RUBRIC,
    ChecklistFormat,
    checklist,
    checklist_task,
    file_kind,
    workbook_first,
)

NAME = "ib-bench"
PASS_SHARE = 0.6
_GOLD = "_golden"
_DIFFICULTIES = {"e": "easy", "m": "medium", "h": "hard"}


class IbBench(ChecklistFormat):
    """The format with ``tasks/*/rubric.json`` and ``meta.yaml``."""

    names = (NAME,)
    definition = "tasks/*/rubric.json"
    folders = ("eval/tasks", "tasks")
    output_pattern = "{id}.json with {id}_output_1.xlsx next to it, or a folder {id}"
    output_folder = "output"

    def definitions_in(self, folder: Path) -> Iterator[Path]:
        """One ``rubric.json`` in the folder of each task."""
        for path in sorted(folder.glob("*/rubric.json")):
            if (path.parent / "meta.yaml").is_file():
                yield path

    def tasks_of(self, definition: Path, boundary: Boundary) -> Iterator[Task]:
        """The task of a ``rubric.json``."""
        folder = definition.parent
        rubric = read_json(definition, SuiteError)
        if not isinstance(rubric, dict) or not isinstance(rubric.get("criteria"), dict):
            raise FieldError("must hold an object with criteria")
        items = [_item(name, criterion) for name, criterion in rubric["criteria"].items()]
        inputs, golds = _files(folder, boundary)
        options: dict[str, object] = {"evaluator": NAME, "pass_share": PASS_SHARE, "items": items}
        if all(item["kind"] in {"llm", "human"} for item in items):
            options[LEFT_OUT_OPTION] = "every item needs a model or a person"
        groups = {"difficulty": _DIFFICULTIES.get(folder.name[:1], folder.name[:1])}
        kind, requested_file = _kind(folder / "meta.yaml"), f"{folder.name}_output_1.xlsx"
        yield checklist_task(
            folder.name,
            _instruction(folder / "prompt.md"),
            checklist(options),
            inputs=workbook_first(inputs),
            golds=golds,
            kind=kind,
            groups=groups,
            requested_file=requested_file,
            details={
                ANSWER_CONTENTS: (
                    f"{REPLY} with the reply as JSON, "
                    f"and {requested_file} if the task wants a workbook"
                ),
                RUBRIC: rubric_hash(rubric),
            },
        )

    def folder_answers(self, folder: Path, tasks: Mapping[str, str]) -> Mapping[str, Path]:
        """Finds responses that the suite recorded, ``{id}.json``, and folders."""
        responses = {path.stem: path for path in _responses_in(folder) if path.stem in tasks}
        return {**super().folder_answers(folder, tasks), **responses}


def rubric_hash(rubric: Mapping[str, Any]) -> str:
    """The hash of a rubric; published scores identify the rubric by it."""
    return hashlib.sha256(json.dumps(rubric, sort_keys=True).encode()).hexdigest()[:8]


def _responses_in(folder: Path) -> list[Path]:
    try:
        return [path for path in sorted(folder.glob("*.json")) if is_regular(path)]
    except OSError as error:
        raise SubmissionError(f"{folder} cannot be listed: {error.strerror}") from error


def _item(name: str, criterion: Any) -> dict[str, object]:
    if not isinstance(criterion, dict):
        raise FieldError(f"criterion {name!r} is not an object")
    fields = Fields(criterion, f"criteria.{name}.")
    kind = fields.text("type")
    item: dict[str, object] = {
        "id": name,
        "points": criterion.get("points", 0),
        "words": fields.text("description", blank=True),
    }
    if kind == "programmatic":
        check = {"id": name, **criterion}
        gates: Mapping[str, object] = {"gates": ["llm"]} if criterion.get("gates_llm") else {}
        return {**item, "kind": "published", "suite": NAME, "check": check, **gates}
    if kind == "llm_judge":
        concepts = criterion.get("core_concepts")
        more = {"concepts": concepts} if isinstance(concepts, list) else {}
        return {**item, "kind": "llm", "scale": "numeric", "min": 0, "max": 1, **more}
    if kind == "human_judge":
        guide = criterion.get("scoring_guide")
        return {**item, "kind": "human", "guide": guide if isinstance(guide, str) else str(guide)}
    raise fields.error("type", f"is {kind!r}, which is not known")


def _files(folder: Path, boundary: Boundary) -> tuple[list[InputFile], list[Gold]]:
    """The input files, and the authors' finished workbooks as golds."""
    inputs, golds = [], []
    for path in sorted(folder.iterdir()):
        if not boundary.has_file(path):
            continue
        if path.name.startswith("input"):
            inputs.append(InputFile(path, file_kind(path)))
        elif path.name.startswith(_GOLD) and path.suffix == ".xlsx":
            golds.append(Gold(path))
    return inputs, golds


def _instruction(path: Path) -> str:
    """The instruction: the prompt from its section ``Task`` on."""
    text = read_text(path, SuiteError)
    return (text[text.index("## Task") :] if "## Task" in text else text).strip()


def _kind(path: Path) -> str:
    document = read_yaml(path, SuiteError)
    task = document.get("task") if isinstance(document, dict) else None
    kind = task.get("type") if isinstance(task, dict) else None
    return kind if isinstance(kind, str) else ""


FORMAT = IbBench()
