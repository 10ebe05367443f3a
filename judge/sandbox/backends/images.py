"""The Docker images: solutions and engines, and LibreOffice.

Needs a daemon but no registry: if the base image cannot be pulled, it is made from Debian packages.
Pip installs the packages on the host, so the host's own index and settings apply, and the build
itself has no network.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

from judge.errors import SandboxError
from judge.sandbox import debian, roots
from judge.sandbox.backends import docker
from judge.sandbox.backends.daemon import Daemon
from judge.sandbox.roots import Report

DEFAULT_BASE = "python:3.11-slim-bookworm"
_DEBIAN_BASE = "judge-base"
_DEBIAN_PYTHON = "3.11"
_PLATFORMS = {
    "x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"
}  # fmt: skip
_MANYLINUX = (
    "manylinux_2_28",
    "manylinux_2_27",
    "manylinux_2_24",
    "manylinux_2_17",
    "manylinux2014",
)


def python_tag() -> str:
    """Name of the image for solutions, derived from all that goes into it."""
    digest = hashlib.sha256()
    for name in ("Dockerfile", "solutions.lock", "engines.lock"):
        digest.update(_image_file(name).encode() + b"\0")
    return f"{docker.PYTHON_IMAGE}:{digest.hexdigest()[:16]}"


def office_tag() -> str:
    """Name of the image with LibreOffice."""
    return f"{docker.OFFICE_IMAGE}:{debian.office_digest()}"


def _image_file(name: str) -> str:
    return resources.files("judge.sandbox.image").joinpath(name).read_text("utf-8")


def build_python_image(report: Report, *, base: str | None = None) -> str:
    """Builds the image for solutions if it does not exist yet.

    Args:
        report: called with each step.
        base: image to start from; by default the Dockerfile's, or a small Debian if that one can
            neither be found nor pulled.

    Returns:
        The image's tag.

    Raises:
        SandboxError: no daemon, or a step failed.
    """
    daemon = Daemon()
    tag = python_tag()
    if daemon.image_id(tag) is not None:
        report(f"docker: {tag} is there")
        return tag
    start = _find_base(daemon, base, report)
    version = _python_of(daemon, start)
    architecture = daemon.facts()["Architecture"]
    with tempfile.TemporaryDirectory(prefix="judge-") as folder:
        for name, present in (("solutions", set()), ("engines", set(roots.pins()))):
            report(f"docker: installing {name} from the package index")
            target = Path(folder, "site" if name == "solutions" else name)
            lock = roots.lock_without(name, present)
            roots.install(lock, target, _foreign(version, architecture))
        report(f"docker: building {tag} on {start}")
        with _context(Path(folder)) as context:
            labels = {} if base is None else {docker.BASE_LABEL: base}
            daemon.build(context, tag, {"BASE": start, "PYTHON_VERSION": version}, labels)
    report(f"docker: built {tag}")
    return tag


def build_office_image(tarball: Callable[[], Path], report: Report) -> str:
    """Imports the tarball with LibreOffice if the image does not exist yet.

    Args:
        tarball: returns the tar file, which is made when it is needed.
        report: called with each step.

    Raises:
        SandboxError: no daemon, or the import failed.
    """
    daemon = Daemon()
    tag = office_tag()
    if daemon.image_id(tag) is not None:
        report(f"docker: {tag} is there")
        return tag
    report(f"docker: importing {tag}")
    daemon.import_tarball(tarball(), tag)
    return tag


def _find_base(daemon: Daemon, base: str | None, report: Report) -> str:
    wanted = base or DEFAULT_BASE
    if daemon.image_id(wanted) is not None:
        return wanted
    report(f"docker: pulling {wanted}")
    why = daemon.pull(wanted)
    if why is None:
        return wanted
    if base is not None:
        raise SandboxError(f"{wanted} does not exist here and cannot be pulled: {why}")
    report("docker: no registry answers; making a base from Debian packages")
    tag = f"{_DEBIAN_BASE}:{debian.python_digest()}"
    if daemon.image_id(tag) is None:
        with debian.python_tarball() as tarball:
            daemon.import_tarball(tarball, tag)
    return tag


def _python_of(daemon: Daemon, image: str) -> str:
    """Version of the interpreter in an image, as it reports it."""
    program = "import platform; print(platform.python_version())"
    said = daemon.run_plain(image, ["python3", "-c", program])
    version = said.strip()
    if not version or tuple(int(part) for part in version.split(".")[:2]) < (3, 11):
        raise SandboxError(f"{image} has no Python 3.11 or newer: it reports {said!r}")
    return version


def _foreign(version: str, architecture: str) -> list[str]:
    """Pip's options for packages of an interpreter other than the one that runs pip."""
    machine = _PLATFORMS.get(architecture)
    if machine is None:
        raise SandboxError(f"there are no packages for a Docker daemon on {architecture}")
    options = ["--python-version", version, "--implementation", "cp"]
    for name in _MANYLINUX:
        options += ["--platform", f"{name}_{machine}"]
    return options


@contextmanager
def _context(folder: Path) -> Iterator[io.BufferedRandom]:
    """The build context as a tar file."""
    with tempfile.TemporaryFile() as file:
        with tarfile.open(fileobj=file, mode="w") as archive:
            text = _image_file("Dockerfile").encode()
            entry = tarfile.TarInfo("Dockerfile")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text))
            archive.add(folder, ".", filter=_as_root)
        file.seek(0)
        yield file


def _as_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    return entry
