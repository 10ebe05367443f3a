"""Text of which only a part is bold, coloured or in another font."""

from __future__ import annotations

from judge.workbook.features.features import FeatureKind, Features, shortened
from judge.workbook.package import Package
from judge.workbook.xml_parts import scan_part

_AROUND = {"si", "is", "row", "c", "v", "f"}
"""Elements that begin a string, or follow one."""

_FORMAT = b"rPr>"
"""How the tag of a part's format ends, whatever its prefix."""


def read_rich_text(package: Package, part: str, sheet: str, found: Features) -> None:
    """Adds the rich strings of a part: the shared strings, or a worksheet that holds its own.

    Args:
        package: the workbook.
        part: name of the part.
        sheet: the sheet that it belongs to; empty for the shared strings.
        found: where features go.

    Raises:
        WorkbookError: the part is missing, broken or over a limit.
    """
    if not _holds(package, part, _FORMAT):
        return
    strings = _Strings(package, sheet, found)
    scan_part(package, part, strings.start, text=strings.text)
    strings.finish()


class _Strings:
    """Hears the strings of a part, one after the other."""

    def __init__(self, package: Package, sheet: str, found: Features) -> None:
        self._budget = package.budget
        self._sheet = sheet
        self._found = found
        self._pieces: list[str] | None = None
        self._runs = 0
        self._is_formatted = False

    def start(self, tag: str, _: dict[str, str]) -> None:
        """Called when an element begins."""
        if tag in _AROUND:
            self.finish()
            self._pieces = [] if tag in {"si", "is"} else None
            self._runs, self._is_formatted = 0, False
        elif tag == "r":
            self._runs += 1
        elif tag == "rPr":
            self._is_formatted = True

    def text(self, text: str) -> None:
        """Called with the characters between tags."""
        if self._pieces is not None:
            self._budget.take_chars(len(text))
            self._pieces.append(text)

    def finish(self) -> None:
        """Adds the last string. If all of it has one format, that is the format of its cell."""
        if self._pieces is not None and self._is_formatted and self._runs > 1:
            self._budget.take_cells(1)
            text = "".join(self._pieces)
            self._found.add(
                FeatureKind.RICH_TEXT,
                " ".join(text.split()),
                f"formats of parts of the text {shortened(text)!r}",
                sheet=self._sheet,
            )
        self._pieces = None


def _holds(package: Package, part: str, wanted: bytes) -> bool:
    before = b""
    holds = False
    for chunk in package.chunks(part):
        # The part is read to its end, where its checksum is compared.
        holds = holds or wanted in before + chunk
        before = chunk[-len(wanted) :]
    return holds
