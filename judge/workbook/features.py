"""Features of a workbook other than cell values: rules, drawings, tables, names, sheets.

Features are identified by their content and not by their position: inserting rows above a list, or
renaming a sheet, does not change the features or their measures.

Excel writes rules that refer to another sheet into the extension part of the worksheet ([MS-XLSX]
2.2.4), and other rules before that part. Both are read, and count as the same rules.
"""

from __future__ import annotations

import enum
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from judge.console import clipped
from judge.formulas.shift import formula_shape
from judge.workbook.address import Window, folded, parse_window
from judge.workbook.package import Package
from judge.workbook.sheets.sheet_scan import scan_surroundings
from judge.workbook.workbook_parts import Tab, main_part
from judge.workbook.xml_parts import CHART_NAMES, DRAWING_NAMES, is_on, relationships, scan_part

_MAX_LABEL_CHARS = 80  # of the description of a feature


class FeatureKind(enum.StrEnum):
    """The kind of a feature; the values are those of records and reports."""

    SHEET = "sheet"
    HIDDEN_SHEET = "hidden_sheet"
    NAME = "name"
    TABLE = "table"
    PIVOT = "pivot_table"
    CHART = "chart"
    CHART_PART = "chart_part"
    """Data series, titles, legends, trend lines of charts."""
    PICTURE = "picture"
    SHAPE = "shape"
    """Text boxes, lines, buttons and other drawn objects."""
    COMMENT = "comment"
    VALIDATION = "data_validation"
    FORMAT = "conditional_format"
    SPARKLINE = "sparkline"
    RICH_TEXT = "rich_text"
    """Cells in which only a part of the text is bold, coloured or in another font."""
    MERGE = "merged_cells"
    PROTECTION = "protection"
    """Sheets that are protected against changes."""
    MACROS = "macros"
    """The VBA project."""


MAX_PLACES = 1_000
"""For how many features with the same content the positions are listed."""


@dataclass(slots=True)
class Quantity:
    """How much of one feature a workbook holds.

    Attributes:
        label: what it is, for people.
        measure: the number of cells of a rule, or the number of anything else.
        sheet: the sheet of its first occurrence; empty if it belongs to the workbook.
        where: the cells of its first occurrence; empty if it has no cells.
        places: sheet and cells of its first :data:`MAX_PLACES` occurrences.
    """

    label: str
    measure: int
    sheet: str = ""
    where: str = ""
    places: list[tuple[str, str]] = field(default_factory=list)


@dataclass(slots=True)
class Features:
    """Everything found in a workbook.

    Attributes:
        held: (kind, content) -> how much of this feature there is.
        chart_parts: chart types -> label of a part -> its largest number in one chart of these
            types.
        definitions: name in lower case -> what each definition of it refers to. Names that programs
            make for themselves, print areas included, are left out.
    """

    held: dict[tuple[FeatureKind, str], Quantity] = field(default_factory=dict)
    chart_parts: dict[str, Counter[str]] = field(default_factory=dict)
    definitions: dict[str, Counter[str]] = field(default_factory=dict)

    def add(
        self,
        kind: FeatureKind,
        content: str,
        label: str,
        *,
        measure: int = 1,
        sheet: str = "",
        where: str = "",
    ) -> None:
        """Adds a feature, or adds to the measure of one that already exists."""
        entry = self.held.get((kind, content))
        if entry is None:
            entry = self.held[kind, content] = Quantity(shortened(label), measure, sheet, where)
        else:
            entry.measure += measure
        if len(entry.places) < MAX_PLACES:
            entry.places.append((sheet, where))

    def measure(self, kind: FeatureKind, content: str) -> int:
        """How much of a feature there is; 0 if there is none."""
        entry = self.held.get((kind, content))
        return 0 if entry is None else entry.measure

    def places(self, kind: FeatureKind, content: str) -> list[tuple[str, str]]:
        """Sheet and cells of the features that have this content."""
        entry = self.held.get((kind, content))
        return [] if entry is None else entry.places

    def __iter__(self) -> Iterator[tuple[tuple[FeatureKind, str], Quantity]]:
        return iter(self.held.items())


