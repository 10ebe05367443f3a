"""Unpacks a suite's archive once, safely: nothing in it can reach outside its folder.

Reads zip files, and tar files with or without compression. The sizes that an archive claims are
checked against limits before anything relies on them.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import shutil
import stat
import struct
import tarfile
import unicodedata
import zipfile
import zlib
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

from judge.errors import SuiteError
from judge.files.writing import folder_beside


class ZipRefusedError(Exception):
    """Unpacking the archive would be slow, take too much space, or write outside its folder."""


MAX_UNPACKED_BYTES = 8 * 1024**3
"""Largest unpacked size of an archive (the largest published suite takes 0.2 GB)."""

MAX_MEMBERS = 200_000
"""How many files and folders an archive may have (the largest published suite has 5,464)."""

MAX_HEADER_BYTES = 64 * 1024
"""Largest header of one member, in bytes; an archive with a larger one is refused. The longest path
takes 4 KiB."""

MAX_HEADERS_BYTES = 64 * 1024**2
"""Largest total size of an archive's long headers (the largest published suite has none)."""

_MAX_FAULTS = 20
_MAX_READS = 64
"""How many reads are allowed between two members: for long headers and maps of sparse files."""

_BLOCK_BYTES = 512
_GZIP_MAGIC = b"\x1f\x8b"
# Python's tarfile takes quadratic time to read long runs of digits in a header.
_ENDLESS_NUMBER = re.compile(rb"[0-9]{200}")


class _RefusedError(Exception):
    """Unpacking the archive would be slow or take too much space; the message says why."""


class _Headers:
    """An archive file whose headers are limited in size while its members are listed.

    Listing reads only headers: blocks, and after some blocks as many bytes as the block states.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._bytes_left = MAX_HEADERS_BYTES
        self._reads_left = _MAX_READS
        self._is_listing = True

    def member(self, size: int) -> None:
        """Notes that a member was listed, and resets the count of reads for the next header."""
        self._reads_left = _MAX_READS
        if size < 0:
            raise _RefusedError("a member has a negative size")

    def listed(self) -> None:
        """Notes that all members were listed: from here on, their contents are read."""
        self._is_listing = False

    def read(self, size: int = -1) -> bytes:
        """Reads bytes from the current position."""
        if not self._is_listing:
            return self._file.read(size)
        self._reads_left -= 1
        if self._reads_left < 0:
            raise _RefusedError("a member has headers without end")
        if 0 <= size <= _BLOCK_BYTES:
            return self._file.read(size)
        self._bytes_left -= size
        if not 0 <= size <= MAX_HEADER_BYTES or self._bytes_left < 0:
            raise _RefusedError(f"a header of a member claims {size:,} bytes")
        data = self._file.read(size)
        if _ENDLESS_NUMBER.search(data):
            raise _RefusedError("a header of a member holds a number without end")
        return data

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Moves to a position."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """The current position."""
        return self._file.tell()


def unpack_once(archive: Path, folder: Path) -> Path:
    """Unpacks an archive into a folder named after its hash, unless it was unpacked before.

    Args:
        archive: the ``.tar.gz``.
        folder: the parent of the folders of unpacked archives; created if it is missing.

    Returns:
        The folder with the unpacked archive. No other archive is ever unpacked into it.

    Raises:
        SuiteError: the file is not an archive, is damaged, or has members outside its folder.
    """
    target = folder / _digest(archive)[:32]
    if target.is_dir():
        return target
    unpack(archive, target)
    return target


def unpack(archive: Path, target: Path) -> None:
    """Unpacks an archive so that ``target`` exists as a whole or not at all.

    Raises:
        SuiteError: the file is not an archive, is damaged, or has members outside its folder; or
            the disk is full.
    """
    with ExitStack() as stack:
        try:
            scratch = stack.enter_context(folder_beside(target, ".unpacking-"))
        except OSError as error:
            raise SuiteError(
                f"{target.parent} cannot be written: {error.strerror}",
                hint="name another cache folder with JUDGE_CACHE",
            ) from error
        _unpack_into(archive, scratch, target)


def _unpack_into(archive: Path, scratch: Path, target: Path) -> None:
    try:
        _extract(archive, scratch)
        _move(scratch, target)
    except (_RefusedError, ZipRefusedError) as error:
        raise SuiteError(
            f"{archive} is refused: {error}",
            faults=(f"{archive.name}: {error}",),
            hint="do not use an archive from this place",
        ) from error
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, ValueError, zlib.error) as error:
        raise SuiteError(
            f"{archive} is not a whole .tar.gz or .zip: {error}",
            faults=(f"{archive.name}: {error}",),
            hint="the download may have been cut off: fetch it again",
        ) from error
    except OSError as error:
        raise SuiteError(
            f"{archive} cannot be unpacked into {target.parent}: {error.strerror or error}",
            faults=(f"{archive.name}: {error}",),
            hint="is the archive complete, and the disk not full? JUDGE_CACHE names another folder",
        ) from error


MAGIC = b"PK\x03\x04"


def _extract(archive: Path, scratch: Path) -> None:
    with ExitStack() as stack:
        file = stack.enter_context(archive.open("rb"))
        if file.read(len(MAGIC)) == MAGIC:
            extract_zip(file, scratch, max_bytes=MAX_UNPACKED_BYTES, max_members=MAX_MEMBERS)
            return
        file.seek(0)
        if file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC:
            file.seek(0)
            headers = _Headers(cast("BinaryIO", stack.enter_context(gzip.GzipFile(fileobj=file))))
        else:
            file.seek(0)
            headers = _Headers(file)
        # tarfile needs only three methods: read, seek and tell.
        tar = stack.enter_context(tarfile.open(fileobj=headers, mode="r:"))  # type: ignore[call-overload]
        members = _members(archive, tar, headers)
        headers.listed()
        # Python 3.11.2 (Debian 12) has no extraction filters; plain files and folders below the
        # scratch folder do not need one.
        tar.extractall(scratch, members=members)  # noqa: S202


def _members(archive: Path, tar: tarfile.TarFile, headers: _Headers) -> list[tarfile.TarInfo]:
    """The members of an archive to unpack, all checked before anything is written."""
    members = []
    bad: list[str] = []
    names = MemberNames()
    total = 0
    for seen, member in enumerate(tar, 1):
        headers.member(member.size)
        # Otherwise every later member would keep its own copy of the global headers.
        member.pax_headers = {}
        total += member.size
        # Checked while listing: a tar bomb must not be read to its end.
        if total > MAX_UNPACKED_BYTES or seen > MAX_MEMBERS:
            raise _too_much(archive, total, seen)
        is_litter = _is_litter(member.name)
        problem = _problem(member)
        if not (problem or is_litter):
            problem = names.problem(member.name, is_folder=member.isdir())
        if problem:
            bad.append(f"{member.name}: {problem}")
        elif not is_litter:
            members.append(_plain(member))
    if bad:
        raise _refused(archive, bad)
    return members


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Makes the current user the owner of a member, and gives it plain permissions."""
    member.uid, member.gid, member.uname, member.gname = os.getuid(), os.getgid(), "", ""
    member.mode = 0o755 if member.isdir() else 0o644
    return member


