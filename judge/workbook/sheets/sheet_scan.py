"""Reads the requested rows of a worksheet in one pass over its XML, and skips the others.

Rows in their plain form are skipped, or read as text, which is several times faster than parsing
them. The elements around the rows are parsed. If anything in a worksheet is not plain, the whole
part is parsed, with namespaces.

Rows are skipped only if nothing in them can be read in two ways. A row in the plain form consists
only of cells, and a cell only of a formula and a value, with the attributes that programs usually
write; every cell is in the row that its address names, and the rows are in order. Namespaces cannot
matter here, since no element has a prefix or declares one.
"""

from __future__ import annotations

import bisect
import operator
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Generic, TypeVar

from judge.errors import WorkbookError
from judge.workbook.address import (
    COLUMN_MASK,
    MAX_COLUMN,
    MAX_ROW,
    WHOLE_SHEET,
    Window,
    cell_key,
    column_number,
)
from judge.workbook.number_formats import NumberFormats
from judge.workbook.package import Package
from judge.workbook.sheets.plain_rows import PlainRows
from judge.workbook.sheets.shared_formulas import ATTRIBUTE, FILLING_KINDS
from judge.workbook.sheets.sheet_cells import CellCollector, RowListener, SheetCells
from judge.workbook.sheets.sheet_tail import TailListener
from judge.workbook.xml_parts import MAIN, STRICT_MAIN, PartParser

_TEXT = rb"[^<]*+"
_SPACE = rb'(?: xml:space="preserve")?+'


