"""The workbooks of a draft as the page shows them, before and after they are computed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from judge.annotate.casebook import CaseData
from judge.annotate.edit import Edited, apply_edits
from judge.annotate.edits import Edit, SetCell
from judge.workbook.cell import CellRef
from judge.workbook.editing.cells import set_cells
from judge.workbook.reader import Workbook, open_workbook


@dataclass(frozen=True, slots=True)
class Books:
    """The workbooks of a draft as they are shown.

    Attributes:
        revision: of the draft.
        input, gold: the workbooks.
        cells: cells of the input that were set.
        notes: what could not be kept.
        computed: whether formulas and gold have followed.
    """

    revision: str
    input: Workbook
    gold: Workbook
    cells: Collection[CellRef]
    notes: tuple[str, ...] = ()
    computed: bool = False


def uncomputed(base: CaseData, edits: Sequence[Edit], revision: str) -> Books:
    """The workbooks with some edits of the input, quickly: nothing is computed.

    Args:
        base: the case that the edits begin from.
        edits: changes of its input.
        revision: what the books belong to.

    Raises:
        WorkbookError: the edits do not fit.
    """
    cells = [edit for edit in edits if isinstance(edit, SetCell)]
    if len(cells) == len(edits):
        edited = Edited(set_cells(base.input, cells), tuple(cell.ref for cell in cells))
    else:
        edited = apply_edits(base.input, edits)
    shown, gold = open_workbook(edited.data), open_workbook(base.gold)
    return Books(revision, shown, gold, edited.cells, edited.notes)
