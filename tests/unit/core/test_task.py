from __future__ import annotations

import pytest

from judge.core.task import Task


@pytest.mark.parametrize(("raw_id", "written"), [(0, 0), ("0", "0"), (None, "0")])
def test_records_have_the_id_as_the_suite_writes_it(
    raw_id: int | str | None, written: int | str
) -> None:
    task = Task("0", "sum", "Cell-Level Manipulation", (), raw_id=raw_id)
    assert (task.written_id, type(task.written_id)) == (written, type(written))
