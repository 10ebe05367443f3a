"""Reads answer positions such as ``'Sheet1!'A1:B9, C3``, and finds their cells in workbooks.

Published positions are written by hand, and one in ten is irregular. The grammar reads the intended
position, keeps it separate from the written text, and notes each correction that it made:

```
position  = part { "," part }
part      = [ sheet "!" ] cells
sheet     = "'" name "'" | name          quotes may be missing, misplaced or curly
cells     = cell [ ":" cell ]            A1, A1:B9
          | column ":" column            A:C     open at the bottom
          | row ":" row                  5:9     open to the right
          | cell ":" row                 A2:308  ends in the column in which it begins
          | cell ":" column              A2:C    open at the bottom
```

A part without a sheet belongs to the sheet of the part before it. The first part without one
belongs to the answer sheet that the suite names, or otherwise to the first worksheet.
:func:`resolve_position` turns a position into rectangles of two workbooks.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from judge.console import clipped
from judge.errors import PositionError
from judge.workbook.address import (
    MAX_COLUMN,
    MAX_ROW,
    Window,
    column_letters,
    column_number,
    folded,
)
from judge.workbook.cell import CellRange

_QUOTES = "'\u2018\u2019\u201a\u201b\u2032`\u00b4\uff07\""
_SPACES = " \t\r\n\u00a0\u200b\u200e\u200f\u202f\u3000\ufeff"
_QUOTED_SHEET = re.compile(rf"[{_SPACES}]*'((?:[^']|'')+)'[{_SPACES}]*[!\uff01]")
_COMMAS = re.compile("[,;\uff0c\uff1b\u3001]")
_BANGS = re.compile("[!\uff01]+")
_CELLS = re.compile(
    r"(?P<c1>[A-Za-z]{1,3})?(?P<r1>[0-9]{1,7})?(?:(?P<colon>:)(?P<c2>[A-Za-z]{1,3})?(?P<r2>[0-9]{1,7})?)?"
)
_CORNER = re.compile("([A-Za-z]*)([0-9]*)")
_MAX_SHOWN = 60  # characters of a position in a note
_MAX_POSITION_CHARS = 100_000


@dataclass(frozen=True, slots=True)
class PositionPart:
    """One rectangle of an intended position.

    Attributes:
        sheet: the intended name of the sheet, without quotes; None for the default sheet.
        min_row, min_column: the upper left corner, 1-based.
        max_row: last row, or None if the rectangle is open at the bottom.
        max_column: last column, or None if it is open to the right.
    """

    sheet: str | None
    min_row: int
    min_column: int
    max_row: int | None
    max_column: int | None

    def __str__(self) -> str:
        sheet = "" if self.sheet is None else "'{}'!".format(self.sheet.replace("'", "''"))
        first_column = column_letters(self.min_column)
        if self.max_column is None:
            return f"{sheet}{self.min_row}:{'' if self.max_row is None else self.max_row}"
        last_column = column_letters(self.max_column)
        if self.max_row is None:
            start = first_column if self.min_row == 1 else f"{first_column}{self.min_row}"
            return f"{sheet}{start}:{last_column}"
        first, last = f"{first_column}{self.min_row}", f"{last_column}{self.max_row}"
        return f"{sheet}{first}" if first == last else f"{sheet}{first}:{last}"


@dataclass(frozen=True, slots=True)
class Position:
    """An answer position as it was intended.

    Attributes:
        text: the position as it was written.
        parts: its rectangles; at least one.
        answer_sheet: the sheet that the suite names in addition to the position, if any.
        notes: one line for each correction that was made to read it.
    """

    text: str
    parts: tuple[PositionPart, ...]
    answer_sheet: str | None = None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ",".join(map(str, self.parts))


def parse_position(text: str, *, answer_sheet: str | None = None) -> Position:
    """Reads an answer position.

    Args:
        text: the position as the suite has it.
        answer_sheet: the suite's field of that name, which may list several sheets.

    Raises:
        PositionError: the text cannot be read as a position.
    """
    if len(text) > _MAX_POSITION_CHARS:
        raise PositionError(f"the answer position has {len(text):,} characters")
    notes: list[str] = []
    parts: list[PositionPart] = []
    for written in _split(text, notes):
        part = _parse_part(written, notes)
        if part is None:
            at = "" if written == text else f" at {_shorten(written)!r}"
            raise PositionError(
                f"the answer position {_shorten(text)!r} cannot be read{at}: {_fault(written)}",
                hint="Write it like 'Sheet1'!A1:B9, several of them with commas between.",
            )
        if part.sheet is None and parts and parts[-1].sheet is not None:
            notes.append(f"{_shorten(written)!r} names no sheet; the sheet before it was used")
            part = PositionPart(
                parts[-1].sheet, part.min_row, part.min_column, part.max_row, part.max_column
            )
        parts.append(part)
    return Position(text, tuple(parts), _clean_answer_sheet(answer_sheet), tuple(notes))


# -- the grammar ----------------------------------------------------------------------------------


def _split(text: str, notes: list[str]) -> list[str]:
    """Splits a position at the commas between parts, but not at commas in a sheet's name."""
    pieces: list[str] = []
    start = 0
    while start <= len(text):
        quoted = _QUOTED_SHEET.match(text, start)
        search_from = quoted.end() if quoted else start
        # Where quotes are not closed, a comma ends a part only if a range precedes it.
        for comma in _COMMAS.finditer(text, search_from):
            if _read_cells(_cells_of(text[start : comma.start()])) is not None:
                end = comma.start()
                _note_if(comma[0] != ",", f"{comma[0]!r} between ranges", text, notes)
                break
        else:
            end = len(text)
        pieces.append(text[start:end])
        start = end + 1
    if len(pieces) > 1 and not pieces[-1].strip(_SPACES + _QUOTES):
        pieces.pop()
        _note_if(True, "a separator at the end", text, notes)
    return pieces


