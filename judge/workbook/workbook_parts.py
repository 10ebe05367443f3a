"""Reads the parts around the sheets: the list of sheets, and the properties of the workbook."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import unquote

from judge.errors import WorkbookError
from judge.workbook.address import folded
from judge.workbook.number_formats import read_number_formats
from judge.workbook.package import Package
from judge.workbook.xml_parts import (
    PROPERTY_NAMES,
    TYPE_NAMES,
    PartParser,
    RecentParts,
    Relationship,
    local_name,
    relationships,
    scan_part,
    whole_number,
)

_TRUTH = {"1": True, "true": True, "0": False, "false": False}
_CONTENT_TYPES = "[Content_Types].xml"
_APPLICATION = "docProps/app.xml"
_CORE = "docProps/core.xml"
_MODIFIED = "{http://purl.org/dc/terms/}modified"
_SHEETML = "application/vnd.openxmlformats-officedocument.spreadsheetml."
_USUAL_MAIN = "xl/workbook.xml"
_MAIN_TYPES = frozenset(
    {
        f"{_SHEETML}sheet.main+xml",
        f"{_SHEETML}template.main+xml",
        "application/vnd.ms-excel.sheet.macroEnabled.main+xml",
        "application/vnd.ms-excel.template.macroEnabled.main+xml",
    }
)
"""Content types of workbooks. They are compared as written, as in LibreOffice and openpyxl. Neither
of these reads an add-in, whose sheets Excel does not show."""

_ADD_IN_TYPE = "application/vnd.ms-excel.addin.macroEnabled.main+xml"
_TYPES = {
    "worksheet": f"{_SHEETML}worksheet+xml",
    "chartsheet": f"{_SHEETML}chartsheet+xml",
    "dialogsheet": f"{_SHEETML}dialogsheet+xml",
    "xlMacrosheet": "application/vnd.ms-excel.macrosheet+xml",
    "xlIntlMacrosheet": "application/vnd.ms-excel.intlmacrosheet+xml",
    "sharedStrings": f"{_SHEETML}sharedStrings+xml",
    "styles": f"{_SHEETML}styles+xml",
}
_READ_TYPES = _MAIN_TYPES.union(_TYPES.values())
_SHEETS = frozenset({"worksheet", "chartsheet", "dialogsheet", "xlMacrosheet", "xlIntlMacrosheet"})
_READ_BY_NAME = frozenset(
    {"workbookPr", "bookViews", "sheets", "definedNames", "calcPr", "externalReferences"}
)
"""Elements of the main part that openpyxl reads in any namespace."""

_SHEET_ATTRIBUTES = frozenset({"name", "sheetId", "state", "r:id"})
_PROPERTIES = frozenset(
    {
        *("date1904", "dateCompatibility", "showObjects", "showBorderUnselectedTables"),
        *("filterPrivacy", "promptedSolutions", "showInkAnnotation", "backupFile"),
        *("saveExternalLinkValues", "updateLinks", "codeName", "hidePivotFieldList"),
        *("showPivotChartFilter", "allowRefreshQuery", "publishItems", "checkCompatibility"),
        *("autoCompressPictures", "refreshAllConnections", "defaultThemeVersion"),
    }
)
"""Attributes of ``workbookPr``: ECMA-376 part 1, 18.2.28. Excel and openpyxl refuse others."""

_NOT_IN_A_NAME = re.compile(r"[\[\]:*?/\\]|_x[0-9A-Fa-f]{4}_")
"""Characters that sheet names must not contain, and escapes, which programs read differently."""

_STATES = frozenset({"visible", "hidden", "veryHidden"})
_USUAL_STYLES = "xl/styles.xml"
_BINARY_ENDING = ".bin"


@dataclass(frozen=True, slots=True)
class Tab:
    """A sheet in the workbook's list of sheets.

    Attributes:
        name: its real name.
        part: name of its part.
        is_worksheet: False for chart sheets, dialog sheets and macro sheets.
        state: ``visible``, ``hidden`` or ``veryHidden``.
    """

    name: str
    part: str
    is_worksheet: bool
    state: str


@dataclass(frozen=True, slots=True)
class WorkbookPart:
    """Contents of the main part of a workbook.

    Attributes:
        tabs: sheets in workbook order.
        date_1904: whether serial dates count from 1904.
        full_calc_on_load: whether the file requests a full calculation when it is opened.
        shared_strings: part of the shared strings, or None.
        styles: part of the style sheet, or None.
        theme: part of the theme, or None.
        active_tab: index of the sheet that is shown when the workbook is opened.
    """

    tabs: tuple[Tab, ...]
    date_1904: bool
    full_calc_on_load: bool
    shared_strings: str | None
    styles: str | None
    theme: str | None
    active_tab: int = 0


def read_workbook_part(package: Package) -> WorkbookPart:
    """Finds and reads the main part of a workbook.

    Raises:
        WorkbookError: the package is not a workbook, the part is broken or over a limit, or two
            programs could find different sheets or strings in it.
    """
    types = _content_types(package)
    main = _main_part(package, types)
    links = relationships(package, main)
    read = _main_parts.read(
        package,
        main,
        partial(_read_main, package, main, links),
        lambda read: read.links == links and all(part in package for part in read.parts),
    )
    if read.lists != 1:
        raise WorkbookError(f"{main} has {read.lists} lists of sheets")
    for part, kind in read.parts.items():
        types.check(part, kind)
    for index in read.name_sheets:
        number = whole_number(index)
        if number is None or number >= len(read.tabs):
            # LibreOffice does not open such a workbook.
            raise WorkbookError(f"{main} defines a name for the sheet number {index[:20]!r}")
    if not any(tab.is_worksheet for tab in read.tabs):
        raise WorkbookError("the workbook has no worksheet")
    strings = _linked(links, "sharedStrings", package)
    if types.only_part("sharedStrings") != (None if strings is None else folded(strings)):
        raise WorkbookError(
            "the relationships and the content types of the workbook name different tables of "
            "shared strings"
        )
    styles = _styles(links, types, package)
    for name in (main, *read.parts, strings, styles):
        if name is not None and name.endswith(_BINARY_ENDING):
            # LibreOffice reads such a part as BIFF12, whatever it holds, and shows blank cells.
            raise WorkbookError(f"{name} has the name of a binary part, and is declared as XML")
    return WorkbookPart(
        tabs=tuple(read.tabs),
        date_1904=read.flags["date1904"],
        full_calc_on_load=read.flags["fullCalcOnLoad"],
        shared_strings=strings,
        styles=styles,
        theme=_linked(links, "theme", package),
        active_tab=read.active_tab or 0,
    )


def _styles(
    links: Mapping[str, Relationship], types: _ContentTypes, package: Package
) -> str | None:
    """The part of the style sheet, or None.

    Raises:
        WorkbookError: two programs could find different ones.
    """
    styles = _linked(links, "styles", package)
    if styles is not None:
        types.check(styles, "styles")
    if styles == _USUAL_STYLES or _USUAL_STYLES not in package:
        return styles
    # openpyxl reads the style sheet with this name; other programs read the one that the main part
    # points to. PyExcelerate writes a style sheet without any format, and points to none.
    formats = read_number_formats(package, _USUAL_STYLES)
    if styles is not None or formats.ids or formats.custom:
        raise WorkbookError(f"the workbook has {_USUAL_STYLES}, and does not point to it")
    return None


@dataclass(slots=True)
class _Main:
    """The main part as it is written: its sheets in order, and its properties.

    Attributes:
        links: its relationships.
        tabs: the sheets.
        parts: part of each sheet -> its kind.
        lists: how many lists of sheets there are.
        flags: its boolean attributes.
        name_sheets: the indices of the sheets for which names are defined.
        active_tab: the active sheet, by the first view that names one; None if no view does.
    """

    links: Mapping[str, Relationship]
    tabs: list[Tab] = field(default_factory=list)
    parts: dict[str, str] = field(default_factory=dict)
    lists: int = 0
    flags: dict[str, bool] = field(
        default_factory=lambda: {"date1904": False, "fullCalcOnLoad": False}
    )
    name_sheets: set[str] = field(default_factory=set)
    active_tab: int | None = None


_main_parts = RecentParts[_Main]()


def _read_main(
    package: Package, main: str, links: Mapping[str, Relationship], chunks: Iterable[bytes]
) -> _Main:
    reader = _MainReader(main, links, package)
    scan_part(package, main, reader.start, reader.end, chunks=chunks)
    return reader.read


class _MainReader:
    """Handlers for the main part.

    Attributes:
        read: what was read.
    """

    def __init__(self, main: str, links: Mapping[str, Relationship], package: Package) -> None:
        self.read = _Main(links)
        self._main = main
        self._package = package
        self._path: list[str] = []
        self._names: set[str] = set()
        self._seen: set[str] = set()

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Called when an element begins."""
        self._path.append(tag)
        if self._path[0] != "workbook":
            raise WorkbookError(f"{self._main} is not a workbook: it begins with {tag[:80]}")
        if len(self._path) == 2 and (local := local_name(tag)) != tag and local in _READ_BY_NAME:
            raise WorkbookError(f"{self._main} holds {tag[:80]}, which some programs read")
        if tag == "sheet":
            self._expect(["workbook", "sheets", "sheet"])
            self._add(attributes)
        elif tag == "sheets":
            self._expect(["workbook", "sheets"])
            self.read.lists += 1
        elif self._path[:2] == ["workbook", "sheets"]:
            raise WorkbookError(f"{self._main} has {tag[:80]} in its list of sheets")
        elif tag in {"definedName", "workbookView"}:
            self._note(attributes)
        elif tag in {"workbookPr", "calcPr"}:
            self._expect(["workbook", tag])
            if tag in self._seen:
                raise WorkbookError(f"{self._main} has {tag} twice")
            self._seen.add(tag)
            if tag == "workbookPr":
                self._check_attributes(tag, attributes, _PROPERTIES)
            for name in self.read.flags.keys() & attributes.keys():
                if attributes[name] not in _TRUTH:
                    raise WorkbookError(f"{self._main} holds {name}={attributes[name][:20]!r}")
                self.read.flags[name] = _TRUTH[attributes[name]]

    def end(self) -> None:
        """Called when an element ends."""
        self._path.pop()

    def _note(self, attributes: Mapping[str, str]) -> None:
        """Records which sheets have their own defined names, and which sheet is active."""
        if "localSheetId" in attributes:
            self.read.name_sheets.add(attributes["localSheetId"])
        if self.read.active_tab is None:
            self.read.active_tab = whole_number(attributes.get("activeTab"))

    def _expect(self, path: list[str]) -> None:
        if self._path != path:
            raise WorkbookError(
                f"{self._main} has {path[-1]} where it does not belong: "
                f"{'/'.join(self._path)[:200]}"
            )

    def _add(self, attributes: Mapping[str, str]) -> None:
        self._check_attributes("sheet", attributes, _SHEET_ATTRIBUTES)
        name, identifier = attributes.get("name"), attributes.get("r:id")
        link = self.read.links.get(identifier or "")
        if name is None or link is None or link.kind not in _SHEETS:
            raise WorkbookError(f"{self._main} lists the sheet {name!r}, which points to no sheet")
        if link.target not in self._package:
            raise WorkbookError(f"the workbook lacks the part of the sheet {name!r}: {link.target}")
        if not name or _NOT_IN_A_NAME.search(name) or not whole_number(attributes.get("sheetId")):
            raise WorkbookError(
                f"{self._main} lists a sheet {name[:40]!r} of the number "
                f"{attributes.get('sheetId', '')[:20]!r}, which programs read differently"
            )
        if folded(name) in self._names or link.target in self.read.parts:
            raise WorkbookError(f"{self._main} lists the sheet {name!r}, or its part, twice")
        state = attributes.get("state", "visible")
        if state not in _STATES:
            raise WorkbookError(f"{self._main} says that the sheet {name!r} is {state[:20]!r}")
        self._names.add(folded(name))
        self.read.parts[link.target] = link.kind
        self.read.tabs.append(Tab(name, link.target, link.kind == "worksheet", state))

    def _check_attributes(
        self, tag: str, attributes: Mapping[str, str], expected: frozenset[str]
    ) -> None:
        for name in attributes.keys() - expected:
            if not name.startswith("{") and ":" not in name:
                raise WorkbookError(f"{self._main} has the attribute {name[:40]!r} of {tag}")


