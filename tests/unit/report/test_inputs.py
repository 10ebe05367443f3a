"""Inputs as a page shows them: bounded, and never a traceback."""

from __future__ import annotations

import base64
import hashlib
import struct
from pathlib import Path

import pytest

from judge.core.submission import AnswerForm
from judge.core.task import AbsentInput, FileKind, InputFile, Task, TestCase
from judge.files.media import image_size
from judge.report.html.pictures import PictureShelf, shown_inputs
from tests.browser.made_run import workbook
from tests.conftest import REPOSITORY

PNG = (REPOSITORY / "dataset" / "sample-typed" / "files" / "bars" / "bars.png").read_bytes()
JPEG = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xff\xc0\x00\x11\x08\x00\x1e\x00\x28\x03" + b"\0" * 20
GIF = b"GIF89a" + struct.pack("<HH", 7, 9) + b"\0" * 8
WEBP = b"RIFF\x24\x00\x00\x00WEBP"
LOSSY = WEBP + b"VP8 " + b"\0" * 10 + struct.pack("<HH", 16, 12)
LOSSLESS = WEBP + b"VP8L" + b"\0" * 4 + b"\x2f" + struct.pack("<I", 15 | 11 << 14) + b"\0" * 8
EXTENDED = WEBP + b"VP8X" + b"\0" * 8 + b"\x0f\0\0\x0b\0\0"


@pytest.mark.parametrize(
    ("data", "size"),
    [
        (PNG, (240, 160)),
        (JPEG, (40, 30)),
        (GIF, (7, 9)),
        (LOSSY, (16, 12)),
        (LOSSLESS, (16, 12)),
        (EXTENDED, (16, 12)),
        (PNG[:20], None),
        (JPEG[:12], None),
        (b"\xff\xd8\xff\xe0\x00\x00" + b"\xff" * 100, None),
        (LOSSY[:22], None),
        (b"<svg/>", None),
        (b"", None),
    ],
)
def test_the_size_is_that_of_the_header(data: bytes, size: tuple[int, int] | None) -> None:
    assert image_size(data) == size


@pytest.fixture
def shelf(tmp_path: Path) -> PictureShelf:
    return PictureShelf(tmp_path / "run")


def picture(tmp_path: Path, name: str, data: bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


def test_a_picture_is_named_by_its_hash_and_given_once(shelf: PictureShelf, tmp_path: Path) -> None:
    path = picture(tmp_path, "a.jpg", PNG)
    shown = shelf.of_file(path)
    digest = hashlib.sha256(PNG).hexdigest()
    assert shown == {
        "name": "a.jpg", "sha256": digest, "media_type": "image/png",
        "width": 240, "height": 160, "bytes": len(PNG),
    }  # fmt: skip
    shelf.of_file(picture(tmp_path, "copy.png", PNG))
    other = shelf.of_file(picture(tmp_path, "b.gif", GIF))["sha256"]
    texts = shelf.within(1 << 20)
    assert {base64.b64decode(each) for each in texts.values()} == {PNG, GIF}
    assert shelf.within(100).keys() == {other}, "the smallest first"
    path.write_bytes(GIF)
    (tmp_path / "copy.png").write_bytes(GIF)
    assert shelf.text_of(digest) is None, "the file was changed"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"<svg onload='alert(1)'/>", "not a picture"),
        (b"\x89PNG\r\n\x1a\n", "not a picture"),
        (b"BM" + b"\0" * 60, "not a picture"),
        (PNG[:16] + struct.pack(">II", 100_000, 100_000) + PNG[24:], "too many"),
    ],
)
def test_what_cannot_be_shown_is_a_line(
    shelf: PictureShelf, tmp_path: Path, data: bytes, said: str
) -> None:
    shown = shelf.of_file(picture(tmp_path, "x.png", data))
    assert said in shown["problem"]
    assert "sha256" not in shown
    assert shelf.within(1 << 20) == {}


def test_pictures_of_a_conversation(shelf: PictureShelf, tmp_path: Path) -> None:
    digest = hashlib.sha256(PNG).hexdigest()
    part = {"type": "picture", "sha256": digest, "name": "plot.png"}
    assert "no longer" in shelf.of_message(part)["problem"]
    (tmp_path / "run" / "pictures").mkdir(parents=True)
    kept = tmp_path / "run" / "pictures" / f"{digest}.png"
    kept.write_bytes(GIF)
    assert "changed" in shelf.of_message(part)["problem"]
    for value in ("../../etc/passwd", None, 7):
        assert "does not say" in shelf.of_message({**part, "sha256": value})["problem"]
    other = PictureShelf(tmp_path / "run")
    kept.write_bytes(PNG)
    assert other.of_message(part)["sha256"] == digest
    assert other.of_message(part)["name"] == "plot.png"


def question(*inputs: InputFile, form: AnswerForm = AnswerForm.TEXT) -> tuple[Task, TestCase]:
    absent = (AbsentInput("tables/b.csv", FileKind.TABLE, "fetch it"),)
    case = TestCase(1, inputs, (), absent)
    return Task("1", "Which?", "kind", (case,), answer=form), case


def test_tables_workbooks_and_text(shelf: PictureShelf, tmp_path: Path) -> None:
    table = tmp_path / "long.csv"
    header = ",".join(f"c{number}" for number in range(30))
    table.write_text("\n".join([header, *("x" * 99 + ",2" for _ in range(40))]) + "\n")
    book = tmp_path / "book.xlsx"
    book.write_bytes(workbook({"A1": "n", "A2": 1.5, "B2": True}))
    text = tmp_path / "notes.txt"
    text.write_bytes(b"\xff" + b"a" * 10_000)
    broken = tmp_path / "broken.xlsx"
    broken.write_bytes(b"PK\x03\x04 no workbook")
    files = [
        InputFile(table, FileKind.TABLE),
        InputFile(book, FileKind.WORKBOOK),
        InputFile(text, FileKind.TEXT),
        InputFile(broken, FileKind.WORKBOOK),
        InputFile(tmp_path / "gone.csv", FileKind.TABLE),
    ]
    task, case = question(*files)
    shown = shown_inputs(task, case, shelf)
    (sheet,) = shown[0]["sheets"]
    assert (sheet["total_rows"], sheet["total_columns"], sheet["cut"]) == (41, 30, True)
    assert len(sheet["rows"]) == 12
    assert all(len(row) <= 16 and len(cell) <= 61 for row in sheet["rows"] for cell in row)
    assert shown[1]["sheets"][0]["rows"] == [["n", ""], ["1.5", "TRUE"]]
    assert len(shown[2]["text"]) == 4_001
    assert "problem" in shown[3]
    assert "missing" in shown[4]["problem"]
    assert shown[5] == {"name": "tables/b.csv", "kind": "table", "problem": "is missing: fetch it"}


def test_the_first_input_of_a_workbook_task_is_in_the_grid(
    shelf: PictureShelf, tmp_path: Path
) -> None:
    rates = tmp_path / "rates.csv"
    rates.write_text("a,b\n1,2\n")
    task, case = question(
        InputFile(tmp_path / "first.xlsx"),
        InputFile(rates, FileKind.TABLE),
        form=AnswerForm.WORKBOOK,
    )
    assert [each["name"] for each in shown_inputs(task, case, shelf)] == [
        "rates.csv",
        "tables/b.csv",
    ]
