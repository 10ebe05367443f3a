"""Every hostile workbook gives a verdict or a clear error, within fixed time and memory.

Each is handed to the real command in a process that is not the test's own, since the bounds are
those of a process: a gigabyte of address space and ten seconds of processor time.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.cli.main import main
from judge.compare.cells.computing import compare_files
from judge.errors import JudgeError, WorkbookError
from judge.workbook.budget import Budget, ReadLimits
from tests.bounds import Ended, each_in_bounds
from tests.unit.compare.cells.hostile import HOSTILE
from tests.unit.compare.cells.packages import Book, cell, sheet_data, simple, zipped

pytestmark = pytest.mark.slow

MEMORY_BYTES = 1 << 30
CPU_S = 10
EQUAL, DIFFERENT, UNREADABLE = 0, 1, 6

# Those of which something can be read; every other one is an unreadable workbook.
READABLE = {
    "macros",
    "external links",
    "the first and the last cell",
    "a million styled blank cells",
    "a million empty rows",
    "a hyperlink over everything",
    "number formats without end",
    "a number format to choke on",
}


def judge_compare(gold: Path, output: Path, said: Path) -> tuple[object, str]:
    """Runs the command, in a process that is not the test's own.

    Returns:
        Its exit code and what it said.
    """
    with said.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
    try:
        main(["compare", str(gold), str(output), "--at", "A:C", "--recalc", "never"])
    except SystemExit as stop:
        code = stop.code
    sys.stdout.flush()
    sys.stderr.flush()
    return code, said.read_text(errors="replace")


@pytest.fixture(scope="module", autouse=True)
def imported() -> None:
    """The command's imports are loaded here once, instead of in every process."""
    with pytest.raises(SystemExit):
        main(["compare", "--help"])
    importlib.import_module("judge.api")


@pytest.fixture(scope="module")
def compared(imported: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ended]:
    """What the command says of each workbook, and how it ends."""
    folder = tmp_path_factory.mktemp("hostile")
    gold = folder / "gold.xlsx"
    gold.write_bytes(simple({"A1": 1, "A2": 5}))
    works = {}
    for number, (kind, make) in enumerate(HOSTILE.items()):
        output = folder / f"output-{number}.xlsx"
        output.write_bytes(make())
        works[kind] = partial(judge_compare, gold, output, folder / f"{number}.txt")
    return each_in_bounds(works, cpu_s=CPU_S, memory_bytes=MEMORY_BYTES)


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_workbook_gives_a_verdict_or_a_clear_error(
    compared: dict[str, Ended], kind: str
) -> None:
    assert compared[kind].code == 0
    code, said = compared[kind].result
    assert "Traceback" not in said
    assert code == (DIFFERENT if kind in READABLE else UNREADABLE), said
    if code == UNREADABLE:
        assert said.startswith("error: ")
        assert len(said) < 1000


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("old binary workbook", "is an old binary workbook (.xls), not an .xlsx package"),
        ("an encrypted workbook", "the workbook is encrypted with a password"),
        ("encrypted entries", "entry xl/worksheets/sheet1.xml is encrypted"),
        ("plain text", "the file is text, not an .xlsx package"),
        ("html", "the file is HTML or XML, not an .xlsx package"),
        ("an XML workbook of 2003", "the file is HTML or XML, not an .xlsx package"),
        ("a binary workbook", "the file is a binary workbook (.xlsb)"),
        ("an OpenDocument spreadsheet", "the file is an OpenDocument spreadsheet (.ods)"),
        ("a Word document", "a zip archive, but not a workbook"),
    ],
)
def test_an_error_names_the_format_of_another_file(kind: str, message: str) -> None:
    with pytest.raises(WorkbookError) as raised:
        compare_files(simple({"A1": 1}), HOSTILE[kind](), "A1")
    assert message in raised.value.message
    assert raised.value.hint is None or "ave it" in raised.value.hint
    assert (raised.value.hint is None) == (kind == "encrypted entries")


@pytest.mark.parametrize(
    ("kind", "note"),
    [
        ("macros", "output: the workbook holds macros, which are never run"),
        (
            "external links",
            "output: the workbook points to other workbooks, which are never opened",
        ),
    ],
)
def test_what_is_left_alone_is_noted(kind: str, note: str) -> None:
    comparison = compare_files(simple({"A1": 1}), HOSTILE[kind](), "A1")
    assert comparison.equal
    assert comparison.notes == (note,)


