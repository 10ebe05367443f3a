"""Prints tables of runs and episodes on a terminal."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.text import Text

from judge.api import ScoredRun, check_expectations
from judge.cli.output import Unbroken, print_table, table
from judge.console import Piece, clipped, counted, make_console, styled, visible
from judge.core.records.reports import GroupReport, OverallReport, ReportDocument, ScoresWithout
from judge.core.records.runs import RecalcIdentity, RunDocument, served_model
from judge.core.verdict import Verdict
from judge.report.counts import chart_lines, lines_of_points, scope_lines, share_lines

if TYPE_CHECKING:
    from judge.api.replaying import ReplayedEpisode

_MAX_FAILURES = 5
_MAX_LEFT_OUT = 10
_MAX_TURNS = 8
_MAX_RESULTS_READ = 10_000
_MAX_CAUSE_CHARS = 160

_STYLES = {
    Verdict.AC: "green",
    Verdict.WA: "red",
    Verdict.NC: "magenta",
    Verdict.SV: "bold red",
    Verdict.JE: "bold yellow",
    Verdict.BT: "bold yellow",
}


def verdict_piece(code: str | None) -> Piece:
    """Returns a verdict code with its colour; a dash for None."""
    if code is None:
        return "-", "dim"
    return code, _STYLES.get(Verdict(code), "yellow")


def print_run(run: ScoredRun, console: Console | None = None) -> None:
    """Prints scores by instruction type, counts of verdicts, and the cases that were left out."""
    console = console or make_console()
    report = run.report
    identity = report["run"]
    scores_by_type = table("!", ">tasks", ">cases", ">soft %", ">hard %", "verdicts")
    for name, group in report["by_instruction_type"].items():
        scores_by_type.add_row(name, *_cells(group))
    scores_by_type.add_section()
    scores_by_type.add_row("Overall", *_cells(report["overall"]), style="bold")
    for label, scores in (*_certified(report), *_without_suspects(report)):
        scores_by_type.add_row(label, *scores)
    if not run.suite_is_named and (suite := identity.get("suite")):
        console.print(styled((f"suite {suite.get('source')}, as run.json names it", "dim")))
    for line in run.not_taken:
        heading = "run.json has options that do not apply here:"
        console.print(styled((heading, "yellow"), f" {line}"))
    if run.left_out:
        named = ", ".join(run.left_out[:_MAX_LEFT_OUT])
        more = " …" if len(run.left_out) > _MAX_LEFT_OUT else ""
        others = counted(len(run.left_out), "task")
        heading = f"solutions of {others} that the suite does not have are left out:"
        console.print(styled((heading, "yellow"), f" {named}{more}"))
    for line in report.get("departures", ()):
        console.print(styled(("departs from the suite as published:", "yellow"), f" {line}"))
    console.print(styled((_title(run, identity), "bold")), soft_wrap=True)
    print_table(scores_by_type, console)
    _print_left_out(console, report["overall"])
    _print_scope(console, report)
    _print_not_calculated(console, run, identity)
    _print_usage(console, report)
    _print_expectations(console, run)
    console.print(styled((f"report: {run.path}/report.json", "dim")))


def print_ending(runs: Sequence[ScoredRun]) -> None:
    """Prints how many cases failed, the causes of the first ones, and what to do next."""
    console = make_console()
    for run in runs:
        for line in _failures(run):
            console.print(line, soft_wrap=True)
    folders = {run.path.parent for run in runs}
    for words, command in (
        *(("scores, cells and why, as a page", f"report {_typed(run.path)}") for run in runs[:1]),
        *(("all runs in the browser", f"view {_typed(folder)}") for folder in sorted(folders)[:1]),
    ):
        console.print(
            styled(("next: ", "dim"), f"judge {command}", (f"   # {words}", "dim")), soft_wrap=True
        )


def _failures(run: ScoredRun) -> Iterator[str | Text]:
    """Prints counts by verdict, and the first few cases."""
    overall = run.report["overall"]
    counts = {
        code: count
        for code, count in overall["verdicts"].items()
        if Verdict(code).is_scored and code != Verdict.AC
    }
    if not counts:
        return
    failed = sum(counts.values())
    listed = ", ".join(f"{code} {count}" for code, count in counts.items())
    yield styled(
        (f"{run.path.name}: {failed} of {overall['cases']} cases failed:", "bold"), f" {listed}"
    )
    first = [
        result
        for result in itertools.islice(run.results, _MAX_RESULTS_READ)
        if result.verdict.is_scored and result.verdict is not Verdict.AC
    ][:_MAX_FAILURES]
    grades = _doubtful_grades(run)
    for failure in first:
        grade = grades.get(failure.task_id)
        doubt = f" ({grade} gold)" if grade is not None else ""
        sample = f", sample {failure.sample}" if failure.sample else ""
        cause = " ".join(visible(failure.cause).split())
        cut = clipped(cause, _MAX_CAUSE_CHARS)
        yield styled(
            "  ",
            verdict_piece(failure.verdict.value),
            f" task {failure.task_id}{sample}, case {failure.case}{doubt}: {cut}".removesuffix(
                ": "
            ),
        )
    if failed > len(first):
        yield styled((f"  and {failed - len(first)} more", "dim"))


def _doubtful_grades(run: ScoredRun) -> dict[str, str]:
    """Task whose gold is ambiguous or faulty -> that grade."""
    suite = run.report["run"].get("suite")
    certified = None if suite is None else suite.get("certified")
    if certified is None:
        return {}
    from judge.suites.certified import Grade  # noqa: PLC0415  few suites have certified golds

    doubtful = {grade.value for grade in Grade if grade.is_doubtful}
    return {task: grade for task, grade in certified["grades"].items() if grade in doubtful}


def _typed(path: Path) -> str:
    """Quotes a path for a shell."""
    return shlex.quote(str(path))


def _without_suspects(report: ReportDocument) -> list[tuple[str, list[str]]]:
    """Returns rows of scores that leave out suspected cases, if the run has suspects."""
    suspects = report.get("suspects")
    if suspects is None:
        return []
    from judge.report.set_aside import LEVELS, LIST_LEVELS  # noqa: PLC0415  few runs keep suspects
    from judge.suspects.model import About  # noqa: PLC0415  as above

    rows = [
        (label, _cells_without(scores))
        for level, label in LEVELS.items()
        if (scores := suspects["without"].get(level.value)) is not None
    ]
    lists = suspects.get("by_list", {})
    if all(any(scores["set_aside"] for scores in lists.get(about, {}).values()) for about in About):
        rows += [
            (label, _cells_without(lists[about][least]))
            for (about, least), label in LIST_LEVELS.items()
        ]
    return rows


def _certified(report: ReportDocument) -> list[tuple[str, list[str]]]:
    """Returns a row with the scores of certified tasks, if readers graded the suite's golds."""
    certified = report.get("certified")
    return [] if certified is None else [("certified tasks", _cells_without(certified["scores"]))]


