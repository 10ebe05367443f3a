"""Converts checklists to folders of Harbor's rewardkit, and such folders to checklists.

Source: the published package harbor-rewardkit 0.2.3. The Python files of a folder are parsed, and
never executed. A file that cannot be converted becomes an item for the suite's own program.
"""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judge.compare.checklists.items import NAME as CHECKER
from judge.compare.checklists.items import ChecklistOptions, Item
from judge.compare.checklists.kinds import kind_of, words_of
from judge.compare.published.rewardkit import NAME, PARAMETERS, check_of
from judge.compare.registry import check_options
from judge.core.task import CheckerSpec
from judge.errors import UsageError
from judge.files.documents import dump_json, read_json, read_text

CHECKLIST = "checklist.json"
_REWARD = "reward.toml"
_CHECKS, _JUDGED, _LLM = "checks", "judged", "llm"
_MAX_BYTES = 1_000_000
_MAX_FILES = 500
_KEYWORDS = {"weight", "name", "isolated"}
_BUILT_IN_BEGINNINGS = ("command_", "http_", "image_", "sqlite_", "trajectory_")

_DEFINITION = '''\
"""What sheetjudge decides: `judge compare` reads checklist.json next to this file."""

import functools
import json
import os
import subprocess
from pathlib import Path

from rewardkit import criterion

CHECKLIST = Path(__file__).parent / "checklist.json"


@functools.cache
def shares(workspace):
    command = [os.environ.get("JUDGE", "judge"), "compare", workspace]
    command += ["--checklist", str(CHECKLIST), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr)
    items = json.loads(done.stdout)["items"]
    return {
        item["id"]: item["earned"] / item["points"] if item["points"] else 0.0 for item in items
    }


@criterion(description="{words}")
def judge_item(workspace: Path, item: str, words: str) -> float:
    return shares(str(workspace))[item]
'''


# -- out -------------------------------------------------------------------------------------------


def rewardkit_files(options: Mapping[str, object]) -> dict[str, str]:
    """The files of a rewardkit folder for a checklist: path -> content.

    A deterministic item becomes a call of the equivalent criterion of rewardkit, or, if there is
    none, of a criterion that runs ``judge compare``. Each group becomes a folder with a weight.
    Items that a model judges are in a TOML file with a ``[judge]`` table; items that people or
    programs judge are only in ``checklist.json``.

    Raises:
        UsageError: it is not a checklist, or an item takes points off, which rewardkit does not
            support.
    """
    check_options(CheckerSpec(CHECKER, options))
    read = ChecklistOptions.of(options)
    for item in read.items:
        if item.penalty:
            raise UsageError(
                f"item {item.id} takes points off, which a weighted mean of rewardkit cannot",
                hint="Leave it out, or give points for what should hold.",
            )
    files = {CHECKLIST: f"{dump_json(options, indent=2)}\n"}
    if not read.groups:
        _write_folder(files, "", read.items, "reward")
    names: dict[str, str] = {}
    for group in read.groups:
        names[group] = _slug(group, set(names.values()))
        of_group = [item for item in read.items if item.group == group]
        _write_folder(files, f"{names[group]}/", of_group, None)
    if read.groups:
        weights = {
            names[group]: weight
            for group, weight in read.groups.items()
            if any(path.startswith(f"{names[group]}/") for path in files)
        }
        files[_REWARD] = _reward("total", weights)
    if any(path.rpartition("/")[2] == f"{_JUDGED}.py" for path in files):
        files["judge_item.py"] = _DEFINITION
    return files


