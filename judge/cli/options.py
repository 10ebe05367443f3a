"""Makes the options of commands, and reads their values.

:func:`options_of` turns the options that a dataclass declares (:mod:`judge.core.option`) into
options of a command. Options that only commands have are declared here or at the command, with
:func:`option`.
"""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from judge.cli.help import OneOf, SectionedOption
from judge.compare.cells.options import CheckOptions
from judge.core.limits import GIB, MIB, Limits
from judge.core.option import Declaration, Section, options_in, split_ids
from judge.errors import UsageError, did_you_mean
from judge.files.documents import written
from judge.grading.options import GradingOptions

_Command = TypeVar("_Command", bound=Callable[..., Any])

_LIMIT_FIELDS = {
    declared.option.flag.replace("-", "_") if declared.option.size else name: name
    for name, declared in options_in(Limits).items()
}
"""Name of a limit in a YAML file -> field of :class:`Limits`; field names are accepted as well."""

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9}
_UNITS |= {"k": 2**10, "kib": 2**10, "m": 2**20, "mib": 2**20, "g": 2**30, "gib": 2**30}


def parse_bytes(text: str) -> int:
    """Reads an amount of bytes such as ``512MiB``, ``2g`` or ``1000000``.

    Raises:
        UsageError: the text is not an amount of bytes.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", text.lower())
    if match is None or match[2] not in _UNITS:
        raise UsageError(f"{text!r} is not an amount of bytes; write for instance 512MiB or 2GiB")
    return int(float(match[1]) * _UNITS[match[2]])


class _Bytes(click.ParamType[int]):
    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            return parse_bytes(str(value))
        except UsageError as error:
            self.fail(error.message, param, ctx)


class _Names(click.ParamType[tuple[str, ...]]):
    """Several names, separated by commas; case is ignored."""

    name = "names"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        del param, ctx
        return tuple(value.lower().split(",")) if isinstance(value, str) else tuple(value)


# -- options from their declarations ---------------------------------------------------------------


def together(*decorators: Callable[[Any], Any]) -> Callable[[_Command], _Command]:
    """Combines several options into one decorator."""

    def add(command: _Command) -> _Command:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return add


def option(
    *names: str, section: Section | None = None, **attributes: Any
) -> Callable[[_Command], _Command]:
    """Adds an option that no dataclass declares.

    Args:
        names: as for ``click.option``.
        section: the section of the help page that shows it, if there are many options.
        attributes: as for ``click.option``.
    """
    return click.option(*names, cls=SectionedOption, section=section, **attributes)


def options_of(
    holder: type[Any],
    names: str = "",
    *,
    beyond: type[Any] | None = None,
    unset: bool = False,
    **helps: str,
) -> Callable[[_Command], _Command]:
    """Adds the options that a dataclass declares to a command.

    Args:
        holder: the dataclass.
        names: only these fields, separated by spaces; all if it is empty.
        beyond: a base class, whose fields are left out.
        unset: whether options that are not on the command line get None instead of their default.
        helps: name of a field -> the help text that replaces the declared one in this command.
    """
    declared = options_in(holder)
    left_out = () if beyond is None else options_in(beyond)
    chosen = names.split() or [name for name in declared if name not in left_out]
    return together(*(_option_of(declared[name], helps.get(name), unset=unset) for name in chosen))


def _option_of(
    declared: Declaration, text: str | None, *, unset: bool
) -> Callable[[_Command], _Command]:
    spec = declared.option
    flag = spec.flag or declared.name.replace("_", "-")
    text = spec.help if text is None else text
    default = None if unset else declared.usual
    attributes: dict[str, Any] = {"help": text.replace("{default}", _written(declared.usual))}
    if declared.kind is bool:
        attributes |= {"is_flag": True, "default": default}
    else:
        attributes |= {"type": _type_of(declared), "metavar": spec.metavar}
        attributes["multiple"] = declared.kind is tuple and not spec.commas
        if default not in {None, ()}:
            attributes |= {"default": default, "show_default": "{default}" not in text}
    names = [f"--{flag}/--no-{flag}" if spec.negatable else f"--{flag}"]
    names += [spec.short] if spec.short else []
    return option(*names, declared.name, section=spec.section, **attributes)


def _type_of(declared: Declaration) -> click.ParamType[Any]:
    spec = declared.option
    if spec.size:
        return _Bytes()
    if spec.commas:
        return _Names()
    if spec.choices or declared.literals:
        return OneOf(declared.choices, spec.noun)
    if declared.kind is Path:
        return click.Path(exists=spec.exists, dir_okay=spec.folder, path_type=Path)
    if declared.kind is int:
        return (
            click.INT
            if spec.least is None
            else click.IntRange(_whole(spec.least), _whole(spec.most))
        )
    if declared.kind is float:
        if spec.least is None:
            return click.FLOAT
        return click.FloatRange(spec.least, spec.most, min_open=spec.above)
    return click.STRING


def _whole(bound: float | None) -> int | None:
    return None if bound is None else int(bound)


def _written(value: object) -> str:
    """Returns a default value as the help text of an option shows it."""
    if isinstance(value, int) and value and value % MIB == 0:
        return f"{value // GIB}GiB" if value % GIB == 0 else f"{value // MIB}MiB"
    return f"{value:g}" if isinstance(value, float) else str(value)


def given_options(context: click.Context) -> set[str]:
    """Returns the names of the options that are given on the command line, not by default."""
    default = click.core.ParameterSource.DEFAULT
    return {name for name in context.params if context.get_parameter_source(name) is not default}


# -- groups of options -----------------------------------------------------------------------------

grading_options = options_of(GradingOptions)
"""Adds the options for what counts as equal, and for the engine and the sandbox."""

sandbox_option = options_of(GradingOptions, "sandbox")

checker_options = options_of(CheckOptions, unset=True)
"""Adds the options of the comparison; they take precedence over those that a task sets."""


limit_options = together(
    options_of(Limits, unset=True),
    option(
        "--limits",
        "limits_file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        section=Section.LIMITS,
        help=f"YAML file with any of: {', '.join(_LIMIT_FIELDS)}.",
    ),
)
"""Adds the options that limit the resources of a run."""

corrections_options = together(
    option(
        "--corrections",
        is_flag=True,
        section=Section.FAULTS,
        help="Correct the known faults of published suites.",
    ),
    option(
        "--corrections-from",
        type=click.Path(exists=True, path_type=Path),
        metavar="FILE",
        section=Section.FAULTS,
        help="Correct the faults that this file, or each file of this folder, names.",
    ),
    option(
        "--certified",
        is_flag=True,
        section=Section.FAULTS,
        help="Apply the corrections of the certified tasks; leave out faulty and ambiguous tasks.",
    ),
)
"""Adds the options that correct known faults of published suites."""

bootstrap_options = together(
    option("--seed", type=int, help="Seed of the bootstrap. [20240624]"),
    option("--resamples", type=click.IntRange(min=100), help="Resamples of the bootstrap. [10000]"),
)

page_options = together(
    option(
        "--port",
        type=click.IntRange(0, 65535),
        default=0,
        section=Section.SHOWN,
        help="Port [any free one].",
    ),
    option("--no-browser", is_flag=True, section=Section.SHOWN, help="Only print the address."),
)
"""Adds the options of commands that serve a page."""


def by_option(section: Section = Section.BY_HAND) -> Callable[[_Command], _Command]:
    """Adds ``--by``, the name of the person who runs the command."""
    return option(
        "--by",
        metavar="NAME",
        section=section,
        help="Who you are, for the record [JUDGE_AUTHOR, or the name of your account].",
    )


def json_option(content: str = "") -> Callable[[_Command], _Command]:
    """Adds ``--json``.

    Args:
        content: what is printed as JSON, for the help.
    """
    return option(
        "--json",
        "as_json",
        is_flag=True,
        section=Section.SHOWN,
        help=f"Print {content} as JSON on stdout." if content else "Print JSON on stdout.",
    )


# -- their values ----------------------------------------------------------------------------------


def judging_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Converts options of a command to fields of :class:`judge.JudgingOptions` and its subclasses.

    Raises:
        UsageError: the YAML file of limits holds an unknown field or a value that is not a number.
    """
    fields = dict(options)
    fields["checker"] = read_checker_options(fields)
    fields["corrections"] = read_corrections(fields)
    if "ids" in fields:
        fields["ids"] = split_ids(fields["ids"])
    if "limits_file" in fields:
        fields["limits"] = read_limits(fields)
    return {name: value for name, value in fields.items() if value is not None}


