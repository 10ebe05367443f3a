"""Which cells are computed, which are trusted, which stay without a value."""

from __future__ import annotations

import datetime as dt
import gc
import io
import weakref
import zipfile
from pathlib import Path

import pytest

import judge.formulas
import judge.recalc
import judge.sandbox
import judge.workbook
from judge.core.submission import Origin
from judge.errors import JudgeError, RecalcError, WorkbookError
from judge.recalc import calculation, wanted
from judge.recalc.cache import ResultCache
from judge.recalc.calculation import UNKNOWN_FUNCTION
from judge.recalc.contract import EngineUnavailableError
from judge.recalc.names import Mode
from judge.recalc.policy import Recalculator
from judge.recalc.rewrite import with_values
from judge.recalc.trust import read_table
from judge.recalc.wanted import calculates, reader_value
from judge.workbook.cell import (
    NOTHING_COMPUTED,
    CellRange,
    CellValue,
    ErrorValue,
    WorkbookFacts,
)
from judge.workbook.reader import Workbook, open_workbook
from tests.unit.compare.cells.packages import Book, cell, in_namespaces, relations, sheet_data
from tests.unit.recalc.fakes import ALL, SHEET, ScriptedEngine, package, ref, workbook

NO_TRUST = read_table({"measured_with": {}, "functions": {}})


def recalculator(
    *engines: ScriptedEngine,
    mode: Mode = "auto",
    cache: ResultCache | None = None,
    lenient_names: bool = False,
    missing: tuple[str, ...] = (),
) -> Recalculator:
    return Recalculator(
        engines,
        mode=mode,
        cache=cache,
        lenient_names=lenient_names,
        trust=NO_TRUST,
        missing=missing,
    )


def office(**values: CellValue) -> ScriptedEngine:
    cells = {ref(int(place[1:]), ord(place[0]) - 64): value for place, value in values.items()}
    return ScriptedEngine("libreoffice", cells)


def as_saved_by(application: str, version: str, data: bytes, *, full: bool = False) -> Workbook:
    """Returns the same workbook with other facts."""
    source, target = zipfile.ZipFile(io.BytesIO(data)), io.BytesIO()
    with zipfile.ZipFile(target, "w") as copy:
        for name in source.namelist():
            content = source.read(name)
            if name == "docProps/app.xml":
                content = (
                    '<Properties xmlns="http://schemas.openxmlformats.org/officeDocument/2006/'
                    f'extended-properties"><Application>{application}</Application>'
                    f"<AppVersion>{version}</AppVersion></Properties>"
                ).encode()
            if name == "xl/workbook.xml" and not full:
                content = content.replace(b' fullCalcOnLoad="1"', b"")
            copy.writestr(name, content)
    return open_workbook(target.getvalue())


def test_no_formula_in_the_range_starts_nothing() -> None:
    engine = office()
    book = workbook({"A1": 1, "B9": "=A1"})
    computed = recalculator(engine).fill(
        book, [CellRange(SHEET, 1, 1, 5, 1)], origin=Origin.SOLUTION
    )
    assert computed is NOTHING_COMPUTED
    assert engine.asked == []


def test_only_formula_cells_of_the_range_are_computed() -> None:
    engine = office(A2=5, A3=6, B2=7, A1=99)
    book = workbook({"A1": 1, "A2": "=A1+4", "A3": "=A2+1", "B2": "=A1"})
    computed = recalculator(engine).fill(
        book, [CellRange(SHEET, 1, 1, 9, 1)], origin=Origin.SOLUTION
    )
    assert dict(computed.values) == {ref(2): 5, ref(3): 6}
    assert computed.engines == ("libreoffice 1",)


def test_a_workbook_is_freed_without_the_collector_of_garbage() -> None:
    gc.collect()
    gc.disable()
    try:
        engine, other = office(B1=2), ScriptedEngine("formualizer", {})
        book = workbook({"A1": "a", "A2": "b", "B1": "=A3*2", "B2": '=COUNTIF(A1:A3,"<>"&A2)'})
        recalculator(engine, other).fill(book, [ALL], origin=Origin.SOLUTION)
        assert [asked for one in (engine, other) for asked in one.asked]
        package_of_book = weakref.ref(book.package)
        del book
        assert package_of_book() is None
    finally:
        gc.enable()


def test_never_computes_nothing() -> None:
    book = workbook({"A1": "=1"})
    engine = office(A1=1)
    computed = recalculator(engine, mode="never").fill(book, [ALL], origin=Origin.SOLUTION)
    assert computed is NOTHING_COMPUTED
    assert recalculator(engine, mode="never").identity == ("never",)


