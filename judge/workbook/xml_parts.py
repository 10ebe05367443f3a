"""The XML parts of a workbook, read element by element; relationships between parts.

Everything is named by its namespace (:mod:`judge.workbook.namespaces`). Document types, which carry
entity bombs, are refused by every XML reader that reads from here.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from xml.parsers import expat

from judge.errors import WorkbookError
from judge.workbook.namespaces import (
    COMPATIBILITY,
    LINK_NAMES,
    MAIN,
    SEPARATOR,
    SHEET_NAMES,
    STRICT_MAIN,
    Names,
    is_known,
    may_be_ignored,
    relationship_kind,
)
from judge.workbook.package import Package

StartHandler = Callable[[str, dict[str, str]], None]

_IGNORABLE = f"{COMPATIBILITY}{SEPARATOR}Ignorable"
_MUST_UNDERSTAND = f"{COMPATIBILITY}{SEPARATOR}MustUnderstand"
_ENCODINGS = {"utf-8", "us-ascii"}
_NOT_UTF8 = (b"\xff\xfe", b"\xfe\xff", b"<\0", b"\0<")
_PLAIN_PREFIX = re.compile(r"[A-Za-z0-9_]+")


class PartParser:
    """An expat parser of one part, which names everything by its namespace.

    It refuses document types, and with them every entity bomb; encodings other than UTF-8, since
    engines and editors get parts as bytes; and parts that could be read in two ways: some in the
    transitional and some in the strict main namespace, or namespaces that a program has to know
    declared as ones that it may ignore.

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
            raise WorkbookError(f"{self._name} is not in UTF-8, in which parts of workbooks are")
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

    def check_compatibility(self, attributes: Mapping[str, str]) -> None:
        """Called with the attributes of an element: refuses what changes how others are read.

        Raises:
            WorkbookError: a known namespace may be ignored, or an unknown one may not.
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
        parser.check_compatibility(attributes)
        start(names[tag], names.attributes(attributes))

    def on_end(_: str) -> None:
        nonlocal depth
        depth -= 1
        if end is not None:
            end()

    parser.expat.StartElementHandler = on_start
    parser.expat.EndElementHandler = on_end
    if text is not None:
        parser.expat.CharacterDataHandler = text
    for chunk in package.chunks(name):
        parser.feed(chunk)
    parser.feed(b"", final=True)


# -- relationships --------------------------------------------------------------------------------

_PATHS = frozenset(
    {"officeDocument", "worksheet", "chartsheet", "dialogsheet", "sharedStrings", "styles"}
)
"""Kinds of relationships that decide which cells there are: no two programs may resolve these
differently."""

_PLAIN_PATH = re.compile(r"/?(?:(?:\.\./)?(?:\w[\w .()-]*/)*)\w[\w .()-]*")


@dataclass(frozen=True, slots=True)
class Relationship:
    """A pointer from one part to another, or out of the file.

    Attributes:
        kind: short name of the relationship's type, such as ``worksheet``; a type that is not one
            of Office's is in full.
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
    found: dict[str, Relationship] = {}
    if name not in package:
        return found
    path: list[str] = []

    def on_start(tag: str, attributes: dict[str, str]) -> None:
        if [*path, tag] not in (["Relationships"], ["Relationships", "Relationship"]):
            raise WorkbookError(f"{name} holds the element {tag[:80]!r}, which is not read there")
        path.append(tag)
        if tag == "Relationship":
            identifier, link = _relationship(name, folder, attributes)
            if identifier in found:
                raise WorkbookError(f"{name} has the relationship {identifier[:30]!r} twice")
            found[identifier] = link

    scan_part(package, name, on_start, path.pop, names=LINK_NAMES)
    return found


def _relationship(
    name: str, folder: str, attributes: Mapping[str, str]
) -> tuple[str, Relationship]:
    """Id and content of a relationship."""
    given = tuple(attributes.get(key) for key in ("Id", "Type", "Target"))
    identifier, written, target = given
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
