"""Workbooks in forms that programs read differently, or that only look unusual.

Every form is the plain workbook with one thing changed. What LibreOffice and openpyxl read of each
is recorded in ``package_forms.json`` by ``benchmarks/package_forms.py``.
"""

from __future__ import annotations

import functools
import io
import struct
import zipfile
from collections.abc import Callable, Mapping
from typing import Any

from tests.unit.compare.cells.packages import (
    CONTENT,
    DECLARATION,
    MAIN,
    PACKAGE_RELATIONS,
    RELATIONS,
    Book,
    zipped,
)

STRICT_MAIN = "http://purl.oclc.org/ooxml/spreadsheetml/main"
STRICT_RELATIONS = "http://purl.oclc.org/ooxml/officeDocument/relationships"
MC = "http://schemas.openxmlformats.org/markup-compatibility/2006"
FOREIGN = "urn:example:foreign"

SHEET = "xl/worksheets/sheet1.xml"
SECOND = "xl/worksheets/sheet2.xml"
STRINGS = "xl/sharedStrings.xml"
WORKBOOK = "xl/workbook.xml"
LINKS = "xl/_rels/workbook.xml.rels"
ROOT_LINKS = "_rels/.rels"
TYPES = "[Content_Types].xml"
STYLES = "xl/styles.xml"

ROWS = (
    '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1"><v>11</v></c></row>'
    '<row r="2"><c r="A2" t="s"><v>1</v></c><c r="B2"><v>12.5</v></c></row>'
    '<row r="3"><c r="A3" t="b"><v>1</v></c><c r="B3"><f>B1+B2</f><v>23.5</v></c></row>'
)
OTHER = '<row r="1"><c r="A1"><v>99</v></c></row>'
WRONG = (
    '<row r="1"><c r="A1"><v>666</v></c><c r="B1"><v>666</v></c></row>'
    '<row r="2"><c r="A2"><v>666</v></c><c r="B2"><v>666</v></c></row>'
    '<row r="3"><c r="A3"><v>666</v></c><c r="B3"><v>666</v></c></row>'
)

Parts = dict[str, bytes]


def plain_parts() -> Parts:
    """The parts of the plain workbook: two sheets, two strings, a formula."""
    return Book(
        {"Data": f"<sheetData>{ROWS}</sheetData>", "Other": f"<sheetData>{OTHER}</sheetData>"},
        shared=("north", "south"),
    ).all_parts()


def _altered(part: str, old: str, new: str) -> bytes:
    parts = plain_parts()
    text = parts[part].decode()
    assert old in text, (part, old)
    parts[part] = text.replace(old, new, 1).encode()
    return zipped(parts)


def _sheet(old: str, new: str) -> Callable[[], bytes]:
    return functools.partial(_altered, SHEET, old, new)


def _in(part: str, old: str, new: str) -> Callable[[], bytes]:
    return functools.partial(_altered, part, old, new)


def _with(changed: Mapping[str, str | bytes | None]) -> Callable[[], bytes]:
    def build() -> bytes:
        parts = plain_parts()
        for name, text in changed.items():
            if text is None:
                del parts[name]
            else:
                parts[name] = text.encode() if isinstance(text, str) else text
        return zipped(parts)

    return build


def _changed(*changes: tuple[str, str, str], add: Mapping[str, str | bytes | None] = {}) -> Any:
    """Replaces several texts in parts, everywhere; adds parts, or removes those that are None."""

    def build() -> bytes:
        parts = plain_parts()
        for part, old, new in changes:
            text = parts[part].decode()
            assert old in text, (part, old)
            parts[part] = text.replace(old, new).encode()
        for name, content in add.items():
            if content is None:
                del parts[name]
            else:
                parts[name] = content.encode() if isinstance(content, str) else content
        return zipped(parts)

    return build


def _sheet_xml(inner: str, root: str = f'<worksheet xmlns="{MAIN}" xmlns:r="{RELATIONS}">') -> str:
    return f"{DECLARATION}{root}{inner}</worksheet>"


def _rows(rows: str) -> Callable[[], bytes]:
    return _with({SHEET: _sheet_xml(f"<sheetData>{rows}</sheetData>")})


def _whole(inner: str, root: str = f'<worksheet xmlns="{MAIN}" xmlns:r="{RELATIONS}">') -> Any:
    return _with({SHEET: _sheet_xml(inner, root)})


def _a1(cell: str) -> Callable[[], bytes]:
    """The plain workbook with a different cell A1."""
    return _sheet('<c r="A1" t="s"><v>0</v></c>', cell)


def _number(text: str) -> Callable[[], bytes]:
    return _a1(f'<c r="A1"><v>{text}</v></c>')


def _strings(items: str, root: str = f'<sst xmlns="{MAIN}">') -> Callable[[], bytes]:
    return _with({STRINGS: f"{DECLARATION}{root}{items}</sst>"})


def _encoded(encoding: str, declared: str | None = None) -> Callable[[], bytes]:
    text = _sheet_xml(f"<sheetData>{ROWS}</sheetData>").replace(
        '"UTF-8"', f'"{declared or encoding}"'
    )
    return _with({SHEET: text.encode(encoding)})


def _prefixed(prefix: str = "x") -> Callable[[], bytes]:
    rows = (ROWS.replace("</", f"</{prefix}:").replace("<", f"<{prefix}:")).replace(
        f"<{prefix}:/{prefix}:", f"</{prefix}:"
    )
    return _with(
        {
            SHEET: f'{DECLARATION}<{prefix}:worksheet xmlns:{prefix}="{MAIN}">'
            f"<{prefix}:sheetData>{rows}</{prefix}:sheetData></{prefix}:worksheet>"
        }
    )


def _prefixed_everywhere() -> bytes:
    """All parts as the Open XML SDK of .NET writes them."""
    parts = plain_parts()
    for name in (SHEET, SECOND, WORKBOOK, STRINGS, STYLES):
        text = parts[name].decode().removeprefix(DECLARATION)
        text = text.replace("</", "\0").replace("<", "<x:").replace("\0", "</x:")
        parts[name] = (DECLARATION + text.replace("xmlns=", "xmlns:x=")).encode()
    return zipped(parts)


def _strict(but: str = "") -> bytes:
    """As Excel saves a "Strict Open XML Spreadsheet", possibly except for one part."""
    parts = plain_parts()
    for name, data in parts.items():
        if name == but:
            continue
        text = data.decode().replace(MAIN, STRICT_MAIN).replace(RELATIONS, STRICT_RELATIONS)
        parts[name] = text.encode()
    return zipped(parts)


def _entries(change: Callable[[list[tuple[str, bytes]]], list[tuple[str, bytes]]]) -> Any:
    """The plain workbook with changes to its list of archive entries."""

    def build() -> bytes:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in change(list(plain_parts().items())):
                archive.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), data)
        return buffer.getvalue()

    return build


def _renamed(old: str, new: str) -> Any:
    return _entries(
        lambda entries: [(new if name == old else name, data) for name, data in entries]
    )


def _link(identifier: str, kind: str, target: str) -> str:
    return f'<Relationship Id="{identifier}" Type="{kind}" Target="{target}"/>'


_WRONG_SHEET = _sheet_xml(f"<sheetData>{WRONG}</sheetData>")
_WRONG_STRINGS = (
    f'{DECLARATION}<sst xmlns="{MAIN}"><si><t>WRONG</t></si><si><t>WRONG</t></si></sst>'
)
_FIRST_LINK = _link("rId1", f"{RELATIONS}/worksheet", "worksheets/sheet1.xml")
_STRINGS_LINK = _link("rIdS", f"{RELATIONS}/sharedStrings", "sharedStrings.xml")
_MAIN_LINK = _link("rId1", f"{RELATIONS}/officeDocument", "xl/workbook.xml")
_FIRST_SHEET = '<sheet name="Data" sheetId="1" r:id="rId1"/>'
_SECOND_SHEET = '<sheet name="Other" sheetId="2" r:id="rId2"/>'
_STRINGS_TYPE = f'<Override PartName="/{STRINGS}" ContentType="{CONTENT}.sharedStrings+xml"/>'
_SHEET_TYPE = f'<Override PartName="/{SHEET}" ContentType="{CONTENT}.worksheet+xml"/>'
_FIRST_ROW = '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1"><v>11</v></c></row>'
_A2 = '<c r="A2" t="s"><v>1</v></c>'
_B3 = '<c r="B3"><f>B1+B2</f><v>23.5</v></c>'
_NS_ROOT = f'<worksheet xmlns="{MAIN}" xmlns:r="{RELATIONS}" xmlns:e="{FOREIGN}" xmlns:s="{MAIN}">'
_MC_ROOT = (
    f'<worksheet xmlns="{MAIN}" xmlns:r="{RELATIONS}" xmlns:mc="{MC}" xmlns:e="{FOREIGN}" '
    f'xmlns:s="{MAIN}" mc:Ignorable="e">'
)


def _alternatives(first: str, second: str) -> str:
    """Alternate content: one version for programs that know the namespace, one for all others."""
    return (
        f'<mc:AlternateContent><mc:Choice Requires="e">{first}</mc:Choice>'
        f"<mc:Fallback>{second}</mc:Fallback></mc:AlternateContent>"
    )


def _named(rows: str, root: str = _NS_ROOT) -> Any:
    return _whole(f"<sheetData>{rows}</sheetData>", root)


