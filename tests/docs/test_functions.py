"""The page of functions matches the table of records."""

from benchmarks.functions import PAGE, checks, page
from judge.recalc.trust import read_table, trust_table


def test_the_page_of_functions_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(trust_table()), (
        "run `python -m benchmarks.functions`"
    )


def test_twenty_entries_were_checked_by_hand_and_have_a_record() -> None:
    assert len(checks()) >= 20
    assert checks().keys() <= trust_table().functions.keys()


def test_faults_are_the_shapes_with_mistakes_and_array_calls_have_a_row() -> None:
    text = page(
        read_table(
            {
                "measured_with": {},
                "functions": {"ROMAN": {"ironcalc": [9, 9]}, "SUM[]": {"pair": [3, 4]}},
                "shapes": {"ROMAN(c,1)": {"ironcalc": [1, 4], "libreoffice": [4, 4]}},
            }
        )
    )
    assert "| ROMAN |  | 9 of 9 |  |  |  | ironcalc: `ROMAN(c,1)` 1 of 4 |" in text
    assert "| SUM for arrays |  |  |  | 3 of 4 |  |  |" in text
