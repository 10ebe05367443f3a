"""Archives of suites made to be large or slow are refused because of what their headers claim.

Each is unpacked in a process of its own with bounds on processor time and address space.
"""

from __future__ import annotations

import gzip
import io
import os
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from judge.errors import SuiteError
from judge.suites import archive as archive_module
from judge.suites.archive import unpack
from tests.bounds import bound_process

pytestmark = pytest.mark.slow

CPU_S = 20
MEMORY_BYTES = 512 << 20


def header(
    name: str, kind: bytes = tarfile.REGTYPE, *, size: int = 0, size_field: bytes | None = None
) -> bytes:
    """The first block of a member, with any size."""
    member = tarfile.TarInfo(name)
    member.type = kind
    member.size = size
    block = bytearray(member.tobuf(tarfile.GNU_FORMAT)[:512])
    if size_field is not None:
        block[124:136] = size_field
        block[148:156] = b" " * 8
        block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 512)


def extended(records: bytes, kind: bytes = tarfile.XHDTYPE) -> bytes:
    return header("pax", kind, size=len(records)) + padded(records)


def record(name: str, value: str) -> bytes:
    rest = f" {name}={value}\n".encode()
    length = len(rest) + 1
    while len(str(length)) + len(rest) != length:
        length += 1
    return str(length).encode() + rest


FILE = header("suite/x.txt", size=3) + padded(b"abc")
END = bytes(1024)


def holes(count: int) -> bytes:
    """A sparse member with an endless table of holes."""
    block = bytearray(header("suite/holes", tarfile.GNUTYPE_SPARSE))
    block[482] = 1
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    more = (b"%011o\0%011o\0" % (8, 8)) * 21 + b"\1" + bytes(7)
    return bytes(block) + more * count


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "a long header of 2 GB": (
        lambda: header("pax", tarfile.XHDTYPE, size=2 << 30) + bytes(2 << 20),
        "claims 2,147,483,648 bytes",
    ),
    "a long name of 2 GB": (
        lambda: header("name", tarfile.GNUTYPE_LONGNAME, size=2 << 30) + bytes(2 << 20),
        "claims 2,147,483,648 bytes",
    ),
    "a long header that is there": (
        lambda: extended(record("comment", "x" * 50_000_000)) + FILE,
        "claims 50,000,",
    ),
    "long headers for every member": (
        lambda: (extended(record("comment", "x" * 60_000)) + FILE) * 1_200,
        "claims 60,",
    ),
    "headers in front of headers": (
        lambda: extended(record("comment", "x")) * 3_000 + FILE,
        "headers without end",
    ),
    "digits without end": (
        lambda: extended(b"1" * 60_000) + FILE,
        "a number without end",
    ),
    "a table of holes": (lambda: holes(100_000), "headers without end"),
    "a sparse member": (
        lambda: (
            extended(
                record("GNU.sparse.major", "0")
                + record("GNU.sparse.minor", "1")
                + record("GNU.sparse.map", "0,1")
                + record("GNU.sparse.size", "1000000000000")
            )
            + FILE
        ),
        "is refused",
    ),
    "holes that are counted later": (
        lambda: (
            extended(
                record("GNU.sparse.major", "1")
                + record("GNU.sparse.minor", "0")
                + record("GNU.sparse.realsize", "9")
            )
            + header("suite/holes", size=512)
            + padded(b"99999999\n" + b"1\n" * 5_000_000)
        ),
        "headers without end",
    ),
    "a negative size": (
        lambda: header("suite/x", size_field=b"\xff" * 11 + b"\0") * 3,
        "negative size",
    ),
    "files of 8 TB": (
        lambda: header("suite/x", size_field=b"\x80" + bytes(4) + (8 << 40).to_bytes(7, "big")),
        "unpacks to more than a suite can be",
    ),
    "something unknown of 8 TB": (
        lambda: header("suite/x", b"Z", size_field=b"\x80" + bytes(4) + (8 << 40).to_bytes(7)),
        "unpacks to more than a suite can be",
    ),
    "more members than a suite has": (
        lambda: header("suite/link", tarfile.SYMTYPE) * 3_100,
        "unpacks to more than a suite can be",
    ),
}


