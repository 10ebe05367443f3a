"""The Python lines in the documents run unchanged, and functions use all their parameters."""

from __future__ import annotations

import dataclasses
import dis
import importlib
import inspect
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import click
import pytest

import judge
import judge.api as judge_api
from judge.api.options import JudgingOptions
from judge.cli.main import COMMANDS
from judge.core.limits import Limits
from judge.errors import JudgeError, StoreError, UsageError
from judge.grading.store import RunDirectory
from judge.suites import load_suite
from tests.conftest import REPOSITORY
from tests.inference.raw_server import Exchange, RawServer, raw_server

LIBRARY = (REPOSITORY / "docs" / "library.md").read_text(encoding="utf-8")
REPLY = {"choices": [{"message": {"content": "```python\nx = 1\n```"}}], "data": [{"id": "m"}]}
PUBLIC = ("score", "run", "infer", "verify", "compare", "rejudge")
FUNCTIONS = {name: name for name in PUBLIC} | {"compare": "compare_workbooks"}
"""Maps the name of a command to the name of its function."""


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def server() -> Iterator[RawServer]:
    def reply(exchange: Exchange) -> None:
        exchange.answer(200, json.dumps(REPLY).encode())

    with raw_server(reply) as listening:
        yield listening


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the README names, of the sample suite."""
    monkeypatch.chdir(tmp_path)
    records = (REPOSITORY / "dataset/sample/submissions.jsonl").read_text().splitlines()
    chosen = [
        record
        for record in map(json.loads, records)
        if record["id"] in {1001, 1002} and record["sample"] == 0
    ]
    Path("solutions.jsonl").write_text("".join(json.dumps(each) + "\n" for each in chosen))
    (program,) = re.findall(r"```python\n(.*?)```", chosen[0]["solution"], flags=re.DOTALL)
    Path("solution.py").write_text(program)
    case = load_suite("sample").task("1001").cases[0]
    shutil.copy(case.gold_path, "gold.xlsx")
    shutil.copy(case.input_path, "output.xlsx")
    return tmp_path


@pytest.mark.bubblewrap
def test_the_documented_lines_about_functions_run(here: Path, server: RawServer) -> None:
    block, _ = re.findall(r"```python\n(import judge\n.*?)```", LIBRARY, flags=re.DOTALL)
    # The one change: the sheet of this gold, and a server that listens here.
    position = load_suite("sample").task("1001").checker.options["answer_position"]
    block = block.replace("\"'Sheet 1'!B2:B9\"", repr(position))
    block = block.replace('model="vllm"', f'model="vllm", base_url={server.url!r}')
    judge.score("solutions.jsonl", judge.ScoreOptions(dataset="sample", out=Path("results/mine")))
    names: dict[str, Any] = {}
    exec(block, names)
    assert all(f"judge.{name}(" in block for name in FUNCTIONS.values())
    overall = names["runs"][0].report["overall"]
    assert (overall["soft_restriction"], overall["tasks"]) == (1.0, 2)
    assert not names["comparison"].equal
    assert [case.verdict for case in names["cases"]] == ["AC"] * 3
    assert all(check.gold_accepted for check in names["checks"])
    assert {check.task_id for check in names["checks"]} == {"1001", "1002"}
    assert names["changed"] == []
    assert names["asked"].summary.finished == 2
    assert len(list(RunDirectory(here / "results/asked").read_records("submissions.jsonl"))) == 2


@pytest.mark.bubblewrap
def test_the_documented_lines_about_an_open_judge_run(capsys: pytest.CaptureFixture[str]) -> None:
    _, block = re.findall(r"```python\n(import judge\n.*?\n)```\n", LIBRARY, flags=re.DOTALL)
    names: dict[str, Any] = {}
    exec(block, names)
    assert names["found"].verdicts == ("NO",) * 3
    shown = capsys.readouterr().out
    assert [shown.count(f"Verdict.{code}") for code in ("NO", "AC")] == [5, 4]


# -- what each of them takes -----------------------------------------------------------------------

# What stands for several options of a command, and what a command has besides what it calls.
GROUPS = {
    "checker": {"tolerance", "relative_tolerance", "ignore_case", "ignore_whitespace",
                "unordered_rows", "ignore_extra", "ignore", "untouched", "keep",
                "formula_asked", "collateral", "dynamic", "formulas", "accept"},
    "corrections": {"corrections", "corrections_from", "certified"},
    "limits": {"cpu_s", "wall_s", "memory_bytes", "processes", "output_bytes", "limits_file"},
}  # fmt: skip
SHOWING = {"as_json", "quiet", "show"}
OTHER_WORK: dict[str, set[str]] = {
    "infer": {
        *("score", "dry_run", "import_log", "import_inspect", "import_trajectory"),
        *("import_outputs", "export_log"),
    },
    "score": {"replay"},  # judge.api.replaying
    "rejudge": {"case", "sample", "verdict", "by", "why"},  # judge.change_verdict
    # judge.api.verifying, and the page of a review
    "verify": {"audit", "submissions", "out", "review", "suspects", "by", "port", "no_browser"},
    # judge.cli.compare, compare_board; workbooks that a caller changed are other workbooks
    "compare": {"rules_path", "evaluator", "board_path", "checklist_path", "changes"},
}
RENAMED = {
    "run": {"task": "task_id", "solution": "program"},
    "compare": {"checker": "options", "input_path": "before"},
}
CALLBACKS = {"on_case", "on_left_out", "on_event", "on_submission", "progress", "failures"}
LIBRARY_ALONE = {"compare": {"max_differences", "limits"}}


def command_of(name: str) -> click.Command:
    module, attribute, _ = COMMANDS[name]
    command = getattr(__import__(module, fromlist=[attribute]), attribute)
    assert isinstance(command, click.Command)
    return command


def options_of_command(name: str) -> dict[str, Any]:
    """Returns the options of a command that say what is judged, with their defaults."""
    taken = {each.name or "": each.default for each in command_of(name).params}
    for group, members in GROUPS.items():
        if members <= taken.keys():
            taken = {each: value for each, value in taken.items() if each not in members}
            taken[group] = None
    for each in SHOWING | OTHER_WORK.get(name, set()):
        taken.pop(each, None)
    return {RENAMED.get(name, {}).get(each, each): value for each, value in taken.items()}


def options_of_function(name: str) -> dict[str, Any]:
    """Returns the parameters of a public function, also those in options objects, with defaults."""
    taken: dict[str, Any] = {}
    for each in inspect.signature(getattr(judge, FUNCTIONS[name])).parameters.values():
        if each.kind is inspect.Parameter.VAR_KEYWORD:  # fields of JudgingOptions by name
            (changes,) = get_args(get_type_hints(getattr(judge, FUNCTIONS[name]))[each.name])
            usual = {field.name: field.default for field in fields(JudgingOptions)}
            made = dataclasses.MISSING  # a function makes the default
            taken |= {
                field: None if usual[field] is made else usual[field]
                for field in get_type_hints(changes)
            }
        elif each.name == "options" and "JudgingOptions" in str(each.annotation):
            pass  # the same fields, as an object
        elif each.name == "options" and "Options" in str(each.annotation):
            holder = {"score": judge.ScoreOptions, "infer": judge.InferOptions}[name]
            taken |= {field.name: getattr(holder(), field.name) for field in fields(holder)}
        elif each.name not in CALLBACKS | LIBRARY_ALONE.get(name, set()):
            taken[each.name] = each.default
    return taken


def fields(holder: type[JudgingOptions | judge.InferOptions]) -> tuple[Any, ...]:
    return dataclasses.fields(holder)


@pytest.mark.parametrize("name", PUBLIC)
def test_a_function_has_the_parameters_of_its_command(name: str) -> None:
    assert options_of_function(name).keys() == options_of_command(name).keys()


@pytest.mark.parametrize("name", PUBLIC)
def test_defaults_are_those_of_the_command_line(name: str) -> None:
    def plain(value: Any) -> Any:
        """Normalises missing values: None, empty, a flag that is not set, no default."""
        missing = value is False or value is None
        missing = missing or value in ({}, (), [], Limits(), inspect.Parameter.empty)
        return None if missing or "Sentinel" in type(value).__name__ else value

    function, command = options_of_function(name), options_of_command(name)
    filled: dict[str, Any] = {}
    if name == "infer":  # None means the run's own, or else these
        options = judge.InferOptions().filled({})
        filled = {each: getattr(options, each) for each in function}
    for each, default in (function | filled).items():
        if each == "jobs" and name == "score":  # the number of cores, in words in the command
            continue
        assert (each, plain(default)) == (each, plain(command[each]))


def body_names(function: Callable[..., Any]) -> set[str]:
    """Returns the names that a function's code loads, inner functions included."""
    waiting, found = [function.__code__], set()
    while waiting:
        code = waiting.pop()
        found |= {*code.co_names, *code.co_cellvars, *code.co_freevars}
        found |= {str(each.argval) for each in dis.get_instructions(code) if "LOAD" in each.opname}
        waiting += [each for each in code.co_consts if inspect.iscode(each)]
    return found


