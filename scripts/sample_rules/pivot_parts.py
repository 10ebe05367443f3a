"""Adds a pivot table to a package: its three parts, and the references to them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import quoteattr

from sample.book import ZIP_TIME

_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_LINKS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
_TYPES = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_TABLE, _CACHE, _RECORDS = (
    "xl/pivotTables/pivotTable1.xml",
    "xl/pivotCache/pivotCacheDefinition1.xml",
    "xl/pivotCache/pivotCacheRecords1.xml",
)

Row = tuple[str, str, int]


@dataclass(frozen=True)
class PivotSpec:
    """A pivot table of three columns: two with text, and one with numbers that are summarised.

    Attributes:
        name: its name.
        sheet: the sheet of its source.
        headings: the headings of the source.
        rows: the rows of the source, from its second row on.
        row, column: indices of the fields on the axes.
        function: ``sum``, ``count`` …
        top, left: its upper left cell.
    """

    name: str
    sheet: str
    headings: tuple[str, str, str]
    rows: Sequence[Row]
    row: int = 0
    column: int = 1
    function: str = "sum"
    top: int = 3
    left: int = 1

    def items(self, field: int) -> list[str]:
        """Returns the items of a field in the order in which they are shown."""
        return sorted({str(row[field]) for row in self.rows})

    @property
    def caption(self) -> str:
        """The title of its values."""
        return f"{self.function.capitalize()} of {self.headings[2]}"

    def cells(self) -> list[list[str | int | None]]:
        """Returns the cells that it shows."""
        down, across = self.items(self.row), self.items(self.column)
        table: list[list[str | int | None]] = [
            [self.caption, self.headings[self.column]],
            [self.headings[self.row], *across, "Grand Total"],
        ]
        for label in (*down, None):
            values = [self._value(label, each) for each in (*across, None)]
            table.append([label or "Grand Total", *values])
        return table

    def _value(self, down: str | None, across: str | None) -> int | None:
        found = [
            row[2]
            for row in self.rows
            if down in {None, row[self.row]} and across in {None, row[self.column]}
        ]
        if not found:
            return None
        return sum(found) if self.function == "sum" else len(found)


def with_pivot(package: bytes, sheet_part: str, spec: PivotSpec) -> bytes:
    """Returns the package with a pivot table on the sheet with a given part."""
    folder, _, name = sheet_part.rpartition("/")
    added = {
        _TABLE: _table(spec),
        _CACHE: _cache(spec),
        _RECORDS: _records(spec),
        f"{folder}/_rels/{name}.rels": _links("pivotTable", f"/{_TABLE}"),
        "xl/pivotTables/_rels/pivotTable1.xml.rels": _links("pivotCacheDefinition", f"/{_CACHE}"),
        "xl/pivotCache/_rels/pivotCacheDefinition1.xml.rels": _links(
            "pivotCacheRecords", f"/{_RECORDS}"
        ),
    }
    overrides = "".join(
        f'<Override PartName="/{part}" ContentType="{_TYPES}.{kind}+xml"/>'
        for part, kind in (
            (_TABLE, "pivotTable"),
            (_CACHE, "pivotCacheDefinition"),
            (_RECORDS, "pivotCacheRecords"),
        )
    )
    link = f'<Relationship Id="rIdPivot" Type="{_LINKS}/pivotCacheDefinition" Target="/{_CACHE}"/>'
    caches = (
        f'<pivotCaches><pivotCache xmlns:r="{_LINKS}" cacheId="1" r:id="rIdPivot"/></pivotCaches>'
    )
    before = {
        "[Content_Types].xml": ("</Types>", overrides),
        "xl/_rels/workbook.xml.rels": ("</Relationships>", link),
        "xl/workbook.xml": ("</workbook>", caches),
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(package)) as source, zipfile.ZipFile(packed, "w") as target:
        for part in source.namelist():
            text = source.read(part)
            if part in before:
                mark, more = before[part]
                assert text.count(mark.encode()) == 1, part
                text = text.replace(mark.encode(), (more + mark).encode())
            _write(target, part, text)
        for part, content in added.items():
            _write(target, part, (_HEAD + content).encode())
    return packed.getvalue()


def _write(target: zipfile.ZipFile, name: str, data: bytes) -> None:
    info = zipfile.ZipInfo(name, ZIP_TIME)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    target.writestr(info, data, compresslevel=9)


def _links(kind: str, target: str) -> str:
    return (
        f'<Relationships xmlns="{_PACKAGE}"><Relationship Id="rId1" Type="{_LINKS}/{kind}" '
        f'Target="{target}"/></Relationships>'
    )


def _cache(spec: PivotSpec) -> str:
    numbers = [row[2] for row in spec.rows]
    amounts = (
        '<sharedItems containsSemiMixedTypes="0" containsString="0" containsNumber="1" '
        f'containsInteger="1" minValue="{min(numbers)}" maxValue="{max(numbers)}"/>'
    )
    shared = (_shared(spec.items(0)), _shared(spec.items(1)), amounts)
    fields = "".join(
        f'<cacheField name={quoteattr(name)} numFmtId="0">{items}</cacheField>'
        for name, items in zip(spec.headings, shared, strict=True)
    )
    return (
        f'<pivotCacheDefinition xmlns="{_MAIN}" xmlns:r="{_LINKS}" r:id="rId1" '
        f'refreshedBy="sheetjudge" createdVersion="6" refreshedVersion="6" '
        f'minRefreshableVersion="3" recordCount="{len(spec.rows)}"><cacheSource type="worksheet">'
        f'<worksheetSource ref="A1:C{len(spec.rows) + 1}" sheet={quoteattr(spec.sheet)}/>'
        f'</cacheSource><cacheFields count="3">{fields}</cacheFields></pivotCacheDefinition>'
    )


def _shared(items: Sequence[str]) -> str:
    listed = "".join(f"<s v={quoteattr(each)}/>" for each in items)
    return f'<sharedItems count="{len(items)}">{listed}</sharedItems>'


def _records(spec: PivotSpec) -> str:
    places = [{each: index for index, each in enumerate(spec.items(field))} for field in (0, 1)]
    rows = "".join(
        f'<r><x v="{places[0][first]}"/><x v="{places[1][second]}"/><n v="{number}"/></r>'
        for first, second, number in spec.rows
    )
    return f'<pivotCacheRecords xmlns="{_MAIN}" count="{len(spec.rows)}">{rows}</pivotCacheRecords>'


def _table(spec: PivotSpec) -> str:
    down, across = (len(spec.items(field)) for field in (spec.row, spec.column))
    axes = {spec.row: "axisRow", spec.column: "axisCol"}
    fields = "".join(
        f'<pivotField axis="{axes[index]}" showAll="0"><items count="{count + 1}">'
        + "".join(f'<item x="{place}"/>' for place in range(count))
        + '<item t="default"/></items></pivotField>'
        for index, count in sorted(((spec.row, down), (spec.column, across)))
    )
    subtotal = "" if spec.function == "sum" else f' subtotal="{spec.function}"'
    last = f"{chr(64 + spec.left + across + 1)}{spec.top + 2 + down}"
    return (
        f'<pivotTableDefinition xmlns="{_MAIN}" name={quoteattr(spec.name)} cacheId="1" '
        f'applyNumberFormats="0" applyBorderFormats="0" applyFontFormats="0" '
        f'applyPatternFormats="0" applyAlignmentFormats="0" applyWidthHeightFormats="1" '
        f'dataCaption="Values" updatedVersion="6" minRefreshableVersion="3" createdVersion="6" '
        f'useAutoFormatting="1" itemPrintTitles="1" indent="0" outline="1" outlineData="1" '
        f'multipleFieldFilters="0"><location ref="{chr(64 + spec.left)}{spec.top}:{last}" '
        f'firstHeaderRow="1" firstDataRow="2" firstDataCol="1"/><pivotFields count="3">{fields}'
        f'<pivotField dataField="1" showAll="0"/></pivotFields>'
        f'<rowFields count="1"><field x="{spec.row}"/></rowFields>{_lines("rowItems", down)}'
        f'<colFields count="1"><field x="{spec.column}"/></colFields>{_lines("colItems", across)}'
        f'<dataFields count="1"><dataField name={quoteattr(spec.caption)} fld="2"{subtotal} '
        f'baseField="0" baseItem="0"/></dataFields><pivotTableStyleInfo name="PivotStyleLight16" '
        f'showRowHeaders="1" showColHeaders="1" showRowStripes="0" showColStripes="0" '
        f'showLastColumn="1"/></pivotTableDefinition>'
    )


def _lines(name: str, count: int) -> str:
    listed = "".join(f'<i><x v="{place}"/></i>' for place in range(count))
    return f'<{name} count="{count + 1}">{listed}<i t="grand"><x/></i></{name}>'
