"""The real engines, isolated: what they compute, and which workbooks they survive."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from openpyxl.comments import Comment
from openpyxl.worksheet.formula import DataTableFormula

from judge.core.submission import Origin
from judge.errors import RecalcError
from judge.recalc.contract import CrashedError, Dialect, EngineUnavailableError
from judge.recalc.engines import ServiceEngine
from judge.recalc.names import ENGINE_NAMES, FORMUALIZER, FORMULAS, IRONCALC, LIBREOFFICE
from judge.recalc.policy import Recalculator
from judge.recalc.select import OFFICE_ROOT, make_engines
from judge.recalc.service import ServicePool
from judge.recalc.services import program_text
from judge.sandbox import open_sandbox
from judge.sandbox.contract import Sandbox, ServiceChannel
from judge.workbook.cell import CellRange, CellValue, ErrorValue
from judge.workbook.reader import open_workbook
from tests.unit.recalc.fakes import ALL, SHEET, package, ref, workbook

ENGINE_PARAMETERS = [
    pytest.param(LIBREOFFICE, marks=pytest.mark.office),
    IRONCALC,
    FORMUALIZER,
    pytest.param(FORMULAS, marks=pytest.mark.slow),
]

pytestmark = [pytest.mark.bubblewrap, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with contextlib.closing(open_sandbox("bubblewrap")) as opened:
        yield opened


@pytest.fixture(scope="module")
def engines(sandbox: Sandbox) -> Iterator[dict[str, Any]]:
    names = tuple(n for n in ENGINE_NAMES if n != LIBREOFFICE or sandbox.has_root(OFFICE_ROOT))
    made = {engine.name: engine for engine in make_engines(sandbox, names)}
    yield made
    for engine in made.values():
        engine.close()


@pytest.fixture
def engine(request: pytest.FixtureRequest, engines: dict[str, Any]) -> Any:
    if request.param not in engines:
        pytest.skip(f"the sandbox has no {request.param}: judge sandbox build")
    return engines[request.param]


@pytest.fixture(scope="module")
def recalculator(engines: dict[str, Any]) -> Recalculator:
    return Recalculator(list(engines.values()), timeout_s=60)


def computed(book: bytes, engine: Any, timeout_s: float = 120) -> dict[tuple[int, int], CellValue]:
    result = engine.compute(book, [ALL], timeout_s=timeout_s)
    return {(place.row, place.column): value for place, value in result.values.items()}


@pytest.mark.parametrize("engine", ENGINE_PARAMETERS, indirect=True)
def test_values_come_with_their_types(engine: Any) -> None:
    book = package(
        {
            "A1": "=1+1",
            "A2": '="a"&"b"',
            "A3": "=1>0",
            "A4": "=1/0",
            "A5": "=SUM(C1:C3)/4",
            "A6": '=VLOOKUP("b",B1:C3,2,FALSE)',
            "B1": "a",
            "B2": "b",
            "B3": "c",
            "C1": 1,
            "C2": 2,
            "C3": 4,
        }
    )
    found = computed(book, engine)
    assert found[1, 1] == 2
    assert found[2, 1] == "ab"
    assert found[3, 1] is True
    assert found[4, 1] == ErrorValue("#DIV/0!")
    assert found[5, 1] == 1.75
    assert found[6, 1] == 2
    assert engine.version[0].isdigit()


# `formulas` cannot read sheet names with apostrophes; it is asked last, and fails with a reason.
@pytest.mark.parametrize("engine", ENGINE_PARAMETERS[:3], indirect=True)
@pytest.mark.parametrize("name", ["It's, here", "Größe (2)", "a b"])
def test_sheets_are_found_by_any_name(engine: Any, name: str) -> None:
    book = package({"A1": "=1+1", "A2": 1})
    source, target = zipfile.ZipFile(io.BytesIO(book)), io.BytesIO()
    with zipfile.ZipFile(target, "w") as copy:
        for part in source.namelist():
            content = source.read(part)
            copy.writestr(part, content.replace(b'name="S"', f'name="{name}"'.encode()))
    area = CellRange(name, 1, 1, 1, 1)
    result = engine.compute(target.getvalue(), [area], timeout_s=120)
    assert list(result.values.values()) == [2]


@pytest.mark.office
@pytest.mark.parametrize("engine", [LIBREOFFICE], indirect=True)
def test_libreoffice_computes_formulas_as_excel_writes_them(engine: Any) -> None:
    book = package(
        {
            "A1": '=DATEVALUE("1June2021")',
            "A2": '=EOMONTH(1&"Feb"&2020,0)',
            "A3": "=SMALL(C1:C3,1)",
            "A4": '=IFERROR(__xludf.DUMMYFUNCTION("QUERY(A1)"),"kept")',
            "A5": "=_xlfn.SINGLE(5)",
            "A6": '="2011/02/23"+0',
            "A7": "=XLOOKUP(1,D1:D3,D1:D3)",
            "A8": "=_xlfn.XLOOKUP(1,D1:D3,D1:D3)",
            "A9": "=DAY(59)*100+MONTH(D5)*10+DAY(D5)",
            "A10": "=SUMPRODUCT((MONTH(D1:D5)=1)*1)",
            "A11": "=DATE(108,1,2)",
            "A12": '=YEAR("2020-05-06")',
            "A13": "=VLOOKUP(1,D1:D3,0,FALSE)",
            "B13": "=MATCH(1,FREQUENCY(6,{1,2,3;4,5,6;7,8,9}),0)",
            "A14": "=EDATE(1,-5)",
            "A15": "=DATE(1900,1,1)",
            "A16": ("A16", '=MATCH(2,1/(E1:E9="x"))'),
            "A17": ("A17", '=NPV(0,IF(E1:E9="x",ROW(E1:E9),""))'),
            "A18": "=DOLLAR(-1234.567,-2)",
            "A19": "=ATAN2(0,0)",
            "A20": "=MROUND(5,-2)",
            "D1": 1,
            "E1": "x",
            "E4": "x",
        }
    )
    found = computed(book, engine)
    assert [found[row, 1] for row in range(1, 21)] == [
        44348,
        43890,
        ErrorValue("#NUM!"),
        "kept",
        5,
        40597,
        ErrorValue("#NAME?"),
        1,
        2810,
        5,
        39449,
        2020,
        ErrorValue("#VALUE!"),
        ErrorValue("#NUM!"),
        1,
        4,
        5,
        "($1,200)",
        ErrorValue("#DIV/0!"),
        ErrorValue("#NUM!"),
    ]
    assert found[13, 2] == 6


@pytest.mark.office
@pytest.mark.parametrize("engine", [LIBREOFFICE], indirect=True)
def test_days_from_1904_are_not_days_from_1900(engine: Any) -> None:
    book = package({"A1": "=DAY(B1)", "A2": "=MONTH(B1)", "B1": 5})
    source, target = zipfile.ZipFile(io.BytesIO(book)), io.BytesIO()
    with zipfile.ZipFile(target, "w") as copy:
        for part in source.namelist():
            content = source.read(part)
            copy.writestr(part, content.replace(b"<workbookPr ", b'<workbookPr date1904="1" '))
    asked = {"timeout_s": 10, "dialect": Dialect(date_1904=True)}
    result = engine.compute(target.getvalue(), [ALL], **asked)
    assert (result.values[ref(1)], result.values[ref(2)]) == (6, 1)


@pytest.mark.office
@pytest.mark.parametrize("engine", [LIBREOFFICE], indirect=True)
def test_libreoffice_never_keeps_a_cached_value(engine: Any) -> None:
    book = package({"A1": "=1+1"})
    forged = book_with_cached(book, b"<v>99</v>")
    assert computed(forged, engine)[1, 1] == 2


@pytest.mark.office
@pytest.mark.parametrize("engine", [LIBREOFFICE], indirect=True)
@pytest.mark.parametrize("protected", ["usual", "odd", "every column"])
def test_a_protected_sheet_is_computed_like_any_other(engine: Any, protected: str) -> None:
    cells = {"A1": '=CELL("row",B7)', "A2": "=1>0", "A3": "=1/0"}
    if protected == "every column":
        cells["XFD1"] = "x"
    source, target = zipfile.ZipFile(io.BytesIO(package(cells))), io.BytesIO()
    lock = b'<sheetProtection sheet="1" objects="1" scenarios="1" password="CC1A"/>'
    if protected == "odd":
        # An attribute that our pattern does not see the end of; LibreOffice does.
        lock = lock.replace(b"/>", b' algorithmName=">"/>')
    with zipfile.ZipFile(target, "w") as copy:
        for part in source.namelist():
            content = source.read(part).replace(b"</sheetData>", b"</sheetData>" + lock)
            if protected == "odd":
                content = content.replace(b"</worksheet>", b"</worksheet><!-- -->")
            structure = b'<workbookProtection workbookPassword="CC1A" lockStructure="1"/><sheets>'
            copy.writestr(part, content.replace(b"<sheets>", structure))
    found = computed(target.getvalue(), engine)
    assert [found[row, 1] for row in (1, 2, 3)] == [7, True, ErrorValue("#DIV/0!")]


@pytest.mark.office
@pytest.mark.parametrize("engine", [LIBREOFFICE], indirect=True)
def test_match_over_a_computed_range_needs_an_array_formula(engine: Any) -> None:
    formula = '=MATCH(1,(B1:B3="b")*(C1:C3=2),0)'
    constants = {"B1": "a", "B2": "b", "B3": "c", "C1": 1, "C2": 2, "C3": 3}
    found = computed(
        package({"A1": formula, "A2": formula, "A9": formula, "D1": ("D1", formula)} | constants),
        engine,
    )
    assert [found[row, 1] for row in (1, 2, 9)] == [ErrorValue("#VALUE!")] * 3
    assert found[1, 4] == 2


def book_with_cached(book: bytes, value: bytes) -> bytes:
    source, target = zipfile.ZipFile(io.BytesIO(book)), io.BytesIO()
    with zipfile.ZipFile(target, "w") as copy:
        for part in source.namelist():
            content = source.read(part)
            if part.endswith("sheet1.xml"):
                assert b"<v />" in content or b"<v/>" in content
                content = content.replace(b"<v />", value).replace(b"<v/>", value)
            copy.writestr(part, content)
    return target.getvalue()


def slow_book(amount: int = 120) -> bytes:
    """Array products over large ranges take minutes in some engines, seconds in LibreOffice."""
    cells: dict[str, Any] = {f"B{row}": row for row in range(1, 3)}
    cells |= {
        f"A{row}": "=SUMPRODUCT((B1:B20000>1)*(C1:C20000<5)*(D1:D20000<>7))"
        for row in range(1, 12 * amount)
    }
    cells[f"A{12 * amount}"] = "=" + "+".join(["SUMPRODUCT(--(B1:K20000>0))"] * amount)
    return package(cells)


@pytest.mark.timeout(900)  # a hang guard: the engine is given half a second
@pytest.mark.parametrize("engine", ENGINE_PARAMETERS[:3], indirect=True)
def test_a_formula_bomb_reaches_the_time_limit_and_the_next_workbook_is_computed(
    engine: Any,
) -> None:
    bomb = slow_book()
    with contextlib.suppress(RecalcError):
        engine.compute(bomb, [ALL], timeout_s=0.5)
    assert computed(package({"A1": "=1+1"}), engine)[1, 1] == 2


BOMBS = {
    "a million brackets": {"A1": "=" + "(" * 4000 + "1" + ")" * 4000},
    "nested calls": {"A1": "=" + "ABS(" * 2000 + "1" + ")" * 2000},
    "circles": {"A1": "=B1", "B1": "=A1+1"},
    "a chain": {f"A{row}": f"=A{row + 1}+1" for row in range(1, 3000)},
    "texts that grow": {f"A{row}": f"=A{row + 1}&A{row + 1}" for row in range(1, 40)}
    | {"A40": '=REPT("x",30000)'},
    "an array of the whole sheet": {"A1": "=SUM(_xlfn.SEQUENCE(1048576,1000))"},
    "what is outside": {
        "A1": '=WEBSERVICE("http://127.0.0.1:1/x")',
        "A2": '=DDE("soffice","/etc/passwd","A1")',
        "A3": "='file:///etc/passwd'#$Sheet1.A1",
        "A4": "='[../../etc/passwd.xlsx]Sheet1'!A1",
        "A5": '=HYPERLINK("file:///etc/passwd")',
    },
    "no formula at all": {"A1": "=", "A2": "=)(", "A3": "=+*/"},
}


@pytest.mark.timeout(900)  # a hang guard: the engine is given half a second
@pytest.mark.parametrize("engine", ENGINE_PARAMETERS[:3], indirect=True)
@pytest.mark.parametrize(
    "bomb",
    [
        pytest.param(each, marks=[pytest.mark.slow] if each == "texts that grow" else [])
        for each in BOMBS
    ],
)
def test_hostile_formulas_can_only_cost_the_answer(engine: Any, bomb: str) -> None:
    with contextlib.suppress(RecalcError):
        engine.compute(package(BOMBS[bomb]), [ALL], timeout_s=0.5)
    assert computed(package({"A1": "=1+1"}), engine)[1, 1] == 2


@pytest.mark.parametrize("engine", ENGINE_PARAMETERS[:3], indirect=True)
@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"\xd0\xcf\x11\xe0" * 100, b"<html>"])
def test_what_is_not_a_workbook_is_refused(engine: Any, data: bytes) -> None:
    with pytest.raises(RecalcError):
        engine.compute(data, [ALL], timeout_s=5)
    assert computed(package({"A1": "=1+1"}), engine)[1, 1] == 2


def below_us() -> dict[int, list[str]]:
    """Maps the descendants of this process to their ``/proc`` status."""
    stats: dict[int, list[str]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, rest = stat.read_text(errors="replace").rpartition(")")
            stats[int(stat.parent.name)] = [name.partition("(")[2], *rest.split()]

    def is_ours(process: int) -> bool:
        while process > 1 and process != os.getpid():
            process = int(stats[process][2]) if process in stats else 0
        return process == os.getpid()

    return {process: stat for process, stat in stats.items() if is_ours(process)}


def offices(least_ticks: int = 0) -> set[int]:
    """Returns LibreOffice processes below this one that have used this much processor time."""
    return {
        process
        for process, stat in below_us().items()
        if stat[0] == "soffice.bin" and int(stat[12]) + int(stat[13]) >= least_ticks
    }


def kill_while(asked: Future[Any], times: int, others: set[int]) -> int:
    """Kills LibreOffice a number of times while it computes; returns how often that succeeded."""
    killed: set[int] = set()
    while not asked.done() and len(killed) < times:
        # Starting and opening a small workbook takes less.
        for process in offices(least_ticks=80) - others - killed:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
                killed.add(process)
        time.sleep(0.1)  # to look through all processes of the machine takes a tenth of that
    return len(killed)


@pytest.mark.office
def test_libreoffice_killed_from_outside_computes_again(sandbox: Sandbox) -> None:
    if not sandbox.has_root(OFFICE_ROOT):
        pytest.skip("the sandbox has no LibreOffice: judge sandbox build")
    for times in (1, 2):
        others = offices()  # of the other tests of this module
        (engine,) = make_engines(sandbox, (LIBREOFFICE,))
        with contextlib.closing(engine), ThreadPoolExecutor(1) as pool:
            asked = pool.submit(computed, slow_book(48), engine, 300)
            assert kill_while(asked, times, others) == times
            if times == 1:
                assert asked.result()[1, 1] == 1
            else:
                with pytest.raises(RecalcError, match="crashed"):
                    asked.result()
            assert computed(package({"A1": "=1+1"}), engine)[1, 1] == 2


def temporary_folders(others: set[int]) -> dict[int, int]:
    """Maps other temporary folders of services below this process, by device, to bytes used."""
    found = {}
    for process in set(below_us()) - others:
        folder = Path(f"/proc/{process}/root/tmp")
        with contextlib.suppress(OSError):
            if (folder / "home").is_dir():
                facts = os.statvfs(folder)
                found[folder.stat().st_dev] = (facts.f_blocks - facts.f_bfree) * facts.f_frsize
    return found


@pytest.mark.office
def test_libreoffice_leaves_nothing_of_a_workbook_that_took_too_long(sandbox: Sandbox) -> None:
    if not sandbox.has_root(OFFICE_ROOT):
        pytest.skip("the sandbox has no LibreOffice: judge sandbox build")
    others = set(below_us())
    source, target = zipfile.ZipFile(io.BytesIO(slow_book())), io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as copy:
        for part in source.namelist():
            content = source.read(part)
            if part.endswith("sheet1.xml"):
                content = content.replace(b"<sheetData>", b"<sheetData>" + b" " * (100 << 20))
            copy.writestr(part, content)
    (engine,) = make_engines(sandbox, (LIBREOFFICE,))
    with contextlib.closing(engine):
        with pytest.raises(RecalcError, match="longer than"):
            engine.compute(target.getvalue(), [ALL], timeout_s=0.5)
        (used,) = temporary_folders(others).values()
        assert used < 4 << 20
        assert computed(package({"A1": "=1+1"}), engine)[1, 1] == 2


FULL = """
with open("/tmp/ballast", "wb", buffering=0) as ballast:
    try:
        while ballast.write(bytes(1 << 16)):
            pass
    except OSError:
        pass
