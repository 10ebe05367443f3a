"""``judge tools`` and ``judge mcp``: tools for spreadsheets, without a model.

``judge tools`` shows the tools of ``judge infer --mode tools``; ``judge mcp`` offers tools as an
MCP server, for other people's agents.
"""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path

import click

from judge import api
from judge.cli.help import HelpCommand, HelpGroup
from judge.cli.options import json_option, option, sandbox_option
from judge.console import visible
from judge.core.option import split_ids
from judge.errors import IncompleteRunError, UsageError

_SHOWN_CHARS = 120


@click.group(cls=HelpGroup, examples=("tools check native", "tools check mcp:excel"))
def tools() -> None:
    """Look at sets of tools for chat models."""


@tools.command(
    cls=HelpCommand,
    examples=("tools check native", "tools check mcp:excel --json", "tools check ssb2"),
)
@click.argument("name", metavar="NAMES")
@sandbox_option
@json_option("the tools, their schemas and the times")
def check(name: str, sandbox: str, as_json: bool) -> None:
    """Start the tools NAMES, and list what a model is offered; no model is asked.

    NAMES are those of --tools, separated by commas: native, ssb2, mcp:NAME, or names of tools. The
    exit code is 11 if a server does not start or does not list its tools.
    """
    checked = api.check_tools(name, sandbox)
    if as_json:
        click.echo(json.dumps(checked.to_json(), ensure_ascii=False))
    else:
        for server in checked.servers:
            facts = server.record
            if "era" not in facts:
                click.echo(f"{server.name}: no answer, {server.seconds:.1f} s")
                continue
            click.echo(
                f"{server.name}: {visible(facts.get('server_name', ''))} "
                f"{visible(facts.get('server_version', ''))}, {facts['era']} "
                f"{facts.get('protocol', '')}, {len(server.tools)} tools, "
                f"{server.seconds:.1f} s, {server.memory_bytes / 1e6:.0f} MB"
            )
            for sent, own in facts.get("renamed", {}).items():
                click.echo(f"  {visible(' '.join(own.split()))} is called {sent}")
            for left_out, why in facts.get("left_out", {}).items():
                click.echo(f"  {visible(left_out)} is left out: {visible(why)}")
        if checked.start_s is not None:
            click.echo(f"tools of the agent's root: start {checked.start_s:.1f} s")
        click.echo(f"tools, about {checked.tokens:,} tokens in each request:")
        for definition, tokens in checked.definitions:
            function = definition["function"]
            properties = function["parameters"].get("properties")
            arguments = ", ".join(properties) if isinstance(properties, dict) else ""
            words = visible(" ".join(function["description"].split()))[:_SHOWN_CHARS]
            shown = visible(f"{function['name']}({' '.join(arguments.split())})")
            click.echo(f"  {shown}, about {tokens:,} tokens: {words}")
    if checked.problem:
        raise IncompleteRunError(
            f"not all tools can be used: {visible(checked.problem)}",
            hint="The fault is in the server: see its documentation, or build it with other "
            "arguments.",
        )


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
            chosen = split_ids([names])
            if not chosen:
                raise UsageError("--tools names no tool", hint="Leave it out for all tools.")
            offered = {tool.name for tool in tools}
            for name in chosen:
                if name not in offered:
                    raise UsageError(
                        f"--tools: there is no tool {name!r}",
                        hint=f"Tools: {', '.join(sorted(offered))}.",
                    )
            tools = tuple(tool for tool in tools if tool.name in chosen)
        outgoing = sys.stdout.buffer
        with contextlib.redirect_stdout(sys.stderr):
            # Other output to stdout must not be mistaken for a message of the protocol.
            server = api.ToolServer(tools, lambda line: click.echo(line, err=True))
            server.serve(sys.stdin.buffer, outgoing)