def _write_folder(
    files: dict[str, str], folder: str, items: Sequence[Item], name: str | None
) -> None:
    """Adds the components of a folder, with their weights."""
    calls: dict[str, list[str]] = {_CHECKS: [], _JUDGED: []}
    weights = dict.fromkeys((_CHECKS, _JUDGED, _LLM), 0.0)
    for_model = [item for item in items if item.kind == "llm"]
    for item in items:
        if kind_of(item).judged.value == "deterministic":
            component, call = _call(item)
            calls[component].append(call)
            weights[component] += item.points
    for component, lines in calls.items():
        if lines:
            text = "\n".join(["from rewardkit import criteria", "", *lines])
            files[f"{folder}{component}.py"] = f"{text}\n"
    if for_model:
        weights[_LLM] = sum(item.points for item in for_model)
        files[f"{folder}{_LLM}.toml"] = _judge_toml(for_model)
    present = {name: weight for name, weight in weights.items() if weight}
    if present:
        files[f"{folder}{_REWARD}"] = _reward(name, present)


def _call(item: Item) -> tuple[str, str]:
    """The component of a deterministic item, and its line of code."""
    criterion, arguments = _built_in(item)
    component = _CHECKS
    if not criterion:
        component, criterion = _JUDGED, "judge_item"
        arguments = {"item": item.id, "words": words_of(item)}
    listed = [f"{name}={value!r}" for name, value in arguments.items()]
    listed += [f"name={item.id!r}", f"weight={item.points!r}"]
    return component, f"criteria.{criterion}({', '.join(listed)})"


def _built_in(item: Item) -> tuple[str, Mapping[str, Any]]:
    """The equivalent criterion of rewardkit, and its arguments; empty if rewardkit has none."""
    if item.kind == "published" and item.fields.get("suite") == NAME:
        check = item.fields["check"]
        assert isinstance(check, Mapping)
        return str(check["criterion"]), check["arguments"]
    if item.kind == "file" and item.fields.keys() <= {"exists"}:
        missing = item.fields.get("exists") is False
        return ("file_not_exists" if missing else "file_exists"), {"path": item.file}
    return "", {}


def _reward(name: str | None, weights: Mapping[str, float]) -> str:
    named = [f"name = {json.dumps(name)}"] if name else []
    listed = ", ".join(f"{json.dumps(key)} = {weight!r}" for key, weight in weights.items())
    return "\n".join(["[[reward]]", *named, f"weights = {{ {listed} }}"]) + "\n"


def _judge_toml(items: Sequence[Item]) -> str:
    lines = ["[judge]", ""]
    names: set[str] = set()
    for item in items:
        name = _slug(item.id, names)
        names.add(name)
        lines += [
            "[[criterion]]",
            f"name = {json.dumps(name)}",
            f"description = {json.dumps(words_of(item))}",
            f"type = {json.dumps(item.text('scale', 'binary'))}",
            f"weight = {item.points!r}",
        ]
        lines += [
            f"{key} = {json.dumps(item.fields[own])}"
            for key, own in (("points", "steps"), ("min", "min"), ("max", "max"))
            if own in item.fields
        ]
        lines += [
            f"{key} = {json.dumps(list(item.texts(key)))}"
            for key in ("levels", "files")
            if key in item.fields
        ]
        lines += ["negate = true"] if item.fields.get("negate") is True else []
        lines.append("")
    return "\n".join(lines)


def _slug(name: str, taken: set[str]) -> str:
    """A name that rewardkit accepts and that is not taken yet."""
    plain = re.sub(r"[^a-zA-Z0-9_-]+", "-", name).strip("-")[:60] or "items"
    slug, number = plain, 2
    while slug in taken:
        slug, number = f"{plain}-{number}", number + 1
    return slug


# -- in --------------------------------------------------------------------------------------------


@dataclass
class ReadFolder:
    """A checklist that was read from a folder of rewardkit.

    Attributes:
        options: the options of the checker.
        notes: parts of the folder that were not converted, one line each.
    """

    options: dict[str, Any]
    notes: list[str] = field(default_factory=list)


