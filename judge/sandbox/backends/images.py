"""Builds the Docker images: one for each root, and that of verifiers.

This needs a daemon but no registry: if the base image cannot be pulled, it is made from Debian
packages. Pip installs the packages on the host, so the host's own index and settings apply, and the
build itself does not need a network.

Agent frameworks judge files in a container without a network. The image of verifiers has everything
that is needed for it (the judge, its engines and LibreOffice), so nothing is installed during a
trial. It is made from the image with LibreOffice, whose interpreter also runs the judge; no
registry is used.
"""

from __future__ import annotations

import fnmatch
import hashlib
import io
import re
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import metadata, resources
from pathlib import Path

import judge
from judge.errors import SandboxError
from judge.sandbox import build, roots
from judge.sandbox.backends import docker
from judge.sandbox.backends.daemon import Daemon
from judge.sandbox.build import Report
from judge.version import __version__

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
    if image_exists(daemon, tag, report):
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
    if image_exists(daemon, tag, report):
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
    if image_exists(daemon, tag, report):
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


def image_exists(daemon: Daemon, tag: str, report: Report) -> bool:
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


IMAGE = "judge-verifier"
_DISTRIBUTION = "sheetjudge"
_DOCKERFILE = "verifier.Dockerfile"
_COMMAND = """\
#!/bin/sh
PYTHONPATH=/opt/judge/app exec /usr/bin/python3 -s -P -c \\
    'import sys; from judge.cli.main import main; sys.argv[0] = "judge"; main()' "$@"
"""
_TOOLS = ("./usr/bin/bash", "./usr/lib/*/libtinfo.so*")
"""The shell that agent frameworks use to start commands."""
_DATA = ("dataset", "inference")
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "data", "grid")


def verifier_tag() -> str:
    """Name of the image, derived from everything in it; computing it requires no daemon."""
    digest = hashlib.sha256()
    parts = [docker.debian_tag("office", roots.OFFICE), _dockerfile(), _COMMAND, *_requirements()]
    parts += [roots.lock_text("solutions"), roots.lock_text("engines")]
    for part in parts:
        digest.update(part.encode() + b"\0")
    for path in _sources():
        digest.update(path.read_bytes() + b"\0")
    return f"{IMAGE}:{__version__}-{digest.hexdigest()[:12]}"


def build_verifier_image(report: Report) -> str:
    """Builds the image if it does not exist yet, on top of the image with LibreOffice.

    Args:
        report: called with each step.

    Returns:
        The image's tag.

    Raises:
        SandboxError: no daemon answers, or a step failed.
    """
    daemon = Daemon()
    tag = verifier_tag()
    if image_exists(daemon, tag, report):
        return tag
    base = _office_image(report)
    version = python_of(daemon, base)
    options = build.foreign_options(version, daemon.facts()["Architecture"])
    with tempfile.TemporaryDirectory(prefix="judge-") as name:
        folder = Path(name)
        report("docker: installing the engines from the package index")
        build.install(roots.lock_text("solutions"), folder / "site", options)
        engines = build.lock_without("engines", set(roots.pins()))
        build.install(engines, folder / "engines", options)
        report("docker: installing the judge")
        _install_judge(folder / "app", options)
        report("docker: unpacking a shell from Debian packages")
        _unpack_tools(folder / "tools")
        (folder / "judge").write_text(_COMMAND, encoding="utf-8")
        (folder / "judge").chmod(0o755)
        report(f"docker: building {tag} on {base}")
        with build_context(folder, _dockerfile()) as context:
            daemon.build(context, tag, {"BASE": base}, {})
    daemon.note_image(tag)
    report(f"docker: built {tag}")
    return tag


def _office_image(report: Report) -> str:
    with ExitStack() as stack:
        return build_debian_image(
            "office",
            roots.OFFICE,
            lambda: stack.enter_context(build.tarball(roots.OFFICE)),
            report,
        )


def _dockerfile() -> str:
    return resources.files("judge.sandbox.image").joinpath(_DOCKERFILE).read_text("utf-8")


def _package() -> Path:
    return Path(next(iter(judge.__path__)))


def _sources() -> Iterator[Path]:
    """Every file of the package that is needed for verdicts, in a fixed order."""
    for path in sorted(_package().rglob("*")):
        if path.suffix in {".py", ".pyi", ".json", ".yaml", ".lock", ".html"} and path.is_file():
            yield path


def _requirements() -> list[str]:
    """Packages that the judge needs to run, as installed here: ``name==version``."""
    versions: dict[str, str] = {}
    waiting = [_DISTRIBUTION]
    while waiting:
        name = waiting.pop()
        for line in metadata.requires(name) or ():
            requirement, _, marker = line.partition(";")
            match = _NAME.match(requirement)
            if match is None or "extra ==" in marker:
                continue
            package = re.sub(r"[-_.]+", "-", match[0]).lower()
            if package not in versions:
                try:
                    versions[package] = metadata.version(package)
                except metadata.PackageNotFoundError:
                    continue  # only needed on another platform
                waiting.append(package)
    return [f"{name}=={version}" for name, version in sorted(versions.items())]


def _install_judge(target: Path, options: list[str]) -> None:
    build.run_pip(
        "install", "--target", str(target), "--no-deps", "--no-compile",
        "--only-binary", ":all:", *options, *_requirements(),
    )  # fmt: skip
    shutil.rmtree(target / "bin", ignore_errors=True)
    shutil.copytree(_package(), target / "judge", ignore=_LEFT_OUT)
    for name in _DATA:
        for source in (_package() / "data" / name, _package().parent / name):
            if source.is_dir():
                shutil.copytree(source, target / "judge" / "data" / name)
                break


def _unpack_tools(target: Path) -> None:
    target.mkdir()
    with build.tarball(roots.SHELL) as tarball, tarfile.open(tarball) as archive:
        members = [
            entry
            for entry in archive
            if any(fnmatch.fnmatch(entry.name, pattern) for pattern in _TOOLS)
        ]
        if _TOOLS[0] not in {member.name for member in members}:
            raise SandboxError("Debian's package of bash holds no shell")
        archive.extraction_filter = tarfile.tar_filter
        archive.extractall(target, members)  # noqa: S202 - a tarball made by the judge
