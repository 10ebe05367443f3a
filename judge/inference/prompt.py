"""Prompts: templates with the benchmark's fields, filled for one task, and the files of a question.

The templates, and the messages between rounds, are files in ``inference/prompts/`` that people can
edit.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from judge.core.conversation import Picture
from judge.core.submission import AnswerForm
from judge.core.task import CaseInput, FileKind, InputFile, TaskQuestion
from judge.errors import InferenceError, SuiteError, UsageError, WorkbookError
from judge.files.documents import MIB, read_regular, read_text
from judge.files.yaml_documents import read_yaml
from judge.inference.chat import writable
from judge.inference.config import TypedSetting, inference_folder
from judge.inference.content import ContentLimits, render_content, rows_needed
from judge.inference.pictures import PictureFitter, PictureLimits, PictureStore
from judge.sandbox.layout import can_be_placed
from judge.workbook.preview import SheetPreview, read_preview, read_table

FIELDS = (
    "instruction",
    "spreadsheet_path",
    "spreadsheet_content",
    "instruction_type",
    "answer_position",
    "output_path",
)
"""The six fields of the benchmark's prompts."""

_FIELD = re.compile(r"\{(\w{1,40})\}")
_MAX_TEMPLATE_BYTES = MIB
_MAX_FIELDS = 100


@dataclass(frozen=True, slots=True)
class Template:
    """A prompt with fields in braces; other braces are left unchanged.

    Attributes:
        name: a name in ``inference/prompts/``, or the path of the user's file.
        text: its text.
    """

    name: str
    text: str

    @property
    def digest(self) -> str:
        """SHA-256 of the text, for ``run.json``."""
        return hashlib.sha256(self.text.encode("utf-8")).hexdigest()

    def wants(self, field: str) -> bool:
        """Whether the template has a field."""
        return f"{{{field}}}" in self.text

    def fill(self, values: Mapping[str, str]) -> str:
        """Fills the fields, in one pass: braces inside a value are left unchanged."""
        return _FIELD.sub(lambda match: values.get(match[1], match[0]), self.text)


def load_template(name: str) -> Template:
    """Reads one of the judge's own templates, by its name without ``.txt``."""
    return _read_template(name, inference_folder() / "prompts" / f"{name}.txt")


def load_user_template(path: Path) -> Template:
    """Reads the user's own template.

    Raises:
        UsageError: it cannot be read, or lacks a field that every prompt needs.
    """
    template = _read_template(str(path), path)
    missing = [field for field in ("instruction",) if not template.wants(field)]
    if missing:
        raise UsageError(
            f"{path}: the prompt has no {{{missing[0]}}}",
            hint=f"Fields that are filled: {', '.join(FIELDS)}, rounds (or max_turn_num), plan, "
            "documents.",
        )
    return template


def _read_template(name: str, path: Path) -> Template:
    text = read_text(path, UsageError, max_bytes=_MAX_TEMPLATE_BYTES)
    fields = len(_FIELD.findall(text))
    if fields > _MAX_FIELDS:
        # Every field may be filled with a whole preview or instruction.
        raise UsageError(f"{path}: the prompt has {fields} fields; at most {_MAX_FIELDS}")
    return Template(name, text)


@dataclass(frozen=True, slots=True)
class Feedback:
    """The wording of the messages between rounds, one for each occasion."""

    texts: Mapping[str, str]

    @property
    def digest(self) -> str:
        """SHA-256 of the wording for all occasions."""
        joined = "\0".join(f"{name}\0{text}" for name, text in sorted(self.texts.items()))
        return hashlib.sha256(joined.encode("utf-8")).hexdigest()

    def say(self, occasion: str, **values: str) -> str:
        """Returns the wording for an occasion, with its fields filled."""
        return Template(occasion, self.texts[occasion]).fill(values).strip()


_OBSERVATIONS = ("screenshot", "tree", "both", "som")
_OCCASIONS = {
    "feedback": frozenset(
        {"printed", "silent", "solved", "failed", "stopped", "no_code", "cut_off"}
        | {"state_fresh", "state_session", "stop_output", "stop_explicit"}
    ),
    "typed_feedback": frozenset(
        {"printed", "silent", "failed", "stopped", "no_answer", "cut_off", "next", "next_last"}
        | {"drawn", "drawn_not_shown", "answer_form", "no_files", "no_tables"}
        | {"pictures_each", "pictures_stitched", "pictures_none", "pictures_more"}
    ),
    "desktop": frozenset(
        {f"{part}_{form}" for part in ("observation", "seen") for form in _OBSERVATIONS}
        | {"actions_pyautogui", "actions_pyautogui_som", "actions_computer_13"}
        | {"access_gui", "access_any", "failed", "refused", "printed", "outcomes", "no_action"}
    ),
    "background": frozenset({"plan", "documents", "excerpt", "unseen", "unseen_saved"}),
}


