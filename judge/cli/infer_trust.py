"""A run that somebody else started: its options are shown, and the user confirms them."""

from __future__ import annotations

import sys
from dataclasses import replace

import click

from judge.api.infer_options import InferOptions
from judge.api.inferring import find_spec
from judge.api.resuming import GUARDED, Resumed
from judge.errors import StoreError
from judge.grading.store import RUN_FILE
from judge.inference.config import public_url

_SHOWN_CHARS = 200


def ask_for_word(resumed: Resumed, *, asks_model: bool) -> Resumed:
    """Shows the options of a folder and asks to continue, unless ``--trust-folder`` is given.

    Args:
        resumed: the options, with what was taken from the folder.
        asks_model: whether a chat model will be asked.

    Returns:
        The options, confirmed by the user.

    Raises:
        StoreError: the options are not confirmed.
        UsageError: a key belongs to an endpoint other than the folder's.
    """
    for line in _lines(resumed, asks_model=asks_model):
        click.echo(line, err=True)
    if not resumed.options.trust_folder and sys.stdin.isatty() and sys.stderr.isatty():
        if not click.confirm("Continue with these?", default=False, err=True):
            raise StoreError(f"{resumed.options.out}: not continued")
        return replace(resumed, options=replace(resumed.options, trust_folder=True))
    resumed.check_trusted()
    return resumed


def _lines(resumed: Resumed, *, asks_model: bool) -> list[str]:
    options = resumed.options
    values = {name: getattr(options, name) for name in resumed.taken}
    if asks_model and options.model:
        # As it will be: an alias or a models file may say more than the options do.
        spec = find_spec(options, key_said=False)
        values |= {
            "model": spec.name
            if spec.model in {None, spec.name}
            else f"{spec.name} = {spec.model}",
            "base_url": public_url(spec.base_url),
            "api_key_env": f"the one in {spec.key_env}" if spec.key_env else "none is sent",
            "param": {**spec.params, **_pairs(options)} or None,
        }
    lines = [f"{options.out} was not started by you on this machine. Its {RUN_FILE} says:"]
    for name, title in GUARDED.items():
        if values.get(name) is not None:
            lines.append(f"  {title:<12} {str(values[name])[:_SHOWN_CHARS]}")
    return lines


def _pairs(options: InferOptions) -> dict[str, str]:
    return dict(pair.partition("=")[::2] for pair in options.param)
