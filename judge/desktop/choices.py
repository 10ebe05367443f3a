"""The forms of observation and the languages of actions of a desktop; light to import."""

from __future__ import annotations

import enum
import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from judge.desktop.observations import ObservationForm


class ActionSpace(enum.StrEnum):
    """The language of actions."""

    PYAUTOGUI = "pyautogui"
    """Python code that uses PyAutoGUI."""
    COMPUTER_13 = "computer_13"
    """Thirteen kinds of action with their parameters, as JSON."""


OBSERVATION_FORMS = {
    "screenshot": "judge.desktop.observations:Screenshot",
    "tree": "judge.desktop.observations:Tree",
    "screenshot+tree": "judge.desktop.observations:ScreenshotAndTree",
    "som": "judge.desktop.observations:SetOfMark",
}
"""The forms of observation by name, those of the published suites: where their classes are."""


def observation_form(name: str) -> ObservationForm:
    """The form of a name of :data:`OBSERVATION_FORMS`."""
    module, _, attribute = OBSERVATION_FORMS[name].partition(":")
    form: ObservationForm = getattr(importlib.import_module(module), attribute)()
    return form