def _cells_without(scores: ScoresWithout) -> list[str]:
    return [
        str(scores["tasks"]),
        str(scores["cases"]),
        percent(scores["soft_restriction"]),
        percent(scores["hard_restriction"]),
        f"cases set aside: {scores['set_aside']}",
    ]


def _title(run: ScoredRun, identity: RunDocument) -> str:
    parts = [run.path.name]
    if suite := identity.get("suite"):
        parts.append(f"suite {suite['name']}")
    if model := served_model(identity):
        parts.append(model)
    parts.append(f"profile {identity.get('profile')}")
    if sandbox := identity.get("sandbox"):
        parts.append(sandbox["backend"])
    return " · ".join(parts)


def _cells(group: GroupReport) -> list[str | Unbroken]:
    verdicts = Unbroken(
        styled(verdict_piece(code), f" {count}") for code, count in group["verdicts"].items()
    )
    return [
        str(group["tasks"]),
        str(group["cases"]),
        percent(group["soft_restriction"]),
        percent(group["hard_restriction"]),
        verdicts,
    ]


def percent(share: float | None) -> str:
    """Formats a share from 0 to 1 as a percentage with two decimals; None as a dash."""
    return "-" if share is None else f"{100 * share:.2f}"


def _print_left_out(console: Console, overall: OverallReport) -> None:
    excluded = overall["excluded"]
    if excluded:
        counts = ", ".join(f"{code} {len(cases)}" for code, cases in excluded.items())
        everything = overall["including_excluded"]
        console.print(
            styled(
                ("Not scored:", "yellow"),
                f" {counts}. If these counted as failed, soft would be "
                f"{percent(everything['soft_restriction'])} % and hard "
                f"{percent(everything['hard_restriction'])} % of {everything['tasks']} tasks "
                f"({everything['cases']} cases).",
            )
        )
        for code in ("BT", "JE"):
            for case in excluded.get(code, [])[:5]:
                console.print(
                    f"  {code} task {case['id']} case {case['case']}: {case.get('reason')}"
                )
    if missing := overall["tasks_without_submission"]:
        console.print(styled((f"{missing} tasks of the suite have no solution here.", "dim")))