def _problem(member: tarfile.TarInfo) -> str | None:
    """Why a member is refused, or None if it is a plain file or folder in the archive's folder."""
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts:
        return "leaves the archive's folder"
    if (problem := _problem_of_path(path)) is not None:
        return problem
    if member.issparse():
        return "is a sparse file, which is larger than its stored data"
    if not (member.isfile() or member.isdir()):
        return "is neither a file nor a folder (links and devices are refused)"
    return None


_MAX_NAME_BYTES = 255

_MAX_DEPTH = 100
"""How many folders a member may be in; deeper paths exceed limits of Python or of file systems."""


def _problem_of_path(path: PurePosixPath) -> str | None:
    """Why some file systems cannot store a file under this path; None if all can."""
    if len(path.parts) > _MAX_DEPTH:
        return f"is in more than {_MAX_DEPTH} folders"
    if any(len(part.encode("utf-8", "replace")) > _MAX_NAME_BYTES for part in path.parts):
        return f"has a name of more than {_MAX_NAME_BYTES} bytes"
    return None


def _is_litter(name: str) -> bool:
    """Whether a member is a file that macOS adds to archives."""
    return any(part.startswith("._") or part == ".DS_Store" for part in PurePosixPath(name).parts)


def _refused(archive: Path, bad: list[str]) -> SuiteError:
    faults = [f"{archive.name}: {line}" for line in bad[:_MAX_FAULTS]]
    if len(bad) > _MAX_FAULTS:
        faults.append(f"{archive.name}: {len(bad) - _MAX_FAULTS} more")
    return SuiteError(
        f"{archive} is refused: {len(bad)} of its members cannot be trusted",
        faults=tuple(faults),
        hint="do not use an archive from this place",
    )


def _too_much(archive: Path, size_bytes: int, members: int) -> SuiteError:
    return SuiteError(
        f"{archive} is refused: it unpacks to more than a suite can be",
        faults=(f"{archive.name}: {members} files, {size_bytes / 1024**3:.1f} GiB so far",),
        hint="is it the archive of a suite?",
    )


def _move(scratch: Path, target: Path) -> None:
    """Moves the unpacked folder to its final path, unless another process was faster."""
    try:
        scratch.replace(target)
    except OSError:
        if not target.is_dir():
            raise


def _digest(archive: Path) -> str:
    try:
        with archive.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise SuiteError(f"{archive} cannot be read: {error.strerror}") from error


# -- zip files -------------------------------------------------------------------------------------

_END = struct.Struct("<4s4H2LH")
_END_MAGIC = b"PK\x05\x06"
_END_64 = struct.Struct("<4sQ2H2L4Q")
_END_64_MAGIC = b"PK\x06\x06"
_LOCATOR_64_BYTES = 20
_LOCATOR_64_MAGIC = b"PK\x06\x07"
_MAX_COMMENT = 1 << 16
_MAX_DIRECTORY = 32 << 20
"""Largest list of members, in bytes: 200,000 long names take 30 MB, and 8 times that in memory."""
_ENCRYPTED = 0x1
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_MAX_FOLDERS = 400_000


