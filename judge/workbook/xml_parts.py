"""The XML parts of a workbook, read element by element; relationships between parts.

Document types, which carry entity bombs, are refused by every XML reader that reads from here.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from xml.parsers import expat

from judge.errors import WorkbookError
from judge.workbook.budget import ReadLimits
from judge.workbook.package import Package

StartHandler = Callable[[str, dict[str, str]], None]


def new_parser() -> expat.XMLParserType:
    """An expat parser that refuses document types, and with them every entity bomb."""
    parser = expat.ParserCreate()
    parser.buffer_text = True

    def refuse(*_: object) -> None:
        raise WorkbookError("a part of the workbook holds a document type, which is not read")

    parser.StartDoctypeDeclHandler = refuse
    return parser


def feed(parser: expat.XMLParserType, chunk: bytes, name: str, *, final: bool = False) -> None:
    """Passes bytes to a parser.

    Raises:
        WorkbookError: the XML is broken.
    """
    try:
        parser.Parse(chunk, final)
    except expat.ExpatError as error:
        raise WorkbookError(f"{name} is not well-formed XML: {error}") from error
    except (LookupError, ValueError) as error:
        raise WorkbookError(f"{name} cannot be decoded: {error}") from error


def scan_part(
    package: Package,
    name: str,
    start: StartHandler,
    end: Callable[[], object] | None = None,
    text: Callable[[str], object] | None = None,
) -> None:
    """Calls a function for every element of a part, with its local name and attributes.

    For small parts that are read element by element. Attribute names keep their prefix.

    Args:
        package: the workbook.
        name: name of the part.
        start: called when an element begins.
        end: called when an element ends.
        text: called with the characters between tags, in pieces.

    Raises:
        WorkbookError: the part is missing, broken or over a limit.
    """
    parser = new_parser()
    depth = 0
    limit = package.budget.limits.depth

    def on_start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > limit:
            raise WorkbookError(f"{name} nests more than {limit} elements")
        start(tag.rpartition(":")[2], attributes)

    def on_end(_: str) -> None:
        nonlocal depth
        depth -= 1
        if end is not None:
            end()

    parser.StartElementHandler = on_start
    parser.EndElementHandler = on_end
    if text is not None:
        parser.CharacterDataHandler = text
    fed = 0
    for chunk in package.chunks(name):
        feed(parser, chunk, name)
        fed += len(chunk)
        check_token(parser, fed, name, package.budget.limits)
    feed(parser, b"", name, final=True)


def check_token(parser: expat.XMLParserType, fed: int, name: str, limits: ReadLimits) -> None:
    """Stops a parser that buffers more bytes than one tag may have.

    Raises:
        WorkbookError: a single tag is longer than ``token_bytes``.
    """
    if fed - max(0, parser.CurrentByteIndex) > limits.token_bytes:
        raise WorkbookError(f"{name} holds a tag of more than {limits.token_bytes:,} bytes")


# -- relationships --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Relationship:
    """A pointer from one part to another, or out of the file.

    Attributes:
        kind: last segment of the relationship's type, such as ``worksheet``.
        target: name of the part, or the address if it is external.
        external: whether it points out of the file.
    """

    kind: str
    target: str
    external: bool


def relationships(package: Package, part: str) -> Mapping[str, Relationship]:
    """Relationships of a part by id; empty if it has none.

    Raises:
        WorkbookError: the relationships cannot be read.
    """
    folder, file = posixpath.split(part)
    name = posixpath.join(folder, "_rels", f"{file}.rels")
    found: dict[str, Relationship] = {}
    if name not in package:
        return found

    def on_start(tag: str, attributes: dict[str, str]) -> None:
        if tag != "Relationship" or "Target" not in attributes:
            return
        external = attributes.get("TargetMode") == "External"
        target = attributes["Target"]
        if not external:
            joined = target[1:] if target.startswith("/") else posixpath.join(folder, target)
            target = posixpath.normpath(joined)
        kind = attributes.get("Type", "").rpartition("/")[2]
        key = attributes.get("Id") or f"rId{len(found) + 1}"
        found[key] = Relationship(kind, target, external)

    scan_part(package, name, on_start)
    return found
