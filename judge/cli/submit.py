"""``judge submit`` and ``judge verify-result``: what a team does with an online judge.

``judge submit`` submits solutions and shows the outcome; ``judge verify-result`` checks a signed
result, without the server.
"""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge.cli.help import HelpCommand
from judge.cli.options import json_option, option
from judge.console import visible
from judge.core.option import Section
from judge.errors import IncompleteRunError, JudgeError, UsageError, how_to_install

if TYPE_CHECKING:
    from judge.serve.boards.results import Verification
    from judge.serve.client import Client

_ID = re.compile(r"sub_[0-9A-Z]{26}", re.ASCII)


@click.command(
    cls=HelpCommand,
    examples=(
        "submit solutions.jsonl --to http://127.0.0.1:8585 --phase spring --wait",
        "submit program.py --to http://127.0.0.1:8585 --phase spring --task 1001",
        "submit --to https://judge.example.org --status sub_01J…",
    ),
    first="to phase wait task status",
)
@click.argument("solutions", type=click.Path(exists=True, path_type=Path), required=False)
@option(
    "--to",
    required=True,
    metavar="URL",
    envvar="JUDGE_SERVER",
    help="The server.",
    section=Section.FILES,
)
@option("--phase", help="Phase to submit to.", section=Section.FILES)
@option("--task", metavar="ID", help="Task that a single program solves.", section=Section.FILES)
@option("--team", metavar="ACCOUNT", help="Which of your teams submits.", section=Section.ORIGIN)
@option(
    "--system",
    default="",
    help="Model that made the solutions, for boards.",
    section=Section.ORIGIN,
)
@option("--model", default="", help="The chat model.", section=Section.ORIGIN)
@option(
    "--setting", default="", help="Setting in which the model was asked.", section=Section.ORIGIN
)
@option("--note", default="", help="Anything else.", section=Section.ORIGIN)
@option(
    "--again",
    is_flag=True,
    help="Submit the same content again, as a new submission.",
    section=Section.FILES,
)
@option("--wait", is_flag=True, help="Wait for the result.", section=Section.SHOWN)
@option("--status", metavar="ID", help="Show a submission.", section=Section.SHOWN)
@option("--cancel", metavar="ID", help="End its judging.", section=Section.SHOWN)
@option("--result", metavar="ID", help="Print its signed result.", section=Section.SHOWN)
@option(
    "--token-file",
    section=Section.FILES,
    type=click.Path(dir_okay=False, path_type=Path),
    help="File with the token, which only you can read [JUDGE_TOKEN].",
)
@json_option("the server's answer")
def submit(
    solutions: Path | None,
    to: str,
    phase: str | None,
    again: bool,
    wait: bool,
    status: str | None,
    cancel: str | None,
    result: str | None,
    token_file: Path | None,
    as_json: bool,
    **claims: Any,
) -> None:
    """Submit SOLUTIONS to an online judge.

    SOLUTIONS is a .jsonl of solutions or replies, one program (.py, with --task), a .zip of
    finished workbooks or a folder of them. The same content sent twice is one submission.

    With --wait, exits with 0 once it is judged, and with 11 if the judge failed.
    """
    about = [value for value in (status, cancel, result) if value is not None]
    if len(about) + (solutions is not None) != 1:
        raise UsageError("give SOLUTIONS, or one of --status, --cancel and --result")
    # `--help` needs none of these.
    from judge.serve.client import Client, SubmissionContent, read_token  # noqa: PLC0415

    notice = lambda text: click.echo(visible(text), err=True)  # noqa: E731
    with contextlib.closing(Client(to, read_token(token_file), on_notice=notice)) as client:
        if result is not None:
            click.echo(client.result(_checked(result)), nl=False)
            return
        if cancel is not None:
            _show(client.cancel(_checked(cancel)), as_json=as_json)
            return
        if solutions is not None:
            if phase is None:
                raise UsageError("a submission needs --phase PHASE, the phase to submit to")
            stated = {name: text for name, text in claims.items() if text}
            view = client.submit(SubmissionContent(solutions, phase, stated, again=again))
        else:
            view = client.status(_checked(str(status)))
        if wait:
            click.echo(f"{to.rstrip('/')}/submissions/{view['id']}", err=True)
            view = _wait(client, view["id"])
        _show(view, as_json=as_json)
    if wait and view["state"] != "done":
        raise IncompleteRunError(f"{view['id']} is {view['state']}")


def _wait(client: Client, submission: str) -> dict[str, Any]:
    def tell(view: dict[str, Any]) -> None:
        click.echo(f"{submission}: {view['state']}", err=True)

    return client.wait(submission, on_change=tell)


def _show(view: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(view, ensure_ascii=False))
        return
    click.echo(f"{view['id']}: {view['state']}")
    if "position" in view:
        ahead = view["ahead_cases"]
        click.echo(f"position {view['position']} in the queue, {ahead} cases ahead of it")
    for name, value in (view.get("scores") or {}).items():
        click.echo(f"{visible(str(name))}: {visible(_text(value))}")
    reason = (view.get("judging") or {}).get("reason")
    if reason:
        click.echo(visible(str(reason)))


def _text(value: object) -> str:
    """A score in per cent, counts of verdicts in words, anything else as JSON."""
    if isinstance(value, float):
        return f"{100 * value:.2f} %"
    if isinstance(value, dict) and all(isinstance(count, int) for count in value.values()):
        return ", ".join(f"{name} {count}" for name, count in value.items())
    return json.dumps(value, ensure_ascii=False)


def _checked(submission: str) -> str:
    if _ID.fullmatch(submission) is None:
        raise UsageError(f"{submission[:80]!r} is not the id of a submission")
    return submission


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
            hint=how_to_install("serve"),
        ) from error
    return verified(file, keys=keys, dataset=dataset, corrections=corrections, outputs=outputs)


def _print(verification: Verification) -> None:
    from judge.serve.boards.results import MEANINGS  # noqa: PLC0415  an extra

    for level, meaning in MEANINGS.items():
        if level <= verification.level:
            click.echo(f"level {level} holds: {meaning}")
    if verification.broken is None and verification.level < max(MEANINGS):
        click.echo(f"level {verification.level + 1} was not checked: {verification.why}")