def _filling(attributes: str) -> Callable[[], bytes]:
    """A formula in A1 that refers to two cells."""
    return _rows(
        f'<row r="1"><c r="A1"><f {attributes}>C1:C2*2</f><v>2</v></c><c r="C1"><v>1</v></c></row>'
        '<row r="2"><c r="A2"><v>4</v></c><c r="C2"><v>2</v></c></row>'
    )


def _shared(*cells: tuple[str, str]) -> Callable[[], bytes]:
    """Cells A1, A2 ... with attributes and texts of shared formulas, and the named cells."""
    rows = (
        f'<row r="{row}"><c r="A{row}"><f t="shared" {attributes}>{text}</f><v>{row}</v></c>'
        f'<c r="C{row}"><v>{row}</v></c></row>'
        for row, (attributes, text) in enumerate(cells, 1)
    )
    return _rows("".join(rows))


def _looks(*changes: tuple[str, str]) -> Callable[[], bytes]:
    """The plain workbook with a different style sheet, and B1 with a date format."""
    made: Callable[[], bytes] = _changed(
        *((STYLES, old, new) for old, new in changes), (SHEET, '<c r="B1">', '<c r="B1" s="1">')
    )
    return made


def _as_another_sheet(kind: str, content: str) -> Callable[[], bytes]:
    """The first sheet, referenced as a sheet of another kind."""
    target = '" Target="worksheets/sheet1'
    made: Callable[[], bytes] = _changed(
        (LINKS, f"{RELATIONS}/worksheet{target}", f"{kind}{target}"),
        (TYPES, _SHEET_TYPE, _SHEET_TYPE.replace(f"{CONTENT}.worksheet+xml", content)),
    )
    return made


def _broken_strings(behind: str) -> Callable[[], bytes]:
    """The plain strings, with something after them."""
    strings = "<si><t>north</t></si><si><t>south</t></si>"
    return _with({STRINGS: f'{DECLARATION}<sst xmlns="{MAIN}">{strings}{behind}'})


def _two_names(first: str, second: str) -> Callable[[], bytes]:
    made: Callable[[], bytes] = _changed(
        (WORKBOOK, 'name="Data"', f'name="{first}"'), (WORKBOOK, 'name="Other"', f'name="{second}"')
    )
    return made


_MACROS = "http://schemas.microsoft.com/office/2006/relationships"
_CUSTOM = '<numFmts count="1"><numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd"/></numFmts>'
_YEAR = '<numFmt numFmtId="164" formatCode="yyyy"/>'
_YEARS = f"<numFmts>{_YEAR}</numFmts>"
_IGNORING = f'<styleSheet xmlns:mc="{MC}" xmlns:e="{FOREIGN}" mc:Ignorable="e" '


def _moved(part: str, name: str) -> Callable[[], bytes]:
    """The plain workbook with a date and a renamed part, to which everything refers."""

    def build() -> bytes:
        parts = plain_parts()
        parts[SHEET] = parts[SHEET].replace(b'<c r="B1">', b'<c r="B1" s="1">')
        parts[name] = parts.pop(part)
        links = ROOT_LINKS if part == WORKBOOK else LINKS
        start = "" if part == WORKBOOK else "xl/"
        for file, old, new in (
            (links, part.removeprefix(start), name.removeprefix(start)),
            (TYPES, f"/{part}", f"/{name}"),
        ):
            assert old.encode() in parts[file]
            parts[file] = parts[file].replace(old.encode(), new.encode())
        if part == WORKBOOK:
            parts["xl/_rels/workbook.bin.rels"] = parts.pop(LINKS)
        return zipped(parts)

    return build


def _orphan_styles(styles: str, of_b1: str = "") -> Any:
    """A style sheet to which nothing refers; PyExcelerate writes one without formats."""
    return _changed(
        (LINKS, _link("rIdY", f"{RELATIONS}/styles", "styles.xml"), ""),
        (SHEET, '<c r="B1">', f'<c r="B1"{of_b1}>'),
        add={STYLES: DECLARATION + styles},
    )


def _patched(flags: int = 0, version: int = 20, extra: bytes = b"") -> Callable[[], bytes]:
    """The plain workbook with other fields in its first sheet's entry, in both headers."""

    def build() -> bytes:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in plain_parts().items():
                info = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
                info.compress_type = zipfile.ZIP_DEFLATED
                if name == SHEET:
                    info.extra = extra
                archive.writestr(info, data)
            offset = archive.getinfo(SHEET).header_offset
        made = bytearray(buffer.getvalue())
        record = made.rindex(SHEET.encode()) - 46
        for start in (offset + 4, record + 6):
            struct.pack_into("<2H", made, start, version, flags)
        return bytes(made)

    return build


def _one_name_in_two_encodings() -> bytes:
    """Two entries with the same bytes as name, one of which is marked as UTF-8."""
    target, stand_in = "worksheets/\u1042x.xls", "worksheets/yyyyyxls"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for part, data in plain_parts().items():
            text = data.decode().replace("worksheets/sheet1.xml", target)
            name = f"xl/{target}" if part == SHEET else part
            archive.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), text)
        archive.writestr(zipfile.ZipInfo(f"xl/{stand_in}", (2020, 1, 1, 0, 0, 0)), _WRONG_SHEET)
    return buffer.getvalue().replace(stand_in.encode(), target.encode())


def _defined(attributes: str) -> Callable[[], bytes]:
    """The plain workbook with a defined name for one of its cells."""
    return _in(
        WORKBOOK,
        "</sheets>",
        f'</sheets><definedNames><definedName name="rate"{attributes}>Data!$B$1</definedName>'
        "</definedNames>",
    )


