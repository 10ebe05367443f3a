"""Every path may also be given as a string, in options and in functions."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import judge
import judge.api
from judge.api.desktop_trials import TrialOptions
from judge.api.options import JudgingOptions, ScoreOptions
from judge.api.verifying import suspects
from judge.errors import UsageError
from judge.suites import Suite
from tests.unit.report.runs import TABLE, TaskSpec, book, make_suite

# Steps of the public functions, which have made a Path of what they were given.
INNER = {"ArrivalScorer", "Trial", "JudgingResources", "write_reward", "find_runs", "run_to_score"}


def _modules() -> Iterator[Any]:
    for each in pkgutil.iter_modules(judge.api.__path__):
        yield importlib.import_module(f"judge.api.{each.name}")


def _public() -> dict[str, Callable[..., Any]]:
    """Returns every public function of the library, by name."""
    named = {name: getattr(judge, name) for name in judge.__all__ if not name.startswith("_")}
    for module in _modules():
        own = {
            name: value
            for name, value in vars(module).items()
            if getattr(value, "__module__", None) == module.__name__ and not name.startswith("_")
        }
        named |= own
    made: dict[str, Callable[..., Any]] = {}
    for name, value in named.items():
        if name in INNER:
            continue
        if inspect.isfunction(value):
            made[name] = value
        elif inspect.isclass(value):
            is_result = dataclasses.is_dataclass(value) and not name.endswith("Options")
            for method, function in inspect.getmembers(value, inspect.isroutine):
                is_public = not method.startswith("_")
                if is_public or (method == "__init__" and not is_result):
                    made[f"{name}.{method}"] = function
    return made


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    is_python = inspect.isfunction(function) or inspect.ismethod(function)
    return list(inspect.signature(function).parameters.values()) if is_python else []


def test_no_parameter_of_the_library_takes_paths_only() -> None:
    functions = _public()
    assert {"score", "Report.of_run", "Judge.compare", "ScoreOptions.__init__"} <= functions.keys()
    narrow = [
        f"{name}({parameter.name}: {parameter.annotation})"
        for name, function in functions.items()
        for parameter in _parameters(function)
        if "Path" in str(parameter.annotation)
        and not any(word in str(parameter.annotation) for word in ("str", "GivenPath", "Callable"))
    ]
    assert narrow == []


@pytest.mark.parametrize("kind", [JudgingOptions, ScoreOptions, judge.InferOptions, TrialOptions])
def test_options_hold_a_path_whatever_they_were_given(kind: Any) -> None:
    fields = [each.name for each in dataclasses.fields(kind) if "GivenPath" in str(each.type)]
    needed = {"task_id": "1"} if kind is TrialOptions else {}
    assert fields
    for name in fields:
        written, made = kind(**needed, **{name: "a/b"}), kind(**needed, **{name: Path("a/b")})
        assert getattr(written, name) == Path("a/b") == getattr(made, name), name
        assert getattr(dataclasses.replace(made, **{name: "c"}), name) == Path("c")
        with pytest.raises(UsageError, match=rf"^{name} is '3': not a path"):
            kind(**needed, **{name: 3})


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return make_suite(tmp_path / "suite", [TaskSpec("1", cases=1)])


def test_everything_runs_with_strings(tmp_path: Path, suite: Suite) -> None:
    outputs = tmp_path / "outputs"
    outputs.mkdir()
    (outputs / "1_1_output.xlsx").write_bytes(book(TABLE))
    (tmp_path / "faults").mkdir()
    run, reward, root = str(tmp_path / "run"), str(tmp_path / "reward.json"), str(suite.root)
    options = ScoreOptions(
        dataset=root, out=run, reward=reward, corrections=str(tmp_path / "faults"), recalc="never"
    )
    (scored,) = judge.score(str(outputs), options)
    assert scored.path == Path(run)
    assert scored.report["overall"]["soft_restriction"] == 1.0
    assert Path(reward).is_file()
    found = suspects(root, corrections=str(tmp_path / "faults"), recalc="never").suspects
    assert [each.task for each in found] == ["1"]
    judged = judge.rejudge(run, recalc="never", dataset=suite.root)
    assert judged.changed == []
    data = judge.report_data(run, dataset=suite.root)
    assert data == judge.report_data(Path(run), dataset=root)


def test_the_name_of_a_suite_may_be_a_path() -> None:
    assert judge.load_suite(Path("sample")).name == "sample"
    assert ScoreOptions(dataset=Path("sample")).dataset == Path("sample")