"""


@pytest.mark.office
def test_libreoffice_without_space_is_our_fault(sandbox: Sandbox) -> None:
    if not sandbox.has_root(OFFICE_ROOT):
        pytest.skip("the sandbox has no LibreOffice: judge sandbox build")
    before = [FULL, FULL]

    def open_channel() -> ServiceChannel:
        program = (before.pop() if before else "") + program_text("office")
        return sandbox.service(program, root=OFFICE_ROOT, memory_bytes=1 << 30)

    engine = ServiceEngine(LIBREOFFICE, ServicePool(open_channel))
    with contextlib.closing(engine):
        with pytest.raises(EngineUnavailableError, match="temporary folder"):
            computed(package({"A1": "=1+1"}), engine)
        assert computed(package({"A1": "=1+1"}), engine)[1, 1] == 2


@pytest.mark.office
@pytest.mark.parametrize(
    ("lenient", "expected"), [(False, ErrorValue("#NAME?")), (True, 2)], ids=["Excel", "lenient"]
)
def test_a_newer_function_without_its_prefix(
    engines: dict[str, Any], lenient: bool, expected: CellValue
) -> None:
    recalculator = Recalculator(list(engines.values()), timeout_s=60, lenient_names=lenient)
    book = workbook(
        {
            "A4": "=FILTER(B1:B3,B1:B3>1)",
            "A5": "=XLOOKUP(2,B1:B3,B1:B3)",
            "A6": "=_xlfn.XLOOKUP(2,B1:B3,B1:B3)",
            "B1": 1,
            "B2": 2,
            "B3": 3,
        }
    )
    result = recalculator.fill(book, [ALL], origin=Origin.SOLUTION)
    assert [result.values[ref(row)] for row in (4, 5, 6)] == [expected, expected, 2]
    assert any("without the _xlfn. prefix" in note for note in result.notes)


@pytest.mark.office
def test_the_cascade_end_to_end(recalculator: Recalculator) -> None:
    book = workbook(
        {
            "A1": "=SUM(B1:B3)",
            "A2": ("A2:A4", "=B1:B3*2"),
            "A5": "=TODAY()",
            "A6": "=IFS(TRUE,1)",
            "A7": '=CUBEVALUE("x","y")',
            "B1": 1,
            "B2": 2,
            "B3": 3,
        },
        A5="yyyy-mm-dd",
    )
    result = recalculator.fill(book, [ALL], origin=Origin.SOLUTION)
    values = {place.row: value for place, value in result.values.items()}
    assert [values[row] for row in range(1, 5)] == [6, 2, 4, 6]
    assert str(type(values[5])) == "<class 'datetime.datetime'>"
    assert values[6] == ErrorValue("#NAME?")
    assert len(result.notes) >= 2


def test_the_embedded_engines_alone_still_serve(engines: dict[str, Any]) -> None:
    alone = Recalculator([engines[IRONCALC], engines[FORMUALIZER]], timeout_s=10)
    book = open_workbook(package({"A1": "=SUM(B1:B2)", "A2": "=CUBEVALUE(1,2)", "B1": 4}))
    result = alone.fill(book, [ALL], origin=Origin.SOLUTION)
    assert result.values[ref(1)] == 4
    assert "CUBEVALUE" in result.not_calculated[ref(2)]
    assert book.sheet_names == (SHEET,)


def commented(book: bytes) -> bytes:
    made = openpyxl.load_workbook(io.BytesIO(book))
    made.worksheets[0]["H9"].comment = Comment("Is that right?", "Ann")
    return saved(made)


def with_data_table(book: bytes) -> bytes:
    made = openpyxl.load_workbook(io.BytesIO(book))
    made.worksheets[0]["H9"] = DataTableFormula(ref="H9:H10", r1="J1", dt2D=False, dtr=False)
    return saved(made)


def with_parts(book: bytes) -> bytes:
    target = io.BytesIO(book)
    with zipfile.ZipFile(target, "a") as archive:
        for number in range(10_001):
            archive.writestr(f"x/{number}.bin", b"")
    return target.getvalue()


def saved(book: openpyxl.Workbook) -> bytes:
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def spilling(book: bytes) -> bytes:
    """Makes the array formula of C1 a dynamic one, as XlsxWriter writes it."""
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(book)) as archive, zipfile.ZipFile(target, "w") as copy:
        for name in archive.namelist():
            copy.writestr(name, archive.read(name).replace(b'<c r="C1"', b'<c r="C1" cm="1"'))
    return target.getvalue()


@pytest.mark.office
def test_cells_to_which_a_formula_spills_are_not_blank(recalculator: Recalculator) -> None:
    cells = {"A1": 3, "A2": 1, "A3": 2, "C1": ("C1", "=_xlfn._xlws.SORT(A1:A3)")}
    cells |= {"E1": "=SUM(C1:C3)", "E2": "=C2+1", "E3": "=E1+1", "E4": "=SUM(A1:A3)"}
    book = open_workbook(spilling(package(cells)))
    result = recalculator.fill(book, [ALL], origin=Origin.SOLUTION)
    assert [result.values[ref(row, 5)] for row in range(1, 5)] == [6, 3, 7, 6]


@pytest.mark.office
def test_true_and_false_are_not_numbers_next_to_text_beyond_ascii(
    recalculator: Recalculator,
) -> None:
    cells = {"A1": True, "A2": 15, "E1": '=SUM(A1:A2)&"\u00e9"', "E2": "=SUM(A1:A2)+0*TODAY()"}
    result = recalculator.fill(workbook(cells), [ALL], origin=Origin.SOLUTION)
    assert [result.values[ref(row, 5)] for row in (1, 2)] == ["15\u00e9", 15]


@pytest.mark.office
@pytest.mark.parametrize(
    "formula", ['=CELL("filename",A1)', '=INFO("osversion")', "=SUM(A2", "=A9&1"]
)
def test_values_that_cannot_be_known_are_not_computed(
    recalculator: Recalculator, formula: str
) -> None:
    cells = {"A2": 1, "A9": '=MID(CELL("filename"),1,9)', "E1": formula}
    asked = CellRange(SHEET, 1, 5, 1, 5)
    result = recalculator.fill(workbook(cells), [asked], origin=Origin.SOLUTION)
    assert "its value in Excel is not known" in result.not_calculated[ref(1, 5)]


UNREAD = {
    "a comment": commented,
    "a data table": with_data_table,
    "ten thousand parts": with_parts,
}


@pytest.mark.office
@pytest.mark.parametrize("beside", [None, '=INDIRECT("A1")'])
@pytest.mark.parametrize("what", UNREAD)
def test_parts_that_an_engine_cannot_open_are_removed_if_no_cell_needs_them(
    recalculator: Recalculator, what: str, beside: str | None
) -> None:
    cells: dict[str, object] = {"A1": True, "A2": 15, "E1": "=SUM(A1:A2)"}
    if beside is not None:
        cells["E2"] = beside
    book = open_workbook(UNREAD[what](package(cells)))
    asked = CellRange(SHEET, 1, 5, 2, 5)
    result = recalculator.fill(book, [asked], origin=Origin.SOLUTION)
    assert result.values[ref(1, 5)] == 15  # LibreOffice counts TRUE


UNRELATED = {
    "another workbook": {"E9": "='[other.xlsx]S'!A1"},
    "a slow search": {"E9": "=SUMPRODUCT((C:C=1)*(D:D=2))+MATCH(3,C:C,0)"},
    "a letter": {"C9": "\u00e9"},
    "a volatile function": {"E9": "=TODAY()"},
    "an unknown function": {"E9": "=MYMACRO(1)"},
    "a formula that depends on being an array formula": {"E9": "=SUM(A1:A2*2)"},
    "a reference from text": {"E9": '=INDIRECT("A1")'},
}


@pytest.mark.office
@pytest.mark.parametrize("what", UNRELATED)
def test_cells_that_a_cell_does_not_read_do_not_affect_its_engine(
    recalculator: Recalculator, what: str
) -> None:
    """LibreOffice reads each of these differently: as 16, #REF!, TRUE, 8."""
    cells: dict[str, object] = {
        "A1": True,
        "A2": 15,
        "E1": "=SUM(A1:A2)",
        "E2": '=MAX("5",2)',
        "E3": "=MIN(A1:A2)",
        "E4": "=AVERAGE(A1:A2)",
    }
    book = workbook(cells | UNRELATED[what])
    result = recalculator.fill(book, [ALL], origin=Origin.SOLUTION)
    assert [result.values[ref(row, 5)] for row in range(1, 5)] == [15, 5, 15, 15]