FORMS: dict[str, Callable[[], bytes]] = {
    "plain": lambda: zipped(plain_parts()),
    # -- rows and cells ----------------------------------------------------------------------------
    "rows: repeated after a later row": _rows(
        ROWS + '<row r="1"><c r="A1"><v>666</v></c><c r="B1"><v>666</v></c></row>'
    ),
    "rows: repeated at once": _rows(_FIRST_ROW + ROWS),
    "rows: out of order": _rows(
        '<row r="3"><c r="B3"><v>3</v></c></row><row r="1"><c r="A1"><v>1</v></c></row>'
    ),
    "rows: without numbers": _rows(
        ROWS.replace(' r="1"', "").replace(' r="2"', "").replace(' r="3"', "")
    ),
    "rows: one without a number after a gap": _rows(
        '<row r="4"><c r="A4"><v>4</v></c></row><row><c><v>5</v></c></row>'
    ),
    "rows: number 0": _rows('<row r="0"><c r="A0"><v>5</v></c></row>' + ROWS),
    "rows: number with a leading zero": _rows('<row r="01"><c r="A1"><v>5</v></c></row>'),
    "rows: number in Arabic digits": _rows('<row r="\u0661"><c><v>5</v></c></row>'),
    "rows: number with an underscore": _rows('<row r="1_0"><c><v>5</v></c></row>'),
    "rows: number as a fraction": _rows('<row r="2.0"><c><v>5</v></c></row>'),
    "rows: number beyond the sheet": _rows(ROWS + '<row r="1048577"><c><v>5</v></c></row>'),
    "rows: height as text": _sheet('<row r="2">', '<row r="2" ht="abc">'),
    "rows: format as text": _sheet('<row r="2">', '<row r="2" s="abc" customFormat="1">'),
    "rows: format out of range": _sheet('<row r="2">', '<row r="2" s="99" customFormat="1">'),
    "rows: outline as text": _sheet('<row r="2">', '<row r="2" outlineLevel="abc">'),
    "rows: hidden as text": _sheet('<row r="2">', '<row r="2" hidden="abc">'),
    "rows: unknown attribute": _sheet('<row r="2">', '<row r="2" foo="1">'),
    "rows: a row within a row": _rows('<row r="1"><row r="2"><c r="A2"><v>5</v></c></row></row>'),
    "rows: repeated in the extension of the sheet": _whole(
        f'<sheetData>{ROWS}</sheetData><extLst><ext uri="x">{WRONG}</ext></extLst>'
    ),
    "rows: in two sheetData": _whole(
        f"<sheetData>{ROWS}</sheetData><sheetData>{WRONG}</sheetData>"
    ),
    "rows: sheetData within another element": _whole(
        f"<sheetPr><sheetData>{WRONG}</sheetData></sheetPr><sheetData>{ROWS}</sheetData>"
    ),
    "rows: in a foreign namespace": _named(
        ROWS.replace("<row ", "<e:row ").replace("</row>", "</e:row>")
    ),
    "rows: wrong ones, then right ones in a foreign namespace": _named(
        WRONG + ROWS.replace("<row ", "<e:row ").replace("</row>", "</e:row>")
    ),
    "rows: wrong ones prefixed behind the right ones": _named(
        ROWS + WRONG.replace("<row ", "<s:row ").replace("</row>", "</s:row>").replace('"3"', '"4"')
    ),
    "rows: all prefixed by the main namespace": _named(
        ROWS.replace("<row ", "<s:row ").replace("</row>", "</s:row>")
    ),
    "rows: default namespace redeclared as foreign": _rows(
        ROWS.replace('<row r="2">', f'<row xmlns="{FOREIGN}" r="2">')
    ),
    "rows: default namespace redeclared as itself": _rows(
        ROWS.replace('<row r="2">', f'<row xmlns="{MAIN}" r="2">')
    ),
    "rows: default namespace taken away": _rows(
        ROWS.replace('<row r="2">', '<row xmlns="" r="2">')
    ),
    "rows: foreign element between them": _named(
        _FIRST_ROW + "<e:note>x</e:note>" + ROWS.removeprefix(_FIRST_ROW)
    ),
    "rows: foreign element around them": _named(f"<e:group>{WRONG}</e:group>"),
    "rows: AlternateContent around them": _named(
        f'<mc:AlternateContent><mc:Choice Requires="e">{ROWS}</mc:Choice>'
        f"<mc:Fallback>{WRONG}</mc:Fallback></mc:AlternateContent>",
        _MC_ROOT,
    ),
    "rows: sheetData in AlternateContent": _whole(
        f'<mc:AlternateContent><mc:Choice Requires="e"><sheetData>{ROWS}</sheetData></mc:Choice>'
        f"<mc:Fallback><sheetData>{WRONG}</sheetData></mc:Fallback></mc:AlternateContent>",
        _MC_ROOT,
    ),
    "rows: main namespace named as ignorable": _named(
        ROWS, _MC_ROOT.replace('Ignorable="e"', 'Ignorable="s"')
    ),
    "rows: ProcessContent of a foreign element": _named(
        f"<e:group>{WRONG}</e:group>",
        _MC_ROOT.replace('Ignorable="e"', 'Ignorable="e" mc:ProcessContent="e:group"'),
    ),
    "rows: foreign namespace that must be understood": _named(
        ROWS, _MC_ROOT.replace("mc:Ignorable", "mc:MustUnderstand")
    ),
    "rows: foreign attribute before the number": _named(
        ROWS.replace('<row r="2"', '<row e:r="7" r="2"')
    ),
    "rows: comment between them": _rows(ROWS.replace("</row>", "</row><!-- x -->")),
    "rows: wrong ones in a comment": _rows(f"<!-- {WRONG} -->" + ROWS),
    "rows: processing instruction between them": _rows(ROWS.replace("</row>", "</row><?x y?>")),
    "rows: CDATA between them": _rows(ROWS.replace("</row>", "</row><![CDATA[<row>]]>")),
    "rows: broken behind the last one": _rows(ROWS + '<row r="9"><c r="A9"></row>'),
    "rows: line breaks and spaces between everything": _rows(
        ROWS.replace("><", ">\n  <").replace(">\n  </v", "></v")
    ),
    "cells: out of order": _rows('<row r="1"><c r="B1"><v>2</v></c><c r="A1"><v>1</v></c></row>'),
    "cells: twice": _rows('<row r="1"><c r="A1"><v>1</v></c><c r="A1"><v>666</v></c></row>'),
    "cells: twice, then blank": _rows('<row r="1"><c r="A1"><v>1</v></c><c r="A1"/></row>'),
    "cells: of another row": _rows(ROWS + '<row r="9"><c r="A1"><v>666</v></c></row>'),
    "cells: without references": _rows(
        '<row r="1"><c t="s"><v>0</v></c><c><v>11</v></c></row><row r="3"><c><v>3</v></c></row>'
    ),
    "cells: one without a reference after a gap": _rows(
        '<row r="1"><c r="C1"><v>3</v></c><c><v>4</v></c></row>'
    ),
    "cells: reference in small letters": _a1('<c r="a1"><v>5</v></c>'),
    "cells: reference with dollars": _a1('<c r="$A$1"><v>5</v></c>'),
    "cells: reference as a range": _a1('<c r="A1:A1"><v>5</v></c>'),
    "cells: empty reference": _a1('<c r=""><v>5</v></c>'),
    "cells: reference in Arabic digits": _a1('<c r="A\u0661"><v>5</v></c>'),
    "cells: reference beyond the last column": _rows('<row r="1"><c r="XFE1"><v>5</v></c></row>'),
    "cells: foreign reference before the own": _named(
        ROWS.replace('<c r="B1">', '<c e:r="D1" r="B1">')
    ),
    "cells: foreign type before the own": _named(
        ROWS.replace(_A2, '<c e:t="n" r="A2" t="s"><v>1</v></c>')
    ),
    "cells: in a foreign namespace": _named(ROWS.replace(_A2, '<e:c r="A2"><v>666</v></e:c>')),
    "cells: in the extension of a row": _rows(
        '<row r="1"><c r="A1"><v>1</v></c><extLst><ext uri="x"><c r="A1"><v>666</v></c>'
        '<c r="B1"><v>666</v></c></ext></extLst></row>'
    ),
    "cells: extension within a cell": _a1(
        '<c r="A1"><v>5</v><extLst><ext uri="x"><v>666</v></ext></extLst></c>'
    ),
    "cells: prefixed by the main namespace": _named(
        ROWS.replace(_A2, '<s:c r="A2" t="s"><s:v>0</s:v></s:c>')
    ),
    "cells: a cell within a cell": _a1('<c r="A1"><c r="B1"><v>5</v></c><v>6</v></c>'),
    "cells: in no row": _whole(f'<sheetData><c r="A1"><v>5</v></c>{ROWS}</sheetData>'),
    # -- values ------------------------------------------------------------------------------------
    "value: twice": _a1('<c r="A1"><v>1</v><v>666</v></c>'),
    "value: next to an inline string": _a1('<c r="A1" t="inlineStr"><v>1</v><is><t>x</t></is></c>'),
    "value: inline text with a number": _a1('<c r="A1"><is><t>x</t></is><v>1</v></c>'),
    "value: inline text twice": _a1(
        '<c r="A1" t="inlineStr"><is><t>x</t></is><is><t>y</t></is></c>'
    ),
    "value: inline text without its type": _a1('<c r="A1"><is><t>x</t></is></c>'),
    "value: type inlineStr with v": _a1('<c r="A1" t="inlineStr"><v>1</v></c>'),
    "value: inline text": _a1('<c r="A1" t="inlineStr"><is><t>x</t></is></c>'),
    "value: inline text of two t": _a1('<c r="A1" t="inlineStr"><is><t>x</t><t>y</t></is></c>'),
    "value: inline text of runs": _a1(
        '<c r="A1" t="inlineStr"><is><r><t>x</t></r><r><rPr><b/></rPr><t>y</t></r></is></c>'
    ),
    "value: inline text in a foreign namespace": _named(
        ROWS.replace(_A2, '<c r="A2" t="inlineStr"><is><e:t>x</e:t></is></c>')
    ),
    "value: inline text of a run behind a run of hints": _a1(
        '<c r="A1" t="inlineStr"><is><t>x</t><rPh sb="0" eb="1"><t>hint</t></rPh></is></c>'
    ),
    "value: in a foreign namespace": _named(ROWS.replace("<v>11</v>", "<v>11</v><e:v>666</e:v>")),
    "value: foreign only": _named(ROWS.replace("<v>11</v>", "<e:v>666</e:v>")),
    "value: prefixed": _named(ROWS.replace("<v>11</v>", "<s:v>11</s:v>")),
    "value: element within": _a1('<c r="A1"><v>1<e>2</e>3</v></c>'),
    "value: unknown type": _a1('<c r="A1" t="x"><v>5</v></c>'),
    "value: type in capitals": _a1('<c r="A1" t="S"><v>0</v></c>'),
    "value: empty type": _a1('<c r="A1" t=""><v>5</v></c>'),
    "value: foreign type": _named(ROWS.replace('<c r="B1">', '<c r="B1" e:t="s">')),
    "value: empty": _a1('<c r="A1"><v></v></c>'),
    "value: empty of type s": _a1('<c r="A1" t="s"><v></v></c>'),
    "value: comment within": _number("1<!-- x -->2"),
    "value: processing instruction within": _number("1<?x y?>2"),
    "value: CDATA": _number("<![CDATA[12]]>"),
    "value: character reference": _number("&#49;2"),
    "value: text by CDATA": _a1('<c r="A1" t="str"><v><![CDATA[a<b]]></v></c>'),
    "value: text of type str": _a1('<c r="A1" t="str"><v>abc</v></c>'),
    "value: text of type str with runs": _a1('<c r="A1" t="str"><v><r><t>abc</t></r></v></c>'),
    "value: text with spaces": _a1('<c r="A1" t="inlineStr"><is><t> x </t></is></c>'),
    "value: text with kept spaces": _a1(
        '<c r="A1" t="inlineStr"><is><t xml:space="preserve"> x </t></is></c>'
    ),
    "value: escaped character": _a1('<c r="A1" t="inlineStr"><is><t>a_x0042_c</t></is></c>'),
    "value: escaped escape": _a1('<c r="A1" t="inlineStr"><is><t>a_x005F_x0042_c</t></is></c>'),
    "value: escape in small letters": _a1(
        '<c r="A1" t="inlineStr"><is><t>a_x005f_x0042_c</t></is></c>'
    ),
    "value: half an escape": _a1('<c r="A1" t="inlineStr"><is><t>ax005F_c _X0042_</t></is></c>'),
    "value: escaped character of type str": _a1('<c r="A1" t="str"><v>a_x0042_c</v></c>'),
    "value: escaped character in two runs": _a1(
        '<c r="A1" t="inlineStr"><is><r><t>a_x00</t></r><r><t>42_c</t></r></is></c>'
    ),
    "number: underscore": _number("8_0557"),
    "number: underscore in the exponent": _number("1e1_0"),
    "number: Arabic digits": _number("\u0664\u0662"),
    "number: full-width digits": _number("\uff14\uff12"),
    "number: infinity": _number("infinity"),
    "number: inf": _number("inf"),
    "number: nan": _number("nan"),
    "number: too large": _number("1e999"),
    "number: hexadecimal": _number("0x1F"),
    "number: spaces around": _number(" 7 "),
    "number: line breaks around": _number("\n7\n"),
    "number: no-break space": _number("\u00a07"),
    "number: plus sign": _number("+7"),
    "number: no digits before the point": _number(".5"),
    "number: no digits behind the point": _number("5."),
    "number: comma": _number("1,5"),
    "number: text": _number("abc"),
    "number: digits, then text": _number("12abc"),
    "number: exponent": _number("1.5E+2"),
    "number: exponent without digits": _number("1e"),
    "number: leading zeros": _number("007"),
    "number: two signs": _number("--7"),
    "truth: 1": _a1('<c r="A1" t="b"><v>1</v></c>'),
    "truth: true": _a1('<c r="A1" t="b"><v>true</v></c>'),
    "truth: 2": _a1('<c r="A1" t="b"><v>2</v></c>'),
    "truth: spaces": _a1('<c r="A1" t="b"><v> 1 </v></c>'),
    "error: known": _a1('<c r="A1" t="e"><v>#DIV/0!</v></c>'),
    "error: unknown": _a1('<c r="A1" t="e"><v>#OOPS!</v></c>'),
    "error: of Google Sheets": _a1('<c r="A1" t="e"><v>#ERROR!</v></c>'),
    "error: of LibreOffice": _a1('<c r="A1" t="e"><v>Err:502</v></c>'),
    "error: in small letters": _a1('<c r="A1" t="e"><v>#n/a</v></c>'),
    "error: spaces": _a1('<c r="A1" t="e"><v> #N/A </v></c>'),
    "error: text": _a1('<c r="A1" t="e"><v>80557</v></c>'),
    "date: day": _a1('<c r="A1" s="1" t="d"><v>2020-02-03</v></c>'),
    "date: day and time": _a1('<c r="A1" s="1" t="d"><v>2020-02-03T04:05:06</v></c>'),
    "date: in a cell without a date format": _a1('<c r="A1" t="d"><v>2020-02-03</v></c>'),
    "date: in a cell of text": _a1('<c r="A1" s="5" t="d"><v>2020-02-03</v></c>'),
    "date: time": _a1('<c r="A1" s="2" t="d"><v>04:05:06</v></c>'),
    "date: time with T": _a1('<c r="A1" s="2" t="d"><v>T04:05:06</v></c>'),
    "date: UTC": _a1('<c r="A1" s="1" t="d"><v>2020-02-03T04:05:06Z</v></c>'),
    "date: UTC with milliseconds": _a1('<c r="A1" s="1" t="d"><v>2020-02-03T04:05:06.000Z</v></c>'),
    "date: milliseconds": _a1('<c r="A1" s="1" t="d"><v>2020-02-03T04:05:06.789</v></c>'),
    "date: nanoseconds": _a1('<c r="A1" s="1" t="d"><v>2020-02-03T04:05:06.123456789</v></c>'),
    "date: without seconds": _a1('<c r="A1" s="1" t="d"><v>2020-02-03T04:05</v></c>'),
    "date: hour 24": _a1('<c r="A1" s="1" t="d"><v>2020-02-03T24:00:00</v></c>'),
    "date: in February 1900": _a1('<c r="A1" s="1" t="d"><v>1900-02-03</v></c>'),
    "date: of 1899": _a1('<c r="A1" s="1" t="d"><v>1899-02-03</v></c>'),
    "date: serial number": _a1('<c r="A1" s="1" t="d"><v>43864</v></c>'),
    "date: duration": _a1('<c r="A1" s="1" t="d"><v>PT1H30M</v></c>'),
    "date: zone": _a1('<c r="A1" s="1" t="d"><v>2020-02-03T04:05:06+02:00</v></c>'),
    "date: text": _a1('<c r="A1" s="1" t="d"><v>tomorrow</v></c>'),
    "string: index out of range": _a1('<c r="A1" t="s"><v>7</v></c>'),
    "string: negative index": _a1('<c r="A1" t="s"><v>-1</v></c>'),
    "string: index with a sign": _a1('<c r="A1" t="s"><v>+1</v></c>'),
    "string: index with spaces": _a1('<c r="A1" t="s"><v> 1 </v></c>'),
    "string: index with an underscore": _a1('<c r="A1" t="s"><v>0_1</v></c>'),
    "string: index as a fraction": _a1('<c r="A1" t="s"><v>1.0</v></c>'),
    "style: out of range": _a1('<c r="A1" s="99"><v>5</v></c>'),
    "style: negative": _a1('<c r="A1" s="-1"><v>5</v></c>'),
    "style: text": _a1('<c r="A1" s="x"><v>5</v></c>'),
    "style: underscore": _a1('<c r="A1" s="0_1"><v>5</v></c>'),
    # -- formulas ----------------------------------------------------------------------------------
    "formula: prefixed": _named(ROWS.replace("<f>B1+B2</f>", "<s:f>B1+B2</s:f>")),
    "formula: foreign type": _named(
        ROWS.replace("<f>B1+B2</f>", '<f e:t="array" e:ref="B3">B1+B2</f>')
    ),
    "formula: in a foreign namespace": _named(ROWS.replace("<f>B1+B2</f>", "<e:f>B1+B2</e:f>")),
    "formula: twice": _sheet("<f>B1+B2</f>", "<f>B1+B2</f><f>666</f>"),
    "formula: behind the value": _sheet("<f>B1+B2</f><v>23.5</v>", "<v>23.5</v><f>B1+B2</f>"),
    "formula: unknown type": _sheet("<f>B1+B2</f>", '<f t="x">B1+B2</f>'),
    "formula: shared without a master": _sheet("<f>B1+B2</f>", '<f t="shared" si="5"/>'),
    "formula: shared": _rows(
        '<row r="1"><c r="A1"><f t="shared" ref="A1:A2" si="0">B1*2</f><v>2</v></c>'
        '<c r="B1"><v>1</v></c></row>'
        '<row r="2"><c r="A2"><f t="shared" si="0"/><v>4</v></c><c r="B2"><v>2</v></c></row>'
    ),
    "formula: array": _filling('t="array" ref="A1:A2"'),
    "formula: array without a range": _filling('t="array"'),
    "formula: array elsewhere": _filling('t="array" ref="A2:A2"'),
    "formula: array of two ranges": _filling('t="array" ref="A1:A1 A2"'),
    "formula: array with dollars": _filling('t="array" ref="$A$1:$A$2"'),
    "formula: array in small letters": _filling('t="array" ref="a1:a2"'),
    "formula: array backwards": _filling('t="array" ref="A2:A1"'),
    "formula: array by a character reference": _filling('t="arr&#97;y" ref="A1:A2"'),
    "formula: two masters": _shared(
        ('ref="A1:A2" si="0"', "C1*2"),
        ('si="0"', ""),
        ('ref="A3:A4" si="0"', "C3*5"),
        ('si="0"', ""),
    ),
    "formula: two masters of one range": _shared(
        ('ref="A1:A3" si="0"', "C1*2"), ('ref="A1:A3" si="0"', "C1*9"), ('si="0"', "")
    ),
    "formula: master outside of its range": _shared(('ref="A2:A3" si="0"', "C1*2"), ('si="0"', "")),
    "formula: master without a range": _shared(('si="0"', "C1*2"), ('si="0"', "")),
    "formula: master with text as range": _shared(('ref="x" si="0"', "C1*2"), ('si="0"', "")),
    "formula: shared outside of the range": _shared(('ref="A1" si="0"', "C1*2"), ('si="0"', "")),
    "formula: shared before its master": _shared(('si="0"', ""), ('ref="A1:A2" si="0"', "C2*2")),
    "formula: shared with text of its own": _shared(
        ('ref="A1:A2" si="0"', "C1*2"), ('si="0"', "C2*7")
    ),
    "formula: shared without an index": _shared(('ref="A1:A2"', "C1*2")),
    "formula: shared by text as index": _shared(('ref="A1:A2" si="x"', "C1*2"), ('si="x"', "")),
    "formula: shared by an index with a zero": _shared(
        ('ref="A1:A2" si="0"', "C1*2"), ('si="00"', "")
    ),
    "formula: empty": _sheet("<f>B1+B2</f>", "<f></f>"),
    "formula: CDATA": _sheet("<f>B1+B2</f>", "<f><![CDATA[B1+B2]]></f>"),
    "formula: comment within": _sheet("<f>B1+B2</f>", "<f>B1<!-- x -->+B2</f>"),
    "formula: element within": _sheet("<f>B1+B2</f>", "<f>B1<e/>+B2</f>"),
    "formula: begins with an equals sign": _sheet("<f>B1+B2</f>", "<f>=B1+B2</f>"),
    # -- shared strings ----------------------------------------------------------------------------
    "strings: in a foreign namespace": _strings(
        "<e:si><t>WRONG</t></e:si><si><t>north</t></si><si><t>south</t></si>",
        f'<sst xmlns="{MAIN}" xmlns:e="{FOREIGN}">',
    ),
    "strings: prefixed": _strings(
        "<s:si><s:t>north</s:t></s:si><si><t>south</t></si>",
        f'<sst xmlns="{MAIN}" xmlns:s="{MAIN}">',
    ),
    "strings: foreign root": _strings(
        "<si><t>a</t></si><si><t>b</t></si>", f'<sst xmlns="{FOREIGN}">'
    ),
    "strings: foreign element between": _strings(
        "<si><t>north</t></si><e:x><si><t>WRONG</t></si></e:x><si><t>south</t></si>",
        f'<sst xmlns="{MAIN}" xmlns:e="{FOREIGN}">',
    ),
    "strings: foreign text": _strings(
        "<si><t>north</t><e:t>WRONG</e:t></si><si><t>south</t></si>",
        f'<sst xmlns="{MAIN}" xmlns:e="{FOREIGN}">',
    ),
    "strings: two text elements": _strings(
        "<si><t>north</t><t>WRONG</t></si><si><t>south</t></si>"
    ),
    "strings: text behind a run": _strings(
        "<si><r><t>nor</t></r><t>th</t></si><si><t>south</t></si>"
    ),
    "strings: runs": _strings(
        "<si><r><t>nor</t></r><r><rPr><b/></rPr><t>th</t></r></si><si><t>south</t></si>"
    ),
    "strings: phonetic runs": _strings(
        '<si><t>north</t><rPh sb="0" eb="1"><t>hint</t></rPh><phoneticPr fontId="0"/></si>'
        "<si><t>south</t></si>"
    ),
    "strings: within a string": _strings(
        "<si><t>north</t><si><t>x</t></si></si><si><t>south</t></si>"
    ),
    "strings: CDATA": _strings("<si><t><![CDATA[north]]></t></si><si><t>south</t></si>"),
    "strings: in the extension first": _strings(
        '<extLst><ext uri="x"><si><t>WRONG</t></si></ext></extLst>'
        "<si><t>north</t></si><si><t>south</t></si>"
    ),
    "strings: comment between": _strings(
        "<si><t>north</t></si><!-- <si/> --><si><t>south</t></si>"
    ),
    "strings: default namespace redeclared": _strings(
        f'<si xmlns="{FOREIGN}"><t>WRONG</t></si><si><t>north</t></si><si><t>south</t></si>'
    ),
    "strings: escaped character": _strings("<si><t>a_x0042_c</t></si><si><t>so_x000D_uth</t></si>"),
    "strings: escaped escape": _strings("<si><t>a_x005F_x0042_c</t></si><si><t>a_x005F_b</t></si>"),
    "strings: half an escape": _strings("<si><t>nox005F_rth</t></si><si><t>_X0042_</t></si>"),
    "strings: escape in small letters": _strings(
        "<si><t>a_x005f_x0042_c</t></si><si><t>so_x000a_uth</t></si>"
    ),
    "strings: two escapes with one underscore": _strings(
        "<si><t>a_x0042_x0043_c</t></si><si><t>south</t></si>"
    ),
    "strings: escape in two runs": _strings(
        "<si><r><t>a_x00</t></r><r><t>42_c</t></r></si><si><t>south</t></si>"
    ),
    "strings: broken behind the last": _broken_strings("<si><t>x</t><broken></sst>"),
    "strings: cut short behind the last": _broken_strings(""),
    "strings: text behind their end": _broken_strings("</sst>more"),
    "strings: foreign behind the last": _broken_strings(
        f'<e:si xmlns:e="{FOREIGN}"><t>x</t></e:si></sst>'
    ),
    "strings: fewer than declared": _strings(
        "<si><t>north</t></si><si><t>south</t></si>",
        f'<sst xmlns="{MAIN}" count="9" uniqueCount="9">',
    ),
    # -- the worksheet's part ----------------------------------------------------------------------
    "worksheet: unknown namespace": _whole(
        f"<sheetData>{ROWS}</sheetData>", f'<worksheet xmlns="{FOREIGN}">'
    ),
    "worksheet: no namespace": _whole(f"<sheetData>{ROWS}</sheetData>", "<worksheet>"),
    "worksheet: all prefixed": _prefixed(),
    "worksheet: an odd prefix": _prefixed("x-y.z"),
    "worksheet: another root": _with(
        {SHEET: f'{DECLARATION}<sheet xmlns="{MAIN}"><sheetData>{ROWS}</sheetData></sheet>'}
    ),
    "worksheet: strict among transitional": _whole(
        f"<sheetData>{ROWS}</sheetData>", f'<worksheet xmlns="{STRICT_MAIN}">'
    ),
    "worksheet: transitional among strict": lambda: _strict(SHEET),
    "strings: transitional among strict": lambda: _strict(STRINGS),
    "styles: transitional among strict": lambda: _strict(STYLES),
    "worksheet: strict rows in a transitional one": _rows(
        ROWS.replace('<row r="2">', f'<row xmlns="{STRICT_MAIN}" r="2">')
    ),
    "worksheet: UTF-16": _encoded("utf-16"),
    "worksheet: UTF-16, declared as UTF-8": _encoded("utf-16", "UTF-8"),
    "worksheet: Latin-1": _encoded("iso-8859-1"),
    "worksheet: declared as Latin-1": _encoded("utf-8", "iso-8859-1"),
    "worksheet: byte order mark": _encoded("utf-8-sig", "UTF-8"),
    "worksheet: unknown encoding": _encoded("utf-8", "x-unknown"),
    "worksheet: without a declaration": _with(
        {SHEET: _sheet_xml(f"<sheetData>{ROWS}</sheetData>").removeprefix(DECLARATION)}
    ),
    "worksheet: XML 1.1": _sheet('version="1.0"', 'version="1.1"'),
    "worksheet: document type": _with(
        {
            SHEET: _sheet_xml(f"<sheetData>{ROWS}</sheetData>").replace(
                "<worksheet", '<!DOCTYPE worksheet [<!ENTITY n "666">]><worksheet'
            )
        }
    ),
    "worksheet: a wrong dimension": _whole(f'<dimension ref="D9"/><sheetData>{ROWS}</sheetData>'),
    "worksheet: merged cells twice": _whole(
        f'<sheetData>{ROWS}</sheetData><mergeCells><mergeCell ref="A1:B1"/></mergeCells>'
        '<mergeCells><mergeCell ref="A2:B2"/></mergeCells>'
    ),
    "worksheet: merged cells in a foreign namespace": _whole(
        f'<sheetData>{ROWS}</sheetData><e:mergeCells><e:mergeCell ref="A1:B3"/></e:mergeCells>',
        _NS_ROOT,
    ),
    "worksheet: merged cells in the extension": _whole(
        f'<sheetData>{ROWS}</sheetData><extLst><ext uri="x"><mergeCells><mergeCell ref="A1:B3"/>'
        "</mergeCells></ext></extLst>"
    ),
    "worksheet: a foreign merged cell": _whole(
        f'<sheetData>{ROWS}</sheetData><mergeCells><e:mergeCell ref="A1:B3"/></mergeCells>',
        _NS_ROOT,
    ),
    "worksheet: a foreign merged cell behind an own": _whole(
        f'<sheetData>{ROWS}</sheetData><mergeCells><mergeCell ref="A3:B3"/>'
        '<e:mergeCell ref="A1:B2"/></mergeCells>',
        _NS_ROOT,
    ),
    "worksheet: merged cells in AlternateContent": _whole(
        f"<sheetData>{ROWS}</sheetData>"
        + _alternatives('<mergeCells><mergeCell ref="A1:B3"/></mergeCells>', ""),
        _MC_ROOT,
    ),
    "worksheet: merged cells that overlap": _whole(
        f'<sheetData>{ROWS}</sheetData><mergeCells><mergeCell ref="A1:B2"/>'
        '<mergeCell ref="B2:C3"/></mergeCells>'
    ),
    "worksheet: merged cells backwards": _whole(
        f'<sheetData>{ROWS}</sheetData><mergeCells><mergeCell ref="B2:A1"/></mergeCells>'
    ),
    "worksheet: two merged ranges in one": _whole(
        f'<sheetData>{ROWS}</sheetData><mergeCells><mergeCell ref="A1:B1 A2:B2"/></mergeCells>'
    ),
    "worksheet: columns as text": _whole(
        f'<cols><col min="a" max="b"/></cols><sheetData>{ROWS}</sheetData>'
    ),
    "worksheet: unknown elements": _whole(f"<foo/><sheetData>{ROWS}</sheetData><bar/>"),
    "worksheet: root of a dialog sheet": _with(
        {
            SHEET: f'{DECLARATION}<dialogsheet xmlns="{MAIN}"><sheetData>{ROWS}</sheetData>'
            "</dialogsheet>"
        }
    ),
    "worksheet: behind its end": _with(
        {SHEET: _sheet_xml(f"<sheetData>{ROWS}</sheetData>") + "<more/>"}
    ),
    # -- the main part -----------------------------------------------------------------------------
    "sheets: foreign id before r:id": _changed(
        (WORKBOOK, "<workbook ", f'<workbook xmlns:e="{FOREIGN}" '),
        (WORKBOOK, 'sheetId="1" r:id', 'sheetId="1" e:id="rId2" r:id'),
    ),
    "sheets: foreign id only": _changed(
        (WORKBOOK, "<workbook ", f'<workbook xmlns:e="{FOREIGN}" '),
        (WORKBOOK, 'sheetId="1" r:id', 'sheetId="1" e:id'),
    ),
    "sheets: a sheet in a foreign namespace": _changed(
        (WORKBOOK, "<workbook ", f'<workbook xmlns:e="{FOREIGN}" '),
        (WORKBOOK, "<sheets>", '<sheets><e:sheet name="Data" sheetId="9" r:id="rId2"/>'),
    ),
    "sheets: prefix bound to the main namespace": _changed(
        (WORKBOOK, "<workbook ", f'<workbook xmlns:s="{MAIN}" '),
        (WORKBOOK, _FIRST_SHEET, f"<s:{_FIRST_SHEET[1:]}"),
    ),
    "sheets: two lists": _in(
        WORKBOOK,
        "</sheets>",
        '</sheets><sheets><sheet name="More" sheetId="3" r:id="rId2"/></sheets>',
    ),
    "sheets: a list in the extension": _in(
        WORKBOOK,
        "</workbook>",
        f'<extLst><ext uri="x"><sheets>{_FIRST_SHEET}</sheets></ext></extLst></workbook>',
    ),
    "sheets: in AlternateContent": _changed(
        (WORKBOOK, "<workbook ", f'<workbook xmlns:mc="{MC}" xmlns:e="{FOREIGN}" '),
        (
            WORKBOOK,
            _FIRST_SHEET,
            _alternatives(_FIRST_SHEET, _FIRST_SHEET.replace("rId1", "rId2")),
        ),
    ),
    "sheets: one name twice": _in(WORKBOOK, 'name="Other"', 'name="Data"'),
    "sheets: one name in two cases": _in(WORKBOOK, 'name="Other"', 'name="DATA"'),
    "sheets: one part twice": _in(WORKBOOK, 'r:id="rId2"', 'r:id="rId1"'),
    "sheets: without a part": _in(LINKS, "worksheets/sheet2.xml", "worksheets/none.xml"),
    "sheets: the first without a part": _in(LINKS, "worksheets/sheet1.xml", "worksheets/none.xml"),
    "sheets: without a relationship": _in(WORKBOOK, 'r:id="rId2"', 'r:id="rId9"'),
    "sheets: hidden": _in(WORKBOOK, 'name="Other"', 'name="Other" state="hidden"'),
    "sheets: very hidden": _in(WORKBOOK, 'name="Other"', 'name="Other" state="veryHidden"'),
    "sheets: unknown state": _in(WORKBOOK, 'name="Other"', 'name="Other" state="x"'),
    "sheets: without a number": _in(WORKBOOK, ' sheetId="1"', ""),
    "sheets: number as text": _in(WORKBOOK, ' sheetId="2"', ' sheetId="x"'),
    "sheets: one number twice": _in(WORKBOOK, ' sheetId="2"', ' sheetId="1"'),
    "sheets: unknown attribute": _in(WORKBOOK, ' sheetId="2"', ' sheetId="2" foo="1"'),
    "sheets: empty name": _in(WORKBOOK, 'name="Other"', 'name=""'),
    "sheets: name of 40 letters": _in(WORKBOOK, 'name="Other"', f'name="{"x" * 40}"'),
    "sheets: name with a slash": _in(WORKBOOK, 'name="Other"', 'name="a/b"'),
    "sheets: name with an escape": _in(WORKBOOK, 'name="Other"', 'name="a_x0042_c"'),
    "sheets: Straße and Strasse": _two_names("Straße", "Strasse"),
    "sheets: Ä and ä": _two_names("Ä", "ä"),
    "sheets: long s and s": _two_names("\u017f", "s"),
    "sheets: two sigmas": _two_names("\u03c2", "\u03c3"),
    "sheets: a dialog sheet": _as_another_sheet(
        f"{RELATIONS}/dialogsheet", f"{CONTENT}.dialogsheet+xml"
    ),
    "sheets: a dialog sheet that is declared as a worksheet": _as_another_sheet(
        f"{RELATIONS}/dialogsheet", f"{CONTENT}.worksheet+xml"
    ),
    "sheets: a macro sheet": _as_another_sheet(
        f"{_MACROS}/xlMacrosheet", "application/vnd.ms-excel.macrosheet+xml"
    ),
    "sheets: an international macro sheet": _as_another_sheet(
        f"{_MACROS}/xlIntlMacrosheet", "application/vnd.ms-excel.intlmacrosheet+xml"
    ),
    "sheets: a macro sheet that is declared as a worksheet": _as_another_sheet(
        f"{_MACROS}/xlMacrosheet", f"{CONTENT}.worksheet+xml"
    ),
    "workbook: unknown property": _in(WORKBOOK, "<sheets>", '<workbookPr foo="1"/><sheets>'),
    "workbook: property that is not a truth value": _in(
        WORKBOOK, "<sheets>", '<workbookPr filterPrivacy="x"/><sheets>'
    ),
    "workbook: unknown namespace": _in(WORKBOOK, f'xmlns="{MAIN}"', f'xmlns="{FOREIGN}"'),
    "workbook: dates from 1904": _changed(
        (WORKBOOK, "<sheets>", '<workbookPr date1904="1"/><sheets>'),
        (SHEET, '<c r="B1">', '<c r="B1" s="1">'),
    ),
    "workbook: dates from 1904, true": _changed(
        (WORKBOOK, "<sheets>", '<workbookPr date1904="true"/><sheets>'),
        (SHEET, '<c r="B1">', '<c r="B1" s="1">'),
    ),
    "workbook: dates from 1904, on": _changed(
        (WORKBOOK, "<sheets>", '<workbookPr date1904="on"/><sheets>'),
        (SHEET, '<c r="B1">', '<c r="B1" s="1">'),
    ),
    "workbook: dates from 1904, in a foreign namespace": _changed(
        (WORKBOOK, "<workbook ", f'<workbook xmlns:e="{FOREIGN}" '),
        (WORKBOOK, "<sheets>", '<e:workbookPr date1904="1"/><sheets>'),
        (SHEET, '<c r="B1">', '<c r="B1" s="1">'),
    ),
    "workbook: dates from 1904, in the extension": _changed(
        (
            WORKBOOK,
            "</workbook>",
            '<extLst><ext uri="x"><workbookPr date1904="1"/></ext></extLst></workbook>',
        ),
        (SHEET, '<c r="B1">', '<c r="B1" s="1">'),
    ),
    "workbook: properties twice": _changed(
        (WORKBOOK, "<sheets>", '<workbookPr/><workbookPr date1904="1"/><sheets>'),
        (SHEET, '<c r="B1">', '<c r="B1" s="1">'),
    ),
    "workbook: strict": _strict,
    "workbook: all parts prefixed": _prefixed_everywhere,
    # -- styles ------------------------------------------------------------------------------------
    "styles: formats in a foreign namespace": _changed(
        (STYLES, "<styleSheet ", f'<styleSheet xmlns:e="{FOREIGN}" '),
        (STYLES, "<cellXfs>", '<e:cellXfs><xf numFmtId="14"/></e:cellXfs><cellXfs>'),
        (SHEET, '<c r="B1">', '<c r="B1" s="0">'),
    ),
    "styles: formats in the extension": _changed(
        (
            STYLES,
            "<cellXfs>",
            '<extLst><ext uri="x"><cellXfs><xf numFmtId="14"/></cellXfs></ext></extLst><cellXfs>',
        ),
    ),
    "styles: formats twice": _changed(
        (STYLES, "<cellXfs>", '<cellXfs><xf numFmtId="14"/></cellXfs><cellXfs>'),
    ),
    "styles: another name": _changed(
        (LINKS, "styles.xml", "looks.xml"),
        (TYPES, "/xl/styles.xml", "/xl/looks.xml"),
        (SHEET, '<c r="B1">', '<c r="B1" s="1">'),
        add={"xl/looks.xml": plain_parts()[STYLES], STYLES: None},
    ),
    "styles: another name next to the usual one": _changed(
        (LINKS, "styles.xml", "looks.xml"),
        (TYPES, "/xl/styles.xml", "/xl/looks.xml"),
        (SHEET, '<c r="B1">', '<c r="B1" s="1">'),
        add={"xl/looks.xml": plain_parts()[STYLES].replace(b'numFmtId="164"/>', b'numFmtId="0"/>')},
    ),
    "styles: foreign formats behind the own": _changed(
        (STYLES, "<styleSheet ", f'<styleSheet xmlns:e="{FOREIGN}" '),
        (STYLES, "</cellXfs>", '</cellXfs><e:cellXfs><xf numFmtId="14"/></e:cellXfs>'),
    ),
    "styles: a foreign format among the own": _changed(
        (STYLES, "<styleSheet ", f'<styleSheet xmlns:e="{FOREIGN}" '),
        (STYLES, "<cellXfs>", '<cellXfs><e:xf numFmtId="14"/>'),
    ),
    "styles: foreign number formats behind the own": _changed(
        (STYLES, "<styleSheet ", f'<styleSheet xmlns:e="{FOREIGN}" '),
        (
            STYLES,
            "</numFmts>",
            '</numFmts><e:numFmts><numFmt numFmtId="164" formatCode="0"/></e:numFmts>',
        ),
        (SHEET, '<c r="B1">', '<c r="B1" s="1">'),
    ),
    "styles: default namespace redeclared": _changed(
        (STYLES, "<cellXfs>", f'<cellXfs xmlns="{FOREIGN}">'),
        (SHEET, '<c r="B1">', '<c r="B1" s="1">'),
    ),
    "styles: foreign root": _changed(
        (STYLES, MAIN, FOREIGN), (SHEET, '<c r="B1">', '<c r="B1" s="1">')
    ),
    "styles: broken behind the formats": _in(STYLES, "</styleSheet>", "<x></styleSheet>"),
    "styles: number formats in the extension": _looks(
        (_CUSTOM, ""), ("</cellXfs>", f'</cellXfs><extLst><ext uri="x">{_YEARS}</ext></extLst>')
    ),
    "styles: number formats in the looks of conditions": _looks(
        (_CUSTOM, ""), ("<dxfs>", f"<dxfs><dxf>{_YEARS}</dxf>")
    ),
    "styles: a number format in the looks of conditions": _looks(
        (_CUSTOM, ""), ("<dxfs>", '<dxfs><dxf><numFmt numFmtId="164" formatCode="yyyy"/></dxf>')
    ),
    "styles: number formats in the looks of tables": _looks(
        (_CUSTOM, ""), ("</dxfs>", f"</dxfs><tableStyles>{_YEARS}</tableStyles>")
    ),
    "styles: number formats behind the formats": _looks(
        (_CUSTOM, ""), ("</cellXfs>", f"</cellXfs>{_YEARS}")
    ),
    "styles: a number format within another": _looks(
        (
            '<numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd"/>',
            f'<numFmt numFmtId="165" formatCode="0">{_YEAR}</numFmt>',
        )
    ),
    "styles: a number format without a code": _looks((' formatCode="yyyy\\-mm\\-dd"', "")),
    "styles: a format in AlternateContent": _looks(
        ("<styleSheet ", _IGNORING),
        ("<cellXfs>", "<cellXfs>" + _alternatives('<xf numFmtId="14"/>', '<xf numFmtId="14"/>')),
    ),
    "styles: a format within another": _looks(
        (
            "<cellXfs>",
            '<cellXfs><xf numFmtId="0"><extLst><xf numFmtId="14"/></extLst></xf>',
        )
    ),
    "styles: a format in an extension of the list": _looks(
        ("<cellXfs>", '<cellXfs><extLst><xf numFmtId="14"/></extLst>')
    ),
    "styles: a date format of East Asia": _looks(('<xf numFmtId="164"/>', '<xf numFmtId="30"/>')),
    "styles: a time format of East Asia": _looks(('<xf numFmtId="164"/>', '<xf numFmtId="55"/>')),
    "styles: a date format of Thailand": _looks(('<xf numFmtId="164"/>', '<xf numFmtId="71"/>')),
    "styles: a format of East Asia that is defined": _looks(
        ('numFmtId="164" formatCode="yyyy\\-mm\\-dd"', 'numFmtId="30" formatCode="0.0"'),
        ('<xf numFmtId="164"/>', '<xf numFmtId="30"/>'),
    ),
    "styles: none": _with({STYLES: None, SHEET: _sheet_xml(f"<sheetData>{ROWS}</sheetData>")}),
    # -- relationships and content types -----------------------------------------------------------
    "links: foreign type that ends in officeDocument": _changed(
        (
            ROOT_LINKS,
            _MAIN_LINK,
            _link("rId0", "urn:x/officeDocument", "xl/other.xml") + _MAIN_LINK,
        ),
        add={"xl/other.xml": plain_parts()[WORKBOOK].replace(b"rId1", b"rId2")},
    ),
    "links: only a foreign type of officeDocument": _in(
        ROOT_LINKS, f"{RELATIONS}/officeDocument", "urn:x/officeDocument"
    ),
    "links: foreign type that ends in worksheet": _in(
        LINKS,
        f'"{RELATIONS}/worksheet" Target="worksheets/sheet1.xml"',
        '"urn:x/worksheet" Target="worksheets/sheet1.xml"',
    ),
    "links: foreign type that ends in sharedStrings": _changed(
        (LINKS, _STRINGS_LINK, _link("rId0", "urn:x/sharedStrings", "wrong.xml") + _STRINGS_LINK),
        add={"xl/wrong.xml": _WRONG_STRINGS},
    ),
    "links: right strings by a foreign type, wrong by the own": _changed(
        (LINKS, "sharedStrings.xml", "wrong.xml"),
        (
            LINKS,
            "</Relationships>",
            _link("rId0", "urn:x/sharedStrings", "sharedStrings.xml") + "</Relationships>",
        ),
        (TYPES, STRINGS, "xl/wrong.xml"),
        add={"xl/wrong.xml": _WRONG_STRINGS},
    ),
    "links: two tables of strings": _changed(
        (
            LINKS,
            _STRINGS_LINK,
            _link("rId0", f"{RELATIONS}/sharedStrings", "wrong.xml") + _STRINGS_LINK,
        ),
        add={"xl/wrong.xml": _WRONG_STRINGS},
    ),
    "links: strings that the content types do not know": _changed(
        (LINKS, "sharedStrings.xml", "wrong.xml"), add={"xl/wrong.xml": _WRONG_STRINGS}
    ),
    "links: one id twice": _changed(
        (
            LINKS,
            _FIRST_LINK,
            _link("rId1", f"{RELATIONS}/worksheet", "worksheets/sheet2.xml") + _FIRST_LINK,
        )
    ),
    "links: one id twice, in the other order": _changed(
        (
            LINKS,
            _FIRST_LINK,
            _FIRST_LINK + _link("rId1", f"{RELATIONS}/worksheet", "worksheets/sheet2.xml"),
        )
    ),
    "links: in a foreign namespace": _changed(
        (LINKS, "<Relationships ", f'<Relationships xmlns:e="{FOREIGN}" '),
        (
            LINKS,
            _FIRST_LINK,
            "<e:R"
            + _link("rId1", f"{RELATIONS}/worksheet", "worksheets/sheet2.xml")[2:]
            + _FIRST_LINK,
        ),
    ),
    "links: foreign root": _in(LINKS, PACKAGE_RELATIONS, FOREIGN),
    "links: absolute target": _in(LINKS, '"worksheets/sheet1.xml"', '"/xl/worksheets/sheet1.xml"'),
    "links: target with ..": _in(LINKS, '"worksheets/sheet1.xml"', '"../xl/worksheets/sheet1.xml"'),
    "links: target with .": _in(LINKS, '"worksheets/sheet1.xml"', '"./worksheets/sheet1.xml"'),
    "links: target above the root": _in(
        LINKS, '"worksheets/sheet1.xml"', '"../../xl/worksheets/sheet1.xml"'
    ),
    "links: target with an escape": _in(
        LINKS, '"worksheets/sheet1.xml"', '"worksheets/sheet%31.xml"'
    ),
    "links: target with a backslash": _in(
        LINKS, '"worksheets/sheet1.xml"', '"worksheets\\sheet1.xml"'
    ),
    "links: target in other letters": _in(
        LINKS, '"worksheets/sheet1.xml"', '"worksheets/Sheet1.xml"'
    ),
    "links: target with a fragment": _in(
        LINKS, '"worksheets/sheet1.xml"', '"worksheets/sheet1.xml#x"'
    ),
    "links: external sheet": _in(
        LINKS, '"worksheets/sheet1.xml"', '"worksheets/sheet1.xml" TargetMode="External"'
    ),
    "links: chart sheet that is a worksheet": _in(
        LINKS,
        f'{RELATIONS}/worksheet" Target="worksheets/sheet1',
        f'{RELATIONS}/chartsheet" Target="worksheets/sheet1',
    ),
    "types: none": _with({TYPES: None}),
    "types: the sheet is something else": _in(
        TYPES, _SHEET_TYPE, _SHEET_TYPE.replace("worksheet+xml", "styles+xml")
    ),
    "types: nothing about the sheet": _in(TYPES, _SHEET_TYPE, ""),
    "types: another main part": _changed(
        (TYPES, f'PartName="/{WORKBOOK}"', 'PartName="/xl/other.xml"'),
        add={"xl/other.xml": plain_parts()[WORKBOOK].replace(b"rId1", b"rId2")},
    ),
    "types: nothing about the strings": _in(TYPES, _STRINGS_TYPE, ""),
    "types: other strings": _changed(
        (TYPES, f'PartName="/{STRINGS}"', 'PartName="/xl/wrong.xml"'),
        add={"xl/wrong.xml": _WRONG_STRINGS},
    ),
    "types: the sheet in other letters": _in(
        TYPES, f'PartName="/{SHEET}"', 'PartName="/XL/Worksheets/Sheet1.XML"'
    ),
    "types: the strings in other letters": _in(
        TYPES, f'PartName="/{STRINGS}"', f'PartName="/{STRINGS.lower()}"'
    ),
    "types: the main part in other letters": _in(
        TYPES, f'PartName="/{WORKBOOK}"', 'PartName="/xl/Workbook.xml"'
    ),
    "types: one part twice, in two cases": _in(
        TYPES,
        _SHEET_TYPE,
        _SHEET_TYPE
        + _SHEET_TYPE.replace("sheet1", "SHEET1").replace("worksheet+xml", "styles+xml"),
    ),
    "types: two tables of strings": _changed(
        (TYPES, _STRINGS_TYPE, _STRINGS_TYPE.replace(STRINGS, "xl/wrong.xml") + _STRINGS_TYPE),
        add={"xl/wrong.xml": _WRONG_STRINGS},
    ),
    "types: one part twice": _in(
        TYPES, _SHEET_TYPE, _SHEET_TYPE + _SHEET_TYPE.replace("worksheet+xml", "styles+xml")
    ),
    # -- the archive -------------------------------------------------------------------------------
    "archive: interleaved pieces": _entries(
        lambda entries: [
            *entries,
            (f"{SHEET}/[0].piece", _WRONG_SHEET.encode()),
            (f"{SHEET}/[1].last.piece", b""),
        ]
    ),
    "archive: only interleaved pieces": _entries(
        lambda entries: [
            *(each for each in entries if each[0] != SHEET),
            (f"{SHEET}/[0].last.piece", dict(entries)[SHEET]),
        ]
    ),
    "archive: one member twice": _entries(
        lambda entries: [*entries, (SHEET, _WRONG_SHEET.encode())]
    ),
    "archive: one name in two cases": _entries(
        lambda entries: [*entries, ("xl/worksheets/SHEET1.xml", _WRONG_SHEET.encode())]
    ),
    "archive: a name with an escape next to its own": _entries(
        lambda entries: [*entries, ("xl/worksheets/sheet%31.xml", _WRONG_SHEET.encode())]
    ),
    "archive: only a name with an escape": _renamed(SHEET, "xl/worksheets/sheet%31.xml"),
    "archive: a name with a backslash": _renamed(SHEET, "xl\\worksheets\\sheet1.xml"),
    "archive: a name from the root": _renamed(SHEET, "/xl/worksheets/sheet1.xml"),
    "archive: a name with ..": _renamed(SHEET, "xl/x/../worksheets/sheet1.xml"),
    "archive: an entry that is a patch": _patched(flags=0x20),
    "archive: an entry of strong encryption": _patched(flags=0x40),
    "archive: an entry with the last flag": _patched(flags=0x8000),
    "archive: an entry of version 9.9": _patched(version=99),
    "archive: an extra field that is cut short": _patched(
        extra=struct.pack("<2sHBI", b"up", 40, 1, 0) + SHEET.encode()
    ),
    "archive: one name in two encodings": _one_name_in_two_encodings,
    # -- parts in unexpected places ----------------------------------------------------------------
    "parts: the sheet ends in .bin": _moved(SHEET, "xl/worksheets/sheet1.bin"),
    "parts: the sheet ends in .BIN": _moved(SHEET, "xl/worksheets/sheet1.BIN"),
    "parts: the strings end in .bin": _moved(STRINGS, "xl/sharedStrings.bin"),
    "parts: the main part ends in .bin": _moved(WORKBOOK, "xl/workbook.bin"),
    "parts: the styles end in .bin": _moved(STYLES, "xl/styles.bin"),
    "styles: the target in other letters": _changed(
        (LINKS, 'Target="styles.xml"', 'Target="STYLESX.xml"'),
        (TYPES, f'PartName="/{STYLES}"', 'PartName="/xl/stylesx.xml"'),
        (SHEET, '<c r="B1">', '<c r="B1" s="1">'),
        add={"xl/stylesx.xml": plain_parts()[STYLES], STYLES: None},
    ),
    "styles: without formats and a relationship": _orphan_styles(f'<styleSheet xmlns="{MAIN}"/>'),
    "styles: with formats, without a relationship": _orphan_styles(
        plain_parts()[STYLES].decode().removeprefix(DECLARATION), ' s="1"'
    ),
    "styles: one number of a format twice": _looks(
        ("<numFmt ", '<numFmt numFmtId="164" formatCode="0"/><numFmt ')
    ),
    "styles: an attribute twice": _in(
        STYLES, '<xf numFmtId="164"/>', '<xf numFmtId="164" numFmtId="164"/>'
    ),
    "styles: an unbound prefix": _in(STYLES, "<borders>", '<borders e:x="1">'),
    "types: the strings' type in other letters": _in(
        TYPES, f"{CONTENT}.sharedStrings+xml", f"{CONTENT}.SHAREDSTRINGS+xml"
    ),
    "types: the main part's type in other letters": _in(
        TYPES, f"{CONTENT}.sheet.main+xml", f"{CONTENT}.SHEET.main+xml"
    ),
    "types: an add-in": _in(
        TYPES,
        f"{CONTENT}.sheet.main+xml",
        "application/vnd.ms-excel.addin.macroEnabled.main+xml",
    ),
    "types: with macros": _in(
        TYPES,
        f"{CONTENT}.sheet.main+xml",
        "application/vnd.ms-excel.sheet.macroEnabled.main+xml",
    ),
    "types: the strings without a slash": _in(
        TYPES, f'PartName="/{STRINGS}"', f'PartName="{STRINGS}"'
    ),
    "types: the sheet with an escape": _in(
        TYPES, f'PartName="/{SHEET}"', 'PartName="/xl/worksheets/sheet%31.xml"'
    ),
    "types: the strings with an escape": _in(
        TYPES, f'PartName="/{STRINGS}"', 'PartName="/xl/sharedString%73.xml"'
    ),
    # -- names and ranges --------------------------------------------------------------------------
    "names: of a sheet that is not there": _defined(' localSheetId="99"'),
    "names: of a sheet": _defined(' localSheetId="1"'),
    "names: of a sheet as text": _defined(' localSheetId="x"'),
    **{
        f"ranges: a condition of {reference}": _in(
            SHEET,
            "</sheetData>",
            f'</sheetData><conditionalFormatting sqref="{reference}"><cfRule type="expression" '
            'dxfId="0" priority="1"><formula>TRUE</formula></cfRule></conditionalFormatting>',
        )
        for reference in ("A:A", "$A:$B", "1:1", "B5:A1", "A:B D5:D1")
    },
    **{
        f"ranges: a link of {reference}": _in(
            SHEET,
            "</sheetData>",
            f'</sheetData><hyperlinks><hyperlink ref="{reference}" location="A1"/></hyperlinks>',
        )
        for reference in ("A:B", "1:2", "B5:A1")
    },
    # -- markup that is not well-formed ------------------------------------------------------------
    "number: the largest as XlsxWriter writes it": _number("1.797693134862316E+308"),
    "number: the largest": _number("1.7976931348623157E+308"),
    "number: the largest that Excel takes": _number("9.99999999999999E+307"),
    "rows: an unbound prefix": _sheet('<row r="1">', '<row r="1" x14ac:dyDescent="0.25">'),
    "formula: an attribute twice": _sheet("<f>B1+B2</f>", '<f t="normal" t="normal">B1+B2</f>'),
    "strings: an attribute of a hint twice": _strings(
        '<si><t>north</t><phoneticPr fontId="1" fontId="1"/></si><si><t>south</t></si>'
    ),
    "strings: an attribute of a run twice": _strings(
        '<si><r><rPr><sz val="9" val="9"/></rPr><t>north</t></r></si><si><t>south</t></si>'
    ),
    "strings: an attribute of the root twice": _strings(
        "<si><t>north</t></si><si><t>south</t></si>", f'<sst xmlns="{MAIN}" count="2" count="2">'
    ),
    "strings: an unbound prefix of the root": _strings(
        "<si><t>north</t></si><si><t>south</t></si>", f'<sst xmlns="{MAIN}" e:count="2">'
    ),
    "strings: a run that is not closed": _strings(
        "<si><r><rPr><b></rPr><t>north</t></r></si><si><t>south</t></si>"
    ),
    "strings: the end of CDATA": _strings("<si><t>nor]]>th</t></si><si><t>south</t></si>"),
    "strings: an unknown entity behind the last": _strings(
        "<si><t>north</t></si><si><t>south</t></si><si><t>&foo;</t></si>"
    ),
}
"""Every form by its name."""