@pytest.mark.parametrize(
    ("kind", "max_bytes"),
    [
        ("4 MB that inflate to 4 GB", 20_000),
        ("1 GB that claims to be 4 kB", 200_000),
        ("laughing entities in a sheet", 20_000),
        ("an attribute of 15 MB", 6 << 20),
        ("15 MB of text in a cell", 6 << 20),
    ],
)
def test_a_bomb_is_given_up_before_it_has_grown(
    kind: str, max_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Work counted in inflated bytes, which do not depend on how busy the machine is."""
    counted = 0
    count = Budget.take_bytes

    def take_bytes(self: Budget, size: int) -> None:
        nonlocal counted
        counted += size
        count(self, size)

    gold, output = simple({"A1": 1}), HOSTILE[kind]()
    monkeypatch.setattr(Budget, "take_bytes", take_bytes)
    with contextlib.suppress(WorkbookError):
        compare_files(gold, output, "A1:C9")
    assert 0 < counted < max_bytes


def test_a_range_at_the_top_costs_the_rows_above_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A million rows below the range are inflated, but none of their cells is kept."""
    kept: list[int] = []
    take = Budget.take_cells

    def take_cells(self: Budget, count: int) -> None:
        kept.append(count)
        take(self, count)

    gold, output = simple({"A1": 1}), HOSTILE["a million styled blank cells"]()
    monkeypatch.setattr(Budget, "take_cells", take_cells)
    assert not compare_files(gold, output, "A1:C9", style=["fill"]).equal
    assert sum(kept) < 200


def test_there_are_many_kinds() -> None:
    assert len(HOSTILE) >= 80
    assert HOSTILE.keys() >= READABLE


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (ReadLimits(file_bytes=100), "the file has"),
        (ReadLimits(entries=3), "more than 3 entries"),
        (ReadLimits(part_bytes=200), "inflates to"),
        (ReadLimits(total_bytes=500), "inflates to more than 500 bytes"),
        (ReadLimits(ratio=1, ratio_floor_bytes=10), "inflates .* times"),
        (ReadLimits(cells=2), "more than 2 cells"),
        (ReadLimits(kept_chars=3), "more than 3 characters"),
        (ReadLimits(depth=1), "1 elements"),
        (ReadLimits(seconds=0), "takes more than 0 s"),
    ],
)
def test_each_limit_says_what_was_too_much(limits: ReadLimits, message: str) -> None:
    data = Book({"Sheet1": sheet_data(cell("A1", 1), cell("A2", "long text"), cell("A3", 1))})
    with pytest.raises(WorkbookError, match=message):
        compare_files(simple({"A1": 1}), data.to_bytes(), "A1:A3", limits=limits)


# -- fuzzing --------------------------------------------------------------------------------------

TYPICAL = Book(
    {
        "Sheet1": sheet_data(
            cell("A1", 1),
            cell("B1", 0, kind="s"),
            cell("A2", 3, formula="A1+2"),
            cell("B2", "inline"),
            '<c r="C2" s="1"><v>45351.5</v></c>',
            '<c r="C3" t="e"><v>#N/A</v></c>',
        )
        + '<mergeCells><mergeCell ref="A3:B4"/></mergeCells>'
        '<conditionalFormatting sqref="A1:B2"><cfRule type="expression" dxfId="0" priority="1">'
        "<formula>A1=1</formula></cfRule></conditionalFormatting>"
        '<hyperlinks><hyperlink ref="A1" location="Sheet1!B1"/></hyperlinks>'
    },
    shared=["shared", "<r><t>rich</t></r>"],
)
GOLD = TYPICAL.to_bytes()
SMALL = ReadLimits(part_bytes=1 << 20, cells=10_000, seconds=5)
FRAGMENTS = [
    *("<", ">", "/", '"', "'", "&", "<!--", "]]>", "<![CDATA[", "<?x", "\0", "9" * 30, "-1"),
    *("<c>", "</c>", "<v>", "</row>", "<row>", "xmlns=", "&#0;", "&lt;", "\ud800", "1e999"),
]


def survives(data: bytes) -> None:
    """Comparing values and looks ends with a result or with one of our own errors."""
    for style in ((), ("fill", "hyperlink", "number_format")):
        with contextlib.suppress(JudgeError):
            compare_files(GOLD, data, "A1:C4,B:B", style=style, limits=SMALL)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_bytes_changed(data: st.DataObject) -> None:
    changed = bytearray(GOLD)
    for place in data.draw(st.lists(st.integers(0, len(GOLD) - 1), min_size=1, max_size=8)):
        changed[place] = data.draw(st.integers(0, 255))
    survives(bytes(changed))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, len(GOLD)), st.integers(0, len(GOLD)))
def test_any_piece_cut_out(first: int, second: int) -> None:
    start, end = sorted((first, second))
    survives(GOLD[:start] + GOLD[end:])


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_part_changed(data: st.DataObject) -> None:
    parts = TYPICAL.all_parts()
    name = data.draw(st.sampled_from(sorted(parts)))
    text = parts[name].decode()
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = start + data.draw(st.integers(0, 12))
        text = text[:start] + data.draw(st.sampled_from(FRAGMENTS)) + text[end:]
    survives(zipped(parts | {name: text.encode("utf-8", "surrogatepass")}))


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300), st.sampled_from(sorted(TYPICAL.all_parts())))
def test_any_part_replaced(content: bytes, name: str) -> None:
    survives(zipped(TYPICAL.all_parts() | {name: content}))
