"""From a position as it was meant to rectangles of two workbooks. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from judge.errors import PositionError
from judge.workbook.address import Window, folded
from judge.workbook.cell import CellRange
from judge.workbook.position import Position, PositionPart


@dataclass(frozen=True, slots=True)
class SheetIndex:
    """What resolving needs to know about a workbook.

    Attributes:
        names: its worksheets in workbook order.
        used: the rectangle around all values of a worksheet, or None if it is blank; called only
            if a position is open-ended.
    """

    names: Sequence[str]
    used: Callable[[str], Window | None]


@dataclass(frozen=True, slots=True)
class ResolvedPosition:
    """A position on two workbooks.

    Attributes:
        gold_ranges: its rectangles on the gold.
        output_ranges: the same rectangles on the output, in the same order; None if the output
            lacks the sheet.
        notes: one line for each liberty that resolving it took.
    """

    gold_ranges: tuple[CellRange, ...]
    output_ranges: tuple[CellRange | None, ...]
    notes: tuple[str, ...]


def resolve_position(
    position: Position, gold: SheetIndex, output: SheetIndex | None, *, typed: bool = False
) -> ResolvedPosition:
    """Finds the sheets of a position and bounds its open ends.

    Open ends are bounded by what gold and output use together, so that surplus cells of an output
    are compared as well.

    Args:
        position: the position.
        gold: sheets of the gold.
        output: sheets of the output, or None to resolve only on the gold.
        typed: whether a person typed the position: no other sheet is then taken for one that the
            gold does not have. Published positions are read leniently.

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
    """The sheet of a name, as spreadsheet programs find it: case does not matter."""
    meant = position.answer_sheet if part.sheet is None else part.sheet
    if meant is None:
        return _default_sheet(position, names, notes)
    found = next((name for name in names if folded(name) == folded(meant)), None)
    if found is None:
        raise _no_such_sheet(meant, position, names)
    return found


def _no_such_sheet(meant: str, position: Position, names: Sequence[str]) -> PositionError:
    listed = ", ".join(repr(name) for name in names[:20])
    more = f" and {len(names) - 20:,} more" if names[20:] else ""
    return PositionError(
        f"the answer position {position.text[:60]!r} names the sheet {meant!r}; "
        f"the workbook has {listed}{more}"
    )


def _gold_sheet(
    part: PositionPart, position: Position, names: Sequence[str], notes: list[str]
) -> str:
    if part.sheet is None:
        return _default_sheet(position, names, notes)
    if part.sheet in names:
        return part.sheet
    found = match_sheet(part.sheet, names)
    if found is None and position.answer_sheet is not None:
        found = match_sheet(position.answer_sheet, names)
    if found is None and len(names) == 1 and _names_one_sheet(position):
        notes.append(
            f"no sheet is called {part.sheet!r}; the only one, {names[0]!r}, was used instead"
        )
        return names[0]
    if found is None:
        raise _no_such_sheet(part.sheet, position, names)
    notes.append(f"sheet {part.sheet!r} was read as {found!r}")
    return found


def _names_one_sheet(position: Position) -> bool:
    """Whether all parts of a position name one sheet, and so can mean the only one there is."""
    return len({_folded(part.sheet) for part in position.parts if part.sheet is not None}) == 1


def _default_sheet(position: Position, names: Sequence[str], notes: list[str]) -> str:
    if position.answer_sheet is not None:
        found = match_sheet(position.answer_sheet, names)
        if found is not None:
            if found != names[0]:
                notes.append(f"the sheet {found!r} was taken from the suite's answer sheet")
            return found
    if len(names) > 1:
        notes.append(f"no sheet is named; the first one, {names[0]!r}, was taken")
    return names[0]


def _output_sheet(gold_sheet: str, names: Sequence[str], notes: list[str]) -> str | None:
    if gold_sheet in names:
        return gold_sheet
    alike = [name for name in names if _folded(name) == _folded(gold_sheet)]
    if len(alike) != 1:
        return None
    notes.append(f"the output's sheet {alike[0]!r} was read as {gold_sheet!r}")
    return alike[0]


def match_sheet(meant: str, names: Sequence[str]) -> str | None:
    """The sheet that a name means: exactly, then in case and spacing, then as a unique prefix.

    Returns:
        The sheet's real name, or None if none or several fit.
    """
    if meant in names:
        return meant
    sought = _folded(meant)
    if not sought:
        return None
    alike = [name for name in names if _folded(name) == sought]
    if len(alike) == 1:
        return alike[0]
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
    max_row = max((each.max_row for each in used if each is not None), default=1)
    max_column = max((each.max_column for each in used if each is not None), default=1)
    return Window(
        part.min_row,
        part.min_column,
        part.max_row if part.max_row is not None else max(part.min_row, max_row),
        part.max_column if part.max_column is not None else max(part.min_column, max_column),
    )
