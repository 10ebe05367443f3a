r"""Text for people: everything that commands print passes through this module.

Ids, file names, cell values and causes are untrusted. Control characters act on a terminal (C0,
DEL, C1), bidirectional controls reverse lines, and zero-width characters make two names
look the same. :func:`visible` writes all of them as JSON does, ``\u001b``: a JSON document with
such escapes is still the same document.

The command line puts :class:`ShownStream` in place of both standard streams, so that the output of
every library is escaped. The few writers that have to control the terminal (coloured tables,
progress bars) get the stream behind it, and escape untrusted text themselves.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TextIO, cast
from unicodedata import category

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

SECONDS_BETWEEN_LINES = 5.0
"""How often a command writes its progress if there is no terminal for a live line."""


def clock(seconds: float) -> str:
    """Writes a span of time as minutes and seconds, ``4:05``, or with hours, ``1:04:05``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def visible(text: str) -> str:
    """Escapes every character that acts on a terminal, or that is invisible there.

    Line ends, tabs, spaces of every width and all characters that Python calls printable are kept.
    """
    if text.isprintable():
        return text
    return "\n".join(
        line if line.isprintable() else "".join(map(_shown, line)) for line in text.split("\n")
    )


def counted(number: int, noun: str) -> str:
    """Formats a number with its noun: ``1 cell``, ``3 cells``, ``12,000 cells``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def clipped(text: str, longest: int) -> str:
    """Cuts a string to a number of characters; an ellipsis at the end says that it was cut."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _shown(character: str) -> str:
    if character.isprintable() or character == "\t" or category(character) == "Zs":
        return character
    if character == "\r":
        return "\\r"
    code = ord(character)
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    # JSON writes a character above U+FFFF as a surrogate pair.
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


Piece = str | tuple[str, str]
"""Text, or text with a style, such as ``("AC", "green")``."""


class ShownStream:
    """An output stream that escapes characters that would not be visible.

    See :mod:`judge.console`.

    Args:
        behind: the stream that the escaped text is written to.
    """

    def __init__(self, behind: TextIO) -> None:
        self.behind = behind

    def write(self, text: str) -> int:
        """Writes text; returns its length, as streams do."""
        self.behind.write(visible(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Writes several lines."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.behind, name)


@contextlib.contextmanager
def shown_streams() -> Iterator[None]:
    """Puts a :class:`ShownStream` in place of each standard stream.

    They stay in place for the traceback of an unexpected error, whose text may be untrusted
    as well.
    """
    _open_closed_descriptors()
    before = sys.stdout, sys.stderr
    for stream in before:
        _encode_everything(stream)
    shown = tuple(cast("TextIO", ShownStream(stream_behind(name))) for name in before)
    sys.stdout, sys.stderr = shown
    try:
        yield
    except SystemExit:
        sys.stdout, sys.stderr = before
        raise


def stream_behind(stream: TextIO) -> TextIO:
    """The stream that does not escape control sequences; only for the judge's own output."""
    return stream.behind if isinstance(stream, ShownStream) else stream


def make_console(*, err: bool = False) -> Console:
    """A console for tables and coloured lines; markup in text is not interpreted.

    Args:
        err: whether to write to standard error instead of standard output.
    """
    from rich.console import Console  # noqa: PLC0415  most commands print without it
    from rich.segment import Segment  # noqa: PLC0415

    class ShownConsole(Console):
        """Escapes text before its width is measured, and rendered text afterwards."""

        def render_str(self, text: str, **options: Any) -> Text:
            return super().render_str(visible(text), **options)

        def render(self, renderable: Any, options: Any = None) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                if segment.control or segment.text.isprintable():
                    yield segment
                else:
                    yield Segment(visible(segment.text), segment.style)

    stream = stream_behind(sys.stderr if err else sys.stdout)
    return ShownConsole(file=stream, markup=False, emoji=False, highlight=False)


def styled(*pieces: Piece) -> Text:
    """A line of text with styles; see :data:`Piece`."""
    from rich.text import Text  # noqa: PLC0415  as above

    return Text.assemble(
        *(
            visible(piece) if isinstance(piece, str) else (visible(piece[0]), piece[1])
            for piece in pieces
        )
    )


_COLOURS = {"red": 31, "green": 32, "yellow": 33, "cyan": 36}


def print_label(label: str, colour: str, text: str) -> None:
    """Prints ``error: …`` and the like on standard error, the label coloured on a terminal."""
    stream = stream_behind(sys.stderr)
    if stream.isatty() and not os.environ.get("NO_COLOR"):
        label = f"\x1b[{_COLOURS[colour]};1m{label}\x1b[0m"
    stream.write(f"{label} {visible(text)}\n")
    stream.flush()


def drop_output() -> None:
    """Discards output that can no longer be written (a pipe without a reader, a full disk)."""
    for stream, descriptor in ((sys.__stdout__, 1), (sys.__stderr__, 2)):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            # The rest of the buffer is written at exit, so the descriptor must still be valid.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, descriptor)
            os.close(nowhere)


def _open_closed_descriptors() -> None:
    """Opens standard streams that are closed (``>&-``); otherwise other files get their numbers."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            # `os.open` returns the lowest free number, which is the number of this stream.
            os.open(os.devnull, os.O_RDWR)
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(descriptor, "w", encoding="utf-8", closefd=False))


def _encode_everything(stream: TextIO) -> None:
    """Also escapes lone surrogates and characters that the terminal's encoding cannot represent."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is None:
        return
    # If the encoding is ASCII, `click` bypasses the stream and writes UTF-8.
    ascii_only = str(stream.encoding or "").lower() in {"ascii", "ansi_x3.4-1968", "646"}
    reconfigure(errors="backslashreplace", **({"encoding": "utf-8"} if ascii_only else {}))
