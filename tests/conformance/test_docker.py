"""Only for the Docker backend: whether a container serves one submission or many."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from judge.errors import SandboxError
from judge.sandbox.backends.docker import DockerSandbox, WarmContainer, image_tags
from judge.sandbox.contract import RunRequest
from tests.conformance.conftest import open_or_skip

pytestmark = pytest.mark.docker
HELLO = RunRequest("print('ran')", {}, None)


class WithoutNamespaces(DockerSandbox):
    """The same on a host that lets no container make namespaces."""

    tried = 0

    def _make(self, *, nested: bool) -> WarmContainer:
        if nested:
            self.tried += 1
            raise SandboxError("the warden failed: unshare: Operation not permitted")
        return super()._make(nested=nested)


@pytest.fixture
def poor() -> Iterator[WithoutNamespaces]:
    open_or_skip("docker").close()
    sandbox = WithoutNamespaces(image_tags(), jobs=2)
    yield sandbox
    sandbox.close()


def test_if_the_host_refuses_each_submission_has_its_own_container(poor: WithoutNamespaces) -> None:
    for _ in range(2):
        with poor.session() as session:
            assert session.run(HELLO).stdout == b"ran\n"
            assert session._container is not None
            assert not session._container.nested
    assert poor.tried == 1
    assert poor.info.isolation["user"] == "a separate user for each case"


def test_if_namespaces_are_required_a_refusal_is_an_error(poor: WithoutNamespaces) -> None:
    poor._nested = True
    with pytest.raises(SandboxError, match="not permitted"):
        poor.session()


def test_a_container_serves_many_submissions_if_the_host_allows_it() -> None:
    sandbox = open_or_skip("docker")
    assert isinstance(sandbox, DockerSandbox)
    try:
        places = set()
        for _ in range(5):
            with sandbox.session() as session:
                assert session.run(HELLO).stdout == b"ran\n"
                assert session._container is not None
                places.add(session._container)
        nested = all(place.nested for place in places)
        assert len(places) == (1 if nested else 5)
        assert ("namespaces" in sandbox.info.isolation["user"]) == nested
    finally:
        sandbox.close()
