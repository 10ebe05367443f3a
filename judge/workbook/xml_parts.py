"""Reads the XML parts of a workbook element by element, and the relationships between parts.

An element is identified by its namespace and its local name: ``<row>`` in a foreign namespace is
not a row, whatever its prefix, and ``<x:row>`` is one if ``x`` stands for the main namespace.
Readers see short names: names in the part's own namespaces have no prefix, names in other known
namespaces have their usual prefix (``r:id``, ``x14:cfRule``), and all others are ``{uri}name``,
which no reader requests. Document types, which carry entity bombs, are refused.

Sources: ECMA-376 part 1 (transitional and strict namespaces, annexes A and L of part 4), part 3
(markup compatibility), [MS-XLSX] 2.1.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Generic, TypeVar
from xml.parsers import expat

from judge.errors import WorkbookError
from judge.workbook.budget import DEFAULT_LIMITS
from judge.workbook.package import Package

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
"""The character that parsers put between a namespace and a local name."""

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
"""Elements of DrawingML that occur inside drawings and charts, which use other namespaces."""


_MAX_NAMES = 10_000


class Names(dict[str, str]):
    """Name from the parser -> short name, which is made when the name first occurs.

    Args:
        own: prefixes that are left out of short names.
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
        # If a part has two namespaces, each of them has its own names.
        return len(self._own) == 1 or (prefix == "a") is (local in _DRAWING_NAMES)

    def attributes(self, named: Mapping[str, str]) -> dict[str, str]:
        """Attributes by their short names; names without a namespace do not change.

        Raises:
            WorkbookError: two attributes have the same short name, such as the ids of the
                transitional and of the strict namespace.
        """
        short = {
            (_attribute(key) if SEPARATOR in key else key): text for key, text in named.items()
        }
        if len(short) < len(named):
            raise WorkbookError(
                "an element of the workbook has one attribute in two namespaces, of which programs "
                f"read different ones: {', '.join(sorted(short))[:100]}"
            )
        return short


def _attribute(expanded: str) -> str:
    uri, _, local = expanded.rpartition(SEPARATOR)
    prefix = _PREFIXES.get(uri)
    return f"{{{uri}}}{local}" if prefix is None else f"{prefix}:{local}"


SHEET_NAMES = Names({"x"})
"""Worksheets, the main part, styles, strings, tables, pivot tables, comments."""

DRAWING_NAMES = Names({"xdr", "c", "cx", "a", "mc"})
"""Drawings: places of charts, pictures and shapes."""

CHART_NAMES = Names({"c", "cx", "a", "mc"})
"""Charts, including the newer kinds."""

THEME_NAMES = Names({"a"})
PROPERTY_NAMES = Names({"ep"})
LINK_NAMES = Names({"rel"})
TYPE_NAMES = Names({"ct"})


def local_name(short: str) -> str:
    """The local name of an element by its short name."""
    return short.rpartition("}")[2].rpartition(":")[2]


def is_known(uri: str) -> bool:
    """Whether the elements of a namespace are read."""
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
    """Returns the short name of a relationship's type, such as ``worksheet``.

    A type that is not one of Office's is returned unchanged.
    """
    for start in _KINDS:
        if written.startswith(start):
            kind = written[len(start) :]
            return written if "/" in kind else kind
    return _OTHER_KINDS.get(written, written)


StartHandler = Callable[[str, dict[str, str]], None]

_IGNORABLE = f"{COMPATIBILITY}{SEPARATOR}Ignorable"
_MUST_UNDERSTAND = f"{COMPATIBILITY}{SEPARATOR}MustUnderstand"
_ENCODINGS = {"utf-8", "us-ascii"}
_NOT_UTF8 = (b"\xff\xfe", b"\xfe\xff", b"<\0", b"\0<")
_PLAIN_PREFIX = re.compile(r"[A-Za-z0-9_]+")


