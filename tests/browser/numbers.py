"""Compares every number on a page with the document from which it comes."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page

TIMES = "\u00d7"

_SHOWN = """() => [...document.querySelectorAll("main:not([hidden]) [data-at]")].map((each) => ({
  at: each.dataset.at, factor: Number(each.dataset.factor || 1),
  digits: Number(each.dataset.digits || 0),
  of: each.dataset.of || "", value: each.getAttribute("value"), text: each.textContent }))"""

_LOOSE = """() => {
  const found = [];
  const main = document.querySelector("main:not([hidden])");
  const walker = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
  const apart = "[data-at], svg, pre, code, .axisrow, dl.identity";
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (!/[0-9]/.test(node.data)) continue;
    if (node.parentElement.closest(apart)) continue;
    found.push(node.data.trim());
  }
  return found;
}"""


def at(document: Any, pointer: str) -> Any:
    """Returns the value at a JSON pointer."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        document = document[int(name)] if isinstance(document, list) else document[name]
    return document


def check_numbers(page: Page, document: Any) -> int:
    """Checks that every number that names its source is equal to the number at that source.

    Returns:
        How many there are.
    """
    shown = page.evaluate(_SHOWN)
    for each in shown:
        value = at(document, each["at"])
        if each["of"] == "length":
            value = len(value)
        if value is None:
            assert each["text"] == "\u2013", each
            continue
        assert float(each["value"]) == value, each
        text = each["text"].replace(",", "").replace("\u2212", "-")
        if TIMES in text:
            mantissa, power = text.split(f" {TIMES} 10")
            assert abs(float(mantissa) * 10.0 ** int(power) - value) <= 0.051 * 10.0 ** int(power)
            continue
        half = 0.5 * 10.0 ** -each["digits"]
        assert abs(float(text) - value * each["factor"]) <= half * 1.000001, each
    return len(shown)


def loose_numbers(page: Page) -> list[str]:
    """Returns texts with digits that do not name their source."""
    found: list[str] = page.evaluate(_LOOSE)
    return found
