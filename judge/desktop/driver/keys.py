"""Types by key code, so that every character arrives whatever the layout of the keyboard is.

If the layout has no key for a character, a spare key is assigned to it. Runs in the actor.
"""

from __future__ import annotations

import time
from typing import Any

from Xlib import XK, X
from Xlib.ext.xtest import fake_input

BETWEEN_S = 0.008
_REMAPPED_S = 0.15
"""Seconds that programs need to notice a changed layout."""
_CAUGHT_UP_S = 2.0
"""Seconds that programs need to process everything that was typed."""
_AT_ONCE = 8
"""How many characters are typed between two changes of the layout, since spare keys are few."""

_CONTROL = {"\n": XK.XK_Return, "\r": XK.XK_Return, "\t": XK.XK_Tab, "\b": XK.XK_BackSpace}
_UNICODE = 0x01000000


def symbol_of(character: str) -> int:
    """Returns the X key symbol of a character."""
    if character in _CONTROL:
        return int(_CONTROL[character])
    code = ord(character)
    return code if 0x20 <= code < 0x7F or 0xA0 <= code < 0x100 else _UNICODE | code


def _is_lent(symbol: int) -> bool:
    """Returns whether a symbol is of the kind that a spare key has on all levels."""
    return symbol >= _UNICODE or 0xA0 <= symbol < 0x100


class Keyboard:
    """The keyboard of a screen.

    Args:
        display: connection of python-xlib.
    """

    def __init__(self, display: Any) -> None:
        self._display = display
        self._shift = display.keysym_to_keycode(XK.XK_Shift_L)
        self._first = display.display.info.min_keycode
        count = display.display.info.max_keycode - self._first + 1
        mapping = display.get_keyboard_mapping(self._first, count)
        self._places: dict[int, tuple[int, int]] = {}
        self._spare: list[int] = []
        self._lent: list[tuple[int, int]] = []
        for offset, symbols in enumerate(mapping):
            code = self._first + offset
            if not any(symbols):
                self._spare.append(code)
            elif len(set(symbols[:4])) == 1 and _is_lent(symbols[0]):
                self._lent.append((code, symbols[0]))
            for level, symbol in enumerate(symbols[:2]):
                if symbol:
                    self._places.setdefault(symbol, (code, level))

    def place(self, character: str) -> tuple[int, int] | None:
        """Returns key code and level of a character; None if the layout has no key for it."""
        return self._places.get(symbol_of(character))

    def type(self, text: str, between_s: float = BETWEEN_S) -> None:
        """Types text."""
        for start in range(0, len(text), _AT_ONCE):
            part = text[start : start + _AT_ONCE]
            self._lend({symbol_of(character) for character in part})
            for character in part:
                self.tap(*self._places[symbol_of(character)])
                time.sleep(between_s)

    def _lend(self, needed: set[int]) -> None:
        """Assigns key codes to symbols that have none.

        The symbols keep them, because programs look up the meaning of a key only when they process
        it, which may be late on a busy machine. When no spare keys are left, all keys that were
        assigned before are used again.
        """
        symbols = needed - self._places.keys()
        if not symbols:
            return
        if len(symbols) > len(self._spare):
            time.sleep(_CAUGHT_UP_S)
            for code, symbol in self._lent:
                self._places.pop(symbol, None)
                self._spare.append(code)
            self._lent = []
            symbols = needed - self._places.keys()
        for symbol in sorted(symbols):
            if not self._spare:
                raise ValueError("the keyboard has no spare keys")
            code = self._spare.pop(0)
            self._display.change_keyboard_mapping(code, [(symbol,) * 4])
            self._lent.append((code, symbol))
            self._places[symbol] = (code, 0)
        self._display.sync()
        time.sleep(_REMAPPED_S)

    def tap(self, code: int, level: int) -> None:
        """Presses and releases a key."""
        self.press(code, level)
        self.release(code)

    def press(self, code: int, level: int) -> None:
        """Presses a key; for level 1, together with Shift."""
        if level:
            fake_input(self._display, X.KeyPress, self._shift)
        fake_input(self._display, X.KeyPress, code)
        if level:
            fake_input(self._display, X.KeyRelease, self._shift)
        self._display.sync()

    def release(self, code: int) -> None:
        """Releases a key."""
        fake_input(self._display, X.KeyRelease, code)
        self._display.sync()
