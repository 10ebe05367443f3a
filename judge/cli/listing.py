"""Plain tables of what a command lists."""

from __future__ import annotations

from rich import box
from rich.table import Table

from judge.console.terminal import make_console


def table(*columns: str) -> Table:
    """A table; ``>`` before a heading puts its column to the right."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        right = column.startswith(">")
        made.add_column(
            column.removeprefix(">"), justify="right" if right else "left", overflow="fold"
        )
    return made


def print_table(shown: Table) -> None:
    """Prints a table on standard output."""
    make_console().print(shown)
