"""Numbers on a screenshot: which cells have one, and that the cells' text can still be read."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator
from importlib import resources

import pytest
from openpyxl import Workbook
from openpyxl.worksheet.worksheet import Worksheet

from judge.desktop.contract import Action, DesktopOptions, DesktopTask
from judge.desktop.sandboxed import SandboxDesktop, SandboxDesktopHost
from tests.desktop.workbooks import PATH

pytestmark = [pytest.mark.desktop, pytest.mark.bubblewrap, pytest.mark.slow]

ROWS, COLUMNS = 12, "ABCDE"
HIDDEN = 13


def small_table() -> bytes:
    """A workbook with twelve rows of five columns; the row below them is hidden."""
    book = Workbook()
    sheet = book.active
    assert isinstance(sheet, Worksheet)
    for row in range(1, ROWS + 1):
        sheet.append([f"r{row}{letter}" for letter in COLUMNS])
    sheet.row_dimensions[HIDDEN].hidden = True
    data = io.BytesIO()
    book.save(data)
    return data.getvalue()


@pytest.fixture(scope="module")
def desktop(host: SandboxDesktopHost) -> Iterator[SandboxDesktop]:
    options = DesktopOptions(width=1280, height=720)
    opened = host.open(DesktopTask({PATH: small_table()}, PATH, PATH), options)
    with contextlib.closing(opened):
        yield opened


def test_the_first_empty_row_and_column_are_marked(desktop: SandboxDesktop) -> None:
    shown = desktop.observe(marks=True)
    assert shown.elements is not None
    assert shown.marks is not None
    marked = [shown.elements[number] for number in shown.marks.values()]
    cells = [each.name for each in marked if each.role == "table-cell"]
    rows = [*range(1, ROWS + 1), HIDDEN + 1]
    assert cells == [f"{letter}{row}" for row in rows for letter in f"{COLUMNS}F"]


PROGRAM = """
import json, sys, types
from PIL import Image, ImageChops, ImageDraw, ImageFont
for name, text in json.loads(SOURCES).items():
    package = name.rpartition(".")[0]
    while package:
        sys.modules.setdefault(package, types.ModuleType(package)).__path__ = []
        package = package.rpartition(".")[0]
    sys.modules[name] = types.ModuleType(name)
    exec(compile(text, name, "exec", dont_inherit=True), sys.modules[name].__dict__)
from judge.desktop.driver.marks import draw_marks
from judge.desktop.driver.nodes import Node

STATES = ("enabled", "showing", "visible")
font = ImageFont.truetype("DejaVuSans.ttf", 12)
picture = Image.new("RGB", (400, 300), "white")
draw = ImageDraw.Draw(picture)
nodes = [Node("table", "Sheet", states=STATES)]
texts = []
for row in range(10):
    for column, (text, anchor) in enumerate([
        ("Name", "ls"), ("1234.5", "rs"), ("a text that is cut off", "ls"), ("12345678", "rs"),
    ]):
        left, top = 20 + 80 * column, 20 + 20 * row
        cell = Image.new("RGB", (78, 18), "yellow" if row % 2 else "white")
        x = 2 if anchor == "ls" else 76
        ImageDraw.Draw(cell).text((x, 14), text, font=font, anchor=anchor, fill="black")
        ink = Image.new("L", cell.size)
        ImageDraw.Draw(ink).text((x, 14), text, font=font, anchor=anchor, fill=255)
        begin = ink.point([255 if value > 50 else 0 for value in range(256)]).getbbox()[0]
        picture.paste(cell, (left + 1, top + 1))
        name = f"{'ABCD'[column]}{row + 1}"
        nodes.append(Node("table-cell", name, text, (left, top, 80, 20), STATES, 0))
        texts.append((name, (left + 1 + begin, top + 2, left + 21 + begin, top + 18)))
draw.text((20, 260), "=A1+B1", font=font, anchor="ls", fill="black")
nodes.append(Node("paragraph", "", "=A1+B1", (19, 246, 52, 18), STATES, 0))
texts.append(("formula line", (20, 248, 70, 262)))
before = picture.copy()
marks = draw_marks(picture, nodes)
covered = [
    name for name, area in texts
    if ImageChops.difference(before.crop(area), picture.crop(area)).getbbox()
]
drawn = ImageChops.difference(before, picture).getbbox() is not None
print(json.dumps([len(marks), drawn, covered]))
"""


def test_a_number_does_not_cover_the_beginning_of_its_element(
    desktop: SandboxDesktop,
) -> None:
    """Whether the text is at the left or right, is short, or fills its cell."""
    names = [f"judge.desktop.driver.{name}" for name in ("nodes", "marks")]
    package = resources.files("judge.desktop.driver")
    sources = {
        name: package.joinpath(f"{name.rpartition('.')[2]}.py").read_text(encoding="utf-8")
        for name in names
    }
    code = PROGRAM.replace("SOURCES", repr(json.dumps(sources)))
    outcome = desktop.perform(Action(code=code))
    assert outcome.error == ""
    assert json.loads(outcome.printed) == [41, True, []]
