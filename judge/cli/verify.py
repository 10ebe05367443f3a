"""``judge verify``: checks that a suite can be judged, audits its golds, reviews suspect ones."""

from __future__ import annotations

import itertools
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge import api
from judge.api.options import JudgingOptions, ScoreOptions
from judge.cli.help import HelpCommand
from judge.cli.options import (
    by_option,
    checker_options,
    corrections_options,
    grading_options,
    json_option,
    judging_options,
    option,
    options_of,
    page_options,
    who,
)
from judge.cli.output import print_table, table, write_text
from judge.cli.view import serve_page
from judge.console import counted, stream_behind, visible
from judge.core.option import Section, options_in, split_ids
from judge.errors import SuiteError, UsageError
from judge.files.documents import dump_json
from judge.grading.options import GradingOptions

if TYPE_CHECKING:
    from judge.grading.verify import CaseCheck
    from judge.suspects.model import Audit, Suspect


@click.command(
    cls=HelpCommand,
    examples=(
        "verify sample",
        "verify sample --audit --out suspects.json",
        "verify sample --review --suspects suspects.json",
    ),
    first="ids limit jobs audit review suspects submissions out profile as_json",
)
@click.argument("suite")
@options_of(ScoreOptions, "ids limit")
@grading_options
@checker_options
@corrections_options
@options_of(JudgingOptions, beyond=GradingOptions, jobs="Cases at a time [cores].")
@option(
    "--audit",
    is_flag=True,
    section=Section.FAULTS,
    help="Look for golds that may be wrong instead.",
)
@option(
    "--review",
    is_flag=True,
    section=Section.FAULTS,
    help="Open suspect golds one by one in the browser.",
)
@option(
    "--suspects",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    section=Section.FAULTS,
    help="With --review: the suspects. [suspects.json; the suite is audited if there is none]",
)
@option(
    "--submissions",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="PATH",
    section=Section.JUDGED,
    help="With --audit: a results directory, a folder of them, or a folder of outputs whose "
    "answers vote on the golds; with --review, outputs to show. May be repeated.",
)
@option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    section=Section.JUDGED,
    help="With --audit: write the suspects to this file (suspects.json), or a section for each "
    "with its cells and files (suspects.md). With --review: write the corrections to this file. "
    "[next to the suspects]",
)
@by_option()
@page_options
@json_option("the findings")
def verify(
    suite: str,
    as_json: bool,
    audit: bool,
    review: bool,
    suspects: Path | None,
    by: str | None,
    port: int,
    no_browser: bool,
    submissions: tuple[Path, ...],
    out: Path | None,
    **options: Any,
) -> None:
    """Check that SUITE can be judged.

    Every gold must be accepted as its own answer. Also listed are tasks that accept the unchanged
    input, golds with formulas that were never computed, and files that cannot be read.
    Exits with 3 if a gold is not accepted, a file cannot be read, or no case is left to check.

    With --audit, lists golds that may be wrong with the evidence, strongest evidence first. A
    suspect is only a reason to look, so it does not change the exit code.

    With --review, a page on 127.0.0.1 shows the suspects with their evidence. Each decision is
    saved immediately, next to the suspects, and faults become corrections. Ctrl-C stops the server.
    """
    if options["cluster"] is not None and (review or audit):
        raise UsageError(
            "a cluster checks cases, it does not look for suspects",
            hint="Leave out --cluster, or --audit and --review.",
        )
    if review and audit:
        raise UsageError("--audit finds suspects, --review decides them", hint="Give one of them.")
    if review:
        shown = ReviewPageOptions(by, port, no_browser)
        review_suite(suite, suspects, submissions, out, options, shown)
        return
    if suspects is not None:
        raise UsageError("--suspects can only be used with --review", hint="Add --review.")
    if audit:
        audit_suite(suite, submissions, out, options, as_json=as_json)
        return
    if submissions or out is not None:
        raise UsageError(
            "--submissions and --out can only be used with --audit or --review",
            hint="Add one of them.",
        )
    _verify(suite, options, as_json=as_json)


