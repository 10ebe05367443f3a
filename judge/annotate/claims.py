"""The contents of a suite's ``annotations``, checked before they are believed.

A suite may come from a stranger, its records and drafts with it. Opening a suite finishes saves
that a crash interrupted, which writes files: where to, and which, is only taken from a record that
says what the judge itself would have written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from judge.console import visible
from judge.errors import StoreError
from judge.files.documents import json_type

DRAFT_ID = re.compile(r"[0-9]{1,6}-[0-9a-f]{1,64}")
"""Number of the case that a draft becomes, and what distinguishes it from others."""

MAX_CASES = 999_999

_SHA256 = re.compile(r"[0-9a-f]{64}")
_Check = Callable[[object], bool]


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_CASES


def _is_hash(value: object) -> bool:
    return isinstance(value, str) and _SHA256.fullmatch(value) is not None


def _is_draft(value: object) -> bool:
    return isinstance(value, str) and DRAFT_ID.fullmatch(value) is not None


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _is_text_or_null(value: object) -> bool:
    return value is None or isinstance(value, str)


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


_SAVING: Mapping[str, _Check] = {
    "id": _is_text,
    "time": _is_text,
    "author": lambda value: isinstance(value, str),
    "task": _is_text,
    "case": _is_number,
    "draft": _is_draft,
    "base": _is_number,
    "replaces": _is_text_or_null,
    "files": _is_object,
    "input": _is_hash,
    "gold": _is_hash,
}
_REMOVING: Mapping[str, _Check] = {
    **{name: _SAVING[name] for name in ("id", "time", "author", "task", "case", "files")},
    **{name: _SAVING[name] for name in ("input", "gold")},
    "takes_back": _is_text,
    "restores": lambda value: (
        value is None
        or (
            isinstance(value, dict) and all(_is_hash(value.get(role)) for role in ("input", "gold"))
        )
    ),
}
_SAVED: Mapping[str, _Check] = {"id": _is_text}
_HEAD: Mapping[str, _Check] = {
    "case": _is_number,
    "author": lambda value: isinstance(value, str),
    "replaces": _is_text_or_null,
    "base": _is_object,
}
_BASE: Mapping[str, _Check] = {"case": _is_number, "input": _is_hash, "gold": _is_hash}
_STEP: Mapping[str, _Check] = {"edits": _is_list, "answers": _is_list}


def check_record(path: Path, record: Mapping[str, Any]) -> None:
    """Makes sure that a record of a save, or of one that is taken back, is valid.

    Raises:
        StoreError: it is not; says which field is wrong.
    """
    if record.get("state") not in {"saving", "removing"}:
        _check(path, record, _SAVED)
        return
    _check(path, record, _SAVING if record["state"] == "saving" else _REMOVING)
    for role in ("input", "gold"):
        name = record["files"].get(role)
        if not _is_case_path(name):
            raise _wrong(path, f"files.{role}", name)
    changed = record.get("changed", [])
    if not isinstance(changed, list) or not all(isinstance(each, str) for each in changed):
        raise _wrong(path, "changed", changed)


def _is_case_path(name: object) -> bool:
    """Whether a path could be that of a case's workbook within the suite."""
    if not isinstance(name, str) or "\\" in name or "\0" in name:
        return False
    path = PurePosixPath(name)
    return (
        not path.is_absolute()
        and ".." not in path.parts
        and path.suffix.lower() == ".xlsx"
        and path.parts[0] != "annotations"
    )


def check_draft(path: Path, head: Mapping[str, Any], steps: list[dict[str, Any]]) -> None:
    """Makes sure that the lines of a draft are what the judge writes.

    Raises:
        StoreError: they are not; says which field is wrong.
    """
    _check(path, head, _HEAD)
    _check(path, head["base"], _BASE)
    for step in steps:
        if "undo" not in step:
            _check(path, step, _STEP)


def _check(path: Path, record: Mapping[str, Any], fields: Mapping[str, _Check]) -> None:
    for name, fits in fields.items():
        if not fits(record.get(name)):
            raise _wrong(path, name, record.get(name))


def _wrong(path: Path, name: str, value: object) -> StoreError:
    shown = visible(repr(value)[:60]) if isinstance(value, str | int) else json_type(value)
    return StoreError(
        f"{path}: a record whose field {name} cannot be right: {shown}",
        hint="The judge did not write it. Remove the line, or the whole folder "
        "annotations if the suite is not yours.",
    )


def within(root: Path, target: Path) -> Path:
    """A file of a suite that is to be written, checked so that no link leads out of the suite.

    Raises:
        StoreError: one does.
    """
    try:
        outside = not target.parent.resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError) as error:
        raise StoreError(f"{target}: {error}") from error
    if outside:
        raise StoreError(
            f"{target} is outside the suite, because a link leads there",
            hint="Put the folder itself where the link is; nothing was written.",
        )
    return target
