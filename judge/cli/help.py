"""Help pages: examples first, then the options in sections, starting with the most used ones.

An option names its section (:class:`judge.core.option.Section`); a command names its examples and
its most used options (:class:`HelpCommand`).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import click

from judge.core.option import Section
from judge.errors import did_you_mean

MAX_FLAT = 12
"""How many options a command may have before they have to be divided into sections."""

FIRST = "Used most"
OTHER = "Other"
"""Section of options that do not name a section; a test makes sure that it stays empty."""

_MAX_NAME_COLUMN = 30  # width of the column of options, in characters
_MAX_SUMMARY_CHARS = 200  # of a command's line in the overview
_METAVARS = {"INTEGER RANGE": "N", "FLOAT RANGE": "NUMBER", "INTEGER": "N", "FLOAT": "NUMBER"}


@dataclass(frozen=True, slots=True)
class Page:
    """Additions to the help page of a command, besides its description and its options.

    Attributes:
        examples: commands as typed in a shell, without the leading ``judge``.
        first: names of the most used parameters, in the order shown, separated by spaces.
    """

    examples: tuple[str, ...] = ()
    first: str = ""


class SectionedOption(click.Option):
    """An option with the section of the help page that shows it.

    Args:
        names: as for ``click.Option``.
        section: the section; None in commands with few options.
        attributes: as for ``click.Option``.
    """

    def __init__(self, *names: Any, section: Section | None = None, **attributes: Any) -> None:
        super().__init__(*names, **attributes)
        self.section = section


class OneOf(click.Choice[str]):
    """A choice between names; the error for a misspelt name suggests the most similar name.

    Args:
        names: the names, or a function that returns them if they come from a registry, which should
            be imported only when it is needed.
        noun: what the error message calls such a name.
    """

    def __init__(self, names: Iterable[str] | Callable[[], Iterable[str]], noun: str = "") -> None:
        self._names = names
        self._noun = noun
        self.case_sensitive = True

    @cached_property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]
        """The names that can be chosen."""
        return tuple(self._names() if callable(self._names) else self._names)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Returns the chosen name.

        Raises:
            click.BadParameter: it is not one of the names.
        """
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            nearest = did_you_mean(str(value), self.choices, before=" ")
            message = error.message
            if self._noun:
                message = f"{value!r} is not a {self._noun}; choose {', '.join(self.choices)}."
            self.fail(message + nearest, param, ctx)


class HelpCommand(click.Command):
    """A command whose options are shown in sections, after its examples.

    Args:
        examples, first: the attributes of its :class:`Page`.
        attributes: as for ``click.Command``.

    Attributes:
        page: what the help page shows besides the description and the options.
    """

    def __init__(
        self, *names: Any, examples: tuple[str, ...] = (), first: str = "", **attributes: Any
    ) -> None:
        super().__init__(*names, **attributes)
        self.page = Page(examples, first)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the description and the examples."""
        super().format_help_text(ctx, formatter)
        _write_examples(ctx, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the options in sections."""
        _write_options(self, ctx, formatter)


class HelpGroup(HelpCommand, click.Group):
    """A group of such commands; the error for an unknown command suggests the most similar name.

    Args:
        examples, first: the attributes of its :class:`Page`.
        attributes: as for ``click.Group``.
    """

    command_class = HelpCommand
    group_class = type

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the commands and the options, in sections if there are many options."""
        _write_options(self, ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the first sentence of the help of each command, in full."""
        named = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, command.get_short_help_str(_MAX_SUMMARY_CHARS))
                    for name, command in named
                    if command
                ]
            )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds the command that the first word names.

        Raises:
            click.UsageError: there is no such command.
        """
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            nearest = did_you_mean(name, self.list_commands(ctx), before=" ")
            ctx.fail(f"No such command {name!r}.{nearest}")
        return super().resolve_command(ctx, args)


class LazyGroup(HelpGroup):
    """A group whose commands are imported when they are called; showing its help imports none.

    Args:
        rows: section title in the overview -> name of a command -> its module, its attribute in
            the module, and its line in the overview.
        attributes: as for :class:`HelpGroup`.
    """

    def __init__(
        self,
        *names: Any,
        rows: Mapping[str, Mapping[str, tuple[str, str, str]]],
        **attributes: Any,
    ) -> None:
        super().__init__(*names, **attributes)
        self._rows = rows

    @property
    def lazy(self) -> dict[str, tuple[str, str, str]]:
        """Name of a command -> its module, its attribute in it, and its line in the overview."""
        return {name: row for rows in self._rows.values() for name, row in rows.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the names of all commands."""
        del ctx
        return list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports a command by its name."""
        del ctx
        entry = self.lazy.get(cmd_name)
        if entry is None:
            return None
        module, attribute, _ = entry
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the overview without importing any command."""
        del ctx
        width = max(map(len, self.lazy))
        for title, commands in self._rows.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(name.ljust(width), entry[2]) for name, entry in commands.items()]
                )


def page_of(command: click.Command) -> Page:
    """Returns the page of a command; an empty page for other commands."""
    return command.page if isinstance(command, HelpCommand) else Page()


def sections_of(command: click.Command) -> dict[str, list[click.Option]]:
    """Returns the options of a command by section title, in the order that they are shown in.

    Args:
        command: the command.
    """
    first = page_of(command).first
    options = {
        param.name or "": param for param in command.params if isinstance(param, click.Option)
    }
    if len(options) <= MAX_FLAT:
        return {"Options": list(options.values())} if options else {}
    sections = {FIRST: [options.pop(name) for name in first.split()]}
    for title in (*Section, OTHER):
        sections[title] = [option for option in options.values() if _section_of(option) == title]
    return {title: chosen for title, chosen in sections.items() if chosen}


def _section_of(option: click.Option) -> str:
    return getattr(option, "section", None) or OTHER


def _write_examples(ctx: click.Context, formatter: click.HelpFormatter) -> None:
    examples = page_of(ctx.command).examples
    if examples:
        with formatter.section("Examples"):
            for example in examples:
                formatter.write(f"{'':{formatter.current_indent}}judge {example}\n")


def _write_options(
    command: click.Command, ctx: click.Context, formatter: click.HelpFormatter
) -> None:
    sections = sections_of(command)
    shown = {title: list(_records(entries, ctx)) for title, entries in sections.items()}
    if (own := command.get_help_option(ctx)) is not None:
        last = next(reversed(shown), "Options")
        shown.setdefault(last, []).extend(_records([own], ctx))
    widths = [len(left) for records in shown.values() for left, _ in records]
    width = min(max(widths, default=0), _MAX_NAME_COLUMN)
    for title, records in shown.items():
        with formatter.section(title):
            formatter.write_dl([(left.ljust(width), text) for left, text in records])


def _records(options: Iterable[click.Parameter], ctx: click.Context) -> Iterator[tuple[str, str]]:
    for option in options:
        record = option.get_help_record(ctx)
        if record is not None:
            left, text = record
            for long, short in _METAVARS.items():
                left = left.replace(long, short)
            yield left, text