def _cells_of(written: str) -> str:
    """The text after the last exclamation mark of a part."""
    return _BANGS.split(written)[-1]


def _parse_part(written: str, notes: list[str]) -> PositionPart | None:
    quoted = _QUOTED_SHEET.match(written)
    sheet: str | None
    if quoted:
        sheet = quoted[1].replace("''", "'")
        cells = written[quoted.end() :]
        _note_if(quoted[0] != quoted[0].strip(_SPACES), "spaces before the sheet", written, notes)
        _note_if(quoted[0].endswith("\uff01"), "a full-width bang", written, notes)
        cells = _without_sheet_again(sheet, cells, written, notes)
    elif _BANGS.search(written):
        name, _, cells = _BANGS.sub("!", written).rpartition("!")
        first, _, second = name.partition("!")
        if second and _bare(first) == _bare(second):
            name = first
            _note_if(True, "the sheet twice", written, notes)
        sheet = _plain_sheet(name, written, notes)
        if not sheet:
            return None
        _note_if("!" in name, "a bang in the sheet's name", written, notes)
    else:
        sheet, cells = None, written
    _note_if(
        "!!" in written.replace("\uff01", "!") or cells.startswith("!"),
        "a bang twice",
        written,
        notes,
    )
    read = _read_cells(cells)
    if read is None:
        return None
    part, liberties = read
    for liberty in liberties:
        _note_if(True, liberty, written, notes)
    return PositionPart(sheet, part.min_row, part.min_column, part.max_row, part.max_column)


def _without_sheet_again(sheet: str, cells: str, written: str, notes: list[str]) -> str:
    """The text after a sheet's name; if it repeats the name, the repetition is removed."""
    name, bang, rest = _BANGS.sub("!", cells).rpartition("!")
    if not bang or not _bare(name) or _bare(name) != _bare(sheet):
        return cells
    _note_if(True, "the sheet twice", written, notes)
    return rest


def _bare(name: str) -> str:
    """A sheet's name without case, spaces and quotes, to compare two names."""
    return "".join(
        character for character in name if character not in _SPACES + _QUOTES + "!"
    ).casefold()


def _plain_sheet(name: str, written: str, notes: list[str]) -> str:
    """The name of a sheet that is not properly quoted before the exclamation mark."""
    bare = name.strip(_SPACES)
    opened = bare[:1] in _QUOTES and bool(bare)
    closed = bare[-1:] in _QUOTES and len(bare) > 1
    if opened and closed:
        _note_if(True, "unusual quotes around the sheet", written, notes)
    elif closed:
        _note_if(True, "a closing quote without an opening one", written, notes)
    elif opened:
        _note_if(True, "an opening quote without a closing one before the bang", written, notes)
    _note_if(bare != name, "spaces around the sheet", written, notes)
    return bare.strip(_QUOTES).replace("''", "'") if opened or closed else bare


