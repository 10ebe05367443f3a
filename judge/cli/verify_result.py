"""``judge verify-result``: checks a signed result of a server, without the server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from judge.cli.help import HelpCommand
from judge.cli.options import json_option, option
from judge.errors import JudgeError, UsageError

if TYPE_CHECKING:
    from judge.serve.boards.results import Verification


@click.command(
    "verify-result",
    cls=HelpCommand,
    examples=(
        "verify-result result.json --key judge-keys.json",
        "verify-result result.json --dataset mysuite/ --outputs results/",
    ),
)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@option(
    "--key",
    "keys",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Keys of the server. [judge-keys.json next to FILE]",
)
@option("--dataset", metavar="SUITE", help="The suite, for level 3.")
@option(
    "--corrections",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Corrections of the suite that the server judged with.",
)
@option(
    "--outputs",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The judged workbooks under any names, for levels 3 and 4.",
)
@json_option("what holds")
def verify_result(
    file: Path,
    keys: Path | None,
    dataset: str | None,
    corrections: Path | None,
    outputs: Path | None,
    *,
    as_json: bool,
) -> None:
    """Check the signed result FILE of a judge server, offline.

    Levels: 1 a key of the server signed it; 2 the scores follow from the verdicts; 3 suite and
    outputs are those that were judged; 4 judging the outputs again gives the same verdicts. Prints
    the highest level that holds, and exits with 1 if a level is broken. A signed version of a board
    can only reach level 1.
    """
    verification = _verified(file, keys, dataset, corrections, outputs)
    if as_json:
        document = {
            "level": verification.level,
            "broken": verification.broken,
            "why": verification.why,
            "key": verification.key_id,
            "result": dict(verification.document),
        }
        click.echo(json.dumps(document, ensure_ascii=False))
    else:
        _print(verification)
    if verification.broken is not None:
        raise JudgeError(f"{file}: level {verification.broken} is broken: {verification.why}")


def _verified(
    file: Path,
    keys: Path | None,
    dataset: str | None,
    corrections: Path | None,
    outputs: Path | None,
) -> Verification:
    if outputs is not None and dataset is None:
        raise UsageError("--outputs needs a suite to judge them by", hint="Add --dataset SUITE.")
    try:
        from judge.serve.boards.results import verify_result as verified  # noqa: PLC0415  an extra
    except ModuleNotFoundError as error:
        raise UsageError(
            f"signatures need a package that is missing ({error.name})",
            hint="pip install 'sheetjudge[serve]'",
        ) from error
    return verified(file, keys=keys, dataset=dataset, corrections=corrections, outputs=outputs)


def _print(verification: Verification) -> None:
    from judge.serve.boards.results import MEANINGS  # noqa: PLC0415  an extra

    for level, meaning in MEANINGS.items():
        if level <= verification.level:
            click.echo(f"level {level} holds: {meaning}")
    if verification.broken is None and verification.level < max(MEANINGS):
        click.echo(f"level {verification.level + 1} was not checked: {verification.why}")
