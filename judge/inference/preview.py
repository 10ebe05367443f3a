"""The first rows of a workbook's sheets, read without loading what is not shown.

An input workbook of a published suite is a zip of XML. Each sheet is inflated piece by piece and
parsed only until the row after the last one that is wanted; of the shared strings only as many are
read as those rows point to. A sheet of 22,319 rows costs what its first rows cost.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from pyexpat import ExpatError
from typing import IO

from judge.errors import WorkbookError
from judge.inference.numberformats import date_styles
from judge.inference.sheetxml import (
    REFERENCE,
    SheetReader,
    Styles,
    Value,
    local_name,
    new_parser,
    read_strings,
)

_MAX_PART_BYTES = 256 * 1024 * 1024
_MAX_TAIL_BYTES = 16 * 1024 * 1024
_MERGE = re.compile(rb'<(?:\w+:)?mergeCell\s[^<>]*?ref="([A-Za-z0-9:$]+)"')


@dataclass(frozen=True, slots=True)
class SheetPreview:
    """The first rows of one sheet.

    Attributes:
        name: the sheet's name.
        rows: values of the first rows, row 1 first, all of the same width; blank rows at the
            end of the sheet are left out.
        total_rows: rows that the sheet says it has; None where it does not say.
        total_columns: columns that the sheet says it has; None where it does not say.
        more_rows: whether rows follow that are not in ``rows``.
        merged: merged ranges that touch ``rows``, as ``A1:C1``.
    """

    name: str
    rows: tuple[tuple[Value, ...], ...]
    total_rows: int | None = None
    total_columns: int | None = None
    more_rows: bool = False
    merged: tuple[str, ...] = ()


def read_preview(path: Path, rows: int) -> tuple[SheetPreview, ...]:
    """The first rows of every worksheet, in the workbook's order.

    Args:
        path: the workbook (.xlsx or .xlsm).
        rows: how many rows of each sheet, counted from row 1.

    Raises:
        WorkbookError: not a zip, or without the parts of a workbook, or broken XML.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return tuple(_read_sheets(_Package(archive), rows))
    except OSError as error:
        raise WorkbookError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (
        zipfile.BadZipFile,
        zipfile.LargeZipFile,
        NotImplementedError,
        KeyError,
        ExpatError,
        ValueError,
        EOFError,
    ) as error:
        raise WorkbookError(f"{path}: not a workbook that can be read: {error}") from error


class _Package:
    """Parts of the package by name, whatever slashes and capitals the writer used."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._names = {
            name.replace("\\", "/").lstrip("/").lower(): name for name in archive.namelist()
        }

    def has(self, name: str) -> bool:
        return name.lower() in self._names

    def open(self, name: str) -> IO[bytes]:
        if self.size(name) > _MAX_PART_BYTES:
            raise ValueError(f"{name} is {self.size(name)} bytes")
        return self._archive.open(self._names[name.lower()])

    def size(self, name: str) -> int:
        return self._archive.getinfo(self._names[name.lower()]).file_size

    def elements(self, name: str) -> list[tuple[str, dict[str, str]]]:
        """Elements of a small part in order, as (local name, attributes)."""
        found: list[tuple[str, dict[str, str]]] = []
        if self.has(name):
            parser = new_parser()
            parser.StartElementHandler = lambda tag, attributes: found.append(
                (local_name(tag), attributes)
            )
            with self.open(name) as part:
                parser.Parse(part.read(), True)
        return found


def _read_sheets(package: _Package, rows: int) -> Iterator[SheetPreview]:
    relations = _read_relations(package)
    names, epoch_1904 = _read_workbook(package)
    styles = Styles(date_styles(package.elements("xl/styles.xml")), epoch_1904)
    sheets = [
        (name, *_read_sheet(package, relations[key], rows))
        for name, key in names
        if key in relations and package.has(relations[key])
    ]
    wanted = max((reader.last_string for _, reader, _ in sheets), default=-1)
    strings: list[str] = []
    if wanted >= 0 and package.has("xl/sharedStrings.xml"):
        with package.open("xl/sharedStrings.xml") as part:
            strings = read_strings(part, wanted)
    for name, reader, merged in sheets:
        total_rows, total_columns = reader.total or (None, None)
        yield SheetPreview(
            name=name,
            rows=reader.grid(strings, styles),
            total_rows=total_rows,
            total_columns=total_columns,
            more_rows=reader.more,
            merged=merged,
        )


def _read_relations(package: _Package) -> dict[str, str]:
    """Paths of the worksheets by relation id; chart sheets are left out."""
    relations = {}
    for tag, attributes in package.elements("xl/_rels/workbook.xml.rels"):
        if tag == "Relationship" and attributes.get("Type", "").endswith("/worksheet"):
            target = attributes["Target"].replace("\\", "/")
            path = target.lstrip("/") if target.startswith("/") else posixpath.join("xl", target)
            relations[attributes["Id"]] = posixpath.normpath(path)
    return relations


def _read_workbook(package: _Package) -> tuple[list[tuple[str, str]], bool]:
    """Names and relation ids of the sheets, and whether days are counted from 1904."""
    names: list[tuple[str, str]] = []
    epoch_1904 = False
    for tag, attributes in package.elements("xl/workbook.xml"):
        if tag == "sheet":
            key = next(
                (value for name, value in attributes.items() if local_name(name) == "id"), ""
            )
            names.append((attributes.get("name", ""), key))
        elif tag == "workbookPr":
            epoch_1904 = attributes.get("date1904", "0") in {"1", "true"}
    if not names:
        raise ValueError("xl/workbook.xml names no sheet")
    return names, epoch_1904


def _read_sheet(package: _Package, name: str, rows: int) -> tuple[SheetReader, tuple[str, ...]]:
    reader = SheetReader(rows)
    with package.open(name) as part:
        tail = reader.read(part)
        # Merged ranges stand behind all rows. Inflating on without parsing is cheap, but not free.
        if package.size(name) > _MAX_TAIL_BYTES:
            return reader, ()
        return reader, _merged_ranges(tail, part, rows)


def _merged_ranges(tail: bytes, part: IO[bytes], rows: int) -> tuple[str, ...]:
    found: list[str] = []
    rest = tail
    while rest:
        for match in _MERGE.finditer(rest):
            reference = match[1].decode().replace("$", "").upper()
            first_cell = REFERENCE.match(reference)
            if first_cell and int(first_cell[2]) <= rows:
                found.append(reference)
        chunk = part.read(1024 * 1024)
        if not chunk:
            break
        # An element cut in two by the chunks: its beginning stays for the next round.
        cut = rest.rfind(b"<")
        rest = (rest[cut:] if 0 <= len(rest) - cut < 4096 else b"") + chunk
    return tuple(dict.fromkeys(found))
