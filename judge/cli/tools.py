"""``judge tools``: shows the tools of ``judge infer --mode tools``, without asking a model."""

from __future__ import annotations

import json

import click

from judge import api
from judge.cli.help import HelpCommand, HelpGroup
from judge.cli.options import json_option, sandbox_option
from judge.console import visible
from judge.errors import IncompleteRunError

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
