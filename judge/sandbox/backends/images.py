"""Builds the Docker images, one for each root.

This needs a daemon but no registry: if the base image cannot be pulled, it is made from Debian
packages. Pip installs the packages on the host, so the host's own index and settings apply, and the
build itself does not need a network.
"""

from __future__ import annotations

import io
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from judge.errors import SandboxError
from judge.sandbox import build, roots
from judge.sandbox.backends import docker
from judge.sandbox.backends.daemon import Daemon
from judge.sandbox.build import Report

DEFAULT_BASE = "python:3.11-slim-bookworm"
_DEBIAN_BASE = "judge-base"


def build_python_image(report: Report, *, base: str | None = None) -> str:
    """Builds the image for solutions if it does not exist yet.

    Args:
        report: called with each step.
        base: image to start from; by default the Dockerfile's, or a small Debian if that image does
            not exist here and cannot be pulled.

    Returns:
        The image's tag.

    Raises:
        SandboxError: no daemon answers, or a step failed.
    """
    daemon = Daemon()
    tag = docker.python_tag()
    if is_there(daemon, tag, report):
        return tag
    start = _find_base(daemon, base, report)
    version = python_of(daemon, start)
    architecture = daemon.facts()["Architecture"]
    with tempfile.TemporaryDirectory(prefix="judge-") as folder:
        for name, present in (("solutions", set()), ("engines", set(roots.pins()))):
            report(f"docker: installing {name} from the package index")
            target = Path(folder, "site" if name == "solutions" else name)
            lock = build.lock_without(name, present)
            build.install(lock, target, build.foreign_options(version, architecture))
        report(f"docker: building {tag} on {start}")
        with build_context(Path(folder), docker.image_file("Dockerfile")) as context:
            labels = {} if base is None else {docker.BASE_LABEL: base}
            daemon.build(context, tag, {"BASE": start, "PYTHON_VERSION": version}, labels)
    daemon.note_image(tag)
    report(f"docker: built {tag}")
    return tag


def build_debian_image(
    name: str, recipe: roots.Recipe, tarball: Callable[[], Path], report: Report
) -> str:
    """Imports the tarball of a recipe if the image does not exist yet.

    Args:
        name: the name of the root.
        recipe: the packages and commands from which the tarball is made.
        tarball: returns the tar file, which is made when it is needed.
        report: called with each step.

    Raises:
        SandboxError: no daemon answers, or the import failed.
    """
    daemon = Daemon()
    tag = docker.debian_tag(name, recipe)
    if is_there(daemon, tag, report):
        return tag
    report(f"docker: importing {tag}")
    daemon.import_tarball(tarball(), tag)
    daemon.note_image(tag)
    return tag


def build_server_image(root: roots.ServiceRoot, report: Report) -> str:
    """Builds the image of an MCP server on the image for solutions, if it does not exist yet.

    Raises:
        SandboxError: no daemon answers, or a step failed.
    """
    daemon = Daemon()
    tag = docker.server_tag(root)
    if is_there(daemon, tag, report):
        return tag
    assert root.content is not None, f"{root.name} is not the root of a server"
    report(f"docker: building {tag}")
    # A tmpfs has the permissions of the folder that it hides.
    text = (
        f"FROM {docker.python_tag()}\nCOPY . {roots.SERVER_CONTENT}\n"
        f"RUN mkdir {roots.SERVER} && chmod 1777 /home {roots.SERVER}\n"
    )
    with build_context(root.content, text) as context:
        daemon.build(context, tag, {}, {})
    daemon.note_image(tag)
    return tag


def is_there(daemon: Daemon, tag: str, report: Report) -> bool:
    """Whether the judge's image exists; False if its name belongs to another image."""
    try:
        image = daemon.own_image_id(tag)
    except SandboxError as error:
        report(f"docker: {error.message}; building it again")
        return False
    if image is not None:
        report(f"docker: {tag} exists")
    return image is not None


def _find_base(daemon: Daemon, base: str | None, report: Report) -> str:
    image = base or DEFAULT_BASE
    if daemon.image_id(image) is not None:
        return image
    report(f"docker: pulling {image}")
    why = daemon.pull(image)
    if why is None:
        return image
    if base is not None:
        raise SandboxError(f"{image} does not exist here and cannot be pulled: {why}")
    report("docker: no registry answers; making a base from Debian packages")
    tag = f"{_DEBIAN_BASE}:{roots.PYTHON.digest}"
    if daemon.image_id(tag) is None:
        with build.tarball(roots.PYTHON) as tarball:
            daemon.import_tarball(tarball, tag)
    return tag


def python_of(daemon: Daemon, image: str) -> str:
    """Version of the interpreter in an image, as it reports it."""
    program = "import platform; print(platform.python_version())"
    output = daemon.run_plain(image, ["python3", "-c", program])
    version = output.strip()
    if not version or tuple(int(part) for part in version.split(".")[:2]) < (3, 11):
        raise SandboxError(f"{image} has no Python 3.11 or newer: it reports {output!r}")
    return version


@contextmanager
def build_context(folder: Path, dockerfile: str) -> Iterator[io.BufferedRandom]:
    """The build context as a tar file.

    Args:
        folder: the files that the Dockerfile can copy.
        dockerfile: the text of the Dockerfile.
    """
    with tempfile.TemporaryFile() as file:
        with tarfile.open(fileobj=file, mode="w") as archive:
            text = dockerfile.encode()
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


class ImageBuilder(build.Builder):
    """Builds the images of a Docker daemon."""

    def is_usable(self, report: Report) -> bool:
        """Whether a daemon answers."""
        try:
            Daemon()
        except SandboxError as error:
            report(f"docker: left out, {error.message}")
            return False
        return True

    def build_python(self, report: Report, base: str | None) -> str:
        """Builds the image for solutions; returns its tag."""
        return build_python_image(report, base=base)

    def build_server(self, root: roots.ServiceRoot, report: Report) -> str:
        """Builds the image of an MCP server; returns its tag."""
        return build_server_image(root, report)

    def build_debian(
        self, name: str, recipe: roots.Recipe, tarball: Callable[[], Path], report: Report
    ) -> str:
        """Imports an image; returns its tag."""
        return build_debian_image(name, recipe, tarball, report)


IMAGE_BUILDER = ImageBuilder()