@dataclass(frozen=True, slots=True)
class _ContentTypes:
    """Content types of the package's parts.

    Attributes:
        defaults: ending -> content type.
        overrides: case-folded name of a part -> content type. In the names of worksheets, escapes
            are replaced; openpyxl finds the other parts by the name as written.
        names: case-folded name of a part -> its name as written in the file.
    """

    defaults: dict[str, str] = field(default_factory=dict)
    overrides: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    def of(self, part: str) -> str | None:
        """The content type of a part; None if the package does not declare it."""
        return self.overrides.get(folded(part)) or self.defaults.get(
            part.rpartition(".")[2].lower()
        )

    def check(self, part: str, kind: str) -> None:
        """Makes sure that a part has the content type that its relationship requires.

        Raises:
            WorkbookError: the part is declared as something else.
        """
        expected, declared = _TYPES.get(kind), self.of(part)
        if expected is not None and declared != expected:
            raise WorkbookError(f"{_CONTENT_TYPES} says that {part} is {(declared or '?')[:100]!r}")

    def only_part(self, kind: str) -> str | None:
        """The case-folded name of the part that is declared to be of a kind; None if there is none.

        Raises:
            WorkbookError: there are two such parts.
        """
        parts = [part for part, declared in self.overrides.items() if declared == _TYPES[kind]]
        if len(parts) > 1 or _TYPES[kind] in self.defaults.values():
            raise WorkbookError(f"{_CONTENT_TYPES} declares more than one part as {kind}")
        return parts[0] if parts else None


