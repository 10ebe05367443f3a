"""Charts that openpyxl drops when it reads a workbook: ``official`` does not see them."""

from __future__ import annotations

import functools
import io
import re
import warnings
import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from openpyxl.chart import LineChart, Reference, ScatterChart, Series

from judge.workbook.facts.book import BookFacts
from judge.workbook.reader import open_workbook
from tests.unit.compare.rules.judged import find

CHART, DRAWING = "xl/charts/chart1.xml", "xl/drawings/drawing1.xml"
RULE: dict[str, Any] = {
    "type": "chart",
    "sheet_idx0": 0,
    "sheet_idx1": "EI0",
    "chart_props": ["type"],
}


@functools.cache
def made(*, scatter: bool = False) -> bytes:
    """A workbook with a chart over dates, as openpyxl writes it: references without caches."""
    book = openpyxl.Workbook()
    sheet: Any = book.active
    for row in (("day", "n"), ("2003-01-01", 1), ("2003-01-02", 2)):
        sheet.append(row)
    values = Reference(sheet, min_col=2, min_row=2, max_row=3)
    days = Reference(sheet, min_col=1, min_row=2, max_row=3)
    drawn: Any = ScatterChart() if scatter else LineChart()
    if scatter:
        drawn.series.append(Series(values, days))
    else:
        drawn.add_data(values)
        drawn.set_categories(days)
    sheet.add_chart(drawn, "D2")
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def changed(data: bytes, part: str, pattern: str, by: str) -> bytes:
    """Returns the workbook with one part changed."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(out, "w") as target:
        for name in source.namelist():
            text = source.read(name)
            if name == part:
                new, count = re.subn(pattern, lambda _: by, text.decode(), count=1)
                assert count == 1, (pattern, text.decode())
                text = new.encode()
            target.writestr(name, text)
    return out.getvalue()


def cache(points: str, count: str = '<ptCount val="2"/>', kind: str = "num") -> str:
    return f"<{kind}Cache>{count}{points}</{kind}Cache>"


def point(text: str, index: str = ' idx="0"') -> str:
    return f"<pt{index}><v>{text}</v></pt>"


_ODD = point("x", ' idx="a"')
LEVELS = f"""<multiLvlStrRef><f>a</f><multiLvlStrCache><lvl>{point("x")}</lvl></multiLvlStrCache>
</multiLvlStrRef>"""
VALUES = r"(?<='Sheet'!\$B\$2:\$B\$3</f>)(?=</numRef>)"
DAYS = r"(?<='Sheet'!\$A\$2:\$A\$3</f>)(?=</numRef>)"
SERIES = r"(?=<cat>)"
PLUS = (
    '<errBars><errBarType val="plus"/><errValType val="cust"/>'
    "<plus><numLit>{}</numLit></plus></errBars>"
)

CONTENTS = {
    "a number": (VALUES, cache(point("1"))),
    "the text of a date, as LibreOffice 7.4 writes it": (DAYS, cache(point("2003-01-01"))),
    "text among the values": (VALUES, cache(point("1") + point("n", ' idx="1"'))),
    "an error": (VALUES, cache(point("#DIV/0!"))),
    "not available": (VALUES, cache(point("#N/A"))),
    "not available, with a blank": (VALUES, cache(point("#N/A "))),
    "nothing": (VALUES, cache(point(""))),
    "blanks": (VALUES, cache(point("  "))),
    "a truth value": (VALUES, cache(point("TRUE"))),
    "what Python reads as a number": (VALUES, cache(point("1_0") + point(" nan ", ' idx="1"'))),
    "a decimal comma": (VALUES, cache(point("1,5"))),
    "a point without a number": (VALUES, cache(point("1", ""))),
    "a point with a fraction as its number": (VALUES, cache(point("1", ' idx="1.0"'))),
    "a point with a format": (VALUES, cache(point("1", ' idx="0" formatCode="0"'))),
    "a point with an attribute that does not exist": (VALUES, cache(point("1", ' idx="0" q="1"'))),
    "a point with an attribute of another namespace": (
        VALUES,
        cache('<pt idx="0" xmlns:q="urn:q" q:q="1"><v>1</v></pt>'),
    ),
    "a count that is none": (VALUES, cache("", '<ptCount val="two"/>')),
    "no count": (VALUES, cache("", "<ptCount/>")),
    "literals": (
        r"<numRef><f>'Sheet'!\$B\$2:\$B\$3</f></numRef>",
        f"<numLit>{point('x')}</numLit>",
    ),
    "categories without a source": (r"<cat>.*</cat>", "<cat/>"),
    "no categories": (r"<cat>.*</cat>", ""),
    "texts": (
        r"<cat>.*</cat>",
        f"<cat><strRef><f>a</f>{cache(point('x'), kind='str')}</strRef></cat>",
    ),
    "texts with something else as their number": (
        r"<cat>.*</cat>",
        f"<cat><strRef><f>a</f>{cache(_ODD, kind='str')}</strRef></cat>",
    ),
    "texts without a number": (
        r"<cat>.*</cat>",
        f"<cat><strRef><f>a</f>{cache(point('x', ''), kind='str')}</strRef></cat>",
    ),
    "levels": (r"<cat>.*</cat>", f"<cat>{LEVELS}</cat>"),
    "error bars": (SERIES, PLUS.format(point("1"))),
    "error bars of text": (SERIES, PLUS.format(point("x"))),
    "what openpyxl does not read": (
        r"(?=</ser>)",
        f'<extLst><ext uri="q"><numRef>{cache(point("x"))}</numRef></ext></extLst>',
    ),
}

_SHAPE = (
    "<xdr:twoCellAnchor {ns}><xdr:from><xdr:col>1</xdr:col><xdr:colOff>0</xdr:colOff><xdr:row>1"
    "</xdr:row><xdr:rowOff>0</xdr:rowOff></xdr:from><xdr:to><xdr:col>2</xdr:col><xdr:colOff>0"
    "</xdr:colOff><xdr:row>2</xdr:row><xdr:rowOff>0</xdr:rowOff></xdr:to><xdr:sp><xdr:nvSpPr>"
    '<xdr:cNvPr id="9" name="Freeform"/><xdr:cNvSpPr/></xdr:nvSpPr><xdr:spPr><a:custGeom>{inner}'
    "</a:custGeom></xdr:spPr></xdr:sp><xdr:clientData/></xdr:twoCellAnchor>"
).replace(
    "{ns}",
    'xmlns:xdr="http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"',
)
PATH = '<a:pathLst><a:path w="2" h="2"/></a:pathLst>'
SHAPES = {
    "a freeform by numbers": (
        f'<a:cxnLst><a:cxn ang="0"><a:pos x="1" y="1"/></a:cxn></a:cxnLst>{PATH}'
    ),
    "a freeform by names, as Excel writes it": (
        f'<a:cxnLst><a:cxn ang="0"><a:pos x="connsiteX0" y="1"/></a:cxn></a:cxnLst>{PATH}'
    ),
    "an angle by a name": f'<a:cxnLst><a:cxn ang="a"><a:pos x="1" y="1"/></a:cxn></a:cxnLst>{PATH}',
    "a line's end without a place": f'<a:cxnLst><a:cxn ang="0"/></a:cxnLst>{PATH}',
    "a freeform without ends": PATH,
    "a path without a size": "<a:pathLst><a:path/></a:pathLst>",
    "no path": "<a:rect/>",
}


def all_workbooks() -> list[Any]:
    found = []
    for name, (pattern, by) in CONTENTS.items():
        found.append(pytest.param(changed(made(), CHART, pattern, by), id=name))
    for name, inner in SHAPES.items():
        shape = _SHAPE.replace("{inner}", inner)
        data = changed(made(), DRAWING, r"(?=</(?:\w+:)?wsDr>)", shape)
        found.append(pytest.param(data, id=name))
    scatter = made(scatter=True)
    found.append(
        pytest.param(changed(scatter, CHART, DAYS, cache(point("2003"))), id="x that is a number")
    )
    found.append(
        pytest.param(changed(scatter, CHART, DAYS, cache(point("2003-01-01"))), id="x that is text")
    )
    found.append(
        pytest.param(changed(scatter, CHART, "<xVal>.*</xVal>", "<xVal/>"), id="x without a source")
    )
    return found


def seen_by_openpyxl(data: bytes) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        book: Any = openpyxl.load_workbook(io.BytesIO(data))
    return len(book.worksheets[0]._charts)


@pytest.mark.parametrize("data", all_workbooks())
def test_a_chart_is_dropped_where_openpyxl_drops_it(data: bytes) -> None:
    facts = BookFacts(open_workbook(data))
    (chart,) = facts.charts(facts.tabs[0])
    assert (0 if chart.dropped_by_openpyxl else 1) == seen_by_openpyxl(data)


def test_the_published_verdict_is_that_of_a_workbook_without_the_chart(tmp_path: Path) -> None:
    gold = tmp_path / "gold.xlsx"
    gold.write_bytes(made())
    stored = changed(made(), CHART, DAYS, cache(point("2003-01-01")))
    published = find([RULE], stored, gold, profile="official")
    mended = find([RULE], stored, gold)
    assert (published.agrees, mended.agrees) == (False, True)
    assert mended.record["official_equal"] is False
    # Where the gold has lost its chart as well, nothing is compared, and the function accepts.
    gold.write_bytes(stored)
    assert find([RULE], stored, gold, profile="official").agrees
    without = changed(made(), DRAWING, r"<oneCellAnchor>.*</oneCellAnchor>", "")
    assert find([RULE], without, gold, profile="official").agrees
    assert not find([RULE], without, gold).agrees
