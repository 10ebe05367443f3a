"""Copies a workbook with other cached values: only the values of formula cells change.

The sheets' XML is edited in place, so formulas, styles and everything else stay byte for byte;
parts without a changed cell are copied as they are.
"""

from __future__ import annotations

import datetime as dt
import io
import re
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from judge.errors import WorkbookError
from judge.workbook.address import column_number
from judge.workbook.cell import CellRef, CellValue, ErrorValue
from judge.workbook.cell_values import write_string
from judge.workbook.editing.parts import escape_text
from judge.workbook.number_formats import DAYS_BETWEEN_SYSTEMS, to_serial
from judge.workbook.package import Package
from judge.workbook.workbook_parts import read_workbook_part

# A "<" never occurs in a tag, not even in quotes, so no search goes beyond the next one.
_QUOTED = rb"""(?:[^<>"']|"[^"<]*"|'[^'<]*')*"""
_TAG = re.compile(
    rb"<(?P<prefix>\w+:)?(?P<tag>row|c)\b(?P<attributes>" + _QUOTED + rb"?)(?P<empty>/?)>"
)
_REF = re.compile(rb"""\br\s*=\s*["'](?P<letters>[A-Za-z]{0,3})(?P<row>\d+)["']""")
_TYPE = re.compile(rb"""\s+t\s*=\s*(?:"[^"]*"|'[^']*')""")
_VALUE = re.compile(rb"<(?P<prefix>\w+:)?(?P<tag>v|is)\b" + _QUOTED + rb"?(?P<end>/?)>")
_FORMULA = re.compile(rb"<(?:\w+:)?f\b")

COPIED_BYTES, COPIED_PARTS = 64 * 1024 * 1024, 10_000
"""A package with more unpacked bytes or parts is not copied merely to save time."""


class _Keep:
    """The type of the marker for a cell that does not change."""


KEEP = _Keep()
Change = CellValue | _Keep
_Changes = Callable[[int, int, bytes], Change]


def with_values(
    package: bytes, values: Mapping[CellRef, CellValue], *, date_1904: bool = False
) -> bytes:
    """A copy of a workbook in which some formula cells have other cached values.

    Args:
        package: the workbook.
        values: cell -> value; None leaves the cell without a value. Cells that the sheet does not
            contain are ignored.
        date_1904: the workbook's date system.

    Raises:
        WorkbookError: a sheet cannot be found.
    """
    with zipfile.ZipFile(io.BytesIO(package)) as archive:
        changes = {
            part: _lookup(cells) for part, cells in _by_part(sheet_parts(package), values).items()
        }
        return _copy(archive, changes, date_1904=date_1904)


def check_size(entries: Sequence[zipfile.ZipInfo]) -> None:
    """Checks that parts of a package can be copied; none unpacks to more than it claims.

    Raises:
        WorkbookError: the parts are too large.
    """
    if len(entries) > COPIED_PARTS or sum(entry.file_size for entry in entries) > COPIED_BYTES:
        raise WorkbookError(f"the package unpacks to more than {COPIED_BYTES:,} bytes")


def _by_part(
    parts: Mapping[str, str], values: Mapping[CellRef, CellValue]
) -> dict[str, dict[tuple[int, int], CellValue]]:
    by_part: dict[str, dict[tuple[int, int], CellValue]] = defaultdict(dict)
    for sheet, row, column in values:
        if sheet not in parts:
            raise WorkbookError(f"no worksheet {sheet!r} in the workbook")
        by_part[parts[sheet]][row, column] = values[CellRef(sheet, row, column)]
    return by_part


def _lookup(
    cells: Mapping[tuple[int, int], CellValue],
) -> _Changes:
    return lambda row, column, _: cells.get((row, column), KEEP)


_USUAL_CELL = re.compile(
    rb"""(?P<start><c r="(?P<name>[A-Z]{1,3}\d{1,7})")(?P<rest>[^<>]*+)>"""
    rb"""<f>[^<]*+</f>(?:<v>[^<]*+</v>|<v ?/>)?+</c>"""
)
"""A cell with its own formula, as most programs write it."""


