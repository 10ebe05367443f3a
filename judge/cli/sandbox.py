"""``judge sandbox`` builds and tests sandboxes; ``judge doctor`` shows what a machine has."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge import api
from judge.cli.help import HelpCommand, HelpGroup, OneOf
from judge.cli.options import json_option, option, sandbox_option
from judge.cli.output import print_table, table
from judge.console import make_console, styled
from judge.core.option import Section
from judge.errors import SandboxError, UsageError
from judge.version import __version__

if TYPE_CHECKING:
    from rich.text import Text

    from judge.sandbox import BackendFinding
    from judge.sandbox.selftest import AttackOutcome


def _what_to_build_for() -> list[str]:
    from judge.sandbox.select import AUTO, buildable_backends  # noqa: PLC0415  only for this command

    return [AUTO, *buildable_backends(), "all"]


@click.group(cls=HelpGroup, examples=("sandbox build", "sandbox info"))
def sandbox() -> None:
    """Build and inspect the sandbox."""


@sandbox.command(
    examples=(
        "sandbox build",
        "sandbox build --office --desktop --agent",
        "sandbox build --mcp excel --wheels FOLDER --entry excel_mcp.cli:main",
    ),
    first="backend office desktop agent server wheels entry",
)
@option(
    "--backend",
    section=Section.ISOLATION,
    type=OneOf(_what_to_build_for),
    default="auto",
    show_default=True,
    help="Backend to build for; auto: bubblewrap, and Docker if its daemon answers.",
)
@option(
    "--office/--no-office",
    section=Section.ISOLATION,
    default=None,
    help="Build with or without LibreOffice [with it if mmdebstrap is installed].",
)
@option(
    "--desktop",
    section=Section.ISOLATION,
    is_flag=True,
    help="Also build a desktop with LibreOffice Calc [needs mmdebstrap].",
)
@option(
    "--agent",
    section=Section.ISOLATION,
    is_flag=True,
    help="Also build the root in which tools of agents run [needs mmdebstrap].",
)
@option(
    "--mcp",
    "server",
    section=Section.TOOLS,
    metavar="NAME",
    help="Build only the root of an MCP server, under this name.",
)
@option(
    "--wheels",
    section=Section.TOOLS,
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="The server's wheels and all their dependencies; installed without a network.",
)
@option(
    "--entry",
    section=Section.TOOLS,
    default="",
    metavar="MODULE:NAME",
    help="Function in the wheels that starts the server.",
)
@option(
    "--files",
    section=Section.TOOLS,
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="The server's files, such as a static binary, instead of wheels.",
)
@option(
    "--command",
    section=Section.TOOLS,
    default="",
    metavar="COMMAND",
    help="File among them that starts the server, such as bin/server.",
)
@option(
    "--args",
    "arguments",
    section=Section.TOOLS,
    default="",
    metavar="ARGUMENTS",
    help="The server's arguments; {work} is the folder that an agent works in.",
)
@option(
    "--env",
    "variables",
    section=Section.TOOLS,
    multiple=True,
    metavar="NAME=VALUE",
    help="A variable of the server's environment; may be repeated.",
)
@option(
    "--verifier",
    section=Section.ISOLATION,
    is_flag=True,
    help="Build only the Docker image that judges finished workbooks offline (docs/agents.md).",
)
@option(
    "--base", section=Section.ISOLATION, metavar="IMAGE", help="Image to build the Docker image on."
)
@json_option("what was built")
def build(
    backend: str,
    office: bool | None,
    desktop: bool,
    agent: bool,
    server: str | None,
    wheels: Path | None,
    entry: str,
    files: Path | None,
    command: str,
    arguments: str,
    variables: tuple[str, ...],
    verifier: bool,
    base: str | None,
    as_json: bool,
) -> None:
    """Build the sandboxes that solutions run in: a root for bubblewrap, images for Docker.

    Roots and images that already exist are left unchanged.
    """

    def report(line: str) -> None:
        click.echo(line, err=True)

    server_options: dict[str, object] = {
        "--wheels": wheels,
        "--entry": entry,
        "--files": files,
        "--command": command,
    }
    server_options |= {"--args": arguments, "--env": variables}
    stray = [name for name, value in server_options.items() if value and server is None]
    if stray:
        raise UsageError(f"{stray[0]} can only be used with --mcp NAME")
    if server is not None:
        folder = wheels or files
        if folder is None or (wheels is not None and files is not None):
            raise UsageError("--mcp takes --wheels FOLDER or --files FOLDER")
        if (wheels is None and entry) or (files is None and command):
            raise UsageError("--entry can only be used with --wheels, and --command with --files")
        source = api.ServerSource(server, folder, entry, command, arguments, variables)
        built = api.build_servers(source, backend, report)
    elif verifier:
        built = {"verifier": api.build_verifier_image(report)}
    else:
        built = api.build_all(
            backend,
            with_office=office,
            with_desktop=desktop,
            with_agent=agent,
            base=base,
            report=report,
        )
    if as_json:
        click.echo(json.dumps(built, ensure_ascii=False))


@sandbox.command(examples=("sandbox info --sandbox docker",))
@sandbox_option
@json_option("it")
def info(sandbox: str, as_json: bool) -> None:
    """Show which sandbox would be used, and what is in it."""
    from judge.sandbox.roots import ROOTS  # noqa: PLC0415  `--help` needs none of it

    opened = api.open_sandbox(sandbox)
    try:
        facts = opened.info
        services = [root for root in ROOTS if opened.has_root(root)]
    finally:
        opened.close()
    if as_json:
        document = {
            "backend": facts.backend,
            "image": facts.image,
            "python": facts.python,
            "runtime": facts.runtime,
            "packages": dict(facts.packages),
            "isolation": dict(facts.isolation),
            "services": services,
        }
        click.echo(json.dumps(document, ensure_ascii=False))
        return
    click.echo(f"{facts.backend}: {facts.image}")
    click.echo(f"  runtime: {facts.runtime}")
    click.echo(f"  python: {facts.python}")
    click.echo(f"  services: {', '.join(services)}")
    for title, entries in (("packages", facts.packages), ("isolation", facts.isolation)):
        click.echo(f"  {title}:")
        for name, value in sorted(entries.items()):
            click.echo(f"    {name}: {value}")


@sandbox.command(examples=("sandbox attack --sandbox bubblewrap",))
@sandbox_option
@json_option("the outcomes")
def attack(sandbox: str, as_json: bool) -> None:
    """Run hostile programs against this machine's sandbox and show which attacks it withstood.

    Exits with 5 if an attack succeeded.
    """
    attacked = attack_backend(sandbox, show=not as_json)
    if as_json:
        click.echo(json.dumps(attacked.as_json(), ensure_ascii=False))
    else:
        print_attacks([attacked])
    if not attacked.held:
        click.get_current_context().exit(SandboxError.exit_code)


@dataclass(frozen=True, slots=True)
class AttackedBackend:
    """The outcome of the attacks on one backend.

    Attributes:
        backend: ``docker`` or ``bubblewrap``.
        runtime: the software on which the backend runs, in words for people.
        outcomes: the outcome of each attack; attacks that were never tried are left out.
        isolation: how a run is isolated, such as ``user`` -> ``without capabilities, …``.
        problem: why the self-test could not be finished; empty if it was finished.
    """

    backend: str
    runtime: str
    outcomes: tuple[AttackOutcome, ...]
    problem: str = ""
    isolation: Mapping[str, str] = field(default_factory=dict)

    @property
    def held(self) -> bool:
        """Whether every attack was tried and withstood."""
        return not self.problem and all(outcome.held for outcome in self.outcomes)

    def as_json(self) -> dict[str, Any]:
        """Returns the attributes as a dictionary for JSON."""
        return {
            "backend": self.backend,
            "runtime": self.runtime,
            "held": self.held,
            "problem": self.problem,
            "isolation": dict(self.isolation),
            "attacks": [asdict(outcome) for outcome in self.outcomes],
        }


def attack_backend(kind: str, *, show: bool) -> AttackedBackend:
    """Runs the self-test against one backend of this machine.

    Args:
        kind: ``auto``, ``docker`` or ``bubblewrap``.
        show: report progress on standard error.

    Raises:
        SandboxError: the backend is not available on this machine.
    """
    from judge.sandbox import open_sandbox, selftest  # noqa: PLC0415  `--help` needs none of it

    opened = open_sandbox(kind)
    outcomes: list[AttackOutcome] = []
    problem = ""
    try:
        info = opened.info
        if show:
            click.echo(f"{info.backend} ({info.runtime}): {selftest.COUNT} attacks …", err=True)
        try:
            outcomes.extend(selftest.attack(opened))
        except SandboxError as error:
            problem = error.message
        isolation = opened.info.isolation  # known only after the first run
    finally:
        opened.close()
    return AttackedBackend(info.backend, info.runtime, tuple(outcomes), problem, isolation)


def print_attacks(attacked: Sequence[AttackedBackend]) -> None:
    """Prints a table with a line for each attack and a column for each backend."""
    console = make_console()
    shown = table("!attack", "what must hold", *(result.backend for result in attacked))
    by_attack = [{outcome.name: outcome for outcome in result.outcomes} for result in attacked]
    properties = {
        name: outcome.attacked for outcomes in by_attack for name, outcome in outcomes.items()
    }
    for name, attacked_property in properties.items():
        cells = [_cell(outcomes.get(name)) for outcomes in by_attack]
        shown.add_row(name, attacked_property, *cells)
    print_table(shown, console)
    for backend in attacked:
        count = sum(outcome.held for outcome in backend.outcomes)
        console.print(f"{backend.backend}: withstood {count} of {len(backend.outcomes)} attacks")
        for name, value in backend.isolation.items():
            console.print(styled((f"  {name}: {value}", "dim")))
        if backend.problem:
            console.print(styled(("  stopped before the end:", "red"), f" {backend.problem}"))
        for outcome in backend.outcomes:
            if not outcome.held:
                console.print(styled((f"  {outcome.name}:", "red"), f" {outcome.detail}"))


def _cell(outcome: AttackOutcome | None) -> Text:
    if outcome is None:
        return styled(("not tried", "dim"))
    return styled(("held", "green") if outcome.held else ("FAILED", "bold red"))


@click.command(cls=HelpCommand, examples=("doctor", "doctor --attack"))
@option(
    "--attack",
    is_flag=True,
    help="Also run hostile programs against each sandbox of this machine.",
)
@json_option("the findings")
def doctor(attack: bool, as_json: bool) -> None:
    """Show what this machine has (sandboxes, engines, limits) and how to get what it lacks.

    Exits with 5 if no sandbox is available, or if an attack succeeded.
    """
    findings = api.probe_sandboxes()
    backends = [finding.backend for finding in findings if finding.backend and finding.ok]
    if not as_json:
        _print_findings(findings)
        if not backends:
            text = "No sandbox is available: programs cannot be judged here."
            make_console().print(styled((text, "red")))
    attacked = [_attack(backend, show=not as_json) for backend in backends if attack]
    if as_json:
        document = {
            "judge": __version__,
            "python": platform.python_version(),
            "system": platform.platform(),
            "cores": os.cpu_count(),
            "usable": bool(backends),
            "findings": [asdict(finding) for finding in findings],
        }
        if attack:
            document["attacked"] = [result.as_json() for result in attacked]
        click.echo(json.dumps(document, ensure_ascii=False))
    elif attacked:
        print_attacks(attacked)
    if not backends or not all(result.held for result in attacked):
        click.get_current_context().exit(SandboxError.exit_code)


def _attack(backend: str, *, show: bool) -> AttackedBackend:
    """Attacks a backend; a backend that cannot be opened counts as failed."""
    try:
        return attack_backend(backend, show=show)
    except SandboxError as error:
        return AttackedBackend(backend, "", (), error.message)


def _print_findings(findings: Sequence[BackendFinding]) -> None:
    click.echo(
        f"judge {__version__}, Python {platform.python_version()}, {platform.platform()}, "
        f"{os.cpu_count()} cores"
    )
    console = make_console()
    for finding in findings:
        mark = ("ok     ", "green") if finding.ok else ("missing", "yellow")
        line = styled("  ", mark, f" {finding.name}: {finding.detail}")
        console.print(line, soft_wrap=True)
        if not finding.ok and finding.fix:
            console.print(styled("          ", (finding.fix, "cyan")), soft_wrap=True)
