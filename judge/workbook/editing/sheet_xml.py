"""Rewrites single cells in the XML of a worksheet, and leaves the rest unchanged."""

from __future__ import annotations

import datetime as dt
import html
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from judge.errors import UsageError, WorkbookError
from judge.formulas.shift import shift_formula
from judge.workbook.address import Window, cell_name, parse_cell, parse_window
from judge.workbook.cell import CellRef, CellValue, ErrorValue
from judge.workbook.cell_values import write_string
from judge.workbook.editing.parts import (
    QUOTED,
    attribute,
    escape_text,
    with_attribute,
    without_attributes,
)
from judge.workbook.number_formats import DAYS_BETWEEN_SYSTEMS, to_serial

ERROR_CODES = frozenset(
    {"#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A", "#SPILL!", "#CALC!"}
)


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula as the content of a cell; ``text`` has no leading ``=``."""

    text: str


CellContent = CellValue | Formula


@dataclass(frozen=True, slots=True)
class SetCell:
    """An edit of one cell: its content, its format, or both.

    Attributes:
        ref: the cell; the sheet by its real name.
        content: the value or formula; None empties the cell.
        style: index of the cell format to give it; None keeps the cell's own.
        fill: colour of its background as ``RRGGBB``; None keeps the current colour.
    """

    ref: CellRef
    content: CellContent
    style: int | None = None
    fill: str | None = None


def address(ref: CellRef) -> str:
    """The address of a cell with its sheet, quoted as in a formula."""
    name = ref.sheet.replace("'", "''")
    return f"'{name}'!{cell_name(ref.row, ref.column)}"


def content_to_json(content: CellContent) -> Any:
    """Converts a cell's content to plain data for JSON that keeps its type."""
    match content:
        case Formula():
            return {"formula": content.text}
        case ErrorValue():
            return {"error": content.code}
        case dt.datetime() | dt.date():
            return {"date": content.isoformat()}
        case dt.time():
            return {"time": content.isoformat()}
        case dt.timedelta():
            return {"seconds": content.total_seconds()}
        case _:
            return content