def _read_cells(written: str) -> tuple[PositionPart, list[str]] | None:
    """Reads the cells of a part; None if the text does not name cells."""
    liberties: list[str] = []
    bare = written.strip(_SPACES + _QUOTES + "!\uff01")
    stripped = written.strip(_SPACES)
    if stripped != written:
        liberties.append("spaces around the range")
    if stripped.strip("!\uff01") != bare:
        liberties.append("quotes around the range")
    text = unicodedata.normalize("NFKC", bare)
    if text != bare:
        liberties.append("full-width characters in the range")
    plain = "".join(character for character in text if character not in _SPACES + "$")
    if any(character in _SPACES for character in text):
        liberties.append("spaces within the range")
    match = _CELLS.fullmatch(plain)
    if match is None or not plain.isascii():
        return None
    if plain != plain.upper():
        liberties.append("lower-case columns")
    part = _corners(match, liberties)
    return None if part is None else (part, liberties)


def _corners(match: re.Match[str], liberties: list[str]) -> PositionPart | None:
    numbers = [int(text) if text else None for text in (match["r1"], match["r2"])]
    columns = [column_number(text) if text else None for text in (match["c1"], match["c2"])]
    if any(row is not None and not 1 <= row <= MAX_ROW for row in numbers) or any(
        column is not None and column > MAX_COLUMN for column in columns
    ):
        return None
    (row, last_row), (column, last_column) = numbers, columns
    if not match["colon"]:
        last_row, last_column = row, column
        if row is None or column is None:
            return None
    if column is None:
        if row is None or last_column is not None:
            return None
        return _ordered(row, 1, last_row, None, liberties)
    if last_row is None and last_column is None:
        return None
    if last_column is None:
        if row is None:
            return None
        liberties.append("an end without a column, read in the column of the start")
        last_column = column
    if row is None and last_row is not None:
        liberties.append("a start without a row, read from the first")
    elif row is not None and last_row is None:
        liberties.append("an end without a row, read to the last used one")
    return _ordered(row or 1, column, last_row, last_column, liberties)


def _ordered(
    row: int, column: int, last_row: int | None, last_column: int | None, liberties: list[str]
) -> PositionPart | None:
    if column == 1 and last_column is None and last_row is None:
        return PositionPart(None, row, 1, None, None)
    rows = [row, last_row] if last_row is not None and last_row < row else None
    columns = [column, last_column] if last_column is not None and last_column < column else None
    if rows or columns:
        liberties.append("corners in reverse order")
    if rows:
        row, last_row = min(row, last_row or row), row
    if columns:
        column, last_column = min(column, last_column or column), column
    return PositionPart(None, row, column, last_row, last_column)


# -- explaining errors ----------------------------------------------------------------------------


def _fault(written: str) -> str:
    """Why a part of a position cannot be read, in words."""
    if not written.strip(_SPACES + _QUOTES):
        return "it is blank"
    if _COMMAS.match(written.strip(_SPACES)):
        return "there is a separator where a range should begin"
    quoted = _QUOTED_SHEET.match(written)
    sheet, cells = "", written
    if quoted:
        sheet, cells = quoted[1], written[quoted.end() :]
    elif _BANGS.search(written):
        sheet, _, cells = _BANGS.sub("!", written).rpartition("!")
        if not sheet.strip(_SPACES + _QUOTES):
            return "there is no sheet before the exclamation mark"
    if quoted and _BANGS.search(cells.strip("!\uff01")):
        second = _BANGS.split(cells.strip("!\uff01"))[0].strip(_SPACES + _QUOTES)
        return f"it names two sheets, {_shorten(sheet)!r} and {_shorten(second)!r}, for one range"
    bare = cells.strip(_SPACES + _QUOTES + "!\uff01")
    if not sheet and written.strip(_SPACES)[0] in _QUOTES and bare[-1:] not in _QUOTES:
        return "there is no exclamation mark between the sheet and the cells"
    if sheet and not bare:
        return f"no cells follow the sheet {_shorten(sheet.strip(_SPACES + _QUOTES))!r}"
    text = unicodedata.normalize("NFKC", bare)
    return _fault_of_cells(
        "".join(character for character in text if character not in _SPACES + "$"), bare
    )