@pytest.mark.parametrize(
    ("origin", "application", "version", "full", "mode", "computed"),
    [
        (Origin.GOLD, "Microsoft Excel", "16.0300", False, "auto", False),
        (Origin.FINISHED, "Microsoft Excel", "16.0300", False, "auto", False),
        (Origin.GOLD, "Microsoft Excel", "16.0300", True, "auto", True),
        (Origin.GOLD, "Microsoft Excel", "16.0300", False, "always", True),
        (Origin.GOLD, "Microsoft Excel", "3.1", False, "auto", True),
        (Origin.GOLD, "Microsoft Excel", "12.0000", True, "auto", True),
        (Origin.GOLD, "Microsoft Excel", "12.0000", False, "auto", False),
        (Origin.GOLD, "LibreOffice/26.8$Linux", "15.0000", False, "auto", False),
        (Origin.GOLD, "SomeLibrary", "1.0", False, "auto", True),
        (Origin.SOLUTION, "Microsoft Excel", "16.0300", False, "auto", True),
    ],
)
def test_a_cached_value_is_trusted_only_from_a_program_that_calculates(
    origin: Origin, application: str, version: str, full: bool, mode: Mode, computed: bool
) -> None:
    cached = with_values(package({"A1": "=1+1"}), {ref(1): 99})
    book = as_saved_by(application, version, cached, full=full)
    engine = office(A1=2)
    result = recalculator(engine, mode=mode).fill(book, [ALL], origin=origin)
    assert (ref(1) in result.values) is computed
    assert bool(engine.asked) is computed


def test_a_missing_value_of_a_trusted_workbook_is_computed_alone() -> None:
    cached = with_values(package({"A1": "=1+1", "A2": "=2+2"}), {ref(1): 99})
    book = as_saved_by("Microsoft Excel", "16.0300", cached)
    result = recalculator(office(A1=2, A2=4)).fill(book, [ALL], origin=Origin.GOLD)
    assert dict(result.values) == {ref(2): 4}


def test_facts_without_an_application_are_not_trusted() -> None:
    assert not calculates(WorkbookFacts(None, None, False, False, ()))
    assert calculates(WorkbookFacts("Microsoft Macintosh Excel", None, False, False, ()))
    for version in ("\u00b2.1", "9" * 5000):  # digits that are no number
        assert calculates(WorkbookFacts("Microsoft Excel", version, False, False, ()))


def test_cells_filled_by_an_array_formula_are_computed() -> None:
    engine = office(B2=1, B3=2, B4=3)
    book = workbook({"A1": 1, "B2": ("B2:B4", "=A1:A3*2")})
    result = recalculator(engine).fill(book, [CellRange(SHEET, 3, 2, 9, 2)], origin=Origin.SOLUTION)
    assert dict(result.values) == {ref(3, 2): 2, ref(4, 2): 3}


def test_a_submission_in_which_filled_cells_cannot_be_determined_is_unreadable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wanted, "FILLED_LIMIT", 5)
    data = with_values(package({"A1": ("A1:C3", "=1")}), {ref(1): 99})
    book = as_saved_by("Microsoft Excel", "16.0300", data)
    with pytest.raises(WorkbookError, match="fill more than 5 cells") as caught:
        recalculator(office()).fill(book, [ALL], origin=Origin.SOLUTION)
    assert caught.value.culprit is book.package
    assert not recalculator(office()).fill(book, [ALL], origin=Origin.GOLD).values


def pivot_book(refresh: str, location: str = "A3:B4") -> Workbook:
    """A pivot table with forged values, next to constants."""
    parts = {
        "xl/worksheets/_rels/sheet1.xml.rels": relations(("rId1", "pivotTable", "../p/t.xml")),
        "xl/p/_rels/t.xml.rels": relations(("rId1", "pivotCacheDefinition", "c.xml")),
        "xl/p/t.xml": in_namespaces(
            f'<pivotTableDefinition name="P" cacheId="1"><location ref="{location}"/>'
            "</pivotTableDefinition>"
        ),
        "xl/p/c.xml": in_namespaces(f"<pivotCacheDefinition {refresh}><x/></pivotCacheDefinition>"),
    }
    cells = [cell(f"{column}{row}", 99) for row in range(1, 7) for column in "AB"]
    book = Book({SHEET: sheet_data(*cells)}, parts=parts)
    return open_workbook(book.to_bytes())


@pytest.mark.parametrize("refresh", ['refreshOnLoad="1"', 'refreshOnLoad="true"'])
def test_cells_of_a_pivot_table_that_is_refreshed_on_load_are_not_trusted(refresh: str) -> None:
    engine = office()
    result = recalculator(engine).fill(
        pivot_book(refresh), [CellRange(SHEET, 4, 1, 6, 1)], origin=Origin.SOLUTION
    )
    assert set(result.not_calculated) == {ref(4)}
    assert "pivot table (A3:B4)" in result.not_calculated[ref(4)]
    assert not engine.asked


