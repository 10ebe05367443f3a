"""Builds the image of verifiers: one container with the judge, its engines and LibreOffice.

Agent frameworks judge files in a container without a network. This image contains everything that
they need, so nothing is installed during a trial. It is made from the image with LibreOffice, whose
interpreter also runs the judge; no registry is used.
"""

from __future__ import annotations

import fnmatch
import hashlib
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from importlib import metadata, resources
from pathlib import Path

import judge
from judge.errors import SandboxError
from judge.sandbox import build, roots
from judge.sandbox.backends import docker, images
from judge.sandbox.backends.daemon import Daemon
from judge.sandbox.build import Report
from judge.version import __version__

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
    if images.is_there(daemon, tag, report):
        return tag
    base = _office_image(report)
    version = images.python_of(daemon, base)
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
        with images.build_context(folder, _dockerfile()) as context:
            daemon.build(context, tag, {"BASE": base}, {})
    daemon.note_image(tag)
    report(f"docker: built {tag}")
    return tag


def _office_image(report: Report) -> str:
    with ExitStack() as stack:
        return images.build_debian_image(
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
