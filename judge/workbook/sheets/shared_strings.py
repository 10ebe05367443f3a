"""Shared strings: those that are requested, read in one pass over the whole table.

A fault behind the last of them counts as well: Excel calls such a file damaged.
"""

from __future__ import annotations

from collections.abc import Iterable

from judge.errors import WorkbookError
from judge.workbook.namespaces import MAIN, SHEET_NAMES
from judge.workbook.package import Package
from judge.workbook.sheets.plain_strings import plain_strings
from judge.workbook.sheets.rich_text import InlineText
from judge.workbook.xml_parts import PartParser

_DEEPEST = 64


class SharedStrings:
    """The table of shared strings of a workbook.

    Args:
        package: the workbook.
        part: name of the table's part, or None if the workbook has none.
    """

    def __init__(self, package: Package, part: str | None) -> None:
        self._package = package
        self._part = part
        self._known: dict[int, str] = {}

    def load(self, indices: Iterable[int]) -> dict[int, str]:
        """The strings at some indices (and maybe others that were requested before).

        Raises:
            WorkbookError: an index has no string, or the table is broken or over a limit.
        """
        wanted = set(indices) - self._known.keys()
        if wanted:
            self._known |= self._read(wanted)
        return self._known

    def _read(self, wanted: set[int]) -> dict[int, str]:
        part = self._part
        if part is None or min(wanted) < 0:
            raise WorkbookError("a cell points to a shared string that the workbook lacks")
        found = plain_strings(self._package.chunks(part), wanted)
        if found is None:
            return self._parse(part, wanted)
        self._package.agree_on_namespace(MAIN, part)
        self._package.budget.take_chars(sum(map(len, found.values())))
        return found

    def _parse(self, part: str, wanted: set[int]) -> dict[int, str]:
        limits = self._package.budget.limits
        parser = PartParser(self._package, part)
        collector = _StringCollector(wanted, limits.text_chars, part, parser)
        for chunk in self._package.chunks(part):
            parser.feed(chunk)
            collector.check()
            self._package.budget.take_chars(collector.chars)
            collector.chars = 0
        parser.feed(b"", final=True)
        if max(wanted) >= collector.count:
            raise WorkbookError(
                f"a cell points to shared string {max(wanted)}, the workbook has {collector.count}"
            )
        return collector.strings


class _StringCollector:
    """Hears the table; what is not a string where strings are is an error."""

    def __init__(self, wanted: set[int], max_chars: int, part: str, parser: PartParser) -> None:
        self.strings: dict[int, str] = {}
        self.count = 0
        self.chars = 0
        self.text: list[str] = []
        self._wanted = wanted
        self._max_chars = max_chars
        self._part = part
        self._parser = parser
        self._current: InlineText | None = None
        self._path: list[str] = []
        parser.expat.StartElementHandler = self.start
        parser.expat.EndElementHandler = self.end
        parser.expat.CharacterDataHandler = self.text.append

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Called when an element begins."""
        name = SHEET_NAMES[tag]
        path = self._path
        path.append(name)
        self.text.clear()
        if len(path) == 1:
            if name != "sst":
                raise WorkbookError(
                    f"{self._part} is not a table of strings: it begins with {name!r}"
                )
            self._parser.check_compatibility(attributes)
        elif len(path) == 2:
            if name not in {"si", "extLst"}:
                raise WorkbookError(f"{self._part} holds {name[:80]!r} among its strings")
            if self.count in self._wanted:
                self._current = InlineText(self._part)
        elif path[1] == "si":
            if name == "si":
                raise WorkbookError(f"{self._part} holds a string within a string")
            if self._current is not None:
                self._current.start(name)
        if len(path) > _DEEPEST:
            raise WorkbookError(f"{self._part} nests more than {_DEEPEST} elements")

    def end(self, _: str) -> None:
        """Called when an element ends."""
        name = self._path.pop()
        if len(self._path) == 1:
            self._end_string(name)
        elif self._current is not None and self._path:
            self._current.end(name, self.text)
        self.text.clear()

    def _end_string(self, name: str) -> None:
        if name != "si":
            self._current = None
            return
        if self._current is not None:
            string = self._current.content
            self.strings[self.count] = string
            self.chars += len(string)
            self._current = None
        self.count += 1

    def check(self) -> None:
        """Called between chunks: stops a string that has grown beyond its bound."""
        if len(self.text) > 8 and sum(map(len, self.text)) > self._max_chars:
            raise WorkbookError(f"a shared string has more than {self._max_chars:,} characters")
