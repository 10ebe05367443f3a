"""Formulas as a worksheet has them, including those that are written once and shared by many cells.

A program may write a formula in one cell, the master, and let other cells refer to it by an index.
The formula of a cell is taken from the cells that were read, for whatever window. If its master is
not among them, the whole worksheet is searched, but only once: rows are skipped as text, and only
shared formulas are read. This is exact if all of them are written as programs usually write them,
and if there is no comment, CDATA section or processing instruction between them. Anything else is
left to the parser.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from judge.errors import WorkbookError
from judge.formulas.shift import shift_formula
from judge.workbook.address import (
    COLUMN_BITS,
    COLUMN_MASK,
    MAX_COLUMN,
    MAX_ROW,
    Window,
    cell_key,
    cell_name,
    column_number,
    parse_cell,
    parse_window,
)
from judge.workbook.package import Package

# What XML allows in text, apart from markup and from the carriage return, which it rewrites.
TEXT = "[^<\\x00-\\x08\\x0b-\\x1f\\ufffe\\uffff]"
ATTRIBUTES = '(?: [A-Za-z:]+="[^"<>&]*")*'
ATTRIBUTE = re.compile(' ([A-Za-z:]+)="([^"<>&]*)"')

FORMULA_KINDS = frozenset({"normal", "shared", "array", "dataTable"})
"""Types of formulas: ECMA-376 part 1, 18.18.6."""

FILLING_KINDS = frozenset({"array", "dataTable"})
"""Types of formulas that give values to a whole range, whose first cell has the formula."""

_FILLING_MARKUP = tuple(f'"{kind}"' for kind in sorted(FILLING_KINDS))
_FLAGS = {"0": False, "false": False, "1": True, "true": True}
_FORMULA = re.compile(f"<f({ATTRIBUTES}) ?(?:/>|>({TEXT}*)</f>)")
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'", "&amp;": "&"}
"""Entity -> character; the ampersand is last, so that it begins no other entity."""
UNUSUAL_ENTITY = re.compile("&(?!(?:amp|lt|gt|quot|apos);)")
"""A character reference, or an entity that XML does not know."""


def unescape(text: str) -> str:
    """Replaces the five named entities in text by their characters."""
    if "&" in text:
        for entity, character in _ENTITIES.items():
            text = text.replace(entity, character)
    return text


class RawFormula:
    """A formula as it is in the file.

    Args:
        text: the formula without its leading ``=``; empty if it refers to a shared one.
        attributes: attributes of its element.
        cached: whether a value is stored with it.
        markup: what begins with its ``<f>`` element in the usual form; text and attributes are then
            taken from there when they are first needed.

    Attributes:
        cached: whether a value is stored with it.
    """

    __slots__ = ("_attributes", "_markup", "_text", "cached")

    def __init__(
        self, text: str, attributes: Mapping[str, str], *, cached: bool, markup: str = ""
    ) -> None:
        self._text = text
        self._attributes = attributes
        self._markup = markup
        self.cached = cached

    def _parse(self) -> None:
        markup = self._markup
        if markup.startswith("<f>"):
            self._text = unescape(markup[3 : markup.index("</f>")])
        elif markup:
            match = _FORMULA.match(markup)
            assert match is not None
            self._attributes = _attributes(match[1])
            self._text = unescape(match[2] or "")
        self._markup = ""  # last, since workbooks in other threads may have the same formula

    @property
    def text(self) -> str:
        """The formula without its leading ``=``; empty if it refers to a shared one."""
        if self._markup:
            self._parse()
        return self._text

    @property
    def kind(self) -> str:
        """``normal``, ``shared``, ``array`` or ``dataTable``."""
        if self._markup.startswith("<f>"):
            return "normal"
        if self._markup:
            self._parse()
        return self._attributes.get("t", "normal")

    @property
    def fills(self) -> bool:
        """Whether it gives values to a range; most formulas need not be parsed to know it."""
        markup = self._markup
        if markup and not any(kind in markup for kind in _FILLING_MARKUP):
            return False
        return self.kind in FILLING_KINDS

    @property
    def reference(self) -> str | None:
        """The range to which a shared or array formula applies, on its first cell."""
        if self._markup:
            self._parse()
        return self._attributes.get("ref")

    @property
    def shared(self) -> str | None:
        """Index of the shared formula."""
        if self._markup:
            self._parse()
        return self._attributes.get("si")

    @property
    def computed_window(self) -> Window | None:
        """The part of a data table that LibreOffice computes; None if it computes no part.

        The table must name the cells that its inputs replace: if such a cell was deleted, Excel
        shows ``#REF!``, but LibreOffice shows the stored value. There must be a row above the table
        and a column to the left of it. In a table with one input, LibreOffice computes only two
        columns, or two rows.
        """
        if self._markup:
            self._parse()
        attributes = self._attributes
        window = parse_window(self.reference or "")
        if window is None or min(window.first) == 1:
            return None
        flags = {
            name: _FLAGS.get(attributes.get(name, "0")) for name in ("dt2D", "dtr", "del1", "del2")
        }
        if None in flags.values():
            return None
        numbers = "12" if flags["dt2D"] else "1"
        if any(
            flags[f"del{number}"] or not _is_cell(attributes.get(f"r{number}", ""))
            for number in numbers
        ):
            return None
        if flags["dt2D"]:
            return window
        if flags["dtr"]:
            return replace(window, max_row=min(window.max_row, window.min_row + 1))
        return replace(window, max_column=min(window.max_column, window.min_column + 1))

    def belongs_to(self, key: int) -> bool:
        """Whether a formula that fills a range names that range and is in its first cell."""
        if self.kind not in FILLING_KINDS:
            return True
        window = parse_window(self.reference or "")
        return window is not None and cell_key(*window.first) == key


@functools.lru_cache(maxsize=1024)
def _attributes(tag: str) -> Mapping[str, str]:
    """The attributes of a tag; most cells that share a formula have the same tag."""
    return dict(ATTRIBUTE.findall(tag))


def _is_cell(text: str) -> bool:
    position = parse_cell(text)
    return position is not None and position[1] <= MAX_COLUMN


Formulas = Mapping[int, RawFormula]
"""Formulas by the key of their cell, in the order of the file."""


@dataclass(frozen=True, slots=True)
class _Master:
    """The master of a shared formula, which contains its text.

    Attributes:
        key: key of the cell.
        text: the formula without its leading ``=``.
    """

    key: int
    text: str


class SharedFormulas:
    """The formulas of the cells of one worksheet that share them.

    Every index has one master, which comes before the cells that use it and is in the range that it
    names. The scan of a worksheet checks this for masters
    (:meth:`~judge.workbook.sheets.sheet_cells.CellCollector.note_master`), since programs read
    anything else differently.

    Args:
        read_all: returns all formulas of the worksheet that others may share, including those under
            merged ranges.
        count: called with the number of characters before a formula is written out; it raises an
            error if there are too many.

    Source: ECMA-376 part 1, 18.3.1.40.
    """

    def __init__(self, read_all: Callable[[], Formulas], count: Callable[[int], None]) -> None:
        self._read_all = read_all
        self._count = count
        self._unseen: list[Formulas] = []
        self._masters: dict[str, _Master] = {}
        self._complete = False

    def add(self, formulas: Formulas) -> None:
        """Records formulas that were read; they are parsed only when they are needed."""
        if formulas and not self._complete:
            self._unseen.append(formulas)

    def written_out(self, key: int, index: str) -> str:
        """The formula of a cell with a shared formula, without its leading ``=``.

        Args:
            key: the cell.
            index: the index of its shared formula.

        Raises:
            WorkbookError: the shared formula has no master before the cell, is broken, or exceeds
                a limit.
        """
        while self._unseen:
            self._note(self._unseen.pop())
        if index not in self._masters and not self._complete:
            self._note(self._read_all())
            self._complete = True
        master = self._masters.get(index)
        if master is None or master.key > key:
            cell = cell_name(key >> COLUMN_BITS, key & COLUMN_MASK)
            raise WorkbookError(f"no cell before {cell} has the shared formula {index[:20]!r}")
        self._count(len(master.text))
        rows = (key >> COLUMN_BITS) - (master.key >> COLUMN_BITS)
        columns = (key & COLUMN_MASK) - (master.key & COLUMN_MASK)
        return shift_formula(master.text, rows, columns)

    def _note(self, formulas: Formulas) -> None:
        for key, raw in formulas.items():
            if raw.kind == "shared" and raw.text and raw.shared is not None:
                self._masters.setdefault(raw.shared, _Master(key, raw.text))


_SHARED = re.compile(
    f'<c r="([A-Z]{{1,3}})([0-9]{{1,7}})"[^<>&]*><f({ATTRIBUTES}) ?(?:/>|>({TEXT}*)</f>)'
)
_FORMULA_WITH_ENTITY = re.compile(rb"<f\b[^<>]*&")
_PLAIN_ROOT = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml\s[^>]*\?>)?\s*<worksheet[\s>]")
_NOT_UTF8 = re.compile(rb"""encoding\s*=\s*["'](?!utf-8["'])""", re.IGNORECASE)
_MAX_BLOCK_BYTES = 4 << 20


def find_masters(package: Package, part: str) -> dict[int, RawFormula] | None:
    """The masters of the shared formulas of a worksheet.

    Args:
        package: the workbook.
        part: name of the worksheet's part.

    Returns:
        Their formulas by key, in the order of the file; None if the parser must read it.

    Raises:
        WorkbookError: the worksheet is missing, broken or over a limit.
    """
    formulas: dict[int, RawFormula] = {}
    pending = b""
    begun = False
    for chunk in package.chunks(part):
        pending += chunk
        if not begun:
            start = pending.find(b"<sheetData")
            if start < 0:
                if len(pending) > _MAX_BLOCK_BYTES:
                    return None
                continue
            head = pending[:start]
            if _PLAIN_ROOT.match(head) is None or _NOT_UTF8.search(head[:200]):
                return None
            if b"<!" in head or head.count(b"<?") > 1:
                return None
            pending, begun = pending[start:], True
        cut = pending.rfind(b"<row")
        if cut > 0:
            if not _take(pending[:cut], formulas):
                return None
            pending = pending[cut:]
        elif len(pending) > _MAX_BLOCK_BYTES:
            return None
    if not begun or not _take(pending, formulas):
        return None
    package.budget.take_chars(sum(len(formula.text) for formula in formulas.values()))
    return formulas


def _take(block: bytes, formulas: dict[int, RawFormula]) -> bool:
    """Adds the masters in some whole rows; returns False if the parser must read the rows."""
    if b"<!" in block or b"<?" in block or b"\r" in block:
        return False
    if b"&" in block and _FORMULA_WITH_ENTITY.search(block):
        return False
    spelled = block.count(b"shared")
    if not spelled:
        return True
    try:
        rows = block.decode()
    except UnicodeDecodeError:
        return False
    for letters, digits, attributes, text in _SHARED.findall(rows):
        named = dict(ATTRIBUTE.findall(attributes))
        if named.get("t") != "shared":
            continue
        spelled -= 1
        if not text:
            continue
        if UNUSUAL_ENTITY.search(text) or not 1 <= int(digits) <= MAX_ROW:
            return False
        # If an address occurs twice, the last cell counts; the parser handles that.
        key = cell_key(int(digits), column_number(letters))
        if key in formulas:
            return False
        formulas[key] = RawFormula(unescape(text), named, cached=True)
    # The word also occurs elsewhere, or in a form that was not read.
    return spelled == 0
