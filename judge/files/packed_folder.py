"""Packs a folder into one zip file. An answer of several files is stored and hashed in this form.

Also unpacks archives into a folder.
"""

from __future__ import annotations

import io
import posixpath
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from judge.errors import JudgeError
from judge.files.documents import MalformedError

if TYPE_CHECKING:
    import tarfile

MAX_FILES = 5_000
MAX_BYTES = 256 << 20
"""Largest total size of a folder's files; the largest published workspace has 3 MB."""

_MAGIC = b"PK\x03\x04"
_EMPTY = b"PK\x05\x06"
_OF_AN_OFFICE_FILE = ("[Content_Types].xml", "mimetype")
_EPOCH = (1980, 1, 1, 0, 0, 0)


def is_packed_folder(data: bytes) -> bool:
    """Returns whether bytes are a zip of files, and not an office document, which is also a zip."""
    if not data.startswith((_MAGIC, _EMPTY)):
        return False
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.NameToInfo
            return not any(name in names for name in _OF_AN_OFFICE_FILE)
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError):
        return False


def packed(files: Mapping[str, bytes]) -> bytes:
    """Packs files into one zip; the same files always give the same bytes.

    Args:
        files: path below the folder, with ``/`` -> bytes.
    """
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            member = zipfile.ZipInfo(name, date_time=_EPOCH)
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, files[name])
    return written.getvalue()


def unpacked(data: bytes) -> dict[str, bytes]:
    """Unpacks a zip: path below its folder -> bytes.

    Folders, and members whose path leads outside, are skipped.

    Raises:
        MalformedError: the zip is broken, encrypted, or has more than :data:`MAX_FILES` files or
            :data:`MAX_BYTES` bytes.
    """
    files: dict[str, bytes] = {}
    left = MAX_BYTES
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for member in archive.infolist():
                name = posixpath.normpath(member.filename.replace("\\", "/"))
                if member.is_dir() or name.startswith(("/", "..")) or name in files:
                    continue
                if len(files) >= MAX_FILES:
                    raise MalformedError(f"the folder has more than {MAX_FILES:,} files")
                with archive.open(member) as opened:
                    content = opened.read(left + 1)
                left -= len(content)
                if left < 0:
                    raise MalformedError(f"the folder has more than {MAX_BYTES:,} bytes")
                files[name] = content
    except (
        *(zipfile.BadZipFile, zlib.error, EOFError, OSError),
        *(ValueError, NotImplementedError, RuntimeError),
    ) as error:
        raise MalformedError(f"the archive cannot be read: {error}") from error
    return files


def files_below(folder: Path) -> dict[str, bytes]:
    """Reads the regular files below a folder: path with ``/`` -> bytes; follows no links.

    Raises:
        JudgeError: there are more than :data:`MAX_FILES` files or :data:`MAX_BYTES` bytes, or one
            cannot be read.
    """
    files: dict[str, bytes] = {}
    size = 0
    try:
        for path in sorted(folder.rglob("*")):
            if path.is_symlink() or not path.is_file():
                continue
            size += path.stat().st_size
            if len(files) >= MAX_FILES or size > MAX_BYTES:
                raise JudgeError(
                    f"{folder} holds more than {MAX_FILES:,} files or {MAX_BYTES:,} bytes"
                )
            files[path.relative_to(folder).as_posix()] = path.read_bytes()
    except OSError as error:
        raise JudgeError(f"{folder} cannot be read: {error.strerror}") from error
    return files


def unpack_tar(archive: tarfile.TarFile, folder: Path) -> None:
    """Unpacks an archive that has only files and folders, all of them within the target folder.

    Python 3.11.2, the version in Debian 12, has no filters for that.

    Raises:
        tarfile.TarError: it has other members, or a name that leads out of the folder.
        OSError: the folder cannot be written.
    """
    import tarfile  # noqa: PLC0415  most folders are packed as ZIP

    members = archive.getmembers()
    for member in members:
        # A second name of a file is a link to the first one.
        paths = [PurePosixPath(name) for name in (member.name, member.linkname)]
        outside = any(path.is_absolute() or ".." in path.parts for path in paths)
        if outside or not (member.isfile() or member.isdir() or member.islnk()):
            raise tarfile.TarError(f"{member.name!r:.100} is not a plain file within the folder")
    if hasattr(tarfile, "data_filter"):
        archive.extractall(folder, members, filter="data")
    else:
        archive.extractall(folder, members)  # noqa: S202 - checked above
