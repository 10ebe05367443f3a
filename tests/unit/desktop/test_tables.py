"""Tables of trees: which elements they have, how they are written, where they are cut."""

from judge.desktop.contract import Element
from judge.desktop.observations import kept_elements, mark_places, marks_table, tree_table

USED = frozenset({"showing", "visible", "enabled"})


def _cell(address: str, text: str = "", states: frozenset[str] = USED) -> Element:
    return Element("table-cell", address, text, 10, 20, 30, 40, states)


def test_the_elements_of_a_table() -> None:
    elements = [
        Element("filler", "x", "", 1, 1, 1, 1, USED),
        Element("push-button", "Save", "", 1, 2, 3, 4, USED),
        Element("button", "Hidden", "", 1, 2, 3, 4, frozenset({"visible", "enabled"})),
        Element("button", "Off", "", 1, 2, 3, 4, frozenset({"showing", "visible"})),
        Element("button", "", "", 1, 2, 3, 4, USED),
        Element("menu", "No place", "", None, None, None, None, USED),
        Element("menu", "Outside", "", -5, 2, 3, 4, USED),
        Element("page-tab", "Sheet1", "", 1, 2, 3, 4, USED),
        _cell("A1", "x"),
        _cell("B2"),
        _cell("C1"),
        _cell("A3"),
        _cell("Z9", states=USED | {"focused"}),
    ]
    names = [elements[each].name for each in kept_elements(elements)]
    assert names == ["Save", "Sheet1", "A1", "B2", "Z9"]
    published = kept_elements(elements, {"sheet-tabs", "blank-cells"})
    assert [elements[each].name for each in published] == ["Save", "A1", "B2", "C1", "A3", "Z9"]


def test_each_element_has_one_line_with_special_characters_escaped() -> None:
    cell = Element("text", "a\tb", "1\n2\\", 1, 2, 3, 4, USED)
    table = tree_table([cell])
    assert table.text == (
        "tag\tname\ttext\tposition (top-left x & y)\tsize (w & h)\n"
        "text\ta\\tb\t1\\n2\\\\\t(1, 2)\t(3, 4)"
    )
    assert not table.cut
    elements = [_cell("A1"), _cell("B1", "x"), Element("filler", "no place")]
    marks = {2: 0, 1: 1, 3: 2}
    assert [
        line.split("\t")[:3] for line in marks_table(elements, marks).text.split("\n")[1:3]
    ] == [
        ["1", "table-cell", "B1"],
        ["2", "table-cell", "A1"],
    ]
    assert mark_places(elements, marks) == {1: (25, 40), 2: (25, 40)}


def test_a_table_is_cut_between_lines() -> None:
    elements = [_cell(f"A{number}", "x") for number in range(1, 50)]
    whole = tree_table(elements)
    cut = tree_table(elements, max_tokens=500, tokens_of=len)
    assert cut.cut
    *lines, last = cut.text.split("\n")
    assert last == "[…]"
    assert whole.text.split("\n")[: len(lines)] == lines
    assert 400 < sum(map(len, lines)) <= 500
