"""What is drawn on a sheet: charts, pictures, shapes."""

from __future__ import annotations

from judge.workbook.features.features import FeatureKind, Features
from judge.workbook.namespaces import CHART_NAMES, DRAWING_NAMES
from judge.workbook.package import Package
from judge.workbook.xml_parts import relationships, scan_part

_SHAPES = {"sp", "cxnSp"}
_CHART_PARTS = {
    "ser": "data series",
    "series": "data series",
    "title": "titles",
    "legend": "legends",
    "trendline": "trend lines",
    "errBars": "error bars",
}


def read_drawing(package: Package, part: str, sheet: str, found: Features) -> None:
    """Adds what a drawing holds.

    A fallback for programs that do not know an object is not counted in addition to it.

    Args:
        package: the workbook.
        part: name of the drawing's part.
        sheet: the sheet that it is on.
        found: where features go.

    Raises:
        WorkbookError: a part is missing, broken or over a limit.
    """
    charts: list[str] = []
    path: list[str] = []

    def on_start(tag: str, attributes: dict[str, str]) -> None:
        path.append(tag)
        if "Fallback" in path:
            return
        if tag == "pic":
            package.budget.take_cells(1)
            found.add(FeatureKind.PICTURE, "", "picture", sheet=sheet)
        elif tag in _SHAPES:
            package.budget.take_cells(1)
            found.add(FeatureKind.SHAPE, "", "drawn shape or control", sheet=sheet)
        elif tag == "chart":
            charts.extend(text for name, text in attributes.items() if name == "r:id")

    scan_part(package, part, on_start, path.pop, names=DRAWING_NAMES)
    links = relationships(package, part) if charts else {}
    for identifier in charts:
        package.budget.take_cells(1)
        link = links.get(identifier)
        if link is not None and not link.external and link.target in package:
            _read_chart(package, link.target, sheet, found)


def _read_chart(package: Package, part: str, sheet: str, found: Features) -> None:
    types: set[str] = set()
    counts: dict[str, int] = {}

    def on_start(tag: str, attributes: dict[str, str]) -> None:
        if tag.endswith("Chart"):
            types.add(tag.removesuffix("Chart"))
        elif tag in _CHART_PARTS:
            label = _CHART_PARTS[tag]
            counts[label] = counts.get(label, 0) + 1
            if "layoutId" in attributes:  # the newer kinds, such as waterfall
                types.add(attributes["layoutId"])

    scan_part(package, part, on_start, names=CHART_NAMES)
    known = sorted(type_ for type_ in types if type_)
    content = "+".join(known)[:200]
    found.add(FeatureKind.CHART, content, f"chart ({', '.join(known) or 'empty'})", sheet=sheet)
    for label, count in counts.items():
        found.add(FeatureKind.CHART_PART, label, f"{label} of charts", measure=count, sheet=sheet)
