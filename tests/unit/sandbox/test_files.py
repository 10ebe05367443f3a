from __future__ import annotations

import io
import os
import socket
import tarfile
from pathlib import Path

import pytest

from judge.files.packed_folder import MAX_FILES, unpack_tar, unpacked
from judge.sandbox.warden import files


def test_place_makes_folders(tmp_path: Path) -> None:
    files.place(f"{tmp_path}/a/b/c.txt", b"content")
    assert (tmp_path / "a/b/c.txt").read_bytes() == b"content"


def test_collect_a_plain_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    assert files.collect(f"{tmp_path}/file", 5) == ("collected", 5, b"12345")
    assert files.collect(f"{tmp_path}/file", 4) == ("too_large", 5, None)


def test_a_folder_may_have_as_many_files_as_are_read() -> None:
    assert files.MAX_FOLDER_FILES == MAX_FILES


def test_collect_a_folder(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "a/b").mkdir(parents=True)
    (work / "empty").mkdir()
    (work / "one.txt").write_bytes(b"1")
    (work / "a/b/two.txt").write_bytes(b"22")
    (work / "a/link.txt").symlink_to("/etc/passwd")
    (work / "a/etc").symlink_to("/etc")
    (work / "a/twin").hardlink_to(work / "one.txt")
    (work / "a/.~lock.two.txt#").write_bytes(b"user")
    os.mkfifo(work / "fifo")
    status, size, content = files.collect(f"{work}/", 100)
    assert (status, size) == ("collected", 2)
    assert content is not None
    assert unpacked(content) == {"a/b/two.txt": b"22"}  # one.txt is a hard link by now
    assert files.collect(f"{work}/", 100) == (status, size, content)
    assert files.collect(f"{work}/", 1)[0] == "too_large"
    assert files.collect(f"{tmp_path}/none/", 100) == ("missing", 0, None)
    (tmp_path / "linked").symlink_to(work)
    assert files.collect(f"{tmp_path}/linked/", 100) == ("link", 0, None)
    assert files.collect(f"{work}/fifo/", 100) == ("special", 0, None)


def test_a_folder_of_too_many_files_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        (tmp_path / str(number)).write_bytes(b"")
    assert files.collect(f"{tmp_path}/", 0)[0] == "collected"
    monkeypatch.setattr(files, "MAX_FOLDER_FILES", 3)
    assert files.collect(f"{tmp_path}/", 0)[0] == "too_large"


def test_collect_what_is_not_a_plain_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "dangling").symlink_to("nowhere")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "one").write_bytes(b"x")
    (tmp_path / "other").hardlink_to(tmp_path / "one")
    (tmp_path / "link_folder").symlink_to("folder")
    (tmp_path / "folder/inner").write_bytes(b"x")
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(str(tmp_path / "socket"))
    expected = {
        "nothing": "missing",
        "nowhere/file": "missing",
        "file/below": "missing",
        "folder": "not_a_file",
        "link": "link",
        "dangling": "link",
        "one": "link",
        "link_folder/inner": "link",
        "fifo": "special",
        "socket": "special",
    }
    found = {name: files.collect(f"{tmp_path}/{name}", 100) for name in expected}
    assert {name: result[0] for name, result in found.items()} == expected
    assert all(result[2] is None for result in found.values())


def test_collect_without_permission(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "file").chmod(0)
    assert files.collect(f"{tmp_path}/file", 10)[2] == b"x"


def test_collect_a_sparse_file_costs_nothing(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        file.truncate(1 << 40)
    assert files.collect(f"{tmp_path}/file", 10) == ("too_large", 1 << 40, None)


def test_clear_removes_everything_but_the_root(tmp_path: Path) -> None:
    root = tmp_path / "root"
    outside = tmp_path / "outside"
    (root / "a/b/c").mkdir(parents=True)
    outside.mkdir()
    (outside / "kept").write_text("x")
    (root / "a/b/c/file").write_text("x")
    (root / "a/link").symlink_to(outside)
    (root / "link").symlink_to(outside)
    os.mkfifo(root / "a/fifo")
    (root / "a/b").chmod(0)
    (root / "a").chmod(0)
    files.clear(str(root))
    assert list(root.iterdir()) == []
    assert (outside / "kept").exists()


def test_clear_is_not_recursive(tmp_path: Path) -> None:
    here = Path.cwd()
    os.chdir(tmp_path)
    try:
        for _ in range(3000):
            Path("x" * 50).mkdir()
            os.chdir("x" * 50)
    finally:
        os.chdir(here)
    files.clear(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_is_full(tmp_path: Path) -> None:
    assert not files.is_full([str(tmp_path), "/nowhere"])


def tar_of(name: str, kind: bytes = tarfile.REGTYPE) -> tarfile.TarFile:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as made:
        member = tarfile.TarInfo(name)
        member.type = kind
        if kind == tarfile.REGTYPE:
            member.size = 3
        else:
            member.linkname = "/etc"
        made.addfile(member, io.BytesIO(b"abc"))
    stream.seek(0)
    return tarfile.open(fileobj=stream)


@pytest.mark.parametrize("knows_filters", [True, False])
def test_an_archive_is_unpacked_within_its_folder(
    knows_filters: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not knows_filters:
        monkeypatch.delattr(tarfile, "data_filter", raising=False)
    unpack_tar(tar_of("a/b.txt"), tmp_path)
    assert (tmp_path / "a/b.txt").read_bytes() == b"abc"
    for outside in ("/etc/b.txt", "a/../../b.txt"):
        with pytest.raises(tarfile.TarError, match="not a plain file"):
            unpack_tar(tar_of(outside), tmp_path)
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE):
        with pytest.raises(tarfile.TarError, match="not a plain file"):
            unpack_tar(tar_of("link", kind), tmp_path)
