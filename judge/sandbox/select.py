"""Lists the kinds of sandbox, and selects one for this machine.

A backend is a module with a :class:`judge.sandbox.contract.Backend`, and a row of
:data:`BACKENDS`. If its roots or images have to be built first, the row also names its
:class:`judge.sandbox.build.Builder`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pkgutil import resolve_name
from typing import TYPE_CHECKING, NamedTuple

from judge.errors import SandboxError, UsageError

if TYPE_CHECKING:
    from judge.sandbox.contract import Backend, BackendFinding, Sandbox

AUTO = "auto"
"""Selects the first backend that works on this machine."""


class Row(NamedTuple):
    """The location of a backend, which is imported when it is needed.

    Attributes:
        backend: the module, and the name of the backend in it.
        builder: the same for the builder of its roots or images; empty if nothing has to be built.
    """

    backend: str
    builder: str = ""

    def load(self) -> Backend:
        """Imports the backend."""
        backend: Backend = resolve_name(self.backend)
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
    """The names that the option ``--sandbox`` accepts."""

    def __iter__(self) -> Iterator[str]:
        yield AUTO
        yield from BACKENDS


SANDBOX_KINDS = _Kinds()
"""``auto``, and the name of each backend."""


def buildable_backends() -> list[str]:
    """Names of the backends whose roots or images have to be built."""
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
            already sealed, ``sealed-container`` runs the judge's own services, but no solutions;
            ``auto`` selects it if nothing else works.
        jobs: how many sessions will be open at once.

    Raises:
        SandboxError: no sandbox is available; the hint names the command to run.
        UsageError: there is no such kind.
    """
    check_sandbox_kind(kind)
    return _open_first(jobs) if kind == AUTO else BACKENDS[kind].load().open(jobs)


def _open_first(jobs: int) -> Sandbox:
    """Returns the first backend that works; backends that cannot run solutions are tried last."""
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
    """Checks, before anything is judged, that a sandbox runs solutions.

    Raises:
        SandboxError: it runs only the judge's own services.
    """
    if not sandbox.info.runs_solutions:
        sandbox.session()  # raises an error that says why


def probe_sandboxes() -> list[BackendFinding]:
    """Checks what this machine has to run isolated programs, and how to get what is missing."""
    return [finding for row in BACKENDS.values() for finding in row.load().probe()]
