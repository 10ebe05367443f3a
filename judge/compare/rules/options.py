"""The options of the checker ``rules``: all types of rules, and the values of their options.

Published lists are read without checks. A list that a user writes is checked, so that a mistake in
it gives a message and not a wrong verdict.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from judge.compare.published.spider2v.compare_table import RULE_TYPES, Evaluator
from judge.compare.published.spider2v.looks import PROPERTIES
from judge.compare.rules import patterns
from judge.compare.rules.book import Rule
from judge.core.finding import DifferenceLocation, LocationKind
from judge.core.option import check_names
from judge.errors import UsageError
from judge.files.documents import written
from judge.workbook.address import parse_cell, parse_window

_Check = Callable[[object], Iterator[str]]
"""Yields one line for each fault in the value of an option."""

_COMPARISONS = ("eq", "ne", "le", "lt", "ge", "gt")
METHODS = (
    *_COMPARISONS,
    *("re", "approx:T", "range.te", "spreadsheet_range", "str_list_eq", "str_set_eq"),
)
_RANGE_METHOD = re.compile(r"range\.[te][te]")
_SEARCH_METHOD = re.compile(r"re(\.[A-Z]+)*")
_MAX_DECIMALS = 15  # a float has no more digits

CHART_PROPERTIES = (
    *("type", "title", "legend", "direction", "anchor", "width", "height"),
    *("xtitle", "ytitle", "ztitle"),
    *("series_names", "trendlines", "labels"),
)
"""Properties of charts. The last three are the judge's own: no published function has them."""
PIVOT_PROPERTIES = (
    *("row_fields", "col_fields", "data_fields", "data_fields_name", "filter", "selection"),
    *("ordered", "name", "location", "show_total", "show_empty_row", "show_empty_col"),
    "show_headers",
)
ROW_PROPERTIES = (
    *("hidden", "height", "ht", "collapsed", "outline_level", "outlineLevel"),
    *("thickBot", "thickTop"),
)
COLUMN_PROPERTIES = (
    *("hidden", "width", "collapsed", "outline_level", "outlineLevel", "auto_size", "bestFit"),
    *("customWidth", "min", "max"),
)
STYLE_PROPERTIES = tuple(sorted(PROPERTIES))
VALIDATION_PROPERTIES = (
    *("ranges", "sqref", "cells", "validation_type", "type", "operator", "formula1", "formula2"),
    *("allow_blank", "allowBlank", "hide_drop_down", "showDropDown", "showInputMessage"),
    *("showErrorMessage", "errorStyle", "errorTitle", "error", "promptTitle", "prompt", "imeMode"),
)
_FUZZY_TYPES = ("includes", "included_by", "fuzzy_match", "exact_match")


@dataclass(frozen=True, slots=True)
class RuleType:
    """A type of rule.

    Attributes:
        required: name of a required option -> the check of its value.
        optional: name of an optional option -> the check of its value.
        whole: a check of several options together.
    """

    required: Mapping[str, _Check] = field(default_factory=dict)
    optional: Mapping[str, _Check] = field(default_factory=dict)
    whole: Callable[[Mapping[str, object]], Iterator[str]] | None = None


