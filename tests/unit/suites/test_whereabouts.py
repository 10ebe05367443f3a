"""Where a suite is on this machine, found by its digest."""

from __future__ import annotations

from pathlib import Path

import pytest

from judge.suites import Suite, load_suite
from judge.suites.suite import remember_suite, source_of_digest
from tests.unit.report.runs import TaskSpec, make_suite


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Suite:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("JUDGE_CACHE", str(tmp_path / "cache"))
    return make_suite(tmp_path / "mine", [TaskSpec("1", cases=1)])


def test_a_folder_is_found_again(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    assert source_of_digest(suite.digest, suite.name) is None
    monkeypatch.chdir(suite.root.parent)
    remember_suite(suite, "mine")
    assert source_of_digest(suite.digest, "whatever") == str(suite.root)


def test_a_suite_that_ships_is_known_by_its_name(suite: Suite) -> None:
    digest = load_suite("sample").digest
    assert source_of_digest(digest, "sample") == "sample"
    assert source_of_digest(digest, "babelbench") is None, "not fetched"
    assert source_of_digest(digest, str(suite.root)) is None, "a log names no folders"


@pytest.mark.parametrize("digest", ["", "../../etc/passwd", "A" * 64, "0" * 63, "0" * 64 + "\n"])
def test_what_is_not_a_digest_is_not_looked_up(digest: str, suite: Suite) -> None:
    assert source_of_digest(digest, "sample") is None
    assert suite.digest != digest


@pytest.mark.parametrize("content", [b"", b"[]", b'{"source": 5}', b"{"])
def test_a_record_that_is_broken_counts_as_missing(
    content: bytes, suite: Suite, tmp_path: Path
) -> None:
    remember_suite(suite, str(suite.root))
    (record,) = (tmp_path / "state" / "judge" / "suites").iterdir()
    record.write_bytes(content)
    assert source_of_digest(suite.digest, suite.name) is None


def test_without_a_place_to_write_nothing_is_remembered(suite: Suite, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    remember_suite(suite, str(suite.root))
    assert source_of_digest(suite.digest, suite.name) is None