def read_rewardkit(folder: Path) -> ReadFolder:
    """Reads a folder of rewardkit, without executing anything in it.

    For an unchanged folder from :func:`rewardkit_files`, returns the original checklist.

    Raises:
        UsageError: it is not a folder of rewardkit, or a file cannot be read.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder")
    own = _own_export(folder)
    if own is not None:
        return ReadFolder(own)
    read = ReadFolder({})
    components = list(_components(folder, "", 1.0, read.notes))
    if not components:
        raise UsageError(f"{folder} holds no criteria of rewardkit and no judge TOML")
    ids: set[str] = set()
    items = []
    for component in components:
        for item in component.items:
            item["id"] = _distinct(str(item["id"]), ids)
            if len(components) > 1:
                item["group"] = component.name
            items.append(item)
    read.options = {"evaluator": NAME, "items": items}
    if len(components) > 1:
        read.options["groups"] = {
            component.name: {"weight": component.weight} for component in components
        }
    check_options(CheckerSpec(CHECKER, read.options))
    return read


def _own_export(folder: Path) -> dict[str, Any] | None:
    path = folder / CHECKLIST
    if not path.is_file():
        return None
    document = read_json(path, UsageError)
    if not isinstance(document, dict):
        return None
    try:
        files = rewardkit_files(document)
    except UsageError:
        return None
    for name, text in files.items():
        file = folder / name
        if name != CHECKLIST and (not file.is_file() or _read(file) != text):
            return None
    others = {path.relative_to(folder).as_posix() for path in folder.rglob("*.py")}
    return document if others <= files.keys() else None


@dataclass(frozen=True, slots=True)
class _Component:
    name: str
    weight: float
    items: list[dict[str, Any]]


def _components(folder: Path, prefix: str, weight: float, notes: list[str]) -> Iterator[_Component]:
    """Yields the components of a folder, each with its share of the folder's weight."""
    paths = sorted(folder.iterdir())
    if len(paths) > _MAX_FILES:
        raise UsageError(f"{folder} holds more than {_MAX_FILES} files")
    settings = _toml(folder / _REWARD) if (folder / _REWARD).is_file() else {}
    weights = _weights(settings, folder, notes)
    own: list[tuple[str, float, list[dict[str, Any]] | Path]] = []
    for path in paths:
        if path.suffix == ".py":
            if items := list(_python_items(path, notes)):
                own.append((path.stem, weights.get(path.stem, 1.0), items))
        elif path.suffix == ".toml" and path.name != _REWARD:
            document = _toml(path)
            judge = document.get("judge", {})
            usual = judge.get("weight", 1.0) if isinstance(judge, dict) else 1.0
            items = list(_toml_items(document, path))
            own.append((path.stem, weights.get(path.stem, usual), items))
        elif path.is_dir() and not path.is_symlink() and not path.name.startswith((".", "__")):
            own.append((path.name, weights.get(path.name, 1.0), path))
    total = sum(part for _, part, _ in own) or 1.0
    for name, part, content in own:
        share = weight * part / total
        if isinstance(content, Path):
            yield from _components(content, f"{prefix}{name}/", share, notes)
        else:
            yield _Component(f"{prefix}{name}", share, content)


def _weights(settings: Mapping[str, Any], folder: Path, notes: list[str]) -> Mapping[str, float]:
    """The weights of the first reward that ``reward.toml`` declares."""
    rewards = settings.get("reward", [])
    for part in (*rewards, *settings.get("scoring", {}).values()):
        kind = part.get("aggregation", "weighted-mean")
        if kind.replace("_", "-") != "weighted-mean":
            notes.append(f"{folder / _REWARD}: the aggregation {kind} is not supported")
    listed = rewards[0].get("weights", {}) if rewards else {}
    return {str(name): float(weight) for name, weight in listed.items()}


