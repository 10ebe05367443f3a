"""The script that fetches the page's grid: files that are not as expected are not installed."""

from __future__ import annotations

import base64
import hashlib
import importlib.machinery
import importlib.util
import io
import tarfile
from pathlib import Path
from types import ModuleType

import pytest

from judge.annotate.web.server import GRID_FILES
from tests.conftest import REPOSITORY


@pytest.fixture
def script() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader(
        "fetch_grid", str(REPOSITORY / "scripts/fetch-grid")
    )
    spec = importlib.util.spec_from_loader("fetch_grid", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def archive(files: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return target.getvalue()


def pack(folder: Path, script: ModuleType, monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    """Makes the script fetch one package, and puts an archive where it searches."""
    (folder / "grid-1.0.tgz").write_bytes(data)
    integrity = base64.b64encode(hashlib.sha512(data).digest()).decode()
    monkeypatch.setattr(script, "PACKAGES", (("grid", "1.0", integrity, {"dist/a.js": "b.js"}),))


def test_it_brings_what_the_page_serves(script: ModuleType) -> None:
    brought = {here for *_, files in script.PACKAGES for here in files.values()}
    assert set(GRID_FILES) <= brought
    assert sum(name.endswith(".LICENSE") for name in brought) == len(script.PACKAGES)


def test_files_are_taken_out_once(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack(tmp_path, script, monkeypatch, archive({"dist/a.js": b"code", "other.js": b"more"}))
    target = tmp_path / "page" / "grid"
    assert script.fetch(target, tmp_path) is True
    assert {path.name for path in target.iterdir()} == {"b.js", "versions.txt"}
    assert (target / "b.js").read_bytes() == b"code"
    (tmp_path / "grid-1.0.tgz").unlink()
    assert script.fetch(target, tmp_path) is False


@pytest.mark.parametrize("broken", ["other bytes", "cut", "missing file"])
def test_what_is_wrong_is_refused_and_the_old_grid_stays(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    good = archive({"dist/a.js": b"code"})
    pack(
        tmp_path, script, monkeypatch, archive({"x.js": b""}) if broken == "missing file" else good
    )
    if broken == "other bytes":
        (tmp_path / "grid-1.0.tgz").write_bytes(archive({"dist/a.js": b"evil"}))
    elif broken == "cut":
        (tmp_path / "grid-1.0.tgz").write_bytes(good[:-20])
    target = tmp_path / "page" / "grid"
    target.mkdir(parents=True)
    (target / "b.js").write_bytes(b"old")
    with pytest.raises((SystemExit, KeyError)):
        script.fetch(target, tmp_path)
    assert [path.name for path in target.parent.iterdir()] == ["grid"]
    assert (target / "b.js").read_bytes() == b"old"
