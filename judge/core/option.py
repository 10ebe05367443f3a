"""Declares each option once: as a dataclass field whose type annotation holds the details.

No other code is needed for an option::

    jobs: Annotated[int, Option("Cases at a time.", Section.ISOLATION, short="-j", least=1)] = 1

Name, type and default are taken from the field. The command line builds its option, with help text
and section, from the declaration (``judge/cli/options.py``). :func:`check_bounds` and
:meth:`Declaration.read` check values from other sources.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from types import MappingProxyType, NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from judge.errors import UsageError
from judge.files.paths import GivenPath


class Section(enum.StrEnum):
    """The section of the help page that shows an option; sections are shown in this order."""

    FILES = "Files and rules"
    QUESTION = "The question"
    TYPED_ANSWER = "A typed answer"
    ORIGIN = "Source"
    JUDGED = "What is judged"
    ASKING = "Asking the model"
    MODEL = "Model and requests"
    PROMPT = "What a prompt shows"
    PICTURES = "Pictures"
    DESKTOP = "Desktop"
    TOOLS = "Tools"
    COST = "Pace and cost"
    BATCHES = "Batches"
    ELSEWHERE = "Runs from elsewhere"
    ANSWER = "Answer"
    EQUAL = "What counts as equal"
    FORMULAS = "Formulas"
    FAULTS = "Faulty golds"
    BY_HAND = "Verdicts by hand"
    LIMITS = "Limits of programs"
    ISOLATION = "Isolation and workers"
    SHOWN = "What is shown"


@dataclass(frozen=True, slots=True)
class Option:
    """Everything that is declared about an option, apart from its name, type and default.

    Attributes:
        help: the help text; ``{default}`` is replaced by the default.
        section: the section of the help page; None in commands with few options.
        flag: its name on the command line; by default the name of the field, with hyphens.
        short: a second, short name, such as ``-j``.
        least: the smallest number allowed.
        most: the largest number allowed.
        above: whether the number must be greater than ``least``.
        choices: the allowed values; ``module:attribute`` to import them only when they are
            needed. Not needed if the type is a ``Literal``.
        noun: what these values are, for the message about an unknown value.
        size: whether the value is a number of bytes, such as ``512MiB``.
        commas: whether several values are given as one string, separated by commas.
        negatable: whether the flag has an opposite, ``--no-NAME``.
        exists: whether the path has to exist.
        folder: whether the path may be a folder.
        metavar: the placeholder for the value on the help page.
        usual: the effective default, if the field has the default None for "not given".
    """

    help: str
    section: Section | None = None
    flag: str = ""
    short: str = ""
    _: dataclasses.KW_ONLY
    least: float | None = None
    most: float | None = None
    above: bool = False
    choices: tuple[str, ...] | str = ()
    noun: str = ""
    size: bool = False
    commas: bool = False
    negatable: bool = False
    exists: bool = False
    folder: bool = True
    metavar: str | None = None
    usual: object = None


@dataclass(frozen=True, slots=True)
class Declaration:
    """An option as a dataclass declares it.

    Attributes:
        name: the field.
        kind: ``bool``, ``int``, ``float``, ``str``, ``Path``, or ``tuple`` for several strings.
        takes_path: whether a ``Path`` is accepted as well as a string, as for the name of a suite.
        literals: the values of a ``Literal``.
        default: the field's default; None if a default factory makes it.
        option: all other details.
    """

    name: str
    kind: type[Any]
    takes_path: bool
    literals: tuple[str, ...]
    default: Any
    option: Option

    @property
    def usual(self) -> Any:
        """The value that applies if the option is not given."""
        return self.option.usual if self.default is None else self.default

    def choices(self) -> tuple[str, ...]:
        """The allowed values; empty if every value is allowed."""
        choices = self.option.choices
        if isinstance(choices, str):
            choices = tuple(map(str, resolve_name(choices)))
        return choices or self.literals

    def read(self, value: object) -> Any:
        """Converts a value, which may come from an untrusted record, to the type of the field.

        Args:
            value: the value; None for "not given".

        Raises:
            TypeError: it is not of the option's type.
            ValueError: it has that type, but is not an allowed value.
        """
        if value is None:
            return () if self.kind is tuple else None
        if self.kind is tuple:
            if not isinstance(value, list | tuple):
                raise TypeError("not a list of strings")
            return tuple(map(self._text, value))
        if self.kind is Path:
            if not isinstance(value, str | Path):
                raise TypeError("not a path")
            return Path(value)
        if self.kind is bool:
            if not isinstance(value, bool):
                raise TypeError("not true or false")
            return value
        return self._text(value) if self.kind is str else self._number(value)

    def _text(self, value: object) -> str:
        choices = self.choices()
        if choices and value not in choices:
            raise ValueError(f"not one of {', '.join(choices)}")
        if self.takes_path and isinstance(value, Path):
            return str(value)
        if not isinstance(value, str):
            raise TypeError("not text")
        return value

    def _number(self, value: object) -> float:
        is_whole = self.kind is int
        kinds = (int,) if is_whole else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise TypeError("not a whole number" if is_whole else "not a number")
        if not math.isfinite(value):
            raise ValueError("not a finite number")
        least, most = self.option.least, self.option.most
        if least is not None and self.option.above and value <= least:
            raise ValueError(f"not above {least:g}")
        if least is not None and most is not None and not least <= value <= most:
            raise ValueError(f"not from {least} to {most}")
        if least is not None and value < least:
            raise ValueError(f"below {least}")
        return value if is_whole else float(value)


def options_in(holder: type[Any]) -> Mapping[str, Declaration]:
    """Returns the options that a dataclass declares, in the order of its fields."""
    kind: Any = holder
    return _options_in(kind)


@functools.cache
def _options_in(holder: Any) -> Mapping[str, Declaration]:
    hints = get_type_hints(holder, include_extras=True)
    declarations = {}
    for field in dataclasses.fields(holder):
        option = next((arg for arg in get_args(hints[field.name]) if isinstance(arg, Option)), None)
        if option is not None:
            default = None if field.default is dataclasses.MISSING else field.default
            declarations[field.name] = _declaration(field.name, hints[field.name], default, option)
    return MappingProxyType(declarations)


def _declaration(name: str, hint: Any, default: object, option: Option) -> Declaration:
    bare = get_args(hint)[0]
    members = [arg for arg in get_args(bare) or (bare,) if arg is not NoneType]
    if get_origin(bare) in {tuple, Literal}:
        members = [bare]
    literals: tuple[str, ...] = ()
    kind, takes_path = members[0], Path in members
    if kind == GivenPath:
        kind = Path
    elif get_origin(kind) is Literal:
        kind, literals = str, get_args(kind)
    return Declaration(name, get_origin(kind) or kind, takes_path, literals, default, option)


def check_bounds(options: Any) -> None:
    """Checks the numeric options of a dataclass; called in its ``__post_init__``.

    Raises:
        UsageError: a value is below its lower bound, or not a number.
    """
    for name, declaration in options_in(type(options)).items():
        if declaration.option.least is not None:
            check_at_least(name, getattr(options, name), declaration.option.least)


def check_names(checker: str, options: Iterable[str], accepted: Collection[str]) -> None:
    """Checks that a checker supports all of the given options.

    Raises:
        UsageError: it does not support one of them.
    """
    for name in options:
        if name not in accepted:
            raise UsageError(
                f"the checker {checker} has no option {name!r}",
                hint=f"Options: {', '.join(accepted)}.",
            )


def check_at_least(name: str, value: float | None, least: float) -> None:
    """Checks a number against its lower bound; None means "not given" and is accepted.

    Raises:
        UsageError: it is below the bound, or not a number.
    """
    if isinstance(value, str):  # configuration files of other programs may contain this
        raise UsageError(f"{name} is {value[:80]!r}; it must be a number, {least} or more")
    if value is not None and not value >= least:
        raise UsageError(f"{name} is {value}; it must be {least} or more")


def split_ids(values: Iterable[str]) -> tuple[str, ...]:
    """Splits each value at commas; spaces around an id and empty ids are ignored."""
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())