class PartParser:
    """An expat parser of one part, which names everything by its namespace.

    It refuses document types, and with them every entity bomb. It refuses encodings other than
    UTF-8, since engines and editors get parts as bytes. It also refuses parts that could be read in
    two ways: parts in both the transitional and the strict main namespace, and parts which declare
    that a namespace may be ignored although a program has to know it.

    Args:
        package: the workbook.
        name: name of the part.
    """

    def __init__(self, package: Package, name: str) -> None:
        self._package = package
        self._name = name
        self._limits = package.budget.limits
        self._fed = 0
        self._namespaces: dict[str | None, str] = {}
        self.expat = parser = expat.ParserCreate(namespace_separator=SEPARATOR)
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._refuse
        parser.XmlDeclHandler = self._check_declaration
        parser.StartNamespaceDeclHandler = self._declare

    def feed(self, chunk: bytes, *, final: bool = False) -> None:
        """Passes bytes to the parser.

        Raises:
            WorkbookError: the XML is broken, or a single tag is longer than ``token_bytes``.
        """
        parser = self.expat
        if not self._fed and chunk.startswith(_NOT_UTF8):
            raise WorkbookError(f"{self._name} is not in UTF-8, as parts of workbooks must be")
        try:
            parser.Parse(chunk, final)
        except expat.ExpatError as error:
            raise WorkbookError(f"{self._name} is not well-formed XML: {error}") from error
        except (LookupError, ValueError) as error:
            raise WorkbookError(f"{self._name} cannot be decoded: {error}") from error
        self._fed += len(chunk)
        if self._fed - max(0, parser.CurrentByteIndex) > self._limits.token_bytes:
            raise WorkbookError(
                f"{self._name} holds a tag of more than {self._limits.token_bytes:,} bytes"
            )
        if final:
            self.close()

    def close(self) -> None:
        """Ends parsing, so that the workbook is freed as soon as nothing else needs it.

        The parser of :mod:`xml.parsers` refers to its handlers, and so to this object.
        """
        del self.expat

    def short_names(self, attributes: dict[str, str], names: Names) -> dict[str, str]:
        """Called with an element's attributes: checks them, and returns them by their short names.

        Raises:
            WorkbookError: see :meth:`check_compatibility` and :meth:`Names.attributes`.
        """
        if SEPARATOR not in "".join(attributes):
            return attributes
        self.check_compatibility(attributes)
        return names.attributes(attributes)

    def check_compatibility(self, attributes: Mapping[str, str]) -> None:
        """Called with an element's attributes: refuses attributes that change how others are read.

        Raises:
            WorkbookError: the part says that a known namespace may be ignored, or that an unknown
                one must be understood.
        """
        if _IGNORABLE in attributes:
            for prefix in attributes[_IGNORABLE].split():
                if not may_be_ignored(self._namespaces.get(prefix, "")):
                    raise WorkbookError(
                        f"{self._name} says that its own namespace may be ignored ({prefix[:20]})"
                    )
        if _MUST_UNDERSTAND in attributes:
            for prefix in attributes[_MUST_UNDERSTAND].split():
                if not is_known(self._namespaces.get(prefix, "")):
                    raise WorkbookError(
                        f"{self._name} can only be read by programs that know {prefix[:20]}"
                    )

    def _refuse(self, *_: object) -> None:
        raise WorkbookError("a part of the workbook holds a document type, which is not read")

    def _check_declaration(self, version: str, encoding: str | None, _: int) -> None:
        if version != "1.0" or (encoding is not None and encoding.lower() not in _ENCODINGS):
            raise WorkbookError(
                f"{self._name} is XML {version[:20]} in the encoding {(encoding or 'utf-8')[:30]}; "
                "parts of workbooks are XML 1.0 in UTF-8"
            )

    def _declare(self, prefix: str | None, uri: str | None) -> None:
        if uri is None:
            return
        self._namespaces[prefix] = uri
        if uri in {MAIN, STRICT_MAIN}:
            if prefix is not None and _PLAIN_PREFIX.fullmatch(prefix) is None:
                raise WorkbookError(
                    f"{self._name} has the prefix {prefix[:20]!r}, which is not read"
                )
            self._package.agree_on_namespace(uri, self._name)


