"""The backends that must conform. A new one is a line here."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from judge.errors import SandboxError
from judge.sandbox import images, open_sandbox
from judge.sandbox.bubblewrap import BubblewrapSandbox
from judge.sandbox.contract import Sandbox, SandboxSession
from judge.sandbox.docker import DockerSandbox

JOBS = 2

BACKENDS: dict[str, Callable[[], Sandbox]] = {
    "docker": lambda: open_sandbox("docker", jobs=JOBS),
    "docker-nested": lambda: DockerSandbox(
        images.python_tag(), images.office_tag(), jobs=JOBS, nested=True
    ),
    "bubblewrap": lambda: BubblewrapSandbox(jobs=JOBS),
    "bubblewrap-reused": lambda: BubblewrapSandbox(jobs=JOBS, reuse=True),
    "bubblewrap-sampled": lambda: BubblewrapSandbox(jobs=JOBS, control_groups=False),
}


def open_or_skip(name: str) -> Sandbox:
    """Opens a backend, or skips the test where it cannot be had."""
    try:
        return BACKENDS[name]()
    except SandboxError as error:
        pytest.skip(f"{name}: {error.message} ({error.hint})")


@pytest.fixture(
    scope="session",
    params=[
        pytest.param(name, marks=getattr(pytest.mark, name.partition("-")[0])) for name in BACKENDS
    ],
)
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    opened = open_or_skip(request.param)
    yield opened
    opened.close()


@pytest.fixture
def session(sandbox: Sandbox) -> Iterator[SandboxSession]:
    with sandbox.session() as opened:
        yield opened