def who(by: str | None) -> str:
    """Returns the user's name, for the record: ``by``, JUDGE_AUTHOR, or the name of the account.

    Raises:
        UsageError: none of them gives a name.
    """
    name = " ".join((by or os.environ.get("JUDGE_AUTHOR") or _account()).split())
    if not name:
        raise UsageError("who are you? Give --by NAME or set JUDGE_AUTHOR")
    return name


def _account() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # the account has no name, as in some containers
        return ""


def read_corrections(options: dict[str, Any]) -> Path | None:
    """Removes the options of :func:`corrections_options`, and returns the corrections to apply."""
    own, certified = options.pop("corrections"), options.pop("certified")
    folder: Path | None = options.pop("corrections_from")
    if certified:
        if own or folder is not None:
            raise UsageError(
                "--certified already includes corrections",
                hint="Leave out --corrections and --corrections-from.",
            )
        from judge.suites.certified import certified_folder  # noqa: PLC0415 - seldom needed

        return certified_folder()
    if folder is not None or not own:
        return folder
    from judge.suites.corrections import known_faults_folder  # noqa: PLC0415 - seldom needed

    return known_faults_folder()


def read_checker_options(options: dict[str, Any]) -> dict[str, object]:
    """Removes the options of :func:`checker_options` from ``options`` and returns those given."""
    values = {name: options.pop(name) for name in options_in(CheckOptions)}
    return {name: value for name, value in values.items() if value not in {None, ()}}