def scan_part(
    package: Package,
    name: str,
    start: StartHandler,
    end: Callable[[], object] | None = None,
    text: Callable[[str], object] | None = None,
    *,
    names: Names = SHEET_NAMES,
    chunks: Iterable[bytes] | None = None,
) -> None:
    """Calls a function for every element of a part, with its short name and attributes.

    For small parts that are read element by element.

    Args:
        package: the workbook.
        name: name of the part.
        start: called when an element begins.
        end: called when an element ends.
        text: called with the characters between tags, in pieces.
        names: gives elements and attributes their short names.
        chunks: the part in pieces; None to read it from the package.

    Raises:
        WorkbookError: the part is missing, broken or over a limit.
    """
    limits = package.budget.limits
    parser = PartParser(package, name)
    depth = 0
    limit = limits.depth

    def on_start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > limit:
            raise WorkbookError(f"{name} nests more than {limit} elements")
        start(names[tag], parser.short_names(attributes, names))

    def on_end(_: str) -> None:
        nonlocal depth
        depth -= 1
        if end is not None:
            end()

    parser.expat.StartElementHandler = on_start
    parser.expat.EndElementHandler = on_end
    if text is not None:
        parser.expat.CharacterDataHandler = text
    for chunk in package.chunks(name) if chunks is None else chunks:
        parser.feed(chunk)
    parser.feed(b"", final=True)


_Read = TypeVar("_Read")


