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
from functools import lru_cache
from typing import Generic, TypeVar

from judge.errors import WorkbookError
from judge.workbook.address import (
    COLUMN_MASK,
    MAX_COLUMN,
    MAX_ROW,
    Window,
    cell_key,
    column_number,
)
from judge.workbook.number_formats import NumberFormats
from judge.workbook.package import Package
from judge.workbook.sheets.plain_rows import (
    FirstRead,
    PlainRows,
    PlainSheet,
    Requested,
    RowPiece,
    recent_sheets,
)
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

    def rows(self, data: bytes, *, last: int | None = None) -> RowPiece:
        """Finds the complete rows at the beginning of some bytes.

        Bytes after the last one are left: part of a row, or the end of the rows.

        Args:
            data: the bytes.
            last: the rows after the first one below this number are left, too; None for no limit.

        Raises:
            NotPlainError: the rows are not in ascending order, or have unusual attributes.
        """
        piece = _leading_rows(data)
        numbers = piece.numbers
        if not numbers:
            return piece
        if numbers[0] <= self._last:
            raise NotPlainError
        if last is not None and (count := bisect.bisect_right(numbers, last) + 1) < len(numbers):
            rows = data[: start_of_row(data, numbers[count])]
            piece = RowPiece(rows, numbers[:count], dict.fromkeys(_ATTRIBUTES.findall(rows)))
        self.check(piece)
        self._last = piece.numbers[-1]
        return piece

    def check(self, piece: RowPiece) -> None:
        """Checks those attributes of rows that no earlier row has.

        Raises:
            NotPlainError: a row has unusual attributes.
        """
        for written in piece.attributes:
            if written not in self._known_attributes:
                self._check_attributes(written)

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


def _leading_rows(data: bytes) -> RowPiece:
    """The complete rows at the beginning of some bytes, see :meth:`RowGrammar.rows`."""
    # No text and no attribute holds a "<", so that the tags of rows can be searched for without
    # reading the cells.
    match = _ROWS.match(data)
    rows = match[0] if match is not None else b""
    numbers = tuple(map(int, _NUMBERS.findall(rows)))
    if numbers:
        if not all(map(operator.lt, numbers, numbers[1:])) or numbers[-1] > MAX_ROW:
            raise NotPlainError
        _check_columns(rows, len(numbers))
        check_characters(rows)
    return RowPiece(rows, numbers, dict.fromkeys(_ATTRIBUTES.findall(rows)))


@lru_cache(maxsize=MAX_COLUMN)
def _column(letters: bytes) -> int:
    return column_number(letters.decode())


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
        numbers = [*map(_column, columns)]
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
_MASTER = re.compile(rb'<f(?=[^<>]* t="shared")([^<>]*+)(?<!/)>(?!<)')
_CELL_OF_FORMULA = re.compile(rb'<c r="([A-Z]++)([0-9]++)"')
_MAINS = frozenset({MAIN.encode(), STRICT_MAIN.encode()})
MAX_PASSED_BYTES = 16 << 20
"""Largest worksheet, in inflated bytes, that is read to its end even if only the first rows are
requested."""

_MAX_KEPT_BYTES = 4 << 20
_MAX_KEPT_CELLS = 5_000

_MAX_HEAD_BYTES = 4 << 20
_MAX_ROW_BYTES = 1 << 20


