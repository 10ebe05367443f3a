"""``judge dataset export --format harbor``."""

from __future__ import annotations

from pathlib import Path

import click

from judge.cli.options import option, together

harbor_options = together(
    option("--agent-image", help="With harbor: image in which agents work, used as it is."),
    option(
        "--verifier-image",
        help="With harbor: image of the verifiers. [that of `judge sandbox build --verifier`]",
    ),
)
"""The options that belong to the format."""


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
