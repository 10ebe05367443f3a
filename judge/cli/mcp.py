"""``judge mcp``: offers tools for spreadsheets as an MCP server, for other people's agents."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import click

from judge import api
from judge.cli.help import HelpCommand
from judge.cli.options import option, sandbox_option
from judge.errors import UsageError


@click.command(
    cls=HelpCommand,
    examples=("mcp", "mcp --read-only --tools view_range,find"),
)
@option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    help="The only folder whose workbooks are read and written [the current one].",
)
@option("--read-only", is_flag=True, help="Offer no tool that writes a file.")
@option("--tools", "names", metavar="NAMES", help="Only these tools, separated by commas [all].")
@sandbox_option
def mcp(folder: Path, read_only: bool, names: str | None, sandbox: str) -> None:
    """Offer tools for the workbooks of a folder as an MCP server on stdin and stdout.

    The tools list, view, find and set cells, compute formulas, and compare with an earlier version.
    No tool judges. The agent's program starts this command, which ends when its input ends. Engines
    are started in the sandbox when the first formula is computed.
    """
    with contextlib.ExitStack() as stack:

        def calculator() -> api.Recalculating:
            return stack.enter_context(api.Recalculating(sandbox=sandbox))

        tools = api.WorkbookTools(api.ToolFolder(folder, read_only=read_only), calculator).tools()
        if names is not None:
            chosen = [name.strip() for name in names.split(",")]
            offered = {tool.name for tool in tools}
            for name in chosen:
                if name not in offered:
                    raise UsageError(
                        f"there is no tool {name!r}", hint=f"Tools: {', '.join(sorted(offered))}."
                    )
            tools = tuple(tool for tool in tools if tool.name in chosen)
        outgoing = sys.stdout.buffer
        with contextlib.redirect_stdout(sys.stderr):
            # Other output to stdout must not be mistaken for a message of the protocol.
            server = api.ToolServer(tools, lambda line: click.echo(line, err=True))
            server.serve(sys.stdin.buffer, outgoing)
