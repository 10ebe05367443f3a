"""How commands print tables, and write what ``--out`` names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from judge.console import make_console
from judge.files.writing import naming_what_is_written

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_WIDEST = 10_000


def table(*columns: str) -> Table:
    """A table.

    Args:
        columns: headings. ``>`` before one puts its column to the right; ``!`` keeps its
            cells whole, since names and files are there to be copied.
    """
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415  `--help` and `--json` draw no tables
    from rich.table import Table  # noqa: PLC0415

    made = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        heading = column.lstrip(">!")
        marks = column[: len(column) - len(heading)]
        made.add_column(
            heading,
            justify="right" if ">" in marks else "left",
            overflow="fold",
            no_wrap="!" in marks,
        )
    return made


def print_table(shown: Table, console: Console | None = None) -> None:
    """Prints a table on standard output; rather than break names, it is wider than the terminal."""
    from rich.measure import Measurement  # noqa: PLC0415  as above

    console = console or make_console()
    unbounded = console.options.update(width=_WIDEST)
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
    """Writes text to a file and names it on stderr; to stdout if there is none, or for ``-``.

    Raises:
        JudgeError: it cannot be written.
    """
    if out is None or str(out) == "-":
        click.echo(text, nl=False)
        return
    # Conversations and workbooks can hold halves of surrogate pairs, which no file can.
    write_file(text.encode("utf-8", "replace"), out)


def write_file(data: bytes, out: Path) -> None:
    """Writes a file and names it on stderr.

    Raises:
        JudgeError: it cannot be written.
    """
    with naming_what_is_written(out):
        out.write_bytes(data)
    click.echo(str(out), err=True)