def _content_types(package: Package) -> _ContentTypes:
    """Reads the content types that the package declares for its parts.

    Raises:
        WorkbookError: the declarations are broken, or declare a part twice.
    """
    if _CONTENT_TYPES not in package:
        return _ContentTypes()
    return _types.read(package, _CONTENT_TYPES, partial(_read_content_types, package))


_types = RecentParts[_ContentTypes]()


def _read_content_types(package: Package, chunks: Iterable[bytes]) -> _ContentTypes:
    types = _ContentTypes()
    path: list[str] = []

    def on_start(tag: str, attributes: dict[str, str]) -> None:
        depth = len(path)
        path.append(tag)
        if not depth and tag == "Types":
            return
        declared = attributes.get("ContentType", "")
        name = attributes.get("PartName", "").removeprefix("/")
        if tag == "Default":
            table, key = types.defaults, attributes.get("Extension", "").lower()
        else:
            table = types.overrides
            key = folded(unquote(name) if declared == _TYPES["worksheet"] else name)
            if tag == "Override" and name == attributes.get("PartName") and declared in _READ_TYPES:
                # openpyxl removes the first character, whatever it is.
                raise WorkbookError(
                    f"{_CONTENT_TYPES} names the part {name[:80]!r} without a slash"
                )
        if depth != 1 or path[0] != "Types" or tag not in {"Default", "Override"} or not key:
            raise WorkbookError(f"{_CONTENT_TYPES} holds {tag[:80]!r}, which is not allowed there")
        if key in table:
            raise WorkbookError(f"{_CONTENT_TYPES} defines {key[:80]} twice")
        table[key] = declared
        types.names[key] = name

    scan_part(package, _CONTENT_TYPES, on_start, path.pop, names=TYPE_NAMES, chunks=chunks)
    return types


