"""What the gold's stored values show: the order of dates in text, and names of months and days."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import pytest

from judge.core.submission import Origin
from judge.recalc.contract import PLAIN, Dialect, EngineResult
from judge.recalc.functions.contents import Contents
from judge.recalc.functions.conversions import UnsureError, text_number
from judge.recalc.functions.formats import formatted
from judge.recalc.functions.regions import (
    ENGLISH,
    LANGUAGES,
    DayOrder,
    Names,
    Region,
    common,
)
from judge.recalc.policy import Recalculator
from judge.recalc.region import region_of, with_days_first, with_plain_numbers
from judge.recalc.trust import read_table
from judge.workbook.address import cell_key
from judge.workbook.cell import CellRange, CellRef, CellValue, ComputedValues, ErrorValue
from judge.workbook.dependency import FormulaIndex
from judge.workbook.reader import Workbook, open_workbook, sheet_formulas
from tests.unit.recalc.fakes import ALL, ScriptedEngine, package, ref, workbook

NO_TRUST = read_table({"measured_with": {}, "functions": {}})
VALUE = ErrorValue("#VALUE!")
DAY, MONTH, UNKNOWN = DayOrder.DAY_FIRST, DayOrder.MONTH_FIRST, DayOrder.UNKNOWN


def saved(cells: Mapping[str, Any], application: str = "Microsoft Excel") -> Workbook:
    """A workbook with text, and with formulas and their stored values, by address."""
    text, kinds = [], {str: "str", ErrorValue: "e"}
    for address, held in cells.items():
        if isinstance(held, str):
            text.append(f'<c r="{address}" t="inlineStr"><is><t>{held}</t></is></c>')
            continue
        formula, stored = held
        shown = stored.code if isinstance(stored, ErrorValue) else stored
        kind = kinds.get(type(stored), "n")
        value = f"<f>{escape(formula)}</f><v>{shown}</v>"
        text.append(f'<c r="{address}" t="{kind}">{value}</c>')
    rows = "".join(f'<row r="{number}">{cell}</row>' for number, cell in enumerate(text, 1))
    space = "http://schemas.openxmlformats.org"
    app = (
        f'<Properties xmlns="{space}/officeDocument/2006/extended-properties">'
        f"<Application>{application}</Application></Properties>"
    )
    new = {
        "docProps/app.xml": app,
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{space}/spreadsheetml/2006/main">'
        f"<sheetData>{rows}</sheetData></worksheet>",
    }
    content = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(package({}))) as old, zipfile.ZipFile(content, "w") as made:
        for name in old.namelist():
            part = old.read(name).replace(b' fullCalcOnLoad="1"', b"")
            made.writestr(name, new.get(name, part))
    return open_workbook(content.getvalue())


def shown_by(book: Workbook) -> Region:
    """The region that the stored values of a workbook show."""
    index = FormulaIndex(book.sheet_names, lambda sheet: sheet_formulas(book, sheet))
    return region_of(Contents(book, index))


APRIL_13, APRIL_3, MARCH_4 = 44299, 44289, 44259


@pytest.mark.parametrize(
    ("cells", "order"),
    [
        ({"A1": ("VALUE(B2)", APRIL_13), "B2": "13/04/2021"}, DAY),
        ({"A1": ("B2+0", APRIL_3), "B2": "3/4/2021"}, DAY),
        ({"A1": ("B2+0", MARCH_4), "B2": "3/4/2021"}, UNKNOWN),
        ({"A1": ('TEXT(B2,"mmm")', "Apr"), "B2": ('"3/4"&"/21"', "3/4/21")}, DAY),
        ({"A1": ('DATEVALUE("3"&"/"&"4/2021")', APRIL_3)}, DAY),
        # In the United States, this text is no date; then TEXT returns it as it is.
        ({"A1": ('TEXT(B2,"dd/mm/yyyy")', "13/04/2021"), "B2": "13/04/2021"}, UNKNOWN),
        ({"A1": ("VALUE(B2)", VALUE), "B2": "13/04/2021"}, UNKNOWN),
        ({"A1": ("B2+0", APRIL_3), "A2": ("B3+0", MARCH_4), "B3": "3/4/2021"}, UNKNOWN),
        ({"A1": ("B2+0", APRIL_3), "B2": "3/4/2021", "A3": ("B2+1", MARCH_4 + 1)}, UNKNOWN),
        ({"A1": ("ROW()", 1), "B2": "13/04/2021"}, UNKNOWN),
        ({"A1": ("TODAY()+B2", APRIL_3), "B2": "3/4/2021"}, UNKNOWN),
    ],
)
def test_only_stored_values_show_the_order(cells: Mapping[str, Any], order: DayOrder) -> None:
    assert shown_by(saved(cells)).day_order is order


@pytest.mark.parametrize(
    ("text", "order", "number"),
    [
        ("3/4/2021", DAY, APRIL_3),
        ("3/4/2021", MONTH, MARCH_4),
        ("3/4/2021", UNKNOWN, MARCH_4),
        ("13/4/2021", DAY, APRIL_13),
        ("13/4/2021 12:00", DAY, APRIL_13 + 0.5),
        ("13/4/2021", MONTH, None),
        ("4/13/2021", DAY, None),
        ("2021-04-03", DAY, APRIL_3),
        ("29/02/1900", DAY, 60),
    ],
)
def test_text_is_read_in_the_order(text: str, order: DayOrder, number: float | None) -> None:
    assert text_number(text, Region(order)) == number


@pytest.mark.parametrize(
    ("text", "order"), [("13/4/2021", UNKNOWN), ("21/11/24", MONTH), ("30/2/2021", DAY)]
)
def test_what_is_a_date_only_in_another_order_is_unsure(text: str, order: DayOrder) -> None:
    with pytest.raises(UnsureError):
        text_number(text, Region(order))


class Counting(ScriptedEngine):
    """Gives the first number of the text in B1 in some cells, and 7 in the others."""

    def __init__(self, name: str, rows: Sequence[int]) -> None:
        super().__init__(name, {})
        self._rows = rows
        self.texts: list[CellValue] = []

    def compute(
        self,
        workbook: bytes,
        ranges: Sequence[CellRange],
        *,
        timeout_s: float,
        dialect: Dialect = PLAIN,
    ) -> EngineResult:
        text = str(open_workbook(workbook).stored_values("S").get(cell_key(1, 2)))
        self.texts.append(text)
        number = int(text.strip("/").partition("/")[0])
        return EngineResult(
            {ref(row): number if row in self._rows else 7 for row in range(1, 9)}, {}, 0
        )


def filled(
    cells: Mapping[str, Any], like: Workbook | None, rows: Sequence[int] = ()
) -> tuple[ComputedValues, Counting]:
    engine = Counting("libreoffice", rows)
    recalculator = Recalculator([engine, Counting("ironcalc", rows)], trust=NO_TRUST)
    return recalculator.fill(workbook(cells), [ALL], origin=Origin.SOLUTION, like=like), engine


GOLD = {"A1": ("VALUE(B2)", APRIL_13), "B2": "13/04/2021"}


def by_row(computed: ComputedValues) -> dict[int, CellValue]:
    return {cell.row: value for cell, value in computed.values.items()}


def test_engines_values_count_only_if_they_do_not_depend_on_the_date() -> None:
    cells = {
        "A1": "=B1+0",
        "A2": "=DATEVALUE(B1)",
        "A3": "=GAMMALN(B1)",
        "A4": "=IFERROR(STDEVA(B1:B2),0)",
        "A5": "=A1*2",
        "A6": '=COUNTIF(B1:B2,"3/4/2021")',
        "A7": "=PI()",
        "A8": "=A3+1",
        "B1": "3/4/2021",
    }
    computed, engine = filled(cells, saved(GOLD), rows=[3, 8])
    expected = {1: APRIL_3, 2: APRIL_3, 4: 7, 5: APRIL_3 * 2, 7: 7}
    assert by_row(computed) == expected
    assert computed.not_calculated.keys() == {ref(3), ref(6), ref(8)}
    assert "engines read the month first and say 3" in computed.not_calculated[ref(3)]
    assert engine.texts[0] == "3/4/2021"
    assert set(engine.texts) == {"3/4/2021", "4/3/2021", "342021"}


def test_an_engines_value_may_stay_if_no_formula_makes_dates() -> None:
    cells = {"A1": "=STDEVA(B1:B2)", "A2": "=GAMMALN(B1)", "B1": "3/4/2021"}
    computed, engine = filled(cells, saved(GOLD), rows=[2])
    assert by_row(computed) == {1: 7}
    # Without the engines' workbook, a date that a formula joins is not found in it.
    cells = {"A1": '=STDEVA(3&"/"&4&B1,B2)', "B1": "/2021"}
    computed, engine = filled(cells, saved(GOLD))
    assert computed.not_calculated.keys() == {ref(1)}
    assert len(engine.texts) == 1


@pytest.mark.parametrize(
    "like",
    [
        None,
        saved({**GOLD, "A1": ("VALUE(B2)", VALUE)}),
        saved(GOLD, "a library"),
    ],
    ids=["no gold", "contrary", "written by a library"],
)
def test_without_evidence_nothing_changes(like: Workbook | None) -> None:
    cells = {"A1": "=B1+0", "A2": "=DATEVALUE(B1)", "B1": "3/4/2021", "B2": "13/04/2021"}
    computed, engine = filled(cells, like)
    assert by_row(computed) == {1: 7, 2: MARCH_4}
    assert set(engine.texts) == {"3/4/2021"}


def test_an_output_shows_nothing_about_itself() -> None:
    """A program may write a date, and whatever it likes as a stored value."""
    output = saved({**GOLD, "A3": ("B4+0", APRIL_3), "B4": "3/4/2021"})
    engines = [ScriptedEngine(name, {ref(3): MARCH_4}) for name in ("libreoffice", "ironcalc")]
    recalculator = Recalculator(engines, trust=NO_TRUST)
    area = CellRange("S", 3, 1, 3, 1)
    plain = recalculator.fill(output, [area], origin=Origin.SOLUTION)
    assert plain.values == {CellRef("S", 3, 1): MARCH_4}
    # The same output next to a gold that shows the order: the cached result is another one.
    like = recalculator.fill(output, [area], origin=Origin.SOLUTION, like=saved(GOLD))
    assert like.values == {CellRef("S", 3, 1): APRIL_3}


def test_a_gold_shows_its_own_order() -> None:
    gold = saved({**GOLD, "A3": ("B4+0", APRIL_3), "B4": "3/4/2021"})
    engines = [ScriptedEngine(name, {ref(3): MARCH_4}) for name in ("libreoffice", "ironcalc")]
    recalculator = Recalculator(engines, trust=NO_TRUST, mode="always")
    area = CellRange("S", 3, 1, 3, 1)
    assert recalculator.fill(gold, [area], origin=Origin.GOLD).values == {ref(3): APRIL_3}


def test_dates_are_rewritten_in_texts_only() -> None:
    assert with_days_first(b"15/08/2004 - Venus, 3-4-21, 3/4") == b"08/15/2004 - Venus, 4-3-21, 4/3"
    assert with_days_first(b"2021-04-03 12:30, 1/2/3/4, 1.5") == b"2021-04-03 12:30, 1/2/3/4, 1.5"
    assert with_plain_numbers(b"15/08/2004 - Venus") == b"15082004"
    assert with_plain_numbers(b"Venus 15") == b"Venus 15"


# -- the names of months and days ------------------------------------------------------------------

MARCH_15, MAY_1 = 44270, 44317
"""A Monday and a Saturday in 2021."""


@pytest.mark.parametrize(
    ("cells", "language"),
    [
        ({"A1": (f'TEXT({MARCH_15},"mmmm")', "marzo")}, "es or it"),
        ({"A1": (f'TEXT({MAY_1},"mmmm")', "mayo")}, "es"),
        ({"A1": (f"TEXT({MAY_1},B2)", "mayo 2021"), "B2": "mmmm yyyy"}, "es"),
        ({"A1": (f'"en "&TEXT({MAY_1},"MMMM")', "en mayo")}, "es"),
        ({"A1": (f'TEXT({MARCH_15},"mmm")', "Mrz")}, "de"),
        ({"A1": (f'TEXT({MARCH_15},"dddd")', "lundi")}, "fr"),
        ({"A1": (f'TEXT({MARCH_15},"mmm")', "3月")}, "zh or ja"),
        ({"A1": (f'TEXT({MARCH_15},"mmmm")', "Март")}, "ru"),
        # Right in English, or in no language.
        ({"A1": (f'TEXT({MAY_1},"mmm")', "May")}, "en"),
        ({"A1": (f'TEXT({MARCH_15},"mmmm")', "mayo")}, "en"),
        ({"A1": (f'TEXT({MARCH_15},"[$-409]mmmm")', "marzo")}, "en"),
        # The value of a formula that writes no name, and of one that depends on the day.
        ({"A1": ("B2", "mayo"), "B2": "mayo", "A3": ("TEXT(1,B4)", "Jan"), "B4": "mmm"}, "en"),
        ({"A1": (f'TEXT(TODAY()*0+{MAY_1},"mmmm")', "mayo")}, "en"),
        # Contradictory values.
        (
            {
                "A1": (f'TEXT({MAY_1},"mmmm")', "mayo"),
                "A2": (f'TEXT({MARCH_15},"mmmm")', "March"),
            },
            "en",
        ),
        (
            {
                "A1": (f'TEXT({MAY_1},"mmmm")', "mayo"),
                "A2": (f'TEXT({MARCH_15},"mmmm")', "mars"),
            },
            "en",
        ),
    ],
)
def test_only_stored_values_show_the_language(cells: Mapping[str, Any], language: str) -> None:
    assert shown_by(saved(cells)).names.language == language


SPANISH = common([names for names in LANGUAGES if names.language == "es"])


def test_names_are_those_that_all_remaining_styles_share() -> None:
    shown = shown_by(saved({"A1": (f'TEXT({MAY_1},"mmmm")', "mayo")})).names
    assert shown == SPANISH
    assert shown.months[0] == "enero"
    assert shown.short_months[:5] == (None, None, None, None, None)
    dotted = shown_by(saved({"A1": (f'TEXT({MAY_1},"d mmm")', "1 may.")})).names
    assert dotted.language == "es"
    assert dotted.short_months[0] == "ene."


@pytest.mark.parametrize("names", [ENGLISH, *LANGUAGES])
def test_lists_of_names_are_complete(names: Names) -> None:
    lengths = [12, 12, 7, 7]
    lists = (names.months, names.short_months, names.days, names.short_days)
    assert [len(one) for one in lists] == lengths
    assert [len(set(one)) for one in lists] == lengths
    words = [name for one in lists for name in one if name and not name.isdigit()]
    assert all(names.in_text(f"1-{word}-2021") for word in words)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("mmmm", "marzo"),
        ("d mmmm", "15 marzo"),
        ("mmmmm", "m"),
        ("dddd", "lunes"),
        ("[$-409]mmm yyyy", "Mar 2021"),
        ("hh:mm", "00:00"),
        ("mm", "03"),
    ],
)
def test_formats_write_names_of_the_language(code: str, text: str) -> None:
    assert formatted(MARCH_15, code, SPANISH) == text


@pytest.mark.parametrize("code", ["mmm", "ddd", "mmmm yyyy", "h AM/PM"])
def test_what_the_styles_of_a_language_write_differently_is_unsure(code: str) -> None:
    with pytest.raises(UnsureError):
        formatted(MARCH_15, code, SPANISH)


@pytest.mark.parametrize("text", ["1-mayo-2021", "1-Jan-2021", "mayo 2021"])
def test_names_in_text_are_not_read_in_another_language(text: str) -> None:
    with pytest.raises(UnsureError):
        text_number(text, Region(names=SPANISH))
    assert text_number("2021-05-01", Region(names=SPANISH)) == MAY_1
    assert text_number("Calle Mayor 5", Region(names=SPANISH)) is None


SPANISH_GOLD = {"A1": (f'TEXT({MAY_1},"mmmm")', "mayo")}


def test_names_are_written_as_the_gold_shows() -> None:
    cells = {
        "A1": f'=TEXT({MARCH_15},"mmmm")',
        "A2": '=IF(A1="marzo",1,2)',
        "A3": '=COUNTIF(A1:A1,"marzo")',
        "A4": f'=TEXT({MARCH_15},"mmm")',
        "A5": "=A4",
        "A6": '=DATEVALUE("1-"&A1&"-2021")',
        "A7": "=STDEVA(B1,3)",
        "A8": '=TEXT(7,"00")',
        "B1": "marzo",
    }
    values = dict.fromkeys(map(ref, range(1, 9)), 7)
    engines = [ScriptedEngine(name, values) for name in ("libreoffice", "ironcalc")]
    recalculator = Recalculator(engines, trust=NO_TRUST)
    gold = saved(SPANISH_GOLD)
    computed = recalculator.fill(workbook(cells), [ALL], origin=Origin.SOLUTION, like=gold)
    assert by_row(computed) == {1: "marzo", 2: 1, 3: 1, 7: 7, 8: "07"}
    assert computed.not_calculated.keys() == {ref(4), ref(5), ref(6)}
    assert "in another language (es)" in computed.not_calculated[ref(4)]


@pytest.mark.parametrize("like", [None, saved(SPANISH_GOLD, "a library")])
def test_names_are_english_without_evidence(like: Workbook | None) -> None:
    output = saved({**SPANISH_GOLD, "A2": (f'TEXT({MARCH_15},"mmmm")', "marzo")})
    engines = [ScriptedEngine(name, {ref(2): "March"}) for name in ("libreoffice", "ironcalc")]
    recalculator = Recalculator(engines, trust=NO_TRUST)
    area = CellRange("S", 2, 1, 2, 1)
    computed = recalculator.fill(output, [area], origin=Origin.SOLUTION, like=like)
    assert computed.values == {ref(2): "March"}
