"""Reads the values of single cells from the parts of a workbook, as the published evaluators do.

They read ``xl/worksheets/sheet{sheetId}.xml``, although a ``sheetId`` is not the number of a file.
"""

from __future__ import annotations

from dataclasses import dataclass

from judge.compare.published_error import PublishedError
from judge.errors import WorkbookError
from judge.workbook.package import Package
from judge.workbook.tree import MAX_ELEMENTS, Element, read_tree
from judge.workbook.xml_parts import scan_part

_SPACE_KEY = "@http://www.w3.org/XML/1998/namespace:space"
_MISSING = object()


@dataclass(slots=True)
class _Stored:
    """A cell: its type, value and inline string; `_MISSING` for a value that the cell lacks."""

    kind: str
    value: object = _MISSING
    inline: object = _MISSING


class CellTexts:
    """Values of cells of one workbook.

    Args:
        package: the workbook.
    """

    def __init__(self, package: Package) -> None:
        self._package = package
        self._sheets: dict[str, dict[str, _Stored]] = {}
        self._ids: dict[str, str] | None = None
        self._strings: tuple[str, ...] | None = None
        self._strings_read = False

    def read(self, sheet: str, coordinate: str, *, osworld: bool) -> object:
        """The value of a cell: a float, a string, or None.

        Args:
            sheet: name of the sheet.
            coordinate: the cell, in capitals.
            osworld: whether to read as OSWorld's evaluator does, rather than Spider2-V's.

        Raises:
            PublishedError: the published function raises.
            WorkbookError: a part is broken or over a limit.
        """
        try:
            cell = self.cells(sheet).get(coordinate)
        except PublishedError:
            if osworld:
                return None
            raise
        if cell is None:
            return None
        if cell.kind == "n":
            return self._number(cell.value)
        if cell.kind == "s":
            return self._shared(cell.value, osworld=osworld)
        if cell.kind == "str" or (cell.kind == "e" and osworld):
            return None if cell.value is _MISSING else cell.value
        if cell.kind == "inlineStr" and osworld:
            return None if cell.inline is _MISSING else cell.inline
        return None

    def part(self, sheet: str) -> str:
        """Name of the part that is read for a sheet.

        Raises:
            PublishedError: there is no such sheet, or no such part.
            WorkbookError: the main part is broken or over a limit.
        """
        if self._ids is None:
            if "xl/workbook.xml" not in self._package:
                raise _no_item("xl/workbook.xml")
            with self._package.blamed():
                root = read_tree(self._package, "xl/workbook.xml", max_elements=MAX_ELEMENTS)
            listed = root.child("sheets") or Element("sheets")
            self._ids = {
                element.attributes.get("name", ""): element.attributes.get("sheetId", "None")
                for element in listed.all("sheet")
            }
        if sheet not in self._ids:
            raise PublishedError("KeyError", repr(sheet))
        part = f"xl/worksheets/sheet{self._ids[sheet]}.xml"
        if part not in self._package:
            raise _no_item(part)
        return part

    def cells(self, sheet: str) -> dict[str, _Stored]:
        """All cells of the part of a sheet, by coordinate; if one is repeated, its first cell.

        Raises:
            PublishedError: there is no such sheet, or no such part.
            WorkbookError: the part is broken or over a limit.
        """
        part = self.part(sheet)
        if part not in self._sheets:
            with self._package.blamed():
                self._sheets[part] = _read_cells(self._package, part)
        return self._sheets[part]

    @staticmethod
    def _number(value: object) -> float | None:
        if value is _MISSING:
            return None
        if value is None:
            raise PublishedError(
                "TypeError", "float() argument must be a string or a real number, not 'NoneType'"
            )
        try:
            return float(str(value))
        except ValueError:
            return None

    def _shared(self, value: object, *, osworld: bool) -> str | None:
        if not self._strings_read:
            with self._package.blamed():
                self._strings = _read_strings(self._package)
            self._strings_read = True
        if self._strings is None and not osworld:
            raise PublishedError(
                "UnboundLocalError",
                "cannot access local variable 'shared_strs' where it is not associated with a "
                "value",
            )
        if value is _MISSING:
            return None
        if value is None:
            raise PublishedError(
                "TypeError",
                "int() argument must be a string, a bytes-like object or a real number, not "
                "'NoneType'",
            )
        strings = self._strings or ()
        try:
            return strings[int(str(value)[:20])]
        except ValueError:
            return None
        except IndexError:
            raise PublishedError("IndexError", "list index out of range") from None


def _no_item(part: str) -> PublishedError:
    return PublishedError("KeyError", f'"There is no item named {part!r} in the archive"')


def _read_cells(package: Package, part: str) -> dict[str, _Stored]:
    cells: dict[str, _Stored] = {}
    path: list[str] = []
    text: list[str] = []
    current: _Stored | None = None
    spaced = False

    def on_start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal current, spaced
        path.append(tag)
        text.clear()
        if tag == "c" and path[-2:-1] == ["row"]:
            package.budget.take_cells(1)
            current = _Stored(attributes.get("t", "n"))
            cells.setdefault(attributes.get("r", ""), current)
        elif tag == "t":
            spaced = "xml:space" in attributes

    def on_end() -> None:
        nonlocal current
        tag = path.pop()
        if current is None:
            return
        if tag == "c":
            current = None
        elif tag == "v" and path[-1:] == ["c"]:
            current.value = _stripped(text, package)
        elif tag == "t" and path[-2:] == ["c", "is"]:
            content = _stripped(text, package)
            if spaced:  # with an attribute, an element is a dictionary
                current.inline = {_SPACE_KEY: "preserve"} | ({"#text": content} if content else {})
            else:
                current.inline = content
        text.clear()

    scan_part(package, part, on_start, on_end, text.append)
    return cells


def _stripped(text: list[str], package: Package) -> str | None:
    content = "".join(text).strip()
    package.budget.take_chars(len(content))
    return content or None


def _read_strings(package: Package) -> tuple[str, ...] | None:
    """The shared strings, including phonetics; None if the workbook has none or an empty one."""
    part = "xl/sharedStrings.xml"
    if part not in package:
        return None
    strings: list[str] = []
    inside = False
    empty = False
    pieces: list[str] = []

    def on_start(tag: str, _: dict[str, str]) -> None:
        nonlocal inside
        if tag == "si":
            package.budget.take_cells(1)
            strings.append("")
        inside = tag == "t"
        pieces.clear()

    def on_text(piece: str) -> None:
        if inside:
            pieces.append(piece)

    def on_end() -> None:
        nonlocal inside, empty
        if inside and strings:
            content = "".join(pieces)
            package.budget.take_chars(len(content))
            empty = empty or not content
            strings[-1] += content
        inside = False

    try:
        scan_part(package, part, on_start, on_end, on_text)
    except WorkbookError:
        package.budget.check()
        return None
    return None if empty else tuple(strings)
