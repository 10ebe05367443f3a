"""Every gold of the published suites, compared with itself under the profile ``standard``."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.pairs import SUITE, VERIFIED, golds
from judge.compare.cells.computing import compare_files
from judge.workbook.cell import STYLE_ATTRIBUTES

pytestmark = pytest.mark.data


@pytest.mark.parametrize(("suite", "count"), [(SUITE, 897), (VERIFIED, 128)])
def test_a_gold_is_accepted_as_its_own_answer(judge_data: Path, suite: str, count: int) -> None:
    rejected = []
    found = list(golds(judge_data / suite))
    for path, position, answer_sheet in found:
        comparison = compare_files(path, path, position, answer_sheet=answer_sheet)
        if not comparison.equal or not comparison.cells:
            rejected.append((path.name, position, comparison.differences[:1]))
    assert not rejected
    assert len(found) == count


def test_a_gold_looks_like_itself(judge_data: Path) -> None:
    rejected = [
        path.name
        for path, position, answer_sheet in list(golds(judge_data / SUITE))[::5]
        if not compare_files(
            path, path, position, answer_sheet=answer_sheet, style=STYLE_ATTRIBUTES
        ).equal
    ]
    assert not rejected


def test_colours_distinguish_untouched_inputs_of_colour_tasks(judge_data: Path) -> None:
    accepted = []
    tasks = 0
    for gold, position, answer_sheet in golds(judge_data / SUITE):
        if not gold.name.startswith("1_CF_"):
            continue
        tasks += 1
        untouched = gold.with_name(gold.name.replace("_answer", "_input"))
        comparison = compare_files(
            gold, untouched, position, answer_sheet=answer_sheet, style=["fill", "font_color"]
        )
        if comparison.equal:
            accepted.append(gold.name)
    assert tasks > 10
    assert not accepted
