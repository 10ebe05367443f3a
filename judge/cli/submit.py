"""``judge submit``: submits solutions to an online judge, and shows the outcome."""

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
from judge.errors import IncompleteRunError, UsageError

if TYPE_CHECKING:
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
