"""Rules in words: for each type of rule, a sentence that says what has to hold.

A rule list may come from an untrusted source: a sentence is never longer than :data:`LONGEST`, and
an invalid option is quoted unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from judge.compare.rules.book import Rule
from judge.compare.rules.methods import places_of
from judge.console import clipped

LONGEST = 600
"""Length limit of a sentence in characters; longer ones are cut and end with an ellipsis."""

_MAX_NAMED = 12  # items that a sentence lists
_MAX_QUOTE_CHARS = 80

_ORDINALS = (
    *("first", "second", "third", "fourth", "fifth"),
    *("sixth", "seventh", "eighth", "ninth", "tenth"),
)

PROPERTY_WORDS: Mapping[str, str] = {
    # charts
    "type": "kind",
    "title": "title",
    "legend": "place of the legend",
    "direction": "direction of the bars",
    "anchor": "place on the sheet",
    "width": "width",
    "height": "height",
    "xtitle": "title of the x axis",
    "ytitle": "title of the y axis",
    "ztitle": "title of the z axis",
    "series_names": "names of the series",
    "trendlines": "trend lines",
    "labels": "data labels",
    # pivot tables
    "name": "name",
    "show_total": "totals",
    "show_empty_row": "blank rows",
    "show_empty_col": "blank columns",
    "show_headers": "headings",
    "location": "place on the sheet",
    "filter": "filter fields and hidden items",
    "selection": "hidden items",
    "ordered": "order of the items",
    "col_fields": "column fields",
    "row_fields": "row fields",
    "data_fields": "values with their functions",
    "data_fields_name": "names of the values",
    # looks of cells
    "number_format": "number format",
    "font_name": "font",
    "font_family": "font family",
    "font_color": "font colour",
    "font_bold": "bold",
    "font_italic": "italic",
    "font_underline": "underline",
    "font_size": "font size",
    "fill_type": "type of the fill",
    "bgcolor": "fill colour",
    "fgcolor": "fill colour",
    "hyperlink": "hyperlink",
    "merge": "merged",
    # rows and columns
    "hidden": "hidden or not",
    "collapsed": "collapsed or not",
    "ht": "height",
    "auto_size": "automatic width",
    "bestFit": "automatic width",
    "customWidth": "width of its own",
    "outlineLevel": "outline level",
    "outline_level": "outline level",
    "thickBot": "thick border below",
    "thickTop": "thick border above",
    "min": "first column of the group",
    "max": "last column of the group",
    # validations and cells
    "ranges": "cells",
    "sqref": "cells",
    "cells": "cells",
    "formula1": "formula",
    "formula2": "second formula",
    "operator": "operator",
    "allowBlank": "blanks allowed",
    "showDropDown": "drop-down hidden",
    "showErrorMessage": "error shown",
    "showInputMessage": "prompt shown",
    "errorTitle": "title of the error",
    "error": "text of the error",
    "errorStyle": "style of the error",
    "prompt": "text of the prompt",
    "promptTitle": "title of the prompt",
    "value": "value",
}
"""Name of a property in rules -> its name for people."""

_FUZZY = {
    "includes": "contain",
    "included_by": "are contained in",
    "exact_match": "equal",
    "fuzzy_match": "resemble",
}
_COMPARED = {
    "eq": "is",
    "ne": "is not",
    "le": "is at most",
    "lt": "is less than",
    "ge": "is at least",
    "gt": "is more than",
}


def rule_in_words(rule: Rule) -> str:
    """Returns a rule as a sentence.

    Args:
        rule: the rule as written in the suite; missing options have their published defaults.
    """
    say = _SENTENCES.get(str(rule.get("type")))
    if say is None:
        sentence = f"A rule of the type {_quoted(rule.get('type'))}, which does not exist"
    else:
        try:
            sentence = say(rule)
        except (AttributeError, TypeError, ValueError, KeyError, IndexError):
            sentence = f"A rule of the type {rule.get('type')} whose options cannot be read"
    sentence = sentence[:1].upper() + sentence[1:] + "."
    return clipped(sentence, LONGEST)


def property_in_words(name: object) -> str:
    """Returns a property's name for people; an unknown property is quoted."""
    return PROPERTY_WORDS.get(str(name)) or _quoted(name)


