"""Removes everything that no value depends on from the workbook that LibreOffice opens.

Opening takes most of the time for a workbook, and much of it goes to drawings, comments, rules for
conditional formatting, and thousands of styles. Formulas do not depend on these, except for some
calls, which are searched for first; if there are any, formats or pivot tables are kept. Macros,
pictures, embedded objects and the addresses of other files never reach LibreOffice, whatever a
formula calls.

Standard library only: this text goes into the sandbox.
"""

from __future__ import annotations

import html
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from xml.etree import ElementTree as ET

_UNSEEN_PARTS = re.compile(
    r"(?:xl/(?:drawings|charts|media|comments|threadedComments|persons|printerSettings|theme|ctrlProps"
    r"|activeX|embeddings|slicers|slicerCaches|timelines|timelineCaches|diagrams|webextensions|model"
    r"|queryTables|calcChain|vbaProject|customProperty)|docProps/|customXml/"
    r"|customUI/|_xmlsignatures/)",
    re.IGNORECASE,
)
_PIVOT_PARTS = re.compile(r"xl/(?:pivotTables|pivotCache)", re.IGNORECASE)

_READ_ENDINGS = (".xml", ".rels")
"""Endings of parts; a part with another ending cannot contribute to a value."""

_SEEN_LINKS = frozenset(
    (
        "officeDocument",
        "worksheet",
        "chartsheet",
        "dialogsheet",
        "xlMacrosheet",
        "xlIntlMacrosheet",
        "sharedStrings",
        "styles",
        "externalLink",
        "table",
        "sheetMetadata",
    )
)
"""Kinds of relationships that lead to parts on which values depend; links to other workbooks lead
to their cached values."""

_PIVOT_LINKS = frozenset(("pivotTable", "pivotCacheDefinition", "pivotCacheRecords"))
_OUTSIDE_LINKS = frozenset(
    ("externalLinkPath", "xlPathMissing", "xlStartup", "xlAlternateStartup", "xlLibrary")
)
_LINKS_LIMIT_BYTES = 16 * 1024 * 1024
_LINKS = "http://schemas.openxmlformats.org/package/2006/relationships"

_KEPT_BEHIND_CELLS = (b"autoFilter", b"mergeCells", b"tableParts")
"""Elements after the cells on which formulas can depend: filters (hidden rows), merges, tables."""

_END_OF_CELLS = re.compile(rb"</(?:\w+:)?sheetData\s*>|<(?:\w+:)?sheetData\s*/>")
_END_OF_SHEET = re.compile(rb"</(?:\w+:)?worksheet\s*>\s*\Z")

_SEES_FORMATS = (b"CELL(", b"CELL (")
_SEES_PIVOTS = (b"GETPIVOTDATA",)
"""Calls that depend on formats or pivot tables. A name that ends like one only costs time."""

_PROTECTION = re.compile(
    rb"<(?:\w+:)?(?:sheet|workbook)Protection\b[^<>]*"
    rb"(?:/>|>\s*</(?:\w+:)?(?:sheet|workbook)Protection\s*>)"
)
"""Removed because a protected sheet would not accept the formulas that we add in a free column."""

_AS_DISPLAYED = re.compile(rb"""\bfullPrecision\s*=\s*["'](?:0|false)["']""")

_FORMAT = re.compile(rb"<xf\b([^<>]*)")
_NUMBER_FORMAT = re.compile(rb"""\bnumFmtId\s*=\s*["'](\d+)["']""")
_PLAIN_STYLES = (
    b'%s%s<fonts count="1"><font><sz val="11"/><name val="Calibri"/></font></fonts>'
    b'<fills count="1"><fill><patternFill patternType="none"/></fill></fills>'
    b'<borders count="1"><border/></borders><cellStyleXfs count="1"><xf/></cellStyleXfs>'
    b"<cellXfs>%s</cellXfs>%s</styleSheet>"
)
_START_OF_STYLES = re.compile(rb"""<styleSheet\b(?:[^<>"']++|"[^"<]*+"|'[^'<]*+')*+>""")


@dataclass(frozen=True)
class Seen:
    """What the formulas of a workbook depend on in addition to cells.

    Attributes:
        formats: how cells look, which ``CELL`` returns.
        pivots: pivot tables.
    """

    formats: bool = False
    pivots: bool = False


