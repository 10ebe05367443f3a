"""Writes the tasks of a suite that have come so far, as a folder or as a ``.tar.gz``."""

from __future__ import annotations

import contextlib
import gzip
import io
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from judge.authoring.draft import SuiteDraft
from judge.authoring.kinds import DraftTask
from judge.authoring.review import State
from judge.errors import UsageError
from judge.files.documents import dump_json
from judge.files.writing import folder_beside

ANNOTATIONS_FILE = "annotations.jsonl"
"""The fields that the definition has no place for, with authors and reviewers."""

ARCHIVE_SUFFIX = ".tar.gz"
_ORDER = {State.DRAFT: 0, State.CHECKED: 1, State.ACCEPTED: 2}


def choose(tasks: Iterable[DraftTask], least: State) -> tuple[DraftTask, ...]:
    """The tasks that have reached at least this state, without those that the suite excludes.

    Raises:
        UsageError: there is none.
    """
    chosen = tuple(
        task
        for task in tasks
        if _ORDER[task.standing.state] >= _ORDER[least] and task.task.excluded is None
    )
    if not chosen:
        raise UsageError(
            f"no task of the suite is {least.value} yet",
            hint="`judge dataset review SUITE` shows their states; --state draft takes them all.",
        )
    return chosen


@contextlib.contextmanager
def writing_suite(target: Path) -> Iterator[Path]:
    """A folder that becomes a suite at its end; the target is there as a whole or not at all.

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
    """Writes the tasks; the target is there as a whole or not at all.

    Args:
        draft: the suite.
        tasks: what :func:`choose` chose.
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
            "state": task.standing.state.value,
            "authors": list(task.standing.authors),
            "reviewers": list(task.standing.reviewers),
        }
        for task in tasks
    )
    lines = (dump_json(line, spaced=True) for line in annotations)
    (folder / ANNOTATIONS_FILE).write_text("".join(f"{x}\n" for x in lines), encoding="utf-8")


def _pack(folder: Path, target: Path) -> None:
    """The same content gives the same bytes: no times, no owners, names in order."""
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