def content_from_json(value: Any) -> CellContent:
    """Reads a cell's content from the JSON form.

    Raises:
        UsageError: the value is not the content of a cell.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict) and len(value) == 1:
        ((kind, text),) = value.items()
        match kind:
            case "formula":
                return Formula(str(text))
            case "error":
                return ErrorValue(str(text))
            case "date":
                return dt.datetime.fromisoformat(str(text))
            case "time":
                return dt.time.fromisoformat(str(text))
            case "seconds":
                return dt.timedelta(seconds=float(text))
    raise UsageError(f"not the content of a cell: {value!r}")


_DATA = re.compile(rb"<(?P<prefix>\w+:)?sheetData\b" + QUOTED + rb"(?P<empty>/?)>")
# As QUOTED, without going back: thousands of rows are passed before one that is edited.
_TAG = rb"""(?P<attributes>(?:[^<>"'/]++|"[^"<]*+"|'[^'<]*+'|/(?!>))*+)(?P<empty>/?)>"""
_ROW = re.compile(rb'<(?:\w+:)?row\b(?= r="(?P<number>[0-9]+)"|)' + _TAG)
_CELL = re.compile(rb"<(?:\w+:)?c\b" + _TAG)
_FORMULA = re.compile(
    rb"<(?:\w+:)?f\b(?P<attributes>" + QUOTED + rb")(?:/>|(?<!/)>(?P<text>[^<]*)</(?:\w+:)?f\s*>)"
)
_DIMENSION = re.compile(rb"<(?:\w+:)?dimension\b" + QUOTED + rb"/?>")
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
MAX_TEXT_CHARS = 32_767


@dataclass(frozen=True, slots=True)
class NewContent:
    """New content of a cell.

    Attributes:
        content: value or formula; None empties the cell.
        style: index of its cell format; None keeps its current format.
    """

    content: CellContent
    style: int | None = None


class _Row(NamedTuple):
    number: int
    tag: tuple[int, int]
    content: tuple[int, int]
    end: int


class _Cell(NamedTuple):
    row: int
    column: int
    start: int
    end: int
    attributes: bytes
    body: bytes


class SheetXml:
    """A worksheet's XML.

    Args:
        xml: the part.
        name: name of the part, for messages.
        date_1904: whether the workbook counts its days from 1904.

    Raises:
        WorkbookError: the part has no list of cells, or the list is not well-formed.
    """

    def __init__(self, xml: bytes, name: str, *, date_1904: bool = False) -> None:
        match = _DATA.search(xml)
        if match is None:
            raise WorkbookError(f"{name} has no <sheetData>: its cells cannot be edited")
        self._xml = xml
        self._name = name
        self._date_1904 = date_1904
        self._prefix = match["prefix"] or b""
        self._data = match
        close = b"</" + self._prefix + b"sheetData"
        self._end = match.end() if match["empty"] else xml.rfind(close)
        if self._end < match.end():
            raise WorkbookError(f"{name} is not well-formed: <sheetData> has no end tag")

    # -- reading -------------------------------------------------------------------------------

    def rows(self) -> Iterator[_Row]:
        """The rows in file order."""
        position, number = self._data.end(), 0
        close = b"</" + self._prefix + b"row>"
        while (match := _ROW.search(self._xml, position, self._end)) is not None:
            written = match["number"] or attribute(match["attributes"], "r")
            number = int(written) if written else number + 1
            if match["empty"]:
                content = (match.end(), match.end())
                position = match.end()
            else:
                stop = self._xml.find(close, match.end(), self._end)
                if stop < 0:
                    raise WorkbookError(f"{self._name}: row {number} has no end tag")
                content = (match.end(), stop)
                position = stop + len(close)
            yield _Row(number, match.span(), content, position)

    def cells(self, row: _Row) -> Iterator[_Cell]:
        """The stored cells of a row, in file order."""
        position, end = row.content
        column = 0
        close = b"</" + self._prefix + b"c>"
        while (match := _CELL.search(self._xml, position, end)) is not None:
            written = attribute(match["attributes"], "r")
            row_and_column = parse_cell(written) if written else (row.number, column + 1)
            if row_and_column is None:
                raise WorkbookError(f"{self._name} holds a cell at {written!r}")
            column = row_and_column[1]
            body, position = b"", match.end()
            if not match["empty"]:
                stop = self._xml.find(close, match.end(), end)
                if stop < 0:
                    raise WorkbookError(f"{self._name}: a cell of row {row.number} has no end tag")
                body, position = self._xml[match.end() : stop], stop + len(close)
            yield _Cell(row.number, column, match.start(), position, match["attributes"], body)

    # -- writing -------------------------------------------------------------------------------

    def with_cells(self, cells: Mapping[tuple[int, int], NewContent]) -> bytes:
        """The XML with some cells set.

        Args:
            cells: (row, column), 1-based -> the new content of the cell.

        Raises:
            WorkbookError: a string cannot be stored in a cell.
        """
        if not cells:
            return self._xml
        promoted = self._promoted(cells)
        by_row: dict[int, dict[int, NewContent]] = defaultdict(dict)
        for (number, column), new in cells.items():
            by_row[number][column] = new
        moved_to = {position[0] for position in promoted}
        waiting = sorted(by_row)
        pieces: list[bytes] = [self._head()]
        copied = self._data.end()
        for row in self.rows():
            if not waiting and not moved_to:
                break
            while waiting and waiting[0] < row.number:
                # Rows that the sheet does not store yet are inserted before the next stored row.
                pieces += [self._xml[copied : row.tag[0]], self._new_row(by_row, waiting.pop(0))]
                copied = row.tag[0]
            touched = by_row.get(row.number, {})
            if waiting and waiting[0] == row.number:
                waiting.pop(0)
            if touched or row.number in moved_to:
                pieces += [self._xml[copied : row.tag[0]], self._edit_row(row, touched, promoted)]
                copied = row.end
                moved_to.discard(row.number)
        pieces.append(b"" if self._data["empty"] else self._xml[copied : self._end])
        pieces += [self._new_row(by_row, number) for number in waiting]
        if self._data["empty"]:
            pieces.append(b"</" + self._prefix + b"sheetData>")
        pieces.append(self._xml[self._end :])
        return self._grown(b"".join(pieces), cells)

    def _head(self) -> bytes:
        head = self._xml[: self._data.end()]
        return head[:-2].rstrip() + b">" if self._data["empty"] else head

    def _edit_row(
        self,
        row: _Row,
        touched: Mapping[int, NewContent],
        promoted: Mapping[tuple[int, int], bytes],
    ) -> bytes:
        left = dict(touched)
        pieces: list[bytes] = []
        copied = row.content[0]
        for cell in self.cells(row):
            for column in sorted(new_column for new_column in left if new_column < cell.column):
                written = self._written(row.number, column, left.pop(column), b"")
                pieces += [self._xml[copied : cell.start], written]
                copied = cell.start
            if cell.column in left:
                written = self._written(
                    row.number, cell.column, left.pop(cell.column), cell.attributes
                )
            elif (formula := promoted.get((row.number, cell.column))) is not None:
                match = _FORMULA.search(self._xml, cell.start, cell.end)
                assert match is not None  # promoted cells hold a shared formula
                before, after = match.span()
                written = self._xml[cell.start : before] + formula + self._xml[after : cell.end]
            else:
                continue
            pieces += [self._xml[copied : cell.start], written]
            copied = cell.end
        pieces.append(self._xml[copied : row.content[1]])
        pieces += [self._written(row.number, column, left[column], b"") for column in sorted(left)]
        content = b"".join(pieces)
        tag = self._spanning(self._xml[slice(*row.tag)], touched)
        if tag.endswith(b"/>"):
            if not content:
                return tag
            tag = tag[:-2].rstrip() + b">"
        return tag + content + b"</" + self._prefix + b"row>"

    @staticmethod
    def _spanning(tag: bytes, touched: Mapping[int, NewContent]) -> bytes:
        """A row's start tag; its ``spans``, if it has one, is extended to the new cells."""
        spans = attribute(tag, "spans")
        if not touched or spans is None or not re.fullmatch(r"\d+:\d+", spans):
            return tag
        low, high = map(int, spans.split(":"))
        wider = f"{min(low, *touched)}:{max(high, *touched)}"
        return tag if wider == spans else with_attribute(tag, "spans", wider)

    def _new_row(self, by_row: Mapping[int, Mapping[int, NewContent]], number: int) -> bytes:
        cells = b"".join(
            self._written(number, column, by_row[number][column], b"")
            for column in sorted(by_row[number])
        )
        if not cells:
            return b""
        tag = self._prefix + b"row"
        return b"<" + tag + f' r="{number}">'.encode() + cells + b"</" + tag + b">"

    def _written(self, row: int, column: int, new: NewContent, attributes: bytes) -> bytes:
        # cm and vm describe an array formula or a rich value that the cell no longer holds.
        kept = without_attributes(attributes, "t", "cm", "vm")
        if new.style is not None:
            kept = without_attributes(kept, "s") + f' s="{new.style}"'.encode()
        if attribute(kept, "r") is None:
            kept = f' r="{cell_name(row, column)}"'.encode() + kept
        kind, body = self._content(new.content, cell_name(row, column))
        tag = self._prefix + b"c"
        if body is None:
            return b"<" + tag + kept + b"/>" if attribute(kept, "s") is not None else b""
        return b"<" + tag + kept + kind + b">" + body + b"</" + tag + b">"

    def _content(self, content: CellContent, address: str) -> tuple[bytes, bytes | None]:
        """The type attribute and the body of a cell."""
        match content:
            case None:
                return b"", None
            case Formula():
                return b"", self._element(b"f", self._checked(content.text, address))
            case bool():
                return b' t="b"', self._element(b"v", "1" if content else "0")
            case ErrorValue():
                return b' t="e"', self._element(b"v", content.code)
            case str():
                text = self._checked(content, address)
                space = b' xml:space="preserve"' if content != content.strip() else b""
                return b' t="inlineStr"', self._element(
                    b"is", self._element(b"t", write_string(text), space), raw=True
                )
            case dt.datetime() | dt.date() | dt.time() | dt.timedelta():
                serial = to_serial(content)
                if self._date_1904 and isinstance(content, dt.datetime | dt.date):
                    serial -= DAYS_BETWEEN_SYSTEMS
                is_whole = float(serial).is_integer()
                return b"", self._element(b"v", repr(int(serial) if is_whole else serial))
            case _:
                return b"", self._element(b"v", repr(content))

    def _element(
        self, name: bytes, text: str | bytes, attributes: bytes = b"", *, raw: bool = False
    ) -> bytes:
        inner = text if isinstance(text, bytes) else escape_text(text).encode()
        assert raw == isinstance(text, bytes)
        tag = self._prefix + name
        return b"<" + tag + attributes + b">" + inner + b"</" + tag + b">"

    def _checked(self, text: str, address: str) -> str:
        if _NOT_XML.search(text):
            raise WorkbookError(f"{address}: the text holds a character that no workbook can hold")
        if len(text) > MAX_TEXT_CHARS:
            raise WorkbookError(
                f"{address}: the text has {len(text):,} characters, a cell holds {MAX_TEXT_CHARS:,}"
            )
        return text

    # -- shared formulas -----------------------------------------------------------------------

    def _promoted(
        self, cells: Mapping[tuple[int, int], NewContent]
    ) -> dict[tuple[int, int], bytes]:
        """New formula elements for cells that share a formula whose first cell is replaced."""
        if b"shared" not in self._xml:
            return {}
        groups: dict[str, list[tuple[int, int]]] = defaultdict(list)
        masters: dict[str, tuple[tuple[int, int], str]] = {}
        for row in self.rows():
            for cell in self.cells(row):
                match = _FORMULA.search(cell.body) if b"shared" in cell.body else None
                index = None if match is None else attribute(match["attributes"], "si")
                if match is None or index is None:
                    continue
                groups[index].append((cell.row, cell.column))
                if match["text"] and index not in masters:
                    text = html.unescape(match["text"].decode())
                    masters[index] = ((cell.row, cell.column), text)
        promoted: dict[tuple[int, int], bytes] = {}
        for index, (position, text) in masters.items():
            left = [group for group in groups[index] if group not in cells]
            if position in cells and left:
                promoted[left[0]] = self._master(index, left, position, text)
        return promoted

    def _master(
        self, index: str, left: list[tuple[int, int]], old: tuple[int, int], text: str
    ) -> bytes:
        first = left[0]
        rows, columns = [position[0] for position in left], [position[1] for position in left]
        area = Window(min(rows), min(columns), max(rows), max(columns))
        moved = shift_formula(text, first[0] - old[0], first[1] - old[1])
        return self._element(b"f", moved, f' t="shared" ref="{area}" si="{index}"'.encode())

    # -- dimension -----------------------------------------------------------------------------

    @staticmethod
    def _grown(xml: bytes, cells: Mapping[tuple[int, int], NewContent]) -> bytes:
        """Extends the declared dimension to the new cells."""
        match = _DIMENSION.search(xml)
        area = parse_window(attribute(match[0], "ref") or "") if match else None
        filled = [position for position, new in cells.items() if new.content is not None]
        if match is None or area is None or not filled:
            return xml
        wider = Window(
            min(area.min_row, *(position[0] for position in filled)),
            min(area.min_column, *(position[1] for position in filled)),
            max(area.max_row, *(position[0] for position in filled)),
            max(area.max_column, *(position[1] for position in filled)),
        )
        if wider == area:
            return xml
        tag = with_attribute(match[0], "ref", str(wider))
        return xml[: match.start()] + tag + xml[match.end() :]
