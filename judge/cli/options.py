"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from judge.cli.help import OneOf
from judge.core.limits import Limits
from judge.errors import UsageError, did_you_mean
from judge.files.documents import written
from judge.files.yaml_documents import read_yaml

_Command = TypeVar("_Command", bound=Callable[..., Any])

_LIMIT_FIELDS = {
    "cpu_s": "cpu_s",
    "wall_s": "wall_s",
    "memory": "memory_bytes",
    "processes": "processes",
    "output_size": "output_bytes",
}
"""Name of a limit in a YAML file -> its field of :class:`Limits`, whose names are taken as well."""

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


def limit_options(command: _Command) -> _Command:
    """Adds the options that bound a run."""
    options = [
        click.option(
            "--cpu", "cpu_s", type=click.FloatRange(min=0.1), help="CPU seconds of a program [60]."
        ),
        click.option(
            "--wall", "wall_s", type=click.FloatRange(min=0.1), help="Seconds of a program [90]."
        ),
        click.option("--memory", "memory_bytes", type=_Bytes(), help="Memory of a program [2GiB]."),
        click.option(
            "--processes", type=click.IntRange(min=1), help="Processes of a program [64]."
        ),
        click.option(
            "--output-size", "output_bytes", type=_Bytes(), help="Size of what it writes [64MiB]."
        ),
        click.option(
            "--limits",
            "limits_file",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help=f"YAML file with any of: {', '.join(_LIMIT_FIELDS)}.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def sandbox_option(command: _Command) -> _Command:
    """Adds ``--sandbox``."""
    return click.option(
        "--sandbox",
        type=OneOf(["auto", "docker", "bubblewrap", "sealed-container"]),
        default="auto",
        show_default=True,
        help="What isolates programs.",
    )(command)


def bootstrap_options(command: _Command) -> _Command:
    """Adds ``--seed`` and ``--resamples``."""
    seed = click.option("--seed", type=int, help="Seed of the bootstrap. [20240624]")
    resamples = click.option(
        "--resamples", type=click.IntRange(min=100), help="Of the bootstrap. [10000]"
    )
    return seed(resamples(command))


def page_options(command: _Command) -> _Command:
    """Adds the options of commands that serve a page."""
    port = click.option(
        "--port", type=click.IntRange(0, 65535), default=0, help="Port [any free one]."
    )
    no_browser = click.option("--no-browser", is_flag=True, help="Only print the address.")
    return port(no_browser(command))


def cluster_options(command: _Command) -> _Command:
    """Adds the options that have workers judge in place of threads."""
    options = [
        click.option(
            "--cluster",
            metavar="CLUSTER",
            help="Judge on workers: local:N, tcp://…, tls://… or FILE.yaml (docs/scaling.md).",
        ),
        click.option(
            "--insecure-cluster",
            is_flag=True,
            help="Allow a cluster on other machines without TLS.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def model_options(command: _Command) -> _Command:
    """Adds the options that say which chat model is asked, where, and how."""
    options = [
        click.option(
            "--model", "-m", metavar="NAME", help="Alias from models.yaml, or a raw name."
        ),
        click.option("--base-url", metavar="URL", help="OpenAI-compatible endpoint, up to /v1."),
        click.option(
            "--api-key-env", metavar="NAME", help="Environment variable that holds the key."
        ),
        click.option(
            "--models",
            type=click.Path(path_type=Path),
            help="More aliases: a file such as models.yaml.",
        ),
        click.option("--max-tokens", type=click.IntRange(min=1), help="Longest reply, in tokens."),
        click.option(
            "--param", multiple=True, metavar="NAME=JSON", help="Any other request parameter."
        ),
        click.option(
            "--timeout",
            type=click.FloatRange(min=0.1),
            default=600.0,
            show_default=True,
            help="Seconds for one call.",
        ),
        click.option(
            "--retries",
            type=click.IntRange(min=0),
            default=5,
            show_default=True,
            help="Attempts beyond the first of a call.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def comparison_options(command: _Command) -> _Command:
    """Adds the options that decide what counts as equal."""
    options = [
        click.option(
            "--profile",
            type=OneOf(["standard", "official", "strict", "ssb2", "ssb2-official"]),
            default="standard",
            show_default=True,
            help="What counts as equal.",
        ),
        click.option(
            "--style",
            "style",
            multiple=True,
            metavar="ATTRIBUTE",
            help="Also compare a style attribute (fill, font_color …); may be repeated.",
        ),
        click.option(
            "--recalc",
            type=OneOf(["auto", "never", "always"]),
            default="auto",
            show_default=True,
            help="When to compute formulas of the answer range.",
        ),
        click.option(
            "--engine",
            default="auto",
            show_default=True,
            callback=_known_engine,
            help="Calculation engine.",
        ),
        click.option(
            "--lenient-names",
            is_flag=True,
            help="Compute newer functions written without their _xlfn. prefix (#NAME? in Excel).",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def _known_engine(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """Refuses an engine that does not exist, even if nothing would have to be computed."""
    del ctx, param
    if value != "auto":
        from judge.recalc.engines import ENGINE_NAMES  # noqa: PLC0415 - seldom needed

        if value not in ENGINE_NAMES:
            raise click.BadParameter(
                f"{value!r} is not a calculation engine; choose auto, {', '.join(ENGINE_NAMES)}."
                + did_you_mean(value, ENGINE_NAMES, before=" ")
            )
    return value


def corrections_options(command: _Command) -> _Command:
    """Adds the options that correct known faults of published suites."""
    options = [
        click.option(
            "--corrections", is_flag=True, help="Correct the known faults of published suites."
        ),
        click.option(
            "--corrections-from",
            type=click.Path(exists=True, path_type=Path),
            metavar="FILE",
            help="Correct the faults that this file, or each file of this folder, names.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def read_corrections(options: dict[str, Any]) -> Path | None:
    """Takes the options of :func:`corrections_options` out of a command's options."""
    wanted = options.pop("corrections")
    given: Path | None = options.pop("corrections_from")
    if given is not None or not wanted:
        return given
    from judge.suites.corrections import known_faults_folder  # noqa: PLC0415 - seldom needed

    return known_faults_folder()


def suspects_option(command: _Command) -> _Command:
    """Adds ``--suspects``: golds that may be at fault."""
    return click.option(
        "--suspects",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Suspect golds (`judge verify --audit`): also give the scores without them.",
    )(command)


def by_option(command: _Command) -> _Command:
    """Adds ``--by``: who does it."""
    return click.option(
        "--by",
        metavar="NAME",
        help="Who you are, for the record [JUDGE_AUTHOR, or the name of your account].",
    )(command)


def who(by: str | None) -> str:
    """The name for the record.

    Raises:
        UsageError: no name is known.
    """
    name = " ".join((by or os.environ.get("JUDGE_AUTHOR") or _account()).split())
    if not name:
        raise UsageError("who are you? Give --by NAME or set JUDGE_AUTHOR")
    return name


def _account() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # an account without a name, as in some containers
        return ""


def checker_options(command: _Command) -> _Command:
    """Adds the options of the comparison that a task can set too; the command's override them."""
    options = [
        click.option(
            "--tolerance", type=click.FloatRange(min=0), help="Numbers may differ by this."
        ),
        click.option(
            "--relative-tolerance", type=click.FloatRange(min=0), help="The same as a share."
        ),
        click.option(
            "--ignore-case/--no-ignore-case",
            default=None,
            help="Upper and lower case are the same.",
        ),
        click.option(
            "--ignore-whitespace/--no-ignore-whitespace",
            default=None,
            help="White space is the same.",
        ),
        click.option(
            "--unordered-rows/--no-unordered-rows",
            default=None,
            help="Rows may be in any order.",
        ),
        click.option(
            "--ignore-extra/--no-ignore-extra",
            default=None,
            help="Let values pass where the gold is blank.",
        ),
        click.option(
            "--ignore", multiple=True, metavar="RANGE", help="Cells that do not count; repeatable."
        ),
        click.option(
            "--formulas/--no-formulas",
            default=None,
            help="Compare formulas instead of values.",
        ),
        click.option(
            "--accept",
            type=OneOf(["cells", "groups"]),
            help="When an output is right: if every cell agrees, or by the cells to change and "
            "those to keep (SpreadsheetBench 2).",
        ),
        click.option(
            "--untouched/--no-untouched",
            default=None,
            help="Cells outside the answer range must be as in the input workbook.",
        ),
        click.option(
            "--keep",
            type=OneOf(["off", "note", "fail"]),
            help="List, or reject, what the input had, the gold kept and the output lost: "
            "rules, charts, tables, names, comments, sheets, formulas.",
        ),
        click.option(
            "--formula-asked",
            type=OneOf(["off", "note", "fail"]),
            help="List, or reject, constants where the question asks for a formula.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


_CHECKER_OPTIONS = (
    "tolerance",
    "relative_tolerance",
    "ignore_case",
    "ignore_whitespace",
    "unordered_rows",
    "ignore_extra",
    "ignore",
    "formulas",
    "accept",
    "untouched",
    "keep",
    "formula_asked",
)


def read_checker_options(options: dict[str, Any]) -> dict[str, object]:
    """Takes the options of :func:`checker_options` out of a command's options."""
    given = {name: options.pop(name) for name in _CHECKER_OPTIONS}
    return {name: value for name, value in given.items() if value not in {None, ()}}


def read_limits(options: dict[str, Any]) -> Limits:
    """Takes the limit options out of a command's options; options win over the YAML file.

    Raises:
        UsageError: the YAML file holds an unknown field or a value that is not a number.
    """
    limits = Limits()
    limits_file: Path | None = options.pop("limits_file", None)
    if limits_file is not None:
        limits = replace(limits, **_limits_of_yaml(limits_file))
    names = ["cpu_s", "wall_s", "memory_bytes", "processes", "output_bytes"]
    given = {name: value for name in names if (value := options.pop(name, None)) is not None}
    return replace(limits, **given)


def _limits_of_yaml(path: Path) -> dict[str, Any]:
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
            raise UsageError(f"{path}: {name} must be a number above 0, and is {written(value)}")
        else:
            values[field_name] = int(value) if field_name == "processes" else float(value)
    return values
