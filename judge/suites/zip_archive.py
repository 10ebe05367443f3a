"""Unpacks a suite's archive that is a zip file, as safely as any other."""

from __future__ import annotations

import shutil
import stat
import struct
import unicodedata
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

MAGIC = b"PK\x03\x04"

_END = struct.Struct("<4s4H2LH")
_END_MAGIC = b"PK\x05\x06"
_END_64 = struct.Struct("<4sQ2H2L4Q")
_END_64_MAGIC = b"PK\x06\x06"
_LOCATOR_64_BYTES = 20
_LOCATOR_64_MAGIC = b"PK\x06\x07"
_MAX_COMMENT = 1 << 16
_MAX_DIRECTORY = 32 << 20
"""A list of members takes eight times as much memory; 200,000 with long names have 30 MB."""

_ENCRYPTED = 0x1
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}


_MAX_PLACES = 400_000


class MemberNames:
    """The names of an archive's members, of which each file may be given once.

    Of two files of one name the last would count, and programs that list an archive show either. So
    what somebody looked at need not be what is read. Two names are one if they differ only in case,
    in how accents are written, or in dots and slashes: some file system takes them for one.
    """

    def __init__(self) -> None:
        self._root: dict[str, Any] = {}  # name -> what is in the folder; None for a file
        self._places = 0

    def problem(self, name: str, *, is_folder: bool) -> str | None:
        """Why a further member is refused; None if it is not. A folder may be given again."""
        parts = [each for each in PurePosixPath(name).parts if each != "."]
        parts = [unicodedata.normalize("NFC", each).casefold() for each in parts]
        self._places += len(parts)
        if self._places > _MAX_PLACES:
            return f"is in more than {_MAX_PLACES:,} folders, with those before it"
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


class ZipRefusedError(Exception):
    """The archive is made to be slow, large, or to reach outside its folder; says how."""


def extract_zip(file: BinaryIO, scratch: Path, *, most_bytes: int, most_members: int) -> None:
    """Unpacks plain files and folders; everything is checked before anything is written.

    Args:
        file: the archive.
        scratch: an empty folder.
        most_bytes: what all members may take together.
        most_members: how many there may be.

    Raises:
        ZipRefusedError: the archive, or a member of it, cannot be trusted.
        zipfile.BadZipFile: it is damaged.
        OSError: a file cannot be written.
    """
    check_directory(file)
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        if len(members) > most_members:
            raise ZipRefusedError(f"it has {len(members):,} members")
        total = sum(member.file_size for member in members)
        if total > most_bytes:
            raise ZipRefusedError(f"it unpacks to {total / 1024**3:.1f} GiB")
        names = MemberNames()
        for member in members:
            problem = _problem(member) or names.problem(member.filename, is_folder=member.is_dir())
            if problem is not None:
                raise ZipRefusedError(f"{member.filename[:200]!r} {problem}")
        for member in members:
            target = scratch / PurePosixPath(member.filename)
            if member.is_dir():
                target.mkdir(parents=True, exist_ok=True)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            # No more is read of a member than the size that was counted above.
            with archive.open(member) as packed, target.open("xb") as plain:
                shutil.copyfileobj(packed, plain)


def check_directory(file: BinaryIO) -> None:
    """Refuses a list of members that is too long to be read into memory.

    Its size is in the end record, or in that of 64 bits before it.
    """
    file.seek(0, 2)
    size = file.tell()
    file.seek(max(0, size - _END_64.size - _LOCATOR_64_BYTES - _END.size - _MAX_COMMENT))
    tail = file.read()
    place = tail.rfind(_END_MAGIC)
    if place < 0 or len(tail) - place < _END.size:
        raise zipfile.BadZipFile("it has no list of members")
    directory_bytes = _END.unpack_from(tail, place)[5]
    locator = place - _LOCATOR_64_BYTES
    wide = locator - _END_64.size  # zipfile looks nowhere else for it
    if (
        wide >= 0
        and tail.startswith(_LOCATOR_64_MAGIC, locator)
        and tail.startswith(_END_64_MAGIC, wide)
    ):
        directory_bytes = _END_64.unpack_from(tail, wide)[8]
    if directory_bytes > _MAX_DIRECTORY:
        raise ZipRefusedError("its list of members is too long")
    file.seek(0)


def _problem(member: zipfile.ZipInfo) -> str | None:
    """Why a member is refused, or None if it is a plain file or folder inside the archive's."""
    name = member.filename
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or not path.parts:
        return "leaves the archive's folder"
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in {0, stat.S_IFREG, stat.S_IFDIR}:
        return "is neither a file nor a folder (links and devices are refused)"
    if member.flag_bits & _ENCRYPTED:
        return "is encrypted"
    return None if member.compress_type in _METHODS else "is packed in an unknown way"
