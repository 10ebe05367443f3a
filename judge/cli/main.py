"""The ``judge`` command: finds the subcommand, turns our errors into messages and exit codes."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import NoReturn

import click

from judge import __version__
from judge.errors import INTERRUPTED_EXIT_CODE, JudgeError, SuiteError

# name -> (module, attribute, one line for the overview). Modules are imported when they are used:
# `judge --help` must not pay for Docker, the readers, or an HTTP client.
COMMANDS: dict[str, tuple[str, str, str]] = {
    "score": ("judge.cli.score", "score", "Grade a run, a folder of runs, solutions, or outputs."),
    "run": ("judge.cli.run", "run", "Grade one program on one task and show each case."),
    "report": ("judge.cli.report", "report", "Report on a run: scores with intervals, subsets."),
    "compare-runs": ("judge.cli.compare_runs", "compare_runs", "Compare runs on the same tasks."),
    "view": ("judge.cli.view", "view", "Show runs in the browser, with a list of all."),
    "rejudge": ("judge.cli.rejudge", "rejudge", "Judge stored outputs again, or change a verdict."),
    "audit": ("judge.cli.audit", "audit", "Have a person mark a sample of the verdicts."),
    "verify": ("judge.cli.verify", "verify", "Check a suite: golds, untouched inputs, formulas."),
    "compare": ("judge.cli.compare", "compare", "Compare two workbooks at an answer position."),
    "recalc": ("judge.cli.recalc", "recalc", "Compute the formulas of a workbook."),
    "engines": ("judge.cli.recalc", "engines", "Show the calculation engines that are there."),
    "infer": ("judge.cli.infer", "infer", "Ask a chat model for solutions."),
    "dataset": ("judge.cli.dataset", "dataset", "List, show, validate, fetch and write suites."),
    "annotate": ("judge.cli.annotate", "annotate", "Make test cases, check and weigh them."),
    "hack": ("judge.cli.hack", "hack", "Break accepted solutions with a workbook of yours."),
    "sandbox": ("judge.cli.sandbox", "sandbox", "Build and inspect the sandbox."),
    "doctor": ("judge.cli.doctor", "doctor", "Say what this machine has and lacks."),
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands, in the order of the overview."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports a command by its name."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[cmd_name]
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the overview without importing any command."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="judge")
def judge() -> None:
    """An online judge for spreadsheet work.

    Exit codes: 0 done; 1 any other failure; 2 wrong use; 3 broken suite; 4 broken solutions file;
    5 no sandbox; 6 unreadable workbook; 7 unreadable answer position; 8 calculation engine;
    9 results directory; 10 inference; 11 incomplete run, can be continued; 130 interrupted.
    """


def main(arguments: list[str] | None = None) -> NoReturn:
    """Runs the command line and exits."""
    stdout = sys.stdout
    try:
        code = judge.main(arguments, prog_name="judge", standalone_mode=False)
        sys.stdout.flush()
    except JudgeError as error:
        _print_error(error)
        sys.exit(error.exit_code)
    except click.exceptions.Abort:
        _print_interrupted()
    except KeyboardInterrupt:
        _print_interrupted()
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except BrokenPipeError:
        _leave_quietly()
    except SystemExit as ending:
        # Both libraries that print end the program themselves then; click changes stdout before.
        if isinstance(ending.__context__, BrokenPipeError) or sys.stdout is not stdout:
            _leave_quietly()
        raise
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _print_error(JudgeError(f"{where}{error.strerror or error}"))
        sys.exit(JudgeError.exit_code)
    sys.exit(code if isinstance(code, int) else 0)


def _leave_quietly() -> NoReturn:
    """Ends where the reader of our output (`head`, a pager) has gone, which is its right."""
    # What is left in the buffer is written at exit, and must have somewhere to go.
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    sys.exit(0)


def _print_error(error: JudgeError) -> None:
    click.echo(f"{click.style('error:', fg='red', bold=True)} {error.message}", err=True)
    if isinstance(error, SuiteError):
        for fault in error.faults:
            click.echo(f"  - {fault}", err=True)
    if error.hint:
        click.echo(f"{click.style('hint:', fg='cyan', bold=True)} {error.hint}", err=True)


def _print_interrupted() -> NoReturn:
    click.echo("interrupted", err=True)
    sys.exit(INTERRUPTED_EXIT_CODE)
