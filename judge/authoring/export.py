"""Writes suites as a folder or a ``.tar.gz``: reviewed tasks, or a corrected suite."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import shutil
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from judge.authoring.draft import SuiteDraft
from judge.authoring.kinds import DraftTask
from judge.authoring.review import State
from judge.core.task import Task
from judge.errors import UsageError
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
    """Writes a reproducible tar file: sorted names, no times and owners."""
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
"""File that names the suite that a corrected one was made from, the corrections, and the changed
files."""


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
        text = suite.conventions.definition_of(root, placed)
        (folder / suite.conventions.definition).write_text(text, encoding="utf-8")
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
