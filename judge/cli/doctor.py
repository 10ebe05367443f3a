"""``judge doctor``: what this machine has, and the commands that install what it lacks."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from judge.cli.attack import AttackedBackend, attack_backend, print_attacks
from judge.cli.help import HelpCommand
from judge.cli.options import json_option, option
from judge.console import make_console, styled
from judge.errors import SandboxError
from judge.version import __version__

if TYPE_CHECKING:
    from judge.sandbox import BackendFinding


@click.command(cls=HelpCommand)
@option(
    "--attack",
    is_flag=True,
    help="Also run hostile programs against each sandbox of this machine.",
)
@json_option("the findings")
def doctor(attack: bool, as_json: bool) -> None:
    """Show what this machine has (sandboxes, engines, limits) and how to get what it lacks.

    Exits with 5 if no sandbox is available, or if one did not withstand an attack.
    """
    from judge.sandbox import probe_sandboxes  # noqa: PLC0415  `--help` needs none of it

    findings = probe_sandboxes()
    backends = [finding.backend for finding in findings if finding.backend and finding.ok]
    if not as_json:
        _print_findings(findings)
        if not backends:
            said = "No sandbox is available: programs cannot be judged here."
            make_console().print(styled((said, "red")))
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
            document["attacked"] = [each.as_json() for each in attacked]
        click.echo(json.dumps(document, ensure_ascii=False))
    elif attacked:
        print_attacks(attacked)
    if not backends or not all(each.held for each in attacked):
        click.get_current_context().exit(SandboxError.exit_code)


def _attack(backend: str, *, show: bool) -> AttackedBackend:
    """Attacks a backend; if it cannot be opened after all, it counts as failed."""
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
        said = styled("  ", mark, f" {finding.name}: {finding.detail}")
        console.print(said, soft_wrap=True)
        if not finding.ok and finding.fix:
            console.print(styled("          ", (finding.fix, "cyan")), soft_wrap=True)
