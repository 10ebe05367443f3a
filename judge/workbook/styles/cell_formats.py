"""Cell formats of a workbook, as far as values need them: which number format each one has."""

from __future__ import annotations

import re

from judge.errors import WorkbookError
from judge.workbook.number_formats import NumberFormats
from judge.workbook.package import Package
from judge.workbook.sheets.raw_formula import UNUSUAL_ENTITY, unescape
from judge.workbook.xml_numbers import whole_number
from judge.workbook.xml_parts import check_token, feed, new_parser

_SECTION = b"<(%b)(?: [^<>]*)?>(.*?)</\\1>"
_CUSTOM = re.compile(_SECTION % b"numFmts", re.DOTALL)
_FORMATS = re.compile(_SECTION % b"cellXfs", re.DOTALL)
_NO_CUSTOM = re.compile(b"<numFmts[^<>]*/>")
_XF = re.compile(b'<xf ((?:[A-Za-z]+="[^"<>&]*" ?)*)/?>')
_NUMBER = re.compile(b'(?:^| )numFmtId="([0-9]+)"')
_NUMBER_FORMAT = re.compile('<numFmt ((?:[A-Za-z]+="[^"<>]*" ?)*)/?>')
_ATTRIBUTE = re.compile('([A-Za-z]+)="([^"]*)"')


class _EnoughError(Exception):
    """The cell formats have been read."""


def read_number_formats(package: Package, part: str | None) -> NumberFormats:
    """Number formats by cell format; none if the workbook has no style sheet.

    Raises:
        WorkbookError: the style sheet is broken or over a limit.
    """
    if part is None or part not in package:
        return NumberFormats()
    data = package.read(part)
    plain = _read_plainly(data)
    return plain if plain is not None else _parse(package, part)


def _read_plainly(data: bytes) -> NumberFormats | None:
    """Reads a style sheet in its usual form; None if the parser must read it.

    Only two sections of it matter, and they are found by their names. That is exact if the part
    contains nothing but elements, since these names can then occur nowhere else.
    """
    if not _is_plain(data):
        return None
    formats = _FORMATS.findall(data)
    sections = _CUSTOM.findall(data)
    if len(formats) != 1:
        return None
    elements = _XF.findall(formats[0][1])
    if len(elements) != formats[0][1].count(b"<xf"):
        return None
    ids = []
    for attributes in elements:
        number = _NUMBER.search(attributes)
        if number is None:
            return None
        identity = whole_number(number[1].decode("ascii", "replace"))
        if identity is None:
            return None
        ids.append(identity)
    custom: dict[int, str] | None = {}
    if sections:
        custom = _read_custom(sections[0][1])
    elif data.count(b"<numFmts") != len(_NO_CUSTOM.findall(data)):
        return None
    return None if custom is None else NumberFormats(tuple(ids), custom)


def _read_custom(section: bytes) -> dict[int, str] | None:
    """Custom formats by number; None if they are not written as usual."""
    try:
        text = section.decode()
    except UnicodeDecodeError:
        return None
    found = _NUMBER_FORMAT.findall(text)
    spaced = "\n" in text or "\t" in text or "\r" in text
    if len(found) != text.count("<numFmt") or spaced or UNUSUAL_ENTITY.search(text):
        return None
    custom: dict[int, str] = {}
    for attributes in found:
        given = dict(_ATTRIBUTE.findall(attributes))
        identity = whole_number(given.get("numFmtId"))
        if identity is None:
            return None
        custom[identity] = unescape(given.get("formatCode", ""))
    return custom


def _is_plain(data: bytes) -> bool:
    """Whether a style sheet contains only elements, and each section at most once."""
    if b"<!" in data or b"<?" in data[1:] or b"&#" in data or data.startswith((b"\xfe", b"\xff")):
        return False
    # The end of a section that is never closed would be searched for up to the end of the part.
    return data.count(b"<cellXfs") == 1 and data.count(b"<numFmts") <= 1


def _parse(package: Package, part: str) -> NumberFormats:
    custom: dict[int, str] = {}
    ids: list[int] = []
    path: list[str] = []
    parser = new_parser()

    def on_start(tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(":")[2]
        path.append(name)
        if len(path) != 3:
            if len(path) > package.budget.limits.depth:
                raise WorkbookError(f"{part} nests too many elements")
            return
        if name == "xf" and path[1] == "cellXfs":
            ids.append(_whole_number(attributes.get("numFmtId") or "0", part))
        elif name == "numFmt" and path[1] == "numFmts":
            number = _whole_number(attributes.get("numFmtId", ""), part)
            custom[number] = attributes.get("formatCode", "")

    def on_end(_: str) -> None:
        if path.pop() == "cellXfs" and len(path) == 1:
            raise _EnoughError

    parser.StartElementHandler = on_start
    parser.EndElementHandler = on_end
    fed = 0
    try:
        for chunk in package.chunks(part):
            feed(parser, chunk, part)
            fed += len(chunk)
            check_token(parser, fed, part, package.budget.limits)
        feed(parser, b"", part, final=True)
    except _EnoughError:
        pass
    return NumberFormats(tuple(ids), custom)


def _whole_number(text: str, part: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise WorkbookError(f"{part} holds {text[:30]!r} where a whole number belongs") from None
