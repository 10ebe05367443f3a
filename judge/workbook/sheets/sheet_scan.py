"""One pass over a worksheet's XML: to the wanted rows, through them, and past the others.

Rows above and below the wanted ones are skipped as bytes, and wanted rows that are written as usual
are read as text, which is several times faster than parsing them. That is exact as long as these
bytes contain no comment, CDATA section or processing instruction: in well-formed XML without these,
``<row`` is always a tag. Rows that are written in any other way are parsed. If there is a comment
or the like, and for encodings other than UTF-8, the whole part is parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from judge.errors import WorkbookError
from judge.workbook.address import COLUMN_MASK, Window
from judge.workbook.number_formats import NumberFormats
from judge.workbook.package import Package
from judge.workbook.sheets.plain_rows import PlainRows
from judge.workbook.sheets.sheet_cells import CellCollector, SheetCells
from judge.workbook.xml_parts import check_token, feed, new_parser

_ATTRIBUTES = rb"""(?:\s+[^\s=<>"']+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*\s*"""
_ROOT = re.compile(
    rb"""(?:\xef\xbb\xbf)?\s*+(?:<\?xml\s([^>]*)\?>)?\s*+"""
    rb"""(<(?:([A-Za-z_][\w.\-]*:)?)worksheet""" + _ATTRIBUTES + rb""">)"""
)
_ENCODING = re.compile(rb"""encoding\s*=\s*["']([^"']*)["']""")
_ROW_NUMBER = re.compile(rb"""\sr\s*=\s*["'](\d+)["']""")
_NUMBERED_ROW = re.compile(rb'<row r="([0-9]+)"')
_ROW_START = re.compile(rb'<row(?: r="([0-9]+)")?')
_READABLE = {b"utf-8", b"utf8", b"us-ascii", b"ascii"}
LONGEST_PASSED_BYTES = 16 << 20
"""Inflated size of a worksheet up to which a reader of its first rows skips through the others."""

_LONGEST_HEAD_BYTES = 4 << 20
_LONGEST_ROW_BYTES = 4 << 20


class NotSkippableError(Exception):
    """The part holds something that cannot be skipped as bytes."""


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
    except NotSkippableError:
        return scanner.scan_all()


def scan_first_rows(
    package: Package, part: str, rows: int, formats: NumberFormats, *, date_1904: bool
) -> SheetCells:
    """The stored cells of the first rows of a worksheet, and what precedes and follows its rows.

    Rows below are inflated but not read, and not even inflated if the worksheet is longer than
    :data:`LONGEST_PASSED_BYTES`: then its merged ranges and hyperlinks are not known.

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
            head=True, tail=package.inflated_size(part) <= LONGEST_PASSED_BYTES
        )
    except NotSkippableError:
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
        self._last_row = max((each.max_row for each in windows), default=0)

    def collector(self) -> CellCollector:
        """What the pass keeps; a new one for each attempt."""
        return CellCollector(
            self._windows,
            self._formats,
            date_1904=self._date_1904,
            blanks=self._blanks,
            part=self._part,
            limits=self._package.budget.limits,
        )

    # -- parsing everything ----------------------------------------------------------------------

    def scan_all(self) -> SheetCells:
        """Parses the whole part."""
        collector = self.collector()
        parser = new_parser()
        budget = self._package.budget

        def on_root(tag: str, _: dict[str, str]) -> None:
            collector.install(parser, tag.rpartition(":")[0] + ":" if ":" in tag else "")

        parser.StartElementHandler = on_root
        fed = 0
        for chunk in self._package.chunks(self._part):
            feed(parser, chunk, self._part)
            fed += len(chunk)
            check_token(parser, fed, self._part, budget.limits)
            collector.check(budget)
        feed(parser, b"", self._part, final=True)
        return collector.finish()

    # -- parsing what is wanted ------------------------------------------------------------------

    def scan_skipping(self, *, head: bool = False, tail: bool = True) -> SheetCells:
        """Parses the wanted rows and what follows the last row of the sheet.

        Args:
            head: parse what precedes the rows, too.
            tail: parse what follows the rows.

        Raises:
            NotSkippableError: bytes would have to be skipped that could be misread.
        """
        chunks = self._package.chunks(self._part)
        root, prefix, before, rest = self._read_head(chunks)
        collector = self.collector()
        if head:
            closing = b"</" + prefix + b"worksheet>"
            self._parse_tail(iter(()), before + closing, root, prefix, collector)
        element, _, behind = rest.partition(b">")
        if element.endswith(b"/"):
            self._parse_tail(chunks, behind, root, prefix, collector)
            return collector.finish()
        first_row = min((each.min_row for each in self._windows), default=1)
        if first_row > 1:
            rest, collector.row = self._skip_rows_above(chunks, rest, prefix, first_row)
        rest = self._read_rows(chunks, rest, root, prefix, collector)
        if tail:
            behind = self._skip_rows_below(chunks, rest, prefix)
            self._parse_tail(chunks, behind, root, prefix, collector)
        return collector.finish()

    def _read_head(self, chunks: Iterator[bytes]) -> tuple[bytes, bytes, bytes, bytes]:
        """The root's start tag, its prefix, and the bytes before and from ``sheetData``."""
        head = b""
        for chunk in chunks:
            head += chunk
            match = _ROOT.match(head)
            if match is None:
                raise NotSkippableError
            declaration, root, prefix = match.groups()
            named = _ENCODING.search(declaration or b"")
            if named is not None and named[1].lower() not in _READABLE:
                raise NotSkippableError
            prefix = prefix or b""
            start = head.find(b"<" + prefix + b"sheetData", match.end())
            if start >= 0 and head.find(b">", start) >= 0:
                before = head[match.end() : start]
                _check_skippable(before)
                return root, prefix, before, head[start:]
            if len(head) > _LONGEST_HEAD_BYTES:
                break
        raise NotSkippableError

    def _skip_rows_above(
        self, chunks: Iterator[bytes], pending: bytes, prefix: bytes, first_row: int
    ) -> tuple[bytes, int]:
        """Skips rows until one that is wanted.

        Returns:
            The bytes from there, after a ``sheetData`` tag, and the number of the row above.
        """
        opening = b"<" + prefix + b"sheetData>"
        numbered = b"<" + prefix + b'row r="'
        row_tag = re.compile(
            b"<" + re.escape(prefix) + rb"""row(?=[\s/>])(?:[^<>"']++|"[^<"]*+"|'[^<']*+')*+>"""
        )
        closing = b"</" + prefix + b"sheetData"
        row = 0
        while True:
            _check_skippable(pending)
            last = _last_number(pending, numbered)
            if last is not None and last < first_row and closing not in pending:
                row = last
            else:
                for match in row_tag.finditer(pending):
                    number = _ROW_NUMBER.search(match[0])
                    following = int(number[1]) if number else row + 1
                    if following >= first_row:
                        return opening + pending[match.start() :], row
                    row = following
                if (end := pending.find(closing)) >= 0:
                    return opening + pending[end:], row
            cut = pending.rfind(b"<")
            kept = pending[cut:] if cut > pending.rfind(b">") else b""
            chunk = next(chunks, None)
            if chunk is None or len(kept) > _LONGEST_HEAD_BYTES:
                raise NotSkippableError
            pending = kept + chunk

    def _read_rows(
        self,
        chunks: Iterator[bytes],
        pending: bytes,
        root: bytes,
        prefix: bytes,
        collector: CellCollector,
    ) -> bytes:
        """Reads rows to the last wanted one and returns the bytes that follow it.

        Whole rows are read as plain text if they are written as usual, and parsed if not.
        """
        opening = root + b"<" + prefix + b"sheetData>"
        pending = pending[pending.index(b">") + 1 :]
        if prefix or not self._windows:
            return self._parse_rows(chunks, pending, opening, prefix, collector)
        plain = PlainRows(
            self._windows, self._formats, date_1904=self._date_1904, blanks=self._blanks
        )
        while True:
            if _holds_more_than_tags(pending) or len(pending) > _LONGEST_ROW_BYTES:
                return self._parse_rows(chunks, pending, opening, prefix, collector)
            end = pending.find(b"</sheetData")
            cut = end if end >= 0 else pending.rfind(b"<row")
            if cut > 0:
                left = self._read_some_rows(pending[:cut], opening, plain, collector)
                pending = pending[cut:]
                if left is not None:
                    return left + pending
            if end >= 0:
                return pending
            chunk = next(chunks, None)
            if chunk is None:
                raise WorkbookError(f"{self._part} ends among its rows")
            pending += chunk

    def _read_some_rows(
        self, rows: bytes, opening: bytes, plain: PlainRows, collector: CellCollector
    ) -> bytes | None:
        """Reads complete rows; returns those after the last wanted one, or None without any."""
        left = None
        numbers = _ROW_START.findall(rows)
        last = int(numbers[-1]) if numbers and b"" not in numbers else None
        if last is not None and last > self._last_row:
            for match in _NUMBERED_ROW.finditer(rows):
                if int(match[1]) > self._last_row:
                    rows, left = rows[: match.start()], rows[match.start() :]
                    collector.cells.rows_below = True
                    break
        kept = None
        if last is not None:
            try:
                kept = plain.take(rows.decode(), collector.cells)
            except UnicodeDecodeError:
                kept = None
        if last is None or kept is None:
            behind = self._parse_some_rows(rows, opening, collector)
            left = left if behind is None else behind + (left or b"")
        else:
            collector.row = min(last, self._last_row)
            collector.kept_chars += kept
        collector.check(self._package.budget)
        return left

    def _parse_some_rows(
        self, rows: bytes, opening: bytes, collector: CellCollector
    ) -> bytes | None:
        """Parses complete rows; returns those after the last wanted one, or None without any."""
        parser = new_parser()
        feed(parser, opening, self._part)
        collector.install(parser, "", stop_after_rows=True)
        feed(parser, rows, self._part)
        if collector.stopped_at is not None:
            return rows[collector.stopped_at - len(opening) :]
        feed(parser, b"</sheetData></worksheet>", self._part, final=True)
        collector.stopped_at = None
        return None

    def _parse_rows(
        self,
        chunks: Iterator[bytes],
        pending: bytes,
        opening: bytes,
        prefix: bytes,
        collector: CellCollector,
    ) -> bytes:
        """Parses rows to the last wanted one and returns the bytes that follow it."""
        parser = new_parser()
        feed(parser, opening, self._part)
        collector.install(parser, prefix.decode(), stop_after_rows=True)
        fed = len(opening)
        while True:
            feed(parser, pending, self._part)
            collector.check(self._package.budget)
            if collector.stopped_at is not None:
                # A tag that began in an earlier chunk has a negative offset here.
                return pending[max(0, collector.stopped_at - fed) :]
            fed += len(pending)
            check_token(parser, fed, self._part, self._package.budget.limits)
            chunk = next(chunks, None)
            if chunk is None:
                # The document ends before its rows do: the parser says how.
                feed(parser, b"", self._part, final=True)
                return b""
            pending = chunk

    def _skip_rows_below(self, chunks: Iterator[bytes], pending: bytes, prefix: bytes) -> bytes:
        """Skips the rest of the rows and returns the bytes after their end tag."""
        closing = b"</" + prefix + b"sheetData"
        while True:
            start = pending.find(closing)
            end = pending.find(b">", start) if start >= 0 else -1
            if end >= 0:
                _check_skippable(pending[:start])
                return pending[end + 1 :]
            _check_skippable(pending)
            chunk = next(chunks, None)
            if chunk is None:
                raise WorkbookError(f"{self._part} ends among its rows")
            pending = pending[start if start >= 0 else -len(closing) :] + chunk

    def _parse_tail(
        self,
        chunks: Iterator[bytes],
        pending: bytes,
        root: bytes,
        prefix: bytes,
        collector: CellCollector,
    ) -> None:
        """Parses what precedes and follows the rows, as a separate document with the same root."""
        parser = new_parser()
        feed(parser, root, self._part)
        collector.install_tail(parser, prefix.decode())
        fed = len(root)
        chunk: bytes | None = pending
        while chunk is not None:
            feed(parser, chunk, self._part)
            collector.check(self._package.budget)
            fed += len(chunk)
            check_token(parser, fed, self._part, self._package.budget.limits)
            chunk = next(chunks, None)
        feed(parser, b"", self._part, final=True)


def _check_skippable(passed_over: bytes) -> None:
    if _holds_more_than_tags(passed_over):
        raise NotSkippableError


def _holds_more_than_tags(data: bytes) -> bool:
    """Whether a comment, a CDATA section or a processing instruction begins among the bytes."""
    # The second characters are rare, and single ones are found many times as fast as pairs.
    return (b"!" in data and b"<!" in data) or (b"?" in data and b"<?" in data)


def _last_number(pending: bytes, numbered: bytes) -> int | None:
    """Number of the last row whose tag is complete in the bytes, in its usual form."""
    start = pending.rfind(numbered)
    if start < 0:
        return None
    start += len(numbered)
    digits = pending[start : pending.find(b'"', start)]
    return int(digits) if digits.isdigit() and len(digits) < _MOST_DIGITS else None


_MOST_DIGITS = 10
"""Digits of a row number, with some to spare; :class:`int` refuses thousands of them."""