_ANY_CELL = re.compile(
    rb"""(?P<start><c r="(?P<name>[A-Z]{1,3}\d{1,7})")(?P<rest>[^<>]*+)>"""
    rb"""(?:<f>[^<]*+</f>|<f t="(?:array|dataTable)"(?:[^<>/"]|"[^<>"]*+")*+(?:/>|>[^<]*+</f>))"""
    rb"""(?:<v>[^<]*+</v>|<v ?/>)?+</c>"""
)
"""A cell with a formula of its own, or with a formula that also fills other cells."""


def without_formulas(xml: bytes, kept: AbstractSet[bytes], *, filling: bool = False) -> bytes:
    """Empties the formula cells of a sheet, except for those to keep.

    Formulas that fill other cells, and formulas that several cells share, stay; so do cells in an
    unusual notation.

    Args:
        xml: the sheet.
        kept: addresses of the cells that keep their formula.
        filling: whether array formulas and data tables become blank as well; the other cells that
            they fill keep the values that are stored there.
    """

    def clear(cell: re.Match[bytes]) -> bytes:
        if cell["name"] in kept:
            return cell[0]
        return cell["start"] + _TYPE.sub(b"", cell["rest"]) + b"/>"

    return (_ANY_CELL if filling else _USUAL_CELL).sub(clear, xml)


_ABSENT = "\0"


_SHARED_CELL = re.compile(
    rb"""(?P<start><c r="(?P<name>[A-Z]{1,3}\d{1,7})")(?P<rest>[^<>]*+)>"""
    rb"""<f(?P<formula>(?=[^<>]*? t="shared")[^<>]*+)(?:(?<=/)>|>[^<]*+</f>)"""
    rb"""(?:<v>[^<]*+</v>|<v ?/>)?+</c>"""
)
"""A cell with a shared formula, as most programs write it."""
_SHARED_FORMULA = re.compile(rb"""<f\s(?=[^<>]*?\bt\s*=\s*["']shared["'])[^<>]*+>""")


def with_constants(xml: bytes, values: Mapping[bytes, CellValue]) -> bytes:
    """Replaces some formula cells of a sheet by constants.

    Cells in an unusual notation, or whose value has control characters, keep their formula, and so
    does the first cell of a shared formula unless all cells that share it have values.

    Args:
        xml: the sheet.
        values: address of a cell -> its value.
    """

    def replaced(cell: re.Match[bytes]) -> bytes:
        if not _is_writable(values.get(cell["name"], _ABSENT)):
            return cell[0]
        kind, value = _as_xml(values[cell["name"]], date_1904=False)
        head = cell["start"] + _TYPE.sub(b"", cell["rest"]) + kind
        return head + (b"/>" if value is None else b"><v>" + value + b"</v></c>")

    def replaced_shared(cell: re.Match[bytes]) -> bytes:
        if b" ref=" in cell["formula"] and _shared_by(cell["formula"]) in needed:
            return cell[0]
        return replaced(cell)

    # Cells in an unusual notation share formulas as well, so all cells are counted.
    needed = Counter(_shared_by(formula[0]) for formula in _SHARED_FORMULA.finditer(xml))
    needed -= Counter(
        _shared_by(cell["formula"])
        for cell in _SHARED_CELL.finditer(xml)
        if _is_writable(values.get(cell["name"], _ABSENT))
    )
    xml = _SHARED_CELL.sub(replaced_shared, xml)
    return _USUAL_CELL.sub(replaced, xml)


NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def _is_writable(value: CellValue) -> bool:
    """Whether engines read a constant correctly; they do not if it has control characters."""
    return not (isinstance(value, str) and NOT_XML.search(value))


_SHARED = re.compile(rb"""\bsi\s*=\s*["'](\d+)["']""")


def _shared_by(attributes: bytes) -> bytes:
    """The index of a shared formula; empty if it is not found."""
    index = _SHARED.search(attributes)
    return index[1] if index is not None else b""


def without_values(package: bytes) -> bytes:
    """A copy of a workbook without cached values of formulas, as a library would write it."""
    with zipfile.ZipFile(io.BytesIO(package)) as archive:
        strip = dict.fromkeys(sheet_parts(package).values(), _strip)
        return _copy(archive, strip, date_1904=False)


