"""A toy observation form in one file, as the contract says: the titles of the open windows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import ClassVar

from judge.desktop.contract import Observation
from judge.desktop.observations import ObservationForm, TreeTable


class WindowList(ObservationForm):
    """Shows the titles of the windows."""

    name = "windows"
    shows_screenshot = False
    wording: ClassVar[Mapping[str, str]] = {
        "observation": "The titles of the open windows, one on each line.",
        "seen": "Open windows:\n{table}\nTurns left: {left}.",
    }

    def table(
        self,
        observation: Observation,
        *,
        as_published: Collection[str] = (),
        max_tokens: int | None = None,
        tokens_of: Callable[[str], int] = len,
    ) -> TreeTable:
        """Returns the titles, which are never cut."""
        return TreeTable("\n".join(observation.windows), cut=False)
