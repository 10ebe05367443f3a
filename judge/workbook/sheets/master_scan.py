"""Where a worksheet writes its shared formulas out, found without reading its cells.

The rows are skipped as text, as in :mod:`judge.workbook.sheets.sheet_scan`; only shared formulas
are read. That is exact if each of them is written as programs usually write it, and if there is no
comment, CDATA section or processing instruction between them. Anything else is left to the parser.
"""

from __future__ import annotations

import re

from judge.workbook.address import MAX_ROW, cell_key, column_number
from judge.workbook.package import Package
from judge.workbook.sheets.raw_formula import (
    ATTRIBUTE,
    ATTRIBUTES,
    TEXT,
    UNUSUAL_ENTITY,
    RawFormula,
    unescape,
)

_SHARED = re.compile(
    f'<c r="([A-Z]{{1,3}})([0-9]{{1,7}})"[^<>&]*><f({ATTRIBUTES}) ?(?:/>|>({TEXT}*)</f>)'
)
_FORMULA_WITH_ENTITY = re.compile(rb"<f\b[^<>]*&")
_PLAIN_ROOT = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml\s[^>]*\?>)?\s*<worksheet[\s>]")
_NOT_UTF8 = re.compile(rb"""encoding\s*=\s*["'](?!utf-8["'])""", re.IGNORECASE)
_MAX_BLOCK_BYTES = 4 << 20


def find_masters(package: Package, part: str) -> dict[int, RawFormula] | None:
    """The cells of a worksheet that write a shared formula out.

    Args:
        package: the workbook.
        part: name of the worksheet's part.

    Returns:
        Their formulas by key, in the order of the file; None if the parser must read it.

    Raises:
        WorkbookError: the worksheet is missing, broken or over a limit.
    """
    found: dict[int, RawFormula] = {}
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
            if not _take(pending[:cut], found):
                return None
            pending = pending[cut:]
        elif len(pending) > _MAX_BLOCK_BYTES:
            return None
    if not begun or not _take(pending, found):
        return None
    package.budget.take_chars(sum(len(each.text) for each in found.values()))
    return found


def _take(block: bytes, found: dict[int, RawFormula]) -> bool:
    """Adds the masters of some whole rows; false if the parser must read them."""
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
        given = dict(ATTRIBUTE.findall(attributes))
        if given.get("t") != "shared":
            continue
        spelled -= 1
        if not text:
            continue
        if UNUSUAL_ENTITY.search(text) or not 1 <= int(digits) <= MAX_ROW:
            return False
        # If an address occurs twice, the last cell counts; the parser handles that.
        key = cell_key(int(digits), column_number(letters))
        if key in found:
            return False
        found[key] = RawFormula(unescape(text), given, cached=True)
    # The word also occurs elsewhere, or in a form that was not read.
    return spelled == 0
