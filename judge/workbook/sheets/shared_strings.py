"""Shared strings: those that are requested, read in one pass that ends at the last of them."""

from __future__ import annotations

from collections.abc import Iterable

from judge.errors import WorkbookError
from judge.workbook.package import Package
from judge.workbook.sheets.plain_strings import plain_strings
from judge.workbook.sheets.rich_text import InlineText
from judge.workbook.xml_parts import check_token, feed, new_parser


class _EnoughError(Exception):
    """The last string that is wanted has been read."""


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
        self._package.budget.take_chars(sum(map(len, found.values())))
        # openpyxl removes this half of an escaped escape, and keeps the rest as it is.
        return {index: string.replace("x005F_", "") for index, string in found.items()}

    def _parse(self, part: str, wanted: set[int]) -> dict[int, str]:
        collector = _StringCollector(wanted, self._package.budget.limits.text_chars)
        parser = new_parser()
        parser.StartElementHandler = collector.start
        parser.EndElementHandler = collector.end
        parser.CharacterDataHandler = collector.text.append
        fed = 0
        try:
            for chunk in self._package.chunks(part):
                feed(parser, chunk, part)
                fed += len(chunk)
                check_token(parser, fed, part, self._package.budget.limits)
                collector.check()
                self._package.budget.take_chars(collector.chars)
                collector.chars = 0
            feed(parser, b"", part, final=True)
        except _EnoughError:
            return collector.strings
        raise WorkbookError(
            f"a cell points to shared string {max(wanted)}, the workbook has {collector.count}"
        )


class _StringCollector:
    def __init__(self, wanted: set[int], max_chars: int) -> None:
        self.strings: dict[int, str] = {}
        self.count = 0
        self.chars = 0
        self.text: list[str] = []
        self._wanted = wanted
        self._left = len(wanted)
        self._max_chars = max_chars
        self._current: InlineText | None = None
        self._depth = 0

    def start(self, tag: str, _: dict[str, str]) -> None:
        self._depth += 1
        self.text.clear()
        if self._depth == 2:
            if self.count in self._wanted:
                self._current = InlineText()
        elif self._current is not None:
            if self._depth > 64:
                raise WorkbookError("a shared string nests more than 64 elements")
            self._current.start(tag.rpartition(":")[2])

    def end(self, tag: str) -> None:
        self._depth -= 1
        if self._depth == 1:
            self._end_string(tag)
        elif self._current is not None and self._depth > 1:
            self._current.end(tag.rpartition(":")[2], self.text)
        self.text.clear()

    def _end_string(self, tag: str) -> None:
        if tag.rpartition(":")[2] != "si":
            self._current = None
            return
        if self._current is not None:
            string = self._current.content.replace("x005F_", "")
            self.strings[self.count] = string
            self.chars += len(string)
            self._current = None
            self._left -= 1
        self.count += 1
        if not self._left:
            raise _EnoughError

    def check(self) -> None:
        """Called between chunks: stops a string that has grown beyond its bound."""
        if len(self.text) > 8 and sum(map(len, self.text)) > self._max_chars:
            raise WorkbookError(f"a shared string has more than {self._max_chars:,} characters")
