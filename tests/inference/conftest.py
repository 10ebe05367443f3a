"""Fixtures that all tests of inference share."""

from __future__ import annotations

import pytest

from tests.desktops import require_agent
from tests.inference.planning import make_plan, own_state, questions

__all__ = ["make_plan", "own_state", "questions"]


@pytest.fixture(scope="session")
def agent_root() -> None:
    """Skips the test if bubblewrap has no root for agents."""
    require_agent("bubblewrap")
