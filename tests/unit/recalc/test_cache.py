"""Results cached by content."""

import datetime as dt
import json
import multiprocessing
import os
import tracemalloc
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from judge.files.writing import PART
from judge.recalc.cache import (
    CELL_BYTES,
    KEPT_BYTES,
    LEDGER,
    LOOKED_AFTER_EVERY,
    ResultCache,
    keep_within,
    prune,
    weight_bytes,
    written_bytes,
)
from judge.workbook.cell import CellRef, ComputedValues, ErrorValue

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


def test_a_lasting_result_is_read_from_disk_with_its_types(tmp_path: Path) -> None:
    ResultCache(tmp_path).put(KEY, VALUES, lasting=True)
    found = ResultCache(tmp_path).get(KEY)
    assert found is not None
    assert dict(found.values) == dict(VALUES.values)
    assert [type(value) for value in found.values.values()] == [
        type(value) for value in VALUES.values.values()
    ]
    assert dict(found.not_calculated) == dict(VALUES.not_calculated)
    assert (found.engines, found.notes) == (VALUES.engines, VALUES.notes)


def test_results_that_another_run_might_not_get_stay_in_memory(tmp_path: Path) -> None:
    cache = ResultCache(tmp_path)
    cache.put(KEY, VALUES, lasting=False)
    assert cache.get(KEY) is VALUES
    assert ResultCache(tmp_path).get(KEY) is None


def test_a_broken_entry_counts_as_missing(tmp_path: Path) -> None:
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


