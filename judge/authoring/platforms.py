"""Writes a suite for other platforms: Harbor task folders, or a Codabench bundle.

In both, this judge gives the verdicts, offline, in the image of ``judge sandbox build --verifier``.

Harbor 0.25: the agent's container has the inputs, but no golds. The verifier is a separate
container without a network. It holds a suite with this one task, and judges the workbooks that
Harbor copies from the agent's container.

Codabench, for the importer and the worker of codalab/codabench@c7dbc756 (unpackers/v2.py,
compute_worker.py): the scoring program runs in the same container as the golds. Contestants'
programs could not be isolated from the golds there, so submissions are finished workbooks or typed
answers.
"""

from __future__ import annotations

import re
import shlex
import shutil
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge.authoring.export import writing_suite
from judge.core.task import Task, TestCase
from judge.errors import SuiteError, UsageError
from judge.files.documents import dump_json
from judge.files.writing import naming_what_is_written, writing_whole
from judge.files.yaml_documents import dump_yaml
from judge.sandbox.roots import pins
from judge.suites import Suite
from judge.suites.folders import regular_files
from judge.suites.harbor import folder_name
from judge.version import __version__

DEFAULT_AGENT_IMAGE = "python:3.11-slim-bookworm"
AGENT_FOLDER = "/app"
OUTPUT_FOLDER = f"{AGENT_FOLDER}/output"
_ORGANISATION = "sheetjudge"
_AGENT_TIMEOUT_S = 1800.0
_VERIFIER_TIMEOUT_S = 600.0
_VERIFIER_MEMORY_MB = 4096
_DETAIL = re.compile(r"[_-]+")

_TEST = """\
#!/bin/bash
# Judges the workbooks of one task, offline. Without a score (the judge is at fault) no reward is
# written, and Harbor reports an error in place of a 0.
set -u
answers=$(mktemp -d)
for name in {names}; do
    file={output}/$name
    if [ -f "$file" ] && [ ! -L "$file" ]; then cp -- "$file" "$answers/"; fi
done
exec judge score "$answers" --dataset /tests/suite --outputs {pattern} --every-task \\
    --sandbox sealed-container --jobs 1 --quiet \\
    --out /logs/verifier/judge --reward /logs/verifier/reward.json
"""
_SOLVE = """\
#!/bin/bash
# What the suite has as the right answer.
set -eu
mkdir -p {output}
cp -- "$(dirname "$0")"/golds/* {output}/
"""
_ENVIRONMENT = """\
FROM {image}
{packages}WORKDIR {folder}
COPY input {folder}/input
RUN mkdir -p {output}
"""
_TESTS_IMAGE = """\
FROM {image}
COPY . /tests
RUN chmod 755 /tests/test.sh && mkdir -p /logs/verifier {output}
"""


@dataclass(frozen=True, slots=True)
class HarborImages:
    """Images of the containers.

    Attributes:
        verifier: the image of ``judge sandbox build --verifier``.
        agent: the image that agents work in, used unchanged; None for a Python image with the
            packages of the sandbox.
    """

    verifier: str
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class ExportedTasks:
    """The numbers of tasks and cases that were written.

    Attributes:
        tasks: how many tasks were written.
        cases: how many cases they have.
        left_out: how many tasks were left out, because the suite excludes them or because they do
            not ask for a workbook.
    """

    tasks: int
    cases: int
    left_out: int


def export_harbor(suite: Suite, images: HarborImages, target: Path) -> ExportedTasks:
    """Writes a folder that holds a folder for each task.

    Args:
        suite: the suite.
        images: the images of the containers.
        target: a new folder, or a file that ends in ``.tar.gz``.

    Raises:
        UsageError: the target exists, no task asks for a workbook, or suites of this format cannot
            be written.
        SuiteError: a file of the suite cannot be read.
        StoreError: the target cannot be written.
    """
    chosen = [task for task in suite.tasks if task.excluded is None and task.answer.is_file]
    if not chosen:
        raise UsageError(
            f"{suite.root}: no task asks for a workbook, so there is nothing to export"
        )
    with naming_what_is_written(target), writing_suite(target) as folder:
        for task in chosen:
            _TaskWriter(suite, task, images).write(folder / folder_name(task.id))
        (folder / "README.md").write_text(_readme(suite, images), encoding="utf-8")
    cases = sum(len(task.cases) for task in chosen)
    return ExportedTasks(len(chosen), cases, len(suite.tasks) - len(chosen))


