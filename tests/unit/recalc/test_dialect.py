"""Formulas rewritten for LibreOffice."""

import io
import re
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.recalc.services.common import CannotComputeError
from judge.recalc.services.dialect import (
    LONGEST,
    TRIGGER,
    for_libreoffice,
    joins_text,
    split_arguments,
)
from judge.recalc.services.match_arrays import as_plain_formula
from judge.recalc.services.package import Step, edit_formulas, prepare, renaming


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("_xlfn.SINGLE(INDEX(A1:A3,2))+1", "(INDEX(A1:A3,2))+1"),
        ('IFERROR(__xludf.DUMMYFUNCTION("SORT(A1,B1)"),"x")', 'IFERROR(JUDGE.UNKNOWN(),"x")'),
        (
            "SMALL(A1:A3,2)",
            "IFERROR(SMALL(A1:A3,2),IF(ISERROR(SUM(A1:A3)),SMALL(A1:A3,2),SQRT(-1)))",
        ),
        ("EOMONTH(A1,0)", "EOMONTH(A1,0)"),
        ("EDATE(A1,B1)", "IF(EDATE(A1,B1)<0,SQRT(-1),EDATE(A1,B1))"),
        ("MATCH(A1,B1:B9,1)", "MATCH(A1,B1:B9,1)"),
        ("MATCH(1,(B1:B9=2)/1,0)", "MATCH(1,(B1:B9=2)/1,0)"),
        ('MATCH(A1,"a/b"&B1:B9)', 'MATCH(A1,"a/b"&B1:B9)'),
        ("MATCH(2,1/B1:B9)", "LOOKUP(2,1/B1:B9,_xlfn.SEQUENCE(ROWS(1/B1:B9),COLUMNS(1/B1:B9)))"),
        ("NPV(0.1,B1:B9)", "NPV(0.1,B1:B9)"),
        ("FREQUENCY(A1:A9,'x y'!$B$1:C9)", "FREQUENCY(A1:A9,'x y'!$B$1:C9)"),
        ("FREQUENCY(A1:A9,Days)", "FREQUENCY(A1:A9,_xlfn.TOCOL(Days,1))"),
        ("NPV(0.1,B1,C1)", "NPV(0.1,B1,C1)"),
        ("MROUND(5,A1)", "IF((5)*(A1)<0,SQRT(-1),MROUND(5,A1))"),
        ("DOLLAR(A1,2)", 'IF((A1)<0,"("&DOLLAR(-(A1),2)&")",DOLLAR((A1),2))'),
        ("ATAN2(A1,B1)", "IF(((A1)=0)*((B1)=0),1/0,ATAN2(A1,B1))"),
        ('_xlfn.NUMBERVALUE("5%")', '_xlfn.NUMBERVALUE("5%",".",",")'),
        ('_xlfn.NUMBERVALUE("5%",",")', '_xlfn.NUMBERVALUE("5%",",")'),
        ("_xlfn.AGGREGATE(15,6,A1:A9)", "#VALUE!"),
        ("_xlfn.AGGREGATE(9,6,A1:A9)", "_xlfn.AGGREGATE(9,6,A1:A9)"),
        ("VLOOKUP(1,A1:B9,0,FALSE)", "#VALUE!"),
        ("VLOOKUP(1,A1:B9,2,0)", "VLOOKUP(1,A1:B9,2,0)"),
        ("DATE(2011,1,1)", "DATE(2011,1,1)"),
        ("_xlfn.BINOM.DIST.RANGE(60,0.75,45,50)", "B(60,0.75,45,50)"),
        (
            '_xlfn.REGEXTEST(A1,"^a",1)',
            'NOT(ISNA(_xlfn.ORG.LIBREOFFICE.REGEX(A1,"(?i)"&("^a"))))',
        ),
        ('_xlfn.REGEXEXTRACT(A1,"[0-9]+")', '_xlfn.ORG.LIBREOFFICE.REGEX(A1,"[0-9]+")'),
        ('_xlfn.REGEXEXTRACT(A1,"[0-9]+",1)', '_xlfn.REGEXEXTRACT(A1,"[0-9]+",1)'),
        ('_xlfn.REGEXREPLACE(A1,"x","y")', '_xlfn.ORG.LIBREOFFICE.REGEX(A1,"x","y","g")'),
        ('_xlfn.REGEXREPLACE(A1,"x","y",2)', '_xlfn.ORG.LIBREOFFICE.REGEX(A1,"x","y",2)'),
        ('_xlfn.REGEXREPLACE(A1,"x","y",-1)', '_xlfn.REGEXREPLACE(A1,"x","y",-1)'),
        (
            "_xlfn.FORECAST.ETS.CONFINT(9,A1:A5,B1:B5,C1)",
            "IF(ISERROR(C1+0),#VALUE!,_xlfn.FORECAST.ETS.CONFINT(9,A1:A5,B1:B5,C1))",
        ),
        ("_xlfn.FORECAST.ETS.CONFINT(9,A1:A5,B1:B5,C1:C2)", "JUDGE.UNKNOWN()"),
        ("'SMALL(x'!A1", "'SMALL(x'!A1"),
        ('"SMALL(A1,2)"', '"SMALL(A1,2)"'),
        ("SMALL(A1", "SMALL(A1"),
        ("SMALL(A1,2,3)", "SMALL(A1,2,3)"),
        ("IFERROR(1,2)", "IFERROR(1,2)"),
    ],
)
def test_rewriting(formula: str, expected: str) -> None:
    assert for_libreoffice(formula) == expected