def load_feedback(name: str = "feedback") -> Feedback:
    """Reads the judge's own wording of messages between rounds.

    Args:
        name: ``feedback``; ``typed_feedback`` if the answer is typed; ``background`` for additions
            to the question, and for conversations in which results are not shown; ``desktop`` for
            desktops.

    Raises:
        InferenceError: the file is broken.
    """
    path = inference_folder() / "prompts" / f"{name}.yaml"
    document = read_yaml(path, InferenceError)
    occasions = _OCCASIONS[name]
    if not isinstance(document, dict) or document.keys() != occasions:
        names = ", ".join(sorted(occasions))
        raise InferenceError(f"{path}: must have exactly the entries {names}")
    return Feedback({str(name): str(text) for name, text in document.items()})


@dataclass(frozen=True, slots=True)
class PromptFields:
    """The fields of a prompt other than the task and its workbook.

    Attributes:
        input_path: the path of the input, as the prompt names it.
        output_path: the path of the output, as the prompt names it.
        rounds: how many times the model may answer.
        content: the form in which sheets are shown.
        limits: limits on the content.
        state: a sentence about which state remains between rounds.
        stop: a sentence about the end of the conversation.
        background: the fields ``instruction``, ``plan`` and ``documents``.
    """

    input_path: str
    output_path: str
    rounds: int
    content: str
    limits: ContentLimits
    state: str = ""
    stop: str = ""
    background: Mapping[str, str] = field(default_factory=dict)


def build_prompt(
    template: Template,
    question: TaskQuestion,
    sheets: tuple[SheetPreview, ...],
    fields: PromptFields,
) -> str:
    """Fills a template for one task.

    Args:
        template: the template.
        question: the task, without its golds.
        sheets: previews of the input workbook.
        fields: all other fields.
    """
    content = ""
    if template.wants("spreadsheet_content"):
        content = render_content(sheets, fields.content, fields.limits)
    text = template.fill(
        {
            "instruction": question.instruction,
            "spreadsheet_path": _input_words(fields.input_path, question),
            "spreadsheet_content": content,
            "instruction_type": question.kind,
            "answer_position": question.details.get("answer_position", ""),
            "answer_sheet": _sheet_of(question),
            "output_path": _output_words(fields.output_path, question),
            "rounds": str(fields.rounds),
            "max_turn_num": str(fields.rounds),
            "state": fields.state,
            "stop": fields.stop,
            **fields.background,
        }
    )
    return writable(text)


_MAX_NAMED = 40
"""How many files of a task a prompt names; of the others, it gives only the number."""


def _input_words(path: str, question: TaskQuestion) -> str:
    """Returns the input path; if a task has several files, the names of the others follow."""
    files = question.inputs[0].files if question.inputs else ()
    if question.answer is not AnswerForm.FILES or len(files) == 1:
        return path
    if not files:
        return "(none)"
    folder = path.removesuffix(files[0].name)
    names = ", ".join(file.name for file in files[1 : _MAX_NAMED + 1])
    more = f" and {len(files) - 1 - _MAX_NAMED} more" if len(files) - 1 > _MAX_NAMED else ""
    return f"{path} (other files below {folder}: {names}{more})"


def _output_words(path: str, question: TaskQuestion) -> str:
    """Returns the output path; if it is a folder, with a note on its content."""
    if not path.endswith("/"):
        return path
    leaves = question.details.get("leaves")
    words = f"{path} (a folder: all files in it when the program has ended are the answer"
    return f"{words}: {leaves})" if leaves else f"{words})"


def _sheet_of(question: TaskQuestion) -> str:
    """Returns the answer sheet, to be added to the position, if the suite names it separately."""
    sheet = question.details.get("answer_sheet")
    if sheet and "!" not in question.details.get("answer_position", ""):
        return f" (sheet {sheet!r})"
    return ""


FOLDER = "/tmp/data"  # noqa: S108  inside the sandbox, where services may write
"""The folder inside the sandbox in which programs find the files of a question."""

_KINDS = {
    FileKind.WORKBOOK: "workbook",
    FileKind.TABLE: "table",
    FileKind.IMAGE: "picture",
    FileKind.TEXT: "text",
}
_MAX_TEXT_BYTES = 8 * MIB


@dataclass(frozen=True, slots=True)
class QuestionFiles:
    """The files of a question that asks for a typed answer, in the form shown to the model.

    Attributes:
        files: a list of the files, one on each line.
        tables: the content of tables and text files.
        pictures: the pictures that are shown.
        paths: path inside the sandbox -> file, for programs.
    """

    files: str
    tables: str
    pictures: tuple[Picture, ...]
    paths: Mapping[str, Path]


@dataclass(frozen=True, slots=True)
class PictureTools:
    """The store of the pictures of a run, and the service that adapts them to the limits.

    Attributes:
        store: the pictures of the run.
        fitter: shrinks and joins pictures; None if they are shown unchanged.
    """

    store: PictureStore
    fitter: PictureFitter | None = None


