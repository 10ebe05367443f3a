"""What a workbook holds besides the values of its cells: rules, drawings, tables, names, sheets.

Features are known by their content and not by their place: rows that are inserted above a list, or
a sheet that gets another name, leave the same features with the same measure.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from judge.workbook.address import folded
from judge.workbook.package import Package
from judge.workbook.workbook_parts import Tab, main_part
from judge.workbook.xml_parts import relationships, scan_part

_SHOWN = 80


class FeatureKind(enum.StrEnum):
    """What a feature is; the values are those of records and reports."""

    SHEET = "sheet"
    HIDDEN_SHEET = "hidden_sheet"
    NAME = "name"
    TABLE = "table"
    PIVOT = "pivot_table"
    CHART = "chart"
    CHART_PART = "chart_part"
    """Data series, titles, legends, trend lines of charts."""
    PICTURE = "picture"
    SHAPE = "shape"
    """Text boxes, lines, buttons and other drawn objects."""
    COMMENT = "comment"
    VALIDATION = "data_validation"
    FORMAT = "conditional_format"
    SPARKLINE = "sparkline"
    RICH_TEXT = "rich_text"
    """Cells of which only a part is bold, coloured or in another font."""
    MERGE = "merged_cells"


@dataclass(slots=True)
class Held:
    """How much of one feature a workbook holds.

    Attributes:
        label: what it is, for people.
        measure: how much: cells of rules, or how many of anything else.
        sheet: the sheet of the first one; empty if it belongs to the workbook.
        place: the cells of the first one; empty if it has none.
    """

    label: str
    measure: int
    sheet: str = ""
    place: str = ""


@dataclass(slots=True)
class Features:
    """Everything found in a workbook.

    Attributes:
        held: (kind, content) -> how much of it there is.
    """

    held: dict[tuple[FeatureKind, str], Held] = field(default_factory=dict)

    def add(
        self,
        kind: FeatureKind,
        content: str,
        label: str,
        *,
        measure: int = 1,
        sheet: str = "",
        place: str = "",
    ) -> None:
        """Adds one feature, or more of one that is known already."""
        known = self.held.get((kind, content))
        if known is None:
            self.held[kind, content] = Held(shortened(label), measure, sheet, place)
        else:
            known.measure += measure

    def measure(self, kind: FeatureKind, content: str) -> int:
        """How much of a feature there is; 0 without any."""
        known = self.held.get((kind, content))
        return 0 if known is None else known.measure

    def __iter__(self) -> Iterator[tuple[tuple[FeatureKind, str], Held]]:
        return iter(self.held.items())


def shortened(text: str) -> str:
    """Text on one line, short enough to be shown."""
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"


def read_features(package: Package, tabs: tuple[Tab, ...], strings: str | None) -> Features:
    """Reads everything that a workbook holds besides the values of its cells.

    Args:
        package: the workbook.
        tabs: its sheets.
        strings: name of the part of its shared strings, or None.

    Raises:
        WorkbookError: a part is missing, broken or over a limit.
    """
    # They read parts that seldom matter to a comparison.
    from judge.workbook.features.drawn import read_drawing  # noqa: PLC0415
    from judge.workbook.features.rich import read_rich_text  # noqa: PLC0415
    from judge.workbook.features.sheet_features import read_sheet_features  # noqa: PLC0415

    found = Features()
    _read_names(package, found)
    if strings is not None:
        read_rich_text(package, strings, "", found)
    for tab in tabs:
        package.budget.take_cells(1)
        found.add(FeatureKind.SHEET, folded(tab.name), f"sheet {tab.name!r}", sheet=tab.name)
        if tab.state != "visible":
            label = f"sheet {tab.name!r} hidden"
            found.add(FeatureKind.HIDDEN_SHEET, folded(tab.name), label, sheet=tab.name)
        links = relationships(package, tab.part)
        if tab.is_worksheet:
            read_sheet_features(package, tab, found)
            read_rich_text(package, tab.part, tab.name, found)
        for link in links.values():
            if link.external or link.target not in package:
                continue
            package.budget.take_cells(1)
            if link.kind == "drawing":
                read_drawing(package, link.target, tab.name, found)
            elif link.kind in _LINKED:
                _LINKED[link.kind](package, link.target, tab.name, found)
    return found


# -- parts that a sheet points to ------------------------------------------------------------------


def _read_table(package: Package, part: str, sheet: str, found: Features) -> None:
    root = _root(package, part)
    name = root.get("displayName") or root.get("name") or ""
    found.add(
        FeatureKind.TABLE,
        name.casefold(),
        f"table {name!r}",
        sheet=sheet,
        place=shortened(root.get("ref", "")),
    )


def _read_pivot(package: Package, part: str, sheet: str, found: Features) -> None:
    name = _root(package, part).get("name") or ""
    found.add(FeatureKind.PIVOT, name.casefold(), f"pivot table {name!r}", sheet=sheet)


def _root(package: Package, part: str) -> Mapping[str, str]:
    """Attributes of the root element of a part."""
    root: list[dict[str, str]] = []

    def on_start(_: str, attributes: dict[str, str]) -> None:
        if not root:
            root.append(attributes)

    scan_part(package, part, on_start)
    return root[0] if root else {}


def _read_comments(package: Package, part: str, sheet: str, found: Features) -> None:
    comments: list[tuple[str, list[str]]] = []

    def on_start(tag: str, attributes: dict[str, str]) -> None:
        if tag in {"comment", "tc:threadedComment"}:
            package.budget.take_cells(1)
            comments.append((attributes.get("ref", ""), []))

    def on_text(text: str) -> None:
        if comments:
            package.budget.take_chars(len(text))
            comments[-1][1].append(text)

    scan_part(package, part, on_start, text=on_text)
    for place, pieces in comments:
        text = " ".join("".join(pieces).split())
        label = f"comment {shortened(text)!r}"
        found.add(FeatureKind.COMMENT, text, label, sheet=sheet, place=place[:20])


_LINKED = {
    "table": _read_table,
    "pivotTable": _read_pivot,
    "comments": _read_comments,
    "threadedComment": _read_comments,
}


# -- names -----------------------------------------------------------------------------------------

_PRINTING = {"_xlnm.print_area": "print area", "_xlnm.print_titles": "print titles"}


def _read_names(package: Package, found: Features) -> None:
    """Defined names that a user sees and that refer to something."""
    names: list[tuple[str, list[str]]] = []
    inside = False

    def on_start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal inside
        inside = tag == "definedName" and attributes.get("hidden", "0") in {"0", "false"}
        if inside:
            package.budget.take_cells(1)
            names.append((attributes.get("name", ""), []))

    def on_text(text: str) -> None:
        if inside:
            package.budget.take_chars(len(text))
            names[-1][1].append(text)

    scan_part(package, main_part(package), on_start, text=on_text)
    for name, pieces in names:
        content = name.casefold()
        if "#REF!" in "".join(pieces) or (content.startswith("_xl") and content not in _PRINTING):
            continue
        label = _PRINTING.get(content, f"name {name!r}")
        found.add(FeatureKind.NAME, content, label)
