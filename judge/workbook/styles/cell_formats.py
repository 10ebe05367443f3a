"""Cell formats of a workbook, as far as values need them: which number format each one has."""

from __future__ import annotations

import re

from judge.errors import WorkbookError
from judge.workbook.namespaces import MAIN, SHEET_NAMES, STRICT_MAIN, local_name
from judge.workbook.number_formats import NumberFormats
from judge.workbook.package import Package
from judge.workbook.sheets.raw_formula import UNUSUAL_ENTITY, unescape
from judge.workbook.xml_numbers import whole_number
from judge.workbook.xml_parts import PartParser

_SECTION = b"<(%b)(?: [^<>]*)?>(.*?)</\\1>"
_CUSTOM = re.compile(_SECTION % b"numFmts", re.DOTALL)
_FORMATS = re.compile(_SECTION % b"cellXfs", re.DOTALL)
_NO_CUSTOM = re.compile(b"<numFmts[^<>]*/>")
_XF = re.compile(b'<xf ((?:[A-Za-z]+="[^"<>&]*" ?)*)/?>')
_NUMBER = re.compile(b'(?:^| )numFmtId="([0-9]+)"')
_NUMBER_FORMAT = re.compile('<numFmt ((?:[A-Za-z]+="[^"<>]*" ?)*)/?>')
_ATTRIBUTE = re.compile('([A-Za-z]+)="([^"]*)"')
_ROOT = re.compile(
    rb"""(?:\xef\xbb\xbf)?(?:<\?xml [^<>?]*\?>)?\s*<styleSheet(?=[^<>]*\sxmlns=["']"""
    + re.escape(MAIN.encode())
    + rb"""["'])(?:[^<>"']++|"[^"<]*+"|'[^'<]*+')*+>"""
)
_ODD_END = re.compile(rb"/>(?!\s*<|\s*\Z)")
_SECTIONS = frozenset({"numFmts", "fonts", "fills", "borders", "cellStyleXfs", "cellXfs", "dxfs"})


def read_number_formats(package: Package, part: str | None) -> NumberFormats:
    """Number formats by cell format; none if the workbook has no style sheet.

    Raises:
        WorkbookError: the style sheet is broken or over a limit.
    """
    if part is None or part not in package:
        return NumberFormats()
    data = package.read(part)
    plain = _read_plainly(data)
    if plain is None:
        return _parse(package, part)
    package.agree_on_namespace(MAIN, part)
    return plain


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
    root = _ROOT.match(data)
    if root is None or b"<!" in data or data.count(b"<?") > 1 or b"&#" in data:
        return False
    if b":MustUnderstand" in data or data.count(b":Ignorable") > root[0].count(b":Ignorable"):
        return False
    if root[0].count(MAIN.encode()) != 1 or STRICT_MAIN.encode() in root[0]:
        return False
    # The end of a section that is never closed would be searched for up to the end of the part.
    if data.count(b"<cellXfs") != 1 or data.count(b"<numFmts") > 1:
        return False
    # They are the root's own, and nothing of another name or namespace can stand in for them.
    before = data[root.end() : data.index(b"<cellXfs")]
    return (
        data.count(b"xmlns=") + data.count(b"xmlns ") == 1
        and b":cellXfs" not in data
        and b":numFmt" not in data
        and b":xf" not in data
        and _is_balanced(before)
        and _is_balanced(before.partition(b"<numFmts")[0])
    )


def _is_balanced(markup: bytes) -> bool:
    """Whether every element that begins in some markup also ends there."""
    return _ODD_END.search(markup) is None and markup.count(b"<") == 2 * markup.count(
        b"</"
    ) + markup.count(b"/>")


def _parse(package: Package, part: str) -> NumberFormats:
    custom: dict[int, str] = {}
    ids: list[int] = []
    path: list[str] = []
    seen: set[str] = set()
    parser = PartParser(package, part)

    def on_start(tag: str, attributes: dict[str, str]) -> None:
        name = SHEET_NAMES[tag]
        path.append(name)
        parser.check_compatibility(attributes)
        if path[0] != "styleSheet":
            raise WorkbookError(f"{part} is not a style sheet: it begins with {name[:80]}")
        local = local_name(name)
        if local in _SECTIONS:
            # openpyxl reads them whatever their namespace is.
            if len(path) == 2 and (name != local or name in seen):
                raise WorkbookError(f"{part} has {name[:80]} twice, or in a foreign namespace")
            seen.add(name)
        elif len(path) == 3 and name != local and path[1] in _SECTIONS:
            raise WorkbookError(f"{part} has {name[:80]} where it does not belong")
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
        path.pop()

    parser.expat.StartElementHandler = on_start
    parser.expat.EndElementHandler = on_end
    for chunk in package.chunks(part):
        parser.feed(chunk)
    parser.feed(b"", final=True)
    return NumberFormats(tuple(ids), custom)


def _whole_number(text: str, part: str) -> int:
    number = whole_number(text)
    if number is None:
        raise WorkbookError(f"{part} holds {text[:30]!r} where a whole number belongs")
    return number