class _TaskWriter:
    """Writes the folder of one task."""

    def __init__(self, suite: Suite, task: Task, images: HarborImages) -> None:
        self._suite = suite
        self._task = task
        self._images = images
        self._outputs = {case.number: _output_name(suite, task, case) for case in task.cases}

    def write(self, folder: Path) -> None:
        """Writes all files of the task."""
        texts = {
            "task.toml": _toml(self._config()),
            "instruction.md": self._instruction(),
            "environment/Dockerfile": self._environment(),
            "tests/Dockerfile": _TESTS_IMAGE.format(
                image=self._images.verifier, output=OUTPUT_FOLDER
            ),
            "tests/test.sh": self._test(),
            "solution/solve.sh": _SOLVE.format(output=OUTPUT_FOLDER),
        }
        for name, text in texts.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            if path.suffix == ".sh":
                path.chmod(0o755)
        for case in self._task.cases:
            for question in case.inputs:
                _copy(question.path, folder / "environment/input" / question.path.name)
            gold = case.golds[0].path
            if gold is not None:
                _copy(gold, folder / "solution/golds" / self._outputs[case.number])
        self._write_suite(folder / "tests/suite")

    def _write_suite(self, folder: Path) -> None:
        root = self._suite.root.resolve()
        for case in self._task.cases:
            for path in case.paths:
                _copy(path, folder / path.resolve().relative_to(root))
        text = self._suite.suite_format.definition_of(root, [self._task])
        (folder / self._suite.suite_format.definition).write_text(text, encoding="utf-8")

    def _config(self) -> dict[str, object]:
        task = self._task
        return {
            "schema_version": "1.4",
            "artifacts": [OUTPUT_FOLDER],
            "task": {
                "name": f"{_ORGANISATION}/{folder_name(task.id)}",
                "description": f"Task {task.id} of the suite {self._suite.name}",
                "keywords": ["spreadsheet"],
            },
            "metadata": {
                "suite": self._suite.name,
                "suite_digest": self._suite.digest,
                "task": task.id,
                "kind": task.kind,
                "cases": len(task.cases),
                "judge": __version__,
            },
            "agent": {"timeout_sec": _AGENT_TIMEOUT_S},
            "environment": {"workdir": AGENT_FOLDER},
            "verifier": {
                "timeout_sec": _VERIFIER_TIMEOUT_S,
                "environment_mode": "separate",
                "environment": {"network_mode": "no-network", "memory_mb": _VERIFIER_MEMORY_MB},
            },
        }

    def _environment(self) -> str:
        packages = ""
        if self._images.agent is None:
            pinned = " ".join(f"{name}=={version}" for name, version in pins().items())
            packages = f"RUN pip install --no-cache-dir {pinned}\n"
        return _ENVIRONMENT.format(
            image=self._images.agent or DEFAULT_AGENT_IMAGE,
            packages=packages,
            folder=AGENT_FOLDER,
            output=OUTPUT_FOLDER,
        )

    def _test(self) -> str:
        names = list(self._outputs.values())
        return _TEST.format(
            names=" ".join(shlex.quote(name) for name in names),
            output=OUTPUT_FOLDER,
            pattern=shlex.quote("{case}_*" if len(names) > 1 else "*"),
        )

    def _instruction(self) -> str:
        question = self._task.question
        lines = [question.instruction.strip(), "", "## Files", ""]
        if len(self._task.cases) > 1:
            count = len(self._task.cases)
            lines.append(f"There are {count} test cases of this one task, with different data.")
            lines += ["Solve the task in each of them:", ""]
        for case in self._task.cases:
            inputs = ", ".join(
                f"`{AGENT_FOLDER}/input/{question.path.name}`" for question in case.inputs
            )
            output = f"`{OUTPUT_FOLDER}/{self._outputs[case.number]}`"
            lines.append(f"- read {inputs}; write the result to {output}")
        if question.details or question.kind:
            lines += ["", "## Details", ""]
            if question.kind:
                lines.append(f"- kind of task: {question.kind}")
            for name, value in question.details.items():
                lines.append(f"- {_DETAIL.sub(' ', name)}: {value}")
        lines += ["", "Only the workbooks at these output paths are judged."]
        return "\n".join(lines) + "\n"


