"""Plain tables of what a command lists."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from judge.console import make_console

_WIDEST = 10_000


def table(*columns: str) -> Table:
    """A table.

    Args:
        columns: headings. ``>`` before one puts its column to the right; ``!`` keeps its
            cells whole, since names and files are there to be copied.
    """
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
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
    """Prints a table on standard output, wider than the terminal rather than with broken names."""
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
