"""Criteria of Harbor's rewardkit as items: ``official`` as that package decides them.

Under ``standard``, a cell is computed and compared by its type, like an item of kind ``cell``; a
criterion that raises an error does not hold. Otherwise both readings agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from judge.compare.checklists.cell_items import KINDS
from judge.compare.checklists.items import Item, Outcome, Reading, fails, is_value
from judge.compare.checklists.suites import PublishedSuite
from judge.compare.checklists.workspace import Workspace
from judge.compare.published.rewardkit import PARAMETERS, judge_criterion
from judge.compare.rules.published_error import PublishedError

__all__ = ["NAME", "PARAMETERS", "SUITE", "check_of"]

NAME = "rewardkit"


def check_of(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a criterion as the data of an item."""
    return {"criterion": name, "arguments": dict(arguments)}


def _parts(check: object) -> tuple[str, Mapping[str, Any]]:
    assert isinstance(check, Mapping)
    return str(check["criterion"]), check["arguments"]


def _official(check: object, workspace: Workspace) -> Outcome:
    name, arguments = _parts(check)
    return Outcome(
        judge_criterion(name, arguments, workspace.files, workspace.steps),
        arguments.get("expected", arguments.get("text")),
        place=str(arguments.get("path", "")),
    )


def _standard(check: object, workspace: Workspace) -> Outcome:
    name, arguments = _parts(check)
    if name == "xlsx_cell_equals" and is_value(arguments["expected"]):
        fields = {"cell": arguments["cell"], "expected": arguments["expected"], "exact": True}
        if arguments.get("sheet"):
            fields["sheet"] = arguments["sheet"]
        item = Item(name, "cell", file=str(arguments["path"]), fields=fields)
        return KINDS["cell"].judge(item, workspace, Reading.STANDARD)
    try:
        return _official(check, workspace)
    except PublishedError as error:
        return fails(detail=error.message)


def _words(check: object) -> str:
    name, arguments = _parts(check)
    listed = ", ".join(f"{key} {value!r}" for key, value in arguments.items())
    return f"{name.replace('_', ' ')}: {listed}"


_STRINGS = ("path", "path1", "path2", "text", "pattern", "key", "json_path", "cell")


def _faults(check: object) -> tuple[str, ...]:
    if not isinstance(check, Mapping) or not isinstance(check.get("arguments"), Mapping):
        return ("a check of rewardkit is an object with criterion and arguments",)
    name, arguments = check.get("criterion"), check["arguments"]
    if name not in PARAMETERS:
        return (f"rewardkit has no criterion {name!r} that is judged here",)
    parameters = PARAMETERS[str(name)]
    for parameter in parameters:
        if parameter not in arguments and parameter != "sheet":
            return (f"{name}: {parameter} is missing",)
        if parameter in _STRINGS and not isinstance(arguments.get(parameter), str):
            return (f"{name}: {parameter} is not a string",)
    others = [parameter for parameter in arguments if parameter not in parameters]
    return (f"{name} has no parameter {others[0]!r}",) if others else ()


SUITE = PublishedSuite(_official, _standard, _words, _faults)
