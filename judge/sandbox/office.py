"""The root with LibreOffice: one tarball of Debian packages, for both backends."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path

from judge.errors import SandboxError
from judge.files.places import cache_folder
from judge.sandbox import debian
from judge.sandbox.roots import COMPLETE, Report, fresh_folder, is_complete


def office_root() -> Path:
    """Where the root with LibreOffice is, or will be, for bubblewrap."""
    return cache_folder() / "roots" / f"office-{debian.office_digest()}"


def build_office_root(tarball: Callable[[], Path], report: Report) -> Path:
    """Unpacks the tarball if that has not been done yet.

    Args:
        tarball: returns the tar file, which is made when it is needed.
        report: called with each step.

    Raises:
        SandboxError: it cannot be unpacked.
    """
    root = office_root()
    if is_complete(root):
        report(f"office root: {root} exists")
        return root
    report("office root: unpacking")
    with fresh_folder(root) as work:
        try:
            with tarfile.open(tarball()) as archive:
                members = [member for member in archive if not member.isdev()]
                if hasattr(tarfile, "tar_filter"):
                    archive.extraction_filter = tarfile.tar_filter
                archive.extractall(work, members)  # noqa: S202 - our own tarball
        except tarfile.TarError as error:
            raise SandboxError(f"the office root cannot be unpacked: {error}") from error
        (work / COMPLETE).write_text(json.dumps({"libreoffice": version_in(work)}))
    report(f"office root: made {root}")
    return root


def version_in(root: Path) -> str:
    """LibreOffice's version in an unpacked root, according to its package."""
    package, status = "", root / "var/lib/dpkg/status"
    for line in status.read_text(errors="replace").splitlines() if status.exists() else ():
        name, _, value = line.partition(": ")
        if name == "Package":
            package = value
        elif name == "Version" and package.startswith("libreoffice-core"):
            return value.partition(":")[2] or value
    return ""