def question_files(
    case: CaseInput,
    setting: TypedSetting,
    limits: ContentLimits,
    words: Feedback,
    tools: PictureTools,
) -> QuestionFiles:
    """Reads the files of a question.

    Args:
        case: the question's files.
        setting: says which of the files are shown, and how.
        limits: limits on the tables.
        words: the judge's wording about files.
        tools: the store and the service for pictures.

    Raises:
        SuiteError: a file is missing, or a picture cannot be shown.
        SandboxError: the sandbox failed while shrinking pictures.
    """
    for file in case.absent:
        # Without its files, a question is not asked; but the name of a picture may be enough.
        if file.kind is not FileKind.IMAGE or setting.pictures != "none":
            raise SuiteError(f"{file.name} is missing: {file.advice}")
    paths = _paths_inside(case.files)
    placed = list(zip(paths, case.files, strict=True))
    lines = [
        f"- {path if setting.executes else file.path.name} ({_KINDS[file.kind]})"
        for path, file in placed
    ]
    pictures, notes = _pictures_of(case, setting, words, tools)
    return QuestionFiles(
        files="\n".join([*lines, *notes]) or words.say("no_files"),
        tables=_tables_of(case.files, setting, limits) or words.say("no_tables"),
        pictures=pictures,
        paths={path: file.path for path, file in placed},
    )


def _paths_inside(files: Sequence[InputFile]) -> list[str]:
    """Returns a path for each file; the file keeps its name if the name is usable and not taken."""
    paths: list[str] = []
    for number, file in enumerate(files, start=1):
        path = f"{FOLDER}/{file.path.name}"
        if path in paths or not can_be_placed(path):
            path = f"{FOLDER}/{number}{file.path.suffix}"
        paths.append(path)
    return paths


def _pictures_of(
    case: CaseInput, setting: TypedSetting, words: Feedback, tools: PictureTools
) -> tuple[tuple[Picture, ...], list[str]]:
    """Returns the pictures to show, and the lines about them."""
    images = [file.path for file in case.files if file.kind is FileKind.IMAGE]
    if setting.pictures == "none":
        missing = [Path(file.name) for file in case.absent if file.kind is FileKind.IMAGE]
        names = _joined(path.name for path in [*images, *missing])
        return (), [words.say("pictures_none", names=names)] if names else []
    if not images:
        return (), []
    # A picture that joins several pictures counts as one.
    stitches = setting.pictures == "stitched" and len(images) > 1
    shown = images if stitches else images[: setting.max_pictures]
    pictures = [tools.store.add_input(path) for path in shown]
    if tools.fitter is not None:
        fit = _fit_of(setting, stitch=stitches)
        pictures = tools.fitter.fit(pictures, fit)
    occasion = "pictures_stitched" if stitches else "pictures_each"
    notes = [words.say(occasion, names=_joined(path.name for path in shown))] if shown else []
    if hidden := images[len(shown) :]:
        notes.append(words.say("pictures_more", names=_joined(path.name for path in hidden)))
    return tuple(pictures), notes


def keep_drawn(
    drawn: Sequence[tuple[str, bytes]], setting: TypedSetting, tools: PictureTools
) -> list[Picture]:
    """Stores the pictures of a program in a form that can be shown; drops other files.

    Args:
        drawn: names and bytes of the pictures.
        setting: the limits that they must fit.
        tools: the store and the service for pictures.

    Raises:
        StoreError: the pictures cannot be written.
    """
    kept: list[Picture] = []
    for name, data in drawn:
        if (picture := tools.store.add_made(data, name)) is None:
            continue
        if tools.fitter is None or setting.pictures == "none":
            kept.append(picture)
            continue
        with contextlib.suppress(SuiteError):  # the picture cannot be decoded
            kept += tools.fitter.fit([picture], _fit_of(setting))
    return kept


def _fit_of(setting: TypedSetting, *, stitch: bool = False) -> PictureLimits:
    types = frozenset(f"image/{name}" for name in setting.picture_types)
    return PictureLimits(setting.picture_side, setting.picture_bytes, stitch, types)


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
                previews = read_preview(file.path, rows)
                sheets += [
                    replace(preview, name=f"{name}, sheet {preview.name}") for preview in previews
                ]
            elif file.kind is FileKind.TEXT:
                others.append(f"Text: {name}\n{_text_of(file.path, limits.total_chars)}")
        except WorkbookError as error:
            others.append(f"Table: {name}\n(cannot be shown: {error.message})")
    tables = render_content(sheets, setting.content, limits, heading="Table") if sheets else ""
    return "\n".join([tables, *others]).strip("\n")


def _text_of(path: Path, chars: int) -> str:
    data = read_regular(path, SuiteError, max_bytes=_MAX_TEXT_BYTES) or b""
    text = data.decode("utf-8", "replace")
    return text if len(text) <= chars else f"{text[:chars]}\n[the rest is not shown]"