def _strip(row: int, column: int, body: bytes) -> Change:
    del row, column
    return None if _FORMULA.search(body) else KEEP


def _copy(
    archive: zipfile.ZipFile,
    changes: Mapping[str, _Changes],
    *,
    date_1904: bool,
) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as copy:
        for entry in archive.infolist():
            content = archive.read(entry)
            if entry.filename in changes:
                content = _edit(content, changes[entry.filename], date_1904=date_1904)
            copy.writestr(entry, content, compress_type=zipfile.ZIP_DEFLATED)
    return target.getvalue()


def _edit(xml: bytes, change: _Changes, *, date_1904: bool) -> bytes:
    """Changes the values of a sheet.

    Args:
        xml: the sheet.
        change: called with row, column and content of a cell; returns its new value.
        date_1904: the workbook's date system.
    """
    pieces: list[bytes] = []
    written = skip_to = row = column = 0
    for match in _TAG.finditer(xml):
        if match.start() < skip_to:
            continue
        ref = _REF.search(match["attributes"])
        if match["tag"] == b"row":
            row, column = (int(ref["row"]) if ref else row + 1), 0
            continue
        column += 1
        if ref and ref["letters"]:
            row, column = int(ref["row"]), column_number(ref["letters"].decode())
        prefix = match["prefix"] or b""
        body, skip_to = _body(xml, match, b"</" + prefix + b"c>")
        new = change(row, column, body)
        if isinstance(new, _Keep):
            continue
        kind, value = _as_xml(new, date_1904=date_1904)
        pieces.append(xml[written : match.start()])
        pieces.append(b"<" + prefix + b"c" + _TYPE.sub(b"", match["attributes"]) + kind + b">")
        pieces.append(_without_value(body))
        if value is not None:
            pieces.append(b"<" + prefix + b"v>" + value + b"</" + prefix + b"v>")
        pieces.append(b"</" + prefix + b"c>")
        written = skip_to
    pieces.append(xml[written:])
    return b"".join(pieces)


def _without_value(body: bytes) -> bytes:
    """The content of a cell without its value. Searches once for each tag and once for its end."""
    pieces = []
    position = 0
    while (match := _VALUE.search(body, position)) is not None:
        stop = match.end()
        if not match["end"]:
            closing = b"</" + (match["prefix"] or b"") + match["tag"]
            end = body.find(closing, stop)
            stop = body.find(b">", end) + 1 if end >= 0 else 0
            if not stop:
                raise WorkbookError("a value of the sheet has no end tag")
        pieces.append(body[position : match.start()])
        position = stop
    return b"".join((*pieces, body[position:]))


def _body(xml: bytes, match: re.Match[bytes], end: bytes) -> tuple[bytes, int]:
    """The content of a cell, and the position where the cell ends."""
    if match["empty"]:
        return b"", match.end()
    stop = xml.find(end, match.end())
    if stop < 0:
        raise WorkbookError("a cell of the sheet has no end tag")
    return xml[match.end() : stop], stop + len(end)


def _as_xml(value: CellValue, *, date_1904: bool) -> tuple[bytes, bytes | None]:
    """The type attribute and the text of a value."""
    if value is None:
        return b"", None
    if isinstance(value, bool):
        return b' t="b"', b"1" if value else b"0"
    if isinstance(value, ErrorValue):
        return b' t="e"', value.code.encode()
    if isinstance(value, str):
        return b' t="str"', escape_text(write_string(NOT_XML.sub("", value))).encode()
    if isinstance(value, (dt.datetime, dt.date, dt.time, dt.timedelta)):
        number = to_serial(value)
        if date_1904 and isinstance(value, (dt.datetime, dt.date)):
            number -= DAYS_BETWEEN_SYSTEMS
        return b"", repr(number).encode()
    return b"", repr(value).encode()


def sheet_parts(package: bytes) -> dict[str, str]:
    """Worksheet name -> name of its part, as the reader determines them.

    Raises:
        WorkbookError: the package is not a workbook that can be read.
    """
    return {tab.name: tab.part for tab in read_workbook_part(Package(package)).tabs}
