"""The parts around the sheets: which sheets there are, and what the workbook says about itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from judge.errors import WorkbookError
from judge.workbook.package import Package
from judge.workbook.xml_parts import Relationship, feed, new_parser, relationships, scan_part

_TRUE = {"1", "true", "t"}
_CONTENT_TYPES = "[Content_Types].xml"
_APPLICATION = "docProps/app.xml"


@dataclass(frozen=True, slots=True)
class Tab:
    """A sheet as the workbook lists it.

    Attributes:
        name: its real name.
        part: name of its part.
        is_worksheet: False for chart sheets.
        state: ``visible``, ``hidden`` or ``veryHidden``.
    """

    name: str
    part: str
    is_worksheet: bool
    state: str


@dataclass(frozen=True, slots=True)
class WorkbookPart:
    """What the main part of a workbook says.

    Attributes:
        tabs: sheets in workbook order.
        date_1904: whether serial dates count from 1904.
        full_calc_on_load: whether the file requests a full calculation when it is opened.
        shared_strings: part of the shared strings, or None.
        styles: part of the style sheet, or None.
        theme: part of the theme, or None.
    """

    tabs: tuple[Tab, ...]
    date_1904: bool
    full_calc_on_load: bool
    shared_strings: str | None
    styles: str | None
    theme: str | None


def read_workbook_part(package: Package) -> WorkbookPart:
    """Finds and reads the main part of a workbook.

    Raises:
        WorkbookError: the package is not a workbook, or the part is broken or over a limit.
    """
    main = main_part(package)
    links = relationships(package, main)
    tabs: list[Tab] = []
    flags = {"date_1904": False, "full_calc_on_load": False}

    def on_start(tag: str, attributes: dict[str, str]) -> None:
        if tag == "sheet":
            tab = _tab(attributes, links, package)
            if tab is not None:
                tabs.append(tab)
        elif tag == "workbookPr":
            flags["date_1904"] = attributes.get("date1904") in _TRUE
        elif tag == "calcPr":
            flags["full_calc_on_load"] = attributes.get("fullCalcOnLoad") in _TRUE

    scan_part(package, main, on_start)
    if not any(tab.is_worksheet for tab in tabs):
        raise WorkbookError("the workbook has no worksheet")
    return WorkbookPart(
        tabs=tuple(tabs),
        date_1904=flags["date_1904"],
        full_calc_on_load=flags["full_calc_on_load"],
        shared_strings=_linked(links, "sharedStrings", package),
        styles=_linked(links, "styles", package),
        theme=_linked(links, "theme", package),
    )


def main_part(package: Package) -> str:
    """Name of the part that lists the sheets.

    Raises:
        WorkbookError: the package is not a workbook of this kind.
    """
    for link in relationships(package, "").values():
        if link.kind == "officeDocument" and link.target in package:
            return link.target
    found: list[str] = []

    def on_start(tag: str, attributes: dict[str, str]) -> None:
        if tag == "Override" and attributes.get("ContentType", "").endswith("main+xml"):
            found.append(attributes.get("PartName", "").lstrip("/"))

    if _CONTENT_TYPES in package:
        scan_part(package, _CONTENT_TYPES, on_start)
    for name in [*found, "xl/workbook.xml"]:
        if name in package:
            return name
    if "xl/workbook.bin" in package:
        raise WorkbookError(
            "the file is a binary workbook (.xlsb)", hint="Save it as an .xlsx workbook."
        )
    if "content.xml" in package:
        raise WorkbookError(
            "the file is an OpenDocument spreadsheet (.ods)", hint="Save it as an .xlsx workbook."
        )
    raise WorkbookError(
        "the file is a zip archive, but not a workbook: it has no workbook part",
        hint="Save it as an .xlsx workbook.",
    )


def _tab(
    attributes: Mapping[str, str], links: Mapping[str, Relationship], package: Package
) -> Tab | None:
    identifier = next((text for name, text in attributes.items() if name.endswith(":id")), None)
    link = links.get(identifier or "")
    name = attributes.get("name")
    # Listed sheets without a part are left out, as Excel and openpyxl do.
    if link is None or name is None or link.external or link.target not in package:
        return None
    return Tab(name, link.target, link.kind != "chartsheet", attributes.get("state", "visible"))


def _linked(links: Mapping[str, Relationship], kind: str, package: Package) -> str | None:
    for link in links.values():
        if link.kind == kind and not link.external and link.target in package:
            return link.target
    return None


def read_application(package: Package) -> tuple[str | None, str | None]:
    """Name and version of the program that wrote the file, as far as it says so.

    Raises:
        WorkbookError: the part that says it is broken or over a limit.
    """
    if _APPLICATION not in package:
        return None, None
    found: dict[str, str] = {}
    text: list[str] = []
    parser = new_parser()

    def on_start(_: str, __: dict[str, str]) -> None:
        text.clear()

    def on_end(tag: str) -> None:
        name = tag.rpartition(":")[2]
        if name in {"Application", "AppVersion"}:
            found.setdefault(name, "".join(text).strip()[:200])
        text.clear()

    parser.StartElementHandler = on_start
    parser.EndElementHandler = on_end
    parser.CharacterDataHandler = text.append
    try:
        for chunk in package.chunks(_APPLICATION):
            feed(parser, chunk, _APPLICATION)
    except WorkbookError:
        # A damaged property part does not name its program; the cells can still be read.
        return None, None
    return found.get("Application"), found.get("AppVersion")
