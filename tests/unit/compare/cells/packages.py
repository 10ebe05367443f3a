"""Workbooks made part by part, so that a test can put anything into a file."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
CONTENT = "application/vnd.openxmlformats-officedocument.spreadsheetml"
DECLARATION = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'

# Cell formats by index: 0 General, 1 date, 2 time, 3 elapsed, 4 percent, 5 text, 6 red fill,
# 7 accent fill with tint, 8 bold, 9 red text.
STYLES = (
    f'<styleSheet xmlns="{MAIN}">'
    '<numFmts count="1"><numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd"/></numFmts>'
    '<fonts><font><color theme="1"/></font><font><b/></font>'
    '<font><color rgb="FFFF0000"/></font></fonts>'
    '<fills><fill><patternFill patternType="none"/></fill>'
    '<fill><patternFill patternType="gray125"/></fill>'
    '<fill><patternFill patternType="solid"><fgColor rgb="FFFF0000"/></patternFill></fill>'
    '<fill><patternFill patternType="solid"><fgColor theme="4" tint="0.5999938962981048"/>'
    "</patternFill></fill></fills>"
    "<borders><border/></borders><cellStyleXfs><xf/></cellStyleXfs>"
    '<cellXfs><xf numFmtId="0"/><xf numFmtId="164"/><xf numFmtId="20"/><xf numFmtId="46"/>'
    '<xf numFmtId="9"/><xf numFmtId="49"/><xf numFmtId="0" fillId="2"/>'
    '<xf numFmtId="0" fillId="3"/><xf numFmtId="0" fontId="1"/><xf numFmtId="0" fontId="2"/>'
    "</cellXfs>"
    '<dxfs><dxf><fill><patternFill><bgColor rgb="FFFFFF00"/></patternFill></fill></dxf>'
    '<dxf><font><b/><color rgb="FF00B050"/></font></dxf></dxfs></styleSheet>'
)


@dataclass(frozen=True)
class Book:
    """A workbook to be written.

    Attributes:
        sheets: name -> XML within ``<worksheet>``, or the whole part where it starts with ``<?``.
        shared: XML within each ``<si>``, or plain text where it has no tag.
        styles: the style sheet, or None.
        workbook: XML within ``<workbook>`` before the sheets, such as ``<workbookPr/>``.
        after_sheets: XML within ``<workbook>`` behind the sheets, such as ``<calcPr/>``.
        application, app_version: what ``docProps/app.xml`` says; no such part for None.
        parts: further parts, which also replace those made here.
    """

    sheets: Mapping[str, str]
    shared: Sequence[str] = ()
    styles: str | None = STYLES
    workbook: str = ""
    after_sheets: str = ""
    application: str | None = "Microsoft Excel"
    app_version: str | None = "16.0300"
    parts: Mapping[str, str | bytes] = field(default_factory=dict)

    def all_parts(self) -> dict[str, bytes]:
        """All parts by name."""
        listed, links, types = [], [], []
        made: dict[str, str | bytes] = {}
        for number, (name, xml) in enumerate(self.sheets.items(), 1):
            part = f"xl/worksheets/sheet{number}.xml"
            listed.append(f'<sheet name={quoteattr(name)} sheetId="{number}" r:id="rId{number}"/>')
            links.append(_link(f"rId{number}", "worksheet", f"worksheets/sheet{number}.xml"))
            types.append(_override(part, "worksheet"))
            made[part] = xml if xml.startswith("<?") else worksheet(xml)
        if self.shared:
            links.append(_link("rIdS", "sharedStrings", "sharedStrings.xml"))
            types.append(_override("xl/sharedStrings.xml", "sharedStrings"))
            made["xl/sharedStrings.xml"] = shared_strings(self.shared)
        if self.styles is not None:
            links.append(_link("rIdY", "styles", "styles.xml"))
            types.append(_override("xl/styles.xml", "styles"))
            made["xl/styles.xml"] = DECLARATION + self.styles
        if self.application is not None:
            made["docProps/app.xml"] = _application(self.application, self.app_version)
        made["xl/workbook.xml"] = (
            f'{DECLARATION}<workbook xmlns="{MAIN}" xmlns:r="{RELATIONS}">{self.workbook}'
            f"<sheets>{''.join(listed)}</sheets>{self.after_sheets}</workbook>"
        )
        made["xl/_rels/workbook.xml.rels"] = _relations(links)
        made["_rels/.rels"] = _relations([_link("rId1", "officeDocument", "xl/workbook.xml")])
        types.append(_override("xl/workbook.xml", "sheet.main"))
        made["[Content_Types].xml"] = (
            f'{DECLARATION}<Types xmlns="http://schemas.openxmlformats.org/package/2006/'
            'content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-'
            'package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/>'
            f"{''.join(types)}</Types>"
        )
        made |= self.parts
        return {
            name: text.encode() if isinstance(text, str) else text for name, text in made.items()
        }

    def to_bytes(self, compression: int = zipfile.ZIP_DEFLATED) -> bytes:
        """The workbook as a file."""
        return zipped(self.all_parts(), compression)


def zipped(parts: Mapping[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Makes an archive of parts; equal parts give equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, data in parts.items():
            info = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            info.compress_type = compression
            archive.writestr(info, data)
    return buffer.getvalue()


_DRAWN = "http://schemas.openxmlformats.org/drawingml/2006"
_NAMESPACES = {
    "wsDr": f"{_DRAWN}/spreadsheetDrawing",
    "chartSpace": f"{_DRAWN}/chart",
    "chart": f"{_DRAWN}/chart",
    "graphic": f"{_DRAWN}/main",
    "theme": f"{_DRAWN}/main",
    "pivotTableDefinition": MAIN,
    "pivotCacheDefinition": MAIN,
    "table": MAIN,
    "comments": MAIN,
    "sst": MAIN,
    "styleSheet": MAIN,
    "worksheet": MAIN,
    "ThreadedComments": "http://schemas.microsoft.com/office/spreadsheetml/2018/threadedcomments",
}
_TEXT_AND_LINES = re.compile(r"<(p|solidFill|ln)(?=[\s/>])")
_OPENING = re.compile(rf"<({'|'.join(_NAMESPACES)})(?=[\s/>])(?![^<>]*\bxmlns=)")
_KINDS = {
    "workbook": "sheet.main",
    "worksheet": "worksheet",
    "chartsheet": "chartsheet",
    "sharedStrings": "sharedStrings",
    "styles": "styles",
}

BROKEN_LOOKS = f'<styleSheet xmlns="{MAIN}"><fonts>'
"""A style sheet that does not end."""


def in_namespaces(xml: str) -> str:
    """Adds the namespaces to hand-written XML of drawings, charts, pivot tables and so on."""
    xml = _OPENING.sub(lambda found: f'{found[0]} xmlns="{_NAMESPACES[found[1]]}"', xml)
    if "<chartSpace" in xml:
        xml = _TEXT_AND_LINES.sub(rf'\g<0> xmlns="{_DRAWN}/main"', xml)
    # A chart in a drawing is named by its relationship, whose prefix it declares itself.
    return re.sub(
        r"(<chart (?![^<>]*xmlns:r=)[^<>]*?)(?=r:id=)", rf'\1xmlns:r="{RELATIONS}" ', xml
    ).replace('xmlns:r="r"', f'xmlns:r="{RELATIONS}"')


def around(parts: Mapping[str, str]) -> dict[str, str]:
    """Makes the parts around hand-written ones: they name the main part and the kinds of parts.

    Args:
        parts: name of each part that decides which cells there are -> its kind, such as ``styles``.
    """
    main = next(name for name, kind in parts.items() if kind == "workbook")
    return {
        "_rels/.rels": _relations([_link("rId1", "officeDocument", main)]),
        "[Content_Types].xml": f'{DECLARATION}<Types xmlns="http://schemas.openxmlformats.org/'
        'package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.'
        'openxmlformats-package.relationships+xml"/><Default Extension="xml" '
        'ContentType="application/xml"/>'
        + "".join(_override(name, _KINDS[kind]) for name, kind in parts.items())
        + "</Types>",
    }


def _application(name: str, version: str | None) -> str:
    version_xml = "" if version is None else f"<AppVersion>{escape(version)}</AppVersion>"
    return (
        f'{DECLARATION}<Properties xmlns="http://schemas.openxmlformats.org/officeDocument/2006/'
        f'extended-properties"><Application>{escape(name)}</Application>{version_xml}</Properties>'
    )


def _link(identifier: str, kind: str, target: str) -> str:
    return f'<Relationship Id="{identifier}" Type="{RELATIONS}/{kind}" Target="{target}"/>'


def relations(*links: tuple[str, str, str]) -> str:
    """Makes a relationships part from (id, kind, target), or with an external target."""
    return _relations(
        [
            _link(identifier, kind, target).replace(
                "/>", ' TargetMode="External"/>' if "://" in target else "/>"
            )
            for identifier, kind, target in links
        ]
    )


def _relations(links: Sequence[str]) -> str:
    return (
        f'{DECLARATION}<Relationships xmlns="{PACKAGE_RELATIONS}">{"".join(links)}</Relationships>'
    )


def _override(part: str, kind: str) -> str:
    return f'<Override PartName="/{part}" ContentType="{CONTENT}.{kind}+xml"/>'


def worksheet(inner: str) -> str:
    """Makes a worksheet's part."""
    return f'{DECLARATION}<worksheet xmlns="{MAIN}" xmlns:r="{RELATIONS}">{inner}</worksheet>'


