"""Draws a range of a workbook: LibreOffice prints it to a page, poppler makes this a picture.

Runs inside the root for agents, together with the judge's LibreOffice service. One process is kept
running.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from judge.recalc.services.office import SCRIPTING, Office
from judge.sandbox.service_frames import serve

SIDE = 1568
"""Longest side of a picture, in pixels."""

_PIXELS_PER_INCH = 110
_ROW_HEADS = 1400
_COLUMN_HEADS = 700
"""Room for row and column headers, in hundredths of a millimetre."""

_LEAST, _MOST = 1000, 1_000_000


def main() -> None:
    """Answers requests until there are no more."""
    office = Office()

    def answer_to(frame: dict[str, Any]) -> dict[str, Any]:
        try:
            if (
                office.context is None
                or office.process is None
                or office.process.poll() is not None
            ):
                office.start()
                _load_charts(office.context)
            return _draw(office, **frame)
        except Exception as error:  # noqa: BLE001 - UNO raises its own
            with contextlib.suppress(Exception):
                office.stop()
            office.context = None
            return {"fault": f"{type(error).__name__}: {error}"[:500]}

    serve(answer_to, sys.stdin.buffer, sys.stdout.buffer)


def _load_charts(context: Any) -> None:
    """Lets LibreOffice load charts and other embedded objects, which our settings forbid."""
    import uno  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415

    manager = context.ServiceManager
    provider = manager.createInstanceWithContext(
        "com.sun.star.configuration.ConfigurationProvider", context
    )
    where = uno.createUnoStruct("com.sun.star.beans.PropertyValue")
    where.Name, where.Value = "nodepath", SCRIPTING
    access = provider.createInstanceWithArguments(
        "com.sun.star.configuration.ConfigurationUpdateAccess", (where,)
    )
    access.replaceByName("DisableActiveContent", False)
    access.commitChanges()


def _draw(office: Office, path: str, sheet: str, area: str, picture: str) -> dict[str, Any]:
    import uno  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415

    def value(name: str, content: Any) -> Any:
        given = uno.createUnoStruct("com.sun.star.beans.PropertyValue")
        given.Name, given.Value = name, content
        return given

    manager = office.context.ServiceManager
    desktop = manager.createInstanceWithContext("com.sun.star.frame.Desktop", office.context)
    loading = (value("Hidden", True), value("ReadOnly", True), value("MacroExecutionMode", 0))
    book = desktop.loadComponentFromURL(f"file://{_quoted(path)}", "_blank", 0, loading)
    if book is None:
        return {"fault": "LibreOffice cannot open this workbook"}
    page = picture.removesuffix(".png") + ".pdf"
    try:
        if not book.supportsService("com.sun.star.sheet.SpreadsheetDocument"):
            return {"fault": "this is not a workbook"}
        sheets = book.Sheets
        named = _named(sheet, sheets.ElementNames)
        if named is None:
            return {"fault": f"there is no sheet {sheet!r}; there are {list(sheets.ElementNames)}"}
        chosen = sheets.getByName(named)
        cells = chosen.getCellRangeByName(area)
        for name in sheets.ElementNames:
            sheets.getByName(name).setPrintAreas(())
        chosen.setPrintAreas((cells.RangeAddress,))
        _set_page(book, chosen, cells)
        options = (value("FilterName", "calc_pdf_Export"),)
        book.storeToURL(f"file://{_quoted(page)}", options)
    finally:
        book.close(True)
    subprocess.run(
        ["pdftoppm", "-png", "-singlefile", "-f", "1", "-l", "1", *_size_of(page), page,
         picture.removesuffix(".png")],
        check=True, timeout=60, stdin=subprocess.DEVNULL, capture_output=True,
    )  # fmt: skip
    os.unlink(page)
    return {"picture": picture}


def _named(sheet: str, names: Sequence[str]) -> str | None:
    """Returns the name that LibreOffice gives to a sheet; it may rename SHEET1 to SHEET1_2."""
    if sheet in names:
        return sheet
    alike = [name for name in names if name.casefold() == sheet.casefold()]
    alike = alike or [name for name in names if name == f"{sheet}_2"]
    return alike[0] if len(alike) == 1 else None


def _set_page(book: Any, sheet: Any, cells: Any) -> None:
    """Sets up one page of the size of the range, without margins, with row and column headers."""
    style = book.StyleFamilies.getByName("PageStyles").getByName(sheet.PageStyle)
    size = cells.Size
    style.IsLandscape = size.Width > size.Height
    style.Width = min(max(size.Width + _ROW_HEADS, _LEAST), _MOST)
    style.Height = min(max(size.Height + _COLUMN_HEADS, _LEAST), _MOST)
    for name in ("LeftMargin", "RightMargin", "TopMargin", "BottomMargin"):
        setattr(style, name, 0)
    for name in ("HeaderIsOn", "FooterIsOn", "CenterHorizontally", "CenterVertically"):
        setattr(style, name, False)
    for name in ("PrintHeaders", "PrintGrid", "PrintCharts", "PrintDrawing", "PrintObjects"):
        setattr(style, name, True)
    style.ScaleToPagesX = style.ScaleToPagesY = 1


def _size_of(page: str) -> list[str]:
    """Returns the resolution at which no side of a page has more than :data:`SIDE` pixels."""
    done = subprocess.run(
        ["pdfinfo", page], check=True, timeout=60, stdin=subprocess.DEVNULL, capture_output=True
    )
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        if line.startswith("Page size:"):
            width, _, height = line.partition(":")[2].strip().split()[:3]
            longest = max(float(width), float(height)) / 72 * _PIXELS_PER_INCH
            if longest > SIDE:
                return ["-scale-to", str(SIDE)]
    return ["-r", str(_PIXELS_PER_INCH)]


def _quoted(path: str) -> str:
    from urllib.parse import quote  # noqa: PLC0415

    return quote(path)
