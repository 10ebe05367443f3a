"""What is written around the rows of a worksheet, event by event; the rows are skipped as bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from judge.workbook.number_formats import NumberFormats
from judge.workbook.package import Package
from judge.workbook.sheets.row_grammar import NotPlainError
from judge.workbook.sheets.sheet_scan import SheetScanner
from judge.workbook.sheets.sheet_tail import TailListener

_Listener = TypeVar("_Listener", bound=TailListener)


def scan_surroundings(package: Package, part: str, listener: Callable[[], _Listener]) -> _Listener:
    """Calls a listener for every element before and after the rows of a worksheet.

    Args:
        package: the workbook.
        part: name of the worksheet's part.
        listener: makes a listener. A part that turns out to need a full parse is read twice, each
            time with a new listener.

    Returns:
        The listener that heard the whole part.

    Raises:
        WorkbookError: the worksheet is missing, broken or over a limit.
    """
    scan = _Surroundings(package, part, listener)
    try:
        scan.scan_skipping()
    except NotPlainError:
        scan.scan_all()
    return scan.heard


class _Surroundings(SheetScanner, Generic[_Listener]):
    """A pass over a worksheet that keeps no cell."""

    heard: _Listener

    def __init__(self, package: Package, part: str, make: Callable[[], _Listener]) -> None:
        super().__init__(package, part, (), NumberFormats(), date_1904=False, blanks=False)
        self._make = make

    def listener(self) -> _Listener:
        self.heard = self._make()
        return self.heard
