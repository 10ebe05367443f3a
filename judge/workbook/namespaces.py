"""Names of the XML elements and attributes of a workbook, by namespace and never by prefix.

An element is what its namespace and its local name say together: ``<row>`` of a foreign namespace
is not a row, whatever its prefix, and ``<x:row>`` is one if ``x`` stands for the main namespace.
The readers see short names: those of the part's own namespaces without a prefix, those of other
known namespaces with their usual prefix (``r:id``, ``x14:cfRule``), and all others as
``{uri}name``, for which no reader asks.

Sources: ECMA-376 part 1 (transitional and strict namespaces, annexes A and L of part 4), part 3
(markup compatibility), [MS-XLSX] 2.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from judge.errors import WorkbookError

_OFFICE = "http://schemas.openxmlformats.org"
_STRICT = "http://purl.oclc.org/ooxml"
_MICROSOFT = "http://schemas.microsoft.com/office"

MAIN = f"{_OFFICE}/spreadsheetml/2006/main"
STRICT_MAIN = f"{_STRICT}/spreadsheetml/main"
COMPATIBILITY = f"{_OFFICE}/markup-compatibility/2006"
LINKS = f"{_OFFICE}/package/2006/relationships"
TYPES = f"{_OFFICE}/package/2006/content-types"
_XML = "http://www.w3.org/XML/1998/namespace"

SEPARATOR = " "
"""What parsers put between a namespace and a local name."""

_PREFIXES: Mapping[str, str] = {
    MAIN: "x",
    STRICT_MAIN: "x",
    f"{_OFFICE}/officeDocument/2006/relationships": "r",
    f"{_STRICT}/officeDocument/relationships": "r",
    f"{_OFFICE}/drawingml/2006/main": "a",
    f"{_STRICT}/drawingml/main": "a",
    f"{_OFFICE}/drawingml/2006/chart": "c",
    f"{_STRICT}/drawingml/chart": "c",
    f"{_OFFICE}/drawingml/2006/spreadsheetDrawing": "xdr",
    f"{_STRICT}/drawingml/spreadsheetDrawing": "xdr",
    f"{_OFFICE}/officeDocument/2006/extended-properties": "ep",
    f"{_STRICT}/officeDocument/extendedProperties": "ep",
    COMPATIBILITY: "mc",
    LINKS: "rel",
    TYPES: "ct",
    _XML: "xml",
    f"{_MICROSOFT}/excel/2006/main": "xm",
    f"{_MICROSOFT}/spreadsheetml/2009/9/main": "x14",
    f"{_MICROSOFT}/spreadsheetml/2009/9/ac": "x14ac",
    f"{_MICROSOFT}/spreadsheetml/2010/11/main": "x15",
    f"{_MICROSOFT}/spreadsheetml/2010/11/ac": "x15ac",
    f"{_MICROSOFT}/spreadsheetml/2014/11/main": "x16",
    f"{_MICROSOFT}/spreadsheetml/2014/revision": "xr",
    f"{_MICROSOFT}/spreadsheetml/2015/revision2": "xr2",
    f"{_MICROSOFT}/spreadsheetml/2016/revision3": "xr3",
    f"{_MICROSOFT}/spreadsheetml/2016/revision6": "xr6",
    f"{_MICROSOFT}/spreadsheetml/2016/revision10": "xr10",
    f"{_MICROSOFT}/spreadsheetml/2017/revision16": "xr16",
    f"{_MICROSOFT}/spreadsheetml/2018/threadedcomments": "tc",
    f"{_MICROSOFT}/drawing/2014/chartex": "cx",
    f"{_MICROSOFT}/drawing/2010/main": "a14",
    f"{_MICROSOFT}/drawing/2014/chart": "c16",
    f"{_MICROSOFT}/drawing/2012/chart": "c15",
}

_DRAWING_NAMES = frozenset(
    {
        *("blip", "bodyPr", "br", "clrScheme", "endParaRPr", "fld", "gradFill", "graphic"),
        *("graphicData", "hslClr", "latin", "ln", "lstStyle", "noFill", "p", "pattFill", "pPr"),
        *("prstClr", "prstDash", "prstGeom", "r", "rPr", "schemeClr", "scrgbClr", "solidFill"),
        *("srgbClr", "sysClr", "t", "tailEnd", "headEnd", "tint", "xfrm"),
    }
)
"""Elements of DrawingML within drawings and charts, which have no elements of these names."""


class Names(dict[str, str]):
    """The short name of everything that a parser names, made when it is first met.

    Args:
        own: prefixes whose elements and attributes have no prefix in the short name.
    """

    def __init__(self, own: Iterable[str]) -> None:
        super().__init__()
        self._own = frozenset(own)

    def __missing__(self, expanded: str) -> str:
        uri, _, local = expanded.rpartition(SEPARATOR)
        prefix = _PREFIXES.get(uri)
        if prefix is None or not self._is_own(prefix, local):
            short = f"{{{uri}}}{local}" if prefix is None else f"{prefix}:{local}"
        else:
            short = local
        if len(self) < _MAX_NAMES:
            self[expanded] = short
        return short

    def _is_own(self, prefix: str, local: str) -> bool:
        if prefix not in self._own:
            return False
        # Two namespaces of one part: each of them has the names that are its own.
        return len(self._own) == 1 or (prefix == "a") is (local in _DRAWING_NAMES)

    def attributes(self, given: dict[str, str]) -> dict[str, str]:
        """Attributes by their short names: those without a namespace stay as they are.

        Raises:
            WorkbookError: two of them have one short name, as the ids of the transitional and of
                the strict namespace would.
        """
        if not any(SEPARATOR in name for name in given):
            return given
        made = {(_attribute(key) if SEPARATOR in key else key): text for key, text in given.items()}
        if len(made) < len(given):
            raise WorkbookError(
                "an element of the workbook has one attribute in two namespaces, of which programs "
                f"read different ones: {', '.join(sorted(made))[:100]}"
            )
        return made


_MAX_NAMES = 10_000


def _attribute(expanded: str) -> str:
    uri, _, local = expanded.rpartition(SEPARATOR)
    prefix = _PREFIXES.get(uri)
    return f"{{{uri}}}{local}" if prefix is None else f"{prefix}:{local}"


SHEET_NAMES = Names({"x"})
"""Worksheets, the main part, styles, strings, tables, pivot tables, comments."""

DRAWING_NAMES = Names({"xdr", "c", "cx", "a", "mc"})
"""Drawings: places of charts, pictures and shapes."""

CHART_NAMES = Names({"c", "cx", "a", "mc"})
"""Charts, those of the newer kinds included."""

THEME_NAMES = Names({"a"})
THREAD_NAMES = Names({"tc"})
PROPERTY_NAMES = Names({"ep"})
LINK_NAMES = Names({"rel"})
TYPE_NAMES = Names({"ct"})


def local_name(short: str) -> str:
    """The local name of an element by its short name."""
    return short.rpartition("}")[2].rpartition(":")[2]


def is_known(uri: str) -> bool:
    """Whether a namespace is one whose elements are read."""
    return uri in _PREFIXES


def may_be_ignored(uri: str) -> bool:
    """Whether a part can be read without the elements of a namespace."""
    return _PREFIXES.get(uri) not in {"x", "r", "a", "c", "xdr", "mc"}


# -- relationships --------------------------------------------------------------------------------

_KINDS = (
    f"{_OFFICE}/officeDocument/2006/relationships/",
    f"{_STRICT}/officeDocument/relationships/",
)
_OTHER_KINDS: Mapping[str, str] = {
    f"{_MICROSOFT}/2006/relationships/xlMacrosheet": "xlMacrosheet",
    f"{_MICROSOFT}/2006/relationships/xlIntlMacrosheet": "xlIntlMacrosheet",
    f"{_MICROSOFT}/2006/relationships/vbaProject": "vbaProject",
    f"{_MICROSOFT}/2014/relationships/chartEx": "chartEx",
    f"{_MICROSOFT}/2017/10/relationships/threadedComment": "threadedComment",
    f"{_MICROSOFT}/2017/10/relationships/person": "person",
    f"{_MICROSOFT}/2007/relationships/slicer": "slicer",
    f"{_MICROSOFT}/2011/relationships/timeline": "timeline",
}


def relationship_kind(written: str) -> str:
    """The short name of a relationship's type, such as ``worksheet``; a foreign type as it is."""
    for start in _KINDS:
        if written.startswith(start):
            kind = written[len(start) :]
            return written if "/" in kind else kind
    return _OTHER_KINDS.get(written, written)