def unpacked_within_bounds(archive: Path, target: Path, said: Path) -> str:
    child = os.fork()
    if child == 0:
        try:
            bound_process(cpu_s=CPU_S, memory_bytes=MEMORY_BYTES)
            unpack(archive, target)
            said.write_text("unpacked")
        except SuiteError as error:
            said.write_text(error.message)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the parent must see it
            said.write_text(f"not ours: {error!r}")
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, "it ran over its processor time"
    return said.read_text()


@pytest.mark.parametrize("kind", HOSTILE)
def test_an_archive_that_claims_too_much_is_refused(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, message = HOSTILE[kind]
    archive = tmp_path / "suite.tar.gz"
    archive.write_bytes(gzip.compress(make() + END, compresslevel=1))
    monkeypatch.setattr(archive_module, "MAX_MEMBERS", 3_000)
    said = unpacked_within_bounds(archive, tmp_path / "unpacked", tmp_path / "said.txt")
    assert message in said
    assert not (tmp_path / "unpacked").exists()
    assert not [*tmp_path.glob(".unpacking-*")]


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
@pytest.mark.parametrize("packing", ["w", "w:gz"])
def test_what_programs_pack_is_unpacked(form: int, packing: str, tmp_path: Path) -> None:
    archive = tmp_path / "suite.tar.gz"
    name = "suite/" + "a" * 90 + "/" + "b" * 90 + ".txt"
    names = {name: b"1" * 70_000, "suite/empty": b"", "suite/._litter": b"x"}
    if form != tarfile.USTAR_FORMAT:
        names["suite/" + "\u56fe" * 80 + "/x"] = b"2"
    headers = {"comment": "a" * 40} if form == tarfile.PAX_FORMAT else None
    with tarfile.open(archive, packing, format=form, pax_headers=headers) as tar:  # type: ignore[call-overload]
        for each, content in names.items():
            member = tarfile.TarInfo(each)
            member.size = len(content)
            member.mtime = 1.5 if form == tarfile.PAX_FORMAT else 1
            tar.addfile(member, io.BytesIO(content))
    unpack(archive, tmp_path / "unpacked")
    found = {
        str(path.relative_to(tmp_path / "unpacked")): path.read_bytes()
        for path in (tmp_path / "unpacked").rglob("*")
        if path.is_file()
    }
    assert found == {each: content for each, content in names.items() if "._" not in each}


# -- zip files ------------------------------------------------------------------------------------


def zipped(folder: Path, *members: tuple[str, str], mode: int = 0, method: int = 8) -> Path:
    path = folder / "suite.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in members:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            info.compress_type = method
            archive.writestr(info, text)
    return path


def test_a_zip_file_is_unpacked(tmp_path: Path) -> None:
    archive = zipped(tmp_path, ("suite/a/dataset.json", "[]"), ("suite/b.txt", "x" * 9999))
    unpack(archive, tmp_path / "out")
    assert (tmp_path / "out/suite/a/dataset.json").read_text() == "[]"
    assert len((tmp_path / "out/suite/b.txt").read_text()) == 9999


def encrypted(folder: Path) -> Path:
    path = zipped(folder, ("a", "x"))
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    return path


def long_list(folder: Path) -> Path:
    path = zipped(folder, ("a", "x"))
    data = bytearray(path.read_bytes())
    data[-10:-6] = (1 << 31).to_bytes(4, "little")
    path.write_bytes(data)
    return path


def long_wide_list(folder: Path) -> Path:
    """The size of the list is only in the 64-bit end record."""
    path = zipped(folder, ("a", "x"))
    data = path.read_bytes()
    end = data[-22:]
    directory = int.from_bytes(end[16:20], "little")
    wide = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 1, 1, 1 << 31, directory)
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, len(data) - 22, 1)
    path.write_bytes(data[:-22] + wide + locator + end)
    return path


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda folder: zipped(folder, ("../a", "x")), "leaves the archive"),
        (lambda folder: zipped(folder, ("/a", "x")), "leaves the archive"),
        (lambda folder: zipped(folder, ("a", "/etc/passwd"), mode=0o120777), "neither a file"),
        (lambda folder: zipped(folder, ("a", "x"), method=zipfile.ZIP_BZIP2), "unknown method"),
        (encrypted, "is encrypted"),
        (long_list, "too long"),
        (long_wide_list, "too long"),
    ],
)
def test_a_zip_file_that_is_refused(
    make: Callable[[Path], Path], problem: str, tmp_path: Path
) -> None:
    with pytest.raises(SuiteError, match="refused") as caught:
        unpack(make(tmp_path), tmp_path / "out")
    assert problem in str(caught.value.faults)
    assert not (tmp_path / "out").exists()


