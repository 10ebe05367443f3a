"""A results folder may come from anyone: what is requested, sent and read because of it.

Two servers on 127.0.0.1: the user's own, and a stranger's. What reaches the stranger's is looked at
byte for byte.
"""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from judge.api.infer_options import InferOptions
from judge.api.inferring import make_plan
from judge.api.planning import Resumed
from judge.cli.infer import infer
from judge.errors import JudgeError, StoreError, UsageError
from judge.grading.store import RunDirectory
from judge.inference.config import ModelSpec, check_key
from judge.inference.started import StartedRuns
from tests.inference.raw_server import Exchange, RawServer, raw_server

KEY = "sk-secret-of-this-user"
PROGRAM = "```python\nx = 1\n```"
REPLY = json.dumps({"choices": [{"message": {"content": PROGRAM}}], "data": [{"id": "m-1"}]})


def reply(exchange: Exchange) -> None:
    exchange.answer(200, REPLY.encode())


@pytest.fixture
def own_server() -> Iterator[RawServer]:
    with raw_server(reply) as server:
        yield server


@pytest.fixture
def their_server() -> Iterator[RawServer]:
    with raw_server(reply) as server:
        yield server


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "DEEPSEEK_API_KEY", "MY_KEY"):
        monkeypatch.setenv(name, KEY)


def run(*arguments: str | Path | int) -> Result:
    return CliRunner().invoke(infer, ["--no-cache", "-q", *(str(each) for each in arguments)])


def error_of(result: Result) -> JudgeError:
    assert isinstance(result.exception, JudgeError), (result.output, result.exception)
    return result.exception


def their_folder(path: Path, options: dict[str, Any]) -> Path:
    """A folder with a description that no judge wrote."""
    path.mkdir(exist_ok=True)
    with RunDirectory(path) as store:
        store.write_run({"inference": {"options": options}})
    return path


def begun_elsewhere(path: Path, options: dict[str, Any]) -> Path:
    """A folder from a stranger: begun, and right in everything that can be checked."""
    filled = InferOptions(**{"limit": 2, **options}).filled({})
    plan = make_plan(Resumed(filled, key_given=True)).plan
    path.mkdir(exist_ok=True)
    with RunDirectory(path) as store:
        store.write_run(plan.run_document())
    return path


ATTACKS: dict[str, dict[str, Any]] = {
    "endpoint and key": {"model": "gpt-4o", "base_url": "THEIRS", "api_key_env": "OPENAI_API_KEY"},
    "an endpoint": {"model": "x", "base_url": "THEIRS"},
    "the key of no server": {"model": "x", "base_url": "THEIRS", "api_key_env": "MY_KEY"},
    "a file of models": {"model": "theirs", "models": "MODELS"},
    "another suite": {"model": "theirs-free", "models": "MODELS", "dataset": "SUITE"},
    "a prompt": {"model": "x", "base_url": "THEIRS", "prompt": "PROMPT"},
}


def attack(name: str, path: Path, server: RawServer) -> Path:
    folder = path / "theirs"
    folder.mkdir()
    models = folder / "models.yaml"
    models.write_text(
        f"theirs: {{base_url: '{server.url}', model: m, key_env: OPENAI_API_KEY}}\n"
        f"theirs-free: {{base_url: '{server.url}', model: m}}\n"
    )
    prompt = folder / "prompt.txt"
    prompt.write_text("{instruction}, and: a file of this user")
    suite = str(Path(__file__).parents[3] / "dataset" / "sample")
    places = {"THEIRS": server.url, "MODELS": str(models), "PROMPT": str(prompt), "SUITE": suite}
    options = {name: places.get(value, value) for name, value in ATTACKS[name].items()}
    return begun_elsewhere(folder, options)


@pytest.mark.parametrize("name", ATTACKS)
def test_a_folder_alone_sends_nothing_anywhere(
    name: str, tmp_path: Path, their_server: RawServer
) -> None:
    folder = attack(name, tmp_path, their_server)
    result = run("--out", folder)
    error = error_of(result)
    assert isinstance(error, StoreError | UsageError), error.message
    assert their_server.exchanges == []
    names = sorted(each.name for each in folder.iterdir())
    assert names == ["models.yaml", "prompt.txt", "run.json"]