@pytest.mark.parametrize(
    ("refresh", "mode", "origin"),
    [
        ("", "auto", Origin.SOLUTION),
        ('refreshOnLoad="0"', "auto", Origin.SOLUTION),
        ('refreshOnLoad="1"', "never", Origin.SOLUTION),
        ('refreshOnLoad="1"', "auto", Origin.GOLD),
        ('refreshOnLoad="1"', "auto", Origin.FINISHED),
    ],
)
def test_cells_of_other_pivot_tables_are(refresh: str, mode: Mode, origin: Origin) -> None:
    result = recalculator(office(), mode=mode).fill(pivot_book(refresh), [ALL], origin=origin)
    assert result.not_calculated == {}


def test_a_pivot_table_without_a_place_makes_a_submission_unreadable() -> None:
    with pytest.raises(WorkbookError, match="pivot table at 'zzz'"):
        recalculator(office()).fill(
            pivot_book('refreshOnLoad="1"', "zzz"), [ALL], origin=Origin.SOLUTION
        )


def test_serials_become_dates_as_the_reader_makes_them() -> None:
    engine = office(A1=44348, A2=0.5, A3=1.5, A4=44348, A5=-5)
    book = workbook(
        {f"A{row}": "=B1" for row in range(1, 6)},
        A1="yyyy-mm-dd",
        A2="hh:mm",
        A3="[h]:mm",
        A5="yyyy-mm-dd",
    )
    result = recalculator(engine).fill(book, [ALL], origin=Origin.SOLUTION)
    assert [result.values[ref(row)] for row in range(1, 5)] == [
        dt.datetime(2021, 6, 1),  # noqa: DTZ001 - spreadsheet dates have no zone
        dt.time(12),
        dt.timedelta(days=1.5),
        44348,
    ]


def test_the_1904_system_is_kept() -> None:
    first = dt.datetime(1905, 1, 1)  # noqa: DTZ001
    assert reader_value(366, "d/m/yy", date_1904=True) == first
    assert reader_value(1e12, "d/m/yy", date_1904=False) == ErrorValue("#VALUE!")
    assert reader_value(True, "d/m/yy", date_1904=False) is True


def test_true_and_false_are_distinguished_from_numbers() -> None:
    book = workbook({"A1": "=B1>1", "A2": "=B1+1"})
    result = recalculator(office(A1=1, A2=1)).fill(book, [ALL], origin=Origin.SOLUTION)
    assert result.values[ref(1)] is True
    assert result.values[ref(2)] == 1
    assert result.values[ref(2)] is not True


def test_newer_names_without_prefix_are_unknown_to_every_engine() -> None:
    engine = office(A1=ErrorValue("#NAME?"))
    book = workbook({"A1": "=XLOOKUP(1,B:B,C:C)"})
    result = recalculator(engine).fill(book, [ALL], origin=Origin.SOLUTION)
    assert engine.asked[0][1] == {"XLOOKUP": UNKNOWN_FUNCTION}
    assert result.values[ref(1)] == ErrorValue("#NAME?")
    assert "without the _xlfn. prefix, #NAME? in Excel: XLOOKUP" in result.notes[0]


def test_lenient_names_compute_them_and_say_so() -> None:
    engine = office(A1=3)
    book = workbook({"A1": "=FILTER(B:B,C:C)+SWITCH(1,1,2)"})
    lenient = recalculator(engine, lenient_names=True)
    result = lenient.fill(book, [ALL], origin=Origin.SOLUTION)
    assert engine.asked[0][1] == {"FILTER": "_xlfn._xlws.FILTER", "SWITCH": "_xlfn.SWITCH"}
    assert "lenient names" in result.notes[0]
    assert "lenient names" in lenient.identity


def test_volatile_functions_are_noted_wherever_they_are() -> None:
    book = workbook({"A1": "=B1+1", "B1": "=TODAY()"})
    result = recalculator(office(A1=3)).fill(
        book, [CellRange(SHEET, 1, 1, 1, 1)], origin=Origin.SOLUTION
    )
    assert result.notes == ("volatile functions, computed for now: TODAY",)


def test_implicit_intersection_is_noted() -> None:
    book = workbook({"A1": "=SUM(IF(B1:B3>1,1,0))", "A2": ("A2", "=SUM(IF(B1:B3>1,1,0))")})
    result = recalculator(office(A1=1, A2=2)).fill(book, [ALL], origin=Origin.SOLUTION)
    (note,) = result.notes
    assert note.startswith("1 formulas take a range where Excel expects one value")
    assert note.endswith("S!A1")


