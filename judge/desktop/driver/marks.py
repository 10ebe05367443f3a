"""Set-of-mark: numbers the elements on the picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PIL import Image, ImageChops, ImageDraw, ImageFont

from judge.desktop.driver.nodes import CELL, Box, Node, address_of, unused_cells

MAX_MARKS = 2_000
_SIZE = 11
_BEGINNING = 24
"""Width in pixels of the beginning of a box's content, which is the most informative part."""
_WEIGHTS = {"ink": 1, "beginning": 20, "label": 20}
"""The cost of covering a pixel, by its kind."""
_CLEARLY = 0.8
"""A corner is better than an earlier one if its cost is below this share of the earlier cost."""
_DIFFERENT = 10
"""Two colours count as different if they differ by more than this (of 255)."""

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
    """Numbers the elements that can be used, and draws the numbers into the picture.

    Empty cells are not numbered beyond the first empty row and column next to cells with text, nor
    are elements of a single colour, in which nothing can be seen. Numbers are drawn where they
    cover least.

    Returns:
        Number on the picture -> number of the node.
    """
    plain = picture.copy()
    unused = unused_cells(nodes)
    marks: dict[int, int] = {}
    boxes: list[Box] = []
    for place, node in enumerate(nodes):
        box = None if place in unused else _box_to_mark(node, picture.size)
        if box is None or (not _is_empty_cell(node) and _is_blank(plain, box)):
            continue
        boxes.append(box)
        marks[len(boxes)] = place
        if len(marks) == MAX_MARKS:
            break
    draw = ImageDraw.Draw(picture)
    for box in boxes:
        draw.rectangle(box, outline="red", width=1)
    labels = _Labels(picture, plain, boxes)
    for number, box in enumerate(boxes, start=1):
        labels.add(str(number), box)
    return marks


class _Labels:
    """Draws the labels of boxes.

    Args:
        picture: the picture on which they are drawn.
        plain: the same picture without boxes and labels.
        boxes: all boxes that have labels.
    """

    def __init__(self, picture: Image.Image, plain: Image.Image, boxes: Sequence[Box]) -> None:
        self._draw = ImageDraw.Draw(picture)
        self._plain = plain
        self._font = _font()
        self._taken = Image.new("L", plain.size)
        """A mask with 255 where labels are."""
        self._boxed = Image.new("L", plain.size)
        """A mask with 255 where boxes are."""
        for left, top, right, bottom in boxes:
            self._boxed.paste(255, (left, top, right + 1, bottom + 1))

    def add(self, text: str, box: Box) -> None:
        """Draws a label in the corner of its box where it covers least, or next to the box.

        It is drawn next to the box only if the space there is free.
        """
        left, top, right, bottom = map(round, self._font.getbbox(text, anchor="lt"))
        width, height = right - left + 2, bottom - top + 2
        ink = _ink(self._plain, box)
        best, least = (0, 0), None
        for x in (box[2] - width, box[0] + 1):
            for y in (box[3] - height, box[1] + 1):
                covered = self._covered(ink, box, (x, y, x + width, y + height))
                if least is None or covered < _CLEARLY * least:
                    best, least = (x, y), covered
        beside = (box[2] + 1, box[3] - height)
        if least and self._is_free((*beside, beside[0] + width, beside[1] + height)):
            best = beside
        x, y = best
        self._draw.rectangle((x, y, x + width - 1, y + height - 1), fill="black")
        self._draw.text((x + 1, y + 1), text, font=self._font, anchor="lt", fill="white")
        self._taken.paste(255, (x, y, x + width, y + height))

    def _is_free(self, area: Box) -> bool:
        """Returns whether an area of the picture is blank and has no marks."""
        inside = area[2] <= self._plain.width and area[3] <= self._plain.height
        marked = _count(self._taken, area) + _count(self._boxed, area)
        return inside and not marked and _is_blank(self._plain, area)

    def _covered(self, ink: Image.Image, box: Box, area: Box) -> int:
        """Computes the cost of covering an area of the picture."""
        left, top, right, bottom = area
        covered = _WEIGHTS["label"] * _count(self._taken, area)
        begins = ink.getbbox()
        if begins is None:
            return covered
        within = (left - box[0], top - box[1], right - box[0], bottom - box[1])
        end = min(begins[0] + _BEGINNING, within[2])
        beginning = _count(ink, (within[0], within[1], end, within[3])) if end > within[0] else 0
        rest = _count(ink, within) - beginning
        return covered + _WEIGHTS["beginning"] * beginning + _WEIGHTS["ink"] * rest


def _ink(picture: Image.Image, box: Box) -> Image.Image:
    """Returns a mask of the content of a box: 255 where it differs from the commonest colour."""
    inner = picture.crop((box[0] + 1, box[1] + 1, box[2], box[3]))
    ink = Image.new("L", (box[2] - box[0] + 1, box[3] - box[1] + 1))
    counts = inner.getcolors(inner.width * inner.height)
    if counts:
        ground = Image.new(inner.mode, inner.size, max(counts)[1])
        bands = ImageChops.difference(inner, ground).split()
        most = bands[0]
        for band in bands[1:]:
            most = ImageChops.lighter(most, band)
        ink.paste(most.point([255 if value > _DIFFERENT else 0 for value in range(256)]), (1, 1))
    return ink


def _count(mask: Image.Image, area: Box) -> int:
    return int(mask.crop(area).histogram()[255])


def name_marked(nodes: Sequence[Node], marks: Mapping[int, int]) -> None:
    """Names marked elements without name and text, so that the table says what they are.

    The name is their description, such as a tooltip, or the name of the panel that contains them.
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
    """Returns the corners of the box of a node that is marked; None if it is not marked."""
    has_role = (
        node.role in _ROLES or node.role.startswith(_BEGINNINGS) or node.role.endswith(_ENDINGS)
    )
    if not has_role or node.box is None or not {"showing", "visible"} <= set(node.states):
        return None
    if not {"enabled", "editable", "expandable", "checkable"} & set(node.states):
        return None
    if not node.name and not node.text and not node.image:
        return None
    x, y, width, height = node.box
    if x < 0 or y < 0 or width <= 0 or height <= 0 or x >= size[0] or y >= size[1]:
        return None
    return x, y, min(x + width, size[0]) - 1, min(y + height, size[1]) - 1


def _is_empty_cell(node: Node) -> bool:
    return node.role == CELL and not node.text and address_of(node.name) is not None


def _is_blank(picture: Image.Image, box: tuple[int, int, int, int]) -> bool:
    part = picture.crop((box[0], box[1], box[2] + 1, box[3] + 1))
    return all(low == high for low, high in part.getextrema())
