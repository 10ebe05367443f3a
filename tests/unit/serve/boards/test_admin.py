"""``judge serve admin leak``."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from judge.cli.groups import admin
from judge.errors import StoreError, UsageError
from judge.serve.boards.feedback import count_guessable, whole_numbers
from judge.serve.catalog import check_suite
from judge.serve.context import ADDRESS
from judge.serve.options import StorageOptions
from judge.serve.queue.conditions import set_setting
from judge.serve.running import opened
from judge.serve.store.database import Actor
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
    assert "through the answer budget, one gold can leak at most 4.4 bits in a phase" in text


def test_a_link_has_the_address_of_the_last_start(data: Path) -> None:
    assert "the server has not been started" in call(data, "link", "operator")
    with (
        opened(StorageOptions(data=data)) as made,
        made.server.database.writing(Actor("start")) as transaction,
    ):
        set_setting(transaction, ADDRESS, "http://127.0.0.1:9000")
    assert call(data, "link", "operator").startswith("http://127.0.0.1:9000/sign-in?code=")


@pytest.mark.parametrize(
    "command",
    ["check", "sweep", "log", "backup x.tar", "token operator", "account list", "maintenance on"],
)
def test_a_data_folder_that_does_not_exist_is_not_made(command: str, tmp_path: Path) -> None:
    folder = tmp_path / "mistyped"
    done = CliRunner().invoke(admin, [*command.split(), "--data", str(folder)])
    assert isinstance(done.exception, UsageError)
    assert done.exception.message == f"{folder}: holds no data of a server: there is no judge.db"
    assert not folder.exists()


def test_a_file_in_place_of_the_data_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = CliRunner().invoke(admin, ["account", "add", "x", "--data", str(tmp_path / "file")])
    assert isinstance(done.exception, StoreError)
    assert done.exception.message == f"{tmp_path / 'file'}: is not a folder"


@pytest.mark.parametrize(
    "words",
    [
        ("log", "--since", "never"),
        ("log", "--since", "2026-02-30"),
        ("keys", "revoke", "x", "--since", "2026-01-31"),
        ("phase", "add", "p", "mine", "--opens", "2026-13-01T00:00:00Z"),
    ],
)
def test_a_time_that_does_not_exist(words: tuple[str, ...], data: Path) -> None:
    done = CliRunner().invoke(admin, [*words, "--data", str(data)])
    assert isinstance(done.exception, UsageError)
    assert "is not a time" in done.exception.message
    assert "2026-01-31T00:00:00Z" in (done.exception.hint or "")


def test_the_log_since_a_day(data: Path) -> None:
    assert "account.created" in call(data, "log", "--since", "2020-01-31")


def test_a_file_that_is_no_backup(tmp_path: Path) -> None:
    (tmp_path / "x.tar").write_bytes(b"no archive" * 1000)
    words = ["restore", str(tmp_path / "x.tar"), "--data", str(tmp_path / "new")]
    done = CliRunner().invoke(admin, words)
    assert isinstance(done.exception, StoreError)
    assert done.exception.message.endswith("it is not a complete tar archive")
    assert not (tmp_path / "new").exists()


def test_where_there_is_no_sandbox_golds_count_as_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in a server's container, which runs no programs."""
    monkeypatch.setenv("JUDGE_CACHE", str(tmp_path))
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    assert check_suite(str(SAMPLE), None, ("1001",), verify=True) == ("1001",)
    assert "no sandbox here" in "".join(capsys.readouterr())


def test_the_guessable_golds_of_the_sample_suite() -> None:
    suite = load_suite(SAMPLE)
    counts = count_guessable(suite)
    assert counts.whole == len(whole_numbers(suite))
    assert counts.one_cell >= counts.whole
