"""Constants of a column: dozens of mutators need their rows, but each cell is read only once."""

from __future__ import annotations

import pytest

from judge.annotate import support
from judge.annotate.support import Group
from judge.annotate.tables import Kind, kind_of_value
from judge.workbook.cell import Cell, CellValue


def test_each_cell_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[CellValue] = []

    def counted(value: CellValue) -> Kind:
        looked.append(value)
        return kind_of_value(value)

    monkeypatch.setattr(support, "kind_of_value", counted)
    cells = {
        row: Cell(row, 1, float(row) if row % 3 else f"text {row}") for row in range(3000, 0, -1)
    }
    group = Group("S", 1, Kind.NUMBER, cells, "", by_formulas=False)
    for _ in range(50):
        assert group.rows() == list(range(1, 3001))
        assert group.rows(Kind.TEXT) == list(range(3, 3001, 3))
        assert group.rows(Kind.DATE) == []
        assert group.values()[:3] == [1.0, 2.0, "text 3"]
    assert len(looked) == 3000
    group.rows().clear()  # what a mutator does with its list is its own
    assert len(group.rows()) == 3000