class MemberNames:
    """The names of an archive's members; two files may not have the same name.

    Of two files with the same name, the last would be unpacked, but programs that list an archive
    may show the other: a person might check one file, and the judge would read the other. Two names
    count as the same if they differ only in case, in how accents are encoded, or in dots and
    slashes, because some file systems treat them as the same.
    """

    def __init__(self) -> None:
        self._root: dict[str, Any] = {}  # name -> what is in the folder; None for a file
        self._folders = 0

    def problem(self, name: str, *, is_folder: bool) -> str | None:
        """Why the next member is refused; None if it is accepted. A folder may be listed twice."""
        parts = [part for part in PurePosixPath(name).parts if part != "."]
        parts = [unicodedata.normalize("NFC", part).casefold() for part in parts]
        self._folders += len(parts)
        if self._folders > _MAX_FOLDERS:
            return f"is in more than {_MAX_FOLDERS:,} folders, counting those of earlier members"
        folder = self._root
        for number, part in enumerate(parts, 1):
            if number == len(parts) and not is_folder:
                if part in folder:
                    return "is in the archive twice"
                folder[part] = None
            elif (inside := folder.setdefault(part, {})) is None:
                return "is in the archive twice, as a file and as a folder"
            else:
                folder = inside
        return None


def extract_zip(file: BinaryIO, scratch: Path, *, max_bytes: int, max_members: int) -> None:
    """Unpacks plain files and folders; everything is checked before anything is written.

    Args:
        file: the archive.
        scratch: an empty folder.
        max_bytes: how many bytes all members together may have.
        max_members: how many members the archive may have.

    Raises:
        ZipRefusedError: the archive, or a member of it, cannot be trusted.
        zipfile.BadZipFile: it is damaged.
        OSError: a file cannot be written.
    """
    check_directory(file)
    try:
        with zipfile.ZipFile(file) as archive:
            _extract_members(archive, scratch, max_bytes=max_bytes, max_members=max_members)
    except (ValueError, EOFError, NotImplementedError, struct.error, zlib.error) as error:
        # zipfile raises these for names that are not UTF-8, and for truncated data.
        raise zipfile.BadZipFile(str(error) or "it is cut") from error


def _extract_members(
    archive: zipfile.ZipFile, scratch: Path, *, max_bytes: int, max_members: int
) -> None:
    members = archive.infolist()
    if len(members) > max_members:
        raise ZipRefusedError(f"it has {len(members):,} members")
    total = sum(member.file_size for member in members)
    if total > max_bytes:
        raise ZipRefusedError(f"it unpacks to {total / 1024**3:.1f} GiB")
    names = MemberNames()
    for member in members:
        problem = _problem_of_zip_member(member) or names.problem(
            member.filename, is_folder=member.is_dir()
        )
        if problem is not None:
            raise ZipRefusedError(f"{member.filename[:200]!r} {problem}")
    for member in members:
        target = scratch / PurePosixPath(member.filename)
        if member.is_dir():
            target.mkdir(parents=True, exist_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        # zipfile reads no more of a member than the size that was counted above.
        with archive.open(member) as packed, target.open("xb") as plain:
            shutil.copyfileobj(packed, plain)


def check_directory(file: BinaryIO) -> None:
    """Refuses a list of members that is too long to be read into memory.

    The end record, or the 64-bit end record before it, states its size.
    """
    file.seek(0, 2)
    size = file.tell()
    file.seek(max(0, size - _END_64.size - _LOCATOR_64_BYTES - _END.size - _MAX_COMMENT))
    tail = file.read()
    end = tail.rfind(_END_MAGIC)
    if end < 0 or len(tail) - end < _END.size:
        raise zipfile.BadZipFile("it has no list of members")
    directory_bytes = _END.unpack_from(tail, end)[5]
    locator = end - _LOCATOR_64_BYTES
    wide = locator - _END_64.size  # the only position that zipfile checks
    if (
        wide >= 0
        and tail.startswith(_LOCATOR_64_MAGIC, locator)
        and tail.startswith(_END_64_MAGIC, wide)
    ):
        directory_bytes = _END_64.unpack_from(tail, wide)[8]
    if directory_bytes > _MAX_DIRECTORY:
        raise ZipRefusedError("its list of members is too long")
    file.seek(0)


def _problem_of_zip_member(member: zipfile.ZipInfo) -> str | None:
    """Why a member is refused, or None if it is a plain file or folder in the archive's folder."""
    name = member.filename
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or not path.parts:
        return "leaves the archive's folder"
    if (problem := _problem_of_path(path)) is not None:
        return problem
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in {0, stat.S_IFREG, stat.S_IFDIR}:
        return "is neither a file nor a folder (links and devices are refused)"
    if member.flag_bits & _ENCRYPTED:
        return "is encrypted"
    return None if member.compress_type in _METHODS else "is compressed by an unknown method"
