"""Help pages: examples first, then the options in sections, those that people use first on top.

An option says itself in which section it is (:class:`judge.core.option.Section`). What help shows
besides is in the table at the end: for each command, which ten options come first and how it is
called (:data:`PAGES`).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar

import click

from judge.core.option import Section
from judge.errors import did_you_mean

MAX_FLAT = 12
"""A command with more options than this has them in sections."""

FIRST = "Used most"
OTHER = "Other"
"""Where an option is that no section names; a test keeps it empty."""

_COLUMN = 30
_SENTENCE = 200
_METAVARS = {"INTEGER RANGE": "N", "FLOAT RANGE": "NUMBER", "INTEGER": "N", "FLOAT": "NUMBER"}


@dataclass(frozen=True, slots=True)
class Page:
    """What the help of a command shows besides its description and its options' own help.

    Attributes:
        examples: commands as typed in a shell, without the leading ``judge``.
        first: names of the parameters that people use first, the first one first.
    """

    examples: tuple[str, ...]
    first: str = ""


class SectionedOption(click.Option):
    """An option that says in which section of a long help page it is shown.

    Args:
        names: as for ``click.Option``.
        section: the section; None in commands with few options.
        attributes: as for ``click.Option``.
    """

    def __init__(self, *names: Any, section: Section | None = None, **attributes: Any) -> None:
        super().__init__(*names, **attributes)
        self.section = section


class OneOf(click.Choice[str]):
    """A choice that names the nearest one if it is misspelt.

    Args:
        names: the choices, or what gives them when they are needed: a registry may have to be
            imported for it.
        noun: what a name stands for, for the message about one that does not exist.
    """

    def __init__(self, names: Iterable[str] | Callable[[], Iterable[str]], noun: str = "") -> None:
        self._names = names
        self._noun = noun
        self.case_sensitive = True

    @cached_property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]
        """The choices."""
        return tuple(self._names() if callable(self._names) else self._names)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The choice.

        Raises:
            click.BadParameter: there is no such choice.
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
    """A command whose options are shown in sections, after its examples."""

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the description and the examples."""
        super().format_help_text(ctx, formatter)
        _write_examples(ctx, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the options in sections."""
        _write_options(self, ctx, formatter)


class HelpGroup(click.Group):
    """A group of such commands; a command that does not exist is answered with the nearest."""

    command_class = HelpCommand
    group_class = type

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the description and the examples."""
        super().format_help_text(ctx, formatter)
        _write_examples(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes one whole sentence about each command."""
        named = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, each.get_short_help_str(_SENTENCE)) for name, each in named if each]
            )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first word names.

        Raises:
            click.UsageError: there is none.
        """
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            nearest = did_you_mean(name, self.list_commands(ctx), before=" ")
            ctx.fail(f"No such command {name!r}.{nearest}")
        return super().resolve_command(ctx, args)


class LazyGroup(HelpGroup):
    """A group whose commands are imported when they are called, not for its own help.

    Attributes:
        lazy: name of a command -> its module, its attribute there, one line for the overview.
        overview: title -> names of commands, separated by spaces.
    """

    lazy: ClassVar[Mapping[str, tuple[str, str, str]]] = {}
    overview: ClassVar[Mapping[str, str]] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands."""
        del ctx
        return list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports a command by its name."""
        del ctx
        if cmd_name not in self.lazy:
            return None
        module, attribute, _ = self.lazy[cmd_name]
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the overview without importing any command."""
        del ctx
        width = max(map(len, self.lazy))
        for title, names in self.overview.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(name.ljust(width), self.lazy[name][2]) for name in names.split()]
                )


def page_of(ctx: click.Context) -> Page:
    """The page of the command that a context is about; an empty one if it has none."""
    words: list[str] = []
    each: click.Context | None = ctx
    while each is not None:
        words.insert(0, each.command.name or "")
        each = each.parent
    if words[0] == "judge":
        del words[0]
    return PAGES.get(" ".join(words), Page(()))


def sections_of(command: click.Command, page: Page) -> dict[str, list[click.Option]]:
    """The options of a command by the title of their section, in the order in which they are shown.

    Args:
        command: the command.
        page: its page.
    """
    options = {
        param.name or "": param for param in command.params if isinstance(param, click.Option)
    }
    if len(options) <= MAX_FLAT:
        return {"Options": list(options.values())} if options else {}
    sections = {FIRST: [options.pop(name) for name in page.first.split()]}
    for title in (*Section, OTHER):
        sections[title] = [option for option in options.values() if _section_of(option) == title]
    return {title: chosen for title, chosen in sections.items() if chosen}


def _section_of(option: click.Option) -> str:
    return getattr(option, "section", None) or OTHER


def _write_examples(ctx: click.Context, formatter: click.HelpFormatter) -> None:
    examples = page_of(ctx).examples
    if examples:
        with formatter.section("Examples"):
            for example in examples:
                formatter.write(f"{'':{formatter.current_indent}}judge {example}\n")


def _write_options(
    command: click.Command, ctx: click.Context, formatter: click.HelpFormatter
) -> None:
    sections = sections_of(command, page_of(ctx))
    shown = {title: list(_records(each, ctx)) for title, each in sections.items()}
    if (own := command.get_help_option(ctx)) is not None:
        last = next(reversed(shown), "Options")
        shown.setdefault(last, []).extend(_records([own], ctx))
    widths = [len(left) for records in shown.values() for left, _ in records]
    width = min(max(widths, default=0), _COLUMN)
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


PAGES: Mapping[str, Page] = MappingProxyType(
    {
        "": Page(
            (
                "score solutions.jsonl --dataset sample",
                "view results/",
                "doctor",
            )
        ),
        "score": Page(
            (
                "score solutions.jsonl --dataset sample --out results/mine",
                "score results/mine --profile strict",
                "score jobs/ --dataset sample --outputs '{task}/{case}/*.xlsx'",
            ),
            first="dataset out ids limit jobs profile recalc outputs sandbox as_json",
        ),
        "run": Page(
            ("run 1001 solution.py --dataset sample",),
            first="dataset show profile recalc sandbox as_json",
        ),
        "report": Page(
            (
                "report results/mine",
                "report results/mine --format csv --table tasks --out tasks.csv",
            )
        ),
        "compare-runs": Page(
            (
                "compare-runs results/a results/b",
                "compare-runs results/a results/b --format html --out both.html",
            )
        ),
        "view": Page(("view results/", "view results/ --port 8080")),
        "rejudge": Page(
            (
                "rejudge results/mine --profile strict",
                "rejudge results/mine --case 59196/2 --verdict AC --by Ann --why typo",
            ),
            first="profile recalc dataset apply rerun case verdict by why as_json",
        ),
        "audit": Page(
            (
                "audit results/mine --sample 50",
                "audit results/mine --read results/mine/audit.xlsx",
            )
        ),
        "verify": Page(
            (
                "verify sample",
                "verify sample --audit --out suspects.json",
                "verify sample --review --suspects suspects.json",
            ),
            first="ids limit jobs audit review suspects submissions out profile as_json",
        ),
        "compare": Page(
            (
                "compare gold.xlsx output.xlsx --at \"'Sheet 1'!B2:B9\"",
                "compare gold.xlsx output.xlsx --rules rules.json",
            ),
            first="position rules_path board_path profile tolerance ignore_case recalc input_path"
            " show as_json",
        ),
        "facts": Page(("facts output.xlsx",)),
        "recalc": Page(
            (
                "recalc output.xlsx",
                "recalc output.xlsx --at \"'Sheet 1'!B2:B9\" --output computed.xlsx",
                "recalc output.xlsx --explain \"'Sheet 1'!B2\"",
            )
        ),
        "engines": Page(("engines", "engines XLOOKUP")),
        "infer": Page(
            (
                "infer --model deepseek-coder --dataset sample --limit 2 --dry-run",
                "infer --model vllm --base-url http://127.0.0.1:8000/v1 --limit 2",
                "infer --out results/mine",
            ),
            first="model mode dataset out ids limit base_url api_key_env dry_run score",
        ),
        "desktop": Page(("desktop 4001 --dataset sample-desktop --out results/me",)),
        "dataset": Page(
            (
                "dataset list",
                "dataset show sample 1001",
                "dataset fetch spreadsheetbench-verified-400",
            )
        ),
        "dataset list": Page(("dataset list", "dataset list sample")),
        "dataset show": Page(("dataset show sample 1001",)),
        "dataset stats": Page(("dataset stats sample",)),
        "dataset validate": Page(("dataset validate mysuite/",)),
        "dataset fetch": Page(("dataset fetch spreadsheetbench-verified-400",)),
        "dataset new": Page(("dataset new mysuite/",)),
        "dataset add-task": Page(
            (
                "dataset add-task mysuite/ 1 --case input.xlsx gold.xlsx --position B2:B9",
                "dataset add-task mysuite/ 2 --from gold.xlsx --input input.xlsx --yes",
            ),
            first="case input from yes instruction type position answer rules by",
        ),
        "dataset edit-task": Page(
            ("dataset edit-task mysuite/ 1 --instruction @question.txt",),
            first="instruction type position answer rules by",
        ),
        "dataset review": Page(
            (
                "dataset review mysuite/",
                "dataset review mysuite/ 1 --state checked --by Ben",
            )
        ),
        "dataset export": Page(
            (
                "dataset export mysuite/ mysuite.tar.gz",
                "dataset export sample card/ --format dataset-card",
            )
        ),
        "dataset triage": Page(
            (
                "dataset triage posts.jsonl --sheet decisions.csv",
                "dataset triage posts.jsonl --decide decisions.csv --kept kept.jsonl",
            )
        ),
        "annotate": Page(
            (
                "annotate mysuite/ 1 --reference right.py",
                "annotate suggest mysuite/ 1 --reference right.py",
            )
        ),
        "annotate page": Page(("annotate mysuite/ 1 --reference right.py",)),
        "annotate add": Page(("annotate add mysuite/ 1 B3=0 'C4=n/a' --reference right.py",)),
        "annotate set": Page(("annotate set mysuite/ 1 2 B3=0 --reference right.py",)),
        "annotate drafts": Page(("annotate drafts mysuite/",)),
        "annotate discard": Page(("annotate discard mysuite/ 1 d1",)),
        "annotate remove": Page(("annotate remove mysuite/ 1 4 --why 'no such data in practice'",)),
        "annotate log": Page(("annotate log mysuite/",)),
        "annotate check": Page(("annotate check mysuite/", "annotate check mysuite/ 1")),
        "annotate suggest": Page(
            (
                "annotate suggest mysuite/ 1 --reference right.py",
                "annotate suggest mysuite/ 1 --reference right.py --accept 2",
            ),
            first="references files base accept decide only model seed show_all as_json",
        ),
        "annotate strength": Page(
            ("annotate strength mysuite/ --submissions solutions.jsonl --mutants",),
            first="files mutants out ids jobs as_json",
        ),
        "hack": Page(
            (
                "hack mysuite/ 1 case.xlsx --submissions results/a --reference right.py",
                "hack sample 1001 case.xlsx --submissions results/mine --dry-run",
            )
        ),
        "cluster": Page(
            (
                "cluster certificates keys/",
                "cluster scheduler --listen tls://0.0.0.0:8786 --certificates keys/",
                "cluster worker tls://head:8786 --certificates keys/",
            )
        ),
        "cluster certificates": Page(("cluster certificates keys/",)),
        "cluster scheduler": Page(
            ("cluster scheduler --listen tls://0.0.0.0:8786 --certificates keys/",)
        ),
        "cluster worker": Page(
            ("cluster worker tls://head:8786 --processes 8 --certificates keys/",)
        ),
        "sandbox": Page(("sandbox build", "sandbox info")),
        "sandbox build": Page(("sandbox build", "sandbox build --office --desktop")),
        "sandbox info": Page(("sandbox info --sandbox docker",)),
        "sandbox attack": Page(("sandbox attack --sandbox bubblewrap",)),
        "doctor": Page(("doctor", "doctor --attack")),
    }
)
"""Command -> its page."""
