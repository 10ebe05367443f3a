from __future__ import annotations

import pytest

from judge.suites.spreadsheetbench import CaseFiles, pair_workbooks


def test_cases_come_in_the_order_of_their_numbers() -> None:
    names = [f"{number}_7_{role}.xlsx" for number in (10, 2, 1) for role in ("answer", "input")]
    pairing = pair_workbooks(names, "7")
    assert [case.number for case in pairing.cases] == [1, 2, 10]
    assert pairing.cases[1] == CaseFiles(2, "2_7_input.xlsx", "2_7_answer.xlsx")
    assert not pairing.faults
    assert not pairing.notes
    assert not pairing.verified_names


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["1_9_init.xlsx", "1_9_golden.xlsx", "prompt.txt"], ("1_9_init.xlsx", "1_9_golden.xlsx")),
        (["initial.xlsx", "golden.xlsx"], ("initial.xlsx", "golden.xlsx")),
        (["1_9_INPUT.XLSX", "1_9_answer.xlsm"], ("1_9_INPUT.XLSX", "1_9_answer.xlsm")),
        (["1_9_input.xlsx", "1_9_answer.xlsx", "~$1_9_input.xlsx", "._1_9_answer.xlsx"], None),
    ],
)
def test_published_namings(names: list[str], expected: tuple[str, str] | None) -> None:
    pairing = pair_workbooks(names, "9")
    input_name, gold_name = expected or ("1_9_input.xlsx", "1_9_answer.xlsx")
    assert pairing.cases == (CaseFiles(1, input_name, gold_name),)
    assert not pairing.faults
    assert pairing.verified_names == ("init" in input_name.lower())


@pytest.mark.parametrize(
    ("names", "odd", "word"),
    [
        (["2_591-29_input .xlsx", "2_591-29_answer.xlsx"], "2_591-29_input .xlsx", "blank"),
        (["1_591-29_init.xlsx", "1_44_golden.xlsx"], "1_44_golden.xlsx", "named for another"),
        (["3_591-29_input.xlsx", "3_591-29_anwser.xlsx"], "3_591-29_anwser.xlsx", "oddly named"),
    ],
)
def test_odd_names_are_understood_with_a_note(names: list[str], odd: str, word: str) -> None:
    pairing = pair_workbooks(names, "591-29")
    assert len(pairing.cases) == 1
    assert odd in {pairing.cases[0].input_name, pairing.cases[0].gold_name}
    (note,) = pairing.notes
    assert note.startswith(odd)
    assert word in note


def test_the_own_id_goes_before_a_foreign_one() -> None:
    names = ["1_5_init.xlsx", "1_4_golden.xlsx", "1_5_golden.xlsx"]
    pairing = pair_workbooks(names, "5")
    assert pairing.cases == (CaseFiles(1, "1_5_init.xlsx", "1_5_golden.xlsx"),)
    assert not pairing.notes


@pytest.mark.parametrize(
    ("names", "fault"),
    [
        ([], "no test case: the folder holds no workbook"),
        (["prompt.txt"], "no test case: the folder holds no workbook"),
        (["notes.xlsx"], "no test case: no name fits {n}_5_input.xlsx"),
        (["1_5_input.xlsx"], "case 1 has no gold (1_5_answer.xlsx)"),
        (["1_5_golden.xlsx"], "case 1 has no input (1_5_init.xlsx)"),
        (
            ["1_3_input.xlsx", "1_4_input.xlsx", "1_5_answer.xlsx"],
            "case 1 has more than one input: 1_3_input.xlsx, 1_4_input.xlsx",
        ),
    ],
)
def test_faults_name_the_case_and_the_file(names: list[str], fault: str) -> None:
    assert pair_workbooks(names, "5").faults == (fault,)


def test_a_good_case_does_not_hide_a_broken_one() -> None:
    names = ["1_5_input.xlsx", "1_5_answer.xlsx", "2_5_answer.xlsx", "3_5_input.xlsx"]
    pairing = pair_workbooks(names, "5")
    assert [case.number for case in pairing.cases] == [1]
    assert pairing.faults == (
        "case 2 has no input (2_5_input.xlsx)",
        "case 3 has no gold (3_5_answer.xlsx)",
    )
