"""JSON, YAML and notebooks.

Sources, read and not run: ``check_json`` (xlang-ai/Spider2-V, general.py at 06235a32),
``compare_json_file`` (chrome.py at 34684a67), ``check_yaml_file`` (dbt.py at ebb518db),
``compare_notebook_outputs`` and ``compare_notebook_cells`` (jupyterlab.py at 7c52bd66).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from judge.compare.files.asked import (
    MISSING,
    Asked,
    Metric,
    UnreadableAnswerError,
    Wrong,
    plain_text,
    published_text,
    same_values,
)
from judge.compare.rules.methods import matches
from judge.compare.rules.raised import PublishedError, Side, blaming
from judge.files.documents import MalformedError, parse_json
from judge.files.yaml_documents import MalformedYamlError, parse_yaml

_MISSING = object()


def _document(data: bytes, side: Side, *, yaml: bool = False) -> Any:
    """A document; bounded.

    Raises:
        PublishedError: it cannot be read.
    """
    try:
        return parse_yaml(published_text(data, side)) if yaml else parse_json(data)
    except (MalformedError, MalformedYamlError) as error:
        kind = "YAMLError" if yaml else "JSONDecodeError"
        raise PublishedError(kind, str(error), side) from error


def _own(asked: Asked, *, yaml: bool = False) -> Any:
    """The answer's document, for the judge's own reading."""
    try:
        return _document(
            plain_text(asked.answer or b"", Side.ANSWER).encode(), Side.ANSWER, yaml=yaml
        )
    except PublishedError as error:
        raise UnreadableAnswerError(error.message) from error


# -- JSON -----------------------------------------------------------------------------------------


def published_json_file(asked: Asked) -> float:
    """Equal as Python compares them: 1, 1.0 and true are the same."""
    if asked.answer is None:
        raise PublishedError("TypeError", "expected str, bytes or os.PathLike object", Side.ANSWER)
    first = _document(asked.answer, Side.ANSWER)
    return float(first == _document(asked.bytes_of_gold, Side.GOLD))


def right_json_file(asked: Asked) -> Wrong | None:
    """Equal documents; true is not 1."""
    if asked.answer is None:
        return MISSING
    gold, own = _document(asked.bytes_of_gold, Side.GOLD), _own(asked)
    return None if same_values(gold, own) else Wrong(str(gold)[:500], str(own)[:500])


def _listed(asked: Asked, name: str) -> list[Mapping[str, Any]]:
    rules = asked.rules if isinstance(asked.rules, dict) else {}
    listed = rules.get(name, [])
    if not all(isinstance(each, dict) and isinstance(each.get("key"), list) for each in listed):
        raise PublishedError("KeyError", "'key'", Side.RULES)
    return list(listed)


def _published_value(document: Any, path: list[Any]) -> Any:
    for key in path:
        try:
            document = document[key]
        except KeyError:
            return _MISSING
        except (TypeError, IndexError) as error:
            raise PublishedError(type(error).__name__, str(error), Side.ANSWER) from error
    return document


def published_check_json(asked: Asked) -> float:
    """Each expected key has a value as asked, and no unexpected one has."""
    if asked.answer is None:
        return 0.0
    document = _document(asked.answer, Side.ANSWER)
    holds = True
    with blaming(Side.ANSWER):
        for each in _listed(asked, "expect"):
            value = _published_value(document, each["key"])
            if value is _MISSING:
                return 0.0
            holds = holds and matches(value, each)
        for each in _listed(asked, "unexpect"):
            value = _published_value(document, each["key"])
            holds = holds and not matches(None if value is _MISSING else value, each)
    return float(holds)


def _value(document: Any, path: list[Any]) -> Any:
    for key in path:
        if isinstance(document, dict):
            document = document.get(key, _MISSING) if isinstance(key, str | int) else _MISSING
        elif isinstance(document, list) and isinstance(key, int):
            document = document[key] if -len(document) <= key < len(document) else _MISSING
        else:
            return _MISSING
    return document


def _meets(value: Any, rule: Mapping[str, Any]) -> bool:
    """Whether a value is as asked; a method that does not apply to its type does not hold."""
    if isinstance(value, bool) != isinstance(rule.get("ref"), bool) and rule.get("method") == "eq":
        return False
    try:
        return matches(value, rule)
    except PublishedError as error:
        if error.side is Side.RULES:
            raise
        return False


def right_check_json(asked: Asked) -> Wrong | None:
    """The same; what is not there has no value, and lists are entered by number."""
    expected, unexpected = _listed(asked, "expect"), _listed(asked, "unexpect")
    if not expected and not unexpected:
        raise PublishedError("ValueError", "no key is expected or unexpected", Side.RULES)
    if asked.answer is None:
        return MISSING
    document = _own(asked)
    for rules, wanted in ((expected, True), (unexpected, False)):
        for rule in rules:
            value = _value(document, rule["key"])
            holds = value is not _MISSING and _meets(value, rule)
            if holds is not wanted:
                said = None if value is _MISSING else value
                where = ".".join(map(str, rule["key"]))
                asks = f"{'' if wanted else 'not '}{rule.get('method')} {rule.get('ref')!r}"
                return Wrong(asks, said, where)
    return None


# -- YAML -----------------------------------------------------------------------------------------


def _yaml_rules(asked: Asked) -> list[tuple[str, list[Any], Any]]:
    if not isinstance(asked.rules, list):
        raise PublishedError("TypeError", "the rules are not a list", Side.RULES)
    found = []
    for rule in asked.rules:
        if not isinstance(rule, list) or len(rule) != 3 or not isinstance(rule[1], list):
            raise PublishedError(
                "ValueError", f"{rule!r} is not [match, key path, value]"[:200], Side.RULES
            )
        found.append((str(rule[0]), rule[1], rule[2]))
    return found


def _is_int(key: object) -> bool:
    try:
        int(key)  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _published_step(value: Any, key: Any) -> Any:
    if type(value) is dict:
        return value[key]
    if _is_int(key):
        return value[int(key)]
    name, wanted = key
    for each in value:
        if each[name] == wanted:
            return each
    raise ValueError(key)


_PUBLISHED_HOLDS: Mapping[str, Callable[[Any, Any], Any]] = {
    "match": lambda value, expected: value == expected,
    "in": lambda value, expected: value in expected,
    "contain": lambda value, expected: expected in value,
    "not_null": lambda value, _: value,
}


def published_yaml(asked: Asked) -> float:
    """Each rule holds; whatever is raised on the way is a wrong answer."""
    if asked.answer is None:
        return 0.0
    try:
        document = _document(asked.answer, Side.ANSWER, yaml=True)
        for kind, path, expected in _yaml_rules(asked):
            value = document
            for key in path:
                value = _published_step(value, key)
            holds = _PUBLISHED_HOLDS[kind](value, expected)
            if not holds:
                return 0.0
    except (PublishedError, KeyError, TypeError, IndexError, ValueError, AttributeError):
        return 0.0
    return 1.0


def _step(value: Any, key: Any) -> Any:
    """What a key of a path leads to: of an object, of a list by number, or by a field's value."""
    if isinstance(value, dict):
        return value[key] if isinstance(key, str | int) and key in value else _MISSING
    if not isinstance(value, list):
        return _MISSING
    if isinstance(key, list) and len(key) == 2:
        return next(
            (
                each
                for each in value
                if isinstance(each, dict) and key[0] in each and same_values(each[key[0]], key[1])
            ),
            _MISSING,
        )
    if not _is_int(key):
        return _MISSING
    place = int(key)
    return value[place] if -len(value) <= place < len(value) else _MISSING


