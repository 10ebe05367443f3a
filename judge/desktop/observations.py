"""Observations for a chat model: the contract of observation forms, and their tables.

An observation form is a subclass of :class:`ObservationForm`, here or in another module, that is
listed in :data:`judge.desktop.choices.OBSERVATION_FORMS`. Forms show the accessibility tree as a
table with a line for each element. It lists the same elements as the published table: those that
are shown, can be used, have a name or text, and have a position. Unless the published table is
chosen, there are two differences: the table lists the tabs of sheets, and omits empty cells far
from all content. (For a sheet with little content, the published table has a thousand such cells.)
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from judge.console import clipped
from judge.desktop.contract import Element, Observation
from judge.desktop.driver.nodes import unused_cells

SHEET_TABS, BLANK_CELLS = "sheet-tabs", "blank-cells"
"""The names of the two corrections."""

_ENDINGS = (
    *("item", "button", "heading", "label", "scrollbar", "searchbox", "textbox", "link"),
    *("tabelement", "textfield", "textarea", "menu"),
)
_KINDS = frozenset(
    {"alert", "canvas", "check-box", "combo-box", "entry", "icon", "image", "paragraph"}
    | {"scroll-bar", "section", "slider", "static", "table-cell", "terminal", "text"}
)
_USABLE = frozenset({"enabled", "editable", "expandable", "checkable"})
_COLUMNS = "tag\tname\ttext\tposition (top-left x & y)\tsize (w & h)"
_MAX_CHARS = 1_000
_CUT = "[…]"


@dataclass(frozen=True, slots=True)
class TreeTable:
    """A table for a model.

    Attributes:
        text: the table.
        cut: whether lines are missing at the end.
    """

    text: str
    cut: bool


class ObservationForm(ABC):
    """The form in which a chat model sees a desktop in each turn.

    Whatever a form shows, the screenshot and the table of every turn are recorded.

    Attributes:
        name: its name in options and records.
        entry: the suffix of the names of its entries in ``prompts/desktop.yaml``.
        wording: wording that replaces these entries: ``observation`` describes the form in the
            first message, and ``seen`` comes with each observation, with the fields ``{table}``
            and ``{left}`` (the number of remaining turns).
        shows_screenshot: whether the model is shown the screenshot.
        shows_table: whether the model is shown the table.
        has_marks: whether elements are numbered on the screenshot, so that code can name them.
    """

    name: ClassVar[str]
    entry: ClassVar[str] = ""
    wording: ClassVar[Mapping[str, str]] = MappingProxyType({})
    shows_screenshot: ClassVar[bool] = True
    shows_table: ClassVar[bool] = True
    has_marks: ClassVar[bool] = False

    def table(
        self,
        observation: Observation,
        *,
        as_published: Collection[str] = (),
        max_tokens: int | None = None,
        tokens_of: Callable[[str], int] = len,
    ) -> TreeTable:
        """Makes the table of an observation: by default, of the elements needed to work with it.

        Args:
            observation: what the desktop shows.
            as_published: names of the corrections that are not applied.
            max_tokens: the table ends before the line that would exceed this; None for no limit.
            tokens_of: counts tokens.
        """
        return tree_table(
            observation.elements or (),
            as_published=as_published,
            max_tokens=max_tokens,
            tokens_of=tokens_of,
        )


def tree_table(
    elements: Sequence[Element],
    *,
    as_published: Collection[str] = (),
    max_tokens: int | None = None,
    tokens_of: Callable[[str], int] = len,
) -> TreeTable:
    """Makes a table of the elements of a tree that are needed to work, one on each line.

    Args:
        elements: the tree.
        as_published: names of the corrections that are not applied.
        max_tokens: the table ends before the line that would exceed this; None for no limit.
        tokens_of: counts tokens.
    """
    kept = kept_elements(elements, as_published)
    lines = (_line(elements[number]) for number in kept)
    return _table(_COLUMNS, lines, max_tokens, tokens_of)


def marks_table(
    elements: Sequence[Element],
    marks: Mapping[int, int],
    *,
    max_tokens: int | None = None,
    tokens_of: Callable[[str], int] = len,
) -> TreeTable:
    """Makes a table of the elements that are marked on a picture, with their numbers.

    Args:
        elements: the tree.
        marks: number of a mark -> number of its element.
        max_tokens: as for :func:`tree_table`.
        tokens_of: as for :func:`tree_table`.
    """
    lines = (f"{mark}\t{_line(elements[number])}" for mark, number in sorted(marks.items()))
    return _table(f"index\t{_COLUMNS}", lines, max_tokens, tokens_of)


def mark_places(
    elements: Sequence[Element], marks: Mapping[int, int]
) -> dict[int, tuple[int, int]]:
    """Maps the number of each mark to the centre of its element, in pixels."""
    return {
        mark: centre
        for mark, number in marks.items()
        if (centre := elements[number].centre) is not None
    }


def kept_elements(elements: Sequence[Element], as_published: Collection[str] = ()) -> list[int]:
    """Returns the numbers of the elements that a table lists, in order.

    Args:
        elements: the tree.
        as_published: names of the corrections that are not applied.
    """
    tabs = SHEET_TABS not in as_published
    kept = [number for number, element in enumerate(elements) if _is_kept(element, tabs=tabs)]
    if BLANK_CELLS in as_published:
        return kept
    unused = unused_cells(elements)
    return [number for number in kept if number not in unused]


def _is_kept(element: Element, *, tabs: bool) -> bool:
    role = element.role
    kind = (
        role.startswith("document")
        or role.endswith(_ENDINGS)
        or role in _KINDS
        or (tabs and role == "page-tab")
    )
    return (
        kind
        and {"showing", "visible"} <= element.states
        and not _USABLE.isdisjoint(element.states)
        and bool(element.name or element.text)
        and element.x is not None
        and element.x >= 0
        and element.y is not None
        and element.y >= 0
        and (element.width or 0) > 0
        and (element.height or 0) > 0
    )


def _line(element: Element) -> str:
    text = element.text or element.value
    columns = (
        element.role,
        _shown(element.name),
        _shown(text),
        f"({element.x}, {element.y})",
        f"({element.width}, {element.height})",
    )
    return "\t".join(columns)


def _shown(text: str) -> str:
    """Escapes text for use within a line."""
    shown = clipped(text, _MAX_CHARS)
    return shown.replace("\\", "\\\\").replace("\t", "\\t").replace("\r", "").replace("\n", "\\n")


def _table(
    head: str, lines: Iterable[str], max_tokens: int | None, tokens_of: Callable[[str], int]
) -> TreeTable:
    kept, spent = [head], tokens_of(head)
    for line in lines:
        spent += tokens_of(line)
        if max_tokens is not None and spent > max_tokens:
            return TreeTable("\n".join([*kept, _CUT]), cut=True)
        kept.append(line)
    return TreeTable("\n".join(kept), cut=False)


# -- the forms of the published suites ------------------------------------------------------------


class Screenshot(ObservationForm):
    """Shows a picture of the screen."""

    name = "screenshot"
    entry = "screenshot"
    shows_table = False


class Tree(ObservationForm):
    """Shows the accessibility tree as a table."""

    name = "tree"
    entry = "tree"
    shows_screenshot = False


class ScreenshotAndTree(ObservationForm):
    """Shows both a picture of the screen and the table."""

    name = "screenshot+tree"
    entry = "both"


class SetOfMark(ObservationForm):
    """Shows a screenshot on which elements are numbered, and the table of the numbers."""

    name = "som"
    entry = "som"
    has_marks = True

    def table(
        self,
        observation: Observation,
        *,
        as_published: Collection[str] = (),
        max_tokens: int | None = None,
        tokens_of: Callable[[str], int] = len,
    ) -> TreeTable:
        """Makes the table of the marked elements, with their numbers."""
        del as_published
        return marks_table(
            observation.elements or (),
            observation.marks or {},
            max_tokens=max_tokens,
            tokens_of=tokens_of,
        )
