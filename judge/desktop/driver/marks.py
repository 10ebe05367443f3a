"""Set of mark: elements are numbered on the picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PIL import Image, ImageDraw, ImageFont

from judge.desktop.driver.nodes import Node

MOST_MARKS = 2_000
_SIZE = 11

_BEGINNINGS = ("document",)
_ENDINGS = (
    "item", "button", "heading", "label", "scrollbar", "searchbox", "textbox", "link",
    "tabelement", "textfield", "textarea", "menu",
)  # fmt: skip
_ROLES = frozenset(
    "alert canvas check-box combo-box entry icon image paragraph scroll-bar section slider static"
    " table-cell terminal text page-tab".split()
)


def draw_marks(picture: Image.Image, nodes: Sequence[Node]) -> dict[int, int]:
    """Numbers what can be acted on, in the picture itself.

    Cells without text are not numbered beyond the last row and column with text, nor is what is one
    colour throughout (nothing is seen there).

    Returns:
        Number on the picture -> number of the node.
    """
    draw = ImageDraw.Draw(picture)
    plain = picture.copy()
    font = _font()
    used = _used_area(nodes)
    marks: dict[int, int] = {}
    for place, node in enumerate(nodes):
        if len(marks) >= MOST_MARKS:
            break
        box = _box_to_mark(node, picture.size)
        if box is None:
            continue
        if node.role == "table-cell" and not node.text:
            if not _is_inside(box, used.get(node.parent)):
                continue
        elif _is_blank(plain, box):
            continue
        number = len(marks) + 1
        marks[number] = place
        draw.rectangle(box, outline="red", width=1)
        corner = (box[0], box[3])
        draw.rectangle(draw.textbbox(corner, str(number), font=font, anchor="lb"), fill="black")
        draw.text(corner, str(number), font=font, anchor="lb", fill="white")
    return marks


def name_marked(nodes: Sequence[Node], marks: Mapping[int, int]) -> None:
    """Names those marked that have neither name nor text, so that the table says what they are.

    The name is their description, such as a tooltip, or that of the panel that they are in.
    """
    for place in marks.values():
        node = nodes[place]
        if not node.name and not node.text:
            node.name = node.hint or ("" if node.parent is None else nodes[node.parent].name)


def _font() -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    try:
        return ImageFont.truetype("DejaVuSans.ttf", _SIZE)
    except OSError:
        return ImageFont.load_default()


def _box_to_mark(node: Node, size: tuple[int, int]) -> tuple[int, int, int, int] | None:
    """The corners of a node that is marked; None if it is not."""
    known = node.role in _ROLES or node.role.startswith(_BEGINNINGS) or node.role.endswith(_ENDINGS)
    if not known or node.box is None or not {"showing", "visible"} <= set(node.states):
        return None
    if not {"enabled", "editable", "expandable", "checkable"} & set(node.states):
        return None
    if not node.name and not node.text and not node.image:
        return None
    x, y, width, height = node.box
    if x < 0 or y < 0 or width <= 0 or height <= 0 or x >= size[0] or y >= size[1]:
        return None
    return x, y, min(x + width, size[0]) - 1, min(y + height, size[1]) - 1


def _used_area(nodes: Sequence[Node]) -> dict[int | None, tuple[int, int]]:
    """Table -> the right and lower border of its cells with text."""
    found: dict[int | None, tuple[int, int]] = {}
    for node in nodes:
        if node.role == "table-cell" and node.text and node.box is not None:
            right, bottom = found.get(node.parent, (0, 0))
            x, y, width, height = node.box
            found[node.parent] = (max(right, x + width), max(bottom, y + height))
    return found


def _is_inside(box: tuple[int, int, int, int], area: tuple[int, int] | None) -> bool:
    return area is not None and box[2] <= area[0] and box[3] <= area[1]


def _is_blank(picture: Image.Image, box: tuple[int, int, int, int]) -> bool:
    part = picture.crop((box[0], box[1], box[2] + 1, box[3] + 1))
    return all(low == high for low, high in part.getextrema())
