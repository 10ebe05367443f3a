"""Checks whether this machine can open desktops, and sandboxes for agents."""

from __future__ import annotations

import contextlib

import pytest

from judge.errors import JudgeError
from judge.sandbox import open_sandbox


def require_desktop(backend: str) -> None:
    """Skips the test if the machine has no desktop for a backend."""
    try:
        with contextlib.closing(open_sandbox(backend)) as sandbox:
            if sandbox.root_digest("desktop") is None:
                pytest.skip(f"no desktop for {backend} here: judge sandbox build --desktop")
    except JudgeError as error:
        pytest.skip(f"no {backend} here: {error.message}")


def require_agent(backend: str) -> None:
    """Skips the test if the machine has no root for agents for a backend."""
    try:
        with contextlib.closing(open_sandbox(backend)) as sandbox:
            if sandbox.root_digest("agent") is None:
                pytest.skip(f"no root for agents for {backend}: judge sandbox build --agent")
    except JudgeError as error:
        pytest.skip(f"no {backend} here: {error.message}")
