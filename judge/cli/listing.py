"""Plain tables of what a command lists."""

from __future__ import annotations

from rich import box
from rich.measure import Measurement
from rich.table import Table

from judge.console.terminal import make_console

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


def print_table(shown: Table) -> None:
    """Prints a table on standard output, wider than the terminal rather than with broken names."""
    console = make_console()
    unbounded = console.options.update(width=_WIDEST)
    needed = Measurement.get(console, unbounded, shown).minimum
    console.width = max(console.width, needed)
    console.print(shown)
