"""``judge doctor``: what this machine has, and the command that mends what it lacks."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict

import click

from judge import __version__


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON on stdout.")
def doctor(as_json: bool) -> None:
    """Say what this machine has: sandboxes, engines, limits; and what mends what it lacks.

    Exits with 5 where no sandbox can be had.
    """
    from judge.sandbox import probe_sandboxes  # noqa: PLC0415  `--help` needs none of it

    findings = probe_sandboxes()
    usable = any(finding.provides_sandbox and finding.ok for finding in findings)
    if as_json:
        document = {
            "judge": __version__,
            "python": platform.python_version(),
            "system": platform.platform(),
            "cores": os.cpu_count(),
            "usable": usable,
            "findings": [asdict(finding) for finding in findings],
        }
        click.echo(json.dumps(document, ensure_ascii=False))
    else:
        click.echo(
            f"judge {__version__}, Python {platform.python_version()}, {platform.platform()}, "
            f"{os.cpu_count()} cores"
        )
        for finding in findings:
            mark = click.style("ok     ", fg="green")
            if not finding.ok:
                mark = click.style("missing", fg="yellow")
            click.echo(f"  {mark} {finding.name}: {finding.detail}")
            if not finding.ok and finding.mend:
                click.echo(f"          {click.style(finding.mend, fg='cyan')}")
        if not usable:
            click.secho("No sandbox can be had: programs cannot be judged here.", fg="red")
    if not usable:
        click.get_current_context().exit(5)
