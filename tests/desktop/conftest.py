"""Desktops for tests: bubblewrap's, since Docker's differ in nothing that is tested here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from judge.desktop.sandboxed import SandboxDesktopHost
from judge.sandbox.select import open_sandbox
from tests.desktops import require_desktop


@pytest.fixture(scope="module")
def host() -> Iterator[SandboxDesktopHost]:
    """Opens desktops; skips where there is no root for them."""
    require_desktop("bubblewrap")
    with contextlib.closing(open_sandbox("bubblewrap")) as sandbox:
        yield SandboxDesktopHost(sandbox)