def shortened(text: str) -> str:
    """Shortens text to one line that can be shown."""
    line = " ".join(text.split())
    return clipped(line, _MAX_LABEL_CHARS)


def read_features(package: Package, tabs: tuple[Tab, ...], strings: str | None) -> Features:
    """Reads everything that a workbook holds other than the values of its cells.

    Args:
        package: the workbook.
        tabs: its sheets.
        strings: name of the part of its shared strings, or None.

    Raises:
        WorkbookError: a part is missing, broken or over a limit.
    """
    features = Features()
    _read_names(package, features)
    if any(
        link.kind == "vbaProject" for link in relationships(package, main_part(package)).values()
    ):
        features.add(FeatureKind.MACROS, "", "macros")
    if strings is not None:
        read_rich_text(package, strings, "", features)
    for tab in tabs:
        package.budget.take_cells(1)
        features.add(FeatureKind.SHEET, folded(tab.name), f"sheet {tab.name!r}", sheet=tab.name)
        if tab.state != "visible":
            label = f"sheet {tab.name!r} hidden"
            features.add(FeatureKind.HIDDEN_SHEET, folded(tab.name), label, sheet=tab.name)
        links = relationships(package, tab.part)
        if tab.is_worksheet:
            read_sheet_features(package, tab, features)
            read_rich_text(package, tab.part, tab.name, features)
        for link in links.values():
            if link.external or link.target not in package:
                continue
            package.budget.take_cells(1)
            if link.kind == "drawing":
                read_drawing(package, link.target, tab.name, features)
            elif link.kind in _LINKED:
                _LINKED[link.kind](package, link.target, tab.name, features)
    return features


# -- parts that a sheet points to ------------------------------------------------------------------


def _read_table(package: Package, part: str, sheet: str, features: Features) -> None:
    root = _root(package, part)
    name = root.get("displayName") or root.get("name") or ""
    features.add(
        FeatureKind.TABLE,
        name.casefold(),
        f"table {name!r}",
        sheet=sheet,
        where=shortened(root.get("ref", "")),
    )


def _read_pivot(package: Package, part: str, sheet: str, features: Features) -> None:
    name = _root(package, part).get("name") or ""
    features.add(FeatureKind.PIVOT, name.casefold(), f"pivot table {name!r}", sheet=sheet)


def _root(package: Package, part: str) -> Mapping[str, str]:
    """Attributes of the root element of a part."""
    root: list[dict[str, str]] = []

    def on_start(_: str, attributes: dict[str, str]) -> None:
        if not root:
            root.append(attributes)

    scan_part(package, part, on_start)
    return root[0] if root else {}


def _read_comments(package: Package, part: str, sheet: str, features: Features) -> None:
    comments: list[tuple[str, list[str]]] = []

    def on_start(tag: str, attributes: dict[str, str]) -> None:
        if tag in {"comment", "tc:threadedComment"}:
            package.budget.take_cells(1)
            comments.append((attributes.get("ref", ""), []))

    def on_text(text: str) -> None:
        if comments:
            package.budget.take_chars(len(text))
            comments[-1][1].append(text)

    scan_part(package, part, on_start, text=on_text)
    for cell, pieces in comments:
        text = " ".join("".join(pieces).split())
        label = f"comment {shortened(text)!r}"
        features.add(FeatureKind.COMMENT, text, label, sheet=sheet, where=cell[:20])


_LINKED = {
    "table": _read_table,
    "pivotTable": _read_pivot,
    "comments": _read_comments,
    "threadedComment": _read_comments,
}


# -- names -----------------------------------------------------------------------------------------

_PRINTING = {"_xlnm.print_area": "print area", "_xlnm.print_titles": "print titles"}


