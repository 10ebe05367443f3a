"""A hostile PDF can harm only the process that reads it, which has limits."""

from __future__ import annotations

import contextlib
import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from judge.cli.main import judge as judge_command
from judge.compare.files.pages import _library
from judge.compare.sealed import UnreadableFileError
from judge.recalc.computing import EngineCompute
from judge.recalc.select import open_recalculator
from judge.sandbox import open_sandbox
from tests.unit.compare.files.hostile_pdfs import HONEST, READABLE, UNREADABLE, distinct_pages
from tests.unit.compare.files.test_metrics import BROKEN, DIFFERENT, EQUAL, file, said
from tests.unit.suites.test_desktop import make, record
from tests.unit.suites.test_desktop import pages as pdf_pages

pytestmark = pytest.mark.bubblewrap


@pytest.fixture(scope="module")
def compute() -> Iterator[EngineCompute]:
    with (
        contextlib.closing(open_sandbox("bubblewrap")) as sandbox,
        contextlib.closing(open_recalculator(sandbox, engine="formualizer")) as recalculator,
    ):
        yield EngineCompute(recalculator)


def read(compute: EngineCompute, data: bytes, library: bytes = b"") -> dict[str, Any]:
    library = library or _library()
    options = {"library_bytes": len(library), "texts": True}
    return dict(compute.read_file("pypdf", library + data, options))


def is_read(compute: EngineCompute) -> bool:
    return read(compute, HONEST) == {"pages": 1, "texts": ["Total 7"]}


def counted(compute: EngineCompute, data: bytes, number: int) -> str:
    rule = {"relation": "eq", "ref_value": number}
    asked = {"metrics": [{"func": "check_pdf_pages", "expected": rule}]}
    return said(asked, file(data), compute=compute)


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_is_a_fault_of_the_answer_with_its_reason(
    compute: EngineCompute, name: str
) -> None:
    data = UNREADABLE[name]()
    with pytest.raises(UnreadableFileError) as raised:
        read(compute, data)
    assert str(raised.value)
    assert "Traceback" not in str(raised.value)
    assert counted(compute, data, 1) in {BROKEN, EQUAL, DIFFERENT}
    assert is_read(compute)


@pytest.mark.parametrize("name", READABLE)
def test_what_can_be_read_is_read_and_does_nothing(compute: EngineCompute, name: str) -> None:
    make_file, count = READABLE[name]
    assert read(compute, make_file())["pages"] == count
    assert is_read(compute)


def test_pages_are_counted_without_reading_their_text(compute: EngineCompute) -> None:
    many = distinct_pages(501)
    with pytest.raises(UnreadableFileError, match="has more than 500 pages"):
        read(compute, many)
    for profile in ("standard", "official"):
        rule = {"relation": "eq", "ref_value": 501}
        asked = {"metrics": [{"func": "check_pdf_pages", "expected": rule}]}
        assert said(asked, file(many), compute=compute, profile=profile) == EQUAL


@pytest.mark.parametrize(
    ("name", "verdict"),
    [("page tree with a loop", "IW"), ("encrypted", "IW"), ("stream of 2 GiB", "AC")],
)
def test_a_command_judges_the_answer_and_ends_as_usual(
    tmp_path: Path, name: str, verdict: str
) -> None:
    suite = make(tmp_path / "suite", [record("1", pdf_pages("and", "a.pdf"))])
    outputs = tmp_path / "outputs"
    outputs.mkdir()
    (outputs / "1_output.pdf").write_bytes(UNREADABLE[name]())
    arguments = ["score", str(outputs), "--dataset", str(suite), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(judge_command, [*arguments, "--sandbox", "bubblewrap"])
    assert done.exit_code == 0, done.output
    (line,) = (tmp_path / "out/cases.jsonl").read_text().splitlines()
    case = json.loads(line)
    assert case["verdict"] == verdict, case  # a page is counted, whatever is on it
    assert "Traceback" not in done.output


# -- the reader itself is taken over ---------------------------------------------------------------

PROCESSOR_S = 2.0

# Each stands in for pypdf: what a fault in it would let a file do.
TAKEN_OVER = {
    "memory": ("kept = [bytearray(64 << 20) for _ in range(10_000)]", "out of memory"),
    "processor time": ("while True: pass", "2 s of processor time"),
    "depth": ("self.__init__(file)", "RecursionError"),
    "the end": ("import os; os._exit(0)", "crashed"),
    "a signal": ("import os; os.abort()", "crashed"),
}


def _library_that(does: str) -> bytes:
    """Replaces pypdf by a library whose reader does something else."""
    source = f"class PdfReader:\n    def __init__(self, file):\n        {does}\n"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("pypdf/__init__.py", source)
    return buffer.getvalue()


@pytest.mark.parametrize("name", TAKEN_OVER)
def test_a_reader_that_is_taken_over_is_bounded(compute: EngineCompute, name: str) -> None:
    does, reason = TAKEN_OVER[name]
    library = _library_that(does)
    options = {"library_bytes": len(library), "texts": True}
    # The others end at their own bound, however long a busy machine takes to get there.
    timeout_s = PROCESSOR_S if name == "processor time" else 60.0
    with pytest.raises(UnreadableFileError, match=reason):
        compute._engine(office=False).read_file(
            "pypdf", library + HONEST, options, timeout_s=timeout_s
        )
    assert is_read(compute)
