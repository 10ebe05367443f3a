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
from judge.suites.desktop import ASKED_FILE, DESKTOP_FOLDER

MODE = "desktop"


@dataclass(frozen=True, slots=True)
class DesktopSetting(Setting):
    """The setting of the mode ``desktop``; ``rounds`` are turns.

    Attributes:
        observation: the form of observation, by its name.
        action_space: the language of its actions.
        history: earlier turns that a request shows.
        minutes: time limit of an episode; no turn begins after it.
        tree_tokens: estimated tokens at which the table of the tree is cut.
        reply_tokens: most tokens of a reply; None for no bound.
        printed_chars: characters of a printout, and of an error, that the model is shown.
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
    """How tasks are asked on a desktop.

    Attributes:
        setting: the mode, with the options applied.
        words: the wording of messages.
        options: the options of the desktop.
        left_out: tasks that no desktop can be opened for -> why.
    """

    setting: DesktopSetting
    words: Feedback
    options: DesktopOptions
    left_out: tuple[tuple[str, str], ...] = ()

    @property
    def identity(self) -> dict[str, object]:
        """Settings that must not change between two parts of a run."""
        wording = self.setting.form.wording
        return {
            "setting": _plain(self.setting),
            "options": _plain_values(options_record(self.options)),
            "words_sha256": self.words.digest,
            **({"observation_wording": dict(wording)} if wording else {}),
        }

    def say(self, occasion: str, **values: str) -> str:
        """The wording of an observation: its own, or that of ``prompts/desktop.yaml``."""
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
    """The setting of the mode for suites of a format.

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
    """Name of a setting in records: mode, observation and action space."""
    return f"{MODE}/{setting.observation}/{setting.action_space}"


def load_words() -> Feedback:
    """The judge's own words on a desktop.

    Raises:
        InferenceError: the file is broken.
    """
    return load_feedback(MODE)


MAX_FILE_BYTES = 64 * MIB
"""Bytes of the largest file that is put on a desktop."""


def desktop_task(question: TaskQuestion, case: CaseInput) -> DesktopTask:
    """The files of a desktop for a case: all its files in the home folder, with the workbook open.

    The desktop returns that workbook, or another file if the task asks for one. If the task is
    about a folder, the files are in it, and the desktop returns the folder.

    Args:
        question: the task.
        case: one of its cases.

    Raises:
        SuiteError: no desktop can be opened for it, or a file cannot be read.
    """
    if (problem := case.obstacle) is not None:
        raise SuiteError(f"task {question.id}, case {case.number}: {problem}")
    folder = question.details.get(DESKTOP_FOLDER)
    home = f"{HOME}/{PurePosixPath(folder).name}" if folder else HOME
    files: dict[str, bytes] = {}
    for file in case.files:
        data = read_regular(file.path, SuiteError, most_bytes=MAX_FILE_BYTES)
        if data is None:
            raise SuiteError(f"{file.path}: the file is missing")
        files[f"{home}/{file.path.name}"] = data
    opened = f"{home}/{case.opened}"
    if folder:
        return DesktopTask(files, opened, f"{home}/")
    asked = question.details.get(ASKED_FILE)
    return DesktopTask(files, opened, f"{HOME}/{PurePosixPath(asked).name}" if asked else opened)


def why_not_asked(question: TaskQuestion) -> str | None:
    """Why a task cannot be asked on a desktop; None if it can."""
    if question.answer is AnswerForm.TEXT and not question.signals:
        return "its answer is typed, which nobody can do on a desktop"
    problems = (case.obstacle for case in question.inputs)
    return next((problem for problem in problems if problem is not None), None)
