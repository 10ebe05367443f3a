"""Writes suites as a folder or a ``.tar.gz`` (reviewed tasks, or a corrected suite), or as a card.

A card is a folder with the layout that dataset hubs can display: ``README.md`` with front matter,
``data/tasks.parquet`` with an index of the tasks, and the inputs. It is meant for viewing,
searching and sharing the questions. Golds, and checker options that the question does not state,
are left out, so nothing can be judged with it. This is the only module that imports pyarrow.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import re
import shutil
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

from judge.authoring.draft import SuiteDraft
from judge.authoring.kinds import DraftTask, State
from judge.core.task import CaseInput, Task, TaskQuestion
from judge.errors import SuiteError, UsageError, how_to_install
from judge.files.documents import dump_json
from judge.files.writing import folder_beside, naming_what_is_written
from judge.suites import Suite, load_suite
from judge.suites.corrections import CorrectedSuite, describe_corrections
from judge.version import __version__

ANNOTATIONS_FILE = "annotations.jsonl"
"""File with the fields that the definition cannot hold, and with the authors and reviewers."""

ARCHIVE_SUFFIX = ".tar.gz"
_ORDER = {State.DRAFT: 0, State.CHECKED: 1, State.ACCEPTED: 2}


def choose(tasks: Iterable[DraftTask], least: State) -> tuple[DraftTask, ...]:
    """The tasks that have reached at least this state, without those that the suite excludes.

    Raises:
        UsageError: there are no such tasks.
    """
    chosen = tuple(
        task
        for task in tasks
        if _ORDER[task.status.state] >= _ORDER[least] and task.task.excluded is None
    )
    if not chosen:
        raise UsageError(
            f"no task of the suite is {least.value} yet",
            hint="`judge dataset review SUITE` shows their states; --state draft takes them all.",
        )
    return chosen


@contextlib.contextmanager
def writing_suite(target: Path) -> Iterator[Path]:
    """Provides a folder that becomes the target at the end; on an error, no target is written.

    Args:
        target: a new folder, or a file that ends in ``.tar.gz``.

    Raises:
        UsageError: the target already exists.
    """
    if target.exists():
        raise UsageError(f"{target} already exists", hint="Name another one, or move it away.")
    name = target.name.removesuffix(ARCHIVE_SUFFIX)
    with folder_beside(target.absolute(), ".exporting-") as scratch:
        folder = scratch / name
        folder.mkdir()
        yield folder
        if target.name.endswith(ARCHIVE_SUFFIX):
            packed = scratch / target.name
            _pack(folder, packed)
            packed.replace(target)
        else:
            folder.replace(target)


def export_suite(draft: SuiteDraft, tasks: Sequence[DraftTask], target: Path) -> int:
    """Writes tasks as a suite; on an error, no target is written.

    Args:
        draft: the suite.
        tasks: the tasks that :func:`choose` returned.
        target: a new folder, or a file that ends in ``.tar.gz``.

    Returns:
        How many test cases were written.

    Raises:
        UsageError: the target already exists.
    """
    with writing_suite(target) as folder:
        cases = draft.kind.write(tasks, draft.root, folder)
        _write_annotations(tasks, folder)
    return cases


def _write_annotations(tasks: Sequence[DraftTask], folder: Path) -> None:
    annotations = (
        {
            "id": task.record["id"],
            **task.notes,
            "state": task.status.state.value,
            "authors": list(task.status.authors),
            "reviewers": list(task.status.reviewers),
        }
        for task in tasks
    )
    lines = (dump_json(line, spaced=True) for line in annotations)
    (folder / ANNOTATIONS_FILE).write_text("".join(f"{x}\n" for x in lines), encoding="utf-8")


def _pack(folder: Path, target: Path) -> None:
    """Writes a reproducible tar file: with sorted names, without times and owners."""
    with (
        target.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                data = path.read_bytes()
                member = tarfile.TarInfo(str(path.relative_to(folder.parent)))
                member.size, member.mode = len(data), 0o644
                tar.addfile(member, io.BytesIO(data))


PROVENANCE_FILE = "provenance.json"
"""File with the source of a corrected suite, the corrections, and the changed files."""


@dataclass(frozen=True, slots=True)
class Exported:
    """A suite that was written.

    Attributes:
        tasks: how many tasks it has.
        cases: how many cases.
        golds: how many golds were corrected.
        corrections: how many corrections were applied.
        digest: the digest of the new suite.
    """

    tasks: int
    cases: int
    golds: int
    corrections: int
    digest: str


def export_corrected(suite: Suite, corrected: CorrectedSuite, target: Path) -> Exported:
    """Writes a suite with its corrections, in its own format.

    The files keep their names, so the same solutions can be scored on the new suite. A
    ``provenance.json`` is written next to its definition.

    Args:
        suite: the suite as published.
        corrected: the same suite with its corrections.
        target: a new folder, or a file that ends in ``.tar.gz``.

    Raises:
        UsageError: the target already exists, nothing is corrected, or suites of this format
            cannot be written.
        SuiteError: the suite cannot be read, or the written folder is not a valid suite.
        StoreError: the target cannot be written.
    """
    if not corrected.applied:
        raise UsageError(
            f"no correction applies to {suite.root}, so there is nothing to export",
            hint="Name a file of corrections for this suite with --corrections-from FILE.",
        )
    root = suite.root.resolve()
    with naming_what_is_written(target), writing_suite(target) as folder:
        changed = list(_copy_files(suite, corrected.suite, root, folder))
        placed = [_at_home(task, suite.task(task.id)) for task in corrected.suite.tasks]
        text = suite.suite_format.definition_of(root, placed)
        (folder / suite.suite_format.definition).write_text(text, encoding="utf-8")
        exported = load_suite(folder)
        provenance = _provenance(suite, corrected, exported, changed)
        (folder / PROVENANCE_FILE).write_text(
            f"{dump_json(provenance, indent=2)}\n", encoding="utf-8"
        )
    return Exported(
        len(exported.tasks),
        exported.case_count,
        len(changed),
        len(corrected.applied),
        exported.digest,
    )


def _at_home(task: Task, published: Task) -> Task:
    """The corrected task, with its golds at the paths of the published ones."""
    return replace(task, cases=published.cases)


def _copy_files(before: Suite, after: Suite, root: Path, folder: Path) -> Iterator[dict[str, Any]]:
    """Copies all files of the cases; returns an entry for each corrected file."""
    for task in after.tasks:
        published = before.task(task.id).cases
        for old, new in zip(published, task.cases, strict=True):
            for was, now in zip(old.paths, new.paths, strict=True):
                relative = was.relative_to(root)
                path = folder / relative
                path.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(now, path)
                if was != now:
                    yield {
                        "task": task.id,
                        "case": new.number,
                        "path": relative.as_posix(),
                        "published_sha256": _sha256(was),
                        "sha256": _sha256(now),
                    }


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _provenance(
    suite: Suite, corrected: CorrectedSuite, exported: Suite, files: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "judge_version": __version__,
        "published": {"name": suite.name, "format": suite.format, "digest": suite.digest},
        "digest": exported.digest,
        "corrections": describe_corrections(corrected.applied),
        "not_applied": describe_corrections(corrected.unfit),
        "files": list(files),
    }


INDEX = "data/tasks.parquet"
_INPUTS = "inputs"
_SPDX_LIKE = re.compile(r"[a-z0-9][a-z0-9.+-]{1,60}")
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"))


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a suite, for its card.

    Attributes:
        title: one line for people.
        licence: the licence of the data.
        source: where it was published, or how it was made; empty if unknown.
    """

    title: str
    licence: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class ExportedCard:
    """A dataset folder that was written.

    Attributes:
        tasks: how many tasks are in the index.
        cases: how many cases they have.
        files: how many input files were written.
        absent: how many input files the suite names but does not contain.
    """

    tasks: int
    cases: int
    files: int
    absent: int


