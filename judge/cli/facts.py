"""``judge facts``: shows what a workbook contains besides the values of its cells."""

from __future__ import annotations

import json
from pathlib import Path

import click

from judge import api
from judge.cli.help import HelpCommand
from judge.cli.options import json_option
from judge.errors import WorkbookError


@click.command(cls=HelpCommand, examples=("facts output.xlsx",))
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@json_option("all facts")
def facts(file: Path, as_json: bool) -> None:
    """Show what the workbook FILE contains besides the values of its cells.

    Charts, pivot tables, tables, filters, frozen panes, validations, conditional formats,
    hyperlinks, sparklines, hidden rows and columns, merged cells, names. Exits with 6 if the file
    is not a readable workbook.
    """
    book = api.open_workbook(file)
    try:
        with book.package.budget.working():
            facts = api.BookFacts(book)
            if as_json:
                text = json.dumps(api.facts_to_json(facts), ensure_ascii=False)
            else:
                text = "\n".join(api.facts_to_lines(facts))
    except WorkbookError as error:
        raise WorkbookError(f"{file}: {error.message}", hint=error.hint) from error
    click.echo(text)