@pytest.mark.parametrize("name", PUBLIC)
def test_every_parameter_is_used(name: str) -> None:
    function = getattr(judge, FUNCTIONS[name])
    assert set(inspect.signature(function).parameters) <= body_names(function)


@pytest.mark.parametrize("holder", [judge.ScoreOptions, judge.InferOptions])
def test_every_field_of_an_options_object_is_read(holder: type[Any]) -> None:
    """Somewhere in the library, outside the module that checks the values."""
    sources = [
        path.read_text()
        for path in (REPOSITORY / "judge" / "api").glob("*.py")
        if path.name not in {"options.py", "infer_options.py"}
    ]
    text = "\n".join(sources)
    unread = {
        each.name
        for each in fields(holder)
        if not re.search(rf"options\.{each.name}\b", text) and f'"{each.name}"' not in text
    }
    assert unread == set()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: judge.ScoreOptions(jobs=0), "jobs"),
        (lambda: judge.ScoreOptions(limit=0), "limit"),
        (lambda: judge.ScoreOptions(time_factor=0.5), "time_factor"),
        (lambda: judge.ScoreOptions(profile="loose"), "loose"),
        (lambda: judge.verify("sample", style=["weight"]), "weight"),
        (lambda: judge.verify("sample", recalc="often"), "often"),  # type: ignore[arg-type]
        (lambda: judge.verify("sample", limit=0), "limit"),
        (lambda: judge.run("1001", "x.py", engine="abacus"), "abacus"),
        (lambda: judge.run("1001", "x.py", sandbox="none"), "none"),
        (lambda: judge.rejudge("x", limits=Limits(cpu_s=1)), "rerun=True"),
        (lambda: judge.infer(judge.InferOptions()), "which chat model"),
        (lambda: judge.InferOptions(mode="many"), "many"),  # type: ignore[arg-type]
        (lambda: judge.InferOptions(samples=0), "samples"),
        (lambda: judge.InferOptions(concurrency=0), "concurrency"),
        (lambda: judge.InferOptions(timeout=0), "timeout"),
    ],
)
def test_a_value_that_an_option_cannot_have(call: Callable[[], object], said: str) -> None:
    with pytest.raises(UsageError) as raised:
        call()
    assert said in f"{raised.value.message} {raised.value.hint}"


