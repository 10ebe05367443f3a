"""Unpacks a suite's archive once, safely: nothing in it reaches outside of its folder."""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import tempfile
from pathlib import Path, PurePosixPath

from judge.errors import SuiteError

ARCHIVE_SUFFIXES = (".tar.gz", ".tgz", ".tar")
"""Endings of the archives that are read."""

MAX_UNPACKED_BYTES = 8 * 1024**3
"""An archive that would unpack to more is refused (the largest published suite takes 0.2 GB)."""

MAX_MEMBERS = 200_000
"""An archive with more files than that is refused (the largest published suite has 5,464)."""

_MAX_FAULTS = 20


def unpack_once(archive: Path, folder: Path) -> Path:
    """Unpacks an archive into a folder that is named by its content; a second call is free.

    Args:
        archive: the ``.tar.gz``.
        folder: where the folders of unpacked archives lie; made where it is missing.

    Returns:
        The folder with what the archive holds. Another archive never changes it.

    Raises:
        SuiteError: no archive, a torn one, or one with members that leave their folder.
    """
    target = folder / _digest(archive)[:32]
    if target.is_dir():
        return target
    unpack(archive, target)
    return target


def unpack(archive: Path, target: Path) -> None:
    """Unpacks an archive so that ``target`` is there as a whole or not at all.

    Raises:
        SuiteError: no archive, a torn one, one with members that leave their folder, or no room.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=target.parent))
    except OSError as error:
        raise SuiteError(
            f"{target.parent} cannot be written: {error.strerror}",
            hint="name another cache folder with JUDGE_CACHE",
        ) from error
    try:
        _extract(archive, scratch)
        _move(scratch, target)
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise SuiteError(
            f"{archive} is not a whole .tar.gz: {error}",
            faults=(f"{archive.name}: {error}",),
            hint="it may have been cut off on its way: fetch it again",
        ) from error
    except OSError as error:
        raise SuiteError(
            f"{archive} cannot be unpacked into {target.parent}: {error.strerror or error}",
            faults=(f"{archive.name}: {error}",),
            hint="is it a whole .tar.gz, and is there room? JUDGE_CACHE names another place",
        ) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _extract(archive: Path, scratch: Path) -> None:
    with tarfile.open(archive) as tar:
        members = []
        bad: list[str] = []
        total = 0
        for member in tar:
            problem = _problem(member)
            if problem:
                bad.append(f"{member.name}: {problem}")
            elif not _is_litter(member.name):
                members.append(_plain(member))
                total += member.size
            # Asked on the way: a bomb must not be read to its end.
            if total > MAX_UNPACKED_BYTES or len(members) > MAX_MEMBERS:
                raise _too_much(archive, total, len(members))
        if bad:
            raise _refused(archive, bad)
        # Python 3.11.2, which Debian 12 has, knows no extraction filters; none is needed for
        # plain files and folders below the scratch folder.
        tar.extractall(scratch, members=members)  # noqa: S202


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """The member with an owner and a mode of our own, whatever the archive says."""
    member.uid, member.gid, member.uname, member.gname = os.getuid(), os.getgid(), "", ""
    member.mode = 0o755 if member.isdir() else 0o644
    return member


def _problem(member: tarfile.TarInfo) -> str | None:
    """Why a member is refused, or None where it is a plain file or folder below the archive's."""
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts:
        return "leaves the archive's folder"
    if not (member.isfile() or member.isdir()):
        return "is neither a file nor a folder (links and devices are refused)"
    return None


def _is_litter(name: str) -> bool:
    """Files that macOS adds to archives."""
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
    """Puts the unpacked folder in its place; another process may have been faster."""
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