def _fault_of_cells(plain: str, bare: str) -> str:
    shown = _shorten(bare)
    first, colon, last = plain.partition(":")
    if ":" in last:
        return f"{shown!r} has more than one colon"
    if colon and not (first and last):
        return f"there is nothing {'after' if first else 'before'} the colon of {shown!r}"
    for corner in (first, last):
        match = _CORNER.fullmatch(corner)
        if match is None:
            return f"{shown!r} is not a range of cells"
        letters, digits = match.groups()
        if len(letters) > 3 and not digits:
            return f"{shown!r} is not a range of cells"
        if letters and (len(letters) > 3 or column_number(letters) > MAX_COLUMN):
            return f"there is no column {_shorten(letters)}; the last one is XFD"
        if digits and not (len(digits) <= 7 and 1 <= int(digits) <= MAX_ROW):
            return f"there is no row {_shorten(digits)}; rows go from 1 to {MAX_ROW:,}"
    if not colon:
        axis, other_axis = ("column", "row") if first.isalpha() else ("row", "column")
        return f"{shown!r} is a {axis} without a {other_axis}; a whole {axis} is {first}:{first}"
    return f"{shown!r} has a column on one side and a row on the other"


def _clean_answer_sheet(answer_sheet: str | None) -> str | None:
    """The only sheet that the suite names, or None if it names none or several."""
    if answer_sheet is None:
        return None
    bare = answer_sheet.strip(_SPACES)
    if "," not in bare:
        bare = bare.strip(_QUOTES)
    return bare or None


def _note_if(holds: bool, liberty: str, written: str, notes: list[str]) -> None:
    if holds:
        notes.append(f"{_shorten(written)!r} has {liberty}")


def _shorten(text: str) -> str:
    return clipped(text, _MAX_SHOWN)


@dataclass(frozen=True, slots=True)
class SheetIndex:
    """The facts about a workbook's sheets by which a position is resolved.

    Attributes:
        names: its worksheets in workbook order.
        used: returns the rectangle around all values of a worksheet, or None if it is blank; called
            only if a position is open-ended.
    """

    names: Sequence[str]
    used: Callable[[str], Window | None]


@dataclass(frozen=True, slots=True)
class ResolvedPosition:
    """The rectangles of a position in two workbooks.

    Attributes:
        gold_ranges: its rectangles in the gold.
        output_ranges: the same rectangles in the output, in the same order; None if the output
            lacks the sheet.
        notes: one line for each correction that was made to resolve it.
    """

    gold_ranges: tuple[CellRange, ...]
    output_ranges: tuple[CellRange | None, ...]
    notes: tuple[str, ...]


def resolve_position(
    position: Position, gold: SheetIndex, output: SheetIndex | None, *, typed: bool = False
) -> ResolvedPosition:
    """Finds the sheets of a position and bounds its open ends.

    Open ends are bounded by the cells that gold or output use, so that surplus cells of an output
    are compared as well.

    Args:
        position: the position.
        gold: sheets of the gold.
        output: sheets of the output, or None to resolve only on the gold.
        typed: whether a person typed the position: a sheet that the gold does not have is then an
            error. In published positions, it may be replaced by another sheet.

    Raises:
        PositionError: the gold has no sheet that the position could mean.
    """
    notes: list[str] = []
    gold_ranges: list[CellRange] = []
    output_ranges: list[CellRange | None] = []
    for part in position.parts:
        gold_sheet = (_typed_sheet if typed else _gold_sheet)(part, position, gold.names, notes)
        output_sheet = None
        if output is not None:
            output_sheet = _output_sheet(gold_sheet, output.names, notes)
        window = _bounded(part, gold_sheet, output_sheet, gold, output)
        bounds = (window.min_row, window.min_column, window.max_row, window.max_column)
        gold_ranges.append(CellRange(gold_sheet, *bounds))
        output_ranges.append(None if output_sheet is None else CellRange(output_sheet, *bounds))
    return ResolvedPosition(tuple(gold_ranges), tuple(output_ranges), tuple(dict.fromkeys(notes)))