def test_one_cell_is_judged_by_what_it_depends_on_itself() -> None:
    trust = read_table(
        {
            "measured_with": {},
            "functions": {"COS": {"ironcalc": [9, 9]}, "EXP": {"ironcalc": [1, 9]}},
        }
    )
    engine = ScriptedEngine("ironcalc", {ref(1): 1, ref(2): 2})
    others = [ScriptedEngine(name, {}, {}) for name in ("formualizer", "libreoffice")]
    alone = Recalculator([engine, *others], trust=trust)
    result = alone.fill(
        workbook({"A1": "=COS(B1)", "A2": "=EXP(B1)"}), [ALL], origin=Origin.SOLUTION
    )
    assert dict(result.values) == {ref(1): 1}
    assert ref(2) in result.not_calculated


def test_an_uncomputed_cell_is_reported_with_what_is_missing() -> None:
    book = workbook({"A1": "=CUBEVALUE(1)"})
    result = recalculator(missing=("libreoffice",)).fill(book, [ALL], origin=Origin.SOLUTION)
    assert result.values == {}
    assert result.not_calculated[ref(1)] == (
        "no calculation engine is available; not installed: libreoffice (`judge sandbox build`)"
    )


def test_the_same_content_is_computed_once(tmp_path: Path) -> None:
    engine = office(A1=2)
    data = package({"A1": "=1+1", "A2": "=2"})
    first = recalculator(engine, cache=ResultCache(tmp_path))
    first.fill(open_workbook(data), [ALL], origin=Origin.SOLUTION)
    again = first.fill(open_workbook(data), [ALL], origin=Origin.SOLUTION)
    assert len(engine.asked) == 1
    assert again.values[ref(1)] == 2
    second = office(A1=99)
    recalculator(second, cache=ResultCache(tmp_path)).fill(
        open_workbook(data), [ALL], origin=Origin.SOLUTION
    )
    assert second.asked == []
    recalculator(second, cache=ResultCache(tmp_path)).fill(
        open_workbook(data), [CellRange(SHEET, 1, 1, 1, 1)], origin=Origin.SOLUTION
    )
    assert len(second.asked) == 1


def test_another_version_of_the_code_reuses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = package({"A1": "=1+1"})
    for value, digest in ((2, "one"), (3, "other")):
        monkeypatch.setattr(calculation, "code_digest", lambda digest=digest: digest)
        filled = recalculator(office(A1=value), cache=ResultCache(tmp_path)).fill(
            open_workbook(data), [ALL], origin=Origin.SOLUTION
        )
        assert filled.values[ref(1)] == value


def test_the_digest_of_the_code_covers_each_package_and_misses_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = calculation.code_digest.__wrapped__()
    (tmp_path / "deep").mkdir()
    module = tmp_path / "deep" / "module.py"
    for covered in (judge.recalc, judge.formulas, judge.workbook, judge.sandbox):
        found = set()
        with monkeypatch.context() as patched:
            patched.setattr(covered, "__path__", [str(tmp_path)])
            for text in ("one = 1", "one = 2"):
                module.write_text(text)
                found.add(calculation.code_digest.__wrapped__())
            module.unlink()
            with pytest.raises(JudgeError, match=covered.__name__):
                calculation.code_digest.__wrapped__()
        assert len(found | {before}) == 3
    assert calculation.code_digest.__wrapped__() == before


def test_an_engine_that_does_not_answer_now_does_not_count_as_missing() -> None:
    class Silent(ScriptedEngine):
        why: RecalcError = RecalcError("not installed")

        @property
        def version(self) -> str:
            raise self.why

    engine = Silent("libreoffice", {})
    absent = recalculator(engine, office()).identity
    assert [each.split()[0] for each in absent] == ["libreoffice", "rules"]
    engine.why = EngineUnavailableError("no answer")
    assert recalculator(engine).identity[0] == "libreoffice of an unknown version"


def test_a_result_without_a_crashed_engine_is_not_kept(tmp_path: Path) -> None:
    data = package({"A1": "=1+1"})
    broken = ScriptedEngine("libreoffice", RecalcError("boom"))
    result = recalculator(broken, cache=ResultCache(tmp_path)).fill(
        open_workbook(data), [ALL], origin=Origin.SOLUTION
    )
    assert "boom" in result.not_calculated[ref(1)]
    assert list(tmp_path.rglob("*.json")) == []


def test_engines_are_closed() -> None:
    engine = office()
    recalculator(engine).close()
    assert engine.closed
