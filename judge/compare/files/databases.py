"""Metrics for local databases: tables, views, their columns, and their rows in order.

Source, read and not run: ``check_local_database`` (xlang-ai/Spider2-V, dbt.py at ebb518db).
SQLite is read in the sandbox. DuckDB is not read, since the sandbox does not have it.
"""

from __future__ import annotations

from typing import Any

from judge.compare.files.metric import MISSING, Metric, MetricInput, Mismatch, UnreadableAnswerError
from judge.compare.published_error import PublishedError, Side
from judge.compare.sealed import UnreadableFileError
from judge.errors import RecalcError

_KINDS = ("table", "view")
_TYPES = {
    f"{kind}{rest}": (kind, rest) for kind in _KINDS for rest in ("", "-schema", "-schema-content")
}


def _reader_options(metric_input: MetricInput) -> tuple[dict[str, Any], set[str]]:
    """Returns what to read from both databases, and the kinds of objects to compare by columns.

    Raises:
        PublishedError: an option is invalid, or databases of this kind cannot be read.
    """
    kind_of_database = metric_input.options.get("db_type", "duckdb")
    if kind_of_database != "sqlite3":
        raise PublishedError(
            "NotImplementedError", f"{kind_of_database} databases are not read here", Side.RULES
        )
    listed = metric_input.options.get("check_type", ["table", "view"])
    types = [_TYPES[name] for name in listed if name in _TYPES]
    targets = {}
    for kind in _KINDS:
        names = metric_input.options.get(f"{kind}_targets", [])
        if not isinstance(names, list):
            raise PublishedError("TypeError", f"{kind}_targets is not a list", Side.RULES)
        targets[kind] = names
    options = {
        "kinds": [kind for kind in _KINDS if any(query_type[0] == kind for query_type in types)],
        "rows": [kind for kind, rest in types if rest == "-schema-content"],
        "targets": targets,
    }
    return options, {kind for kind, rest in types if rest}


def _read(
    metric_input: MetricInput, data: bytes, options: dict[str, Any], side: Side
) -> list[dict[str, Any]]:
    if metric_input.files is None:
        raise RecalcError("databases are read in a sandbox, and no sandbox is available")
    try:
        return list(metric_input.files.read_file("sqlite3", data, options)["objects"])
    except UnreadableFileError as error:
        if side is Side.GOLD:
            raise PublishedError("DatabaseError", str(error), side) from error
        raise UnreadableAnswerError(str(error)) from error


def right_database(metric_input: MetricInput) -> Mismatch | None:
    """Compares names, columns and rows, in order, of the objects that the options name."""
    options, with_columns = _reader_options(metric_input)
    if not options["kinds"]:
        raise PublishedError("ValueError", "check_type names nothing to compare", Side.RULES)
    if metric_input.answer is None:
        return MISSING
    gold = _read(metric_input, metric_input.bytes_of_gold, options, Side.GOLD)
    own = _read(metric_input, metric_input.answer, options, Side.ANSWER)
    names = [[(query["kind"], query["name"]) for query in listed] for listed in (gold, own)]
    if names[0] != names[1]:
        return Mismatch(str(names[0])[:500], str(names[1])[:500], "tables and views")
    for one, two in zip(gold, own, strict=True):
        where = f"{one['kind']} {one['name']}"
        if one["kind"] in with_columns and one["columns"] != two["columns"]:
            return Mismatch(
                str(one["columns"])[:500], str(two["columns"])[:500], f"columns of {where}"
            )
        if one["rows"] == two["rows"]:
            continue
        for number, pair in enumerate(zip(one["rows"], two["rows"], strict=False), start=1):
            if pair[0] != pair[1]:
                return Mismatch(str(pair[0])[:500], str(pair[1])[:500], f"row {number} of {where}")
        return Mismatch(f"{len(one['rows'])} rows", f"{len(two['rows'])} rows", where)
    return None


def published_database(metric_input: MetricInput) -> float:
    """Compares as published: an unreadable database fails, an empty ``check_type`` passes."""
    if metric_input.answer is None:
        return 0.0
    options, _ = _reader_options(metric_input)
    if not options["kinds"]:
        return 1.0
    try:
        return float(right_database(metric_input) is None)
    except (UnreadableAnswerError, PublishedError):
        return 0.0


METRICS = {"check_local_database": Metric(published_database, right_database)}
