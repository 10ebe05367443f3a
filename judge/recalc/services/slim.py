"""What no value depends on is left out of the workbook that LibreOffice opens.

Opening is most of what a workbook costs, and much of that is drawings, comments, rules for
conditional formatting, thousands of styles. Formulas do not see them, with exceptions that are
looked for first. It also keeps what a solution wrote away from the parsers of pictures and macros.

Standard library only: this text goes into the sandbox.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_UNSEEN_PARTS = re.compile(
    r"(?:xl/(?:drawings|charts|media|comments|threadedComments|persons|printerSettings|theme|ctrlProps"
    r"|activeX|embeddings|slicers|slicerCaches|timelines|timelineCaches|diagrams|webextensions|model"
    r"|queryTables|calcChain|vbaProject|customProperty|pivotTables|pivotCache)|docProps/|customXml/"
    r"|customUI/|_xmlsignatures/)"
)
_SEEN_LINKS = frozenset(
    b"officeDocument worksheet chartsheet dialogsheet xlMacrosheet xlIntlMacrosheet sharedStrings "
    b"styles externalLink table sheetMetadata".split()
)
"""Kinds of relationships that a value can come through; links of other workbooks stay as well."""

_LINK = re.compile(rb"""<(?:\w+:)?Relationship\s(?:[^<>"'/]++|/(?!>)|"[^"<]*+"|'[^'<]*+')*+/>""")
_KIND = re.compile(rb"""\bType\s*=\s*["'][^"']*/([^/"']*)["']""")

_KEPT_BEHIND_CELLS = (b"autoFilter", b"mergeCells", b"tableParts")
"""What formulas can see of what follows the cells: filters (hidden rows), merged cells, tables."""

_END_OF_CELLS = re.compile(rb"</(?:\w+:)?sheetData\s*>|<(?:\w+:)?sheetData\s*/>")
_END_OF_SHEET = re.compile(rb"</(?:\w+:)?worksheet\s*>\s*\Z")

_SEES_STYLES = (b"CELL(", b"cell(", b"Cell(", b"GETPIVOTDATA(", b"getpivotdata(")
"""Calls that see formats or pivot tables. A name that ends in one of them costs speed alone."""

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


def without_the_unseen(parts: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """The parts of a package that a value can depend on, and of those as much as it can."""
    if _AS_DISPLAYED.search(parts.get("xl/workbook.xml", b"")):
        return parts
    for name, content in parts.items():
        # A defined name can call functions as well as a cell can.
        holds_formulas = "sheets/" in name or name == "xl/workbook.xml"
        if holds_formulas and any(call in content for call in _SEES_STYLES):
            return parts
    less = ((name, less_of(name, content)) for name, content in parts.items())
    return {name: content for name, content in less if content is not None}


def less_of(name: str, content: bytes) -> bytes | None:
    """Less of one part; None where nothing of it is needed."""
    if _UNSEEN_PARTS.match(name):
        return None
    if name.endswith(".rels"):
        return content if "externalLinks/" in name else _LINK.sub(_link, content)
    if name.startswith("xl/worksheets/") and name.endswith(".xml"):
        return _sheet(content)
    if name == "xl/styles.xml":
        return _styles(content)
    return content


def _link(found: re.Match[bytes]) -> bytes:
    kind = _KIND.search(found[0])
    return found[0] if kind is None or kind[1] in _SEEN_LINKS else b""


def _sheet(content: bytes) -> bytes:
    """A worksheet up to its cells, and what formulas can see of the rest."""
    start = content.rfind(b"sheetData")
    cells = _END_OF_CELLS.search(content, max(start - 20, 0)) if start >= 0 else None
    end = _END_OF_SHEET.search(content, cells.end()) if cells else None
    if cells is None or end is None:
        return content
    rest = content[cells.end() : end.start()]
    kept = b"".join(_element(rest, name) for name in _KEPT_BEHIND_CELLS)
    return content[: cells.end()] + kept + content[end.start() :]


def _element(content: bytes, name: bytes) -> bytes:
    """The first element of a name, whole; empty where there is none.

    One search for its start and one for its end: time grows with the size of the part alone.
    """
    start = re.search(rb"<(\w+:)?%s\b[^<>]*>" % name, content)
    if start is None:
        return b""
    if start[0].endswith(b"/>"):
        return start[0]
    end = content.find(b"</%s%s>" % (start[1] or b"", name), start.end())
    return content[start.start() : content.index(b">", end) + 1] if end >= 0 else b""


def _styles(content: bytes) -> bytes:
    """As many cell formats as there were, each with its number format alone.

    LibreOffice rounds what it computes in a cell with the format of a date or a time. What
    conditional formats, filters and tables refer to stays as well.
    """
    start = _START_OF_STYLES.search(content)
    formats = _element(content, b"cellXfs")
    if start is None or not formats.startswith(b"<cellXfs"):
        return content
    numbers = [_NUMBER_FORMAT.search(found) for found in _FORMAT.findall(formats)]
    return _PLAIN_STYLES % (
        # Its name spaces stand there, and what is kept may use them.
        content[: start.end()],
        _element(content, b"numFmts"),
        b"".join(
            b'<xf numFmtId="%s" applyNumberFormat="1"/>' % (found[1] if found else b"0")
            for found in numbers
        ),
        _element(content, b"dxfs"),
    )
