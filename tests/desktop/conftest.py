"""Desktops for tests, with bubblewrap, since nothing tested here differs with Docker."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest

from judge.desktop.sandboxed import SandboxDesktop, SandboxDesktopHost
from judge.errors import SandboxError
from judge.sandbox.select import open_sandbox
from tests.desktops import require_desktop


@pytest.fixture(scope="module")
def host() -> Iterator[SandboxDesktopHost]:
    """Opens desktops; skips the test if there is no root for them."""
    require_desktop("bubblewrap")
    with contextlib.closing(open_sandbox("bubblewrap")) as sandbox:
        yield SandboxDesktopHost(sandbox)


class Shared:
    """A desktop that the tests of a file share; if it breaks, it is replaced by a new one.

    So the others do not fail for the sake of the test in which it broke.
    """

    def __init__(self, open_one: Callable[[], SandboxDesktop]) -> None:
        self._open_one = open_one
        self._running: SandboxDesktop | None = None

    def running(self) -> SandboxDesktop:
        """The desktop, which is known to respond."""
        if self._running is not None:
            try:
                self._running.frame()
            except SandboxError:
                self.close()
        if self._running is None:
            self._running = self._open_one()
        return self._running

    def close(self) -> None:
        if self._running is not None:
            self._running.close()
        self._running = None
