from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.serve.spine.world import World, new_world


@pytest.fixture(params=["sqlite", "postgresql"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """A server on each database."""
    url = request.getfixturevalue("postgresql_url") if request.param == "postgresql" else None
    with new_world(request.param, tmp_path, url) as world:
        yield world


@pytest.fixture
def small_world(tmp_path: Path) -> Iterator[World]:
    """A server on SQLite, for tests that do not depend on the database."""
    with new_world("sqlite", tmp_path) as world:
        yield world
