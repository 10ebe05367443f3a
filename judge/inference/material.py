"""What a question that asks for a typed answer comes with: its files, tables and pictures."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from judge.core.conversation import Picture
from judge.core.task import CaseInput, FileKind, InputFile
from judge.errors import SuiteError, WorkbookError
from judge.files.documents import MIB, read_regular
from judge.inference.config import TypedSetting
from judge.inference.content import ContentLimits, render_content, rows_needed
from judge.inference.fitting import Fit, PictureFitter
from judge.inference.pictures import PictureStore
from judge.inference.prompt import Feedback
from judge.sandbox.layout import can_be_placed
from judge.workbook.delimited import read_table
from judge.workbook.preview import SheetPreview, read_preview

FOLDER = "/tmp/data"  # noqa: S108  inside the sandbox, where services may write
"""Where programs of the conversation find the files of a question."""

_KINDS = {
    FileKind.WORKBOOK: "workbook",
    FileKind.TABLE: "table",
    FileKind.IMAGE: "picture",
    FileKind.TEXT: "text",
}
_MAX_TEXT_BYTES = 8 * MIB


@dataclass(frozen=True, slots=True)
class Material:
    """What a model is shown of a question's files.

    Attributes:
        files: the files as a list, one line each.
        tables: their tables and their text.
        pictures: the pictures that are shown.
        paths: path inside the sandbox -> file, for programs.
    """

    files: str
    tables: str
    pictures: tuple[Picture, ...]
    paths: Mapping[str, Path]


@dataclass(frozen=True, slots=True)
class Shelf:
    """Where pictures are kept and how they are made to fit.

    Attributes:
        store: the pictures of the run.
        fitter: shrinks and joins them; None where they are shown as they are.
    """

    store: PictureStore
    fitter: PictureFitter | None = None


def material_of(
    case: CaseInput, setting: TypedSetting, limits: ContentLimits, words: Feedback, shelf: Shelf
) -> Material:
    """Reads the files of a question.

    Args:
        case: the question's files.
        setting: which of them are shown, and how.
        limits: how much of the tables.
        words: the judge's words about files.
        shelf: for pictures.

    Raises:
        SuiteError: a file is missing, or a picture cannot be shown.
        SandboxError: pictures are to be shrunk, and the sandbox failed.
    """
    for each in case.absent:
        # A question is not asked without what it is about; of a picture the name may be enough.
        if each.kind is not FileKind.IMAGE or setting.pictures != "none":
            raise SuiteError(f"{each.name} is missing: {each.advice}")
    paths = _paths_inside(case.files)
    places = list(zip(paths, case.files, strict=True))
    lines = [
        f"- {path if setting.executes else file.path.name} ({_KINDS[file.kind]})"
        for path, file in places
    ]
    pictures, notes = _pictures_of(case, setting, words, shelf)
    return Material(
        files="\n".join([*lines, *notes]) or words.say("no_files"),
        tables=_tables_of(case.files, setting, limits) or words.say("no_tables"),
        pictures=pictures,
        paths={path: file.path for path, file in places},
    )


def _paths_inside(files: Sequence[InputFile]) -> list[str]:
    """A path for each file, under its own name if that is possible and not taken."""
    paths: list[str] = []
    for number, file in enumerate(files, start=1):
        path = f"{FOLDER}/{file.path.name}"
        if path in paths or not can_be_placed(path):
            path = f"{FOLDER}/{number}{file.path.suffix}"
        paths.append(path)
    return paths


def _pictures_of(
    case: CaseInput, setting: TypedSetting, words: Feedback, shelf: Shelf
) -> tuple[tuple[Picture, ...], list[str]]:
    """The pictures that are shown, and the lines about them."""
    images = [file.path for file in case.files if file.kind is FileKind.IMAGE]
    if setting.pictures == "none":
        missing = [Path(each.name) for each in case.absent if each.kind is FileKind.IMAGE]
        names = _joined(path.name for path in [*images, *missing])
        return (), [words.say("pictures_none", names=names)] if names else []
    if not images:
        return (), []
    # One picture that shows several counts as one.
    stitches = setting.pictures == "stitched" and len(images) > 1
    shown = images if stitches else images[: setting.max_pictures]
    pictures = [shelf.store.add_input(path) for path in shown]
    if shelf.fitter is not None:
        fit = _fit_of(setting, stitch=stitches)
        pictures = shelf.fitter.fit(pictures, fit)
    occasion = "pictures_stitched" if stitches else "pictures_each"
    notes = [words.say(occasion, names=_joined(path.name for path in shown))] if shown else []
    if left := images[len(shown) :]:
        notes.append(words.say("pictures_more", names=_joined(path.name for path in left)))
    return tuple(pictures), notes


def keep_drawn(
    drawn: Sequence[tuple[str, bytes]], setting: TypedSetting, shelf: Shelf
) -> list[Picture]:
    """Keeps the pictures that a program made, as they can be shown; what is not one is dropped.

    Args:
        drawn: names and bytes.
        setting: which bounds they must fit.
        shelf: where they are kept.

    Raises:
        StoreError: they cannot be written.
    """
    kept: list[Picture] = []
    for name, data in drawn:
        if (picture := shelf.store.add_made(data, name)) is None:
            continue
        if shelf.fitter is None or setting.pictures == "none":
            kept.append(picture)
            continue
        with contextlib.suppress(SuiteError):  # a picture that only its program could read
            kept += shelf.fitter.fit([picture], _fit_of(setting))
    return kept


def _fit_of(setting: TypedSetting, *, stitch: bool = False) -> Fit:
    types = frozenset(f"image/{name}" for name in setting.picture_types)
    return Fit(setting.picture_side, setting.picture_bytes, stitch, types)


def _joined(names: Iterator[str]) -> str:
    return ", ".join(names)


def _tables_of(files: Sequence[InputFile], setting: TypedSetting, limits: ContentLimits) -> str:
    rows = rows_needed(setting.content, limits.rows)
    sheets: list[SheetPreview] = []
    others: list[str] = []
    for file in files:
        name = file.path.name
        try:
            if file.kind is FileKind.TABLE:
                sheets.append(read_table(file.path, rows))
            elif file.kind is FileKind.WORKBOOK:
                found = read_preview(file.path, rows)
                sheets += [replace(each, name=f"{name}, sheet {each.name}") for each in found]
            elif file.kind is FileKind.TEXT:
                others.append(f"Text: {name}\n{_text_of(file.path, limits.total_chars)}")
        except WorkbookError as error:
            others.append(f"Table: {name}\n(cannot be shown: {error.message})")
    tables = render_content(sheets, setting.content, limits, heading="Table") if sheets else ""
    return "\n".join([tables, *others]).strip("\n")


def _text_of(path: Path, chars: int) -> str:
    data = read_regular(path, SuiteError, most_bytes=_MAX_TEXT_BYTES) or b""
    text = data.decode("utf-8", "replace")
    return text if len(text) <= chars else f"{text[:chars]}\n[the rest is not shown]"
