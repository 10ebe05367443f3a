"""A drawing as plain data: a page makes SVG elements of it, and nothing else."""

from __future__ import annotations

from typing import Any

from judge.report.unseen import shown_plainly

_CHARACTER = 6.3
"""How wide a character is, about, in the units of a drawing."""


class Canvas:
    """Shapes in the order in which they are drawn.

    Args:
        width: of the drawing.
        height: of the drawing.
    """

    def __init__(self, width: int, height: int) -> None:
        self.width = width
        self.height = height
        self._shapes: list[list[Any]] = []

    def rect(self, css: str, x: float, y: float, width: float, height: float) -> None:
        """A rectangle, wherever its corner is; never too thin to be seen."""
        left, top = min(x, x + width), min(y, y + height)
        self._shapes.append(
            ["r", css, _short(left), _short(top)]
            + [_short(max(abs(each), 0.6)) for each in (width, height)]
        )

    def path(self, css: str, d: str) -> None:
        """A path, as SVG writes it."""
        self._shapes.append(["p", css, d])

    def line(self, css: str, points: list[tuple[float, float]]) -> None:
        """A line through points."""
        self.path(
            css,
            "".join(
                f"{'L' if index else 'M'}{_short(x)} {_short(y)}"
                for index, (x, y) in enumerate(points)
            ),
        )

    def dot(self, css: str, x: float, y: float, radius: float) -> None:
        """A circle."""
        self._shapes.append(["c", css, _short(x), _short(y), _short(radius)])

    def text(self, css: str, x: float, y: float, text: str, *, room: float = 1e9) -> None:
        """One line of text, cut to the room that it has."""
        self._shapes.append(["t", css, _short(x), _short(y), cut(text, room)])

    def to_json(self, label: str) -> dict[str, Any]:
        """The drawing as JSON.

        Args:
            label: what a screen reader says.
        """
        return {
            "width": self.width,
            "height": self.height,
            "label": shown_plainly(label)[:300],
            "shapes": self._shapes,
        }


def cut(text: str, room: float) -> str:
    """Text that fits into some room, with unseen characters shown by name."""
    plain = shown_plainly(" ".join(text.split()))
    most = max(1, int(room / _CHARACTER))
    return plain if len(plain) <= most else plain[: max(1, most - 1)] + "…"


def width_of(text: str) -> float:
    """How much room text takes, about."""
    return _CHARACTER * len(text)


def _short(number: float) -> float:
    rounded = round(number, 1)
    return int(rounded) if rounded == int(rounded) else rounded
