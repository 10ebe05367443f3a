from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgresql import running_postgresql


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each test of the server has a database of its own: together they are slow."""
    here = f"{Path(__file__).parent}/"
    for item in items:  # all tests of the session, so nothing slow is called for each
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def postgresql_url() -> Iterator[str]:
    with running_postgresql() as url:
        yield url
