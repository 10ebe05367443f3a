"""Cell formats of a workbook, as far as values need them: which number format each one has."""

from __future__ import annotations

import re

from judge.errors import WorkbookError
from judge.workbook.number_formats import NumberFormats
from judge.workbook.package import Package
from judge.workbook.sheets.shared_formulas import UNUSUAL_ENTITY, unescape
from judge.workbook.xml_parts import (
    MAIN,
    SHEET_NAMES,
    STRICT_MAIN,
    PartParser,
    local_name,
    whole_number,
)

_SECTION = b"<(%b)(?: [^<>]*)?>(.*?)</\\1>"
_CUSTOM = re.compile(_SECTION % b"numFmts", re.DOTALL)
_FORMATS = re.compile(_SECTION % b"cellXfs", re.DOTALL)
_NO_CUSTOM = re.compile(b"<numFmts[^<>]*/>")
_XF = re.compile(b'<xf ((?:[A-Za-z]+="[^"<>&]*" ?)*)/?>')
_CHILD = rb'\s*+<(?:alignment|protection)(?: [A-Za-z]++="[^"<>]*+")*+ ?/>'
_ONLY_FORMATS = re.compile(
    rb'(?:\s*+<xf(?: [A-Za-z]++="[^"<>&]*+")*+ ?(?:/>|>(?:%b)*+\s*+</xf>))*+\s*+' % _CHILD
)
_ONLY_NUMBER_FORMATS = re.compile('(?:\\s*+<numFmt(?: [A-Za-z]++="[^"<>]*+")*+ ?/>)*+\\s*+')
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

_LISTS = {"numFmts": "numFmt", "cellXfs": "xf"}
"""List of formats that decides which cells hold dates -> the only element that it may contain."""

_PARENTS = {"numFmt": {"numFmts", "dxf"}, "xf": {"cellXfs", "cellStyleXfs"}}


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
    # Only the formats were checked, but a fault elsewhere also makes the part unreadable.
    PartParser(package, part).feed(data, final=True)
    return plain


def _read_plainly(data: bytes) -> NumberFormats | None:
    """Reads a style sheet in its usual form; None if the parser must read it.

    Only two sections of it matter, and they are found by their names. That is exact if the part
    contains nothing but elements, since these names can then occur nowhere else.
    """
    if not _is_plain(data):
        return None
    formats = _FORMATS.findall(data)
    sections = _CUSTOM.findall(data.partition(b"<cellXfs")[0])
    if len(formats) != 1 or _ONLY_FORMATS.fullmatch(formats[0][1]) is None:
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
    formats = _NUMBER_FORMAT.findall(text)
    spaced = "\n" in text or "\t" in text or "\r" in text
    if len(formats) != text.count("<numFmt") or spaced or UNUSUAL_ENTITY.search(text):
        return None
    if _ONLY_NUMBER_FORMATS.fullmatch(text) is None:
        return None
    custom: dict[int, str] = {}
    for attributes in formats:
        named = dict(_ATTRIBUTE.findall(attributes))
        identity = whole_number(named.get("numFmtId"))
        if identity is None or "formatCode" not in named:
            return None
        custom[identity] = unescape(named["formatCode"])
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
    reader = _FormatReader(package, part)
    for chunk in package.chunks(part):
        reader.parser.feed(chunk)
    reader.parser.feed(b"", final=True)
    return NumberFormats(tuple(reader.ids), reader.custom)


class _FormatReader:
    """Handlers for a style sheet; a format is only read as a child of its own list.

    Attributes:
        parser: the parser that calls it.
        custom: code of each number format, by number.
        ids: number of the number format of each cell format.
    """

    def __init__(self, package: Package, part: str) -> None:
        self.parser = PartParser(package, part)
        self.custom: dict[int, str] = {}
        self.ids: list[int] = []
        self._part = part
        self._deepest = package.budget.limits.depth
        self._path: list[str] = []
        self._seen: set[str] = set()
        self.parser.expat.StartElementHandler = self._start
        self.parser.expat.EndElementHandler = self._end

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        name = SHEET_NAMES[tag]
        path = self._path
        self.parser.check_compatibility(attributes)
        if not path and name != "styleSheet":
            raise WorkbookError(f"{self._part} is not a style sheet: it begins with {name[:80]}")
        self._check_place(name)
        path.append(name)
        if len(path) > self._deepest:
            raise WorkbookError(f"{self._part} nests too many elements")
        if path[1:] == ["cellXfs", "xf"]:
            self.ids.append(_whole_number(attributes.get("numFmtId") or "0", self._part))
        elif path[1:] == ["numFmts", "numFmt"]:
            number = _whole_number(attributes.get("numFmtId", ""), self._part)
            if "formatCode" not in attributes:
                raise WorkbookError(f"{self._part} has the number format {number} without a code")
            self.custom[number] = attributes["formatCode"]

    def _check_place(self, name: str) -> None:
        """Refuses formats in foreign namespaces, and where other programs may not read them."""
        path, local = self._path, local_name(name)
        above = path[-1] if path else ""
        misplaced = local in _LISTS and len(path) != 1
        misplaced = misplaced or (local in _PARENTS and above not in _PARENTS[local])
        if len(path) == 1 and local in _SECTIONS:
            # openpyxl reads these elements in any namespace.
            misplaced = misplaced or name != local or name in self._seen
            self._seen.add(name)
        elif len(path) == 2 and above in _SECTIONS:
            misplaced = misplaced or name != local or name != _LISTS.get(above, name)
        if misplaced:
            raise WorkbookError(
                f"{self._part} has {name[:80]} in {above[:80]}, where it does not belong, or twice"
            )

    def _end(self, _: str) -> None:
        self._path.pop()


def _whole_number(text: str, part: str) -> int:
    number = whole_number(text)
    if number is None:
        raise WorkbookError(f"{part} holds {text[:30]!r} where a whole number belongs")
    return number
