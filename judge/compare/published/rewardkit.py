"""The file criteria of Harbor's rewardkit as items: ``official`` as that package decides them.

Written from the behaviour of ``rewardkit/criteria`` of harbor-rewardkit 0.2.3 (Apache-2.0). A
criterion returns a number from 0 to 1; if it raises, rewardkit ends without any reward.

Under ``standard``, a cell is computed and compared by its type, like an item of kind ``cell``; a
criterion that raises an error does not hold. Otherwise both readings agree.
"""

from __future__ import annotations

import csv
import difflib
import io
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from judge.compare.checklists.cell_items import KINDS
from judge.compare.checklists.items import Item, Outcome, Reading, fails, is_value
from judge.compare.checklists.suites import PublishedSuite
from judge.compare.checklists.workspace import Workspace
from judge.compare.published_error import PublishedError, Side
from judge.compare.rules.patterns import Steps, search
from judge.errors import WorkbookError
from judge.workbook.address import Window, parse_cell
from judge.workbook.cell import CellRange, CellValue, ErrorValue
from judge.workbook.reader import Workbook, open_workbook

_MAX_RATIO_CHARS = 20_000
"""Largest product of the lengths of two strings that are compared for similarity."""

Files = Mapping[str, bytes]
Criterion = Callable[[Files, Mapping[str, Any], Steps], float]

PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "file_exists": ("path",),
    "file_not_exists": ("path",),
    "file_contains": ("path", "text"),
    "file_contains_regex": ("path", "pattern"),
    "file_matches": ("path", "expected"),
    "files_equal": ("path1", "path2"),
    "diff_ratio": ("path", "expected"),
    "json_key_equals": ("path", "key", "expected"),
    "json_path_equals": ("path", "json_path", "expected"),
    "csv_cell_equals": ("path", "row", "col", "expected"),
    "xlsx_cell_equals": ("path", "cell", "expected", "sheet"),
}
"""Name of a criterion -> its parameters, in order; only ``sheet`` may be left out."""


def judge_criterion(
    name: str, arguments: Mapping[str, Any], files: Files, steps: Steps | None = None
) -> float:
    """Returns the score of a rewardkit criterion, from 0 to 1.

    Args:
        name: its name.
        arguments: its arguments by name.
        files: path below the workspace -> bytes.
        steps: the steps that its patterns may take.

    Raises:
        PublishedError: the criterion raises.
        PatternError: the pattern cannot be searched within bounds.
    """
    return _CRITERIA[name](files, arguments, steps or Steps(10_000_000))


def _text(files: Files, path: str) -> str | None:
    """Returns the text of a file; None if the file is missing."""
    data = files.get(path.removeprefix("./"))
    if data is None:
        return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise PublishedError("UnicodeDecodeError", str(error)[:200], Side.ANSWER) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _exists(files: Files, arguments: Mapping[str, Any], _: Steps) -> float:
    path = str(arguments["path"]).removeprefix("./").rstrip("/")
    return float(path in files or any(name.startswith(f"{path}/") for name in files))


def _not_exists(files: Files, arguments: Mapping[str, Any], steps: Steps) -> float:
    return 1.0 - _exists(files, arguments, steps)


def _contains(files: Files, arguments: Mapping[str, Any], _: Steps) -> float:
    text = _text(files, arguments["path"])
    return float(text is not None and arguments["text"] in text)


def _contains_regex(files: Files, arguments: Mapping[str, Any], steps: Steps) -> float:
    text = _text(files, arguments["path"])
    return float(text is not None and search(arguments["pattern"], text[:1_000_000], 0, steps))


def _matches(files: Files, arguments: Mapping[str, Any], _: Steps) -> float:
    text = _text(files, arguments["path"])
    return float(text is not None and text.strip() == str(arguments["expected"]).strip())


def _equal(files: Files, arguments: Mapping[str, Any], _: Steps) -> float:
    first, second = _text(files, arguments["path1"]), _text(files, arguments["path2"])
    return float(first is not None and second is not None and first.strip() == second.strip())