def attributes_once(group: bytes) -> bytes:
    """A regular expression for the attributes of an element; each may occur at most once.

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
    rb'(?: cm="[0-9]++")?+(?: vm="[0-9]++")?+(?: ph="[01]")?+ ?+'
)
# What openpyxl writes comes first; the general form, which includes it, takes longer.
_CELL = (
    rb'<c r="[A-Z]{1,3}+(?P=row)"(?:'
    rb'(?: s="[0-9]++")?+(?: t="[A-Za-z]++")?+ ?+(?:/>|><(?:v>[^<]*+</v>|f>[^<]*+</f><v ?+/>|'
    rb"is><t%b>[^<]*+</t></is>)</c>)|%b(?:/>|>(?:%b)?+(?:%b|%b)?+</c>))"
) % (_SPACE, _CELL_ATTRIBUTES, _FORMULA, _VALUE, _INLINE)
_ROWS = re.compile(
    rb'\s*+(?:<row r="(?P<row>[1-9][0-9]{0,6}+)"[^<>]*+(?:(?<=/)>|>(?:\s*+%b)*+\s*+</row>)\s*+)*+'
    % _CELL
)
_NUMBERS = re.compile(rb'<row r="([0-9]++)')
_ATTRIBUTES = re.compile(rb'<row r="[0-9]++"(?! ?/?>)([^>]*+)')
_TAGS = re.compile(rb'<row r="([0-9]++)"([^>]*+)')
_ROW_ATTRIBUTE = re.compile(rb' ([A-Za-z]++|[A-Za-z0-9]++:dyDescent)="[^"<&]*+"')
_PREFIX = re.compile(rb"""\sxmlns:([^\s=]++)\s*+=""")
_ATTRIBUTE = re.compile(r' ([A-Za-z]++)="([^"]*)"')
_LETTERS = re.compile(rb'<cr"([A-Z]++)')
_NOT_COLUMNS = bytes({*range(256)} - {*b'<>"crow', *range(ord("A"), ord("Z") + 1)})
_REFERENCE = re.compile(
    rb"&(?!(?:amp|lt|gt|quot|apos|#(?:9|1[03]|3[2-9]|[4-9][0-9]|[1-9][0-9]{2,3})"
    rb"|#x(?:[9AaDd]|[2-9A-Fa-f][0-9A-Fa-f]|[1-9A-Ca-c][0-9A-Fa-f]{2,3}));)"
)
_NOT_XML = bytes([*range(9), 11, 12, *range(14, 32)])
_DECLARES = b"xmlns"
_MAX_KNOWN = 10_000
_MAX_PIECE_BYTES = 1 << 18


class NotPlainError(Exception):
    """Rows are written in a way that only the parser can read."""


class RowGrammar:
    """Finds the rows of one worksheet, whose bytes arrive in pieces.

    Args:
        check: called with the attributes of rows, once for each combination of them.
        root: the start tag of the worksheet, which declares the prefixes of attributes.
    """

    def __init__(self, check: Callable[[Mapping[str, str]], None], root: bytes) -> None:
        self._check = check
        self._prefixes = frozenset(_PREFIX.findall(root))
        self._last = 0
        self._known_attributes: set[bytes] = set()

    def rows(self, data: bytes, *, last: int | None = None) -> tuple[Sequence[int], bytes]:
        """Finds the complete rows at the beginning of some bytes.

        Bytes after the last one are left: part of a row, or the end of the rows.

        Args:
            data: the bytes.
            last: the rows after the first one below this number are left, too; None for no limit.

        Returns:
            The number of each row, and the bytes of all of them with the spaces around them.

        Raises:
            NotPlainError: the rows are not in ascending order, or have unusual attributes.
        """
        find = _leading_rows if len(data) <= _MAX_PIECE_BYTES else _leading_rows.__wrapped__
        numbers, size, attributes = find(data)
        if not numbers:
            return (), b""
        if numbers[0] <= self._last:
            raise NotPlainError
        if last is not None and (count := bisect.bisect_right(numbers, last) + 1) < len(numbers):
            size = start_of_row(data, numbers[count])
            numbers, attributes = numbers[:count], frozenset(_ATTRIBUTES.findall(data, 0, size))
        for written in attributes - self._known_attributes:
            self._check_attributes(written)
        self._last = numbers[-1]
        return numbers, data[:size]

    def _check_attributes(self, attributes: bytes) -> None:
        written = attributes.removesuffix(b"/").rstrip(b" ")
        names = _ROW_ATTRIBUTE.findall(written)
        is_known = _ROW_ATTRIBUTE.sub(b"", written) == b""
        if not is_known or len(set(names)) != len(names) or b"r" in names:
            raise NotPlainError
        prefixes = [name.partition(b":")[0] for name in names if b":" in name]
        if b"&" in written or len(prefixes) > 1 or not self._prefixes.issuperset(prefixes):
            raise NotPlainError
        self._check(dict(_ATTRIBUTE.findall(written.decode("utf-8", "replace"))))
        if len(self._known_attributes) < _MAX_KNOWN:
            self._known_attributes.add(attributes)


@lru_cache(maxsize=64)
def _leading_rows(data: bytes) -> tuple[Sequence[int], int, frozenset[bytes]]:
    """The numbers of complete rows, their size and attributes, see :meth:`RowGrammar.rows`."""
    # Remembered, since a gold is usually read several times in a row. No text and no attribute
    # holds a "<", so that the tags of rows can be searched for without reading the cells.
    match = _ROWS.match(data)
    rows = match[0] if match is not None else b""
    numbers = tuple(map(int, _NUMBERS.findall(rows)))
    if numbers:
        if not all(map(operator.lt, numbers, numbers[1:])) or numbers[-1] > MAX_ROW:
            raise NotPlainError
        _check_columns(rows, len(numbers))
        check_characters(rows)
    return numbers, len(rows), frozenset(_ATTRIBUTES.findall(rows))


def _check_columns(rows: bytes, count: int) -> None:
    """Makes sure that the cells of each row are in ascending order and on the sheet.

    Most bytes are deleted first, so that few rows differ. The tags of cells and rows remain
    recognizable. If another tag looks like that of a cell now, its letters can only make a row
    fail; if one looks like that of a row, the count differs.
    """
    cells_of_rows = rows.translate(None, _NOT_COLUMNS).split(b'<rowr"')[1:]
    if len(cells_of_rows) != count:
        raise NotPlainError
    for columns in {tuple(_LETTERS.findall(cells)) for cells in {*cells_of_rows}}:
        numbers = [column_number(letters.decode()) for letters in columns]
        if not all(map(operator.lt, numbers, numbers[1:])) or max(numbers, default=0) > MAX_COLUMN:
            raise NotPlainError


def start_of_row(rows: bytes, number: int) -> int:
    """Where a row begins among rows in the plain form that include it."""
    return rows.index(b'<row r="%d"' % number)


def check_characters(data: bytes) -> None:
    """Makes sure that the bytes of rows are well-formed text without declarations.

    Raises:
        NotPlainError: they hold a character or an entity that XML does not allow, end a CDATA
            section, declare a namespace, or are not UTF-8.
    """
    # Searching for single bytes is many times as fast as for several, and these are rare.
    if (
        _DECLARES in data
        or (b"]" in data and b"]]>" in data)
        or (b"&" in data and _REFERENCE.search(data) is not None)
        or len(data.translate(None, _NOT_XML)) != len(data)
    ):
        raise NotPlainError
    if not data.isascii():
        if b"\xef\xbf\xbe" in data or b"\xef\xbf\xbf" in data:
            raise NotPlainError
        try:
            data.decode()
        except UnicodeDecodeError:
            raise NotPlainError from None


_ROOT = re.compile(
    rb"""(?:\xef\xbb\xbf)?(?:<\?xml\s++([^<>?]*+)\?>)?\s*+"""
    rb"""(<worksheet(?:\s++[^\s=<>"'/]++\s*+=\s*+(?:"[^"<&]*+"|'[^'<&]*+'))*+\s*+>)"""
)
_DEFAULT_NAMESPACE = re.compile(rb"""\sxmlns\s*+=\s*+(?:"([^"]*+)"|'([^']*+)')""")
_DECLARATION = re.compile(
    rb"""version=["']1\.0["'](?:\s++encoding=["']utf-8["'])?(?:\s++standalone=["'](?:yes|no)["'])?\s*""",
    re.IGNORECASE,
)
_SHEET_DATA = re.compile(rb"<sheetData\s*+(/?)>")
_END_OF_ROWS = re.compile(rb"\s*+</sheetData\s*+>")
_FILLING = tuple(f'"{kind}"'.encode() for kind in sorted(FILLING_KINDS))
_MASTER = re.compile(
    rb'<c r="([A-Z]++)([0-9]++)"[^<>]*+><f(?=[^<>]* t="shared")([^<>]*+)(?<!/)>(?!<)'
)
_MAINS = frozenset({MAIN.encode(), STRICT_MAIN.encode()})
MAX_PASSED_BYTES = 16 << 20
"""Largest worksheet, in inflated bytes, that is read to its end even if only the first rows are
requested."""

MAX_KEPT_BYTES = 4 << 20
"""Largest worksheet, in inflated bytes, that is kept for another pass (:class:`KeptPart`)."""

_MAX_HEAD_BYTES = 4 << 20
_MAX_ROW_BYTES = 1 << 20


@dataclass(slots=True)
class KeptPart:
    """The bytes of a worksheet of which one pass has shown that all rows are in the plain form.

    Another pass over the whole sheet reads these, so that nothing is inflated and checked twice.

    Attributes:
        root: the start tag of the worksheet.
        before: the bytes between that tag and the rows.
        rows: pieces of complete rows, and the number of the last row of each piece.
        behind: the bytes after the rows; empty until the worksheet has been read to its end.
    """

    root: bytes = b""
    before: bytes = b""
    rows: list[tuple[bytes, int]] = field(default_factory=list)
    behind: bytes = b""


def scan_sheet(
    package: Package,
    part: str,
    windows: Sequence[Window],
    formats: NumberFormats,
    *,
    date_1904: bool,
    blanks: bool,
    kept: KeptPart | None = None,
) -> SheetCells:
    """Reads the stored cells of some rectangles of a worksheet, its merged ranges and hyperlinks.

    Args:
        package: the workbook.
        part: name of the worksheet's part.
        windows: the rectangles.
        formats: number formats, which decide which numbers are dates.
        date_1904: whether serial dates count from 1904.
        blanks: keep stored cells without value and formula too, for their looks.
        kept: the bytes of an earlier pass; if it is empty, this pass keeps its bytes there.

    Raises:
        WorkbookError: the worksheet is missing, broken or over a limit.
    """
    scanner = SheetScanner(package, part, windows, formats, date_1904=date_1904, blanks=blanks)
    try:
        if kept is not None and kept.behind and [*windows] == [WHOLE_SHEET]:
            return scanner.scan_kept(kept)
        if kept is not None and not kept.behind and package.inflated_size(part) <= MAX_KEPT_BYTES:
            return scanner.scan_skipping(kept=kept)
        return scanner.scan_skipping()
    except NotPlainError:
        return scanner.scan_all()


def scan_first_rows(
    package: Package, part: str, rows: int, formats: NumberFormats, *, date_1904: bool
) -> SheetCells:
    """Reads the stored cells of the first rows of a worksheet, and the elements around its rows.

    The rows below are inflated but not read. If the worksheet is longer than
    :data:`MAX_PASSED_BYTES`, they are not even inflated; then its merged ranges and hyperlinks are
    not known.

    Args:
        package: the workbook.
        part: name of the worksheet's part.
        rows: how many rows, counted from row 1.
        formats: number formats, which decide which numbers are dates.
        date_1904: whether serial dates count from 1904.

    Raises:
        WorkbookError: the worksheet is missing, the part that is read is broken, or a limit is
            exceeded.
    """
    windows = [Window(1, 1, rows, COLUMN_MASK)]
    scanner = SheetScanner(package, part, windows, formats, date_1904=date_1904, blanks=False)
    try:
        return scanner.scan_skipping(
            below=False, tail=package.inflated_size(part) <= MAX_PASSED_BYTES
        )
    except NotPlainError:
        return scanner.scan_all()


class SheetScanner:
    """One pass over a worksheet that skips rows which are not requested; see the functions above.

    Args:
        package: the workbook.
        part: name of the worksheet's part.
        windows: the rectangles whose cells are kept.
        formats: number formats, which decide which numbers are dates.
        date_1904: whether serial dates count from 1904.
        blanks: keep stored cells without value and formula too, for their looks.
    """

    def __init__(
        self,
        package: Package,
        part: str,
        windows: Sequence[Window],
        formats: NumberFormats,
        *,
        date_1904: bool,
        blanks: bool,
    ) -> None:
        self._package = package
        self._part = part
        self._windows = windows
        self._formats = formats
        self._date_1904 = date_1904
        self._blanks = blanks
        self._first_row = min((window.min_row for window in windows), default=1)
        self._last_row = max((window.max_row for window in windows), default=0)

    def collector(self) -> CellCollector:
        """Makes the collector for this pass; every attempt needs a new one."""
        return CellCollector(
            self._windows,
            self._formats,
            date_1904=self._date_1904,
            blanks=self._blanks,
            part=self._part,
            limits=self._package.budget.limits,
            listener=self.listener(),
            row_listener=self.row_listener(),
        )

    def listener(self) -> TailListener | None:
        """The listener for the elements around the rows, instead of the usual collector."""
        return None

    def row_listener(self) -> RowListener | None:
        """The listener for the tags of the rows."""
        return None

    # -- parsing everything ----------------------------------------------------------------------

    def scan_all(self) -> SheetCells:
        """Parses the whole part."""
        collector = self.collector()
        parser = self._parser(collector)
        for chunk in self._package.chunks(self._part):
            parser.feed(chunk)
            collector.check(self._package.budget)
        parser.feed(b"", final=True)
        return collector.finish()

    def _parser(self, collector: CellCollector) -> PartParser:
        parser = PartParser(self._package, self._part)
        collector.install(parser)
        return parser

    # -- parsing only the requested rows ---------------------------------------------------------

    def scan_kept(self, kept: KeptPart) -> SheetCells:
        """Reads every row of a worksheet whose bytes an earlier pass has checked and kept."""
        started = time.thread_time()
        collector = self.collector()
        plain = self._plain_rows()
        for rows, last in kept.rows:
            _note_formulas(rows, collector)
            self._read_some_rows(rows, last, kept.root, plain, collector)
        self._parse_around(iter(()), kept.root, kept.before, kept.behind, collector, has_tail=True)
        self._package.budget.take_seconds(time.thread_time() - started)
        return collector.finish()

    def _plain_rows(self) -> PlainRows:
        return PlainRows(
            self._windows, self._formats, date_1904=self._date_1904, blanks=self._blanks
        )

    def scan_skipping(
        self, *, below: bool = True, tail: bool = True, kept: KeptPart | None = None
    ) -> SheetCells:
        """Reads the requested rows as text, and parses the elements around the rows.

        Args:
            below: make sure that the rows below the requested ones are in the plain form, since
                they could otherwise hold requested cells.
            tail: read the elements after the rows; if False, the rows below are not even inflated.
            kept: where the bytes are kept; None to keep none.

        Raises:
            NotPlainError: something is not in the plain form.
        """
        chunks = self._package.chunks(self._part)
        root, before, rest = self._read_head(chunks)
        collector = self.collector()
        data = _SHEET_DATA.match(rest)
        if data is None:
            raise NotPlainError
        rest = rest[data.end() :]
        has_tail = True
        pieces: list[tuple[bytes, int]] = []
        if not data[1]:
            keep = _let_go if kept is None else pieces.append
            rest = self._read_rows(chunks, rest, root, collector, below=below, keep=keep)
            if not below and collector.cells.rows_below:
                has_tail = tail
                rest = self._pass_rows_below(chunks, rest) if tail else b""
        if kept is not None:
            rest += b"".join(chunks)
            rows = [(piece, last) for piece, last in pieces if piece]
            kept.root, kept.before, kept.rows, kept.behind = root, before, rows, rest
        self._parse_around(chunks, root, before, rest, collector, has_tail=has_tail)
        return collector.finish()

    def _read_head(self, chunks: Iterator[bytes]) -> tuple[bytes, bytes, bytes]:
        """The root's start tag, the bytes after it, and the bytes from ``sheetData`` on."""
        head = b""
        for chunk in chunks:
            head += chunk
            match = _ROOT.match(head)
            if match is None:
                raise NotPlainError
            declaration, root = match.groups()
            _check_root(declaration or b"", root)
            start = head.find(b"<sheetData", match.end())
            if start >= 0 and head.find(b">", start) >= 0:
                before = head[match.end() : start]
                _check_plain(before)
                return root, before, head[start:]
            if len(head) > _MAX_HEAD_BYTES:
                break
        raise NotPlainError

    def _read_rows(
        self,
        chunks: Iterator[bytes],
        pending: bytes,
        root: bytes,
        collector: CellCollector,
        *,
        below: bool,
        keep: Callable[[tuple[bytes, int]], None],
    ) -> bytes:
        """Reads all rows, or only the requested ones, and returns the bytes that follow them."""
        plain = self._plain_rows() if self._windows else None
        grammar = RowGrammar(collector.check_row, root)
        while True:
            numbers, read = grammar.rows(pending, last=None if below else self._last_row)
            if collector.row_listener is not None:
                for number, written in _TAGS.findall(read):
                    collector.row_listener.on_plain_row(int(number), written)
            _note_formulas(read, collector)
            if numbers:
                keep((read, numbers[-1]))
            first = bisect.bisect_left(numbers, self._first_row)
            last = bisect.bisect_right(numbers, self._last_row)
            if first < last and plain is not None:
                begin = start_of_row(read, numbers[first])
                end = start_of_row(read, numbers[last]) if last < len(numbers) else None
                self._read_some_rows(read[begin:end], numbers[last - 1], root, plain, collector)
            if last < len(numbers):
                collector.cells.rows_below = True
            pending = pending[len(read) :]
            if not below and collector.cells.rows_below:
                return pending
            if (closing := _END_OF_ROWS.match(pending)) is not None:
                return pending[closing.end() :]
            if _is_other(pending) or len(pending) > _MAX_ROW_BYTES:
                raise NotPlainError
            chunk = next(chunks, None)
            if chunk is None:
                raise WorkbookError(f"{self._part} ends among its rows")
            pending += chunk

    def _pass_rows_below(self, chunks: Iterator[bytes], pending: bytes) -> bytes:
        """Skips the rest of the rows and returns the bytes after their end tag."""
        while True:
            end = _END_OF_ROWS.search(pending)
            _check_plain(pending[: end.start()] if end else pending)
            if end is not None:
                return pending[end.end() :]
            chunk = next(chunks, None)
            if chunk is None:
                raise WorkbookError(f"{self._part} ends among its rows")
            pending = pending[pending.rfind(b"<") :] + chunk

    def _read_some_rows(
        self,
        rows: bytes,
        last: int,
        root: bytes,
        plain: PlainRows,
        collector: CellCollector,
    ) -> None:
        """Reads requested rows; ``last`` is the number of the last one."""
        kept = plain.take(rows.decode(), collector.cells)
        if kept is None:
            parser = self._parser(collector)
            parser.feed(root + b"<sheetData>" + rows + b"</sheetData></worksheet>", final=True)
        else:
            collector.row = last
            collector.kept_chars += kept
        collector.check(self._package.budget)

    def _parse_around(
        self,
        chunks: Iterator[bytes],
        root: bytes,
        before: bytes,
        behind: bytes,
        collector: CellCollector,
        *,
        has_tail: bool,
    ) -> None:
        """Parses the elements before and after the rows, as a document without rows."""
        parser = self._parser(collector)
        parser.feed(root + before + b"<sheetData/>")
        if not has_tail:
            return
        chunk: bytes | None = behind
        while chunk is not None:
            parser.feed(chunk)
            collector.check(self._package.budget)
            chunk = next(chunks, None)
        parser.feed(b"", final=True)


def _let_go(_: tuple[bytes, int]) -> None:
    """Discards the bytes of a pass if no further pass will follow."""


def _note_formulas(rows: bytes, collector: CellCollector) -> None:
    """Records formulas in plain rows that other cells share or that fill other cells."""
    if b"<f " not in rows:
        return
    if not collector.cells.fills and any(mark in rows for mark in _FILLING):
        collector.cells.fills = True
    if b'"shared"' in rows:
        for letters, digits, attributes in _MASTER.findall(rows):
            named = dict(ATTRIBUTE.findall(attributes.decode()))
            key = cell_key(int(digits), column_number(letters.decode()))
            collector.note_master(key, named.get("si"), named.get("ref"))


def _check_root(declaration: bytes, root: bytes) -> None:
    """Makes sure that names without a prefix are in the main namespace, in UTF-8."""
    namespaces = [one or other for one, other in _DEFAULT_NAMESPACE.findall(root)]
    if (
        (declaration and _DECLARATION.fullmatch(declaration) is None)
        or len(namespaces) != 1
        or namespaces[0] not in _MAINS
    ):
        raise NotPlainError


def _check_plain(data: bytes) -> None:
    """Makes sure that no comment, CDATA section or processing instruction begins in the bytes."""
    # Searching for the second characters alone is many times as fast, and they are rare.
    if (b"!" in data and b"<!" in data) or (b"?" in data and b"<?" in data):
        raise NotPlainError


def _is_other(pending: bytes) -> bool:
    """Whether these bytes already rule out plain rows, whatever follows them."""
    return b"</row>" in pending or b"</sheetData" in pending or b"<!" in pending


_Listener = TypeVar("_Listener", bound=TailListener)


def scan_surroundings(package: Package, part: str, listener: Callable[[], _Listener]) -> _Listener:
    """Calls a listener for every element before and after the rows of a worksheet.

    Args:
        package: the workbook.
        part: name of the worksheet's part.
        listener: makes a listener. A part that turns out to need a full parse is read twice, each
            time with a new listener.

    Returns:
        The listener that was called for the whole part.

    Raises:
        WorkbookError: the worksheet is missing, broken or over a limit.
    """
    scan = _Surroundings(package, part, listener)
    try:
        scan.scan_skipping()
    except NotPlainError:
        scan.scan_all()
    return scan.current


class _Surroundings(SheetScanner, Generic[_Listener]):
    """A pass over a worksheet that keeps no cell."""

    current: _Listener

    def __init__(self, package: Package, part: str, make: Callable[[], _Listener]) -> None:
        super().__init__(package, part, (), NumberFormats(), date_1904=False, blanks=False)
        self._make = make

    def listener(self) -> _Listener:
        self.current = self._make()
        return self.current
