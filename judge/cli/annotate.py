"""``judge annotate``: make test cases, check them, and measure how strong they are."""

from __future__ import annotations

from typing import ClassVar

import click

from judge.cli.help import LazyGroup

# name -> (module, attribute, one line for the overview), imported when called
COMMANDS: dict[str, tuple[str, str, str]] = {
    "page": ("judge.cli.annotate_page", "page", "Open the page for a task (or: SUITE TASK)."),
    "add": ("judge.cli.annotate_cases", "add", "Make a new case from an old one."),
    "set": ("judge.cli.annotate_cases", "set_cells", "Change cells of a case or a draft."),
    "drafts": ("judge.cli.annotate_cases", "drafts", "Show what is being worked on."),
    "discard": ("judge.cli.annotate_cases", "discard", "End a draft without saving it."),
    "remove": ("judge.cli.annotate_cases", "remove", "Take back the last save of a case."),
    "log": ("judge.cli.annotate_cases", "log", "Show who saved what, and what moved."),
    "check": ("judge.cli.annotate_check", "check", "Check cases against the manual's rules."),
    "suggest": ("judge.cli.annotate_suggest", "suggest", "Suggest corner cases, with golds."),
    "strength": ("judge.cli.annotate_strength", "strength", "Show how strong the cases are."),
}

DEFAULT = "page"
"""The command to run if none is named: ``judge annotate SUITE TASK``."""


class AnnotateGroup(LazyGroup):
    """The commands, of which one need not be named."""

    lazy = COMMANDS
    overview: ClassVar = {"Commands": " ".join(COMMANDS)}

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Treats a first word that is not a command as a suite, and opens its page."""
        if args and args[0] not in COMMANDS and DEFAULT in COMMANDS:
            args = [DEFAULT, *args]
        return super().resolve_command(ctx, args)


@click.group(cls=AnnotateGroup)
def annotate() -> None:
    """Make test cases for the tasks of a suite, and measure how strong they are.

    SUITE is the folder that the cases are saved in. A name such as `sample` will do where nothing
    is saved.
    """
