"""Folders for a single calculation are removed when it has ended, whatever ended it."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from judge.recalc.services import common, folders
from judge.recalc.services.children import ReadyChild
from judge.recalc.services.common import Answer, CannotStartError, Request
from judge.recalc.services.folders import Folder, TemporaryFolder, write_book
from judge.recalc.services.office import Office

pytestmark = pytest.mark.slow

MEMORY_BYTES = 4 << 30
REQUEST = b'\x00\x00\x00\x11{"timeout_s": 5}\n'


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def answers(_: Request, workbook: bytes) -> Answer:
    return {"values": [write_book(tempfile.gettempdir(), workbook)]}


def litters(_: Request, __: bytes) -> Answer:
    for name in ("one", "two"):
        Path(name, "deep").mkdir(parents=True)
        Path(name, "deep", "file").write_bytes(bytes(9999))
    Path("two", "deep").chmod(0)
    Path("two").chmod(0)
    Path("link").symlink_to("/")
    with tempfile.NamedTemporaryFile(delete=False) as file:
        file.write(b"left")
    return {"values": []}


def crashes(_: Request, workbook: bytes) -> Answer:
    write_book(tempfile.gettempdir(), workbook)
    os.abort()


def computes_on(_: Request, workbook: bytes) -> Answer:
    write_book(tempfile.gettempdir(), workbook)
    while True:
        pass


def hangs(_: Request, workbook: bytes) -> Answer:
    write_book(tempfile.gettempdir(), workbook)
    time.sleep(1000)
    return {}


def is_killed(_: Request, workbook: bytes) -> Answer:
    write_book(tempfile.gettempdir(), workbook)
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def raises(_: Request, workbook: bytes) -> Answer:
    write_book(tempfile.gettempdir(), workbook)
    raise ValueError("no workbook")


ENDS: dict[str, tuple[Callable[[Request, bytes], Answer], str | None]] = {
    "an answer": (answers, None),
    "an answer and litter": (litters, None),
    "a crash": (crashes, "crashed"),
    "a time-out": (computes_on, "longer than 0.5 s of processor time"),
    "a kill": (is_killed, "crashed"),
    "an exception": (raises, "no workbook"),
}


def child(compute: Callable[[Request, bytes], Answer]) -> ReadyChild:
    return ReadyChild(lambda *asked: [compute(*asked)], MEMORY_BYTES, TemporaryFolder())


@pytest.mark.parametrize("end", ENDS)
def test_nothing_is_left_however_a_calculation_ends(temporary: Path, end: str) -> None:
    compute, error = ENDS[end]
    ready = child(compute)
    (folder,) = temporary.iterdir()
    said = ready.ask(REQUEST + b"a workbook", timeout_s=0.5 if compute is computes_on else 30)
    if error is None:
        assert "error" not in said
    else:
        assert error in str(said["error"])
        assert "unavailable" not in said
    if compute is answers:
        assert said["values"] == [str(folder / "book.xlsx")]
    assert list(temporary.iterdir()) == []


def test_nothing_is_left_of_one_that_was_never_asked(temporary: Path) -> None:
    child(answers).end()
    assert list(temporary.iterdir()) == []


def test_a_failure_for_lack_of_space_is_distinguished(monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = TemporaryFolder()
    for compute, full in ((raises, True), (answers, False)):
        ready = ReadyChild(
            lambda *asked, compute=compute: [compute(*asked)], MEMORY_BYTES, temporary
        )
        with monkeypatch.context() as patched:
            patched.setattr(folders, "MIN_BYTES", 1 << 62)
            said = ready.ask(REQUEST + b"a workbook", timeout_s=30)
        assert said.get("unavailable", False) is full


def test_a_folder_that_is_full_or_missing_is_found_before_anything_begins(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = TemporaryFolder()
    looked.check()
    monkeypatch.setattr(folders, "MIN_BYTES", 1 << 62)
    with pytest.raises(CannotStartError, match="full"):
        looked.check()
    with pytest.raises(CannotStartError, match="full"):
        child(answers)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary / "nowhere"))
    assert looked.is_full()
    for fails in (looked.check, looked.free_bytes, lambda: Folder("x"), lambda: child(answers)):
        with pytest.raises(CannotStartError, match="temporary folder"):
            fails()


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Free mebibytes as reported by the system; the last number is repeated."""
    said = [1000]

    class Facts:
        f_frsize, f_files, f_favail = 1 << 20, 10_000, 10_000

        @property
        def f_bavail(self) -> int:
            return said[-1]

    monkeypatch.setattr(os, "statvfs", lambda _: Facts())
    return said


def test_lost_space_is_noticed_before_all_of_it_is_gone(free: list[int]) -> None:
    looked = TemporaryFolder()
    for left in (1000, 500):
        free.append(left)
        looked.check()
    free.append(499)
    with pytest.raises(CannotStartError, match="full"):
        looked.check()
    assert not looked.is_full()


def test_an_office_that_leaves_much_between_workbooks_is_ended_with_its_folder(
    temporary: Path, free: list[int]
) -> None:
    office = Office()
    office.folder = Folder("office-")
    office.free_at_start = office.temporary.free_bytes()
    free.append(free[-1] - 4)
    office.tidy()
    assert len(list(temporary.iterdir())) == 1
    free.append(free[-1] - 1)
    office.tidy()
    assert list(temporary.iterdir()) == []


def test_a_workbook_that_cannot_be_written_is_not_a_fault_of_its_own(temporary: Path) -> None:
    with pytest.raises(CannotStartError, match="ENOENT"):
        write_book(str(temporary / "nowhere"), b"")


def test_time_that_passes_without_a_processor_is_not_a_fault_of_a_workbook(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(common, "HANG_S", 0.2)
    monkeypatch.setattr(common, "HANG_FACTOR", 0)
    said = child(hangs).ask(REQUEST + b"a workbook", timeout_s=30)
    assert "hangs" in str(said["error"])
    assert said["unavailable"] is True
    assert "timed_out" not in said
    assert list(temporary.iterdir()) == []


def test_waiting_is_not_counted() -> None:
    def waits(_: Request, __: bytes) -> Answer:
        time.sleep(2.5)
        return {"values": []}

    assert child(waits).ask(REQUEST, timeout_s=2) == {"values": []}


def test_a_child_that_was_killed_says_so() -> None:
    assert child(is_killed).ask(REQUEST, timeout_s=30)["killed"] is True
    assert "killed" not in child(crashes).ask(REQUEST, timeout_s=30)


@pytest.mark.parametrize("then", [answers, crashes, computes_on, raises])
def test_a_second_engine_has_a_limit_of_its_own(
    temporary: Path, then: Callable[[Request, bytes], Answer]
) -> None:
    def both(request: Request, workbook: bytes) -> Iterator[Answer]:
        yield {"values": []}
        yield then(request, workbook)

    ready = ReadyChild(both, MEMORY_BYTES, TemporaryFolder())
    limit_s = 0.5 if then is computes_on else 30
    said = ready.ask(REQUEST + b"a workbook", limit_s, engines=2)
    assert said["values"] == []
    second = said["then"]
    assert isinstance(second, dict)
    error = next(error for compute, error in ENDS.values() if compute is then)
    assert (error or "") in str(second.get("error", ""))
    assert ("error" in second) is (error is not None)
    assert list(temporary.iterdir()) == []


def test_a_second_engine_is_not_waited_for_where_the_first_has_no_answer() -> None:
    ready = ReadyChild(lambda *asked: [raises(*asked)], MEMORY_BYTES, TemporaryFolder())
    said = ready.ask(REQUEST + b"a workbook", 30, engines=2)
    assert "then" not in said