def test_what_a_folder_requests_is_shown_before_it_is_refused(
    tmp_path: Path, their_server: RawServer
) -> None:
    folder = attack("the key of no server", tmp_path, their_server)
    result = run("--out", folder)
    assert (error_of(result).exit_code, "--trust-folder" in str(error_of(result).hint)) == (9, True)
    shown = result.stderr
    assert "was not started by you on this machine" in shown
    for words in ("chat model   x", f"endpoint     {their_server.url}", "the one in MY_KEY"):
        assert words in shown


def test_a_word_is_enough_and_is_remembered(tmp_path: Path, their_server: RawServer) -> None:
    folder = attack("the key of no server", tmp_path, their_server)
    assert "not started by you" in error_of(run("--out", folder)).message
    assert their_server.exchanges == []
    assert run("--out", folder, "--trust-folder").exit_code == 0
    assert their_server.heads.count(f"Bearer {KEY}") == 2
    again = run("--out", folder, "--limit", 3)
    assert again.exit_code == 0, again.output
    assert "not started by you" not in again.stderr
    assert their_server.heads.count(f"Bearer {KEY}") == 3


@pytest.mark.parametrize("name", ["endpoint and key", "a file of models"])
def test_even_with_a_word_a_key_goes_to_its_own_server_alone(
    name: str, tmp_path: Path, their_server: RawServer
) -> None:
    folder = attack(name, tmp_path, their_server)
    error = error_of(run("--out", folder, "--trust-folder"))
    assert "OPENAI_API_KEY belongs to https://api.openai.com/v1" in error.message
    assert their_server.exchanges == []


def test_an_own_run_goes_on_without_a_word(tmp_path: Path, own_server: RawServer) -> None:
    out = tmp_path / "own"
    options = ("-m", "x", "--base-url", own_server.url, "--api-key-env", "OPENAI_API_KEY")
    assert run(*options, "--out", out, "--limit", 1).exit_code == 0
    for more in (("--limit", 2), (*options, "--limit", 3)):
        result = run("--out", out, *more)
        assert result.exit_code == 0, result.output
        assert "not started by you" not in result.stderr
    assert len(own_server.exchanges) == 3
    assert own_server.heads.count(f"Bearer {KEY}") == 3


def test_an_own_run_with_a_models_file(tmp_path: Path, own_server: RawServer) -> None:
    models = tmp_path / "models.yaml"
    models.write_text(f"mine: {{base_url: '{own_server.url}', model: m, key_env: MY_KEY}}\n")
    out = tmp_path / "own"
    assert run("-m", "mine", "--models", models, "--out", out, "--limit", 1).exit_code == 0
    assert run("--out", out, "--models", models, "--limit", 2).exit_code == 0
    assert run("--out", out, "--limit", 3).exit_code == 0
    assert own_server.heads.count(f"Bearer {KEY}") == 3


@pytest.mark.parametrize(
    ("name", "value"),
    [("base_url", "THEIRS"), ("api_key_env", "MY_KEY"), ("prompt", "/etc/passwd"),
     ("models", "/etc/passwd"), ("dataset", "/etc"), ("model", "y"), ("price", "0/0"),
     ("samples", 999), ("rounds", 99), ("param", ["stop=x"]), ("documents", "/etc")],
)  # fmt: skip
def test_an_own_run_that_somebody_changed(
    name: str, value: Any, tmp_path: Path, own_server: RawServer, their_server: RawServer
) -> None:
    """Someone who can write into the folder cannot confirm it on behalf of the user."""
    out = tmp_path / "own"
    assert run("-m", "x", "--base-url", own_server.url, "--out", out, "--limit", 1).exit_code == 0
    document: Any = RunDirectory(out).read_run()
    document["inference"]["options"][name] = their_server.url if value == "THEIRS" else value
    RunDirectory(out).write_run({each: document[each] for each in document if each[:3] != "sch"})
    result = run("--out", out, "--limit", 2)
    assert isinstance(result.exception, JudgeError)
    assert "not started by you" in result.stderr or name in {"prompt", "models", "dataset"}
    assert (len(own_server.exchanges), len(their_server.exchanges)) == (1, 0)


