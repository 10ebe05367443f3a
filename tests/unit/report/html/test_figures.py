"""Numbers and texts as pages show them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.report.html.figures import Figures, shown_as, visible


@pytest.mark.parametrize(
    ("value", "style", "text"),
    [
        (1234567, "count", "1,234,567"),
        (0.70667, "percent", "70.67"),
        (1.0, "percent", "100.00"),
        (2 / 3, "share", "66.7"),
        (0.95, "whole_percent", "95"),
        (0.00212, "seconds", "0.00212"),
        (11.53, "seconds", "11.5"),
        (0, "seconds", "0"),
        (28835840, "bytes", "27.5"),
        (6453, "bytes", "6.3"),
        (20240624, "name", "20240624"),
        (0.0004, "p", "0.00040"),
        (1.0, "p", "1.0"),
        (3.0, "plain", "3"),
    ],
)
def test_numbers(value: float, style: str, text: str) -> None:
    assert shown_as(value, style).text(value) == text


def test_small_p_is_never_rounded_to_nothing() -> None:
    assert str(shown_as(4.5e-13, "p").text(4.5e-13)) == "4.5 × 10<sup>\u221213</sup>"  # noqa: RUF001


def test_numbers_carry_their_place() -> None:
    figures = Figures({"a/b": [{"value": 0.5, "low": None}]})
    markup = figures.number("/a~1b/0/value", "percent")
    assert 'data-at="/a~1b/0/value"' in markup
    assert 'value="0.5"' in markup
    assert ">50.00<" in markup
    assert figures.interval("/a~1b/0") == ""


def test_places_that_are_not_there_are_errors() -> None:
    with pytest.raises(LookupError):
        Figures({"a": 1}).number("/b")


def test_null_is_a_dash_and_never_zero() -> None:
    assert "0" not in Figures({"a": None}).number("/a", "percent")


def test_signs() -> None:
    figures = Figures({"up": 0.4467, "down": -0.02, "same": 0})
    assert ">+44.67<" in figures.signed("/up")
    assert ">\u22122.00<" in figures.signed("/down")
    assert ">0.00<" in figures.signed("/same")


@given(st.text())
def test_parts_of_pointers(name: str) -> None:
    pointer = name.replace("~", "~0").replace("/", "~1")
    assert Figures({name: 7}).at(f"/{pointer}") == 7


@given(st.text(st.characters(), max_size=60))
def test_visible_text_is_never_markup_and_never_unseen(text: str) -> None:
    markup = str(visible(text))
    without = markup.replace('<span class="unseen" title="U+', "").replace("</span>", "")
    for character in text:
        if ord(character) < 0x20 or 0x202A <= ord(character) <= 0x202E:
            assert character not in markup
    if not any(ord(character) < 0x20 or ord(character) > 0x7E for character in text):
        assert "<" not in without
