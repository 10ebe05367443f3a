"""The one form of rows that is read and skipped as text: whole, plain, and in ascending order.

Rows are skipped only where nothing in them can be read in two ways. A row of this form consists of
nothing but cells, a cell of nothing but a formula and a value, each with the attributes that
programs write; every cell is in the row that its address names, and every row follows the one
before. Namespaces cannot matter here, since no element has a prefix and none declares one. Whatever
is written in any other way is left to the parser.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from judge.workbook.address import MAX_COLUMN, MAX_ROW, column_number

_TEXT = rb"[^<]*+"
_SPACE = rb'(?: xml:space="preserve")?+'


def attributes_once(group: bytes) -> bytes:
    """An expression for the attributes of an element, each of them once.

    Args:
        group: name of the group that holds the name of an attribute.
    """
    one = rb'="[^"<&]*+"'
    any_name = rb" [A-Za-z][A-Za-z0-9]*+"
    return rb"(?: (?P<%b>[A-Za-z][A-Za-z0-9]*+)%b(?!(?:%b%b)*? (?P=%b)=))*+" % (
        *(group, one),
        *(any_name, one, group),
    )


_RUN = (
    rb"<r>(?:<rPr>(?:<[A-Za-z]++"
    + attributes_once(b"look")
    + rb" ?/>)*+</rPr>)?+<t"
    + _SPACE
    + rb"(?:/>|>"
    + _TEXT
    + rb"</t>)</r>"
)
_FORMULA = rb"<f" + attributes_once(b"formula") + rb" ?(?:/>|>" + _TEXT + rb"</f>)"
_VALUE = rb"<v" + _SPACE + rb"(?: ?/>|>" + _TEXT + rb"</v>)"
_INLINE = rb"<is>(?:<t" + _SPACE + rb"(?:/>|>" + _TEXT + rb"</t>)|(?:" + _RUN + rb")*+)</is>"
_CELL_ATTRIBUTES = (
    rb'(?: s="[0-9]++"(?: t="[A-Za-z]++")?+| t="[A-Za-z]++"(?: s="[0-9]++")?+)?+'
    rb'(?: cm="[0-9]++")?+(?: vm="[0-9]++")?+(?: ph="[01]")?+ ?'
)
_CELL = (
    rb'<c r="[A-Z]{1,3}+\1"'
    + _CELL_ATTRIBUTES
    + rb"(?:/>|>(?:<v>[^<]*+</v></c>|(?:"
    + _FORMULA
    + rb")?+(?:"
    + _VALUE
    + rb"|"
    + _INLINE
    + rb")?+</c>))"
)
_ROW = re.compile(
    rb'\s*+<row r="([1-9][0-9]{0,6}+)"([^<>]*+)(?:(?<=/)>|>(?:\s*+' + _CELL + rb")*+\s*+</row>)"
)
_ROW_ATTRIBUTE = re.compile(rb' ([A-Za-z]++|[A-Za-z0-9]++:dyDescent)="[^"<&]*+"')
_PREFIX = re.compile(rb"""\sxmlns:([^\s=]++)\s*+=""")
_ATTRIBUTE = re.compile(r' ([A-Za-z]++)="([^"]*)"')
_LETTERS = re.compile(rb'<c r="([A-Z]++)')
_REFERENCE = re.compile(
    rb"&(?!(?:amp|lt|gt|quot|apos|#(?:9|1[03]|3[2-9]|[4-9][0-9]|[1-9][0-9]{2,3})"
    rb"|#x(?:[9AaDd]|[2-9A-Fa-f][0-9A-Fa-f]|[1-9A-Ca-c][0-9A-Fa-f]{2,3}));)"
)
_NOT_XML = bytes([*range(9), 11, 12, *range(14, 32)])
_DECLARES = b"xmlns"
_MAX_KNOWN = 10_000


class NotPlainError(Exception):
    """Rows are written in a way that only the parser reads."""


class Row(NamedTuple):
    """A row in its plain form.

    Attributes:
        number: its number.
        attributes: everything in its tag after that.
        start, end: where it is among the bytes.
    """

    number: int
    attributes: bytes
    start: int
    end: int


class RowGrammar:
    """Takes the rows of one worksheet, one piece of it after the other.

    Args:
        check: called with the attributes of rows, once for each combination of them.
        root: the start tag of the worksheet, which declares the prefixes of attributes.
    """

    def __init__(self, check: Callable[[Mapping[str, str]], None], root: bytes) -> None:
        self._check = check
        self._prefixes = frozenset(_PREFIX.findall(root))
        self._last = 0
        self._known_attributes: set[bytes] = set()
        self._known_columns: set[tuple[bytes, ...]] = set()

    def rows(self, data: bytes) -> Iterator[Row]:
        """The whole rows at the beginning of some bytes.

        What follows the last of them is left: the rest of a row, the end of the rows, or something
        that is not a row in its plain form.

        Raises:
            NotPlainError: the rows are not in ascending order, or have unusual attributes.
        """
        position, last = 0, self._last
        match = _ROW.match
        known = self._known_attributes
        while (found := match(data, position)) is not None:
            digits, attributes = found.group(1, 2)
            number = int(digits)
            if number <= last or number > MAX_ROW:
                raise NotPlainError
            if attributes and attributes not in known:
                self._check_attributes(attributes)
            position = found.end()
            self._last = last = number
            yield Row(number, attributes, found.start(), position)

    def _check_attributes(self, attributes: bytes) -> None:
        written = attributes.removesuffix(b"/").rstrip(b" ")
        names = _ROW_ATTRIBUTE.findall(written)
        whole = _ROW_ATTRIBUTE.sub(b"", written) == b""
        if not whole or len(set(names)) != len(names) or b"r" in names:
            raise NotPlainError
        prefixes = [name.partition(b":")[0] for name in names if b":" in name]
        if b"&" in written or len(prefixes) > 1 or not self._prefixes.issuperset(prefixes):
            raise NotPlainError
        self._check(dict(_ATTRIBUTE.findall(written.decode("utf-8", "replace"))))
        if len(self._known_attributes) < _MAX_KNOWN:
            self._known_attributes.add(attributes)

    def check_columns(self, data: bytes, start: int, end: int) -> None:
        """Makes sure that the cells of a row are in ascending order.

        Raises:
            NotPlainError: they are not, or one is outside of the sheet.
        """
        columns = tuple(_LETTERS.findall(data, start, end))
        if columns in self._known_columns:
            return
        numbers = [column_number(column.decode()) for column in columns]
        if any(one >= other for one, other in itertools.pairwise(numbers)):
            raise NotPlainError
        if numbers and numbers[-1] > MAX_COLUMN:
            raise NotPlainError
        if len(self._known_columns) < _MAX_KNOWN:
            self._known_columns.add(columns)


def check_characters(data: bytes) -> None:
    """Makes sure that bytes that were taken as rows are well-formed text without declarations.

    Raises:
        NotPlainError: they hold a character or an entity that XML does not know, end a CDATA
            section, declare a namespace, or are not UTF-8.
    """
    if (
        _DECLARES in data
        or b"]]>" in data
        or (b"&" in data and _REFERENCE.search(data) is not None)
        or len(data.translate(None, _NOT_XML)) != len(data)
        or (b"\xef\xbf" in data and (b"\xef\xbf\xbe" in data or b"\xef\xbf\xbf" in data))
    ):
        raise NotPlainError
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError:
            raise NotPlainError from None