def _verify(suite: str, options: Mapping[str, Any], *, as_json: bool) -> None:
    """Checks the cases and prints the findings."""
    left_out: dict[str, str] = {}
    with _progress_bar("verifying") as on_case:
        checks = api.verify(
            suite, on_case=on_case, on_left_out=left_out.__setitem__, **judging_options(options)
        )
    if as_json:
        click.echo(json.dumps({**_as_json(checks), "left_out": left_out}, ensure_ascii=False))
    else:
        _print(checks)
        _print_left_out(left_out, "not judged")
    if not checks:
        raise SuiteError(
            f"{suite}: no case was checked: {_left_out(len(left_out))}",
            hint="A suite that judges nothing cannot be verified; the reasons are listed above.",
        )
    refused = [check for check in checks if not check.gold_accepted or check.input_problem]
    if refused:
        raise SuiteError(
            f"{len(refused)} of {len(checks)} cases cannot be judged as they are",
            hint="`judge dataset validate` says what is wrong with the files and positions.",
        )


@contextmanager
def _progress_bar(label: str) -> Iterator[Callable[[object, int], None]]:
    """A bar on a terminal; yields what counts a finished item, given the number of all items."""
    live = sys.stderr.isatty()
    with click.progressbar(
        length=0, label=label, file=stream_behind(sys.stderr), hidden=not live, show_pos=True
    ) as bar:

        def count(_: object, total: int) -> None:
            bar.length = total
            bar.update(1)

        yield count


def _as_json(checks: Sequence[CaseCheck]) -> dict[str, object]:
    return {
        "cases": len(checks),
        "golds_accepted": sum(check.gold_accepted for check in checks),
        "untouched_accepted": sum(check.untouched_accepted is True for check in checks),
        "tasks_passed_untouched": _passed_untouched(checks),
        "checks": [asdict(check) for check in checks],
    }


def _passed_untouched(checks: Sequence[CaseCheck]) -> list[str]:
    by_task: dict[str, list[bool]] = {}
    for check in checks:
        by_task.setdefault(check.task_id, []).append(check.untouched_accepted is True)
    return [task_id for task_id, passed in by_task.items() if all(passed)]


def _print(checks: Sequence[CaseCheck]) -> None:
    accepted = sum(check.gold_accepted for check in checks)
    click.echo(f"golds accepted as their own answer: {accepted} of {len(checks)} cases")
    forms = Counter(form for check in checks for form in check.gold_forms)
    passed = Counter(form for check in checks for form, good in check.gold_forms.items() if good)
    for form, count in forms.items():
        click.echo(f"  as {form}: {passed[form]} of {count}")
    for check in checks:
        if not check.gold_accepted:
            click.echo(f"  task {check.task_id} case {check.case}: {check.gold_problem}")
    doubtful = [check for check in checks if check.doubts and check.gold_accepted]
    if doubtful:
        click.echo(f"cases that may not tell right from wrong: {len(doubtful)}")
    for check in doubtful:
        click.echo(f"  task {check.task_id} case {check.case}: {'; '.join(check.doubts)}")
    unreadable = [check for check in checks if check.input_problem]
    click.echo(f"inputs that cannot be read: {len(unreadable)}")
    for check in unreadable:
        click.echo(f"  task {check.task_id} case {check.case}: {check.input_problem}")
    uncached = [check for check in checks if check.uncached_formulas]
    cells = sum(check.uncached_formulas for check in uncached)
    not_calculated = sum(check.not_calculated for check in uncached)
    tasks = list(dict.fromkeys(check.task_id for check in uncached))
    click.echo(
        f"golds with formulas that have no stored value in the range: {len(uncached)} cases of "
        f"{len(tasks)} tasks, {cells} cells, of which {not_calculated} could not be calculated"
    )
    if tasks:
        click.echo(f"  {', '.join(tasks)}")
    untouched = [check for check in checks if check.untouched_accepted]
    unchanged = _passed_untouched(checks)
    click.echo(
        f"untouched inputs accepted: {len(untouched)} cases; tasks that they pass: {len(unchanged)}"
    )
    if unchanged:
        click.echo(f"  {', '.join(unchanged)}")
    _print_items(checks)
    print_dynamic([check for check in checks if check.dynamic is not None])
    noted = {check.task_id for check in checks if check.notes}
    click.echo(f"tasks whose answer position was read with a note: {len(noted)}")