def test_a_folder_in_the_place_of_an_own_one(
    tmp_path: Path, own_server: RawServer, their_server: RawServer
) -> None:
    out = tmp_path / "run"
    assert run("-m", "x", "--base-url", own_server.url, "--out", out, "--limit", 1).exit_code == 0
    out.rename(tmp_path / "moved")
    their_folder(out, {"model": "x", "base_url": their_server.url, "limit": 2})
    assert "not started by you" in str(error_of(run("--out", out)).message)
    # And one's own run elsewhere is asked about once.
    assert "not started by you" in str(error_of(run("--out", tmp_path / "moved")).message)
    assert run("--out", tmp_path / "moved", "--trust-folder", "--limit", 2).exit_code == 0
    assert their_server.exchanges == []


def test_who_says_everything_himself_is_not_asked(
    tmp_path: Path, own_server: RawServer, their_server: RawServer
) -> None:
    options = {"model": "x", "base_url": their_server.url, "api_key_env": "MY_KEY"}
    folder = begun_elsewhere(tmp_path / "theirs", options | {"temperature": 0.5})
    said = ("-m", "x", "--base-url", own_server.url, "--api-key-env", "MY_KEY")
    result = run("--out", folder, *said)
    assert result.exit_code == 0, result.output
    assert "not started by you" not in result.stderr
    assert (len(own_server.exchanges), len(their_server.exchanges)) == (2, 0)


def test_a_key_does_not_follow_to_another_address(
    tmp_path: Path, own_server: RawServer, their_server: RawServer
) -> None:
    out = tmp_path / "own"
    started = run("-m", "x", "--base-url", own_server.url, "--api-key-env", "MY_KEY",
                  "--out", out, "--limit", 1)  # fmt: skip
    assert started.exit_code == 0, started.output
    moved = run("--out", out, "--base-url", their_server.url, "--limit", 2)
    assert moved.exit_code == 0, moved.output
    assert "the key in MY_KEY belongs to the run's former endpoint" in moved.stderr
    assert len(their_server.exchanges) == 1
    assert KEY not in their_server.heads
    said = run("--out", out, "--base-url", their_server.url, "--api-key-env", "MY_KEY",
               "--limit", 3)  # fmt: skip
    assert said.exit_code == 0, said.output
    assert KEY in their_server.heads


def test_keys_on_the_command_line(tmp_path: Path, their_server: RawServer) -> None:
    """An alias's key for another address and a known key for another server, both reported."""
    out, url = tmp_path / "a", their_server.url
    assert run("-m", "gpt-4o", "--base-url", url, "--out", out, "--limit", 1).exit_code == 0
    assert KEY not in their_server.heads
    for options in (
        ("-m", "gpt-4o", "--api-key-env", "DEEPSEEK_API_KEY"),
        ("-m", "no-alias", "--api-key-env", "DEEPSEEK_API_KEY"),
    ):
        error = error_of(run(*options, "--out", tmp_path / "b", "--limit", 1))
        assert isinstance(error, UsageError)
        assert "DEEPSEEK_API_KEY belongs to https://api.deepseek.com" in error.message
    models = tmp_path / "theirs.yaml"
    models.write_text(f"gpt-4o-x: {{base_url: '{url}', model: m, key_env: OPENAI_API_KEY}}\n")
    theirs = ("-m", "gpt-4o-x", "--models", models, "--limit", 1, "--out", tmp_path / "c")
    assert "OPENAI_API_KEY belongs to" in error_of(run(*theirs)).message
    assert KEY not in their_server.heads
    assert run(*theirs, "--base-url", url, "--api-key-env", "OPENAI_API_KEY").exit_code == 0
    assert KEY in their_server.heads


def test_which_server_a_key_belongs_to() -> None:
    models = [
        ModelSpec("a", "a", "https://one/v1", "A"),
        ModelSpec("b", "b", "https://two/v1", "A"),
    ]
    check_key(ModelSpec("x", "x", "https://two:443/other", "A"), models)
    check_key(ModelSpec("x", "x", "https://three/v1", "B"), models)
    check_key(ModelSpec("x", "x", "https://three/v1", None), models)
    for url in ("https://three/v1", "http://one/v1", "https://one:8443/v1", "https://one@three/v1"):
        with pytest.raises(UsageError, match="the key in A belongs to https://one/v1"):
            check_key(ModelSpec("x", "x", url, "A"), models)


