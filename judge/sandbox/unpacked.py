"""Roots unpacked from Debian packages: one tarball of a recipe, for both backends."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path

from judge.errors import SandboxError
from judge.files.paths import cache_folder
from judge.sandbox.debian import Recipe
from judge.sandbox.roots import COMPLETE, Report, fresh_folder, is_complete


def folder_of(name: str, recipe: Recipe) -> Path:
    """Where the root of a recipe is, or will be, for bubblewrap."""
    return cache_folder() / "roots" / f"{name}-{recipe.digest}"


def build_root(name: str, recipe: Recipe, tarball: Callable[[], Path], report: Report) -> Path:
    """Unpacks the tarball of a recipe if that has not been done yet.

    Args:
        name: of the root.
        recipe: what the tarball is made of.
        tarball: returns the tar file, which is made when it is needed.
        report: called with each step.

    Raises:
        SandboxError: it cannot be unpacked.
    """
    root = folder_of(name, recipe)
    if is_complete(root):
        report(f"{name} root: {root} exists")
        return root
    report(f"{name} root: unpacking")
    with fresh_folder(root) as work:
        try:
            with tarfile.open(tarball()) as archive:
                members = [member for member in archive if not member.isdev()]
                if hasattr(tarfile, "tar_filter"):
                    archive.extraction_filter = tarfile.tar_filter
                archive.extractall(work, members)  # noqa: S202 - our own tarball
        except tarfile.TarError as error:
            raise SandboxError(f"the {name} root cannot be unpacked: {error}") from error
        (work / COMPLETE).write_text(json.dumps({"libreoffice": version_in(work)}))
    report(f"{name} root: made {root}")
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
