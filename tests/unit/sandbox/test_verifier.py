"""The image of verifiers, as far as it can be tested without a daemon."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from judge.errors import SandboxError
from judge.sandbox import build, roots
from judge.sandbox.backends import images


def test_the_tag_depends_on_the_contents_of_the_image(monkeypatch: pytest.MonkeyPatch) -> None:
    tag = images.verifier_tag()
    assert tag == images.verifier_tag()
    monkeypatch.setattr(images, "_COMMAND", "another command")
    assert tag != images.verifier_tag()


def test_the_image_has_all_imports_of_the_judge_but_none_of_its_extras() -> None:
    found = dict(each.split("==") for each in images._requirements())
    assert {"click", "openpyxl", "et-xmlfile", "numpy", "pyyaml"} <= set(found)
    assert not {"pytest", "pyarrow", "distributed", "sheetjudge"} & set(found)


def test_the_judge_is_installed_with_its_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(build, "run_pip", lambda *arguments: asked.append(arguments))
    images._install_judge(tmp_path / "app", ["--python-version", "3.13"])
    assert "--python-version" in asked[0]
    assert (tmp_path / "app/judge/cli/main.py").is_file()
    assert (tmp_path / "app/judge/__init__.pyi").is_file()  # the names of the library
    assert images._package() / "__init__.pyi" in set(images._sources())
    assert (tmp_path / "app/judge/data/dataset/sources.yaml").is_file()
    assert not list((tmp_path / "app").rglob("__pycache__"))


def test_only_the_shell_is_taken_from_its_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["./usr/bin/bash", "./usr/lib/x86_64-linux-gnu/libtinfo.so.6", "./etc/passwd"]

    @contextmanager
    def tarball(_: roots.Recipe) -> Iterator[Path]:
        path = tmp_path / "root.tar"
        with tarfile.open(path, "w") as archive:
            for name in names:
                archive.addfile(tarfile.TarInfo(name), io.BytesIO())
        yield path

    monkeypatch.setattr(build, "tarball", tarball)
    images._unpack_tools(tmp_path / "tools")
    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert found == {"root.tar", "tools/usr/bin/bash", f"tools/{names[1][2:]}"}
    names.remove("./usr/bin/bash")
    with pytest.raises(SandboxError, match="no shell"):
        images._unpack_tools(tmp_path / "more")
