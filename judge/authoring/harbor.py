"""Writes a suite as Harbor task folders, with verifiers that run this judge offline.

The agent's container has the inputs, but no golds. The verifier is a separate container without a
network, made from the image of ``judge sandbox build --verifier``. It holds a suite with this one
task, and judges the workbooks that Harbor copies from the agent's container. Written for Harbor
0.25.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from judge.authoring.export import writing_suite
from judge.core.task import Task, TestCase
from judge.errors import SuiteError, UsageError
from judge.files.documents import dump_json
from judge.files.writing import naming_what_is_written
from judge.sandbox.roots import pins
from judge.suites import Suite
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
        text = self._suite.conventions.definition_of(root, [self._task])
        (folder / self._suite.conventions.definition).write_text(text, encoding="utf-8")

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
    first = suite.conventions.default_paths(task.question).output_path.rpartition("/")[2]
    for name in (first, re.sub(r"^\d+_", f"{case.number}_", first)):
        named = suite.conventions.output_of(name)
        if named is not None and named[1] == case.number and "/" not in name:
            return name
    raise UsageError(
        f"{suite.root}: outputs of case {case.number} of task {task.id} have no name of their own",
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
