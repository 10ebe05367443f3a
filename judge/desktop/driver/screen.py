"""The screen: its windows, its picture, and the few keys that the driver itself presses."""

from __future__ import annotations

import io
import os
import select
import time
from collections.abc import Callable
from typing import Any

from PIL import Image, ImageGrab
from Xlib import XK, X, Xatom
from Xlib import display as xdisplay
from Xlib import error as xerror
from Xlib.ext import xtest
from Xlib.protocol import event as xevent

from judge.desktop.driver.hands import InputPlayer
from judge.desktop.driver.nodes import Window
from judge.desktop.driver.processes import BrokenError


class Screen:
    """The driver's own connection to the screen.

    Args:
        name: the name of the display, such as ``:0``.

    Raises:
        BrokenError: the display does not answer.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        try:
            self._display: Any = xdisplay.Display(name)
        except (xerror.DisplayError, OSError) as error:
            raise BrokenError(f"the screen does not answer: {error}") from None
        self._root = self._display.screen().root
        self._atoms: dict[str, int] = {}
        self._player: InputPlayer | None = None

    def _answered(self, ask: Callable[[], Any]) -> Any:
        try:
            return ask()
        except (xerror.ConnectionClosedError, xerror.DisplayError, OSError) as error:
            raise BrokenError(f"the screen does not answer: {error}") from None

    def _atom(self, name: str) -> int:
        if name not in self._atoms:
            self._atoms[name] = self._display.intern_atom(name)
        return self._atoms[name]

    def _property(self, window: Any, name: str, kind: int = X.AnyPropertyType) -> Any:
        reply = window.get_full_property(self._atom(name), kind)
        return None if reply is None else reply.value

    def windows(self) -> list[Window]:
        """Returns the windows of programs, the uppermost first."""
        windows: list[Window] = self._answered(self._windows)
        return windows

    def _windows(self) -> list[Window]:
        numbers = self._property(self._root, "_NET_CLIENT_LIST_STACKING", Xatom.WINDOW)
        windows = []
        for number in reversed(list(numbers if numbers is not None else ())):
            window = self._display.create_resource_object("window", number)
            try:
                size = window.get_geometry()
                place = self._root.translate_coords(window, 0, 0)
                title = self._title(window)
                kind = (window.get_wm_class() or ("", ""))[1]
            except (xerror.XError, TypeError, AttributeError):
                continue  # it has just been closed
            # python-xlib returns the position of the root relative to the window
            windows.append(
                Window(number, title, place.x, place.y, size.width, size.height, str(kind))
            )
        return windows

    def _title(self, window: Any) -> str:
        value = self._property(window, "_NET_WM_NAME")
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        value = window.get_wm_name()
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        return str(value or "")

    def active(self) -> int:
        """Returns the number of the active window; 0 if there is none."""
        value = self._answered(lambda: self._property(self._root, "_NET_ACTIVE_WINDOW"))
        return int(value[0]) if value is not None and len(value) else 0

    def cursor(self) -> tuple[int, int]:
        """Returns the position of the cursor."""
        pointer = self._answered(self._root.query_pointer)
        return pointer.root_x, pointer.root_y

    def activate(self, number: int) -> None:
        """Brings a window to the front and gives it the keyboard."""
        self._ask_manager(number, "_NET_ACTIVE_WINDOW", [2, X.CurrentTime, 0, 0, 0])

    def maximise(self, number: int) -> None:
        """Makes a window fill the screen."""
        states = [self._atom(f"_NET_WM_STATE_MAXIMIZED_{way}") for way in ("HORZ", "VERT")]
        self._ask_manager(number, "_NET_WM_STATE", [1, *states, 1, 0])

    def place(self, number: int, x: int, y: int, width: int, height: int) -> None:
        """Moves and resizes a window; position and size include its borders."""
        states = [self._atom(f"_NET_WM_STATE_MAXIMIZED_{way}") for way in ("HORZ", "VERT")]
        self._ask_manager(number, "_NET_WM_STATE", [0, *states, 1, 0])
        left, right, top, bottom = self._borders(number)
        flags = 1 | (0xF << 8) | (2 << 12)  # gravity north-west; x, y, width, height
        inner = (width - left - right, height - top - bottom)
        self._ask_manager(number, "_NET_MOVERESIZE_WINDOW", [flags, x, y, *inner])

    def outline(self, number: int) -> tuple[int, int, int, int] | None:
        """Returns position and size of a window including its borders; None if it is gone."""
        left, right, top, bottom = self._borders(number)
        for window in self.windows():
            if window.number == number:
                width, height = window.width + left + right, window.height + top + bottom
                return window.x - left, window.y - top, width, height
        return None

    def _borders(self, number: int) -> tuple[int, int, int, int]:
        """Returns the width of the borders around a window: left, right, top, bottom."""

        def ask() -> Any:
            window = self._display.create_resource_object("window", number)
            try:
                return self._property(window, "_NET_FRAME_EXTENTS")
            except xerror.XError:
                return None  # it has just been closed

        widths = self._answered(ask)
        left, right, top, bottom = map(int, widths[:4] if widths is not None else (0, 0, 0, 0))
        return left, right, top, bottom

    def _ask_manager(self, number: int, what: str, data: list[int]) -> None:
        def ask() -> None:
            window = self._display.create_resource_object("window", number)
            message = xevent.ClientMessage(
                window=window, client_type=self._atom(what), data=(32, data)
            )
            mask = X.SubstructureRedirectMask | X.SubstructureNotifyMask
            self._root.send_event(message, event_mask=mask)
            self._display.sync()

        self._answered(ask)

    def press(self, *names: str) -> None:
        """Presses keys together, by their X names, and releases them."""

        def tap() -> None:
            codes = [self._display.keysym_to_keycode(XK.string_to_keysym(name)) for name in names]
            for code in codes:
                xtest.fake_input(self._display, X.KeyPress, code)
            self._display.sync()
            time.sleep(0.03)
            for code in reversed(codes):
                xtest.fake_input(self._display, X.KeyRelease, code)
            self._display.sync()

        self._answered(tap)

    def work(self, events: list[tuple[str, int, int, str]]) -> None:
        """Repeats a person's mouse and keyboard events; see :class:`InputPlayer`."""
        if self._player is None:
            self._player = self._answered(lambda: InputPlayer(self._display))
        player = self._player
        self._answered(lambda: player.do(events))

    def bare_picture(self) -> Image.Image:
        """Returns the picture on the screen, without a cursor."""
        try:
            return ImageGrab.grab(xdisplay=self.name)
        except OSError as error:
            raise BrokenError(f"the screen does not answer: {error}") from None

    def picture(self) -> Image.Image:
        """Returns the picture on the screen, with the cursor drawn in."""
        shown = self.bare_picture()
        cursor = self._answered(self._cursor_picture)
        if cursor is not None:
            image, x, y = cursor
            shown.paste(image, (x, y), image)
        return shown

    def _cursor_picture(self) -> tuple[Image.Image, int, int] | None:
        if not self._display.has_extension("XFIXES"):
            return None
        if not hasattr(self, "_fixes"):
            self._fixes = self._display.xfixes_query_version()
        cursor = self._display.xfixes_get_cursor_image(self._root)
        if not cursor.width or not cursor.height:
            return None
        # 32-bit words with premultiplied alpha, blue lowest
        words = b"".join(
            int(word & 0xFFFFFFFF).to_bytes(4, "little") for word in cursor.cursor_image
        )
        image = Image.frombuffer("RGBa", (cursor.width, cursor.height), words, "raw", "BGRa", 0, 1)
        return image.convert("RGBA"), cursor.x - cursor.xhot, cursor.y - cursor.yhot


def as_png(picture: Image.Image) -> bytes:
    """Encodes a picture as PNG, for speed rather than size."""
    data = io.BytesIO()
    picture.save(data, "PNG", compress_level=1)
    return data.getvalue()


def wait_for_number(descriptor: int, limit_s: float) -> int | None:
    """Reads the number of the screen that Xvfb writes when it is ready; None if not in time."""
    text = b""
    end = time.monotonic() + limit_s
    while not text.endswith(b"\n"):
        left = end - time.monotonic()
        if left <= 0 or not select.select([descriptor], [], [], left)[0]:
            return None
        chunk = os.read(descriptor, 16)
        if not chunk:
            return None
        text += chunk
    return int(text)