# -- whose word counts in the library --------------------------------------------------------------


def test_a_folder_of_somebody_else_decides_nothing(
    tmp_path: Path, server: RawServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-of-this-user")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-this-user")
    wants = {"model": "x", "base_url": server.url, "api_key_env": "MY_KEY", "limit": 1}
    with RunDirectory(tmp_path) as store:
        store.write_run({"inference": {"options": wants}})
    with pytest.raises(StoreError, match="was not started by you"):
        judge.infer(judge.InferOptions(out=tmp_path))
    assert server.exchanges == []
    # A word on the folder is none on a key that belongs to another server.
    with RunDirectory(tmp_path) as store:
        store.write_run({"inference": {"options": wants | {"api_key_env": "OPENAI_API_KEY"}}})
    with pytest.raises(JudgeError, match="OPENAI_API_KEY belongs to"):
        judge.infer(judge.InferOptions(out=tmp_path, trust_folder=True))
    assert server.exchanges == []


def test_a_remembered_key_is_only_sent_to_its_endpoint(
    tmp_path: Path, server: RawServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-of-this-user")
    first = judge.InferOptions(
        model="x", base_url=server.url, api_key_env="MY_KEY", out=tmp_path / "run", limit=1
    )
    assert judge.infer(first).summary.is_complete
    assert server.heads.count("Bearer sk-of-this-user") == 1
    with raw_server(lambda each: each.answer(200, json.dumps(REPLY).encode())) as other:
        moved = judge.InferOptions(out=tmp_path / "run", base_url=other.url, limit=2)
        assert judge.infer(moved).summary.finished == 2
        assert "sk-of-this-user" not in other.heads
    # Its own run goes on where it stopped, by its folder alone.
    assert judge.infer(judge.InferOptions(out=tmp_path / "run", limit=2)).summary.reused == 2


# -- names -----------------------------------------------------------------------------------------


def test_every_public_name_can_be_imported() -> None:
    assert set(judge._HOMES) == set(judge.__all__)
    assert all(getattr(judge, name) is not None for name in judge.__all__)
    for gone in ("score_results", "run_program", "compare_files", "rejudge_run"):
        assert not hasattr(judge, gone)


def test_scoring_loads_no_pandas(tmp_path: Path) -> None:
    """It is installed with the judge, and importing it takes half a second."""
    program = (
        "import sys\nfrom judge.api import ScoreOptions, score\n"
        "runs = score(sys.argv[1], ScoreOptions(dataset='sample-typed', out=sys.argv[2]))\n"
        "print(runs[0].report['overall']['cases'], 'pandas' in sys.modules)"
    )
    solutions = REPOSITORY / "dataset" / "sample-typed" / "answers.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", program, solutions, tmp_path / "run"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["31", "False"]


def test_the_stub_matches_the_table_of_names() -> None:
    """What type checkers read cannot differ from what is imported."""
    for package in (judge, judge_api):
        stub = Path(str(package.__file__)).with_suffix(".pyi").read_text(encoding="utf-8")
        lines = re.findall(r"^from (\S+) import (\w+) as (\w+)$", stub, re.MULTILINE)
        homes = {name: (home, attribute) for home, attribute, name in lines}
        same = re.findall(r"^(\w+) = (\w+)$", stub, re.MULTILINE)
        assert homes | {name: homes[other] for name, other in same} == package._HOMES
        assert all(attribute == name for _, attribute, name in lines), "else it is not exported"
        assert dir(package) == sorted(package._HOMES)
    with pytest.raises(AttributeError, match="module 'judge' has no attribute 'nothing'"):
        _ = judge.nothing  # type: ignore[attr-defined]


def test_a_name_of_the_library_is_not_a_package_of_the_same_name() -> None:
    """``judge.api.suspects`` is the function, also after ``judge.suspects`` was imported."""
    importlib.import_module("judge.suspects")

    assert judge_api.suspects.__module__ == "judge.api.verifying"


def test_importing_and_asking_for_the_version_load_nothing() -> None:
    look = "import sys, judge; print(sorted(each for each in sys.modules if 'judge' in each))"
    shown = subprocess.run(
        [sys.executable, "-c", f"{look}; judge.__version__; {look}"],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    assert shown == ["['judge']", "['judge', 'judge.version']"]
