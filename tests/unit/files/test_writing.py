"""Files and folders are written completely or not at all."""

from __future__ import annotations

import errno
import os
import resource
import stat
from pathlib import Path

import pytest

from judge.errors import JudgeError
from judge.files.writing import (
    folder_beside,
    naming_what_is_written,
    open_to_write,
    write_new,
    write_whole,
)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("durable", [False, True])
def test_a_file_is_replaced_as_a_whole(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "x.json"
    write_whole(path, b"old", durable=durable)
    assert mode_of(path) == 0o600
    with path.open("rb") as before:
        write_whole(path, b"new and longer", mode=0o644, durable=durable)
        assert before.read() == b"old"
    assert path.read_bytes() == b"new and longer"
    assert mode_of(path) == 0o644
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_is_replaced_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    mine, link = tmp_path / "mine", tmp_path / "link"
    mine.write_text("precious")
    link.symlink_to(mine)
    write_whole(link, b"new")
    assert (link.is_symlink(), link.read_bytes(), mine.read_text()) == (False, b"new", "precious")


@pytest.mark.parametrize("fails_at", ["os.fsync", "pathlib.Path.replace"])
def test_what_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: str
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    path = tmp_path / "x"
    path.write_text("old")
    monkeypatch.setattr(fails_at, interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_whole(path, b"new", durable=True)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_killed_process_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x"
    path.write_text("old")
    child = os.fork()
    if not child:
        try:
            monkeypatch.setattr(os, "fsync", lambda _: os._exit(9))
            write_whole(path, b"new", durable=True)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert path.read_text() == "old"
    assert [each.suffix for each in tmp_path.iterdir() if each.name.startswith(".")] == [".part"]


def test_a_new_file_spoils_nothing(tmp_path: Path) -> None:
    path, link = tmp_path / "x", tmp_path / "link"
    write_new(path, b"mine", mode=0o600)
    assert mode_of(path) == 0o600
    link.symlink_to(tmp_path / "made")
    for there in (path, link):
        with pytest.raises(FileExistsError):
            write_new(there, b"new")
    assert path.read_bytes() == b"mine"
    assert not (tmp_path / "made").exists()


def test_a_new_file_that_is_not_taken_in_whole_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "x"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            write_new(path, bytes(1_001))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_a_file_is_not_opened(tmp_path: Path) -> None:
    fifo, link = tmp_path / "fifo", tmp_path / "link"
    os.mkfifo(fifo)
    link.symlink_to(tmp_path / "made")
    flags = os.O_RDWR | os.O_CREAT
    for path, more, what in (
        (fifo, 0, "a FIFO"),
        (tmp_path, 0, "a folder"),
        (Path("/dev/zero"), 0, "a device"),
        (link, os.O_NOFOLLOW, "a link"),
    ):
        with pytest.raises(OSError, match=f"{what}, not a regular file"):
            open_to_write(path, flags | more)
    assert not (tmp_path / "made").exists()


def test_a_folder_is_gone_unless_it_was_moved(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "target"

    def fail() -> None:
        with folder_beside(target, ".x-") as folder:
            (folder / "file").touch()
            assert mode_of(folder) == 0o700
            raise ValueError("half-way")

    with pytest.raises(ValueError, match="half-way"):
        fail()
    assert list(target.parent.iterdir()) == []
    with folder_beside(target, ".x-") as folder:
        (folder / "file").touch()
        folder.replace(target)
    assert [each.name for each in target.iterdir()] == ["file"]
    assert list(target.parent.iterdir()) == [target]


@pytest.mark.parametrize("number", [errno.EXDEV, errno.EACCES, errno.ENOSPC, errno.EBUSY])
def test_the_error_says_why_the_file_could_not_be_written(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reports the original error even if the incomplete file cannot be removed either."""
    path = tmp_path / "report.json"
    path.write_text("old")

    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    def fail_too(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("pathlib.Path.replace", fail)
    monkeypatch.setattr("pathlib.Path.unlink", fail_too)
    with pytest.raises(OSError, match=os.strerror(number)) as raised:
        write_whole(path, b"new")
    assert raised.value.errno == number
    assert path.read_text() == "old"


def test_an_error_names_the_file_and_not_the_temporary_one(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "report.json"
    with pytest.raises(FileNotFoundError) as raised:
        write_whole(path, b"")
    assert raised.value.filename == str(path)


@pytest.mark.parametrize(
    ("number", "parent", "reason", "hint"),
    [
        (errno.ENOSPC, ".", "the disk is full", "Make room"),
        (errno.ENOENT, "no/such", "there is no folder", "Make the folder first."),
        (errno.EACCES, ".", os.strerror(errno.EACCES), "Name another place"),
        (errno.EROFS, ".", os.strerror(errno.EROFS), "Name another place"),
    ],
)
def test_the_message_says_what_to_do_about_a_file_that_cannot_be_written(
    number: int, parent: str, reason: str, hint: str, tmp_path: Path
) -> None:
    path = tmp_path / parent / "report.json"
    with pytest.raises(JudgeError) as raised, naming_what_is_written(path):
        raise OSError(number, os.strerror(number))
    assert raised.value.message.startswith(f"{path}: cannot be written: {reason}")
    assert (raised.value.hint or "").startswith(hint)
