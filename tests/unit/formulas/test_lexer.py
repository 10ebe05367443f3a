"""Tokens of formulas; everything that uses them reads a formula in the same way."""

from __future__ import annotations

import html
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from judge.annotate.gold_sources import skeleton
from judge.annotate.rows import move_formula, row_map
from judge.compare.published.spider2v.conditions import read_formula as read_condition
from judge.formulas.lexer import Kind, is_too_long, sheet_of, texts_of, tokens
from judge.formulas.references import Reference, area_text, areas, references, with_areas
from judge.formulas.shift import formula_shape, shift_formula, with_sheet_renamed
from judge.formulas.traits import traits
from judge.recalc.computing import BlankCells
from judge.workbook.reader import open_workbook
from judge.workbook.styles.conditional import canonical
from tests.unit.recalc.fakes import package

CORNERS = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(("", "$")),
    st.sampled_from(("A", "C", "AA", "XFD")),
    st.sampled_from(("", "$")),
    st.sampled_from(("1", "7", "1048576")),
)
SHEETS = st.sampled_from(
    ("", "", "Sheet1!", "'Data 1'!", "'It''s'!", "Sheet1:Sheet3!", "[1]Sheet1!", "数据!")
)
AREAS = st.one_of(
    CORNERS,
    st.builds("{}:{}".format, CORNERS, CORNERS),
    st.sampled_from(("A:C", "$B:D", "1:5", "$2:7")),
)
CONSTANTS = st.sampled_from(
    (
        *('"a"', '"x ""y"" A1:B2"', '""', "1", "2.5", "1E5", "2.5E-3", ".5", "50%", "TRUE"),
        *("#N/A", "#REF!", "#DIV/0!", "{1,2;3,4}", '{"a","b}"}', "A1#", "tax_rate", "Größe"),
        *("Table1[Col]", "Table1[[#This Row],[Q1 A2]]", "Sales[@Amount]"),
    )
)
FORMULAS = st.recursive(
    st.one_of(st.builds("{}{}".format, SHEETS, AREAS), CONSTANTS),
    lambda inner: st.one_of(
        st.builds("{}{}{}".format, inner, st.sampled_from("+-*/^&=<>, "), inner),
        st.builds(
            "{}({})".format,
            st.sampled_from(("SUM", "LOG10", "_xlfn.XLOOKUP", "ROW", "@", "")),
            st.lists(inner, max_size=3).map(",".join),
        ),
    ),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("formula", "kinds"),
    [
        ("=A1", "operator cell"),
        ("$B$2:C3", "cell operator cell"),
        ("A:$C", "columns"),
        ("$1:5", "rows"),
        ("'It''s'!A1", "sheet cell"),
        ("Sheet1:Sheet3!A1", "sheet cell"),
        ("Sheet1!A1:Sheet1!B9", "sheet cell operator sheet cell"),
        ("[1]Sheet1!A1", "sheet cell"),
        ("Table1[[#This Row],[A 1]]", "name brackets"),
        ("R[1]C", "name brackets name"),
        ("A1#", "cell operator"),
        ("@A1", "operator cell"),
        ("LOG10(1)", "function open number close"),
        ("SUM (1)", "function space open number close"),
        ("1E5+1.5e-3+.5+2%", "number operator number operator number operator number operator"),
        ("#N/A+#REF!A1", "error operator error cell"),
        ('{1,"}";TRUE}', "brace number separator text separator name brace"),
        ("A1.5+_x+\\y+Größe", "name operator name operator name operator name"),
        ("'quoted'", "quoted"),
        ("A1<>B1", "cell operator cell"),
        ('"open', "other name"),
        ("[x", "other name"),
    ],
)
def test_the_kinds_of_tokens(formula: str, kinds: str) -> None:
    assert " ".join(token.kind for token in tokens(formula)) == kinds


@given(st.one_of(FORMULAS, st.text("A1$B:;,()[]{}'\"!#. @+-<>=_?\\Eé“", max_size=30)))
def test_tokens_make_up_the_formula(formula: str) -> None:
    words = tokens(formula)
    assert "".join(token.text for token in words) == formula
    assert all(formula[token.start : token.end] == token.text for token in words)
    assert with_areas(formula, lambda area: area_text(formula, area)) == formula


@pytest.mark.parametrize("opening", ['"', "'", "[", "{", "(", "[[x]", "''", "A:", "[1]", "{["])
def test_broken_formulas_cost_time_in_proportion(opening: str) -> None:
    formula = (opening * 8_192)[:8_192]
    assert "".join(token.text for token in tokens(formula)) == formula
    traits("=" + formula)


@given(FORMULAS, st.integers(0, 9), st.integers(0, 9))
def test_moving_a_formula_moves_the_references_that_it_names(
    formula: str, rows: int, columns: int
) -> None:
    assume(_stays_on_its_sheet(formula, rows, columns))
    _moves_as_named(formula, rows, columns)


