"""Parts around the rows of a worksheet: merged ranges, hyperlinks, conditional formats."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from judge.errors import WorkbookError
from judge.workbook.address import Window, parse_area, parse_window
from judge.workbook.xml_parts import whole_number

_TERMS = {
    "aboveAverage",
    "bottom",
    "equalAverage",
    "operator",
    "percent",
    "rank",
    "stdDev",
    "text",
    "timePeriod",
}

_DRAWN = {"cfvo", "color", "dataBar", "iconSet"}
"""Elements of colour scales, data bars and icon sets that determine how these are drawn."""

_MAX_DRAWN = 16
"""How many elements are kept for a rule; an icon set of five has six, and none has more."""

_ON = {"1", "true"}


@dataclass(frozen=True, slots=True)
class Link:
    """A hyperlink.

    Attributes:
        window: the cells that carry it.
        relationship: id of the relationship that holds its address, or None.
        location: its target in the workbook, or None.
    """

    window: Window
    relationship: str | None
    location: str | None


@dataclass(frozen=True, slots=True)
class ConditionalRule:
    """A rule of a conditional format.

    Attributes:
        windows: the rectangles to which it applies; its formulas are written for the upper left
            corner of the rectangle around them all.
        kind: ``expression``, ``cellIs``, ``duplicateValues``, ``colorScale`` …
        terms: the rest of the condition: operator, text, rank …
        formulas: its formulas.
        style: index of its look, or None.
        priority: rules with lower numbers come first.
        stops: whether later rules are ignored in cells where this rule holds.
        drawn: name and attributes of the elements of a colour scale, a data bar or an icon set.
    """

    windows: tuple[Window, ...]
    kind: str
    terms: tuple[tuple[str, str], ...]
    formulas: tuple[str, ...]
    style: int | None
    priority: int
    stops: bool = False
    drawn: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()


@dataclass(slots=True)
class SheetTail:
    """Contents around the rows of a worksheet.

    Attributes:
        dimension: the rectangle that the worksheet says its cells fill; None if it does not say,
            or if only the elements after the rows were read.
        merges: rectangles whose cells are merged.
        links: hyperlinks.
        rules: rules of conditional formats.
    """

    dimension: Window | None = None
    merges: list[Window] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    rules: list[ConditionalRule] = field(default_factory=list)

    @property
    def size(self) -> int:
        """How many elements were read, for the limits."""
        return len(self.merges) + len(self.links) + len(self.rules)


class TailListener(Protocol):
    """Listener for the elements before and after the rows of a worksheet."""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Called when an element begins, with its short name."""
        ...

    def end(self, tag: str, text: list[str]) -> None:
        """Called when an element ends, with the text since the last element began."""
        ...


class TailCollector:
    """Handlers for the elements around the rows.

    Args:
        tail: the contents are added here.
        part: name of the part, for messages.
    """

    def __init__(self, tail: SheetTail, part: str) -> None:
        self._tail = tail
        self._part = part
        self._windows: tuple[Window, ...] = ()
        self._rule: dict[str, str] | None = None
        self._formulas: list[str] = []
        self._drawn: list[tuple[str, tuple[tuple[str, str], ...]]] = []

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Called when an element begins, with its short name."""
        if tag == "mergeCell":
            self._tail.merges.append(self._window(attributes.get("ref", "")))
        elif tag == "hyperlink":
            self._add_link(attributes)
        elif tag == "dimension":
            # It does not affect what is read, so the cells are correct even if it is wrong.
            self._tail.dimension = parse_window(attributes.get("ref", ""))
        elif tag == "conditionalFormatting":
            self._windows = tuple(map(self._area, attributes.get("sqref", "").split()))
        elif tag == "cfRule":
            self._rule = attributes
            self._formulas = []
            self._drawn = []
        elif self._rule is not None and tag in _DRAWN and len(self._drawn) < _MAX_DRAWN:
            self._drawn.append((tag, tuple(sorted(attributes.items()))))

    def end(self, tag: str, text: list[str]) -> None:
        """Called when an element ends, with its short name and the text before that."""
        if self._rule is None:
            return
        if tag == "formula":
            self._formulas.append("".join(text))
        elif tag == "cfRule":
            self._add_rule(self._rule)
            self._rule = None

    def _add_link(self, attributes: dict[str, str]) -> None:
        identifier = attributes.get("r:id")
        window = self._area(attributes.get("ref", ""))
        self._tail.links.append(Link(window, identifier, attributes.get("location")))

    def _add_rule(self, attributes: dict[str, str]) -> None:
        terms = tuple(sorted((name, attributes[name]) for name in _TERMS & attributes.keys()))
        self._tail.rules.append(
            ConditionalRule(
                windows=self._windows,
                kind=attributes.get("type", ""),
                terms=terms,
                formulas=tuple(self._formulas),
                style=whole_number(attributes.get("dxfId")),
                priority=whole_number(attributes.get("priority")) or 0,
                stops=attributes.get("stopIfTrue", "0").lower() in _ON,
                drawn=tuple(self._drawn),
            )
        )

    def _window(self, reference: str) -> Window:
        return self._checked(parse_window(reference), reference)

    def _area(self, reference: str) -> Window:
        """Reads a range that does not affect values; it may be abbreviated to columns (``A:A``)."""
        return self._checked(parse_area(reference), reference)

    def _checked(self, window: Window | None, reference: str) -> Window:
        if window is None:
            raise WorkbookError(f"{self._part} holds the invalid range {reference[:30]!r}")
        return window