def without_the_unseen(parts: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """The parts of a package that a value can depend on, reduced to what matters."""
    seen = _seen(parts)
    less = ((name, less_of(name, content, seen)) for name, content in parts.items())
    return {name: content for name, content in less if content is not None}


def _seen(parts: Mapping[str, bytes]) -> Seen:
    # A defined name can call functions as well as a cell can.
    formulas = [
        content.upper()
        for name, content in parts.items()
        if "sheets/" in name or name == "xl/workbook.xml"
    ]

    def calls(names: tuple[bytes, ...]) -> bool:
        return any(name in content for content in formulas for name in names)

    displayed = _AS_DISPLAYED.search(parts.get("xl/workbook.xml", b"")) is not None
    return Seen(formats=displayed or calls(_SEES_FORMATS), pivots=calls(_SEES_PIVOTS))


def less_of(name: str, content: bytes, seen: Seen = Seen()) -> bytes | None:
    """Reduces a part; None if nothing of it is needed."""
    if _UNSEEN_PARTS.match(name) or not name.lower().endswith(_READ_ENDINGS):
        return None
    if _PIVOT_PARTS.match(name) and not seen.pivots:
        return None
    if name.lower().endswith(".rels"):
        return _links(name, content, seen)
    if name.startswith("xl/externalLinks/"):
        # Not those that start other programs (DDE) or hold their objects (OLE).
        other = b"ddeLink" in content or b"oleLink" in content
        return content if b"externalBook" in content and not other else None
    if name.startswith("xl/worksheets/"):
        return _sheet(content)
    if name == "xl/workbook.xml":
        return _PROTECTION.sub(b"", content)
    if name == "xl/styles.xml" and not seen.formats:
        return _styles(content)
    return content


def _links(name: str, content: bytes, seen: Seen) -> bytes | None:
    """The relationships of a part on which values can depend; None if they are unreadable.

    They are read as LibreOffice reads them and written again: it reaches parts only through them.
    """
    outside = posixpath.dirname(name) == "xl/externalLinks/_rels"
    kinds = _OUTSIDE_LINKS if outside else _SEEN_LINKS | (_PIVOT_LINKS if seen.pivots else set())
    if len(content) > _LINKS_LIMIT_BYTES:
        return None
    try:
        links = ET.fromstring(content)  # noqa: S314 - inside the sandbox
    except (ET.ParseError, ValueError, LookupError):
        return None
    lines = []
    for link in links:
        kind = link.get("Type", "").rpartition("/")[2]
        said = {key: link.get(key, "") for key in ("Id", "Type", "Target", "TargetMode")}
        if kind not in kinds or (said["TargetMode"] == "External") != outside:
            continue
        if outside:
            # Each gets a different name, so that the cached values of one are not used for another.
            said["Target"] = f"file:///nowhere/{posixpath.basename(name)}.xlsx"
        pairs = "".join(f' {key}="{html.escape(value)}"' for key, value in said.items() if value)
        lines.append(f"<Relationship{pairs}/>")
    return f'<Relationships xmlns="{_LINKS}">{"".join(lines)}</Relationships>'.encode()


def _sheet(content: bytes) -> bytes:
    """A worksheet up to its cells, and the parts of the rest on which formulas can depend."""
    start = content.rfind(b"sheetData")
    cells = _END_OF_CELLS.search(content, max(start - 20, 0)) if start >= 0 else None
    end = _END_OF_SHEET.search(content, cells.end()) if cells else None
    if cells is None or end is None:
        return _PROTECTION.sub(b"", content)
    rest = content[cells.end() : end.start()]
    kept = b"".join(_element(rest, name) for name in _KEPT_BEHIND_CELLS)
    return content[: cells.end()] + kept + content[end.start() :]


def _element(content: bytes, name: bytes) -> bytes:
    """The first element with a name, complete; empty if there is none.

    One search for its start and one for its end: time grows only with the size of the part.
    """
    start = re.search(rb"<(\w+:)?%s\b[^<>]*>" % name, content)
    if start is None:
        return b""
    if start[0].endswith(b"/>"):
        return start[0]
    end = content.find(b"</%s%s>" % (start[1] or b"", name), start.end())
    return content[start.start() : content.index(b">", end) + 1] if end >= 0 else b""


def _styles(content: bytes) -> bytes:
    """Reduces each cell format to its number format; their number does not change.

    LibreOffice rounds the values of cells with date or time formats. Styles to which conditional
    formats, filters and tables refer stay as well.
    """
    start = _START_OF_STYLES.search(content)
    formats = _element(content, b"cellXfs")
    if start is None or not formats.startswith(b"<cellXfs"):
        return content
    numbers = [_NUMBER_FORMAT.search(found) for found in _FORMAT.findall(formats)]
    return _PLAIN_STYLES % (
        # The namespaces are declared there, and the elements that stay may use them.
        content[: start.end()],
        _element(content, b"numFmts"),
        b"".join(
            b'<xf numFmtId="%s" applyNumberFormat="1"/>' % (found[1] if found else b"0")
            for found in numbers
        ),
        _element(content, b"dxfs"),
    )
