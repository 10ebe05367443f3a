"""``judge serve admin leak``."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from judge.cli.serve_admin import admin
from judge.serve.boards.guesses import count_guessable, whole_numbers
from judge.suites import load_suite

SAMPLE = Path(__file__).parents[4] / "dataset" / "sample"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "server"
    call(folder, "account", "add", "ann", "--role", "author")
    hidden = [option for task in ("1001", "1002") for option in ("--hidden", task)]
    call(folder, "suite", "add", "mine", str(SAMPLE), "--owner", "ann", "--unchecked", *hidden)
    return folder


def call(data: Path, *words: str) -> str:
    done = CliRunner().invoke(admin, [*words, "--data", str(data)])
    assert done.exception is None, done.output
    return done.output


def test_leak_says_what_each_level_tells(data: Path) -> None:
    text = call(data, "leak", "mine", "--submissions", "100")
    assert "hidden: 2 tasks, 6 cases, level score" in text
    assert "public: 12 tasks, 36 cases, level cells" in text
    assert "tasks: at most 2.0 bits in a submission, 200 in 100" in text
    assert "one gold, by the budget: at most 4.4 bits in a phase" in text


def test_the_guessable_golds_of_the_sample_suite() -> None:
    suite = load_suite(SAMPLE)
    counts = count_guessable(suite)
    assert counts.whole == len(whole_numbers(suite))
    assert counts.one_cell >= counts.whole