def main_part(package: Package) -> str:
    """Name of the part that lists the sheets.

    Raises:
        WorkbookError: the package is not a workbook of this kind.
    """
    return _main_part(package, _content_types(package))


def _main_part(package: Package, types: _ContentTypes) -> str:
    targets = {
        link.target
        for link in relationships(package, "").values()
        if link.kind == "officeDocument" and link.target in package
    }
    if len(targets) > 1:
        raise WorkbookError("the package points to several main parts")
    declared = {types.names[key] for key, kind in types.overrides.items() if kind in _MAIN_TYPES}
    main = next(iter(targets), None)
    if main is not None and declared == {main}:
        return main
    # Packages written with .NET may declare the main part's type for all names ending in .xml.
    if main == _USUAL_MAIN and not declared and types.of(main) in _MAIN_TYPES:
        return main
    if "xl/workbook.bin" in package:
        raise WorkbookError(
            "the file is a binary workbook (.xlsb)", hint="Save it as an .xlsx workbook."
        )
    if _ADD_IN_TYPE in types.overrides.values():
        raise WorkbookError(
            "the file is an add-in (.xlam), and no program shows the sheets of an add-in",
            hint="Save it as an .xlsx workbook.",
        )
    if "content.xml" in package:
        raise WorkbookError(
            "the file is an OpenDocument spreadsheet (.ods)", hint="Save it as an .xlsx workbook."
        )
    if main is None and not declared:
        raise WorkbookError(
            "the file is a zip archive, but not a workbook: it has no workbook part",
            hint="Save it as an .xlsx workbook.",
        )
    raise WorkbookError(
        "the relationships and the content types of the package name different main parts",
        hint="Save it as an .xlsx workbook.",
    )