def _output_name(suite: Suite, task: Task, case: TestCase) -> str:
    """The output name of a case in the suite's format."""
    first = suite.suite_format.default_paths(task.question).output_path.rpartition("/")[2]
    for name in (first, re.sub(r"^\d+_", f"{case.number}_", first)):
        named = suite.suite_format.output_of(name)
        if named is not None and named[1] == case.number and "/" not in name:
            return name
    raise UsageError(
        f"{suite.root}: outputs of case {case.number} of task {task.id} "
        "have names that do not distinguish them from others",
        hint="Suites of this format cannot be exported to Harbor.",
    )


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        shutil.copyfile(source, target)
    except FileNotFoundError as error:
        raise SuiteError(f"{source}: cannot be read: no such file") from error


def _toml(tables: Mapping[str, object], prefix: str = "") -> str:
    """Plain data as TOML, in which JSON's strings, numbers and lists of strings are valid."""
    plain = {name: value for name, value in tables.items() if not isinstance(value, Mapping)}
    lines = [f"{name} = {_toml_value(value)}" for name, value in plain.items()]
    text = "".join(f"{line}\n" for line in lines)
    for name, value in tables.items():
        if isinstance(value, Mapping):
            text += f"\n[{prefix}{name}]\n{_toml(value, f'{prefix}{name}.')}"
    return text


def _toml_value(value: object) -> str:
    """A value as TOML; replaces lone surrogates and escapes DEL, which TOML does not allow."""
    text = value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
    return dump_json(text, spaced=True).replace("\x7f", "\\u007f")


def _readme(suite: Suite, images: HarborImages) -> str:
    return f"""\
# {suite.name} for Harbor

Written by sheetjudge {__version__} from the suite with the digest `{suite.digest}`.

The verifiers are built on the image `{images.verifier}`:

```
judge sandbox build --verifier
harbor run --path . --agent oracle
judge score jobs/JOB --dataset SUITE
```

Folders `tests` and `solution` hold right answers: agents must not see them.
"""


COLUMNS = (("soft", "Soft score, %"), ("hard", "Hard score, %"))
_STARTS = "2020-01-01 00:00:00"  # open immediately; organisers set the dates on their site
_DAY = (2020, 1, 1, 0, 0, 0)
_LIMIT_S = 3600

SCORING = '''\
"""Scores a submission of Codabench with `judge score`, and writes what the site shows.

    python3 scoring.py REFERENCE SUBMISSION OUTPUT SANDBOX
"""

import json
import pathlib
import subprocess
import sys
import tempfile

reference, submission, output = map(pathlib.Path, sys.argv[1:4])
about = json.loads((reference / "about.json").read_text())
lines = sorted(submission.glob("*.jsonl"))
if about["answers"] == "files":
    answers, more = submission, ["--every-task"]
elif len(lines) == 1:
    answers, more = lines[0], []
else:
    sys.exit("hand in one file with typed answers, NAME.jsonl, at the top of the archive")
with tempfile.TemporaryDirectory() as scratch:
    run = pathlib.Path(scratch, "run")
    command = ["judge", "score", answers, "--dataset", reference / "suite" / about["suite"]]
    command += ["--out", run, "--sandbox", sys.argv[4], "--jobs", "1", "--quiet", *more]
    code = subprocess.run(command, check=False).returncode
    if code:
        sys.exit(code)
    overall = json.loads((run / "report.json").read_text())["overall"]
# Tasks without an answer count as not solved.
missing = about["tasks"] - overall.get("all_tasks", overall["tasks"])
share = overall["tasks"] / (overall["tasks"] + missing) if overall["tasks"] + missing else 0.0
values = {name: overall[name + "_restriction"] or 0.0 for name in ("soft", "hard")}
scores = {name: 100 * share * value for name, value in values.items()}
output.mkdir(parents=True, exist_ok=True)
(output / "scores.json").write_text(json.dumps(scores))
rows = "".join(f"<tr><th>{name}</th><td>{value:.2f} %</td></tr>" for name, value in scores.items())
answered = about["tasks"] - missing
(output / "detailed_results.html").write_text(
    "<!doctype html><meta charset=utf-8><title>Scores</title>"
    f"<table>{rows}</table><p>{answered} of {about['tasks']} tasks answered.</p>"
)
'''


