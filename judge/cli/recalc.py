"""``judge recalc`` and ``judge engines``: computes a workbook's formulas; lists the engines."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge import api
from judge.cli.help import HelpCommand
from judge.cli.options import json_option, option, options_of, sandbox_option
from judge.cli.output import print_table, table
from judge.console import counted, styled
from judge.errors import RecalcError, UsageError
from judge.files.documents import dump_json
from judge.grading.options import GradingOptions
from judge.workbook.cell import ErrorValue

if TYPE_CHECKING:
    from judge.recalc.library import Recalculating, Recalculation
    from judge.recalc.select import EngineEntry

SHOWN_CELLS = 40


@click.command(
    cls=HelpCommand,
    examples=(
        "recalc output.xlsx",
        "recalc output.xlsx --at \"'Sheet 1'!B2:B9\" --output computed.xlsx",
        "recalc output.xlsx --explain Sheet1!B2",
        "recalc --serve",
    ),
)
@click.argument(
    "file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@option("--at", metavar="POSITION", help="Only these cells, as `Sheet1!A1:B9` [all].")
@option(
    "--explain",
    metavar="CELL",
    help="Show what each engine computed for one cell, and which one is believed and why.",
)
@option(
    "--serve",
    is_flag=True,
    help='Compute one workbook per line: JSON such as {"path": FILE} on stdin, JSON on stdout.',
)
@options_of(
    GradingOptions,
    "engine",
    engine="The engine; auto uses each engine for what it computes correctly.",
)
@option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a copy whose formula cells hold the values.",
)
@option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0.1),
    default=60.0,
    show_default=True,
    help="Processor seconds that one engine may take.",
)
@options_of(GradingOptions, "lenient_names sandbox")
@json_option("the values")
def recalc(
    file: Path | None,
    at: str | None,
    output: Path | None,
    explain: str | None,
    serve: bool,
    as_json: bool,
    **engines: Any,
) -> None:
    """Compute the formulas of the workbook FILE.

    Prints the computed cells, or writes a copy with --output. Exits with 8 if a cell could not be
    computed.
    """
    _check_together(file, at=at, output=output, explain=explain, serve=serve)
    with api.Recalculating(**engines) as recalculating:
        if file is None:
            _serve(recalculating)
        elif explain is not None:
            _explain(recalculating, file, explain, as_json=as_json)
        else:
            _compute(recalculating(file, at=at, output=output), file, as_json=as_json)


def _check_together(
    file: Path | None, *, at: str | None, output: Path | None, explain: str | None, serve: bool
) -> None:
    if serve and file is not None:
        raise UsageError("--serve reads the names of workbooks from stdin; leave out FILE")
    if not serve and file is None:
        raise UsageError("there is no workbook to compute; name a FILE, or use --serve")
    beside = {"--at": at, "--output": output, "--explain": explain}
    together = [flag for flag, value in beside.items() if value is not None]
    if serve and together:
        raise UsageError(f"{together[0]} cannot be used with --serve; each request states its own")
    if explain is not None and len(together) > 1:
        raise UsageError(f"{together[0]} cannot be used with --explain, which computes one cell")


def _serve(recalculating: Recalculating) -> None:
    from judge.recalc.library import serve_lines  # noqa: PLC0415  `--help` needs no engine

    def answer(line: str) -> None:
        click.echo(line)
        sys.stdout.flush()

    serve_lines(recalculating, sys.stdin.buffer, answer)


def _explain(recalculating: Recalculating, file: Path, cell: str, *, as_json: bool) -> None:
    from judge.recalc.explaining import (  # noqa: PLC0415  as above
        explanation_as_json,
        explanation_lines,
    )

    explanation = recalculating.explain(file, cell)
    if as_json:
        click.echo(dump_json(explanation_as_json(explanation), spaced=True))
    else:
        for line in explanation_lines(explanation):
            click.echo(line)
        for note in explanation.notes:
            click.echo(f"note: {note}", err=True)
    if explanation.formula is not None and not explanation.believed:
        raise RecalcError(f"{file}: {cell} could not be computed", hint="The reason is above.")


def _compute(result: Recalculation, file: Path, *, as_json: bool) -> None:
    from judge.recalc.library import recalculation_as_json  # noqa: PLC0415  as above

    if as_json:
        click.echo(dump_json(recalculation_as_json(result), spaced=True))
    else:
        _print(result)
    missing = len(result.computed.not_calculated)
    if missing:
        raise RecalcError(
            f"{file}: {missing} formula cells could not be computed",
            hint="The reasons are listed above; `judge engines` shows which engines are available.",
        )


def _print(result: Recalculation) -> None:
    from judge.recalc.explaining import address  # noqa: PLC0415  as above

    computed = result.computed
    shown = sorted(computed.values.items())[:SHOWN_CELLS] if result.written is None else []
    for ref, value in shown:
        plain = value.code if isinstance(value, ErrorValue) else value
        click.echo(f"{address(ref)}\t{plain}")
    if shown and len(computed.values) > len(shown):
        click.echo(f"… and {len(computed.values) - len(shown)} more (all with --json)")
    for ref, why in sorted(computed.not_calculated.items())[:SHOWN_CELLS]:
        click.echo(f"{address(ref)}\tnot calculated: {why}", err=True)
    for note in (*result.position_notes, *computed.notes):
        click.echo(f"note: {note}", err=True)
    if computed.values or computed.not_calculated:
        engines = ", ".join(computed.engines) or "no engine"
        took = f"{computed.seconds * 1000:.0f} ms"
        summary = f"{counted(len(computed.values), 'cell')} computed by {engines} in {took}"
    else:
        summary = "nothing was computed: there is no formula"
    click.echo(summary, err=True)
    if result.written is not None:
        click.echo(f"written: {result.written}", err=True)


@click.command(cls=HelpCommand, examples=("engines", "engines XLOOKUP"))
@click.argument("function", required=False)
@sandbox_option
@json_option("the findings")
def engines(function: str | None, sandbox: str, as_json: bool) -> None:
    """Show the calculation engines: availability, versions, functions that they are trusted with.

    An engine is trusted with a function if it was right in at least nine of ten cells that call it,
    as measured by `benchmarks/records.py`. With the name of a FUNCTION, shows how many of its cells
    each engine computed correctly, in total and by the shape of the arguments.
    """
    if function is not None:
        _print_records(function, as_json=as_json)
        return
    import contextlib  # noqa: PLC0415

    with contextlib.closing(api.open_sandbox(sandbox)) as opened:
        entries = api.engine_report(opened)
    if as_json:
        click.echo(json.dumps(api.report_as_json(entries), ensure_ascii=False))
        return
    _print_engines(entries)


def _print_records(function: str, *, as_json: bool) -> None:
    from judge.recalc.trust import trust_table  # noqa: PLC0415

    matching = trust_table().records_of(function)
    if not matching:
        raise UsageError(f"no engine was measured with a function {function.upper()!r}")
    shown = {
        name: {engine: [record.right, record.total] for engine, record in records.items()}
        for name, records in matching.items()
    }
    if as_json:
        click.echo(json.dumps(shown))
        return
    names = sorted({engine for records in shown.values() for engine in records})
    records_table = table("!shape", *(f"!{engine}" for engine in names))
    for name, records in shown.items():
        cells = (records.get(engine) for engine in names)
        records_table.add_row(name, *(f"{c[0]} of {c[1]}" if c else "" for c in cells))
    print_table(records_table)


def _print_engines(entries: tuple[EngineEntry, ...]) -> None:
    engines = table("!engine", "version", "functions trusted", "how to get it")
    for entry in entries:
        coverage = entry.coverage
        measured = coverage.get("measured", 0)
        trusted = f"{coverage['trusted']} of {measured}" if measured else "not measured"
        version = styled(entry.version or ("not here", "yellow"))
        engines.add_row(entry.name, version, trusted, entry.hint)
    print_table(engines)