@pytest.mark.slow
def test_formulas_of_published_workbooks_move_as_they_are_named(judge_data: Path) -> None:
    formulas = set(_formulas_below(judge_data / "spreadsheetbench_verified_dev128"))
    assert len(formulas) > 1_000
    for formula in sorted(formulas):
        words = tokens(formula)
        assert "".join(token.text for token in words) == formula
        assert not any(token.kind is Kind.QUOTED for token in words), formula
        if not is_too_long(formula) and _stays_on_its_sheet(formula, 1, 2):
            _moves_as_named(formula, 1, 2)


def _formulas_below(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*.xlsx")):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if "worksheets/sheet" in name:
                    xml = archive.read(name)
                    for text in re.findall(rb"<f(?:\s[^<>]*)?(?<!/)>([^<]+)<", xml):
                        yield html.unescape(text.decode())


def _stays_on_its_sheet(formula: str, rows: int, columns: int) -> bool:
    return shift_formula(formula, rows, columns).count("#REF!") == formula.count("#REF!")


def _moves_as_named(formula: str, rows: int, columns: int) -> None:
    moved = shift_formula(formula, rows, columns)
    assert formula_shape(moved) == formula_shape(formula)
    assert skeleton(moved) == skeleton(formula)
    assert [reference.sheet for reference in references(moved)] == [
        reference.sheet for reference in references(formula)
    ]
    before = [_ends(area.first.text) + _ends(area.last.text) for area in areas(formula)]
    after = [_ends(area.first.text) + _ends(area.last.text) for area in areas(moved)]
    for old, new in zip(before, after, strict=True):
        for (old_text, old_number), (new_text, new_number) in zip(old, new, strict=True):
            by = 0 if "$" in old_text else rows if old_text[-1].isdigit() else columns
            assert ("$" in new_text) == ("$" in old_text)
            assert new_number - old_number in (by, 0)
    if not columns:
        assert traits(moved) == traits(formula)


def _ends(text: str) -> list[tuple[str, int]]:
    ends = re.findall(r"\$?[A-Za-z]+|\$?[0-9]+", text)
    return [
        (end, int(end.lstrip("$")))
        if end[-1].isdigit()
        else (end, references(end.lstrip("$") + "1")[0].min_column)
        for end in ends
    ]


# -- what several readers read differently ---------------------------------------------------------


def test_a_number_with_an_exponent_is_not_a_cell() -> None:
    assert references("=1E5+A2") == (Reference(None, 2, 1, 2, 1),)
    assert traits("=1E5").names == frozenset()
    assert skeleton("=A1*1E5") != skeleton("=A1*1E6")
    blank = BlankCells(open_workbook(package({"A1": "1"})))
    assert blank.meaning("Sheet1", "B9>1E5") != blank.meaning("Sheet1", "B9>1E6")


def test_a_column_of_a_table_is_not_a_cell_however_it_is_called() -> None:
    assert references("=SUM(Table1[Q1])+B2") == (Reference(None, 2, 2, 2, 2),)


def test_text_in_an_array_may_hold_its_bracket() -> None:
    assert traits('=SUM({"a}","b"},LEFT("x"))').functions == {"SUM", "LEFT"}
    assert traits('=LEFT({"a}"}&tax)').names == {"TAX"}


def test_the_shape_keeps_errors() -> None:
    assert formula_shape("=IFERROR(A1,#DIV/0!)") == "=IFERROR(#,#DIV/0!)"


def test_the_skeleton_keeps_the_operator_after_text() -> None:
    assert skeleton('=""=A1') == '""=#'


def test_the_text_constants_of_formulas() -> None:
    assert texts_of('=IF(A1="x","say ""no""",B1&"")') == ["x", 'say "no"', ""]


def test_rows_of_another_workbook_do_not_move() -> None:
    rows = row_map(5, 3)
    assert move_formula("=[1]Data!A9+Data!A9", "Data", "Data", rows) == "=[1]Data!A9+Data!A12"


def test_a_range_of_sheets_is_renamed_at_its_ends() -> None:
    renamed = with_sheet_renamed("=SUM(One:Three!A1)+'one'!B2&\"One!\"+[1]One!C3", "One", "It's")
    assert renamed == "=SUM('It''s:Three'!A1)+'It''s'!B2&\"One!\"+[1]One!C3"


def test_names_of_sheets_are_read_without_their_quotes() -> None:
    named = [
        sheet_of(token) for token in tokens("'It''s'!A1,[1]S!B2,A:B!C3") if token.text[-1] == "!"
    ]
    assert named == ["It's", "[1]S", "B"]


def test_readers_of_conditions_agree_on_what_is_text() -> None:
    assert canonical("$A$1 = \"a $b\" & 'x y'!$B2") == "A1=\"a $b\"&'XY'!B2"
    assert read_condition('IF($B$2:B9="a""1",A1,2E1)').inputs == ("A1", "B2:B9")