def _linked(links: Mapping[str, Relationship], kind: str, package: Package) -> str | None:
    """The part of the given kind that the main part points to; None if there is none.

    Raises:
        WorkbookError: it points to several such parts.
    """
    targets = {link.target for link in links.values() if link.kind == kind and not link.external}
    if len(targets) > 1:
        raise WorkbookError(f"the workbook points to {len(targets)} parts of the kind {kind}")
    target = next(iter(targets), None)
    if target is None or target in package:
        return target
    if kind != "theme" and folded(target) in map(folded, package.names):
        # Names of parts are not case-sensitive, except to openpyxl.
        raise WorkbookError(
            f"the workbook points to {target[:80]}, whose name has a different case"
        )
    return None


def read_application(package: Package) -> tuple[str | None, str | None]:
    """Name and version of the program that wrote the file, if the file states them.

    Raises:
        WorkbookError: the part with the properties is over a limit.
    """
    stated = _stated(package, _APPLICATION, frozenset({"Application", "AppVersion"}))
    return stated.get("Application"), stated.get("AppVersion")


def read_saved(package: Package) -> dt.date | None:
    """Day on which the file was saved last, if it states a day.

    Raises:
        WorkbookError: the part with the properties is over a limit.
    """
    text = _stated(package, _CORE, frozenset({_MODIFIED})).get(_MODIFIED, "")
    try:
        return dt.date.fromisoformat(text[:10])
    except ValueError:
        return None


def _stated(package: Package, part: str, names: frozenset[str]) -> dict[str, str]:
    """Strings in some elements of a part with properties; none if it is missing or damaged."""
    if part not in package:
        return {}
    stated: dict[str, str] = {}
    text: list[str] = []
    parser = PartParser(package, part)

    def on_start(_: str, __: dict[str, str]) -> None:
        text.clear()

    def on_end(tag: str) -> None:
        name = PROPERTY_NAMES[tag]
        if name in names:
            stated.setdefault(name, "".join(text).strip()[:200])
        text.clear()

    parser.expat.StartElementHandler = on_start
    parser.expat.EndElementHandler = on_end
    parser.expat.CharacterDataHandler = text.append
    try:
        for chunk in package.chunks(part):
            parser.feed(chunk)
    except WorkbookError:
        # A damaged property part does not name its program; the cells can still be read.
        return {}
    finally:
        parser.close()
    return stated
