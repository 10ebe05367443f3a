"""The kinds of sandbox, and which one this machine gets.

A backend is one module with a :class:`judge.sandbox.contract.Backend`, and one row of
:data:`BACKENDS`. A backend that runs programs of roots or images which have to be built first names
its :class:`judge.sandbox.build.Builder` there as well.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from judge.errors import SandboxError, UsageError

if TYPE_CHECKING:
    from judge.sandbox.contract import Backend, BackendFinding, Sandbox

AUTO = "auto"
"""Takes the first backend that works on this machine."""


class Row(NamedTuple):
    """Where a backend is; it is imported when it is needed.

    Attributes:
        backend: the module, and the name of the backend in it.
        builder: the same for what builds its roots or images; empty if nothing has to be built.
    """

    backend: str
    builder: str = ""

    def load(self) -> Backend:
        """Imports the backend."""
        backend: Backend = load_object(self.backend)
        return backend


BACKENDS = {
    "docker": Row(
        "judge.sandbox.backends.docker:BACKEND", "judge.sandbox.backends.images:IMAGE_BUILDER"
    ),
    "bubblewrap": Row(
        "judge.sandbox.backends.bubblewrap:BACKEND", "judge.sandbox.build:ROOT_BUILDER"
    ),
    "sealed-container": Row("judge.sandbox.backends.sealed_container:BACKEND"),
}
"""Name -> backend, in the order in which ``auto`` tries those that run solutions."""


class _Kinds:
    """The names that the option ``--sandbox`` takes."""

    def __iter__(self) -> Iterator[str]:
        yield AUTO
        yield from BACKENDS


SANDBOX_KINDS = _Kinds()
"""``auto``, and the name of each backend."""


def load_object(home: str) -> Any:
    """The object of a row, such as ``judge.sandbox.backends.docker:BACKEND``."""
    module, _, name = home.partition(":")
    return getattr(importlib.import_module(module), name)


def buildable_backends() -> list[str]:
    """Names of the backends whose roots or images are built."""
    return [name for name, row in BACKENDS.items() if row.builder]


def check_sandbox_kind(kind: str) -> None:
    """Checks the name of a kind of sandbox.

    Raises:
        UsageError: there is no such kind.
    """
    if kind not in SANDBOX_KINDS:
        raise UsageError(f"no such sandbox: {kind!r}", hint=f"known: {', '.join(SANDBOX_KINDS)}")


def open_sandbox(kind: str = AUTO, *, jobs: int = 1) -> Sandbox:
    """Opens a sandbox.

    Args:
        kind: ``docker``, ``bubblewrap``, or ``auto``: Docker if a daemon answers and has the image,
            otherwise bubblewrap. A solution never runs without isolation. In a container that is
            sealed already, ``sealed-container`` has the judge's own services, and no solutions;
            ``auto`` takes it where nothing else works.
        jobs: how many sessions will be open at once.

    Raises:
        SandboxError: none is available; the hint names the command to run.
        UsageError: no such kind.
    """
    check_sandbox_kind(kind)
    return _open_first(jobs) if kind == AUTO else BACKENDS[kind].load().open(jobs)


def _open_first(jobs: int) -> Sandbox:
    """The first backend that works; one that runs no solutions comes last."""
    failures: list[tuple[str, SandboxError]] = []
    for runs_solutions in (True, False):
        for row in BACKENDS.values():
            backend = row.load()
            if backend.runs_solutions is not runs_solutions:
                continue
            try:
                return backend.open(jobs)
            except SandboxError as error:
                if runs_solutions:
                    failures.append((backend.title, error))
    reasons = ". ".join(f"{title}: {error.message}" for title, error in failures)
    hints = [error.hint for _, error in reversed(failures) if error.hint]
    raise SandboxError(
        f"no sandbox is available. {reasons}", hint=hints[0] if hints else None
    ) from failures[-1][1]


def check_runs_solutions(sandbox: Sandbox) -> None:
    """Checks, before anything is judged, that a sandbox takes solutions.

    Raises:
        SandboxError: it has only the judge's own services.
    """
    if not sandbox.info.runs_solutions:
        sandbox.session()  # raises, and says why


def probe_sandboxes() -> list[BackendFinding]:
    """Lists this machine's means to run isolated programs, and how to get those it lacks."""
    return [finding for row in BACKENDS.values() for finding in row.load().probe()]
