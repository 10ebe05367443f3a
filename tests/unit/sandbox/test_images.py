"""An image is used if it is the one that was built, not because of its name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from judge.errors import SandboxError
from judge.sandbox import roots
from judge.sandbox.backends import docker, images
from judge.sandbox.backends.daemon import Daemon

TAG = "judge-office:1234"


class Scripted(Daemon):
    """A daemon with the images that a script names."""

    def __init__(self, identity: str, has: dict[str, str]) -> None:
        self.identity = identity
        self.has = has

    def facts(self) -> dict[str, Any]:
        return {"ID": self.identity}

    def image_id(self, tag: str) -> str | None:
        return self.has.get(tag)

    def image_labels(self, tag: str) -> dict[str, str]:
        raise AssertionError(tag)

    def import_tarball(self, tarball: Path, tag: str) -> None:
        self.has[tag] = f"sha256:from-{tarball.name}"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUDGE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_another_image_of_the_same_name_is_refused() -> None:
    daemon = Scripted("a", {TAG: "sha256:1"})
    assert daemon.own_image_id(TAG) == "sha256:1"
    assert Scripted("a", {TAG: "sha256:1"}).own_image_id(TAG) == "sha256:1"
    with pytest.raises(SandboxError, match="not the one that was built here") as refused:
        Scripted("a", {TAG: "sha256:2"}).own_image_id(TAG)
    assert "judge sandbox build" in (refused.value.hint or "")
    # Another daemon has images of its own, and no image is no fault.
    assert Scripted("b", {TAG: "sha256:2"}).own_image_id(TAG) == "sha256:2"
    assert Scripted("a", {}).own_image_id(TAG) is None


@pytest.mark.parametrize("text", ["[]", "{}", "no JSON"])
def test_an_invalid_note_is_written_again(cache: Path, text: str) -> None:
    assert Scripted("a", {TAG: "sha256:1"}).own_image_id(TAG) == "sha256:1"
    (note,) = (cache / "images").iterdir()
    note.write_text(text)
    assert Scripted("a", {TAG: "sha256:1"}).own_image_id(TAG) == "sha256:1"
    with pytest.raises(SandboxError):
        Scripted("a", {TAG: "sha256:2"}).own_image_id(TAG)


def test_one_that_was_replaced_is_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tag = docker.debian_tag("office", roots.PYTHON)
    daemon = Scripted("a", {})
    monkeypatch.setattr(images, "Daemon", lambda: daemon)
    said: list[str] = []

    def build(name: str) -> None:
        images.build_debian_image("office", roots.PYTHON, lambda: tmp_path / name, said.append)

    build("first")
    build("never made")
    assert daemon.has[tag] == "sha256:from-first"
    daemon.has[tag] = "sha256:foreign"
    build("again")
    assert daemon.own_image_id(tag) == "sha256:from-again"
    assert any("not the one that was built here" in each for each in said)
