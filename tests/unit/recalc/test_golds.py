"""Excel's values are removed from a sample of the published golds and computed again."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from benchmarks.golds import agrees, golds, stale_golds
from benchmarks.recalc import kept_cells
from judge.core.submission import Origin
from judge.recalc.select import OFFICE_ROOT, open_recalculator
from judge.sandbox import open_sandbox
from judge.workbook.reader import open_workbook

# `python -m benchmarks.recalc` looks at all of them; a test that takes seconds at every so many.
EVERY = 9


@pytest.mark.data
@pytest.mark.office
@pytest.mark.bubblewrap
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_cascade_comes_as_close_to_excel_as_was_measured(judge_data: Path) -> None:
    suite = judge_data / "spreadsheetbench_912_dev300"
    cells = right = files = whole = 0
    with contextlib.ExitStack() as stack:
        sandbox = stack.enter_context(contextlib.closing(open_sandbox("bubblewrap")))
        if not sandbox.has_root(OFFICE_ROOT):
            pytest.skip("the sandbox has no LibreOffice: judge sandbox build")
        recalculator = stack.enter_context(contextlib.closing(open_recalculator(sandbox)))
        for gold in golds(suite, every=EVERY):
            kept = kept_cells(gold, stale_golds())
            workbook = open_workbook(gold.stripped)
            computed = recalculator.fill(workbook, gold.ranges, origin=Origin.SOLUTION)
            good = [agrees(gold.expected[ref], computed.values.get(ref)) for ref in kept]
            cells, right = cells + len(good), right + sum(good)
            files, whole = files + bool(good), whole + (bool(good) and all(good))
    assert files > 40
    assert right / cells >= 0.985
    assert whole / files >= 0.92