@dataclass(frozen=True, slots=True)
class Bundle:
    """Numbers of tasks and test cases that were written."""

    tasks: int
    cases: int


def export_codabench(
    suite: Suite, image: str, target: Path, *, licence: str | None = None
) -> Bundle:
    """Writes a bundle.

    Args:
        suite: the suite; either all of its tasks ask for files, or all for typed answers.
        image: the verifier's image, under a name that the queue's workers can pull.
        target: a new file that ends in ``.zip``.
        licence: the licence of the data, for the terms.

    Raises:
        UsageError: the target exists or has another suffix, or the tasks ask for both kinds.
        SuiteError: a file of the suite cannot be read.
        StoreError: the target cannot be written.
    """
    if target.suffix != ".zip":
        raise UsageError(f"{target}: a bundle of Codabench is a .zip", hint="Name it NAME.zip.")
    if target.exists():
        raise UsageError(f"{target} already exists", hint="Name another one, or move it away.")
    tasks = [task for task in suite.tasks if task.excluded is None]
    kinds = {task.answer.is_file for task in tasks}
    if len(kinds) != 1:
        raise UsageError(
            f"{suite.root}: its tasks ask for files and for typed answers",
            hint="A Codabench submission has only one of the two: export them as two suites.",
        )
    (files,) = kinds
    texts = {
        "competition.yaml": dump_yaml(_competition(suite, image, len(tasks))),
        "pages/terms.md": _terms(licence),
        **_texts(suite, tasks, files=files),
    }
    with (
        naming_what_is_written(target),
        writing_whole(target, mode=0o644) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name, text in sorted(texts.items()):
            _add(archive, name, text.encode())
        _add(archive, "logo.png", _logo())
        for path in sorted(regular_files(suite.root)):
            relative = path.relative_to(suite.root).as_posix()
            _add(archive, f"reference_data/suite/{suite.root.name}/{relative}", _read(path))
        for path in sorted(
            {question.path for task in tasks for case in task.cases for question in case.inputs}
        ):
            relative = path.resolve().relative_to(suite.root.resolve()).as_posix()
            _add(archive, f"public_data/{relative}", _read(path))
    return Bundle(len(tasks), sum(len(task.cases) for task in tasks))


def _texts(suite: Suite, tasks: list[Task], *, files: bool) -> dict[str, str]:
    """The generated files of a bundle, by name."""
    about = {
        "suite": suite.root.name,
        "digest": suite.digest,
        "tasks": len(tasks),
        "answers": "files" if files else "typed",
        "judge": __version__,
    }
    return {
        "pages/overview.md": _overview(suite, tasks, files=files),
        "scoring_program/scoring.py": SCORING,
        "scoring_program/metadata.yaml": "command: python3 /app/program/scoring.py /app/input/ref "
        "/app/input/res /app/output sealed-container\n",
        "reference_data/about.json": dump_json(about) + "\n",
        "public_data/tasks.jsonl": "".join(f"{dump_json(_task(task))}\n" for task in tasks),
    }


def _competition(suite: Suite, image: str, tasks: int) -> dict[str, Any]:
    return {
        "version": 2,
        "title": suite.name,
        "description": f"{tasks} tasks of spreadsheet work, judged by sheetjudge {__version__}.",
        "image": "logo.png",
        "terms": "pages/terms.md",
        "docker_image": image,
        "registration_auto_approve": False,
        "make_programs_available": False,
        "make_input_data_available": False,
        "enable_detailed_results": True,
        "show_detailed_results_in_leaderboard": False,
        "pages": [{"title": "Overview", "file": "pages/overview.md"}],
        "tasks": [
            {
                "index": 0,
                "name": suite.name,
                "description": f"{tasks} tasks",
                "reference_data": "reference_data/",
                "scoring_program": "scoring_program/",
            }
        ],
        "phases": [
            {
                "index": 0,
                "name": "Open",
                "description": "Finished answers are handed in and judged.",
                "start": _STARTS,
                "max_submissions_per_day": 5,
                "max_submissions": 100,
                "execution_time_limit": _LIMIT_S,
                "hide_score_output": True,
                "public_data": "public_data/",
                "tasks": [0],
            }
        ],
        "leaderboards": [
            {
                "title": "Results",
                "key": "main",
                "submission_rule": "Force_Best",
                "columns": [
                    {"title": title, "key": key, "index": index, "sorting": "desc", "precision": 2}
                    for index, (key, title) in enumerate(reversed(COLUMNS))
                ],
            }
        ],
    }


def _overview(suite: Suite, tasks: list[Task], *, files: bool) -> str:
    archive = (
        "a zip with the finished files, named as the suite names its outputs"
        if files
        else "a zip with one file NAME.jsonl, a line for each answer"
    )
    return (
        f"# {suite.name}\n\n{len(tasks)} tasks, whose questions and inputs are the public data.\n\n"
        f"Hand in {archive}. Tasks without an answer count as not solved. Programs are not run: "
        "they could not be isolated from the golds, which are on the workers of the "
        "queue.\n\nThe hard score is the share of tasks whose cases are all accepted, the soft "
        "score the mean share of accepted cases. Rankings of this site have no intervals and no "
        "ties; `judge compare-runs` has.\n"
    )


def _terms(licence: str | None) -> str:
    terms = f"The data are under {licence}." if licence else "The data belong to their authors."
    return f"# Terms\n\n{terms} Do not train on the tasks, and do not publish their golds.\n"


def _task(task: Task) -> dict[str, Any]:
    question = task.question
    return {
        "id": task.id,
        "instruction": question.instruction,
        "kind": question.kind,
        "details": dict(question.details),
        "inputs": [[one.path.name for one in case.inputs] for case in task.cases],
    }


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    """A zip entry without a timestamp, so that the same content gives the same bytes."""
    archive.writestr(zipfile.ZipInfo(name, _DAY), data, zipfile.ZIP_DEFLATED)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SuiteError(f"{path}: cannot be read: {error.strerror}") from error


def _logo() -> bytes:
    """A PNG logo, which a bundle must have: a grid of 96 by 96 pixels."""
    rows = b"".join(
        b"\0" + bytes(90 if x % 24 == 0 or y % 24 == 0 else 235 for x in range(96))
        for y in range(96)
    )

    def chunk(kind: bytes, data: bytes) -> bytes:
        crc = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc)

    head = struct.pack(">IIBBBBB", 96, 96, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        (chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b""))
    )


EVALUATION_FRAMEWORK = "sheetjudge"
"""The judge's name in files for Hugging Face, which must be the same in both files."""


def eval_yaml(suite: Suite) -> str:
    """The ``eval.yaml`` that makes the suite an evaluation task of a Hugging Face dataset.

    Source: huggingface/hub-docs@242f4a1e, docs/hub/eval-results.md.
    """
    return dump_yaml(
        {
            "name": suite.name,
            "description": f"{len(suite.tasks)} tasks of spreadsheet work with "
            f"{suite.case_count} cases; digest {suite.digest}.",
            "evaluation_framework": EVALUATION_FRAMEWORK,
            "tasks": [{"id": "hard_score"}, {"id": "soft_score"}],
        }
    )
