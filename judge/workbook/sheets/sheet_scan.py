"""One pass over a worksheet's XML: to the wanted rows, through them, and past the others.

Rows in their plain form (:mod:`judge.workbook.sheets.row_grammar`) are skipped, or read as text,
which is several times faster than parsing them. What is around them is parsed. If anything in a
worksheet is not plain, the whole part is parsed, by namespaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from judge.errors import WorkbookError
from judge.workbook.address import COLUMN_MASK, Window, cell_key, column_number
from judge.workbook.namespaces import MAIN, STRICT_MAIN
from judge.workbook.number_formats import NumberFormats
from judge.workbook.package import Package
from judge.workbook.sheets.plain_rows import PlainRows
from judge.workbook.sheets.raw_formula import ATTRIBUTE, FILLING_KINDS
from judge.workbook.sheets.row_grammar import NotPlainError, Row, RowGrammar, check_characters
from judge.workbook.sheets.sheet_cells import CellCollector, RowListener, SheetCells
from judge.workbook.sheets.sheet_tail import TailListener
from judge.workbook.xml_parts import PartParser

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
"""Inflated size of a worksheet up to which a reader of its first rows skips through the others."""

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
    """The stored cells of some rectangles of a worksheet, its merged ranges and hyperlinks.

    Args:
        package: the workbook.
        part: name of the worksheet's part.
        windows: the rectangles.
        formats: number formats, which decide what is a date.
        date_1904: whether serial dates count from 1904.
        blanks: keep stored cells without value and formula too, for their looks.

    Raises:
        WorkbookError: the worksheet is missing, broken or over a limit.
    """
    scanner = SheetScanner(package, part, windows, formats, date_1904=date_1904, blanks=blanks)
    try:
        return scanner.scan_skipping()
    except NotPlainError:
        return scanner.scan_all()


def scan_first_rows(
    package: Package, part: str, rows: int, formats: NumberFormats, *, date_1904: bool
) -> SheetCells:
    """The stored cells of the first rows of a worksheet, and what precedes and follows its rows.

    Rows below are inflated but not read, and not even inflated if the worksheet is longer than
    :data:`MAX_PASSED_BYTES`: then its merged ranges and hyperlinks are not known.

    Args:
        package: the workbook.
        part: name of the worksheet's part.
        rows: how many rows, counted from row 1.
        formats: number formats, which decide what is a date.
        date_1904: whether serial dates count from 1904.

    Raises:
        WorkbookError: the worksheet is missing, broken as far as it is read, or over a limit.
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
    """One pass over a worksheet, skipping what is not wanted; see the functions above.

    Args:
        package: the workbook.
        part: name of the worksheet's part.
        windows: the rectangles whose cells are kept.
        formats: number formats, which decide what is a date.
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
        """What the pass keeps; a new one for each attempt."""
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
        """What hears the elements around the rows, instead of what is kept of them otherwise."""
        return None

    def row_listener(self) -> RowListener | None:
        """What hears the tags of the rows."""
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

    # -- parsing what is wanted ------------------------------------------------------------------

    def scan_skipping(self, *, below: bool = True, tail: bool = True) -> SheetCells:
        """Reads the wanted rows as text, and parses what precedes and follows the rows.

        Args:
            below: make sure that the rows below the wanted ones are in their plain form: they
                could hold wanted cells otherwise.
            tail: read what follows the rows; without it, rows below are not even inflated.

        Raises:
            NotPlainError: something is not in its plain form.
        """
        chunks = self._package.chunks(self._part)
        root, before, rest = self._read_head(chunks)
        collector = self.collector()
        data = _SHEET_DATA.match(rest)
        if data is None:
            raise NotPlainError
        rest = rest[data.end() :]
        whole = True
        if not data[1]:
            rest = self._read_rows(chunks, rest, root, collector, below=below)
            if not below and collector.cells.rows_below:
                whole = tail
                rest = self._pass_rows_below(chunks, rest) if tail else b""
        self._parse_around(chunks, root, before, rest, collector, whole=whole)
        return collector.finish()

    def _read_head(self, chunks: Iterator[bytes]) -> tuple[bytes, bytes, bytes]:
        """The root's start tag, the bytes behind it, and those from ``sheetData`` on."""
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
    ) -> bytes:
        """Reads all rows, or those that are wanted, and returns the bytes that follow them."""
        plain = (
            PlainRows(self._windows, self._formats, date_1904=self._date_1904, blanks=self._blanks)
            if self._windows
            else None
        )
        grammar = RowGrammar(collector.check_row, root)
        while True:
            position = 0
            wanted: list[Row] = []
            for row in grammar.rows(pending):
                position = row.end
                if row.number > self._last_row:
                    collector.cells.rows_below = True
                    if not below:
                        break
                elif row.number >= self._first_row:
                    wanted.append(row)
                grammar.check_columns(pending, row.start, row.end)
                if collector.row_listener is not None:
                    collector.row_listener.hear_plain(row.number, row.attributes)
            check_characters(read := pending[:position])
            _note_formulas(read, collector)
            if wanted and plain is not None:
                self._read_some_rows(pending, wanted, root, plain, collector)
            pending = pending[position:]
            if not below and collector.cells.rows_below:
                return pending
            if (end := _END_OF_ROWS.match(pending)) is not None:
                return pending[end.end() :]
            if _is_other(pending) or len(pending) > _MAX_ROW_BYTES:
                raise NotPlainError
            chunk = next(chunks, None)
            if chunk is None:
                raise WorkbookError(f"{self._part} ends among its rows")
            pending += chunk

    def _pass_rows_below(self, chunks: Iterator[bytes], pending: bytes) -> bytes:
        """Passes over the rest of the rows and returns the bytes after their end tag."""
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
        data: bytes,
        rows: Sequence[Row],
        root: bytes,
        plain: PlainRows,
        collector: CellCollector,
    ) -> None:
        """Reads wanted rows, which follow each other among some bytes."""
        written = data[rows[0].start : rows[-1].end]
        kept = plain.take(written.decode(), collector.cells)
        if kept is None:
            parser = self._parser(collector)
            parser.feed(root + b"<sheetData>" + written + b"</sheetData></worksheet>", final=True)
        else:
            collector.row = rows[-1].number
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
        whole: bool,
    ) -> None:
        """Parses what precedes and follows the rows, as a document without them."""
        parser = self._parser(collector)
        parser.feed(root + before + b"<sheetData/>")
        if not whole:
            return
        chunk: bytes | None = behind
        while chunk is not None:
            parser.feed(chunk)
            collector.check(self._package.budget)
            chunk = next(chunks, None)
        parser.feed(b"", final=True)


