"""Places files before a run; after it, collects a file or folder and clears the folders.

Files are collected when no process of the solution is left, so nothing can be swapped between a
check and a read. Even so, every step opens a path relative to the previous folder and does not
follow links.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat

_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_FOLDER_FLAGS = os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
_LINK_ERRORS = (errno.ELOOP, errno.EMLINK)


def place(path: str, content: bytes) -> None:
    """Writes a file, and makes the folders above it."""
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    with os.fdopen(fd, "wb") as file:
        file.write(content)


def make_folder(path: str) -> None:
    """Makes a folder and the folders above it."""
    os.makedirs(path, mode=0o755, exist_ok=True)


MAX_FOLDER_FILES = 5_000
"""Greatest number of files in a collected folder, as in :mod:`judge.files.packed_folder`."""

_MAX_FOLDER_ENTRIES = 50_000
_MAX_FOLDER_DEPTH = 64


def collect(path: str, limit_bytes: int) -> tuple[str, int, bytes | None]:
    """Collects a file, or a folder if the path ends with a slash.

    The regular files of a folder are collected as one zip, which is not compressed. Links, other
    files, LibreOffice's lock files and folders that cannot be read are skipped.

    Returns:
        Its status (a value of ``OutputStatus``), its size, and its bytes if it was collected.
    """
    if path.endswith("/"):
        return _collect_folder(path.rstrip("/"), limit_bytes)
    try:
        folder = _open_folder(os.path.dirname(path))
    except OSError as error:
        # O_DIRECTORY|O_NOFOLLOW gives ENOTDIR for a link too, so links in the path are checked
        return ("link" if _has_link(os.path.dirname(path)) else _absence(error)), 0, None
    try:
        return _collect_from(folder, os.path.basename(path), limit_bytes)
    finally:
        os.close(folder)


def _collect_folder(path: str, limit_bytes: int) -> tuple[str, int, bytes | None]:
    try:
        folder = _open_folder(path)
    except OSError as error:
        if _has_link(path):
            return "link", 0, None
        return ("special" if os.path.lexists(path) else _absence(error)), 0, None
    try:
        contents = _files_of(folder, limit_bytes)
    finally:
        os.close(folder)
    if contents is None:
        return "too_large", limit_bytes + 1, None
    import zipfile  # noqa: PLC0415  most runs leave one file

    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name, content in sorted(contents.items()):
            archive.writestr(zipfile.ZipInfo(name), content)
    return "collected", sum(map(len, contents.values())), written.getvalue()


def _files_of(folder: int, limit_bytes: int) -> dict[str, bytes] | None:
    """Path -> regular file, for all files below a folder; None if there are too many."""
    contents: dict[str, bytes] = {}
    waiting = [("", os.dup(folder), 0)]
    entries, left = 0, limit_bytes
    try:
        while waiting:
            below, fd, depth = waiting.pop()
            try:
                names = _names_in(fd)
                entries += len(names)
                if entries > _MAX_FOLDER_ENTRIES:
                    return None
                for name in names:
                    deeper = _folder_in(fd, name) if depth < _MAX_FOLDER_DEPTH else None
                    if deeper is not None:
                        waiting.append((f"{below}{name}/", deeper, depth + 1))
                        continue
                    status, size, content = _collect_from(fd, name, left)
                    left -= size
                    if status == "too_large" or len(contents) >= MAX_FOLDER_FILES:
                        return None
                    if content is not None:
                        contents[below + name] = content
            finally:
                os.close(fd)
    finally:
        for _, fd, _ in waiting:
            os.close(fd)
    return contents


def _names_in(folder: int) -> list[str]:
    """The names in a folder that an archive can contain; empty if it cannot be listed."""
    try:
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return []
    try:
        names = os.listdir(fd)
    finally:
        os.close(fd)
    return sorted(name for name in names if _is_left(name))


def _is_left(name: str) -> bool:
    """Whether an archive can contain a file of this name. LibreOffice's lock files are left out."""
    return name.isprintable() and "\\" not in name and not name.startswith(".~lock.")


def _folder_in(folder: int, name: str) -> int | None:
    try:
        return os.open(name, _FOLDER_FLAGS, dir_fd=folder)
    except OSError:
        return None


def _absence(error: OSError) -> str:
    return "link" if error.errno in _LINK_ERRORS else "missing"


def _open_folder(path: str) -> int:
    fd = os.open("/", _FOLDER_FLAGS)
    for part in path.split("/"):
        if not part:
            continue
        try:
            deeper = os.open(part, _FOLDER_FLAGS, dir_fd=fd)
        finally:
            os.close(fd)
        fd = deeper
    return fd


def _has_link(path: str) -> bool:
    current = ""
    for part in path.split("/")[1:]:
        current += "/" + part
        if os.path.islink(current):
            return True
    return False


def _collect_from(folder: int, name: str, limit_bytes: int) -> tuple[str, int, bytes | None]:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        return _absence(error), 0, None
    status = _status_of(found, limit_bytes)
    if status != "collected":
        return status, found.st_size if stat.S_ISREG(found.st_mode) else 0, None
    if not found.st_mode & stat.S_IRUSR:
        with contextlib.suppress(OSError):
            os.chmod(name, 0o600, dir_fd=folder)
    try:
        fd = os.open(name, _READ_FLAGS, dir_fd=folder)
    except OSError as error:
        return _absence(error), 0, None
    try:
        opened = os.fstat(fd)
        status = _status_of(opened, limit_bytes)
        if status != "collected":
            return status, opened.st_size, None
        content = _read_up_to(fd, limit_bytes + 1)
    finally:
        os.close(fd)
    if len(content) > limit_bytes:
        return "too_large", len(content), None
    return "collected", len(content), content


def _status_of(found: os.stat_result, limit_bytes: int) -> str:
    if stat.S_ISLNK(found.st_mode):
        return "link"
    if stat.S_ISDIR(found.st_mode):
        return "not_a_file"
    if not stat.S_ISREG(found.st_mode):
        return "special"
    if found.st_nlink != 1:
        return "link"
    return "too_large" if found.st_size > limit_bytes else "collected"


def _read_up_to(fd: int, size: int) -> bytes:
    chunks = []
    while size:
        chunk = os.read(fd, min(size, 1 << 20))
        if not chunk:
            break
        chunks.append(chunk)
        size -= len(chunk)
    return b"".join(chunks)


def is_full(roots: list[str]) -> bool:
    """Whether a filesystem to which a solution may write has no block or no inode left."""
    for root in roots:
        with contextlib.suppress(OSError):
            space = os.statvfs(root)
            if space.f_bavail == 0 or (space.f_files and space.f_favail == 0):
                return True
    return False


def clear(root: str) -> None:
    """Removes everything below a folder, however deep, without recursion.

    Deeper folders are first moved to the top under short names, so that no path becomes long. The
    names cannot be guessed, so a solution cannot have used them.
    """
    mark = os.urandom(8).hex()
    counter = 0
    pending = list(os.listdir(root))
    while pending:
        path = f"{root}/{pending.pop()}"
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            os.unlink(path)
            continue
        os.chmod(path, 0o700)
        with os.scandir(path) as entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.path)
                    continue
                os.chmod(entry.path, 0o700)  # renaming a folder needs permission to write in it
                counter += 1
                moved = f".{mark}-{counter}"
                os.rename(entry.path, f"{root}/{moved}")
                pending.append(moved)
        os.rmdir(path)