def _print_items(checks: Sequence[CaseCheck]) -> None:
    """Prints checklist items that hold without work, hold on no gold, or end in an error."""
    listed = [(check, check.items) for check in checks if check.items is not None]
    if not listed:
        return
    deterministic = sum(items.deterministic for _, items in listed)
    not_judged = sum(items.not_judged for _, items in listed)
    click.echo(f"items: {deterministic} judged here, {not_judged} not judged")
    for title, of in (
        ("hold without work", "without_work"),
        ("hold on no gold", "unreached"),
        ("end in an error whatever the answer is", "errors"),
    ):
        named = [(check, ids) for check, items in listed if (ids := getattr(items, of))]
        click.echo(f"items that {title}: {sum(len(ids) for _, ids in named)}")
        for check, ids in named:
            click.echo(f"  task {check.task_id} case {check.case}: {', '.join(ids)}")


def print_dynamic(checks: Sequence[CaseCheck]) -> None:
    """Prints the tasks whose answers can be measured by changing inputs, and why others cannot."""
    if not checks:
        return
    measurable: list[str] = []
    faults: list[str] = []
    reasons: dict[str, list[str]] = {}
    for check in checks:
        finding = check.dynamic
        assert finding is not None
        if finding.own == "not_measurable":
            reasons.setdefault(finding.reason, []).append(check.task_id)
            continue
        measurable.append(check.task_id)
        if finding.own != "live" or finding.as_constants not in {None, "hard_coded"}:
            problem = f"the gold is {finding.own}, and as constants {finding.as_constants}"
            faults.append(f"  task {check.task_id}: {problem}".replace("_", "-"))
    click.echo(f"tasks whose answers can be measured by changing inputs: {len(measurable)}")
    if measurable:
        click.echo(f"  {', '.join(measurable)}")
    for reason, tasks in sorted(reasons.items(), key=lambda entry: -len(entry[1])):
        click.echo(f"  not {len(tasks)} ({reason}): {', '.join(tasks)}")
    for fault in faults:
        click.echo(fault)


def _left_out(number: int) -> str:
    return f"{counted(number, 'task')} {'is' if number == 1 else 'are'} left out"


def _print_left_out(left_out: Mapping[str, str], state: str) -> None:
    """Prints the tasks that are not judged, or not examined, by reason."""
    if left_out:
        click.echo(f"tasks that are {state}: {len(left_out)}")
    by_reason = sorted(left_out.items(), key=itemgetter(1))
    for reason, entries in itertools.groupby(by_reason, itemgetter(1)):
        click.echo(f"  {', '.join(visible(task) for task, _ in entries)}: {visible(reason)}")


UNUSED = ("profile", "style", "lenient_names")
"""Options of `judge verify` that cannot be used with ``--audit``."""


def audit_suite(
    suite: str,
    submissions: tuple[Path, ...],
    out: Path | None,
    options: Mapping[str, Any],
    *,
    as_json: bool,
) -> None:
    """Audits a suite and prints the suspects, or writes them to a file."""
    judging = judging_options(options)
    usual = options_in(GradingOptions)
    if judging.pop("checker") or any(judging.pop(name) != usual[name].default for name in UNUSED):
        raise UsageError(
            "--audit always compares by the default rules",
            hint="Leave --profile, --style, --lenient-names and the comparison options out.",
        )
    with _progress_bar("auditing") as on_task:
        audit = api.suspects(
            suite,
            submissions=submissions,
            on_task=on_task,
            **judging,
        )
    if out is not None and out.suffix == ".md":
        loaded = api.load_suite(suite)
        outputs, _ = api.outputs_of(submissions, loaded)
        write_text(api.audit_markdown(audit, loaded, outputs, out.parent), out)
    elif out is not None:
        api.write_suspects(out, audit)
    if as_json:
        click.echo(dump_json(api.document_of(audit)))
    else:
        _print_audit(audit, out)
    if not audit.cases:
        unreadable = len({problem.task for problem in audit.problems})
        raise SuiteError(
            f"{suite}: no case was examined: {_left_out(len(audit.not_examined))}"
            + (f", and {counted(unreadable, 'task')} cannot be read" if unreadable else ""),
            hint="The reasons are listed above; with --json, under not_examined and problems.",
        )


def _print_suspects(title: str, suspects: Sequence[Suspect]) -> None:
    """Prints one of the two lists of an audit."""
    if not suspects:
        return
    runs = any(suspect.runs for suspect in suspects)
    headings = ("!certainty", "!task", ">case", "!sign", *(("runs",) if runs else ()))
    listed = table(*headings, "what was found, and why it matters")
    for suspect in suspects:
        verdicts = " ".join(run.verdict or "-" for run in suspect.runs)
        listed.add_row(
            suspect.certainty.value,
            visible(suspect.task),
            "all" if suspect.case is None else str(suspect.case),
            suspect.sign,
            *((verdicts,) if runs else ()),
            f"{visible(suspect.summary)}: {visible(suspect.why)}",
        )
    click.echo(f"{title}: {len(suspects)}")
    print_table(listed)


