"""Boards: changing a property changes the verdict if, and only if, the board checks it."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import openpyxl
import pytest

from judge.compare.boards.board import CATEGORIES, Board
from judge.compare.cells.computing import NoEngines
from judge.compare.contract import AnswerFaultError, GoldFaultError, Rules
from judge.compare.profiles import get_profile
from judge.compare.registry import check_options, checker_of
from judge.core.finding import Finding
from judge.core.submission import Answer, Origin
from judge.core.task import CheckerSpec, Gold, Task, TestCase
from judge.errors import UsageError
from tests.boards import GOLD, Made, workbook

EVERYTHING = [
    (sheet, f"{category}.{name}")
    for sheet in (1, 2)
    for category, names in CATEGORIES.items()
    for name in names
    if (category, name) not in {("charts", "name"), ("filters", "name")}
    and not (sheet == 2 and category in {"filters", "format_conditions"})
]


def board(*required: tuple[int, str]) -> dict[str, Any]:
    """Returns a board as the published files write it."""
    sheets: dict[str, dict[str, dict[str, bool]]] = {}
    for number in ("1", "2"):
        sheets[number] = {
            category: {name: (int(number), f"{category}.{name}") in required for name in names}
            for category, names in CATEGORIES.items()
        }
    return sheets


def find(
    answer: bytes,
    required: Mapping[str, Any] | None,
    profile: str = "standard",
    gold: bytes | None = None,
    *more: Gold,
) -> Finding:
    golds = [Gold(data=workbook() if gold is None else gold, options={"board": required}), *more]
    spec = CheckerSpec("boards")
    task = Task("1", "?", "?", (TestCase(1, (), tuple(golds)),), spec)
    return checker_of(spec).check(
        task,
        task.cases[0],
        golds,
        Answer.of_workbook(answer, Origin.FINISHED),
        NoEngines(),
        Rules(get_profile(profile)),
    )


CHANGES = [
    # what is changed, where a board may ask for it, and whether the published code looks at it
    pytest.param({"value": 21}, (1, "cells.values"), True, id="value"),
    pytest.param({"value": "8"}, (1, "cells.values"), True, id="type of a value"),
    pytest.param({"far": 8}, (1, "cells.values"), True, id="last row"),
    pytest.param({"font": "Calibri"}, (1, "cells.formatting"), True, id="font"),
    pytest.param({"size": 12}, (1, "cells.formatting"), True, id="size"),
    pytest.param({"link": "https://example.org/b"}, (1, "cells.hyperlink"), True, id="link"),
    pytest.param({"chart": "bar"}, (1, "charts.chart_type"), True, id="bar for column"),
    pytest.param({"title": "Sale"}, (1, "charts.title"), True, id="letter of a title"),
    pytest.param({"legend": None}, (1, "charts.legend"), True, id="legend"),
    pytest.param({"legend": "b"}, (1, "charts.legend"), True, id="place of the legend"),
    pytest.param({"axis": None}, (1, "charts.axes"), True, id="title of an axis"),
    pytest.param({"trend": "exp"}, (1, "charts.trendlines"), False, id="trend line"),
    pytest.param({"trend": None}, (1, "charts.trendlines"), False, id="no trend line"),
    pytest.param({"label": False}, (1, "charts.data_labels"), False, id="labels"),
    pytest.param({"symbol": "square"}, (2, "charts.series"), True, id="marker"),
    pytest.param({"pivot": "P2"}, (2, "pivot_tables.name"), False, id="name of a pivot"),
    pytest.param({"source": "A1:C5"}, (2, "pivot_tables.source"), True, id="source"),
    pytest.param({"page": True}, (2, "pivot_tables.filters"), False, id="page field"),
    pytest.param({"hidden": 4}, (1, "filters.filters"), True, id="hidden row"),
    pytest.param({"hidden": 9}, (1, "filters.filters"), True, id="row unhidden"),
    pytest.param({"fill": "FF0000FF"}, (1, "format_conditions.fill_color"), False, id="fill"),
    pytest.param({"second": "FF0000FF"}, (1, "format_conditions.fill_color"), False, id="2nd"),
    pytest.param({"bold": False}, (1, "format_conditions.bold"), False, id="bold"),
    pytest.param({"operator": "lessThan"}, (1, "format_conditions.operator"), False, id="op"),
    pytest.param({"limit": "16"}, (1, "format_conditions.formula1"), False, id="limit"),
    pytest.param({"frozen": "A3"}, (1, "view.freeze_pane"), True, id="frozen row"),
    pytest.param({"frozen": None}, (1, "view.freeze_pane"), True, id="nothing frozen"),
]


@pytest.mark.parametrize(("change", "place", "published"), CHANGES)
def test_a_change_turns_the_verdict_where_the_board_asks(
    change: dict[str, Any], place: tuple[int, str], published: bool
) -> None:
    answer = workbook(replace(GOLD, **change))
    # Panes count for the published code only if every sheet of the board asks for them.
    only = board(place)
    if place[1] == "view.freeze_pane":
        del only["2"]
    found = find(answer, only)
    assert not found.agrees
    assert {each["kind"] for each in found.record["differences"]} == {place[1]}
    assert found.record["official_equal"] is not published
    assert find(answer, only, "official").agrees is not published
    rest = board(*(each for each in EVERYTHING if each != place))
    assert find(answer, rest).agrees, find(answer, rest).cause


def test_a_change_that_several_properties_are_about() -> None:
    for change, places in (
        ({"last": 5}, {"charts.series", "charts.trendlines", "charts.data_labels"}),
        ({"function": "max"}, {"pivot_tables.values", "pivot_tables.summary_type"}),
        ({"row_field": 2}, {"pivot_tables.rows"}),
        ({"formula": True}, {f"format_conditions.{n}" for n in ("type", "operator", "formula1")}),
    ):
        answer = workbook(replace(GOLD, **change))
        found = find(answer, board(*EVERYTHING))
        assert {each["kind"] for each in found.record["differences"]} == places
        rest = board(*(each for each in EVERYTHING if each[1] not in places))
        assert find(answer, rest).agrees


def test_the_gold_is_accepted_and_a_difference_says_sheet_property_and_values() -> None:
    required = board(*EVERYTHING)
    for profile in ("standard", "official"):
        assert find(workbook(), required, profile).agrees
    found = find(workbook(replace(GOLD, title="Sale")), required)
    (difference,) = found.record["differences"]
    assert difference["sheet"] == "Data"
    assert (difference["expected"], difference["actual"]) == ("Sales", "Sale")
    assert difference["place"]["kind"] == "rule"
    assert "charts.title · sheet 1" in difference["place"]["name"]
    assert found.record["cells"] == len(EVERYTHING)


def test_every_row_counts() -> None:
    gold, required = workbook(Made(rows=250)), board((1, "cells.values"))
    changed = workbook(Made(rows=250, far=8))
    assert find(changed, required, "official", gold).agrees
    assert not find(changed, required, "standard", gold).agrees


def test_a_table_of_one_cell_never_agrees_as_published() -> None:
    book = openpyxl.Workbook()
    book.worksheets[0]["A1"] = "Total"
    buffer = io.BytesIO()
    book.save(buffer)
    required = {"1": {"cells": {"values": True}}}
    assert not find(buffer.getvalue(), required, "official", buffer.getvalue()).agrees
    assert find(buffer.getvalue(), required, "standard", buffer.getvalue()).agrees


def test_columns_may_be_in_any_order() -> None:
    required = board((1, "cells.values"))
    turned = workbook(Made(columns=(0, 2, 1)))
    assert find(turned, required).agrees
    assert find(turned, required, "official").agrees


def test_new_sheets_may_stand_anywhere_and_have_any_name() -> None:
    required = board((1, "cells.values"), (2, "pivot_tables.values"))
    named = workbook(Made(sheet="Summary"))
    assert find(named, required).agrees
    assert find(named, required, "official").agrees
    turned = workbook(Made(sheet="Summary", turned=True))
    assert find(turned, required).agrees
    assert not find(turned, required, "official").agrees


def test_the_class_of_the_number_format_counts_for_every_board_as_published() -> None:
    money = workbook(Made(code='"$"0.00'))
    links = board((1, "cells.hyperlink"))
    assert not find(money, links, "official").agrees
    assert find(money, links).agrees
    assert not find(money, board((1, "cells.formatting"))).agrees


def test_one_pair_of_rules_is_enough_as_published() -> None:
    required = board((1, "format_conditions.fill_color"))
    other = workbook(Made(second="FF0000FF"))
    assert find(other, required, "official").agrees
    assert not find(other, required).agrees
    both = workbook(Made(second="FF0000FF", fill="FF0000FF"))
    assert not find(both, required, "official").agrees


def test_panes_of_a_later_sheet_are_those_of_an_earlier_one_as_published() -> None:
    required = board((2, "view.freeze_pane"))
    del required["1"]
    frozen = workbook(Made(frozen="B3"))
    assert not find(frozen, required, "official").agrees
    assert find(frozen, required).agrees


def test_one_of_several_golds_is_enough() -> None:
    required = board((1, "charts.title"))
    other = Gold(data=workbook(Made(title="Sold")), options={"board": required})
    assert find(workbook(Made(title="Sold")), required, "standard", None, other).agrees
    assert not find(workbook(Made(title="Gold")), required, "standard", None, other).agrees


def test_the_published_verdict_is_about_all_golds() -> None:
    # The first gold is right for the judge only, the second one for the published code only.
    required = board((1, "charts.title"), (1, "charts.trendlines"))
    published = Gold(data=workbook(Made(trend="exp", title="Sold")), options={"board": required})
    answer = workbook(Made(title="Sold"))
    found = find(answer, required, "standard", workbook(Made(title="Sale")), published)
    assert (found.agrees, found.record["official_equal"]) == (False, True)
    views = board((2, "view.freeze_pane"))
    del views["1"]
    frozen = workbook(Made(frozen="B3"))
    same = Gold(data=frozen, options={"board": views})
    found = find(frozen, views, "standard", None, same)
    assert (found.agrees, found.record["official_equal"]) == (True, True)


def test_a_board_without_effect_is_the_suites_fault() -> None:
    beyond = {"7": {"cells": {"values": True}}}
    assert find(workbook(), beyond, "official").agrees
    with pytest.raises(GoldFaultError, match="checks sheet 7"):
        find(workbook(), beyond)
    nothing = board((2, "filters.filters"))
    with pytest.raises(GoldFaultError, match="filters, but the gold has none"):
        find(workbook(), nothing)
    usable = Gold(data=workbook(), options={"board": board((1, "cells.values"))})
    assert find(workbook(), beyond, "standard", None, usable).agrees


def test_what_the_published_code_raises_is_on_record() -> None:
    nothing = board((2, "filters.filters"), (1, "cells.values"))
    turned = workbook(Made(turned=True))
    found = find(turned, nothing, "official", workbook())
    assert not found.agrees
    assert found.record["published_error"].startswith("AttributeError")


def test_what_is_not_a_workbook_is_refused() -> None:
    with pytest.raises(AnswerFaultError):
        find(b"PK", board((1, "cells.values")))
    with pytest.raises(GoldFaultError):
        find(workbook(), board((1, "cells.values")), "standard", b"PK")
    with pytest.raises(GoldFaultError, match="no board"):
        checker_of(CheckerSpec("boards")).examine(
            Task(
                "1", "?", "?", (TestCase(1, (), (Gold(data=workbook()),)),), CheckerSpec("boards")
            ),
            TestCase(1, (), (Gold(data=workbook()),)),
            None,
        )


@pytest.mark.parametrize(
    "given",
    [
        None,
        [],
        {},
        {"first": {}},
        {"0": {}},
        {"1": []},
        {"1": {"cell": {"values": True}}},
        {"1": {"cells": {"value": True}}},
        {"1": {"cells": {"values": 1}}},
        {"1": {"cells": [True]}},
        {str(number): {} for number in range(1, 1100)},
    ],
)
def test_a_board_that_is_none_is_refused(given: object) -> None:
    with pytest.raises(UsageError):
        check_options(CheckerSpec("boards", {"board": given}))


def test_a_board_names_what_it_asks_in_order() -> None:
    read = Board.of({"check_board": {"2": {"view": {"freeze_pane": True}}, 1: {"cells": {}}}})
    assert [str(each) for each in read.required] == ["1 (view.freeze_pane · sheet 2)"]
    assert set(read.sheets) == {1, 2}
