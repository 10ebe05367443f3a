from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.postgresql import new_database
from tests.unit.serve.spine.world import World, make_world


@pytest.fixture(params=["sqlite", "postgresql"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """A server on each database."""
    url = request.getfixturevalue("postgresql_url") if request.param == "postgresql" else None
    with ExitStack() as stack:
        database = stack.enter_context(new_database(request.param, tmp_path, url))
        yield make_world(database, tmp_path)


@pytest.fixture
def small_world(tmp_path: Path) -> Iterator[World]:
    """A server on SQLite, for what no database decides."""
    with new_database("sqlite", tmp_path, None) as database:
        yield make_world(database, tmp_path)
