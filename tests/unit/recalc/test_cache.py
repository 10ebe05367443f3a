"""Results kept by content."""

import datetime as dt
from pathlib import Path

from judge.compare.cell import CellRef, ComputedValues, ErrorValue
from judge.recalc.cache import KEPT_IN_MEMORY, ResultCache

VALUES = ComputedValues(
    values={
        CellRef("S", 1, 1): 1.5,
        CellRef("S", 2, 1): True,
        CellRef("S", 3, 1): "text",
        CellRef("S", 4, 1): ErrorValue("#N/A"),
        CellRef("S", 5, 1): dt.datetime(2020, 1, 2, 3, 4, 5, 678_000),  # noqa: DTZ001
        CellRef("S", 6, 1): dt.time(12, 30),
        CellRef("S", 7, 1): dt.timedelta(days=-1, seconds=5),
        CellRef("S", 8, 1): dt.date(2020, 1, 2),
        CellRef("S", 9, 1): 7,
    },
    not_calculated={CellRef("S", 10, 1): "why"},
    engines=("libreoffice 1",),
    notes=("a note",),
)
KEY = "ab" * 32


def test_a_lasting_result_comes_back_from_disk_with_its_types(tmp_path: Path) -> None:
    ResultCache(tmp_path).put(KEY, VALUES, lasting=True)
    found = ResultCache(tmp_path).get(KEY)
    assert found is not None
    assert dict(found.values) == dict(VALUES.values)
    assert [type(value) for value in found.values.values()] == [
        type(value) for value in VALUES.values.values()
    ]
    assert dict(found.not_calculated) == dict(VALUES.not_calculated)
    assert (found.engines, found.notes) == (VALUES.engines, VALUES.notes)


def test_what_would_not_be_computed_again_stays_in_memory(tmp_path: Path) -> None:
    cache = ResultCache(tmp_path)
    cache.put(KEY, VALUES, lasting=False)
    assert cache.get(KEY) is VALUES
    assert ResultCache(tmp_path).get(KEY) is None


def test_a_broken_entry_counts_as_none(tmp_path: Path) -> None:
    ResultCache(tmp_path).put(KEY, VALUES, lasting=True)
    (entry,) = tmp_path.rglob("*.json")
    entry.write_text('{"format": 1, "values": [[1]]}')
    assert ResultCache(tmp_path).get(KEY) is None
    entry.write_text("torn")
    assert ResultCache(tmp_path).get(KEY) is None


def test_a_folder_that_cannot_be_written_costs_only_the_entry(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("not a folder")
    cache = ResultCache(place)
    cache.put(KEY, VALUES, lasting=True)
    assert cache.get(KEY) is VALUES


def test_memory_is_bounded() -> None:
    cache = ResultCache()
    for number in range(KEPT_IN_MEMORY + 1):
        cache.put(f"{number:064x}", VALUES, lasting=True)
    assert cache.get(f"{0:064x}") is None
    assert cache.get(f"{KEPT_IN_MEMORY:064x}") is VALUES
