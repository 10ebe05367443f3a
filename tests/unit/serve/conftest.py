from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.postgresql import running_postgresql


@pytest.fixture(scope="session")
def postgresql_url() -> Iterator[str]:
    with running_postgresql() as url:
        yield url
