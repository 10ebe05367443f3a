"""Prompts: templates with the benchmark's fields, filled for one task."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from judge.core.task import TaskQuestion
from judge.errors import InferenceError, UsageError
from judge.files.documents import MIB, read_text
from judge.files.yaml_documents import read_yaml
from judge.inference.answers import writable
from judge.inference.config import inference_folder
from judge.inference.content import ContentLimits, render_content
from judge.workbook.preview import SheetPreview

FIELDS = (
    "instruction",
    "spreadsheet_path",
    "spreadsheet_content",
    "instruction_type",
    "answer_position",
    "output_path",
)
"""The benchmark's six fields."""

_FIELD = re.compile(r"\{(\w{1,40})\}")
_MAX_TEMPLATE_BYTES = MIB
_MAX_FIELDS = 100


@dataclass(frozen=True, slots=True)
class Template:
    """A prompt with fields in braces; braces around anything else are left as they are.

    Attributes:
        name: for people: a name in ``inference/prompts/`` or the user's file.
        text: the template.
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
        """The text with the fields filled, in one pass: a value's own braces stay."""
        return _FIELD.sub(lambda match: values.get(match[1], match[0]), self.text)


def load_template(name: str) -> Template:
    """A template of the judge's own, by its name without ``.txt``."""
    return _read_template(name, inference_folder() / "prompts" / f"{name}.txt")


def load_user_template(path: Path) -> Template:
    """The user's own template.

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
    text = read_text(path, UsageError, most_bytes=_MAX_TEMPLATE_BYTES)
    fields = len(_FIELD.findall(text))
    if fields > _MAX_FIELDS:
        # Each is filled with a whole preview or instruction.
        raise UsageError(f"{path}: the prompt has {fields} fields; at most {_MAX_FIELDS}")
    return Template(name, text)


@dataclass(frozen=True, slots=True)
class Feedback:
    """The words between rounds, by occasion."""

    texts: Mapping[str, str]

    @property
    def digest(self) -> str:
        """SHA-256 over the words of all occasions."""
        joined = "\0".join(f"{name}\0{text}" for name, text in sorted(self.texts.items()))
        return hashlib.sha256(joined.encode("utf-8")).hexdigest()

    def say(self, occasion: str, **values: str) -> str:
        """The words for an occasion, filled."""
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
    """The judge's own words between rounds.

    Args:
        name: ``feedback``, or ``typed_feedback`` where the answer is typed; ``background`` for
            what is added to the question, and where results are not shown; ``desktop`` for those
            on a desktop.

    Raises:
        InferenceError: the file is broken.
    """
    path = inference_folder() / "prompts" / f"{name}.yaml"
    document = read_yaml(path, InferenceError)
    wanted = _OCCASIONS[name]
    if not isinstance(document, dict) or document.keys() != wanted:
        raise InferenceError(f"{path}: must have exactly the entries {', '.join(sorted(wanted))}")
    return Feedback({str(name): str(text) for name, text in document.items()})


@dataclass(frozen=True, slots=True)
class PromptFields:
    """What a prompt is filled with in addition to the task and its workbook.

    Attributes:
        input_path: where the prompt says that the solution finds its input.
        output_path: where the prompt says that it leaves its output.
        rounds: how often the model may answer.
        content: form of the content.
        limits: how much content.
        state: a sentence on what stays between rounds.
        stop: a sentence on when the conversation ends.
        background: the fields that say more than the question: ``instruction``, ``plan`` and
            ``documents``.
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
        sheets: previews of the input workbook that the model is shown.
        fields: all other values that the template is filled with.
    """
    content = ""
    if template.wants("spreadsheet_content"):
        content = render_content(sheets, fields.content, fields.limits)
    text = template.fill(
        {
            "instruction": question.instruction,
            "spreadsheet_path": fields.input_path,
            "spreadsheet_content": content,
            "instruction_type": question.kind,
            "answer_position": question.details.get("answer_position", ""),
            "answer_sheet": _sheet_of(question),
            "output_path": fields.output_path,
            "rounds": str(fields.rounds),
            "max_turn_num": str(fields.rounds),
            "state": fields.state,
            "stop": fields.stop,
            **fields.background,
        }
    )
    return writable(text)


def _sheet_of(question: TaskQuestion) -> str:
    """The sheet in words, to be put after the position, if the suite names it separately."""
    sheet = question.details.get("answer_sheet")
    if sheet and "!" not in question.details.get("answer_position", ""):
        return f" (sheet {sheet!r})"
    return ""