def _print_scope(console: Console, report: ReportDocument) -> None:
    if (scope := report.get("scope")) is not None:
        for line in scope_lines(scope):
            console.print(styled((line, "dim")))
    if (charts := report.get("charts")) is not None:
        for line in chart_lines(charts):
            console.print(styled((line, "dim")))
    for line in lines_of_points(report.get("points")):
        console.print(styled((line, "dim")))
    if "shares" in report["overall"]:
        groups = {**report["by_instruction_type"], "Overall": report["overall"]}
        for line in share_lines({name: group.get("shares") for name, group in groups.items()}):
            console.print(styled((line, "dim")))


def _print_not_calculated(console: Console, run: ScoredRun, identity: RunDocument) -> None:
    if not run.report["overall"]["verdicts"].get("NC"):
        return
    recalc = identity.get("recalc") or RecalcIdentity()
    if recalc.get("mode") == "never":
        note = " formulas without a value were left alone (--recalc never)."
        console.print(styled(("NC:", "yellow"), note))
        return
    engines = recalc.get("engines") or ()
    if recalc.get("engine") == "auto" and not any(
        engine.startswith("libreoffice") for engine in engines
    ):
        console.print(
            styled(
                ("NC:", "yellow"),
                " some formulas could not be calculated, and LibreOffice is not installed. "
                "`judge sandbox build --office` adds it.",
            )
        )


def _print_usage(console: Console, report: ReportDocument) -> None:
    for figures in report.get("published_figures", ()):
        actions = (
            "no A50 and A90, since no task that passed has a log of actions"
            if figures["a50"] is None or figures["a90"] is None
            else f"A50 {figures['a50']:.2f}, A90 {figures['a90']:.2f}"
        )
        console.print(
            f"as published, repeat {figures['repeat']}: "
            f"Exec@1 {100 * figures['exec_at_1']:.1f} % and Pass@1 "
            f"{100 * figures['pass_at_1']:.1f} % of {figures['tasks']} tasks with a log, {actions}"
        )
    if repeated := report.get("repeated_runs"):
        shares = [f"pass@{k} {100 * share:.2f} %" for k, share in repeated["pass_at"].items()]
        console.print(f"{repeated['samples']} samples of each task: {', '.join(shares)}")
    if usage := report.get("usage"):
        calls = usage["calls"]  # foreign agents do not report theirs
        parts = [
            *([f"{calls:,} calls"] if calls else []),
            f"{usage['prompt_tokens']:,} tokens in prompts",
            f"{usage['completion_tokens']:,} in replies",
        ]
        if usage["cost_usd"] is not None:
            parts.append(f"${usage['cost_usd']:.4f}")
        if latency := usage["latency_s"]:
            parts.append(f"{latency['median']:.1f} s a call (median)")
        who = "chat model" if calls else "agents"
        console.print(styled((f"{who}: {', '.join(parts)}", "dim")))


def _print_expectations(console: Console, run: ScoredRun) -> None:
    expected, mismatches = check_expectations(run)
    if not expected:
        return
    met = expected - len(mismatches)
    colour = "red" if mismatches else "green"
    text = f"{met} of {expected} cases have the verdict that they must get."
    console.print(styled((text, colour)))
    for mismatch in mismatches:
        console.print(
            styled(
                f"  task {mismatch.task_id} ({mismatch.label}), case {mismatch.case}: expected ",
                verdict_piece(mismatch.expected),
                f", got {mismatch.actual}",
            )
        )


def print_replayed(episodes: Sequence[ReplayedEpisode]) -> None:
    """Prints the differences between the episodes of a run and their repetitions."""
    click.echo(f"{len(episodes)} episodes performed again")
    shown = table("!task", ">case", ">turns", "before", "now", "file", "what differs")
    for episode in episodes:
        sample = f" #{episode.sample}" if episode.sample else ""
        shown.add_row(
            styled(f"{episode.task_id}{sample}"),
            str(episode.case),
            str(episode.turns),
            *(
                styled(verdict_piece(None if x is None else str(x)))
                for x in (episode.before, episode.after)
            ),
            "same" if episode.same_file else "other",
            styled(episode.problem or _differing(episode)),
        )
    print_table(shown)


def _differing(episode: ReplayedEpisode) -> str:
    causes = []
    for turn in episode.differing[:_MAX_TURNS]:
        parts = [f"{turn.lines} lines of the tree"] if turn.lines else []
        parts += [f"{turn.workbooks} other workbooks"] if turn.workbooks else []
        parts += [f"action {number}" for number in turn.outcomes]
        causes.append(f"turn {turn.number}: {', '.join(parts)}")
    if len(episode.differing) > _MAX_TURNS:
        causes.append(f"and {len(episode.differing) - _MAX_TURNS} more turns")
    return "; ".join(causes) or "nothing"
