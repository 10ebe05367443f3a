"""Copies a workbook and adds the judge's own formulas, in cells that nothing refers to.

The formulas are below the last row, in the last column, of the sheet that they refer to. Their
references mean the same there as in any other cell of the sheet, and no reference to whole columns
or rows of data includes them.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from judge.errors import WorkbookError
from judge.recalc.rewrite import NOT_XML, sheet_parts
from judge.workbook.address import MAX_COLUMN, MAX_ROW, cell_name
from judge.workbook.cell import CellRef

_ROW = re.compile(rb"<(?:\w+:)?row\b([^>]*)>")
_NUMBER = re.compile(rb"""\sr\s*=\s*["'](\d{1,7})["']""")
_DATA = re.compile(rb"<(?P<prefix>\w+:)?sheetData\b[^>]*?(?P<empty>/?)>")
_DIMENSION = re.compile(rb"<(?:\w+:)?dimension\b[^>]*?/>")


@dataclass(frozen=True, slots=True)
class ScratchFormula:
    """A formula to compute on a sheet.

    Attributes:
        text: the formula without its leading ``=``.
        is_array: whether it is entered as an array formula.
    """

    text: str
    is_array: bool = False


def with_formulas(
    package: bytes, formulas: Mapping[str, Sequence[ScratchFormula]]
) -> tuple[bytes, dict[str, list[CellRef]]]:
    """A copy of a workbook with additional formulas.

    Args:
        package: the workbook.
        formulas: worksheet -> formulas to add to it.

    Returns:
        The copy, and for each worksheet the cells of its formulas in order.

    Raises:
        WorkbookError: a sheet cannot be found, is broken, or has no room.
    """
    target = io.BytesIO()
    places: dict[str, list[CellRef]] = {}
    with zipfile.ZipFile(io.BytesIO(package)) as archive:
        parts = sheet_parts(package)
        names = {}
        for sheet in formulas:
            if sheet not in parts:
                raise WorkbookError(f"no worksheet {sheet!r} in the workbook")
            names[parts[sheet]] = sheet
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as copy:
            for entry in archive.infolist():
                content = archive.read(entry)
                sheet = names.get(entry.filename, "")
                if sheet:
                    content, rows = _filled(content, formulas[sheet])
                    places[sheet] = [CellRef(sheet, row, MAX_COLUMN) for row in rows]
                copy.writestr(entry, content, compress_type=zipfile.ZIP_DEFLATED)
    return target.getvalue(), places


def _filled(xml: bytes, formulas: Sequence[ScratchFormula]) -> tuple[bytes, range]:
    data = _DATA.search(xml)
    if data is None:
        raise WorkbookError("a worksheet has no cells")
    prefix = data["prefix"] or b""
    if data["empty"]:
        before, after = xml[: data.start()] + b"<" + prefix + b"sheetData>", xml[data.end() :]
    else:
        end = xml.rfind(b"</" + prefix + b"sheetData")
        if end < data.end():
            raise WorkbookError("the cells of a worksheet do not end")
        before, after = xml[:end], xml[end:].partition(b">")[2]
    first = _last_row(xml) + 2
    if first + len(formulas) > MAX_ROW:
        raise WorkbookError("there is no room below the last row")
    rows = range(first, first + len(formulas))
    cells = b"".join(
        _cell(prefix, row, formula) for row, formula in zip(rows, formulas, strict=True)
    )
    end_tag = b"</" + prefix + b"sheetData>"
    # The range that the file states for the sheet does not include our cells.
    return _DIMENSION.sub(b"", before, count=1) + cells + end_tag + after, rows


def _cell(prefix: bytes, row: int, formula: ScratchFormula) -> bytes:
    name = cell_name(row, MAX_COLUMN)
    kind = f' t="array" ref="{name}"' if formula.is_array else ""
    text = escape(NOT_XML.sub("", formula.text))
    mark = prefix.decode()
    return (
        f'<{mark}row r="{row}"><{mark}c r="{name}"><{mark}f{kind}>{text}</{mark}f></{mark}c>'
        f"</{mark}row>"
    ).encode()


def _last_row(xml: bytes) -> int:
    last = row = 0
    for match in _ROW.finditer(xml):
        number = _NUMBER.search(match[1])
        row = int(number[1]) if number else row + 1
        last = max(last, row)
    return last
