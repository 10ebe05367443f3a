"""The observation forms and action languages of a desktop; importing this module is fast."""

from __future__ import annotations

import enum
from pkgutil import resolve_name
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from judge.desktop.observations import ObservationForm


class ActionSpace(enum.StrEnum):
    """The language in which actions are written."""

    PYAUTOGUI = "pyautogui"
    """Python code that uses PyAutoGUI."""
    COMPUTER_13 = "computer_13"
    """Thirteen kinds of action with parameters, as JSON."""


OBSERVATION_FORMS = {
    "screenshot": "judge.desktop.observations:Screenshot",
    "tree": "judge.desktop.observations:Tree",
    "screenshot+tree": "judge.desktop.observations:ScreenshotAndTree",
    "som": "judge.desktop.observations:SetOfMark",
}
"""The observation forms of the published suites: name -> location of the class."""


def observation_form(name: str) -> ObservationForm:
    """Returns the observation form with a name from :data:`OBSERVATION_FORMS`."""
    form: ObservationForm = resolve_name(OBSERVATION_FORMS[name])()
    return form
