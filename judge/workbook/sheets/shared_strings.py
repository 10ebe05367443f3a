"""Reads the requested shared strings in one pass over the whole table.

Strings in the form that programs usually write are read with regular expressions, all others by the
XML parser. A fault after the last requested string counts as well: Excel reports such a file as
damaged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from xml.parsers import expat

from judge.errors import WorkbookError
from judge.workbook.cell_values import InlineText, read_string
from judge.workbook.package import Package
from judge.workbook.sheets.shared_formulas import TEXT, UNUSUAL_ENTITY, unescape
from judge.workbook.sheets.sheet_scan import (
    NotPlainError,
    attributes_once,
    check_characters,
)
from judge.workbook.xml_parts import MAIN, SEPARATOR, SHEET_NAMES, PartParser

_TEXT = f'<t(?: xml:space="preserve")?(?:/>|>({TEXT}*)</t>)'
_HINT = f'\\s*<rPh[^<>]*>\\s*<t(?: xml:space="preserve")?(?:/>|>{TEXT}*</t>)\\s*</rPh>'
_REST = f"(?:{_HINT})*\\s*(?:<phoneticPr[^<>]*/>\\s*)?</si>\\s*"
_PLAIN = re.compile(f"\\s*{_TEXT}{_REST}")
_RUN = re.compile(f"\\s*<r>\\s*(?:<rPr>(?:\\s*<[^<>]*>)*?\\s*</rPr>)?\\s*{_TEXT}\\s*</r>")
_END = re.compile(_REST)

# The same as bytes, for strings that are only skipped; it matches every string that is read.
_ANY_TEXT = rb'\s*+<t(?: xml:space="preserve")?+(?:/>|>[^<]*+</t>)'
_FORMAT = rb"<rPr>(?:\s*+<[A-Za-z]++%b ?/>)*+\s*+</rPr>" % attributes_once(b"look")
_ANY_RUN = rb"\s*+<r>\s*+(?:%b)?+%b\s*+</r>" % (_FORMAT, _ANY_TEXT)
_ANY_HINT = rb"\s*+<rPh%b>%b\s*+</rPh>" % (attributes_once(b"hint"), _ANY_TEXT)
_STRINGS = re.compile(
    rb"(?:\s*+<si>(?:%b|(?:%b)++)(?:%b)*+\s*+(?:<phoneticPr%b ?/>)?+\s*+</si>)*+"
    % (_ANY_TEXT, _ANY_RUN, _ANY_HINT, attributes_once(b"phonetic"))
)
_END_OF_TABLE = re.compile(rb"\s*+</sst\s*+>")
_MAX_STRING_BYTES = 1 << 20
_ROOT = re.compile(
    rb"""(?:\xef\xbb\xbf)?(?:<\?xml version=["']1\.0["'](?: encoding=["'](?i:utf-8)["'])?"""
    rb"""(?: standalone=["'](?:yes|no)["'])?\s*\?>)?\s*+"""
    rb"""<sst((?:\s++[A-Za-z0-9:]++="[^"<&]*+")*+)\s*+>\s*+"""
)
_DEFAULT_NAMESPACE = re.compile(rb' xmlns="([^"]*)"')


def plain_strings(chunks: Iterable[bytes], indexes: AbstractSet[int]) -> dict[int, str] | None:
    """Reads the strings at some indices of a table of shared strings; reads the table to its end.

    Args:
        chunks: the table's part.
        indexes: the indices; at least one.

    Returns:
        Index -> string; None if the table is written in a way that only a parser reads, or if a
        string is missing.

    Raises:
        WorkbookError: the part is broken.
    """
    strings: dict[int, str] = {}
    count = 0
    pending = b""
    begun = ended = False
    for chunk in chunks:
        pending += chunk
        if not begun:
            root = _ROOT.match(pending)
            if root is None or not _is_main(root[1]) or not _is_element(root[0]):
                return None
            pending, begun = pending[root.end() :], True
        match = _STRINGS.match(pending)
        position = match.end() if match is not None else 0
        if position:
            complete = pending[:position]
            try:
                check_characters(complete)
            except NotPlainError:
                return None
            pieces = complete.split(b"<si>")
            for index in _indices_between(indexes, count, count + len(pieces) - 1):
                string = _string(pieces[index - count + 1])
                if string is None:
                    return None
                strings[index] = string
            count += len(pieces) - 1
            pending = pending[position:]
        if not ended and (end := _END_OF_TABLE.match(pending)) is not None:
            pending, ended = pending[end.end() :], True
        if (ended and pending.strip()) or b"</si>" in pending:
            return None
        if len(pending) > _MAX_STRING_BYTES:
            return None
    return strings if ended and len(strings) == len(indexes) else None


def _indices_between(indexes: AbstractSet[int], first: int, end: int) -> Iterable[int]:
    if len(indexes) < end - first:
        return (index for index in indexes if first <= index < end)
    return (index for index in range(first, end) if index in indexes)


def _is_main(attributes: bytes) -> bool:
    """Whether names without a prefix are in the transitional namespace, for every program."""
    names = _DEFAULT_NAMESPACE.findall(attributes)
    return (
        len(names) == 1
        and names[0] == MAIN.encode()
        and b":Ignorable" not in attributes
        and b":MustUnderstand" not in attributes
    )


def _is_element(root: bytes) -> bool:
    """Whether the start tag of a table is well-formed."""
    try:
        expat.ParserCreate(namespace_separator=SEPARATOR).Parse(root + b"</sst>", True)
    except expat.ExpatError:
        return False
    return True


def _string(piece: bytes) -> str | None:
    try:
        text = piece.decode()
    except UnicodeDecodeError:
        return None
    if UNUSUAL_ENTITY.search(text) is not None:
        return None
    match = _PLAIN.fullmatch(text)
    if match is not None:
        return read_string(unescape(match[1] or ""))
    runs = []
    position = 0
    while (run := _RUN.match(text, position)) is not None:
        runs.append(read_string(unescape(run[1] or "")))
        position = run.end()
    return "".join(runs) if runs and _END.fullmatch(text, position) is not None else None


_MAX_DEPTH = 64  # elements inside each other


class SharedStrings:
    """The table of shared strings of a workbook.

    Args:
        package: the workbook.
        part: name of the table's part, or None if the workbook has none.
    """

    def __init__(self, package: Package, part: str | None) -> None:
        self._package = package
        self._part = part
        self._known: dict[int, str] = {}

    def load(self, indices: Iterable[int]) -> dict[int, str]:
        """The strings at some indices (and maybe others that were requested before).

        Raises:
            WorkbookError: an index has no string, or the table is broken or over a limit.
        """
        missing = set(indices) - self._known.keys()
        if missing:
            self._known |= self._read(missing)
        return self._known

    def _read(self, indexes: set[int]) -> dict[int, str]:
        part = self._part
        if part is None or min(indexes) < 0:
            raise WorkbookError("a cell points to a shared string that the workbook lacks")
        strings = plain_strings(self._package.chunks(part), indexes)
        if strings is None:
            return self._parse(part, indexes)
        self._package.agree_on_namespace(MAIN, part)
        self._package.budget.take_chars(sum(map(len, strings.values())))
        return strings

    def _parse(self, part: str, indexes: set[int]) -> dict[int, str]:
        limits = self._package.budget.limits
        parser = PartParser(self._package, part)
        collector = _StringCollector(indexes, limits.text_chars, part, parser)
        for chunk in self._package.chunks(part):
            parser.feed(chunk)
            collector.check()
            self._package.budget.take_chars(collector.chars)
            collector.chars = 0
        parser.feed(b"", final=True)
        if max(indexes) >= collector.count:
            raise WorkbookError(
                f"a cell points to shared string {max(indexes)}, the workbook has {collector.count}"
            )
        return collector.strings


class _StringCollector:
    """Handlers for the table; anything but a string among the strings is an error."""

    def __init__(self, indexes: set[int], max_chars: int, part: str, parser: PartParser) -> None:
        self.strings: dict[int, str] = {}
        self.count = 0
        self.chars = 0
        self.text: list[str] = []
        self._wanted = indexes
        self._max_chars = max_chars
        self._part = part
        self._parser = parser
        self._current: InlineText | None = None
        self._path: list[str] = []
        parser.expat.StartElementHandler = self.start
        parser.expat.EndElementHandler = self.end
        parser.expat.CharacterDataHandler = self.text.append

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Called when an element begins."""
        name = SHEET_NAMES[tag]
        path = self._path
        path.append(name)
        self.text.clear()
        if len(path) == 1:
            if name != "sst":
                raise WorkbookError(
                    f"{self._part} is not a table of strings: it begins with {name!r}"
                )
            self._parser.check_compatibility(attributes)
        elif len(path) == 2:
            if name not in {"si", "extLst"}:
                raise WorkbookError(f"{self._part} holds {name[:80]!r} among its strings")
            if self.count in self._wanted:
                self._current = InlineText(self._part)
        elif path[1] == "si":
            if name == "si":
                raise WorkbookError(f"{self._part} holds a string within a string")
            if self._current is not None:
                self._current.start(name)
        if len(path) > _MAX_DEPTH:
            raise WorkbookError(f"{self._part} nests more than {_MAX_DEPTH} elements")

    def end(self, _: str) -> None:
        """Called when an element ends."""
        name = self._path.pop()
        if len(self._path) == 1:
            self._end_string(name)
        elif self._current is not None and self._path:
            self._current.end(name, self.text)
        self.text.clear()

    def _end_string(self, name: str) -> None:
        if name != "si":
            self._current = None
            return
        if self._current is not None:
            string = self._current.content
            self.strings[self.count] = string
            self.chars += len(string)
            self._current = None
        self.count += 1

    def check(self) -> None:
        """Called between chunks: stops a string that has grown beyond its bound."""
        if len(self.text) > 8 and sum(map(len, self.text)) > self._max_chars:
            raise WorkbookError(f"a shared string has more than {self._max_chars:,} characters")