def faults_of(rules: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """Yields one line for each fault of a rule list: the rule, the option, what is allowed.

    Args:
        rules: objects with a ``type``.
    """
    for number, rule in enumerate(rules, start=1):
        kind = str(rule["type"])
        rule_type = RULE_CATALOGUE.get(kind)
        if rule_type is None:
            yield f"rule {number}: there is no type {kind!r}; types: {_listed(RULE_CATALOGUE)}"
            continue
        for fault in _faults_of_rule(rule, rule_type):
            yield f"rule {number} ({kind}): {fault}"


def _faults_of_rule(rule: Mapping[str, object], rule_type: RuleType) -> Iterator[str]:
    options = {**rule_type.required, **rule_type.optional}
    for name in rule:
        if name != "type" and name not in options:
            allowed = _listed(options) if options else "none except the type"
            yield f"option {name!r} is unknown; options: {allowed}"
    for name in rule_type.required:
        if name not in rule:
            yield f"option {name!r} is missing"
    for name, check in options.items():
        if name in rule:
            yield from (f"option {name!r} {fault}" for fault in check(rule[name]))
    if rule_type.whole is not None and all(name in rule for name in rule_type.required):
        yield from rule_type.whole(rule)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


# -- values of options ----------------------------------------------------------------------------


def _sheet(value: object) -> Iterator[str]:
    if isinstance(value, str):
        named = value[:2] in {"RN", "EN"} and bool(value[2:].strip())
        right = named or (value[:2] in {"RI", "EI"} and value[2:].isdecimal())
    else:
        right = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    if not right:
        yield (
            f"must be a sheet, not {_shown(value)}: n or 'RIn' (the n-th of the output, from 0), "
            f"'EIn' (of the gold), 'RNname' or 'ENname'"
        )


def _whole(least: int, most: int) -> _Check:
    def check(value: object) -> Iterator[str]:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            yield f"must be a whole number from {least} to {most}, not {_shown(value)}"

    return check


def _truth(value: object) -> Iterator[str]:
    if not isinstance(value, bool):
        yield f"must be true or false, not {_shown(value)}"


def _text(value: object) -> Iterator[str]:
    if not isinstance(value, str):
        yield f"must be text, not {_shown(value)}"


def _number(value: object) -> Iterator[str]:
    if not isinstance(value, int | float) or isinstance(value, bool):
        yield f"must be a number, not {_shown(value)}"


def _one_of(*allowed: str) -> _Check:
    def check(value: object) -> Iterator[str]:
        if value not in allowed:
            yield f"must be one of {_listed(allowed)}, not {_shown(value)}"

    return check


def _properties(allowed: Sequence[str], *, needed: bool = True) -> _Check:
    def check(value: object) -> Iterator[str]:
        if not isinstance(value, list | tuple):
            yield f"must be a list of properties, not {_shown(value)}"
            return
        if needed and not value:
            yield f"is empty, so nothing would be compared; properties: {_listed(allowed)}"
        for name in value:
            if name not in allowed:
                yield f"has no property {_shown(name)}; properties: {_listed(allowed)}"

    return check


def _cell(value: object) -> Iterator[str]:
    if not isinstance(value, str) or parse_cell(value) is None:
        yield f"must be a cell such as 'B2', not {_shown(value)}"


def _ranges(value: object) -> Iterator[str]:
    references = value.split() if isinstance(value, str) else value
    if not isinstance(references, list | tuple) or not references:
        yield f"must be ranges such as 'A1:B9', not {_shown(value)}"
        return
    for text in references:
        if not isinstance(text, str) or parse_window(text.replace("$", "").upper()) is None:
            yield f"must be ranges such as 'A1:B9', not {_shown(text)}"


def _pairs(value: object) -> Iterator[str]:
    if not isinstance(value, list | tuple) or not all(
        isinstance(pair, list | tuple) and len(pair) == 2 and all(isinstance(x, str) for x in pair)
        for pair in value
    ):
        yield f"must be a list of pairs of text, not {_shown(value)}"


def _objects(required: Mapping[str, _Check], optional: Mapping[str, _Check]) -> _Check:
    """Returns a check for a list of objects, each with the given options."""
    inner = RuleType(required, optional)

    def check(value: object) -> Iterator[str]:
        if not isinstance(value, list | tuple) or not value:
            yield f"must be a list of objects, not {_shown(value)}"
            return
        for number, entry in enumerate(value, start=1):
            if not isinstance(entry, Mapping):
                yield f"entry {number}: must be an object, not {_shown(entry)}"
                continue
            yield from (f"entry {number}: {fault}" for fault in _faults_of_rule(entry, inner))

    return check


def _requirements(allowed: Sequence[str]) -> _Check:
    """Returns a check for an object: name of a property -> method and reference."""

    def check(value: object) -> Iterator[str]:
        if not isinstance(value, Mapping) or not value:
            yield f"must be an object of properties with method and ref, not {_shown(value)}"
            return
        for name, requirement in value.items():
            if name not in allowed:
                yield f"has no property {_shown(name)}; properties: {_listed(allowed)}"
            elif not isinstance(requirement, Mapping) or set(requirement) != {"method", "ref"}:
                shown = _shown(requirement)
                yield f"{name}: must be an object with 'method' and 'ref', not {shown}"
            else:
                yield from (f"{name}: {fault}" for fault in _method(requirement))

    return check


def _list_of_requirements(allowed: Sequence[str]) -> _Check:
    one = _requirements(allowed)

    def check(value: object) -> Iterator[str]:
        if not isinstance(value, list | tuple):
            yield f"must be a list of objects, not {_shown(value)}"
            return
        for number, entry in enumerate(value, start=1):
            yield from (f"entry {number}: {fault}" for fault in one(entry))

    return check


def _method(requirement: Mapping[str, object]) -> Iterator[str]:
    """Yields the faults of a method with its reference."""
    method, ref = requirement["method"], requirement["ref"]
    if method in _COMPARISONS:
        if isinstance(ref, list | tuple | Mapping):
            yield f"the ref of {method} must be one value, not {_shown(ref)}"
    elif isinstance(method, str) and _SEARCH_METHOD.fullmatch(method):
        try:
            patterns.check_pattern(str(ref))
        except patterns.PatternError as error:
            yield f"the ref {_shown(ref)} is not a regular expression: {error}"
    elif isinstance(method, str) and method.startswith("approx:"):
        yield from _approx(method, ref)
    elif isinstance(method, str) and _RANGE_METHOD.fullmatch(method):
        if not _is_list(ref, 2) or any(True for bound in ref for _ in _number(bound)):  # type: ignore[attr-defined]
            yield f"the ref of {method} must be two numbers, not {_shown(ref)}"
    elif method == "spreadsheet_range":
        if not _is_list(ref, 2) or any(True for bound in ref for _ in _ranges(bound)):  # type: ignore[attr-defined]
            yield f"the ref of {method} must be the least and the most ranges, not {_shown(ref)}"
    elif method in {"str_list_eq", "str_set_eq"}:
        if not isinstance(ref, list | tuple):
            yield f"the ref of {method} must be a list, not {_shown(ref)}"
    else:
        yield f"there is no method {_shown(method)}; methods: {_listed(METHODS)}"


def _approx(method: str, ref: object) -> Iterator[str]:
    try:
        float(method.partition(":")[2])
    except ValueError:
        yield f"the method {method!r} must be 'approx:' and a number"
    yield from (f"the ref of {method} {fault}" for fault in _number(ref))


def _is_list(value: object, length: int) -> bool:
    return isinstance(value, list | tuple) and len(value) == length


def _anything(value: object) -> Iterator[str]:  # noqa: ARG001
    return iter(())


# -- the types ------------------------------------------------------------------------------------

_PAIR: Mapping[str, _Check] = {"sheet_idx0": _sheet, "sheet_idx1": _sheet}
_ONE: Mapping[str, _Check] = {"sheet_idx": _sheet}
_FUZZY = _objects(
    {"range": _ranges, "type": _one_of(*_FUZZY_TYPES)},
    {
        "threshold": _number,
        "ignore_case": _truth,
        "ignore_chars": _text,
        "trim_leadings": _text,
        "trim_trailings": _text,
        "normalization": _pairs,
    },
)

RULE_CATALOGUE: Mapping[str, RuleType] = {
    "sheet_name": RuleType(),
    "sheet_data": RuleType(_PAIR, {"precision": _whole(0, _MAX_DECIMALS)}),
    "sheet_print": RuleType(_PAIR, {"ignore_case": _truth}),
    "sheet_fuzzy": RuleType({**_PAIR, "rules": _FUZZY}),
    "sparkline": RuleType(_PAIR),
    "chart": RuleType(_PAIR, {"chart_props": _properties(CHART_PROPERTIES, needed=False)}),
    "style": RuleType({**_PAIR, "props": _properties(STYLE_PROPERTIES)}),
    "freeze": RuleType(_PAIR),
    "zoom": RuleType({**_ONE, "method": _anything, "ref": _anything}, whole=_method),
    "data_validation": RuleType({**_ONE, "dv_props": _list_of_requirements(VALIDATION_PROPERTIES)}),
    "row_props": RuleType({**_PAIR, "props": _properties(ROW_PROPERTIES)}),
    "col_props": RuleType({**_PAIR, "props": _properties(COLUMN_PROPERTIES)}),
    "filter": RuleType(_PAIR),
    "pivot_table": RuleType(_PAIR, {"pivot_props": _properties(PIVOT_PROPERTIES, needed=False)}),
    "check_cell": RuleType(
        {**_ONE, "coordinate": _cell, "props": _requirements((*STYLE_PROPERTIES, "value"))}
    ),
}
"""Name of a type -> its options."""


NAME = "rules"
PROFILES = ("standard", "official")
_OPTIONS = ("rules", "evaluator", "profile")
_MAX_RULES = 1000  # of a list; users may write them
_MAX_FAULTS = 20  # in one message


@dataclass(frozen=True, slots=True)
class RuleOptions:
    """The rules that a whole workbook has to meet.

    Attributes:
        rules: the rule list; all rules have to hold.
        evaluator: the published evaluator for which the rules were written; None for others.
        profile: the profile that decides, instead of the run's profile; None for the run's profile.
    """

    rules: tuple[Rule, ...]
    evaluator: Evaluator = Evaluator.SPIDER2V
    profile: str | None = None

    @staticmethod
    def of(options: Mapping[str, object]) -> RuleOptions:
        """Reads the options as a suite or a command gives them.

        A list that names its evaluator was published and is not checked: the published functions
        reach an invalid rule only if no earlier rule fails. A list without an evaluator was written
        by the user, and all its faults are reported.

        Raises:
            UsageError: an option is unknown, or its value does not fit.
        """
        check_names(NAME, options, _OPTIONS)
        rules = options.get("rules")
        if not isinstance(rules, Sequence) or isinstance(rules, str):
            raise UsageError(
                f"option rules: expected a list of rules, found {written(rules)}"[:200]
            )
        if len(rules) > _MAX_RULES:
            raise UsageError(f"option rules: more than {_MAX_RULES:,} rules")
        for number, rule in enumerate(rules, start=1):
            if not isinstance(rule, Mapping) or not isinstance(rule.get("type"), str):
                raise UsageError(
                    f"option rules: rule {number} is not an object with a type",
                    hint=f"Types: {', '.join(RULE_TYPES)}.",
                )
        faults = [] if "evaluator" in options else list(faults_of(rules))
        if faults:
            more = f" (and {len(faults) - _MAX_FAULTS} more)" if faults[_MAX_FAULTS:] else ""
            raise UsageError(
                f"option rules: {'; '.join(faults[:_MAX_FAULTS])}{more}",
                hint="docs/rules.md lists the types of rules and their options.",
            )
        evaluator = options.get("evaluator", Evaluator.SPIDER2V)
        if evaluator not in set(Evaluator):
            raise UsageError(
                f"option evaluator: {evaluator!r} is not known",
                hint=f"Evaluators: {', '.join(Evaluator)}.",
            )
        profile = options.get("profile")
        if profile is not None and profile not in PROFILES:
            raise UsageError(f"option profile: {profile!r} is not one of {', '.join(PROFILES)}")
        chosen = None if profile is None else str(profile)
        return RuleOptions(tuple(rules), Evaluator(str(evaluator)), chosen)


def described(rule: Rule) -> str:
    """Returns a rule in one line: its type, and what it requires."""
    parts = [str(rule.get("type"))]
    sheets = [str(rule[name]) for name in ("sheet_idx", "sheet_idx0", "sheet_idx1") if name in rule]
    if sheets:
        parts.append(" ~ ".join(sheets))
    if "coordinate" in rule:
        parts.append(str(rule["coordinate"]))
    for name in ("props", "chart_props", "pivot_props"):
        names = rule.get(name)
        if names:
            parts.append(", ".join(map(str, names)))
    return " · ".join(parts)[:200]


def place_of(index: int, rule: Rule, sheet: str = "") -> DifferenceLocation:
    """Returns the location of a difference: the rule, by its number, type and requirement."""
    return DifferenceLocation(LocationKind.RULE, f"{index + 1} ({described(rule)})", sheet)
