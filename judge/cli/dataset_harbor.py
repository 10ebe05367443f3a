"""``judge dataset export --format harbor``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])


def harbor_options(command: _Command) -> _Command:
    """Adds the options that belong to the format."""
    options = [
        click.option(
            "--agent-image", help="With harbor: image in which agents work, used as it is."
        ),
        click.option(
            "--verifier-image",
            help="With harbor: image of the verifiers. [that of `judge sandbox build --verifier`]",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def export_tasks(
    suite: str, target: Path, agent_image: str | None, verifier_image: str | None
) -> None:
    """Writes a suite as tasks of Harbor, and says what was written."""
    from judge.authoring.harbor import HarborImages, export_harbor  # noqa: PLC0415  for --help
    from judge.suites import load_suite  # noqa: PLC0415  likewise

    if verifier_image is None:
        from judge.sandbox.backends.verifier import verifier_tag  # noqa: PLC0415  likewise

        verifier_image = verifier_tag()
    made = export_harbor(load_suite(suite), HarborImages(verifier_image, agent_image), target)
    click.echo(f"{target}: {made.tasks} tasks, {made.cases} cases; verifiers: {verifier_image}")
    if made.left_out:
        click.echo(
            f"{made.left_out} tasks do not ask for a workbook, or are left out by the suite",
            err=True,
        )
