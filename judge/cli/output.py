"""Prints tables, and writes the files that ``--out`` names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from judge.console import make_console

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.measure import Measurement
    from rich.table import Table
    from rich.text import Text

_UNBOUNDED_WIDTH = 10_000  # characters, more than any table has


def table(*columns: str) -> Table:
    """Makes an empty table.

    Args:
        columns: headings. A leading ``>`` aligns the column to the right; a leading ``!`` keeps
            its cells on one line, so that names and paths can be copied.
    """
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415  `--help` and `--json` draw no tables
    from rich.table import Table  # noqa: PLC0415

    grid = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        heading = column.lstrip(">!")
        marks = column[: len(column) - len(heading)]
        grid.add_column(
            heading,
            justify="right" if ">" in marks else "left",
            overflow="fold",
            no_wrap="!" in marks,
        )
    return grid


class Unbroken:
    """A cell of a table: pieces that may be on different lines, but are not broken themselves."""

    _GAP = "  "

    def __init__(self, pieces: Iterable[Text]) -> None:
        self._pieces = tuple(pieces)

    def __rich_measure__(self, _: Console, options: ConsoleOptions) -> Measurement:
        from rich.measure import Measurement  # noqa: PLC0415  as above

        widths = [piece.cell_len for piece in self._pieces] or [0]
        whole = sum(widths) + len(self._GAP) * (len(widths) - 1)
        return Measurement(max(widths), whole).with_maximum(options.max_width)

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> Iterator[Text]:
        from rich.text import Text  # noqa: PLC0415  as above

        line = Text()
        for piece in self._pieces:
            longer = line + self._GAP + piece if line else piece
            if line and longer.cell_len > options.max_width:
                yield line
                longer = piece
            line = longer
        yield line


def print_table(shown: Table, console: Console | None = None) -> None:
    """Prints a table; it may become wider than the terminal, so that names are not broken."""
    from rich.measure import Measurement  # noqa: PLC0415  as above

    console = console or make_console()
    unbounded = console.options.update(width=_UNBOUNDED_WIDTH)
    for column in shown.columns:
        if column.no_wrap:
            whole = [column.header, *column.cells]
            column.min_width = max(
                Measurement.get(console, unbounded, cell).maximum for cell in whole
            )
    needed = Measurement.get(console, unbounded, shown).minimum
    width = console.width
    console.width = max(width, needed)
    console.print(shown)
    console.width = width


def write_text(text: str, out: Path | None) -> None:
    """Writes text to a file and prints its name to stderr; for None or ``-``, writes to stdout.

    Raises:
        JudgeError: the file cannot be written.
    """
    if out is None or str(out) == "-":
        click.echo(text, nl=False)
        return
    # Conversations and workbooks can hold lone surrogates, which UTF-8 cannot encode.
    write_file(text.encode("utf-8", "replace"), out)


def write_file(data: bytes, out: Path) -> None:
    """Writes a file and prints its name to stderr.

    Raises:
        JudgeError: the file cannot be written.
    """
    from judge.files.writing import naming_what_is_written  # noqa: PLC0415  `--help` writes nothing

    with naming_what_is_written(out):
        out.write_bytes(data)
    click.echo(str(out), err=True)