AS_LIBREOFFICE = {
    "workbook: strict": "Excel writes it; openpyxl knows only the transitional namespace",
    "styles: another name": "Excel follows the relationship; openpyxl reads xl/styles.xml or none",
    **dict.fromkeys(
        (
            *("value: escaped character", "value: escaped escape", "strings: escaped character"),
            *("value: escape in small letters", "strings: escape in small letters"),
            *("strings: half an escape", "strings: two escapes with one underscore"),
        ),
        "Excel writes and reads escapes in their full form; openpyxl removes x005F_",
    ),
    "types: the strings in other letters": "names of parts have no case",
}
"""Forms that are read as LibreOffice reads them although openpyxl differs, and why."""

AS_OPENPYXL = {
    "formula: begins with an equals sign": "the formula as written; engines compute it",
    "formula: empty": "Excel writes it in cells of array formulas and data tables; a formula",
    "error: of Google Sheets": "an error value; LibreOffice takes it for a name",
    "error: of LibreOffice": "an error value; LibreOffice takes it for a formula",
    "date: time": "openpyxl writes it (iso_dates); LibreOffice reads text",
    "date: milliseconds": "SheetJS and openpyxl write them; LibreOffice leaves them out",
    "sheets: name of 40 letters": "openpyxl writes it; Excel and LibreOffice cut the name",
    **dict.fromkeys(
        (
            *("styles: a date format of East Asia", "styles: a time format of East Asia"),
            "styles: a date format of Thailand",
        ),
        "a number as in the published suites; the file does not say what the format is",
    ),
}
"""Forms that are read as openpyxl reads them although LibreOffice differs, and why."""

AS_EXCEL = {
    "value: escaped character of type str": (
        "A1",
        "text aBc",
        "Excel writes CHAR(13) as _x000D_ there; LibreOffice and openpyxl do not read it so",
    ),
}
"""Forms that only Excel reads in this way: a cell of the first sheet, its value, and why."""

WITHOUT_THE_SHEET = dict.fromkeys(
    ("sheets: a dialog sheet", "sheets: a macro sheet", "sheets: an international macro sheet"),
    "there are no cells to compare on it; LibreOffice shows a blank one",
)
"""Forms that are read as LibreOffice reads them, except for the first sheet, and why."""