def _read_names(package: Package, features: Features) -> None:
    """Defined names that a user sees and that refer to something."""
    names: list[tuple[str, list[str]]] = []
    inside = False

    def on_start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal inside
        inside = tag == "definedName" and not is_on(attributes.get("hidden"))
        if inside:
            package.budget.take_cells(1)
            names.append((attributes.get("name", ""), []))

    def on_text(text: str) -> None:
        if inside:
            package.budget.take_chars(len(text))
            names[-1][1].append(text)

    scan_part(package, main_part(package), on_start, text=on_text)
    for name, pieces in names:
        content = name.casefold()
        if "#REF!" in "".join(pieces) or (content.startswith("_xl") and content not in _PRINTING):
            continue
        label = _PRINTING.get(content, f"name {name!r}")
        features.add(FeatureKind.NAME, content, label)
        if content not in _PRINTING:
            features.definitions.setdefault(content, Counter())["".join(pieces)] += 1


_SHAPES = {"sp", "cxnSp"}
_CHART_PARTS = {
    "ser": "data series",
    "series": "data series",
    "title": "titles",
    "legend": "legends",
    "trendline": "trend lines",
    "errBars": "error bars",
}


def read_drawing(package: Package, part: str, sheet: str, features: Features) -> None:
    """Adds the contents of a drawing.

    If an object has a fallback for programs that do not support it, only the object counts.

    Args:
        package: the workbook.
        part: name of the drawing's part.
        sheet: the sheet that it is on.
        features: the features are added here.

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
            features.add(FeatureKind.PICTURE, "", "picture", sheet=sheet)
        elif tag in _SHAPES:
            package.budget.take_cells(1)
            features.add(FeatureKind.SHAPE, "", "drawn shape or control", sheet=sheet)
        elif tag == "chart":
            charts.extend(text for name, text in attributes.items() if name == "r:id")

    scan_part(package, part, on_start, path.pop, names=DRAWING_NAMES)
    links = relationships(package, part) if charts else {}
    for identifier in charts:
        package.budget.take_cells(1)
        link = links.get(identifier)
        if link is not None and not link.external and link.target in package:
            _read_chart(package, link.target, sheet, features)


def _read_chart(package: Package, part: str, sheet: str, features: Features) -> None:
    types: set[str] = set()
    counts: Counter[str] = Counter()

    def on_start(tag: str, attributes: dict[str, str]) -> None:
        if tag.endswith("Chart"):
            types.add(tag.removesuffix("Chart"))
        elif tag in _CHART_PARTS:
            counts[_CHART_PARTS[tag]] += 1
            if "layoutId" in attributes:  # the newer kinds, such as waterfall
                types.add(attributes["layoutId"])

    scan_part(package, part, on_start, names=CHART_NAMES)
    types_ = sorted(type_ for type_ in types if type_)
    content = "+".join(types_)[:200]
    features.add(FeatureKind.CHART, content, f"chart ({', '.join(types_) or 'empty'})", sheet=sheet)
    features.chart_parts[content] = features.chart_parts.get(content, Counter()) | counts
    for label, count in counts.items():
        features.add(
            FeatureKind.CHART_PART, label, f"{label} of charts", measure=count, sheet=sheet
        )


_AROUND = {"si", "is", "row", "c", "v", "f"}
"""Elements that begin a string, or whose start shows that the previous string has ended."""

_FORMAT = b"rPr>"
"""The end of the tag of a run's format, which is the same with every namespace prefix."""


def read_rich_text(package: Package, part: str, sheet: str, features: Features) -> None:
    """Adds the rich strings of a part: the shared strings, or a worksheet that holds its own.

    Args:
        package: the workbook.
        part: name of the part.
        sheet: the sheet that it belongs to; empty for the shared strings.
        features: where features go.

    Raises:
        WorkbookError: the part is missing, broken or over a limit.
    """
    if not _holds(package, part, _FORMAT):
        return
    strings = _Strings(package, sheet, features)
    scan_part(package, part, strings.start, text=strings.text)
    strings.finish()


