"""Cells that hyperlinks cover, counted: the links of a file may overlap any number of times."""

from __future__ import annotations

from collections.abc import Iterator

from judge.errors import WorkbookError
from judge.workbook.address import Window, cell_key
from judge.workbook.reader import Workbook

_MAX_LOOKS = 20_000_000
"""Pairs of a linked cell and a merged range that may be checked: a few seconds at most."""


def linked_keys(
    workbook: Workbook, sheet: str, window: Window, *, merges: int = 0
) -> Iterator[tuple[Window, list[int], str]]:
    """Each hyperlink of a sheet with the cells of a window that it covers, and its target.

    Args:
        workbook: whose links count.
        sheet: name of the sheet.
        window: other cells are left out.
        merges: how many merged ranges the caller checks for each link and cell.

    Raises:
        WorkbookError: the sheet is broken or over a limit, or its links cover too much.
    """
    cells_left = workbook.package.budget.limits.cells
    looks_left = _MAX_LOOKS
    for linked, target in workbook.hyperlinks(sheet):
        rows = range(max(linked.min_row, window.min_row), min(linked.max_row, window.max_row) + 1)
        columns = range(
            max(linked.min_column, window.min_column),
            min(linked.max_column, window.max_column) + 1,
        )
        cells = len(rows) * len(columns)
        cells_left -= cells
        looks_left -= max(cells, 1) * merges
        if cells_left < 0 or looks_left < 0:
            with workbook.package.blamed():
                raise WorkbookError(
                    f"the hyperlinks of the sheet {sheet!r} overlap each other or merged ranges "
                    "too often"
                )
        whole = Window(linked.min_row, linked.min_column, linked.max_row, linked.max_column)
        yield whole, [cell_key(row, column) for row in rows for column in columns], target