def _toml_items(document: Mapping[str, Any], path: Path) -> Iterator[dict[str, Any]]:
    criteria = document.get("criterion")
    if not isinstance(criteria, list):
        raise UsageError(f"{path}: there is no [[criterion]]")
    judge = document.get("judge", {})
    for criterion in criteria:
        words = str(criterion.get("description", ""))
        item: dict[str, Any] = {
            "id": str(criterion.get("name") or criterion.get("id") or _slug(words, set())),
            "kind": "llm",
            "words": words,
            "points": float(criterion.get("weight", 1.0)),
            "scale": criterion.get("type", "binary"),
        }
        item |= {
            own: criterion[name]
            for name, own in (
                *(("points", "steps"), ("min", "min"), ("max", "max")),
                *(("levels", "levels"), ("negate", "negate")),
            )
            if name in criterion
        }
        if files := criterion.get("files") or judge.get("files"):
            item["files"] = list(files)
        yield item


def _python_items(path: Path, notes: list[str]) -> Iterator[dict[str, Any]]:
    """The items of a Python file: its criteria, or one item for a program that is not converted."""
    try:
        tree = ast.parse(_read(path))
        items = [item for node in tree.body for item in _items_of(node)]
    except _NotReadError as reason:
        yield _program(path, str(reason), notes)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        yield _program(path, "it is not Python", notes)
    else:
        yield from items


class _NotReadError(Exception):
    """A statement is not a criterion call with literal arguments; the message names its line."""


def _program(path: Path, reason: str, notes: list[str]) -> dict[str, Any]:
    notes.append(f"{path} is not read: {reason}")
    return {
        "id": path.stem,
        "kind": "program",
        "words": f"not read: program {path.name}",
        "source": {"file": path.name, "reason": reason},
    }


def _items_of(node: ast.stmt) -> Iterator[dict[str, Any]]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        modules = (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [name.name for name in node.names]
        )
        if all(module.split(".")[0] in {"rewardkit", "__future__"} for module in modules):
            return
        raise _NotReadError(f"line {node.lineno} imports {modules[0]}")
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        raise _NotReadError(f"line {node.lineno} is not a call of a criterion")
    yield _item_of_call(node.value)


def _item_of_call(call: ast.Call) -> dict[str, Any]:
    target = call.func
    name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
    try:
        positional = [ast.literal_eval(part) for part in call.args]
        named = {str(part.arg): ast.literal_eval(part.value) for part in call.keywords}
    except (ValueError, TypeError) as error:
        raise _NotReadError(f"line {call.lineno}: an argument is not a literal") from error
    if any(part.arg is None for part in call.keywords):
        raise _NotReadError(f"line {call.lineno}: the arguments are not literals")
    weight = named.get("weight", 1.0)
    if not isinstance(weight, int | float) or weight < 0:
        raise _NotReadError(f"line {call.lineno}: the weight is not a number of at least 0")
    first = positional[0] if positional else next(iter(named.values()), "")
    item: dict[str, Any] = {"id": str(named.get("name") or f"{name}:{first}")[:190]}
    arguments = {key: value for key, value in named.items() if key not in _KEYWORDS}
    if name in PARAMETERS and len(positional) <= len(PARAMETERS[name]):
        arguments = dict(zip(PARAMETERS[name], positional, strict=False)) | arguments
        item |= {"kind": "published", "suite": NAME, "check": check_of(name, arguments)}
    elif name.startswith(_BUILT_IN_BEGINNINGS):
        source = {"criterion": name, "arguments": [*map(repr, positional), repr(arguments)]}
        item |= {"kind": "program", "words": f"rewardkit's {name}", "source": source}
    else:
        raise _NotReadError(f"line {call.lineno}: {name or 'a call'} is not a built-in criterion")
    return {**item, "points": float(weight)}


def _distinct(name: str, taken: set[str]) -> str:
    distinct, number = name, 2
    while distinct in taken:
        distinct, number = f"{name} {number}", number + 1
    taken.add(distinct)
    return distinct


def _read(path: Path) -> str:
    return read_text(path, UsageError, max_bytes=_MAX_BYTES)


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(_read(path))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"{path}: {error}") from error