class _Strings:
    """Receives the parser events for a part's strings, one string after another."""

    def __init__(self, package: Package, sheet: str, features: Features) -> None:
        self._budget = package.budget
        self._sheet = sheet
        self._found = features
        self._pieces: list[str] | None = None
        self._runs = 0
        self._is_formatted = False

    def start(self, tag: str, _: dict[str, str]) -> None:
        """Called when an element begins."""
        if tag in _AROUND:
            self.finish()
            self._pieces = [] if tag in {"si", "is"} else None
            self._runs, self._is_formatted = 0, False
        elif tag == "r":
            self._runs += 1
        elif tag == "rPr":
            self._is_formatted = True

    def text(self, text: str) -> None:
        """Called with the characters between tags."""
        if self._pieces is not None:
            self._budget.take_chars(len(text))
            self._pieces.append(text)

    def finish(self) -> None:
        """Adds the last string, unless it has a single format, which is that of its cell."""
        if self._pieces is not None and self._is_formatted and self._runs > 1:
            self._budget.take_cells(1)
            text = "".join(self._pieces)
            self._found.add(
                FeatureKind.RICH_TEXT,
                " ".join(text.split()),
                f"formats of parts of the text {shortened(text)!r}",
                sheet=self._sheet,
            )
        self._pieces = None


def _holds(package: Package, part: str, text: bytes) -> bool:
    before = b""
    holds = False
    for chunk in package.chunks(part):
        # The part is read to its end, where its checksum is compared.
        holds = holds or text in before + chunk
        before = chunk[-len(text) :]
    return holds


_FORMULAS = {"formula", "formula1", "formula2", "f"}
_RULES = {
    "x14:dataValidation": "dataValidation",
    "x14:conditionalFormatting": "conditionalFormatting",
    "x14:cfRule": "cfRule",
    "x14:sparkline": "sparkline",
    "x14:formula1": "formula1",
    "x14:formula2": "formula2",
    "x14:id": "id",
    "xm:f": "f",
    "xm:sqref": "sqref",
}
"""Name of an element in the extension part of a worksheet -> the name outside of it."""

_TERMS = ("type", "operator", "text", "timePeriod", "rank", "percent", "bottom", "aboveAverage")
_MAX_EXACT = 200
"""If a rule has at most this many rectangles, a cell that several of them cover counts once."""


@dataclass(slots=True)
class _Rule:
    """A validation, a conditional format or a group of sparklines."""

    kind: FeatureKind
    attributes: dict[str, str]
    reference: str = ""
    formulas: list[str] = field(default_factory=list)

    @property
    def terms(self) -> list[str]:
        default = {"type": "none"} if self.kind is FeatureKind.VALIDATION else {}
        attributes = {**default, **self.attributes}
        return [f"{name}={attributes[name]}" for name in _TERMS if name in attributes]

    @property
    def content(self) -> str:
        return "\x00".join([*self.terms, *map(formula_shape, self.formulas)])

    @property
    def label(self) -> str:
        noun = self.kind.value.replace("_", " ")
        kind = self.attributes.get("type", "")
        return " ".join(filter(None, (noun, kind, ", ".join(self.formulas))))


