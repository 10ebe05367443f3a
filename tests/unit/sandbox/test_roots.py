from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from judge.errors import SandboxError
from judge.recalc.select import recalc_cache_folder
from judge.sandbox import build, roots
from judge.sandbox.backends import docker
from judge.sandbox.roots import ROOTS, root_named
from judge.suites.suite import fetched_folder


def test_pins_are_exact_and_hashed() -> None:
    for name in ("solutions", "engines", "desktop", "desktop-build"):
        text = roots.lock_text(name)
        heads = [line for line in text.splitlines() if line and not line[0].isspace()]
        heads = [line for line in heads if not line.startswith("#")]
        assert heads
        assert all("==" in line and line.endswith("\\") for line in heads)
        assert text.count("--hash=sha256:") >= len(heads)
    named = {"openpyxl", "pandas", "numpy", "xlsxwriter", "python-calamine"}
    assert named | {"pillow", "matplotlib"} <= set(roots.pins())


def test_packages_in_both_locks_have_the_same_version() -> None:
    solutions, engines = roots.pins("solutions"), roots.pins("engines")
    common = set(solutions) & set(engines)
    assert common
    assert {name: solutions[name] for name in common} == {name: engines[name] for name in common}


def test_a_lock_without_some_packages() -> None:
    kept = build.lock_without("engines", {"numpy"})
    assert "\nnumpy==" not in f"\n{kept}"
    assert "ironcalc==" in kept
    assert kept.count("--hash") < roots.lock_text("engines").count("--hash")


def test_there_is_one_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Suites, roots and computed values, wherever the user's home is expanded."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for named in (str(tmp_path / "x"), "~/x"):
        monkeypatch.setenv("JUDGE_CACHE", named)
        assert roots.python_root().parent == tmp_path / "x" / "roots"
        assert fetched_folder("some").parent == tmp_path / "x" / "suites"
        assert recalc_cache_folder() == tmp_path / "x" / "recalc"
    monkeypatch.delenv("JUDGE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert roots.python_root().parent == tmp_path / "cache" / "judge" / "roots"
    assert fetched_folder("some").parent == tmp_path / "cache" / "judge" / "suites"


def test_a_new_folder_is_put_in_place_completely_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "roots" / "python-1"

    def fail() -> None:
        with build.fresh_folder(target) as work:
            (work / "half").write_text("x")
            raise ValueError("half-way")

    with pytest.raises(ValueError, match="half-way"):
        fail()
    assert list(target.parent.iterdir()) == []
    with build.fresh_folder(target) as work:
        (work / "whole").write_text("x")
        assert not target.exists()
    assert [path.name for path in target.parent.iterdir()] == ["python-1"]
    assert (target / "whole").exists()
    with build.fresh_folder(target) as work:
        (work / "other").write_text("x")
    assert [path.name for path in target.iterdir()] == ["other"]


def test_a_step_that_fails_names_the_root(tmp_path: Path) -> None:
    with (
        pytest.raises(SandboxError, match="python-1 could not be made"),
        build.fresh_folder(tmp_path / "python-1"),
    ):
        (tmp_path / "nowhere" / "file").write_text("x")


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("x")
    with (
        pytest.raises(SandboxError, match="cannot be written") as caught,
        build.fresh_folder(blocked / "roots" / "python-1"),
    ):
        pass
    assert "JUDGE_CACHE" in str(caught.value.hint)


def test_a_failure_of_pip_shows_the_end_of_its_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        build, "pip_command", lambda: [sys.executable, "-c", "raise SystemExit('no index answers')"]
    )
    with pytest.raises(SandboxError, match="no index answers") as caught:
        build.run_pip("install", "x")
    assert caught.value.hint


def test_loader_and_libraries_of_this_interpreter() -> None:
    program = Path(sys.executable).resolve()
    loader = build.loader_of(program)
    assert loader.exists()
    names = {path.name for path in build.libraries_of([program, Path(__file__)], loader)}
    assert any(name.startswith("libc.") for name in names)


def test_what_is_not_a_program(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    with pytest.raises(SandboxError):
        build.loader_of(script)


def test_the_digest_is_stable_between_processes() -> None:
    command = [
        sys.executable,
        "-c",
        "from judge.sandbox import roots; print(roots.python_digest())",
    ]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert said == roots.python_digest()


def test_another_build_of_the_same_interpreter_has_the_same_content(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root, content = roots.python_digest(), roots.content_identity()
    built = f"{platform.python_version()} (main, Jan  1 2020, 00:00:00) [GCC 9.9]"
    monkeypatch.setattr(sys, "version", built)
    assert roots.python_digest() != root
    assert roots.content_identity() == content
    with monkeypatch.context() as other:
        other.setattr(platform, "python_version", lambda: "3.11.99")
        assert roots.content_identity() != content
    with monkeypatch.context() as other:
        other.setattr(roots, "lock_text", lambda name: f"other packages for {name}")
        assert roots.content_identity() != content


def test_an_image_is_named_by_what_it_contains() -> None:
    labels = {docker.PYTHON_LABEL: "3.11.2"}
    named = docker.content_identity("judge-sandbox:ab12", labels, "x86_64")
    assert named == "judge-sandbox:ab12, Python 3.11.2, x86_64"
    based = docker.content_identity(
        "judge-sandbox:ab12", {**labels, docker.BASE_LABEL: "mine:1"}, "x86_64"
    )
    assert based == f"{named}, on mine:1"


def test_each_root_has_its_own_folder_and_leaves_memory_to_its_programs() -> None:
    assert set(docker.image_tags()) == set(ROOTS) >= {"python", "office", "desktop"}
    tags = set(docker.image_tags().values())
    assert len(tags) == len({root.folder for root in ROOTS.values()}) == 4
    for name, root in ROOTS.items():
        sizes = root.sizes(root.memory_bytes)
        assert root.name == name
        assert sum(sizes.values()) <= root.memory_bytes // 2
        assert any(root.home.startswith(f"{folder}/") for folder in sizes)


def test_an_unknown_root_is_reported_with_the_known_ones() -> None:
    with pytest.raises(SandboxError) as caught:
        root_named("windows")
    assert "desktop" in str(caught.value.hint)