def export_card(suite: Suite, origin: Origin, target: Path) -> ExportedCard:
    """Writes a suite as a dataset folder. Tasks that the suite excludes are left out.

    Args:
        suite: the suite.
        origin: its origin.
        target: a new folder, or a file that ends in ``.tar.gz``.

    Raises:
        UsageError: the target already exists, or pyarrow is not installed.
        SuiteError: an input file cannot be read.
        StoreError: it cannot be written.
    """
    if find_spec("pyarrow") is None:
        raise UsageError(
            "the index of a dataset card is written with pyarrow, which is not installed",
            hint=how_to_install("parquet"),
        )
    questions = [task.question for task in suite.tasks if task.excluded is None]
    groups = {task.id: dict(task.groups) for task in suite.tasks}
    with naming_what_is_written(target), writing_suite(target) as folder:
        rows = [_row(question, groups[question.id], folder) for question in questions]
        _write_index(rows, folder / INDEX)
        cases = [case for row in rows for case in row["cases"]]
        exported = ExportedCard(
            tasks=len(rows),
            cases=len(cases),
            files=sum(len(case["inputs"]) for case in cases),
            absent=sum(len(case.absent) for question in questions for case in question.inputs),
        )
        card = _card(suite, origin, exported, rows)
        (folder / "README.md").write_text(card, encoding="utf-8")
    return exported


# -- the index -----------------------------------------------------------------------------------


