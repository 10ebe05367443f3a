"""Reads small parts as trees of elements, and attributes as numbers and truth values.

The file may be hostile: a number that is too long or malformed counts as missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from judge.errors import WorkbookError
from judge.workbook.package import Package
from judge.workbook.xml_parts import SHEET_NAMES, Names, scan_part


@dataclass(slots=True)
class Element:
    """An element of a small part: short name, attributes, children, text.

    Names are those of :mod:`judge.workbook.xml_parts`. The text is everything between the start of
    the element and its first child, or its end if it has no child; it is empty if the tree was read
    without text.
    """

    name: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    children: list[Element] = field(default_factory=list)
    text: str = ""

    def child(self, name: str) -> Element | None:
        """The first child with a name, or None."""
        return next((child for child in self.children if child.name == name), None)

    def all(self, name: str) -> list[Element]:
        """All children with a name."""
        return [child for child in self.children if child.name == name]

    def find(self, *names: str) -> Element | None:
        """The element at the end of a path of names, always the first child; or None."""
        here: Element | None = self
        for name in names:
            here = None if here is None else here.child(name)
        return here

    def value(self, name: str) -> str | None:
        """The attribute ``val`` of a child; None if the child or the attribute is missing."""
        child = self.child(name)
        return None if child is None else child.attributes.get("val")

    def text_of(self, *names: str) -> str | None:
        """The text of the element at the end of a path; None if there is no such element."""
        node = self.find(*names)
        return None if node is None else node.text

    def walk(self) -> Iterator[Element]:
        """The element and everything within it, in the order of the part."""
        waiting = [self]
        while waiting:
            here = waiting.pop()
            yield here
            waiting.extend(reversed(here.children))


def read_tree(
    package: Package,
    part: str,
    *,
    text: bool = False,
    max_elements: int | None = None,
    names: Names = SHEET_NAMES,
) -> Element:
    """A whole part as a tree; its elements count as cells towards the workbook's limits.

    Args:
        package: the workbook.
        part: name of the part.
        text: whether to keep the text of elements.
        max_elements: how many elements the part may have; None for the limit of the workbook.
        names: gives elements and attributes their short names.

    Raises:
        WorkbookError: the part is missing, broken or over a limit.
    """
    top = Element("")
    path = [top]
    count = 0

    def on_start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        package.budget.take_cells(1)
        if max_elements is not None and count > max_elements:
            raise WorkbookError(f"{part} has more than {max_elements:,} elements")
        element = Element(tag, attributes)
        path[-1].children.append(element)
        path.append(element)

    def on_text(piece: str) -> None:
        here = path[-1]
        if not here.children and here is not top:
            package.budget.take_chars(len(piece))
            here.text += piece

    scan_part(package, part, on_start, path.pop, on_text if text else None, names=names)
    if not top.children:
        raise WorkbookError(f"{part} is empty")
    return top.children[0]


class TreeListener:
    """Collects the elements around the rows of a worksheet as a tree.

    Args:
        package: the workbook; its limits apply.
        part: name of the worksheet's part.
        max_elements: how many elements there may be around the rows.

    Attributes:
        root: the element of the worksheet; its children are the elements around the rows.
    """

    def __init__(self, package: Package, part: str, max_elements: int) -> None:
        self.root = Element("worksheet")
        self._path = [self.root]
        self._budget = package.budget
        self._part = part
        self._left = max_elements

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Called when an element begins."""
        self._left -= 1
        self._budget.take_cells(1)
        if self._left < 0:
            raise WorkbookError(f"{self._part} has too many elements around its rows")
        element = Element(tag, attributes)
        self._path[-1].children.append(element)
        self._path.append(element)

    def end(self, tag: str, text: list[str]) -> None:  # noqa: ARG002
        """Called when an element ends, with the text since the last element began."""
        here = self._path.pop()
        if not here.children:
            here.text = "".join(text)
            self._budget.take_chars(len(here.text))


_NUMBER = re.compile(r"[+-]?[0-9]{1,30}(?:\.[0-9]{0,30})?(?:[eE][+-]?[0-9]{1,3})?")
MAX_ELEMENTS = 500_000
"""Largest number of elements of one part that are read; a chart of 100,000 points has 400,000."""


def number(text: str | None) -> float | None:
    """The value of an attribute as a number; None if it is not a number."""
    return float(text) if text is not None and _NUMBER.fullmatch(text.strip()) else None


def whole(text: str | None) -> int | None:
    """The value of an attribute as a whole number, which may be negative; None if it is not one."""
    if text is None or re.fullmatch(r"-?[0-9]{1,9}", text.strip()) is None:
        return None
    return int(text)


def identifier(attributes: Mapping[str, str]) -> str | None:
    """The id of the relationship that an element names."""
    return attributes.get("r:id")


def colour(element: Element | None) -> str | None:
    """The colour of a drawing element's plain fill: six hexadecimal digits, or a theme colour."""
    fill = None if element is None else element.child("solidFill")
    for child in [] if fill is None else fill.children:
        value = child.attributes.get("val")
        if value:
            return value.upper() if child.name == "srgbClr" else value
    return None