def _typed_sheet(
    part: PositionPart, position: Position, names: Sequence[str], notes: list[str]
) -> str:
    """The sheet with the given name, as spreadsheet programs find it: case does not matter."""
    sheet_name = position.answer_sheet if part.sheet is None else part.sheet
    if sheet_name is None:
        return _default_sheet(position, names, notes)
    match = next((name for name in names if folded(name) == folded(sheet_name)), None)
    if match is None:
        raise _no_such_sheet(sheet_name, position, names)
    return match


def _no_such_sheet(sheet_name: str, position: Position, names: Sequence[str]) -> PositionError:
    listed = ", ".join(repr(name) for name in names[:20])
    more = f" and {len(names) - 20:,} more" if names[20:] else ""
    return PositionError(
        f"the answer position {position.text[:60]!r} names the sheet {sheet_name!r}; "
        f"the workbook has {listed}{more}"
    )


def _gold_sheet(
    part: PositionPart, position: Position, names: Sequence[str], notes: list[str]
) -> str:
    if part.sheet is None:
        return _default_sheet(position, names, notes)
    if part.sheet in names:
        return part.sheet
    match = match_sheet(part.sheet, names)
    if match is None and position.answer_sheet is not None:
        match = match_sheet(position.answer_sheet, names)
    if match is None and len(names) == 1 and _names_one_sheet(position):
        notes.append(
            f"no sheet is called {part.sheet!r}; the only one, {names[0]!r}, was used instead"
        )
        return names[0]
    if match is None:
        raise _no_such_sheet(part.sheet, position, names)
    notes.append(f"sheet {part.sheet!r} was read as {match!r}")
    return match


def _names_one_sheet(position: Position) -> bool:
    """Whether all parts of a position name the same sheet; they may then mean the only sheet."""
    return len({_folded(part.sheet) for part in position.parts if part.sheet is not None}) == 1


def _default_sheet(position: Position, names: Sequence[str], notes: list[str]) -> str:
    if position.answer_sheet is not None:
        match = match_sheet(position.answer_sheet, names)
        if match is not None:
            if match != names[0]:
                notes.append(f"the sheet {match!r} was taken from the suite's answer sheet")
            return match
    if len(names) > 1:
        notes.append(f"no sheet is named; the first one, {names[0]!r}, was taken")
    return names[0]


def _output_sheet(gold_sheet: str, names: Sequence[str], notes: list[str]) -> str | None:
    alike = same_sheet(gold_sheet, names)
    if alike is not None and alike != gold_sheet:
        notes.append(f"the output's sheet {alike!r} was read as {gold_sheet!r}")
    return alike


def same_sheet(sheet_name: str, names: Sequence[str]) -> str | None:
    """The sheet with the given name, exactly or with different case and spacing.

    Returns:
        The sheet's real name, or None if no sheet or several sheets have it.
    """
    if sheet_name in names:
        return sheet_name
    alike = [name for name in names if _folded(name) == _folded(sheet_name)]
    return alike[0] if len(alike) == 1 else None


def match_sheet(sheet_name: str, names: Sequence[str]) -> str | None:
    """The sheet that a name means: exactly, then regardless of case and spacing, then as a prefix.

    Returns:
        The sheet's real name, or None if no sheet or several sheets fit.
    """
    if (named := same_sheet(sheet_name, names)) is not None:
        return named
    sought = _folded(sheet_name)
    if not sought:
        return None
    longer = [name for name in names if _folded(name).startswith(sought)]
    if len(longer) == 1:
        return longer[0]
    return None


def _folded(name: str) -> str:
    return "".join(name.split()).casefold()


def _bounded(
    part: PositionPart,
    gold_sheet: str,
    output_sheet: str | None,
    gold: SheetIndex,
    output: SheetIndex | None,
) -> Window:
    if part.max_row is not None and part.max_column is not None:
        return Window(part.min_row, part.min_column, part.max_row, part.max_column)
    used = [gold.used(gold_sheet)]
    if output is not None and output_sheet is not None:
        used.append(output.used(output_sheet))
    max_row = max((window.max_row for window in used if window is not None), default=1)
    max_column = max((window.max_column for window in used if window is not None), default=1)
    return Window(
        part.min_row,
        part.min_column,
        part.max_row if part.max_row is not None else max(part.min_row, max_row),
        part.max_column if part.max_column is not None else max(part.min_column, max_column),
    )
