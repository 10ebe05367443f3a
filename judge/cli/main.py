"""The ``judge`` command: finds the subcommand, turns errors into messages and exit codes."""

from __future__ import annotations

import gc
import sys
from typing import NoReturn

import click

from judge.cli.help import LazyGroup
from judge.cli.signals import EndSignal, ending_by_signals, ending_in
from judge.collector import RARE_COLLECTIONS
from judge.console import drop_output, print_label, shown_streams
from judge.errors import (
    BROKEN_PIPE_EXIT_CODE,
    INTERRUPTED_EXIT_CODE,
    JudgeError,
    SuiteError,
)
from judge.version import __version__

COMMANDS_BY_TITLE: dict[str, dict[str, tuple[str, str, str]]] = {
    "Judge": {
        "score": (
            "judge.cli.score",
            "score",
            "Grade a run, a folder of runs, solutions, or outputs.",
        ),
        "run": ("judge.cli.run", "run", "Grade one program on one task and show each case."),
        "infer": ("judge.cli.infer", "infer", "Ask a chat model for solutions."),
        "desktop": ("judge.cli.desktop", "desktop", "Solve a task at a desktop, in the browser."),
        "cluster": ("judge.cli.cluster", "cluster", "Start workers for `judge score --cluster`."),
    },
    "Online": {
        "serve": ("judge.cli.serve", "serve", "Run the online judge: queue, boards, disputes."),
        "submit": ("judge.cli.submit", "submit", "Submit solutions to an online judge."),
    },
    "Look at runs": {
        "report": (
            "judge.cli.report",
            "report",
            "Report on a run: scores with intervals, subsets.",
        ),
        "view": ("judge.cli.view", "view", "Show runs in the browser, with a list of all."),
        "compare-runs": (
            "judge.cli.report",
            "compare_runs",
            "Compare runs on the same tasks.",
        ),
        "rejudge": (
            "judge.cli.rejudge",
            "rejudge",
            "Judge stored outputs again, or change a verdict.",
        ),
        "audit": ("judge.cli.report", "audit", "Have a person mark a sample of the verdicts."),
        "verify-result": (
            "judge.cli.submit",
            "verify_result",
            "Check a signed result of a server, offline.",
        ),
        "checklist": (
            "judge.cli.checklist",
            "checklist",
            "Have models or people mark items of checklists.",
        ),
    },
    "Suites": {
        "dataset": (
            "judge.cli.groups",
            "dataset",
            "List, show, validate, fetch and write suites.",
        ),
        "verify": (
            "judge.cli.verify",
            "verify",
            "Check a suite: golds, untouched inputs, formulas.",
        ),
        "annotate": ("judge.cli.groups", "annotate", "Make test cases, check and measure them."),
        "hack": ("judge.cli.hack", "hack", "Break accepted solutions with your own workbook."),
    },
    "Workbooks": {
        "compare": ("judge.cli.compare", "compare", "Compare two workbooks at an answer position."),
        "facts": (
            "judge.cli.compare",
            "facts",
            "Show charts, pivot tables, filters … of a workbook.",
        ),
        "recalc": ("judge.cli.recalc", "recalc", "Compute the formulas of a workbook."),
        "engines": ("judge.cli.recalc", "engines", "Show the available calculation engines."),
        "tools": ("judge.cli.tools", "tools", "Check sets of tools for chat models."),
        "mcp": ("judge.cli.tools", "mcp", "Offer tools for workbooks as an MCP server."),
    },
    "This machine": {
        "sandbox": ("judge.cli.sandbox", "sandbox", "Build and inspect the sandbox."),
        "doctor": ("judge.cli.sandbox", "doctor", "Show what this machine has and lacks."),
    },
}
"""Section title -> name of a command -> its module, its attribute, its line in the overview.

Modules are imported when they are used, so that `judge --help` does not spend time on importing
Docker, the readers, or an HTTP client.
"""

COMMANDS = {name: row for rows in COMMANDS_BY_TITLE.values() for name, row in rows.items()}
"""The same without the section titles: name of a command -> its row."""


@click.group(
    cls=LazyGroup,
    rows=COMMANDS_BY_TITLE,
    context_settings={"help_option_names": ["-h", "--help"]},
    examples=("score solutions.jsonl --dataset sample", "view results/", "doctor"),
)
@click.version_option(__version__, prog_name="judge")
def judge() -> None:
    """An online judge for spreadsheet work.

    Exit codes: 0 done; 1 any other failure; 2 wrong use; 3 broken suite; 4 broken solutions file;
    5 no sandbox; 6 unreadable workbook; 7 unreadable answer position; 8 calculation engine;
    9 results directory; 10 inference; 11 incomplete run, can be continued; 12 no usable cluster;
    129, 130, 143 ended by a signal; 141 the output pipe was closed.
    """


def main(arguments: list[str] | None = None) -> NoReturn:
    """Runs the command line and exits."""
    gc.set_threshold(*RARE_COLLECTIONS)
    with shown_streams(), ending_by_signals():
        try:
            code = _run(arguments)
        except BrokenPipeError:  # standard error was closed while something was written to it
            code = _leave_quietly()
        sys.exit(code)


def _run(arguments: list[str] | None) -> int:
    stdout = sys.stdout
    try:
        # With `color`, click does not strip colour codes; our stream shows them escaped instead.
        code = judge.main(arguments, prog_name="judge", standalone_mode=False, color=True)
        sys.stdout.flush()
    except JudgeError as error:
        return _print_error(error) if ending_in(error) is None else _print_interrupted(error)
    except (click.exceptions.Abort, KeyboardInterrupt) as error:
        return _print_interrupted(error)
    except click.ClickException as error:
        return _print_usage(error)
    except BrokenPipeError:
        return _leave_quietly()
    except SystemExit as ending:
        # On a broken pipe, both printing libraries exit by themselves; click replaces stdout first.
        if isinstance(ending.__context__, BrokenPipeError) or sys.stdout is not stdout:
            return _leave_quietly()
        raise
    except Exception as error:
        if ending_in(error) is not None:
            return _print_interrupted(error)
        if not isinstance(error, OSError):
            raise
        where = f"{error.filename}: " if error.filename else ""
        return _print_error(JudgeError(f"{where}{error.strerror or error}"))
    return code if isinstance(code, int) else 0


def _leave_quietly() -> int:
    """Ends quietly if the reader of our output (`head`, a pager) has closed the pipe.

    As the command did not finish, its real exit code is unknown, and 0 would be wrong.
    """
    drop_output()
    return BROKEN_PIPE_EXIT_CODE


def _print_error(error: JudgeError) -> int:
    drop_output()  # so that the output so far comes before the error
    print_label("error:", "red", error.message)
    if isinstance(error, SuiteError):
        for fault in error.faults:
            if len(error.faults) == 1 and error.message.endswith(fault):
                break  # the message names the only fault
            click.echo(f"  - {fault}", err=True)
    if error.hint:
        print_label("hint:", "cyan", error.hint)
    return error.exit_code


def _print_usage(error: click.ClickException) -> int:
    error.show()
    return error.exit_code


def _print_interrupted(error: BaseException) -> int:
    ending = ending_in(error)
    if isinstance(ending, EndSignal):
        click.echo(f"ended by {ending.name}", err=True)
        return ending.exit_code
    click.echo("interrupted", err=True)
    return INTERRUPTED_EXIT_CODE