def _holds(kind: str, value: Any, expected: Any) -> bool:
    if value is _MISSING:
        return False
    if kind == "match":
        return same_values(value, expected)
    if kind == "not_null":
        return value is not None and value not in ("", [], {})
    inner, outer = (value, expected) if kind == "in" else (expected, value)
    if isinstance(outer, str):
        return isinstance(inner, str) and inner in outer
    return isinstance(outer, dict | list) and any(same_values(inner, each) for each in outer)


def right_yaml(asked: Asked) -> Wrong | None:
    """The same rules; true is not 1, and 0 and false are values."""
    rules = _yaml_rules(asked)
    if not rules:
        raise PublishedError("ValueError", "there are no rules", Side.RULES)
    unknown = [kind for kind, *_ in rules if kind not in {"match", "in", "contain", "not_null"}]
    if unknown:
        raise PublishedError("ValueError", f"unknown match type {unknown[0]!r}", Side.RULES)
    if asked.answer is None:
        return MISSING
    document = _own(asked, yaml=True)
    for kind, path, expected in rules:
        value = document
        for key in path:
            value = _step(value, key)
        if not _holds(kind, value, expected):
            said = None if value is _MISSING else str(value)[:500]
            return Wrong(f"{kind} {expected!r}", said, ".".join(map(str, path)))
    return None


METRICS = {
    "compare_json_file": Metric(published_json_file, right_json_file),
    "check_json": Metric(published_check_json, right_check_json),
    "check_yaml_file": Metric(published_yaml, right_yaml),
}