def test_memory_is_bounded_by_what_results_take() -> None:
    room = 10 * weight_bytes(VALUES)
    cache = ResultCache(memory_bytes=room)
    for number in range(11):
        cache.put(f"{number:064x}", VALUES, lasting=True)
    assert cache.get(f"{0:064x}") is None
    for number in range(1, 11):
        assert cache.get(f"{number:064x}") is VALUES
    many = {CellRef("S", row, 1): row for row in range(1, room // CELL_BYTES)}
    large = ComputedValues(values=many)
    cache.put("a" * 64, large, lasting=True)
    assert cache.get("a" * 64) is large
    assert cache.get(f"{5:064x}") is None
    cache.put("b" * 64, ComputedValues(values={**many, CellRef("S", 0, 2): "x"}), lasting=True)
    assert cache.get("b" * 64) is None
    assert cache.get("a" * 64) is large


def test_a_result_that_is_put_again_counts_once() -> None:
    cache = ResultCache(memory_bytes=2 * weight_bytes(VALUES))
    cache.put("a" * 64, VALUES, lasting=True)
    for _ in range(5):
        cache.put("b" * 64, VALUES, lasting=True)
    assert cache.get("a" * 64) is VALUES


@pytest.mark.slow
def test_results_of_a_small_workbook_take_no_more_memory_than_estimated() -> None:
    kept_bytes = KEPT_BYTES // 4
    cache = ResultCache(memory_bytes=kept_bytes)
    tracemalloc.start()
    try:
        for number in range(12):
            # As engines give them: every cell and every reason is an object of its own.
            values = {CellRef("S", row, number): row + 0.5 for row in range(5_000)}
            reasons = {CellRef("S", row, 99): f"why {row}" for row in range(5_000)}
            cache.put(f"{number:064x}", ComputedValues(values, reasons), lasting=False)
            del values, reasons
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept_bytes // 3 < used < kept_bytes


def keys(count: int) -> list[str]:
    return [f"{number:02x}" * 32 for number in range(count)]


def test_the_least_recently_used_results_are_dropped(tmp_path: Path) -> None:
    cache = ResultCache(tmp_path)
    for age, key in enumerate(reversed(keys(10))):
        cache.put(key, VALUES, lasting=True)
        os.utime(tmp_path / key[:2] / f"{key}.json", (1e9 - age, 1e9 - age))
    size = next(tmp_path.glob("*/*.json")).stat().st_size
    assert ResultCache(tmp_path).get(keys(10)[0]) is not None  # used just now
    prune(tmp_path, limit_bytes=8 * size)
    left = {key for key in keys(10) if ResultCache(tmp_path).get(key) is not None}
    assert left == {keys(10)[0], *keys(10)[-5:]}
    prune(tmp_path, limit_bytes=8 * size)
    assert len(list(tmp_path.glob("*/*.json"))) == len(left)


def test_the_disk_limit_is_enforced_while_entries_are_written(tmp_path: Path) -> None:
    cache = ResultCache(tmp_path, limit_bytes=1)
    for key in keys(LOOKED_AFTER_EVERY + 1):
        cache.put(key, VALUES, lasting=True)
    assert not list(tmp_path.glob("*/*.json"))


def test_entries_are_examined_only_if_they_take_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[Path] = []

    def watched(folder: Path, limit_bytes: int) -> int:
        looks.append(folder)
        return prune(folder, limit_bytes)

    monkeypatch.setattr("judge.recalc.cache.prune", watched)
    monkeypatch.setattr("judge.recalc.cache.LOOKED_AFTER_EVERY", 2)
    ResultCache(tmp_path).put(keys(1)[0], VALUES, lasting=True)
    size = next(tmp_path.glob("*/*.json")).stat().st_size
    assert (len(looks), written_bytes(tmp_path)) == (1, size)
    caches = [ResultCache(tmp_path, limit_bytes=20 * size) for _ in range(2)]
    for number, key in enumerate(keys(20)[1:]):
        caches[number % 2].put(key, VALUES, lasting=True)
    assert (len(looks), written_bytes(tmp_path)) == (1, 20 * size), "two processes count together"
    for key in keys(23)[20:]:
        caches[0].put(key, VALUES, lasting=True)
    assert len(looks) == 2
    kept = len(list(tmp_path.glob("*/*.json")))
    assert 15 <= kept <= 17
    (tmp_path / LEDGER).write_text("lost")
    keep_within(tmp_path, 20 * size)
    assert (len(looks), written_bytes(tmp_path)) == (3, kept * size), "counted anew"


def test_abandoned_partial_entries_are_removed_and_current_ones_stay(
    tmp_path: Path,
) -> None:
    (tmp_path / "ab").mkdir()
    left, fresh = tmp_path / "ab" / f"x{PART}", tmp_path / "ab" / f"y{PART}"
    for path in (left, fresh):
        path.write_text("{")
    os.utime(left, (1e9, 1e9))
    prune(tmp_path, limit_bytes=1)
    assert (left.exists(), fresh.exists()) == (False, True)


def test_an_incomplete_entry_is_written_again(tmp_path: Path) -> None:
    ResultCache(tmp_path).put(KEY, VALUES, lasting=True)
    (path,) = tmp_path.glob("*/*.json")
    whole = path.read_bytes()
    for length in range(0, len(whole), 97):
        path.write_bytes(whole[:length])
        assert ResultCache(tmp_path).get(KEY) is None
    ResultCache(tmp_path).put(KEY, VALUES, lasting=True)
    assert path.read_bytes() == whole


def _write_and_read(folder: Path, seed: int) -> int:
    cache = ResultCache(folder, limit_bytes=20_000)
    wrong = 0
    for turn in range(60):
        key = keys(12)[(turn * seed) % 12]
        cache.put(key, VALUES, lasting=True)
        prune(folder, 5_000 if turn % 10 == 0 else 20_000)
        found = ResultCache(folder).get(key)
        wrong += found is not None and dict(found.values) != dict(VALUES.values)
    return wrong


def test_runs_at_the_same_time_do_not_disturb_each_other(tmp_path: Path) -> None:
    with ProcessPoolExecutor(3, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert sum(pool.map(_write_and_read, [tmp_path] * 3, (1, 5, 7))) == 0
    assert not list(tmp_path.glob(f"*/*{PART}"))


def _place_something_else(path: Path, kind: str, aside: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "folder":
            path.mkdir()
        case "deep":
            path.write_text("[" * 100_000)
        case "link":
            aside.write_text("mine")
            path.symlink_to(aside)


@pytest.mark.parametrize("kind", ["fifo", "device", "folder", "deep", "link"])
def test_something_else_in_a_shared_folder_is_a_miss(kind: str, tmp_path: Path) -> None:
    cache, aside = ResultCache(tmp_path / "cache"), tmp_path / "aside"
    path = tmp_path / "cache" / KEY[:2] / f"{KEY}.json"
    _place_something_else(path, kind, aside)
    _place_something_else(tmp_path / "cache" / LEDGER, kind, aside)
    assert cache.get(KEY) is None
    cache.put(KEY, VALUES, lasting=True)
    assert ResultCache(tmp_path / "cache").get(KEY) is not None or kind == "folder"
    assert not aside.exists() or aside.read_text() == "mine"


@pytest.mark.parametrize(
    "changed",
    [
        {"values": [["S", 1, 1, "plain", 10**400]]},
        {"values": [["S", 1, 1, "span", [10**12, 0, 0]]]},
        {"values": [["S", 1, 1, "error", ["#N/A"]]]},
        {"values": [["S", "1", 1, "plain", 1]]},
        {"values": [["S", 0, 1, "plain", 1]]},
        {"values": [["S", 1, 10**9, "plain", 1]]},
        {"values": [[["S"], 1, 1, "plain", 1]]},
        {"not_calculated": [["S", 1, 1, 5]]},
        {"engines": [5]},
        {"notes": {"a": 1}, "engines": 5},
        {"values": None},
    ],
)
def test_an_entry_that_no_judge_wrote_is_a_miss(changed: dict[str, object], tmp_path: Path) -> None:
    ResultCache(tmp_path).put(KEY, VALUES, lasting=True)
    path = tmp_path / KEY[:2] / f"{KEY}.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))
    assert ResultCache(tmp_path).get(KEY) is None


def test_a_number_that_json_lacks_is_kept_only_in_memory(tmp_path: Path) -> None:
    endless = ComputedValues(values={CellRef("S", 1, 1): float("inf")})
    cache = ResultCache(tmp_path)
    cache.put(KEY, endless, lasting=True)
    assert cache.get(KEY) is endless
    assert ResultCache(tmp_path).get(KEY) is None


def test_pruning_follows_no_links(tmp_path: Path) -> None:
    """A shared cache may contain a link to someone's files, which would be removed as entries."""
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.json").write_text("x" * 1000)
    cache = tmp_path / "cache"
    ResultCache(cache).put(KEY, VALUES, lasting=True)
    (cache / "cd").symlink_to(mine)
    assert prune(cache, 0) == 0
    assert (mine / "thesis.json").exists()
