"""Opens what opens desktops."""

from __future__ import annotations

import contextlib

from judge.desktop.contract import DesktopHost
from judge.desktop.sandboxed import ROOT, SandboxDesktopHost
from judge.errors import SandboxError
from judge.sandbox import open_sandbox
from judge.sandbox.contract import Sandbox


def open_desktops(
    kind: str, jobs: int, stack: contextlib.ExitStack | contextlib.AsyncExitStack
) -> DesktopHost:
    """Desktops in a sandbox.

    Args:
        kind: ``docker``, ``bubblewrap``, or ``auto``: the sandbox that solutions would get, or the
            other one if only that one has desktops.
        jobs: desktops at a time.
        stack: closes the sandbox.

    Raises:
        SandboxError: there is no such sandbox.
    """
    sandbox = stack.enter_context(contextlib.closing(open_sandbox(kind, jobs=jobs)))
    if kind == "auto" and not sandbox.has_root(ROOT):
        with contextlib.suppress(SandboxError):
            sandbox = _embedded(jobs, stack) or sandbox
    return SandboxDesktopHost(sandbox)


def _embedded(jobs: int, stack: contextlib.ExitStack | contextlib.AsyncExitStack) -> Sandbox | None:
    """The embedded sandbox, if it has desktops."""
    sandbox = stack.enter_context(contextlib.closing(open_sandbox("bubblewrap", jobs=jobs)))
    return sandbox if sandbox.has_root(ROOT) else None