class RecentParts(Generic[_Read]):
    """The contents of parts that were read lately, by their bytes.

    Gold, input and output of a case, and the cases of a task, often have the same content types,
    relationships and style sheet. A part is only kept if it was read without a fault and within the
    default limits, so that it would be read again with the same result. Callers must not change
    what they get.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, bytes], tuple[_Read, str | None]] = {}

    def get(
        self,
        package: Package,
        name: str,
        data: bytes,
        holds: Callable[[_Read], bool] | None = None,
    ) -> _Read | None:
        """The contents of a part with the given bytes; None if it has to be read.

        Args:
            package: the workbook.
            name: name of the part.
            data: its bytes.
            holds: whether the contents are also those of this part if it depends on other parts.

        Raises:
            WorkbookError: the namespace of the part is not that of the other parts.
        """
        known = self._known.get((name, data))
        if known is None or package.budget.limits is not DEFAULT_LIMITS:
            return None
        read, namespace = known
        if holds is not None and not holds(read):
            return None
        if namespace is not None:
            package.agree_on_namespace(namespace, name)
        return read

    def keep(self, package: Package, name: str, data: bytes, read: _Read) -> None:
        """Keeps the contents of a part that was read without a fault."""
        if len(data) > _MAX_RECENT_BYTES or package.budget.limits is not DEFAULT_LIMITS:
            return
        if len(self._known) >= _MAX_RECENT:
            self._known.clear()
        self._known[name, data] = read, package.namespace_of(name)

    def read(
        self,
        package: Package,
        name: str,
        scan: Callable[[Iterable[bytes]], _Read],
        holds: Callable[[_Read], bool] | None = None,
    ) -> _Read:
        """The contents of a part, which is read if it was not read lately.

        Args:
            package: the workbook.
            name: name of the part.
            scan: reads the part, which it gets in pieces.
            holds: as for :meth:`get`.

        Raises:
            WorkbookError: the part is missing, broken or over a limit.
        """
        chunks = package.chunks(name)
        first = next(chunks, b"")
        is_all = len(first) == package.inflated_size(name)
        known = self.get(package, name, first, holds) if is_all else None
        if known is not None:
            next(chunks, None)  # checks the checksum
            return known
        read = scan(chain([first], chunks))
        if is_all:
            self.keep(package, name, first, read)
        return read


_MAX_RECENT = 64
_MAX_RECENT_BYTES = 128 << 10


# -- relationships --------------------------------------------------------------------------------

_PATHS = frozenset(
    {"officeDocument", "worksheet", "chartsheet", "dialogsheet", "sharedStrings", "styles"}
)
"""Kinds of relationships that decide which cells there are; all programs must read them the same
way."""

_PLAIN_PATH = re.compile(r"/?(?:(?:\.\./)?(?:\w[\w .()-]*/)*)\w[\w .()-]*")


@dataclass(frozen=True, slots=True)
class Relationship:
    """A relationship from one part to another, or to something outside of the file.

    Attributes:
        kind: short name of the relationship's type, such as ``worksheet``; the full name of a type
            that is not one of Office's.
        target: name of the part, or the address if it is external.
        external: whether it points out of the file.
    """

    kind: str
    target: str
    external: bool


def relationships(package: Package, part: str) -> Mapping[str, Relationship]:
    """Relationships of a part by id; empty if it has none.

    Raises:
        WorkbookError: the relationships cannot be read, or could be read in two ways.
    """
    folder, file = posixpath.split(part)
    name = posixpath.join(folder, "_rels", f"{file}.rels")
    if name not in package:
        return {}
    return _relationships.read(package, name, partial(_read_relationships, package, name, folder))


_relationships = RecentParts[Mapping[str, Relationship]]()


def _read_relationships(
    package: Package, name: str, folder: str, chunks: Iterable[bytes]
) -> Mapping[str, Relationship]:
    relationships: dict[str, Relationship] = {}
    path: list[str] = []
    expected = ("Relationships", "Relationship")

    def on_start(tag: str, attributes: dict[str, str]) -> None:
        depth = len(path)
        if depth > 1 or tag != expected[depth]:
            raise WorkbookError(f"{name} holds the element {tag[:80]!r}, which is not read there")
        path.append(tag)
        if depth:
            identifier, link = _relationship(name, folder, attributes)
            if identifier in relationships:
                raise WorkbookError(f"{name} has the relationship {identifier[:30]!r} twice")
            relationships[identifier] = link

    scan_part(package, name, on_start, path.pop, names=LINK_NAMES, chunks=chunks)
    return relationships


def linked_parts(package: Package, part: str, kind: str) -> list[str]:
    """Names of the parts of one kind, such as ``pivotTable``, to which a part points.

    Raises:
        WorkbookError: the relationships cannot be read, or could be read in two ways.
    """
    return [
        link.target
        for link in relationships(package, part).values()
        if link.kind == kind and not link.external and link.target in package
    ]


def _relationship(
    name: str, folder: str, attributes: Mapping[str, str]
) -> tuple[str, Relationship]:
    """Id and content of a relationship."""
    get = attributes.get
    identifier, written, target = get("Id"), get("Type"), get("Target")
    if identifier is None or written is None or target is None:
        raise WorkbookError(f"{name} holds a relationship without Id, Type or Target")
    kind = relationship_kind(written)
    mode = attributes.get("TargetMode", "Internal")
    if kind in _PATHS and (mode != "Internal" or _PLAIN_PATH.fullmatch(target) is None):
        raise WorkbookError(
            f"{name} points to {target[:80]!r} as {kind}, which is not a plain path"
        )
    external = mode == "External"
    if not external:
        joined = target[1:] if target.startswith("/") else posixpath.join(folder, target)
        target = posixpath.normpath(joined)
    return identifier, Relationship(kind, target, external)


_WHOLE = re.compile(r"[0-9]{1,9}")


def whole_number(text: str | None) -> int | None:
    """Reads a number of up to nine digits; None if the text is anything else.

    Nine digits hold every index and count of a workbook. ``str.isdigit`` cannot test for this: it
    accepts superscripts, and :class:`int` refuses them, as it refuses thousands of digits.
    """
    return int(text) if text is not None and _WHOLE.fullmatch(text) else None


_ON = frozenset(("1", "true", "on", "t"))
"""``xsd:boolean``, and older parts' values: ``on`` (ST_OnOff) and ``t`` (VML's ST_TrueFalse)."""


def is_on(text: str | None, *, default: bool = False) -> bool:
    """Whether the text of an attribute means true; ``default`` if the attribute is missing."""
    return default if text is None else text.strip().lower() in _ON