def _print_audit(audit: Audit, out: Path | None) -> None:
    from judge.suspects.model import About, Certainty  # noqa: PLC0415  `--help` needs none of it

    certainties = list(Certainty)
    counts = Counter((suspect.sign, suspect.certainty) for suspect in audit.suspects)
    overview = table("!sign", *(f">{certainty.value}" for certainty in certainties), "what it says")
    without_suspects: list[str] = []
    for sign in audit.signs:
        numbers = [counts[sign.name, certainty] for certainty in certainties]
        if any(numbers):
            row = (str(number) if number else "-" for number in numbers)
            overview.add_row(sign.name, *row, sign.title)
        else:
            without_suspects.append(sign.name)
    if audit.suspects:
        print_table(overview)
    if without_suspects:
        click.echo(f"signs without a suspect: {', '.join(without_suspects)}")
    for about in About:
        _print_suspects(
            about.heading, [suspect for suspect in audit.suspects if suspect.about is about]
        )
    cases = {(suspect.task, suspect.case) for suspect in audit.suspects}
    tasks = {suspect.task for suspect in audit.suspects}
    click.echo(
        f"{counted(len(audit.suspects), 'suspect')} in {counted(len(cases), 'case')} of "
        f"{counted(len(tasks), 'task')}; {counted(audit.cases, 'case')} of "
        f"{counted(audit.tasks, 'task')} examined"
    )
    for note in audit.notes:
        click.echo(f"note: {visible(note)}")
    _print_left_out(audit.not_examined, "not examined")
    for problem in audit.problems:
        where = "" if problem.case is None else f", case {problem.case}"
        by = f" ({problem.sign})" if problem.sign else ""
        click.echo(f"problem: task {visible(problem.task)}{where}{by}: {visible(problem.message)}")
    if out is not None:
        click.echo(f"written to {out}")


DEFAULT_SUSPECTS = Path("suspects.json")


@dataclass(frozen=True, slots=True)
class ReviewPageOptions:
    """Options of the review page.

    Attributes:
        by: the reviewer; None for the user's own name.
        port: 0 for any free one.
        no_browser: whether the address is only printed.
    """

    by: str | None
    port: int
    no_browser: bool


def review_suite(
    suite: str,
    suspects: Path | None,
    submissions: tuple[Path, ...],
    out: Path | None,
    options: dict[str, Any],
    served: ReviewPageOptions,
) -> None:
    """Serves the review page; audits the suite first if there is no file of suspects.

    Args:
        suite: the suite.
        suspects: the file of suspects; None for ``suspects.json`` here.
        submissions: runs and folders of outputs to show.
        out: the file of corrections to write; None for one next to the suspects.
        options: the other options of ``judge verify``.
        served: the reviewer, and how the page is served.
    """
    if any(options[name] for name in ("corrections", "corrections_from", "certified")):
        raise UsageError(
            "a review shows the published golds, without corrections",
            hint="Leave --corrections and --certified out; `judge verify --audit --corrections` "
            "audits the corrected suite.",
        )
    path, ids = suspects or DEFAULT_SUSPECTS, set(split_ids(options["ids"]))
    if not path.exists():
        if suspects is not None:
            raise UsageError(
                f"{path}: no such file",
                hint=f"`judge verify {suite} --audit --out {path}` writes it.",
            )
        click.echo(f"auditing {suite}", err=True)
        api.write_suspects(path, api.suspects(suite, submissions=submissions))
    loaded, audit = api.load_suite(suite), api.read_suspects(path)
    outputs, _ = api.outputs_of(submissions, loaded)
    session = api.ReviewSession(
        loaded,
        audit,
        path,
        out or path.with_suffix(".corrections.yaml"),
        by=who(served.by),
        outputs=outputs,
        ids=ids,
    )
    if session.left_out:
        click.echo(
            f"{session.left_out} suspects belong to other versions of the files, and are left out",
            err=True,
        )
    serve_page(
        api.ReviewPage(session),
        "judge review",
        message=f"{len(session.suspects)} suspects for {session.by}",
        port=served.port,
        no_browser=served.no_browser,
    )
    click.echo(
        f"ended; corrections in {session.corrections_path}: {len(session.merged().corrections)}"
    )
