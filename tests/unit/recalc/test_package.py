"""How a package is changed before an engine gets it: no name in a formula is overlooked."""

from __future__ import annotations

import io
import zipfile

import pytest

from judge.recalc.services.package import edit_formulas, only_elements, prepare, renaming

NAMES = {"XLOOKUP": "NOT.KNOWN.XLOOKUP"}
SHEET = '<?xml version="1.0"?><worksheet><sheetData><row><c>{}</c></row></sheetData></worksheet>'


def renamed(formula: str) -> str:
    """Returns a cell of a sheet after its functions were renamed."""
    sheet = SHEET.format(formula).encode()
    edited = edit_formulas(only_elements(sheet), [renaming(NAMES)]).decode()
    before, after = SHEET.split("{}")
    return edited.removeprefix(before).removesuffix(after)


@pytest.mark.parametrize(
    "formula",
    [
        "<f>XLOOKUP(1,A1,B1)</f>",
        "<f>XLOO<!-- a comment -->KUP(1,A1,B1)</f>",
        "<f>XLOO<!-- over\ntwo lines -->KUP(1,A1,B1)</f>",
        "<f>XLOO<?an instruction?>KUP(1,A1,B1)</f>",
        "<f><![CDATA[XLOOKUP(1,A1,B1)]]></f>",
        "<f>XL<![CDATA[OOKUP(1]]>,A1,B1)</f>",
        "<f>XL&#79;OKUP(1,A1,B1)</f>",
        "<f>XL&#x4F;OKUP(1,A1,B1)</f>",
    ],
)
def test_a_name_in_pieces_is_renamed_like_a_whole_one(formula: str) -> None:
    assert renamed(formula) == "<f>NOT.KNOWN.XLOOKUP(1,A1,B1)</f>"


@pytest.mark.parametrize("formula", ["s:f", "x14:f"])
def test_a_prefixed_formula_is_renamed_next_to_plain_rows(formula: str) -> None:
    assert renamed(f"<f>1</f><{formula}>XLOOKUP(1)</{formula}>") == (
        f"<f>1</f><{formula}>NOT.KNOWN.XLOOKUP(1)</{formula}>"
    )


def test_text_of_a_cdata_section_stays_text() -> None:
    assert renamed('<f><![CDATA[XLOOKUP("<b>&amp;",A1)&"x"]]></f>') == (
        '<f>NOT.KNOWN.XLOOKUP("&lt;b&gt;&amp;amp;",A1)&amp;"x"</f>'
    )
    assert only_elements(b"<t><![CDATA[<c>&]]></t>") == b"<t>&lt;c&gt;&amp;</t>"


def test_everything_but_elements_and_the_declaration_is_removed() -> None:
    declared = b'<?xml version="1.0" encoding="UTF-8"?><a><?b c?>1<!-- <d/> -->2</a>'
    assert only_elements(declared) == b'<?xml version="1.0" encoding="UTF-8"?><a>12</a>'
    marked = b"\xef\xbb\xbf\n<a><!--b--></a>"
    assert only_elements(marked) == b"\xef\xbb\xbf\n<a></a>"


@pytest.mark.parametrize(
    "content", [b"", b"\x89PNG <!-- no comment -->", b'<?xml version="1.0"?><a>1</a>', b"<a/>"]
)
def test_parts_that_are_not_xml_or_contain_only_elements_are_unchanged(content: bytes) -> None:
    assert only_elements(content) is content


def test_an_engine_gets_every_part_with_elements_only() -> None:
    source = io.BytesIO()
    with zipfile.ZipFile(source, "w") as package:
        package.writestr("xl/worksheets/sheet1.xml", SHEET.format("<f>XLOO<!---->KUP(A1)</f>"))
        package.writestr("xl/sharedStrings.xml", "<sst><!--a--><si/></sst>")
        package.writestr("xl/media/image1.png", b"\x89PNG<!--a-->")
    with zipfile.ZipFile(io.BytesIO(prepare(source.getvalue(), NAMES))) as package:
        parts = {name: package.read(name) for name in package.namelist()}
    assert parts == {
        "xl/worksheets/sheet1.xml": SHEET.format("<f>NOT.KNOWN.XLOOKUP(A1)</f>").encode(),
        "xl/sharedStrings.xml": b"<sst><si/></sst>",
        "xl/media/image1.png": b"\x89PNG<!--a-->",
    }