class _RuleCollector:
    """Collects rules and merged cells from the elements around the rows of a worksheet."""

    def __init__(self, package: Package) -> None:
        self.rules: list[_Rule] = []
        self.merges: list[Window] = []
        self.bars: set[str] = set()
        self.protects = False
        self._budget = package.budget
        self._rule: _Rule | None = None
        self._pending: list[_Rule] = []
        self._reference = ""
        self._before = ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Called when an element begins."""
        tag = _RULES.get(tag, tag)
        if tag == "mergeCell":
            self._budget.take_cells(1)
            if (window := parse_window(attributes.get("ref", ""))) is not None:
                self.merges.append(window)
        elif tag == "dataValidation":
            self._begin(_Rule(FeatureKind.VALIDATION, attributes, attributes.get("sqref", "")))
        elif tag == "conditionalFormatting":
            self._reference = attributes.get("sqref", "")
            self._pending = []
        elif tag == "cfRule":
            self._begin(_Rule(FeatureKind.FORMAT, attributes, self._reference))
            self._pending.extend(self.rules[-1:])
        elif tag == "sparkline":
            self._begin(_Rule(FeatureKind.SPARKLINE, {}))
        elif tag == "sheetProtection":
            self.protects = is_on(attributes.get("sheet"))

    def _begin(self, rule: _Rule) -> None:
        self._budget.take_cells(1)
        self._rule = rule
        self.rules.append(rule)

    def end(self, tag: str, text: list[str]) -> None:
        """Called when an element ends."""
        tag = _RULES.get(tag, tag)
        if tag in _FORMULAS and self._rule is not None:
            written = "".join(text)
            # In the extension part, <formula1><f>…</f></formula1> ends twice with one text.
            if tag == "f" or self._before != "f":
                self._budget.take_chars(len(written))
                self._rule.formulas.append(written)
        elif tag == "sqref":
            self._note_range("".join(text))
        elif tag == "id" and self._rule is not None:
            self.bars.add("".join(text).strip())
        elif tag in {"dataValidation", "cfRule", "sparkline"}:
            self._rule = None
        self._before = tag

    def _note_range(self, reference: str) -> None:
        """Called with the cells of a rule in the extension part, which follow the rule."""
        self._budget.take_chars(len(reference))
        if self._rule is not None:
            self._rule.reference = reference
            return
        for rule in self._pending:
            rule.reference = rule.reference or reference


def read_sheet_features(package: Package, tab: Tab, features: Features) -> None:
    """Adds the rules, merged cells and protection of a worksheet.

    The second part of a data bar, which only says how it is drawn, is not a separate rule.

    Args:
        package: the workbook.
        tab: the worksheet.
        features: where features go.

    Raises:
        WorkbookError: the worksheet is missing, broken or over a limit.
    """
    collector = scan_surroundings(package, tab.part, lambda: _RuleCollector(package))
    for rule in collector.rules:
        if rule.kind is FeatureKind.FORMAT and rule.attributes.get("id") in collector.bars:
            continue
        windows = [
            window
            for reference in rule.reference.split()
            if (window := parse_window(reference)) is not None
        ]
        if not windows or any("#REF!" in formula for formula in rule.formulas):
            # It applies to nothing, or refers to nothing.
            continue
        cells = len(windows) if rule.kind is FeatureKind.SPARKLINE else covered_cells(windows)
        content = "" if rule.kind is FeatureKind.SPARKLINE else rule.content
        features.add(
            rule.kind,
            content,
            rule.label,
            measure=cells,
            sheet=tab.name,
            where=str(windows[0]),
        )
    if collector.protects:
        features.add(
            FeatureKind.PROTECTION, folded(tab.name), f"protection of {tab.name!r}", sheet=tab.name
        )
    for window in collector.merges:
        rows = window.rows
        columns = window.columns
        shape = f"{rows} x {columns}"
        features.add(
            FeatureKind.MERGE,
            shape,
            f"merged cells, {shape}",
            sheet=tab.name,
            where=str(window),
        )


def covered_cells(windows: Sequence[Window]) -> int:
    """How many cells some rectangles cover; a cell that several of them cover counts once.

    If there are more than a few hundred rectangles, only equal ones are merged.
    """
    distinct = list(dict.fromkeys(windows))
    if len(distinct) > _MAX_EXACT:
        return sum(window.size for window in distinct)
    edges = sorted({row for window in distinct for row in (window.min_row, window.max_row + 1)})
    covered = 0
    for top, below in itertools.pairwise(edges):
        columns = sorted(
            (window.min_column, window.max_column)
            for window in distinct
            if window.min_row <= top and window.max_row >= top
        )
        width = last = 0
        for first, end in columns:
            width += max(0, end - max(first, last + 1) + 1)
            last = max(last, end)
        covered += width * (below - top)
    return covered