def method_in_words(method: Mapping[str, Any]) -> str:
    """Returns what a method requires of a value, such as ``is at most 3``."""
    how, ref = str(method.get("method")), method.get("ref")
    if how in _COMPARED:
        return f"{_COMPARED[how]} {_quoted(ref)}"
    if how.startswith("re"):
        flags = how.split(".")[1:]
        ignoring = " (upper and lower case alike)" if {"I", "IGNORECASE"} & {*flags} else ""
        return f"matches the regular expression {_quoted(ref)}{ignoring}"
    if how.startswith("approx"):
        return f"is {_quoted(ref)} to within {how.partition(':')[2]}"
    if how.startswith("range.") and isinstance(ref, list | tuple) and len(ref) == 2:
        low = "at least" if how[6:7] == "e" else "more than"
        high = "at most" if how[7:8] == "e" else "less than"
        return f"is {low} {_quoted(ref[0])} and {high} {_quoted(ref[1])}"
    if how == "spreadsheet_range" and isinstance(ref, list | tuple) and len(ref) >= 2:
        inner, outer = (" ".join(places_of(bound)) for bound in ref[:2])
        return f"are {inner}" if inner == outer else f"hold {inner} and lie within {outer}"
    if how in {"str_list_eq", "str_set_eq"} and isinstance(ref, list | tuple):
        order = "in this order" if how == "str_list_eq" else "in any order"
        return f"lists {_listed(map(_quoted, ref))}, {order}"
    return f"meets the method {_quoted(how)} asks with {_quoted(ref)}"


# -- sheets ---------------------------------------------------------------------------------------


def sheet_in_words(index: object) -> str:
    """Returns the words for a sheet: ``the first sheet``, ``the gold's sheet "Sales"``."""
    if isinstance(index, int) and not isinstance(index, bool):
        return f"the {_sheet_by_index(index)}"
    text = str(index)
    whose = {"R": "the ", "E": "the gold's "}.get(text[:1])
    if text[1:2] == "N" and whose is not None:
        return f"{'' if text[0] == 'R' else whose}sheet {_quoted(text[2:])}"
    if whose is not None and text[1:2] == "I":
        try:
            return whose + _sheet_by_index(int(text[2:]))
        except ValueError:
            pass
    return f"the sheet {_quoted(index)}, which does not name a sheet"


def _sheet_by_index(index: int) -> str:
    if index == -1:
        return "last sheet"
    return f"{ordinal(-index)} sheet from the end" if index < 0 else f"{ordinal(index + 1)} sheet"


