"""The fast search for differing cells finds the same cells as comparing them one by one."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.compare.cells.range_check import differing_keys
from judge.compare.cells.value import comparator
from judge.compare.profiles import get_profile
from judge.compare.published.spreadsheetbench import ScriptError, _with_nan, official_agree
from judge.workbook.cell import CellValue
from tests.unit.compare.cells.test_value import VALUES

# Few values and few places, so that cells meet: equal, retyped, missing on one side.
SMALL = st.sampled_from([None, "", "1", 1, 1.0, True, False, 0, "nan", "NaN ", "n", 2.005, "x"])
CELLS = st.dictionaries(st.integers(1, 6), SMALL | VALUES, max_size=6)


def asked_one_by_one(
    expected: Mapping[int, CellValue], actual: Mapping[int, CellValue], profile: str
) -> set[int]:
    agree = comparator(get_profile(profile))
    return {
        key
        for key in expected.keys() | actual.keys()
        if not agree(expected.get(key), actual.get(key))
    }


@pytest.mark.parametrize("profile", ["standard", "strict", "ssb2"])
@given(CELLS, CELLS)
def test_the_cells_that_differ(
    profile: str, expected: dict[int, CellValue], actual: dict[int, CellValue]
) -> None:
    # Cells that a side does not store are blank; under ssb2 a blank is zero on either side.
    found = [*differing_keys(expected, actual, comparator(get_profile(profile)))]
    assert len(found) == len(set(found))
    assert set(found) == asked_one_by_one(expected, actual, profile)


@given(CELLS, CELLS)
def test_values_where_the_gold_is_blank_can_be_let_pass(
    expected: dict[int, CellValue], actual: dict[int, CellValue]
) -> None:
    agree = comparator(get_profile("standard"))
    found = set(differing_keys(expected, actual, agree, ignore_extra=True))
    stored = {key for key, value in expected.items() if value not in {None, ""}}
    assert found == asked_one_by_one(expected, actual, "standard") & stored


@given(CELLS, CELLS)
def test_the_published_script_is_asked_where_a_value_differs_from_itself(
    expected: dict[int, CellValue], actual: dict[int, CellValue]
) -> None:
    for one, other in ((expected, actual), (expected, expected)):
        try:
            wanted = {
                key
                for key in one.keys() | other.keys()
                if not official_agree(one.get(key), other.get(key))
            }
        except ScriptError:
            continue
        assert _with_nan(one, other, differing_keys(one, other, official_agree)) == wanted
