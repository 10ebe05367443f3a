"""Attributes of the rows of a worksheet; the cells are skipped."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from html import unescape

from judge.workbook.namespaces import SHEET_NAMES
from judge.workbook.number_formats import NumberFormats
from judge.workbook.package import Package
from judge.workbook.sheets.row_grammar import NotPlainError
from judge.workbook.sheets.sheet_cells import RowListener
from judge.workbook.sheets.sheet_scan import SheetScanner
from judge.workbook.tree import Element, TreeListener

_ATTRIBUTE = re.compile(rb' ([A-Za-z0-9:]++)="([^"<]*+)"')
_MAX_KNOWN = 100_000


def read_row_lines(
    package: Package, part: str, around: Callable[[], TreeListener] | None
) -> tuple[dict[int, Mapping[str, str]], Element | None]:
    """Attributes of the rows that say more than their number and extent, and what is around them.

    Both are read in one pass: a sheet may have a million rows.

    Args:
        package: the workbook.
        part: name of the worksheet's part.
        around: makes the listener that keeps what is around the rows; None if that is known.

    Returns:
        Row number -> its attributes without the number; rows with equal attributes share them. And
        the worksheet without its rows, unless that is known.

    Raises:
        WorkbookError: the worksheet is missing, broken or over a limit.
    """
    scan = _Rows(package, part, around)
    try:
        scan.scan_skipping()
    except NotPlainError:
        scan.scan_all()
    return scan.heard.rows, None if scan.tree is None else scan.tree.root


class _Rows(SheetScanner):
    """A pass over a worksheet that keeps no cell."""

    heard: _RowLines
    tree: TreeListener | None = None

    def __init__(
        self, package: Package, part: str, around: Callable[[], TreeListener] | None
    ) -> None:
        super().__init__(package, part, (), NumberFormats(), date_1904=False, blanks=False)
        self._around = around

    def listener(self) -> TreeListener | None:
        self.tree = None if self._around is None else self._around()
        return self.tree

    def row_listener(self) -> RowListener:
        self.heard = _RowLines(self._package)
        return self.heard


class _RowLines:
    """Hears the rows of a worksheet."""

    def __init__(self, package: Package) -> None:
        self.rows: dict[int, Mapping[str, str]] = {}
        self._budget = package.budget
        self._known: dict[bytes, Mapping[str, str]] = {}

    def hear(self, row: int, attributes: Mapping[str, str]) -> None:
        """Called with the number of a row and its attributes."""
        given = SHEET_NAMES.attributes(dict(attributes))
        said = {name: text for name, text in given.items() if name not in {"r", "spans"}}
        if _is_worth_mentioning(said):
            self._budget.take_cells(1)
            self.rows[row] = said

    def hear_plain(self, row: int, attributes: bytes) -> None:
        """The same for a row whose tag was not parsed: what is written after its number."""
        if not attributes:
            return
        said = self._known.get(attributes)
        if said is None:
            said = {
                name.decode(): unescape(text.decode("utf-8", "replace"))
                for name, text in _ATTRIBUTE.findall(attributes)
                if name != b"spans"
            }
            said = said if _is_worth_mentioning(said) else {}
            if len(self._known) < _MAX_KNOWN:
                self._known[attributes] = said
        if said:
            self._budget.take_cells(1)
            self.rows[row] = said


def _is_worth_mentioning(attributes: Mapping[str, str]) -> bool:
    """Whether there are attributes other than those of other namespaces."""
    return any(":" not in name for name in attributes)