@pytest.mark.parametrize(
    ("name", "value"),
    [("rounds", "many"), ("rounds", {"a": 1}), ("samples", 10**12), ("samples", -1), ("rows", []),
     ("content", "../../etc"), ("mode", 3), ("temperature", "hot"), ("limit", 0),
     ("param", [{"a": 1}]), ("ids", [[1]]), ("session", {}), ("notes", "perhaps"), ("seed", "x"),
     ("model", {"a": 1}), ("dataset", ["a"]), ("prompt", {}), ("stop", "never")],
)  # fmt: skip
def test_options_that_are_none_are_named(name: str, value: Any, tmp_path: Path) -> None:
    folder = their_folder(tmp_path / "theirs", {"model": "vllm", name: value})
    error = error_of(run("--out", folder, "--dry-run", "--trust-folder"))
    assert isinstance(error, StoreError)
    assert f"inference.options.{name}" in error.message


def test_a_dry_run_and_an_import_need_the_word_as_well(tmp_path: Path) -> None:
    """Both read the file to which the folder points."""
    folder = their_folder(tmp_path / "theirs", {"model": "vllm", "prompt": "/dev/zero"})
    assert isinstance(error_of(run("--out", folder, "--dry-run")), StoreError)
    error = error_of(run("--out", folder, "--dry-run", "--trust-folder"))
    assert "/dev/zero" in error.message
    folder = their_folder(folder, {"dataset": "/somewhere"})
    log = tmp_path / "conv_single_x.jsonl"
    log.write_text("{}")
    assert "its run.json alone" in error_of(run("--out", folder, "--import-log", log)).message


def on_a_terminal(answer: bytes, folder: Path) -> tuple[int, str]:
    """Runs the command with a terminal, and types an answer; returns exit code and output."""
    control, terminal = pty.openpty()
    launch = [
        sys.executable,
        "-c",
        "from judge.cli.main import main; main()",
        "infer",
        "--no-cache",
    ]
    process = subprocess.Popen(
        [*launch, "--out", str(folder)], stdin=terminal, stdout=terminal, stderr=terminal
    )
    os.close(terminal)
    said = b""
    try:
        while chunk := os.read(control, 65536):
            if b"[y/N]" in said + chunk and b"[y/N]" not in said:
                os.write(control, answer)
            said += chunk
    except OSError:
        pass  # the other side is closed
    finally:
        os.close(control)
    return process.wait(60), said.decode()


@pytest.mark.slow
def test_on_a_terminal_the_user_is_asked(tmp_path: Path, their_server: RawServer) -> None:
    folder = attack("the key of no server", tmp_path, their_server)
    code, said = on_a_terminal(b"n\n", folder)
    assert (code, their_server.exchanges) == (9, []), said
    assert "the one in MY_KEY" in said
    code, said = on_a_terminal(b"y\n", folder)
    assert code == 0, said
    assert f"Bearer {KEY}" in their_server.heads


def test_records_of_runs_are_their_users_alone(tmp_path: Path) -> None:
    started, run_folder = StartedRuns(tmp_path / "state" / "runs"), tmp_path / "run"
    assert started.options_of(run_folder) is None
    started.note(run_folder, {"model": "x"})
    assert started.options_of(run_folder) == {"model": "x"}
    assert started.options_of(tmp_path / "other") is None
    (record,) = (tmp_path / "state" / "runs").iterdir()
    assert (record.stat().st_mode & 0o777, record.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    record.chmod(0o640)
    assert started.options_of(run_folder) is None, "others may have written it"
    record.chmod(0o600)
    copy = tmp_path / "copy.json"
    record.rename(copy)
    record.symlink_to(copy)
    assert started.options_of(run_folder) is None, "a link"
    record.unlink()
    record.mkdir()
    assert started.options_of(run_folder) is None
    started.note(run_folder, {"model": "x"})  # cannot be written: no reason to end a run


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, '{"run": 1}'])
def test_records_that_are_broken_count_as_none(text: str, tmp_path: Path) -> None:
    started = StartedRuns(tmp_path / "state")
    started.note(tmp_path, {"model": "x"})
    (record,) = (tmp_path / "state").iterdir()
    record.write_text(text)
    assert started.options_of(tmp_path) is None
