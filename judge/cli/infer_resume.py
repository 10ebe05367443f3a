"""What ``judge infer`` takes from a run that it continues, and on whose word.

The options that a run remembers stand in its folder, and a folder may come from anybody. Those that
decide whom to ask, with which key, what is read and what is paid are taken silently from runs that
this user started on this machine, and from other folders only when the user says so.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from judge.core.results import InferenceIdentity, RunDocument
from judge.errors import StoreError
from judge.grading.store import RUN_FILE, RunDirectory
from judge.inference.address import check_address, origin_of, public_url
from judge.inference.config import ModelSpec
from judge.inference.started import StartedRuns

REMEMBERED = (
    "model",
    "mode",
    "feedback",
    "dataset",
    "ids",
    "limit",
    "base_url",
    "api_key_env",
    "rounds",
    "rows",
    "content",
    "notes",
    "temperature",
    "top_p",
    "max_tokens",
    "seed",
    "param",
    "samples",
    "prompt",
    "stop",
    "session",
    "price",
    "models",
)
"""Options that make a run what it is; a run that is continued need not be told them again."""

GUARDED = {
    "model": "chat model",
    "base_url": "endpoint",
    "api_key_env": "key",
    "models": "models file",
    "prompt": "prompt",
    "dataset": "suite",
    "param": "parameters",
    "samples": "samples",
    "rounds": "rounds",
    "price": "price",
}
"""Those of which a word is needed, and what they are called: they decide whom to ask, with which
key, what of this machine is read and sent, and what is paid."""

_SHOWN_CHARS = 200


@dataclass(frozen=True, slots=True)
class Resumed:
    """The options of a command, filled up.

    Attributes:
        options: the values, defaults included.
        taken: guarded options on which the folder alone has a word.
        key_said: endpoint and key name were said together, by this user.
        dropped_key: name of a key that was remembered for another endpoint than the one given.
    """

    options: dict[str, Any]
    taken: tuple[str, ...] = ()
    key_said: bool = False
    dropped_key: str | None = None


def resume(context: click.Context, options: dict[str, Any], started: StartedRuns) -> Resumed:
    """Fills the options that were not given with those of the run in ``--out``.

    Args:
        context: knows which options were given.
        options: the values, defaults included.
        started: the runs of this user.

    Raises:
        StoreError: the run's description cannot be read, or holds what no option takes.
    """
    default = click.core.ParameterSource.DEFAULT
    given = {name for name in REMEMBERED if context.get_parameter_source(name) is not default}
    said_together = {"base_url", "api_key_env"} <= given
    out: Path | None = options.get("out")
    before = _options_in(out) if out is not None and out.is_dir() else None
    if out is None or before is None:
        return Resumed(options, key_said=said_together)
    known = started.options_of(out)
    own = known is not None and all(known.get(name) == before.get(name) for name in GUARDED)
    filled, taken = dict(options), []
    for name in REMEMBERED:
        if name in given or name not in before:
            continue
        value = _read_option(context, name, before[name], out)
        if name in GUARDED and not own and _says_something(name, value, options.get(name)):
            taken.append(name)
        filled[name] = value
    dropped = None
    moved = "base_url" in given and not _same_server(options["base_url"], before.get("base_url"))
    if moved and "api_key_env" not in given:
        # A key belongs to its endpoint, and this is another one.
        dropped, filled["api_key_env"] = filled["api_key_env"], None
        taken = [name for name in taken if name != "api_key_env"]
    remembered_together = own and "api_key_env" not in given and before.get("base_url") is not None
    return Resumed(filled, tuple(taken), said_together or remembered_together, dropped)


def ask_for_word(out: Path, resumed: Resumed, spec: ModelSpec | None) -> None:
    """Shows what a folder wants, and asks whether to go on, unless ``--trust-folder`` says so.

    Args:
        out: the results directory.
        resumed: what was taken from it.
        spec: the model that would be asked; None where none is.

    Raises:
        StoreError: nobody says yes.
    """
    for line in _lines(out, resumed, spec):
        click.echo(line, err=True)
    if resumed.options.get("trust_folder"):
        return
    if sys.stdin.isatty() and sys.stderr.isatty():
        if click.confirm("Go on with these?", default=False, err=True):
            return
        raise StoreError(f"{out}: not continued")
    raise StoreError(
        f"{out}: was not started by you on this machine, and its {RUN_FILE} alone says whom to ask "
        "or what to read",
        hint="Give the options yourself, or --trust-folder if you know where the folder is from.",
    )


def _lines(out: Path, resumed: Resumed, spec: ModelSpec | None) -> list[str]:
    lines = [f"{out} was not started by you on this machine. Its {RUN_FILE} says:"]
    values = {name: resumed.options[name] for name in resumed.taken}
    if spec is not None:
        # As it will be: an alias or a models file may say more than the options do.
        values |= {
            "model": spec.name
            if spec.model in {None, spec.name}
            else f"{spec.name} = {spec.model}",
            "base_url": public_url(spec.base_url),
            "api_key_env": f"the one in {spec.key_env}" if spec.key_env else "none is sent",
            "param": {**spec.params, **_pairs(resumed.options.get("param"))} or None,
        }
    for name, title in GUARDED.items():
        if values.get(name) is not None:
            shown = str(values[name])
            lines.append(f"  {title:<12} {shown[:_SHOWN_CHARS]}")
    return lines


def _pairs(param: Any) -> dict[str, str]:
    return dict(str(pair).partition("=")[::2] for pair in param or ())


def _options_in(out: Path) -> Mapping[str, Any] | None:
    run = RunDirectory(out).read_run() or RunDocument()
    return (run.get("inference") or InferenceIdentity()).get("options")


def _read_option(context: click.Context, name: str, value: Any, out: Path) -> Any:
    """A value of the run's description, as the command line would have read it."""
    parameter = next(each for each in context.command.params if each.name == name)
    scalars = value if parameter.multiple and isinstance(value, list) else [value]
    try:
        if not all(each is None or type(each) in {str, int, float, bool} for each in scalars):
            raise click.BadParameter("not a value of an option")
        return parameter.type_cast_value(context, value)
    except (click.UsageError, TypeError, ValueError, AttributeError, OverflowError) as error:
        reason = error.message if isinstance(error, click.UsageError) else str(error)
        raise StoreError(
            f"{out / RUN_FILE}: inference.options.{name} is {str(value)[:80]!r}: {reason}",
            hint="Something else than the judge wrote it. Give another --out.",
        ) from error


def _says_something(name: str, value: Any, default: Any) -> bool:
    """Whether a remembered value is anything but what holds without it."""
    return value != default and not (name == "dataset" and value == "sample")


def _same_server(url: str, other: Any) -> bool:
    if not isinstance(other, str):
        return False
    return origin_of(check_address(url)) == origin_of(check_address(other))
