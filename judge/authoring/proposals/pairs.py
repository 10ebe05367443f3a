"""An input and its gold, sheet by sheet: what each sheet of the gold is compared with."""

from __future__ import annotations

import re
from functools import cached_property

from judge.compare.rules.book import Book
from judge.compare.rules.published_error import Side
from judge.workbook.editing.parts import (
    SHEET_TAG,
    attribute,
    copy_package,
    with_attribute,
)
from judge.workbook.reader import Workbook, open_workbook
from judge.workbook.workbook_parts import main_part

_EMPTY_SHEET = (
    b'<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
    b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
    b"<sheetData/></worksheet>"
)


class Pair:
    """An input and its gold.

    Args:
        question: the input.
        gold: the gold.

    Raises:
        WorkbookError: one cannot be read.
    """

    def __init__(self, question: Workbook, gold: Workbook) -> None:
        self.question = Book(question, Side.ANSWER)
        self.gold = Book(gold, Side.GOLD)

    @cached_property
    def _blank(self) -> Book:
        """The gold with nothing on its sheets, for sheets that the input does not have."""
        parts: dict[str, bytes | None] = {}
        for tab in self.gold.workbook.tabs:
            if tab.is_worksheet:
                folder, _, name = tab.part.rpartition("/")
                parts[tab.part] = _EMPTY_SHEET
                parts[f"{folder}/_rels/{name}.rels"] = None
        data = copy_package(self.gold.workbook.data, parts)
        return Book(open_workbook(data), Side.ANSWER)

    @cached_property
    def _renamed(self) -> Book:
        """The input with the names of the gold for sheets that were only renamed."""
        names = self.question.names, self.gold.names
        new = {
            before: after
            for before, after in zip(*names, strict=False)
            if len(names[0]) == len(names[1]) and before not in names[1] and after not in names[0]
        }
        if not new:
            return self.question
        workbook = self.question.workbook

        def rename(tag: re.Match[bytes]) -> bytes:
            name = attribute(tag[0], "name") or ""
            return with_attribute(tag[0], "name", new[name]) if name in new else tag[0]

        part = main_part(workbook.package)
        content = SHEET_TAG.sub(rename, workbook.package.read(part))
        return Book(open_workbook(copy_package(workbook.data, {part: content})), Side.ANSWER)

    def base(self, sheet: str) -> Book:
        """What a sheet of the gold is compared with: the input, or a blank sheet."""
        return self._renamed if self.knows(sheet) else self._blank

    def knows(self, sheet: str) -> bool:
        """Whether the input has a sheet of the gold, under whatever name."""
        return self._renamed.tab(sheet) is not None

    def names_differ(self) -> bool:
        """Whether the sheets have other names, or another order."""
        names = ([tab.name for tab in each.facts.tabs] for each in (self.question, self.gold))
        return next(names) != next(names)