def test_text_dates_are_written_in_full() -> None:
    assert "REGEX(1&B8&$B$3," in for_libreoffice("EOMONTH(1&B8&$B$3,0)")
    assert for_libreoffice('DATEVALUE("1"&B1)').startswith("DATEVALUE(_xlfn.ORG.LIBREOFFICE.REGEX(")


def test_nesting_does_not_grow_without_bound() -> None:
    formula = "A1:A3"
    for _ in range(40):
        formula = f"SMALL({formula},1)"
    assert len(for_libreoffice(formula)) <= LONGEST


def test_arguments_are_split_at_their_own_commas() -> None:
    text = "{1,2;3,4},\"a,(b\",'x,y'!A1,F(1,2)) rest"
    arguments, end = split_arguments(text, 0)
    assert arguments == ["{1,2;3,4}", '"a,(b"', "'x,y'!A1", "F(1,2)"]
    assert text[end:] == " rest"
    assert split_arguments("A1,(B1", 0) == (None, 0)


def test_concatenated_text() -> None:
    assert joins_text('1&"x"')
    assert not joins_text('"a&b"')
    assert not joins_text("F(1&2)")


@given(st.text(alphabet="SMALRGE(),\"'{}[]&A1:_xlfn.", max_size=60))
def test_no_text_is_refused(text: str) -> None:
    for_libreoffice(text)


def test_names_are_rewritten_only_where_they_are_called_without_prefix() -> None:
    rename = renaming({"XLOOKUP": "JUDGE.UNKNOWN", "FILTER": "_xlfn._xlws.FILTER"}).rewrite
    assert rename('XLOOKUP(1,A:A,"XLOOKUP(")+_xlfn.XLOOKUP(1)', False) == (
        "JUDGE.UNKNOWN()+_xlfn.XLOOKUP(1)"
    )
    assert rename("xlookup (1)&FILTER(A1)&MYFILTER(1)&FILTER", True) == (
        "JUDGE.UNKNOWN()&_xlfn._xlws.FILTER(A1)&MYFILTER(1)&FILTER"
    )
    assert rename('FILTER(XLOOKUP(1,"FILTER(",(2)),"XLOOKUP(")', True) == (
        '_xlfn._xlws.FILTER(JUDGE.UNKNOWN(),"XLOOKUP(")'
    )
    assert rename("XLOOKUP(1", False) == "JUDGE.UNKNOWN(1"


ANYTHING = re.compile(b"")


def test_only_formulas_of_a_part_are_edited() -> None:
    xml = b'<c r="A1"><f t="array" ref="A1">1&amp;"&lt;"&amp;x</f><v>x</v></c><f/><c><f>y</f></c>'
    edited = edit_formulas(xml, [Step(ANYTHING, lambda text, _: text.replace("x", "<z>"))])
    assert edited == (
        b'<c r="A1"><f t="array" ref="A1">1&amp;"&lt;"&amp;&lt;z&gt;</f><v>x</v></c>'
        b"<f/><c><f>y</f></c>"
    )


def rewrite(formula: str, is_array: bool) -> str:
    return for_libreoffice(formula)


