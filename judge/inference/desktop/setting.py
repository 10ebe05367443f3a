"""How a chat model works on a desktop: the setting, its wording, and the files of a case."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import PurePosixPath
from typing import Any

from judge.core.submission import AnswerForm
from judge.core.task import CaseInput, TaskQuestion
from judge.desktop.choices import OBSERVATION_FORMS, ActionSpace, observation_form
from judge.desktop.contract import HOME, DesktopOptions, DesktopTask
from judge.desktop.episodes import options_record
from judge.desktop.observations import ObservationForm
from judge.errors import InferenceError, SuiteError
from judge.files.documents import MIB, read_regular
from judge.files.yaml_documents import read_yaml
from judge.inference.config import Setting, check_one_of, inference_folder, setting_entry
from judge.inference.prompt import Feedback, Template, load_feedback
from judge.suites.desktop import DESKTOP_FOLDER, REQUESTED_FILE

MODE = "desktop"


@dataclass(frozen=True, slots=True)
class DesktopSetting(Setting):
    """The setting of the mode ``desktop``; ``rounds`` are turns.

    Attributes:
        observation: name of the form of observation.
        action_space: the language of the actions.
        history: how many earlier turns a request shows.
        minutes: time limit of an episode in minutes; no turn begins after it.
        tree_tokens: estimated tokens at which the table of the accessibility tree is cut.
        reply_tokens: maximum number of tokens of a reply; None for no limit.
        printed_chars: how many characters of an output, and of an error, the model is shown.
    """

    observation: str
    action_space: ActionSpace
    history: int
    minutes: float
    tree_tokens: int
    reply_tokens: int | None
    printed_chars: int

    @property
    def form(self) -> ObservationForm:
        """The form of observation."""
        return observation_form(self.observation)


@dataclass(frozen=True, slots=True)
class DesktopMode:
    """How a model works on tasks at a desktop.

    Attributes:
        setting: the setting of the mode, with the options applied.
        words: the wording of messages.
        options: the options of the desktop.
        left_out: pairs of a task for which no desktop can be opened, and the reason.
    """

    setting: DesktopSetting
    words: Feedback
    options: DesktopOptions
    left_out: tuple[tuple[str, str], ...] = ()

    @property
    def identity(self) -> dict[str, object]:
        """Settings that must not change when a run is continued."""
        wording = self.setting.form.wording
        return {
            "setting": _plain(self.setting),
            "options": _plain_values(options_record(self.options)),
            "words_sha256": self.words.digest,
            **({"observation_wording": dict(wording)} if wording else {}),
        }

    def say(self, occasion: str, **values: str) -> str:
        """Puts an observation into words: the form's own, or those of ``prompts/desktop.yaml``."""
        form = self.setting.form
        if (own := form.wording.get(occasion)) is not None:
            return Template(occasion, own).fill(values).strip()
        return self.words.say(f"{occasion}_{form.entry}", **values)


def _plain(setting: DesktopSetting) -> dict[str, Any]:
    values = asdict(setting)
    return {name: str(x) if isinstance(x, str) else x for name, x in values.items()}


def _plain_values(values: dict[str, object]) -> dict[str, object]:
    return {name: list(x) if isinstance(x, tuple) else x for name, x in values.items()}


def load_desktop_setting(suite_format: str) -> DesktopSetting:
    """Reads the setting of the mode for suites of a format.

    Args:
        suite_format: name of the format.

    Raises:
        InferenceError: the file is broken or lacks the setting.
    """
    path = inference_folder() / "settings.yaml"
    document = read_yaml(path, InferenceError)
    own = f"{MODE}/{suite_format}"
    name = own if isinstance(document, dict) and own in document else MODE
    entry = setting_entry(path, name, DesktopSetting)
    check_one_of(path, name, "observation", entry["observation"], tuple(OBSERVATION_FORMS))
    check_one_of(path, name, "action_space", entry["action_space"], tuple(ActionSpace))
    entry["action_space"] = ActionSpace(entry["action_space"])
    return DesktopSetting(name=MODE, **entry)


def setting_name(setting: DesktopSetting) -> str:
    """Returns the name of a setting in records: mode, observation and action space."""
    return f"{MODE}/{setting.observation}/{setting.action_space}"


def load_words() -> Feedback:
    """Reads the judge's own wording for desktops.

    Raises:
        InferenceError: the file is broken.
    """
    return load_feedback(MODE)


MAX_FILE_BYTES = 64 * MIB
"""Largest file that is put on a desktop, in bytes."""


def desktop_task(question: TaskQuestion, case: CaseInput) -> DesktopTask:
    """Returns the files of a desktop for a case: they are in the home folder, the workbook is open.

    The desktop returns this workbook, or another file if the task asks for another one. If the task
    is about a folder, the files are in this folder, and the desktop returns the folder.

    Args:
        question: the task.
        case: one of its cases.

    Raises:
        SuiteError: no desktop can be opened for the case, or a file cannot be read.
    """
    if (problem := case.obstacle) is not None:
        raise SuiteError(f"task {question.id}, case {case.number}: {problem}")
    folder = question.details.get(DESKTOP_FOLDER)
    home = f"{HOME}/{PurePosixPath(folder).name}" if folder else HOME
    files: dict[str, bytes] = {}
    for file in case.files:
        data = read_regular(file.path, SuiteError, max_bytes=MAX_FILE_BYTES)
        if data is None:
            raise SuiteError(f"{file.path}: the file is missing")
        files[f"{home}/{file.path.name}"] = data
    opened = f"{home}/{case.opened}"
    if folder:
        return DesktopTask(files, opened, f"{home}/")
    requested = question.details.get(REQUESTED_FILE)
    return DesktopTask(
        files, opened, f"{HOME}/{PurePosixPath(requested).name}" if requested else opened
    )


def why_not_asked(question: TaskQuestion) -> str | None:
    """Returns why a model cannot work on a task at a desktop; None if it can."""
    if question.answer is AnswerForm.TEXT and not question.signals:
        return "its answer is typed, which is not possible on a desktop"
    problems = (case.obstacle for case in question.inputs)
    return next((problem for problem in problems if problem is not None), None)
