"""The forms of observation, by name: those of the published suites."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from judge.desktop.contract import Observation
from judge.desktop.observations import ObservationForm, TreeTable, marks_table


class Screenshot(ObservationForm):
    """A picture of the screen."""

    name = "screenshot"
    entry = "screenshot"
    shows_table = False


class Tree(ObservationForm):
    """The accessibility tree as a table."""

    name = "tree"
    entry = "tree"
    shows_screenshot = False


class ScreenshotAndTree(ObservationForm):
    """Both."""

    name = "screenshot+tree"
    entry = "both"


class SetOfMark(ObservationForm):
    """A screenshot on which elements are numbered, and the table of the numbers."""

    name = "som"
    entry = "som"
    has_marks = True

    def table(
        self,
        observation: Observation,
        *,
        as_published: Collection[str] = (),
        most_tokens: int | None = None,
        tokens_of: Callable[[str], int] = len,
    ) -> TreeTable:
        """The elements that are marked, by their numbers."""
        del as_published
        return marks_table(
            observation.elements or (),
            observation.marks or {},
            most_tokens=most_tokens,
            tokens_of=tokens_of,
        )


OBSERVATION_FORMS: Mapping[str, ObservationForm] = {
    form.name: form for form in (Screenshot(), Tree(), ScreenshotAndTree(), SetOfMark())
}
