"""How a chat model works in a desktop: its setting, its words and the desktop's own options."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from judge.desktop.contract import ActionSpace, DesktopOptions, ObservationForm
from judge.desktop.recording import options_record
from judge.errors import InferenceError
from judge.files.yaml_documents import read_yaml
from judge.inference.config import Setting, check_one_of, inference_folder, setting_entry
from judge.inference.prompt import Feedback, load_feedback

MODE = "desktop"


@dataclass(frozen=True, slots=True)
class DesktopSetting(Setting):
    """What the mode ``desktop`` means; ``rounds`` are turns.

    Attributes:
        observation: what the model is shown.
        action_space: the language of its actions.
        history: earlier turns that a request shows.
        minutes: of an episode; no turn begins after them.
        tree_tokens: the table of the tree is cut at about so many.
        reply_tokens: most tokens of a reply; None for no bound.
        printed_chars: characters of a printout, and of an error, that the model is shown.
    """

    observation: ObservationForm
    action_space: ActionSpace
    history: int
    minutes: float
    tree_tokens: int
    reply_tokens: int | None
    printed_chars: int


@dataclass(frozen=True, slots=True)
class DesktopWay:
    """How tasks are asked on a desktop.

    Attributes:
        setting: the mode, with the options applied.
        words: of the messages.
        options: what the desktop is like.
        left_out: tasks that no desktop can be opened for -> why.
    """

    setting: DesktopSetting
    words: Feedback
    options: DesktopOptions
    left_out: tuple[tuple[str, str], ...] = ()

    @property
    def identity(self) -> dict[str, object]:
        """What may not change between two halves of a run."""
        return {
            "setting": _plain(self.setting),
            "options": _plain_values(options_record(self.options)),
            "words_sha256": self.words.digest,
        }


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
    check_one_of(path, name, "observation", entry["observation"], tuple(ObservationForm))
    check_one_of(path, name, "action_space", entry["action_space"], tuple(ActionSpace))
    entry["observation"] = ObservationForm(entry["observation"])
    entry["action_space"] = ActionSpace(entry["action_space"])
    return DesktopSetting(name=MODE, **entry)


def setting_name(setting: DesktopSetting) -> str:
    """What records call a setting: mode, observation and action space."""
    return f"{MODE}/{setting.observation}/{setting.action_space}"


def load_words() -> Feedback:
    """The judge's own words on a desktop.

    Raises:
        InferenceError: the file is broken.
    """
    return load_feedback(MODE)