def scan_sheet(
    package: Package,
    part: str,
    windows: Sequence[Window],
    formats: NumberFormats,
    *,
    date_1904: bool,
    blanks: bool,
) -> SheetCells:
    """Reads the stored cells of some rectangles of a worksheet, its merged ranges and hyperlinks.

    Args:
        package: the workbook.
        part: name of the worksheet's part.
        windows: the rectangles.
        formats: number formats, which decide which numbers are dates.
        date_1904: whether serial dates count from 1904.
        blanks: keep stored cells without value and formula too, for their looks.

    Raises:
        WorkbookError: the worksheet is missing, broken or over a limit.
    """
    scanner = SheetScanner(package, part, windows, formats, date_1904=date_1904, blanks=blanks)
    try:
        if not 0 < package.inflated_size(part) <= _MAX_KEPT_BYTES:
            return scanner.scan_skipping()
        key = package.packed_form(part)
        sheet = recent_sheets.get(key)
        if sheet is not None and package.budget.is_mostly_left:
            return scanner.scan_again(sheet)
        sheet = PlainSheet(package.inflated_size(part))
        cells = scanner.scan_skipping(sheet)
    except NotPlainError:
        return scanner.scan_all()
    recent_sheets.keep(key, sheet)
    return cells


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

    Attributes:
        root: the start tag of the worksheet, once it was read as text.
    """

    root: bytes

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

    @property
    def _requested(self) -> Requested:
        return Requested(tuple(self._windows), self._formats.digest, self._date_1904, self._blanks)

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

    def scan_again(self, sheet: PlainSheet) -> SheetCells:
        """Reads a worksheet that an earlier pass has checked."""
        started = time.thread_time()
        budget = self._package.budget
        budget.take_bytes(self._package.inflated_size(self._part))
        if sheet.namespace is not None:
            self._package.agree_on_namespace(sheet.namespace, self._part)
        self.root = sheet.root
        collector = self.collector()
        first_read = sheet.first_read
        if first_read is not None and first_read.requested == self._requested:
            collector.cells = first_read.cells.copy()
            collector.kept_chars = first_read.chars
        else:
            collector.cells.fills = sheet.fills
            collector.cells.tail = sheet.tail
            plain = self._plain_rows() if self._windows else None
            grammar = RowGrammar(collector.check_row, self.root)
            for piece in sheet.pieces:
                grammar.check(piece)
                self._read_piece(piece, plain, collector)
        collector.check(budget)
        budget.take_seconds(time.thread_time() - started)
        return collector.finish()

    def _plain_rows(self) -> PlainRows:
        return PlainRows(
            self._windows, self._formats, date_1904=self._date_1904, blanks=self._blanks
        )

    def scan_skipping(
        self, sheet: PlainSheet | None = None, *, below: bool = True, tail: bool = True
    ) -> SheetCells:
        """Reads the requested rows as text, and parses the elements around the rows.

        Args:
            sheet: receives what another pass needs; None for none.
            below: make sure that the rows below the requested ones are in the plain form, since
                they could otherwise hold requested cells.
            tail: read the elements after the rows; if False, the rows below are not even inflated.

        Raises:
            NotPlainError: something is not in the plain form.
        """
        chunks = self._package.chunks(self._part)
        self.root, before, rest = self._read_head(chunks)
        collector = self.collector()
        data = _SHEET_DATA.match(rest)
        if data is None:
            raise NotPlainError
        rest = rest[data.end() :]
        has_tail = True
        if not data[1]:
            keep = _let_go if sheet is None else sheet.pieces.append
            rest = self._read_rows(chunks, rest, collector, below=below, keep=keep)
            if not below and collector.cells.rows_below:
                has_tail = tail
                rest = self._pass_rows_below(chunks, rest) if tail else b""
        if sheet is not None:
            rest += b"".join(chunks)
        self._parse_around(chunks, before, rest, collector, has_tail=has_tail)
        cells = collector.finish()
        if sheet is not None:
            sheet.root, sheet.tail, sheet.fills = self.root, cells.tail, cells.fills
            sheet.namespace = self._package.namespace_of(self._part)
            if cells.size <= _MAX_KEPT_CELLS:
                sheet.first_read = FirstRead(self._requested, cells.copy(), collector.taken_chars)
        return cells

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
        collector: CellCollector,
        *,
        below: bool,
        keep: Callable[[RowPiece], None],
    ) -> bytes:
        """Reads all rows, or only the requested ones, and returns the bytes that follow them."""
        plain = self._plain_rows() if self._windows else None
        grammar = RowGrammar(collector.check_row, self.root)
        while True:
            piece = grammar.rows(pending, last=None if below else self._last_row)
            if collector.row_listener is not None:
                for number, written in _TAGS.findall(piece.data):
                    collector.row_listener.on_plain_row(int(number), written)
            _note_formulas(piece.data, collector)
            if piece.numbers:
                keep(piece)
                self._read_piece(piece, plain, collector)
            pending = pending[len(piece.data) :]
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

    def _read_piece(
        self, piece: RowPiece, plain: PlainRows | None, collector: CellCollector
    ) -> None:
        """Reads the requested rows of a piece."""
        numbers = piece.numbers
        first = bisect.bisect_left(numbers, self._first_row)
        last = bisect.bisect_right(numbers, self._last_row)
        if last < len(numbers):
            collector.cells.rows_below = True
        if first >= last or plain is None:
            return
        begin = start_of_row(piece.data, numbers[first]) if first else 0
        end = start_of_row(piece.data, numbers[last]) if last < len(numbers) else None
        rows = piece.data[begin:end]
        kept = plain.take(rows.decode(), collector.cells)
        if kept is None:
            parser = self._parser(collector)
            parser.feed(self.root + b"<sheetData>" + rows + b"</sheetData></worksheet>", final=True)
        else:
            collector.row = numbers[last - 1]
            collector.kept_chars += kept
        collector.check(self._package.budget)

    def _parse_around(
        self,
        chunks: Iterator[bytes],
        before: bytes,
        behind: bytes,
        collector: CellCollector,
        *,
        has_tail: bool,
    ) -> None:
        """Parses the elements before and after the rows, as a document without rows."""
        parser = self._parser(collector)
        parser.feed(self.root + before + b"<sheetData/>")
        if not has_tail:
            return
        chunk: bytes | None = behind
        while chunk is not None:
            parser.feed(chunk)
            collector.check(self._package.budget)
            chunk = next(chunks, None)
        parser.feed(b"", final=True)


def _let_go(_: RowPiece) -> None:
    """Keeps no rows."""


def _note_formulas(rows: bytes, collector: CellCollector) -> None:
    """Records formulas in plain rows that other cells share or that fill other cells."""
    if b"<f " not in rows:
        return
    if not collector.cells.fills and any(mark in rows for mark in _FILLING):
        collector.cells.fills = True
    if b'"shared"' in rows:
        for master in _MASTER.finditer(rows):
            named = dict(ATTRIBUTE.findall(master[1].decode()))
            cell = _CELL_OF_FORMULA.match(rows, rows.rfind(b"<c ", 0, master.start()))
            assert cell is not None
            key = cell_key(int(cell[2]), column_number(cell[1].decode()))
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