def ordinal(number: int) -> str:
    """Returns an ordinal number in words: ``first``, ``12th``."""
    if number <= len(_ORDINALS):
        return _ORDINALS[number - 1]
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(number % 10 if number % 100 // 10 != 1 else 0, "th")
    return f"{_clip(number)}{suffix}"


def _pair(rule: Rule) -> tuple[str, str]:
    """Returns the words for the sheet that is judged and for the sheet it is compared with."""
    first, second = rule.get("sheet_idx0"), rule.get("sheet_idx1")
    expected = sheet_in_words(second)
    if not str(second).startswith("E"):
        # A sheet of the output is compared with another of its sheets.
        expected = f"the output's {expected.removeprefix('the ')}"
    return sheet_in_words(first), expected


# -- one sentence for each type -------------------------------------------------------------------


def _sheet_name(_: Rule) -> str:
    return "the sheets have the names of the gold's sheets, in the same order"


def _sheet_data(rule: Rule) -> str:
    sheet, expected = _pair(rule)
    decimals = rule.get("precision", 4)
    return f"all values of {sheet} are those of {expected}; numbers are compared to " + (
        "1 decimal" if decimals == 1 else f"{_quoted(decimals)} decimals"
    )


def _sheet_print(rule: Rule) -> str:
    sheet, expected = _pair(rule)
    case = "; upper and lower case are alike" if rule.get("ignore_case") else ""
    return f"as text, {sheet} has the lines of {expected}, apart from white space around them{case}"


def _sheet_fuzzy(rule: Rule) -> str:
    sheet, expected = _pair(rule)
    parts = (
        f"cells {_listed(map(_clip, places_of(entry.get('range'))))} "
        f"{_FUZZY.get(str(entry.get('type')), _quoted(entry.get('type')))} the expected text"
        f"{_prepared(entry)}"
        for entry in rule["rules"]
    )
    return f"{sheet} shows text like that of {expected}: {_listed(parts)}"


def _prepared(rule: Mapping[str, Any]) -> str:
    parts = []
    if rule.get("type") == "fuzzy_match":
        parts.append(f"by at least {_quoted(rule.get('threshold', 85.0))} of 100")
    if rule.get("normalization"):
        parts.append(
            "with " + _listed(f"{_quoted(a)} as {_quoted(b)}" for a, b in rule["normalization"])
        )
    if "trim_leadings" in rule:
        parts.append(f"without any of {_quoted(rule['trim_leadings'])} in front")
    if "trim_trailings" in rule:
        parts.append(f"without any of {_quoted(rule['trim_trailings'])} at the end")
    if "ignore_chars" in rule:
        parts.append(f"without the characters {_quoted(rule['ignore_chars'])}")
    if rule.get("ignore_case"):
        parts.append("upper and lower case alike")
    return f" ({', '.join(parts)})" if parts else ""


def _sparkline(rule: Rule) -> str:
    sheet, expected = _pair(rule)
    return f"{sheet} has the sparklines of {expected}: kind, cell and data"


def _chart(rule: Rule) -> str:
    sheet, expected = _pair(rule)
    properties = _listed(["data", *_properties(rule.get("chart_props", ()))])
    return f"{sheet} has the charts of {expected}, with the same {properties}"


def _pivot_table(rule: Rule) -> str:
    sheet, expected = _pair(rule)
    properties = _listed(["source", *_properties(rule.get("pivot_props", ()))])
    return f"{sheet} has the pivot tables of {expected}, with the same {properties}"


def _style(rule: Rule) -> str:
    sheet, expected = _pair(rule)
    names = rule.get("props", ())
    if not names:
        return f"the cells of {sheet} look like those of {expected} (without naming a property)"
    return (
        f"the cells of {sheet} look like those of {expected}: {_listed(_properties(names))}; "
        "conditional formats count"
    )


def _freeze(rule: Rule) -> str:
    sheet, expected = _pair(rule)
    return f"{sheet} has the frozen rows and columns of {expected}"


def _zoom(rule: Rule) -> str:
    return (
        f"the zoom of {sheet_in_words(rule.get('sheet_idx'))}, in percent, {method_in_words(rule)}"
    )


def _data_validation(rule: Rule) -> str:
    entries = rule["dv_props"]
    sheet = sheet_in_words(rule.get("sheet_idx"))
    if not entries:
        return f"{sheet} has no data validation"
    many = f"exactly {len(entries)} data validations" if len(entries) > 1 else "one data validation"
    described = "; ".join(
        properties_in_words(entry) or "of any kind" for entry in entries[:_MAX_NAMED]
    )
    return f"{sheet} has {many}: {described}{_more(len(entries))}"


def properties_in_words(methods: Mapping[str, Any]) -> str:
    """Returns what a rule requires of a cell's or validation's properties; may be empty."""
    try:
        return _listed(
            f"{property_in_words(name)} {method_in_words(method)}"
            for name, method in methods.items()
        )
    except AttributeError:
        return "properties that cannot be read"


def _row_props(rule: Rule) -> str:
    return _lines(rule, "rows")


def _col_props(rule: Rule) -> str:
    return _lines(rule, "columns")


def _lines(rule: Rule, noun: str) -> str:
    sheet, expected = _pair(rule)
    properties = _listed(_properties(rule.get("props", ()))) or "without naming a property"
    return f"the {noun} of {sheet} are like those of {expected}: {properties}"


def _filter(rule: Rule) -> str:
    sheet, expected = _pair(rule)
    return f"{sheet} is filtered and sorted like {expected}: range, conditions and order"


def _check_cell(rule: Rule) -> str:
    described = properties_in_words(rule["props"])
    where = f"cell {_clip(rule.get('coordinate'))} of {sheet_in_words(rule.get('sheet_idx'))}"
    return f"{where}: {described}" if described else f"no property of {where} is required"


_SENTENCES: Mapping[str, Callable[[Rule], str]] = {
    "sheet_name": _sheet_name,
    "sheet_data": _sheet_data,
    "sheet_print": _sheet_print,
    "sheet_fuzzy": _sheet_fuzzy,
    "sparkline": _sparkline,
    "chart": _chart,
    "style": _style,
    "freeze": _freeze,
    "zoom": _zoom,
    "data_validation": _data_validation,
    "row_props": _row_props,
    "col_props": _col_props,
    "filter": _filter,
    "pivot_table": _pivot_table,
    "check_cell": _check_cell,
}


# -- pieces ---------------------------------------------------------------------------------------


def _properties(names: Iterable[object]) -> list[str]:
    return list(dict.fromkeys(map(property_in_words, names)))


def _listed(texts: Iterable[str]) -> str:
    """Joins strings to an enumeration: ``a, b and c``."""
    items = list(texts)
    if len(items) > _MAX_NAMED:
        return f"{', '.join(items[:_MAX_NAMED])}{_more(len(items))}"
    return " and ".join(filter(None, (", ".join(items[:-1]), *items[-1:])))


def _more(count: int) -> str:
    return f" and {count - _MAX_NAMED} more" if count > _MAX_NAMED else ""


def _quoted(value: object) -> str:
    """Returns a value of a rule: text in quotation marks, other values as in JSON."""
    if isinstance(value, str):
        return f"“{_clip(value)}”"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "none"}[value]
    if isinstance(value, list | tuple):
        return _listed(map(_quoted, value))
    return _clip(value)


def _clip(value: object) -> str:
    text = str(value)
    return clipped(text, _MAX_QUOTE_CHARS)