def read_limits(options: dict[str, Any]) -> Limits:
    """Removes the limit options and returns the limits; options override the YAML file.

    Raises:
        UsageError: the YAML file holds an unknown field or a value that is not a number.
    """
    limits = Limits()
    limits_file: Path | None = options.pop("limits_file", None)
    if limits_file is not None:
        limits = replace(limits, **_limits_of_yaml(limits_file))
    names = options_in(Limits)
    changes = {name: value for name in names if (value := options.pop(name, None)) is not None}
    return replace(limits, **changes)


def _limits_of_yaml(path: Path) -> dict[str, Any]:
    from judge.files.yaml_documents import read_yaml  # noqa: PLC0415 - seldom needed

    document = read_yaml(path, UsageError)
    if isinstance(document, dict) and isinstance(document.get("limits"), dict):
        document = document["limits"]
    if not isinstance(document, dict):
        raise UsageError(f"{path}: expected fields such as `cpu_s: 60`")
    values: dict[str, Any] = {}
    for name, value in document.items():
        field_name = _LIMIT_FIELDS.get(str(name), str(name))
        if field_name not in _LIMIT_FIELDS.values():
            nearest = did_you_mean(str(name), _LIMIT_FIELDS, before=" ")
            raise UsageError(
                f"{path}: unknown limit {name}; known: {', '.join(_LIMIT_FIELDS)}.{nearest}"
            )
        if field_name.endswith("_bytes"):
            values[field_name] = parse_bytes(str(value))
        elif isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise UsageError(f"{path}: {name} must be a number above 0, but is {written(value)}")
        else:
            values[field_name] = int(value) if field_name == "processes" else float(value)
    return values
