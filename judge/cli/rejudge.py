"""``judge rejudge``: judges stored outputs again, or changes a verdict by hand."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge import api
from judge.api.options import ScoreOptions
from judge.cli.help import HelpCommand
from judge.cli.options import (
    checker_options,
    corrections_options,
    given_options,
    grading_options,
    json_option,
    judging_options,
    limit_options,
    option,
    options_of,
)
from judge.core.option import Section, options_in
from judge.core.verdict import Verdict
from judge.errors import IncompleteRunError, UsageError
from judge.grading.options import GradingOptions

if TYPE_CHECKING:
    from judge.api.rejudging import Rejudgement
    from judge.grading.rejudge import RejudgedCase

_MAX_CASES = 40


@click.command(
    cls=HelpCommand,
    examples=(
        "rejudge results/mine --profile strict",
        "rejudge results/mine --case 59196/2 --verdict AC --by Ann --why typo",
    ),
    first="profile recalc dataset apply rerun case verdict by why as_json",
)
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@grading_options
@checker_options
@corrections_options
@options_of(
    ScoreOptions,
    "dataset trust_values suspects jobs cluster insecure_cluster",
    trust_values="Trust values of formulas in finished workbooks and --gui-only episodes.",
    jobs="Cases at a time [cores].",
)
@option(
    "--apply",
    is_flag=True,
    section=Section.JUDGED,
    help="Write the new verdicts; without it, only show them.",
)
@option(
    "--rerun",
    is_flag=True,
    section=Section.JUDGED,
    help="Run the stored programs as well: for a folder that somebody else made.",
)
@limit_options
@option("--case", metavar="ID/N", section=Section.JUDGED,
        help="Change the verdict of case N of task ID by hand.")  # fmt: skip
@option("--sample", type=click.IntRange(min=0), default=0, section=Section.JUDGED,
        help="Which of the task's solutions, from 0.")  # fmt: skip
@option(
    "--as-recorded",
    is_flag=True,
    section=Section.JUDGED,
    help="Take rules, options, corrections and trust from RUN's run.json, if not given here.",
)
@option("--verdict", metavar="CODE", section=Section.BY_HAND,
        help="The new verdict; `auto` restores the judge's own.")  # fmt: skip
@option("--by", section=Section.BY_HAND, help="Who changes it.")
@option("--why", section=Section.BY_HAND, help="Why.")
@json_option("what changes")
@click.pass_context
def rejudge(
    context: click.Context, /, run: Path, case: str | None, as_json: bool, **options: Any
) -> None:
    """Judge the stored outputs of RUN again; no code runs.

    Every output is compared again. This reveals records that were edited, and verdicts that change
    under another profile or engine. --apply writes the new verdicts; the earlier records are kept.
    Exits with 11 if an accepted case cannot be checked because its output is missing.

    Rules, options and corrections are those of this command and of the suite as published. Those in
    RUN's own run.json are listed, but apply only with --as-recorded.

    With --rerun, the programs are also run again, on this machine and within the limits of this
    command. Use it if somebody else made the folder: its outputs could be forged as easily as its
    verdicts. In that case, name the suite too.

    With --case, --verdict, --by and --why, changes one verdict by hand. Such a change survives
    re-scoring, and every report shows who made it and why.
    """
    by_hand = {name: options.pop(name) for name in ("sample", "verdict", "by", "why")}
    if case is not None:
        _change(run, case, **by_hand, as_json=as_json)
        return
    if any(by_hand.values()):
        raise UsageError("which case should be changed?", hint="Add --case ID/N.")

    for name in {*options_in(GradingOptions)} - given_options(context):  # the run's own may apply
        options[name] = None
    rejudgement = api.rejudge(run, **judging_options(options))
    if as_json:
        click.echo(json.dumps(rejudgement.to_json(), ensure_ascii=False))
    else:
        for line in _lines(rejudgement):
            click.echo(line)
    if unjudged := sum(case.after.verdict is Verdict.JE for case in rejudgement.cases):
        raise IncompleteRunError(
            f"{rejudgement.path}: {unjudged} of {len(rejudgement.cases)} verdicts cannot be "
            "determined",
            hint="`judge score` runs a program again whose output is gone; `judge rejudge --rerun` "
            "runs all of them.",
        )


def _change(
    run: Path,
    case: str,
    *,
    sample: int,
    verdict: str | None,
    by: str | None,
    why: str | None,
    as_json: bool,
) -> None:
    task_id, slash, number = case.rpartition("/")
    if not slash or not number.isdecimal():
        raise UsageError(f"--case {case}: write the task and the number of the case, as 59196/2")
    if verdict is None:
        raise UsageError("which verdict?", hint="Add --verdict AC (or another code, or auto).")
    code = None if verdict.lower() == "auto" else verdict.upper()
    change = api.change_verdict(
        run, task_id, int(number), code, by=by or "", why=why or "", sample=sample
    )
    if as_json:
        changed = None if change is None else asdict(change)
        click.echo(
            json.dumps({"run": str(run), "case": case, "change": changed}, ensure_ascii=False)
        )
    elif change is None:
        click.echo(f"{case}: the judge's own verdict counts again")
    else:
        click.echo(f"{case}: {change.automatic} is now {change.verdict}, changed by {change.by}")


def _about(case: RejudgedCase) -> str:
    """Describes on one line a case whose record changes or cannot be checked."""
    after = case.after
    sample = f", sample {after.sample}" if after.sample else ""
    where = f"task {after.task_id}{sample}, case {after.case}:"
    if case.unproven:
        return f"{where} the record says {case.before.verdict}, not checked: {case.unproven}"
    if case.contradicted:
        text = f"the record says {case.before.verdict}, the comparison says {after.verdict}"
        return f"{where} {text}  {after.cause}".rstrip()
    return f"{where} {case.before.verdict} to {after.verdict}  {after.cause}".rstrip()


def _without_suspects(rejudgement: Rejudgement) -> list[str]:
    from judge.cli.tables import percent  # noqa: PLC0415
    from judge.report.set_aside import LEVELS  # noqa: PLC0415

    before, after = rejudgement.before.get("suspects"), rejudgement.after.get("suspects")
    if before is None or after is None:
        return []
    lines = []
    for level, label in LEVELS.items():
        was, now = before["without"][level.value], after["without"][level.value]
        lines.append(
            f"  {label} (cases set aside: {now['set_aside']}): "
            f"soft {percent(was['soft_restriction'])} % before, "
            f"{percent(now['soft_restriction'])} % after; "
            f"hard {percent(was['hard_restriction'])} % before, "
            f"{percent(now['hard_restriction'])} % after"
        )
    return lines


def _lines(rejudgement: Rejudgement) -> list[str]:
    from judge.cli.tables import percent  # noqa: PLC0415

    rules = rejudgement.rules
    lines = [
        f"{rejudgement.path}: profile {rules['profile']}, recalculation {rules['recalc']['mode']}",
        f"  suite {rejudgement.suite}"
        + ("" if rejudgement.suite_is_named else ", as run.json names it"),
    ]
    departing = rejudgement.after.get("departures", ())
    lines += [f"  departs from the suite as published: {departure}" for departure in departing]
    lines += [
        f"  run.json has options that do not apply here: {setting}"
        for setting in rejudgement.not_taken
    ]
    if rejudgement.not_taken:
        lines.append("  (--as-recorded applies them)")
    lines += [f"  not in these scores: {gap}" for gap in rejudgement.missing]
    before, after = rejudgement.before["overall"], rejudgement.after["overall"]
    for label, was, now in (
        ("soft", before["soft_restriction"], after["soft_restriction"]),
        ("hard", before["hard_restriction"], after["hard_restriction"]),
    ):
        lines.append(f"  {label} {percent(was)} % before, {percent(now)} % after")
    lines += _without_suspects(rejudgement)
    changed = rejudgement.changed
    lines.append(f"  {len(changed)} of {len(rejudgement.cases)} verdicts change")
    lines += [
        f"    {before} to {after}: {count}"
        for (before, after), count in api.count_changes(rejudgement.cases).items()
    ]
    if wrong := sum(case.contradicted for case in rejudgement.cases):
        lines.append(f"  {wrong} records are wrong: the same rules give another verdict")
    listed = [case for case in rejudgement.cases if case.changed or case.unproven]
    # Cases that contradict the records, or cannot be proven, come first.
    listed.sort(key=lambda case: not (case.contradicted or case.unproven))
    lines += [f"  {_about(case)}" for case in listed[:_MAX_CASES]]
    if len(listed) > _MAX_CASES:
        lines.append(f"  and {len(listed) - _MAX_CASES} more (--json lists all)")
    if by_hand := rejudgement.manual:
        lines.append(
            f"  {by_hand} verdicts were changed by hand; they count as changed before and after"
        )
    if rejudgement.automatic is not None:
        overall = rejudgement.automatic["overall"]
        lines.append(
            f"  without them: soft {percent(overall['soft_restriction'])} % after, "
            f"hard {percent(overall['hard_restriction'])} % after"
        )
    lines.append(
        "written; the earlier records are kept"
        if rejudgement.applied
        else "nothing written; add --apply"
    )
    return lines