def shared_strings(strings: Sequence[str]) -> str:
    """Makes the part with the shared strings."""
    items = "".join(
        f"<si>{text if text.startswith('<') else f'<t>{escape(text)}</t>'}</si>" for text in strings
    )
    return f'{DECLARATION}<sst xmlns="{MAIN}">{items}</sst>'


def cell(
    reference: str,
    value: object = None,
    *,
    formula: str | None = None,
    style: int = 0,
    kind: str | None = None,
) -> str:
    """Makes a ``<c>`` element; text becomes an inline string, or ``str`` next to a formula."""
    attributes = f' r="{reference}"' + (f' s="{style}"' if style else "")
    inner = "" if formula is None else f"<f>{escape(formula)}</f>"
    if isinstance(value, bool):
        kind, text = kind or "b", str(int(value))
    elif isinstance(value, str) and kind is None:
        if formula is None:
            inline = f'<is><t xml:space="preserve">{escape(value)}</t></is>'
            return f'<c{attributes} t="inlineStr">{inline}</c>'
        kind, text = "str", escape(value)
    else:
        text = "" if value is None else escape(str(value))
    attributes += f' t="{kind}"' if kind else ""
    inner += f"<v>{text}</v>" if value is not None else ""
    return f"<c{attributes}>{inner}</c>"


def sheet_data(*cells: str) -> str:
    """Makes ``<sheetData>`` from ``<c>`` elements, which are put into rows by their addresses."""
    rows: dict[int, list[str]] = {}
    for xml in cells:
        match = re.search(r'r="[A-Za-z$]+(\d+)"', xml)
        assert match is not None
        rows.setdefault(int(match[1]), []).append(xml)
    written = "".join(f'<row r="{row}">{"".join(rows[row])}</row>' for row in sorted(rows))
    return f"<sheetData>{written}</sheetData>"


def simple(values: Mapping[str, object], *, sheet: str = "Sheet1") -> bytes:
    """Makes a workbook with one sheet that has some constants."""
    cells = [cell(reference, value) for reference, value in values.items()]
    return Book({sheet: sheet_data(*cells)}).to_bytes()