def _row(question: TaskQuestion, groups: Mapping[str, str], folder: Path) -> dict[str, Any]:
    return {
        "id": question.id,
        "instruction": question.instruction,
        "instruction_type": question.kind,
        "answer": question.answer.value,
        "details": _named(question.details),
        "groups": _named(groups),
        "cases": [
            {"number": case.number, "inputs": list(_inputs(question.id, case, folder))}
            for case in question.inputs
        ],
    }


def _inputs(task_id: str, case: CaseInput, folder: Path) -> Iterator[dict[str, Any]]:
    """Copies the inputs of a case, and describes them."""
    prefix = f"{_INPUTS}/{quote(task_id, safe=' ')}/{case.number}"
    for number, file in enumerate(case.files, 1):
        name = file.path.name
        if any(name == other.path.name for other in case.files[: number - 1]):
            name = f"{number}-{name}"
        copy = folder / prefix / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        try:
            data = file.path.read_bytes()
        except OSError as error:
            raise SuiteError(f"{file.path}: cannot be read: {error.strerror}") from error
        copy.write_bytes(data)
        yield {
            "path": f"{prefix}/{name}",
            "kind": file.kind.value,
            "bytes": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
        }


def _named(values: Mapping[str, str]) -> list[dict[str, str]]:
    """Names and values as a list, because the library ``datasets`` cannot read mappings."""
    return [{"name": name, "value": value} for name, value in sorted(values.items())]


def _write_index(rows: list[dict[str, Any]], path: Path) -> None:
    import pyarrow as pa  # noqa: PLC0415  an extra
    from pyarrow import parquet  # noqa: PLC0415  likewise

    text = pa.string()
    words = pa.list_(pa.struct({"name": text, "value": text}))
    file = pa.struct({"path": text, "kind": text, "bytes": pa.int64(), "sha256": text})
    case = pa.struct({"number": pa.int64(), "inputs": pa.list_(file)})
    schema = pa.schema(
        {
            "id": text,
            "instruction": text,
            "instruction_type": text,
            "answer": text,
            "details": words,
            "groups": words,
            "cases": pa.list_(case),
        }
    )
    path.parent.mkdir(parents=True)
    parquet.write_table(pa.Table.from_pylist(rows, schema=schema), path, compression="zstd")


# -- the card ------------------------------------------------------------------------------------


def _front_matter(origin: Origin, tasks: int) -> str:
    """The front matter of the card, which the site reads, as YAML."""
    tag = re.sub(r"\s+", "-", origin.licence.strip().lower())
    is_spdx = _SPDX_LIKE.fullmatch(tag) is not None
    size = next((name for most, name in _SIZES if tasks < most), "100K<n<1M")
    front: dict[str, object] = {
        "pretty_name": origin.title,
        "license": tag if is_spdx else "other",
        **({} if is_spdx else {"license_name": origin.licence}),
        "tags": ["spreadsheets", "benchmark"],
        "size_categories": [size],
        "configs": [{"config_name": "tasks", "data_files": INDEX}],
    }
    # JSON is valid YAML, and its quoting keeps a title from adding other fields.
    return "\n".join(f"{name}: {dump_json(value, spaced=True)}" for name, value in front.items())


def _card(suite: Suite, origin: Origin, exported: ExportedCard, rows: list[dict[str, Any]]) -> str:
    types: dict[str, int] = {}
    for row in rows:
        types[row["instruction_type"]] = types.get(row["instruction_type"], 0) + 1
    counted = "\n".join(f"| {_cell(name)} | {count:,} |" for name, count in types.items())
    absent = f", {exported.absent:,} more are not part of the suite" if exported.absent else ""
    return f"""---
{_front_matter(origin, exported.tasks)}
---

# {_cell(origin.title)}

| what | |
|---|---|
| licence | {_cell(origin.licence)} |
| source | {_cell(origin.source) or "not stated"} |
| format | {suite.format} |
| digest of the suite | `{suite.digest}` |
| tasks | {exported.tasks:,} |
| test cases | {exported.cases:,} |
| input files | {exported.files:,}{absent} |
| written by | sheetjudge {__version__} |

| instruction type | tasks |
|---|---|
{counted}

## Columns

`{INDEX}` has one row for each task. Golds are left out, and so is everything else that only the
judge may know.

| column | what |
|---|---|
| `id` | the task's id, as text |
| `instruction` | the question |
| `instruction_type` | the sort of task, in the suite's words |
| `answer` | the form of the answer: `workbook`, `table`, `files` or `text` |
| `details` | `name` and `value` of other facts that the question states, such as `answer_position`
|
| `groups` | `name` and `value` of the parts of the suite that the task belongs to |
| `cases` | `number` and `inputs` of each case; an input has `path`, `kind`, `bytes`, `sha256` |

```python
import pandas as pd

tasks = pd.read_parquet("{INDEX}")
```
"""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
