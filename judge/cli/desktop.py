"""``judge desktop TASK``: lets a person, or a step list, solve a task at a desktop."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from judge import api
from judge.cli.help import HelpCommand
from judge.cli.options import option, page_options, sandbox_option
from judge.cli.view import serve_page
from judge.console import make_console, styled

if TYPE_CHECKING:
    from judge.desktop.steps import PlayedStep
    from judge.sessions.live import Result


@click.command(
    cls=HelpCommand, examples=("desktop profit --dataset sample-desktop --out results/me",)
)
@click.argument("task")
@option(
    "--dataset",
    default="sample-desktop",
    show_default=True,
    metavar="SUITE",
    help="Suite of the task.",
)
@option("--case", type=click.IntRange(min=1), help="Case to solve [the first].")
@option(
    "--out", type=click.Path(path_type=Path), metavar="RUN", help="Keep the episode in this run."
)
@option(
    "--steps",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Play a step list (docs/desktop-people.md) in place of a person.",
)
@sandbox_option
@page_options
def desktop(
    task: str,
    dataset: str,
    case: int | None,
    out: Path | None,
    steps: Path | None,
    sandbox: str,
    port: int,
    no_browser: bool,
) -> None:
    """Solve TASK (an id of the suite) in LibreOffice Calc, in the browser, only on 127.0.0.1.

    The desktop is the one that chat models work in, and the session is recorded like one of their
    episodes: time, steps, pictures and verdict, for `judge score` and `judge report`. Without
    --out, nothing is kept. Exits with 0 if the answer is accepted and with 1 if it is not, or if
    there is no answer. Ctrl-C ends the session.
    """
    options = api.TrialOptions(task_id=task, dataset=dataset, case=case, out=out, sandbox=sandbox)
    result = (
        _by_person(options, port, no_browser=no_browser)
        if steps is None
        else _by_steps(options, steps)
    )
    if result is None:
        click.echo("ended without an answer; the same command begins again", err=True)
    if result is None or result.verdict != "AC":
        click.get_current_context().exit(1)


def _by_person(options: api.TrialOptions, port: int, *, no_browser: bool) -> Result | None:
    from judge.api import desktop_trials as trials  # noqa: PLC0415  `--help` needs none of it
    from judge.desktop import sandboxed  # noqa: PLC0415
    from judge.desktop.episodes import HUMAN  # noqa: PLC0415

    with (
        trials.opened_trial(options, model=HUMAN, setting=trials.PERSON) as trial,
        contextlib.ExitStack() as stack,
    ):
        host = sandboxed.open_desktops(options.sandbox, 1, stack)
        click.echo("the desktop is being opened", err=True)
        with trials.live_session(trial, host, options) as session:
            session.on_result = _print
            serve_page(
                api.LivePage(session),
                "judge desktop",
                message=f"task {trial.task.id}, case {trial.case.number}",
                port=port,
                no_browser=no_browser,
            )
        if session.failure is not None:
            raise session.failure
        return session.result


def _by_steps(options: api.TrialOptions, path: Path) -> Result:
    from judge.api import desktop_trials as trials  # noqa: PLC0415  `--help` needs none of it
    from judge.desktop import sandboxed  # noqa: PLC0415
    from judge.desktop.steps import read_steps  # noqa: PLC0415

    steps = read_steps(path)
    with (
        trials.opened_trial(options, model=trials.STEP_LIST, setting=trials.STEPS) as trial,
        contextlib.ExitStack() as stack,
    ):
        host = sandboxed.open_desktops(options.sandbox, 1, stack)
        result = trials.play_trial(trial, host, options, steps, _telling(len(steps)))
    _print(result)
    return result


def _telling(count: int) -> Callable[[int, PlayedStep], None]:
    def show(number: int, played: PlayedStep) -> None:
        click.echo(f"{number}/{count} {played.step}: {played.outcome.seconds:.1f} s", err=True)

    return show


def _print(result: Result) -> None:
    from judge.cli.tables import verdict_piece  # noqa: PLC0415  `--help` needs none of it

    console = make_console()
    console.print(styled(verdict_piece(result.verdict), f" {result.description}"))
    if result.cause:
        console.print(f"  {result.cause}")
    for line in result.lines:
        console.print(f"    {line}")