def _ratio(files: Files, arguments: Mapping[str, Any], _: Steps) -> float:
    text, expected = _text(files, arguments["path"]), str(arguments["expected"]).strip()
    if text is None:
        return 0.0
    text = text.strip()
    if len(text) + len(expected) > _MAX_RATIO_CHARS:
        raise PublishedError("TimeoutError", "both are too long to be compared", Side.ANSWER)
    return difflib.SequenceMatcher(None, text, expected).ratio()


def _document(files: Files, path: str) -> Any:
    """Reads a JSON file; raises ValueError if the file is missing or not JSON."""
    text = _text(files, path)
    if text is None:
        raise ValueError(path)
    try:
        return json.loads(text)
    except RecursionError as error:
        raise PublishedError("RecursionError", "nested too deep", Side.ANSWER) from error


def _json_key(files: Files, arguments: Mapping[str, Any], _: Steps) -> float:
    try:
        document = _document(files, arguments["path"])
    except ValueError:
        return 0.0
    if not isinstance(document, dict) or arguments["key"] not in document:
        return 0.0
    return float(document[arguments["key"]] == arguments["expected"])


def _json_path(files: Files, arguments: Mapping[str, Any], _: Steps) -> float:
    try:
        value = _document(files, arguments["path"])
        for step in str(arguments["json_path"]).split("."):
            if not isinstance(value, dict | list):
                return 0.0
            value = value[step] if isinstance(value, dict) else value[int(step)]
    except (KeyError, IndexError, TypeError, ValueError):
        return 0.0
    return float(value == arguments["expected"])


def _csv_cell(files: Files, arguments: Mapping[str, Any], _: Steps) -> float:
    text = _text(files, arguments["path"])
    if text is None:
        return 0.0
    row, column = arguments["row"], arguments["col"]
    try:
        if isinstance(column, str):
            for number, named in enumerate(csv.DictReader(io.StringIO(text, newline=""))):
                if number == row:
                    return float(named.get(column) == arguments["expected"])
            return 0.0
        for number, cells in enumerate(csv.reader(io.StringIO(text, newline=""))):
            if number == row:
                return float(column < len(cells) and cells[column] == arguments["expected"])
    except (csv.Error, IndexError):
        pass
    return 0.0


def _xlsx_cell(files: Files, arguments: Mapping[str, Any], _: Steps) -> float:
    data = files.get(str(arguments["path"]).removeprefix("./"))
    if data is None:
        return 0.0
    try:
        workbook = open_workbook(data)
        value = _stored(workbook, arguments.get("sheet"), str(arguments["cell"]))
    except WorkbookError as error:
        raise PublishedError("BadZipFile", error.message, Side.ANSWER) from error
    except KeyError:
        return 0.0
    shown = value.code if isinstance(value, ErrorValue) else value
    return float(shown == arguments["expected"])


def _stored(workbook: Workbook, sheet: str | None, cell: str) -> CellValue:
    """Returns the stored value of a cell; raises KeyError if the sheet is missing."""
    name = sheet or workbook.active_sheet
    if name is None or name not in workbook.sheet_names:
        raise KeyError(name)
    position = parse_cell(re.sub(r"\$", "", cell))
    if position is None:
        raise PublishedError("AttributeError", f"{cell!r} is not one cell", Side.RULES)
    stored = workbook.cells(CellRange.of(name, Window(*position, *position))).get(position)
    return None if stored is None else stored.value


_CRITERIA: Mapping[str, Criterion] = {
    "file_exists": _exists,
    "file_not_exists": _not_exists,
    "file_contains": _contains,
    "file_contains_regex": _contains_regex,
    "file_matches": _matches,
    "files_equal": _equal,
    "diff_ratio": _ratio,
    "json_key_equals": _json_key,
    "json_path_equals": _json_path,
    "csv_cell_equals": _csv_cell,
    "xlsx_cell_equals": _xlsx_cell,
}


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