def _note_formulas(rows: bytes, collector: CellCollector) -> None:
    """Takes note of formulas that concern other cells than their own, in rows in plain form."""
    if not collector.cells.fills and any(mark in rows for mark in _FILLING):
        collector.cells.fills = True
    if b'"shared"' in rows:
        for letters, digits, attributes in _MASTER.findall(rows):
            given = dict(ATTRIBUTE.findall(attributes.decode()))
            key = cell_key(int(digits), column_number(letters.decode()))
            collector.note_master(key, given.get("si"), given.get("ref"))


def _check_root(declaration: bytes, root: bytes) -> None:
    """Makes sure that names without a prefix are in the main namespace, in UTF-8."""
    found = [one or other for one, other in _DEFAULT_NAMESPACE.findall(root)]
    if (
        (declaration and _DECLARATION.fullmatch(declaration) is None)
        or len(found) != 1
        or found[0] not in _MAINS
    ):
        raise NotPlainError


def _check_plain(data: bytes) -> None:
    """Makes sure that no comment, CDATA section or processing instruction begins among bytes."""
    # The second characters are rare, and single ones are found many times as fast as pairs.
    if (b"!" in data and b"<!" in data) or (b"?" in data and b"<?" in data):
        raise NotPlainError


def _is_other(pending: bytes) -> bool:
    """Whether bytes that are not rows in their plain form cannot become some by what follows."""
    return b"</row>" in pending or b"</sheetData" in pending or b"<!" in pending