@pytest.mark.office
@pytest.mark.parametrize("sheet", ["Donn\u00e9es", "\u6570\u636e", "\u00dcbersicht 1"])
def test_sheets_of_any_name_are_read_by_every_engine(engines: dict[str, Any], sheet: str) -> None:
    made = openpyxl.Workbook()
    made.worksheets[0].title = SHEET
    other = made.create_sheet(sheet)
    other["A1"], other["A2"] = 4, "plain"
    for row, formula in enumerate(("'{0}'!A1+1", "SUM('{0}'!A1:A2)", "UPPER('{0}'!A2)"), 1):
        made.worksheets[0][f"A{row}"] = "=" + formula.format(sheet)
    stream = io.BytesIO()
    made.save(stream)
    for name in (LIBREOFFICE, IRONCALC, FORMUALIZER):
        values = computed(stream.getvalue(), engines[name])
        assert [values[row, 1] for row in (1, 2, 3)] == [5, 4, "PLAIN"], name


def test_the_end_of_an_engine_is_distinguished_from_its_output(engines: dict[str, Any]) -> None:
    deep = package({"A1": "=" + "IF(1," * 3000 + "1" + ")" * 3000})
    with pytest.raises(CrashedError):
        engines[IRONCALC].compute(deep, [ALL], timeout_s=30)
