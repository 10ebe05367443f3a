"""The checks of a board as sentences."""

from __future__ import annotations

from judge.compare.boards.board import CATEGORIES, RequestedProperty, requirement_in_words


def test_every_property_has_a_sentence_of_its_own() -> None:
    listed = [(category, name) for category, names in CATEGORIES.items() for name in names]
    said = [requirement_in_words(RequestedProperty(1, 2, *each)) for each in listed]
    assert len(set(said)) == len(listed)
    assert all(each.startswith("On the second sheet, the") for each in said if "many" not in each)
    assert not any("_" in each for each in said)