def test_a_large_zip_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = zipped(tmp_path, ("a", "x" * 5000), ("b", "x"))
    monkeypatch.setattr(archive_module, "MAX_UNPACKED_BYTES", 5000)
    with pytest.raises(SuiteError, match="refused"):
        unpack(archive, tmp_path / "out")
    monkeypatch.setattr(archive_module, "MAX_UNPACKED_BYTES", 6000)
    monkeypatch.setattr(archive_module, "MAX_MEMBERS", 1)
    with pytest.raises(SuiteError, match="refused"):
        unpack(archive, tmp_path / "out")


def test_half_a_zip_file(tmp_path: Path) -> None:
    archive = zipped(tmp_path, ("a", "x" * 5000))
    archive.write_bytes(archive.read_bytes()[:100])
    with pytest.raises(SuiteError, match=r"not a whole \.tar\.gz or \.zip"):
        unpack(archive, tmp_path / "out")


# -- members given twice ---------------------------------------------------------------------------

TWICE = {
    "the same name": ("suite/dataset.json", "suite/dataset.json"),
    "with a dot": ("suite/dataset.json", "./suite//dataset.json"),
    "in another case": ("suite/dataset.json", "suite/Dataset.JSON"),
    "in a folder of another case": ("suite/dataset.json", "Suite/dataset.json"),
    "with other accents": ("suite/caf\u00e9.json", "suite/cafe\u0301.json"),
    "as a folder": ("suite/a", "suite/a/b"),
    "as a folder before": ("suite/a/b", "suite/a"),
}


def tarred(folder: Path, *names: str) -> Path:
    path = folder / "suite.tar.gz"
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as tar:
        for number, name in enumerate(names):
            member = tarfile.TarInfo(name)
            member.size = 1
            tar.addfile(member, io.BytesIO(str(number).encode()))
    return path


@pytest.mark.parametrize("way", TWICE)
@pytest.mark.parametrize("pack", [tarred, lambda folder, *names: zipped(
    folder, *((name, "x") for name in names))])  # fmt: skip
def test_a_file_that_is_given_twice_is_refused(
    pack: Callable[..., Path], way: str, tmp_path: Path
) -> None:
    with pytest.raises(SuiteError, match="refused") as caught:
        unpack(pack(tmp_path, *TWICE[way]), tmp_path / "out")
    assert "in the archive twice" in str(caught.value.faults)
    assert not (tmp_path / "out").exists()


def test_a_folder_and_litter_may_be_given_twice(tmp_path: Path) -> None:
    path = tarred(tmp_path, "suite/._a", "suite/._a")
    with tarfile.open(tmp_path / "suite.tar", "w") as tar:
        for name in ("suite", "suite/b", "suite", "suite/b/c"):
            member = tarfile.TarInfo(name)
            member.type = tarfile.REGTYPE if name.endswith("c") else tarfile.DIRTYPE
            tar.addfile(member, io.BytesIO())
    for archive in (path, tmp_path / "suite.tar"):
        unpack(archive, tmp_path / archive.name.replace(".", "-"))
    assert (tmp_path / "suite-tar/suite/b/c").is_file()
