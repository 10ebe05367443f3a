"""Data as text that a page can carry: deflated, then base64."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Sequence
from typing import Any

from judge.report.grid_window import GridBounds

PAGES_BYTES = 26_000_000
"""What the task pages of a report may take together, so that the whole stays below 30 MB."""

OnPage = Callable[[int, int], None]
"""Called with how many pages are done, and how many there are."""

LADDER = (
    GridBounds(),
    GridBounds(cells=30_000, columns=60, text_chars=4_000),
    GridBounds(cells=4_000, columns=40, blocks=6, text_chars=500),
    GridBounds(cells=1_200, columns=24, blocks=3, text_chars=120),
)
"""Bounds of the grids, from the most that is shown down to what always fits."""


def pack(document: Any) -> str:
    """A JSON document, deflated, as base64."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode("utf-8", "replace"), 6)).decode("ascii")


def pack_all(
    count: int,
    make: Callable[[int, GridBounds], Any],
    limit: int = PAGES_BYTES,
    *,
    on_page: OnPage = lambda _done, _total: None,
) -> list[str]:
    """Packs all task pages into a number of bytes.

    The largest pages are made again with closer bounds until all of them fit.

    Args:
        count: how many pages there are.
        make: gives a page by its number, made within some bounds.
        limit: bytes for all of them.
        on_page: called with how many pages are done, and how many there are.
    """
    packed = []
    for number in range(count):
        packed.append(pack(make(number, LADDER[0])))
        on_page(number + 1, count)
    for bounds in LADDER[1:]:
        for number in _too_large(packed, limit):
            packed[number] = pack(make(number, bounds))
    return packed


def _too_large(packed: Sequence[str], limit: int) -> list[int]:
    """The fewest of the largest pages whose bytes are too many, counted as if they were gone."""
    total = sum(map(len, packed))
    chosen = []
    for number in sorted(range(len(packed)), key=lambda each: -len(packed[each])):
        if total <= limit:
            break
        chosen.append(number)
        # A tenth is what closer bounds leave of a page, as a rule.
        total -= len(packed[number]) * 9 // 10
    return chosen
