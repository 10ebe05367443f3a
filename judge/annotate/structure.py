"""Changes of a workbook beyond its cells: names of sheets, merged cells, the date system."""

from __future__ import annotations

import functools
import html
import re
from collections.abc import Callable

from judge.errors import UsageError, WorkbookError
from judge.formulas.shift import with_sheet_renamed
from judge.workbook.address import Window, folded
from judge.workbook.editing.parts import (
    QUOTED,
    SHEET_TAG,
    attribute,
    escape_attribute,
    escape_text,
    with_attribute,
)
from judge.workbook.package import Package
from judge.workbook.workbook_parts import main_part

_PROPERTIES = re.compile(rb"<(?:\w+:)?workbookPr\b" + QUOTED + rb"/?>")
_FORMULA_TEXT = re.compile(
    rb"(?P<open><(?:\w+:)?(?:f|formula|formula1|formula2|definedName)(?=[\s>])"
    + QUOTED
    + rb"(?<!/)>)(?P<text>[^<]+)(?=</)"
)
_FORMULA_PARTS = re.compile(r"/(?:worksheets|chartsheets|charts|tables|pivotCache)/[^/]+\.xml$")
_MERGES = re.compile(rb"<(?P<prefix>\w+:)?mergeCells\b" + QUOTED + rb">")
_BEFORE_MERGES = (
    *("sheetData", "sheetCalcPr", "sheetProtection", "protectedRanges", "scenarios"),
    *("autoFilter", "sortState", "dataConsolidate", "customSheetViews"),
)
_FORBIDDEN_IN_NAMES = re.compile(r"[\[\]:*?/\\\x00-\x1f]")
MAX_NAME_LENGTH = 31


def rewrite_formulas(xml: bytes, change: Callable[[str], str]) -> bytes:
    """A part in which the text of every formula was passed through a function."""

    def changed(match: re.Match[bytes]) -> bytes:
        text = html.unescape(match["text"].decode())
        new = change(text)
        return match[0] if new == text else match["open"] + escape_text(new).encode()

    return _FORMULA_TEXT.sub(changed, xml)


def formula_parts(package: Package) -> list[str]:
    """Parts that may hold formulas: the workbook's names, sheets, charts, tables."""
    main = main_part(package)
    return [main, *(name for name in package.names if _FORMULA_PARTS.search(name))]


def renamed(package: Package, old: str, new: str) -> dict[str, bytes | None]:
    """Parts to replace so that a sheet has another name.

    Raises:
        UsageError: the name is taken, or no sheet can have it.
        WorkbookError: there is no such sheet.
    """
    if not new or len(new) > MAX_NAME_LENGTH or _FORBIDDEN_IN_NAMES.search(new) or new[0] == "'":
        raise UsageError(
            f"{new!r} cannot be the name of a sheet",
            hint="At most 31 characters, none of [ ] : * ? / \\, no apostrophe at the beginning.",
        )
    main = main_part(package)
    xml = package.read(main)
    tags = list(SHEET_TAG.finditer(xml))
    names = [attribute(tag[0], "name") or "" for tag in tags]
    if old not in names:
        raise WorkbookError(f"the workbook has no sheet {old!r}")
    if folded(new) in {folded(name) for name in names if name != old}:
        raise UsageError(f"there is already a sheet {new!r}")
    tag = tags[names.index(old)]
    xml = xml[: tag.start()] + with_attribute(tag[0], "name", new) + xml[tag.end() :]
    change = functools.partial(with_sheet_renamed, old=old, new=new)
    replaced: dict[str, bytes | None] = {main: rewrite_formulas(xml, change)}
    for name in formula_parts(package)[1:]:
        before = package.read(name)
        if (after := rewrite_formulas(before, change)) != before:
            replaced[name] = after
    return replaced | _renamed_titles(package, old, new)


def _renamed_titles(package: Package, old: str, new: str) -> dict[str, bytes | None]:
    """The list of titles in the document's properties, which names the sheets once more."""
    name = "docProps/app.xml"
    if name not in package:
        return {}
    title = b"<vt:lpstr>%s</vt:lpstr>"
    xml = package.read(name)
    changed = xml.replace(title % escape_text(old).encode(), title % escape_text(new).encode(), 1)
    return {} if changed == xml else {name: changed}


def merged(xml: bytes, window: Window) -> bytes:
    """A worksheet with one more merged range.

    Raises:
        UsageError: the range overlaps a merged one, or is a single cell.
    """
    if (window.min_row, window.min_column) == (window.max_row, window.max_column):
        raise UsageError(f"{window} is a single cell: there is nothing to merge")
    found = _MERGES.search(xml)
    if found is not None and not found[0].endswith(b"/>"):
        prefix = found["prefix"] or b""
        end = xml.index(b"</" + prefix + b"mergeCells", found.end())
        count = len(re.findall(rb"<(?:\w+:)?mergeCell\b", xml[found.end() : end]))
        cell = b"<" + prefix + f'mergeCell ref="{window}"/>'.encode()
        tag = with_attribute(found[0], "count", str(count + 1))
        return xml[: found.start()] + tag + xml[found.end() : end] + cell + xml[end:]
    place, prefix = _after_last(xml)
    element = b'<%smergeCells count="1"><%smergeCell ref="%s"/></%smergeCells>' % (
        prefix,
        prefix,
        escape_attribute(str(window)).encode(),
        prefix,
    )
    return xml[:place] + element + xml[place:]


def _after_last(xml: bytes) -> tuple[int, bytes]:
    """Where merged cells belong: after everything that the format requires before them."""
    place, prefix = 0, b""
    for name in _BEFORE_MERGES:
        pattern = re.compile(
            rb"<(\w+:)?" + name.encode() + rb"\b" + QUOTED
            + rb"(?:/>|(?<!/)>.*?</(?:\w+:)?" + name.encode() + rb"\s*>)",
            re.DOTALL,
        )  # fmt: skip
        found = pattern.search(xml)
        if found is not None and found.end() > place:
            place, prefix = found.end(), found[1] or b""
    if not place:
        raise WorkbookError("the worksheet has no cells")
    return place, prefix


def date_system(package: Package, *, date_1904: bool) -> dict[str, bytes | None]:
    """The main part with the other date system; the serial numbers are the caller's business.

    Raises:
        WorkbookError: the part cannot be changed.
    """
    main = main_part(package)
    xml = package.read(main)
    value = "1" if date_1904 else "0"
    found = _PROPERTIES.search(xml)
    if found is not None:
        tag = with_attribute(found[0], "date1904", value)
        return {main: xml[: found.start()] + tag + xml[found.end() :]}
    before = re.search(rb"<(\w+:)?(?:workbookProtection|bookViews|sheets)\b", xml)
    if before is None:
        raise WorkbookError("the workbook part lists no sheets")
    tag = b"<" + (before[1] or b"") + f'workbookPr date1904="{value}"/>'.encode()
    return {main: xml[: before.start()] + tag + xml[before.start() :]}