def test_array_formulas_are_distinguished() -> None:
    seen: list[tuple[str, bool]] = []

    def note(text: str, is_array: bool) -> str:
        seen.append((text, is_array))
        return text

    edit_formulas(
        b"<f>1</f><f t=\"array\" ref=\"A1\">2</f><f t='shared' si='0'>3</f><definedName name='x'>4"
        b"</definedName>",
        [Step(ANYTHING, note)],
    )
    assert seen == [("1", False), ("2", True), ("3", False), ("4", True)]


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("MATCH(A1,B1:B9,0)", "MATCH(A1,B1:B9,0)"),
        ('MATCH(1,B:B&"",0)', 'MATCH(1,#VALUE!&"",0)'),
        ("MATCH(1,(B2:B9=A1)*(2:2=1),0)", "MATCH(1,(#VALUE!=A1)*(#VALUE!=1),0)"),
        ("MATCH(1,'a b'!$B$2:$D$2&1,0)", "MATCH(1,#VALUE!&1,0)"),
        ("SUMPRODUCT(MATCH(1,B2:B9&1,0))", "SUMPRODUCT(MATCH(1,B2:B9&1,0))"),
        ("MATCH(1,INDEX(B2:B9,0)*1,0)", "MATCH(1,INDEX(B2:B9,0)*1,0)"),
        ("LOOKUP(2,1/(B2:B9=1),C2:C9)", "LOOKUP(2,1/(B2:B9=1),C2:C9)"),
        ('"MATCH(1,B2:B9&1,0)"', '"MATCH(1,B2:B9&1,0)"'),
    ],
)
def test_match_over_a_computed_range_is_an_error_unless_arrays_are_computed(
    formula: str, expected: str
) -> None:
    assert as_plain_formula(formula, is_array=False) == expected
    assert as_plain_formula(formula, is_array=True) == formula


def _package(**parts: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name.replace("__", "/") + ".xml", content)
    return stream.getvalue()


def test_only_formulas_that_hold_a_trigger_are_rewritten() -> None:
    sheet = (
        b"<worksheet><sheetData><c><f>SUM(1)</f></c><c><f>SMALL(A1,1)</f></c></sheetData>"
        b"</worksheet>"
    )
    package = _package(xl__a=sheet, other=b"<f>SMALL(A1,1)</f>")
    with zipfile.ZipFile(io.BytesIO(prepare(package, {}, step=Step(TRIGGER, rewrite)))) as archive:
        assert b"<f>SUM(1)</f>" in archive.read("xl/a.xml")
        assert b"IFERROR(SMALL" in archive.read("xl/a.xml")
        assert archive.read("other.xml") == b"<f>SMALL(A1,1)</f>"


def test_an_engine_gets_the_parts_that_we_saw_and_nothing_else() -> None:
    """Packed again even if no formula changes, so that bytes between the parts are dropped."""
    package = _package(xl__a=b"<x/>", other=b"<y/>")
    hidden = b"PK\x03\x04" + b"something that another reader could find"
    ready = prepare(hidden + package, {})
    assert hidden not in ready
    assert ready.startswith(b"PK\x03\x04")
    with zipfile.ZipFile(io.BytesIO(ready)) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == {
            "xl/a.xml": b"<x/>",
            "other.xml": b"<y/>",
        }


@pytest.mark.parametrize("text", ["'" * 16_385, "SMALL(" + "1" * 20_000 + ",1)"])
def test_text_too_long_for_a_formula_is_not_examined(text: str) -> None:
    asked: list[str] = []

    def note(formula: str, _: bool) -> str:
        asked.append(formula)
        return formula

    sheet = f"<sheetData><f>{text}</f><f>SMALL(A1,1)</f></sheetData>".encode()
    assert edit_formulas(sheet, [Step(re.compile(b""), note)]) == sheet
    assert asked == ["SMALL(A1,1)"]


@pytest.mark.parametrize(
    "formula",
    ["'" * 8_000, "{" * 8_000, "(" * 4_000 + "1+" * 2_000, "SMALL(" * 1_300, '"' * 7_999],
)
def test_formulas_that_no_engine_reads_are_unchanged(formula: str) -> None:
    assert for_libreoffice(formula) == formula
    assert as_plain_formula(formula, is_array=False) == formula
    assert renaming({"SMALL": "JUDGE.UNKNOWN"}).rewrite(formula, False).endswith(formula[-6:])


@pytest.mark.parametrize(
    "sheet",
    [
        b"<sheetData><f>SMALL(A1,1)</f></sheetData>",
        b"<x:sheetData><x:f t='array'>SMALL(A1,1)</x:f></x:sheetData>",
    ],
)
def test_prefixes_of_elements_do_not_matter(sheet: bytes) -> None:
    assert b"IFERROR(SMALL" in edit_formulas(sheet, [Step(TRIGGER, rewrite)])


def test_what_is_not_a_package_and_what_claims_too_much_is_refused() -> None:
    with pytest.raises(CannotComputeError, match="not a package"):
        prepare(b"not a zip", {})
    many = io.BytesIO()
    with zipfile.ZipFile(many, "w") as archive:
        for number in range(20_001):
            archive.writestr(f"{number}", b"")
    with pytest.raises(CannotComputeError, match="20001 parts"):
        prepare(many.getvalue(), {})
