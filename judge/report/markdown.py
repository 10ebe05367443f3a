"""A report, and an audit of golds, as Markdown. Pure."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from judge.core.statistics import Estimate, PairedDifference
from judge.report.desktop.counts import differing, plan_in_words
from judge.report.desktop.episodes import EpisodeBin, EpisodesSummary, SettingRow
from judge.report.identity import DEPARTS, identity_lines
from judge.report.model import (
    Breakdown,
    Group,
    PhrasingComparison,
    ReportData,
    Scores,
    TableOfScores,
)
from judge.report.tools import (
    GROUP_HEADINGS,
    USE_HEADINGS,
    USE_REMARK,
    ToolsSummary,
    group_cells,
    use_cells,
)
from judge.suites.certified import Grade
from judge.suites.suite import Suite
from judge.suspects.material import Outputs
from judge.suspects.model import About, Audit, RunVerdict, SeenCell, SeenContent, Suspect

_SPECIAL = re.compile(r"([\\`*_\[\]<>#!|~&])")
_MAX_EXCLUSIONS = 50
_MAX_SEEN = 20


def render_markdown(data: ReportData) -> str:
    """The report without its task pages: scores, subsets, verdicts, differences, measures."""
    parts = [
        f"# {escape(data.name)}",
        markdown_list(f"{escape(name)}: {escape(text)}" for name, text in identity_lines(data)),
        _notes(data),
        "## Scores",
        _scores_table([("Overall", data.overall)], data.by_instruction_type.groups),
        _intervals(data),
        _certified(data),
        _suspects(data),
        *(_table_of_scores(table) for table in data.tables),
        "## Subsets" if data.breakdowns else "",
        *(_breakdown(breakdown) for breakdown in data.breakdowns),
        "## Verdicts",
        markdown_table(
            ("phase", "verdict", "cases", "share %"),
            [
                (
                    phase.phase,
                    f"{verdict.verdict} {verdict.description}",
                    verdict.cases,
                    percent(verdict.share),
                )
                for phase in data.phases
                for verdict in phase.verdicts
            ],
        ),
        *(_phrasings(phrasing) for phrasing in data.phrasings),
        _differences(data),
        _episodes(data.episodes),
        _tools(data.tools),
        _measures(data),
        _usage(data),
        _repeated(data),
        _exclusions(data),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def escape(text: str) -> str:
    """Escapes text for Markdown, on one line."""
    shown = "".join(
        " " if char.isspace() else char for char in text if char.isprintable() or char.isspace()
    )
    return _SPECIAL.sub(r"\\\1", shown)


def percent(share: float | None) -> str:
    """A share as a percentage with two decimals; a dash for None."""
    return "-" if share is None else f"{100 * share:.2f}"


def with_interval(estimate: Estimate) -> str:
    """An estimate as ``70.67 [62.33, 79.00]``."""
    if estimate.low is None:
        return percent(estimate.value)
    return f"{percent(estimate.value)} [{percent(estimate.low)}, {percent(estimate.high)}]"


def _scores_table(named: Sequence[tuple[str, Scores]], groups: Sequence[Group]) -> str:
    rows = [(group.label, group.scores) for group in groups] + list(named)
    return markdown_table(
        ("", "tasks", "cases", "soft % [interval]", "hard % [interval]"),
        [
            (
                escape(label),
                scores.tasks,
                scores.cases,
                with_interval(scores.soft_restriction),
                with_interval(scores.hard_restriction),
            )
            for label, scores in rows
        ],
    )


def _table_of_scores(table: TableOfScores) -> str:
    """The table of a paper, and below it the denominators and the intervals of the run."""
    columns = table.columns
    header = ("", *(escape(f"{column.heading} {column.label}".strip()) for column in columns))
    rows = [
        ("%", *(percent(column.score_of_suite) for column in columns)),
        ("tasks of the suite", *(column.suite_tasks for column in columns)),
        ("tasks of the run", *(column.scores.tasks for column in columns)),
        (
            "hard % of the run [interval]",
            *(with_interval(column.scores.hard_restriction) for column in columns),
        ),
    ]
    return f"## {escape(table.title)}\n\n{markdown_table(header, rows)}"


def _intervals(data: ReportData) -> str:
    overall, method = data.overall, data.method
    how = (
        f"Intervals: {method.confidence:.0%}; Wilson's for shares of tasks, otherwise the cluster "
        f"bootstrap over tasks ({method.resamples:,} resamples, seed {method.seed})."
    )
    lines = [how]
    if overall.all_cases != overall.cases:
        lines.append(
            f"With all {overall.all_tasks} tasks and {overall.all_cases} cases, if those that are "
            f"not scored count as failed: soft {percent(overall.soft_of_all)} %, hard "
            f"{percent(overall.hard_of_all)} %."
        )
    if data.tasks_without_submission:
        lines.append(f"{data.tasks_without_submission} tasks of the suite have no solution here.")
    return " ".join(lines)


def _certified(data: ReportData) -> str:
    """The scores of the run, and the scores over certified tasks, with their numbers of tasks."""
    certified = data.certified
    if certified is None:
        return ""
    rows = [
        (certified.label, data.overall),
        ("certified tasks only", certified.scores),
    ]
    table = markdown_table(
        ("", "tasks", "cases", "soft % [interval]", "hard % [interval]"),
        [
            (
                label,
                scores.tasks,
                scores.cases,
                with_interval(scores.soft_restriction),
                with_interval(scores.hard_restriction),
            )
            for label, scores in rows
        ],
    )
    grades = ", ".join(f"{count} {grade}" for grade, count in sorted(certified.grades.items()))
    summary_line = f"Readers graded the golds of {escape(certified.name)}: {grades}."
    weak = [
        f"task {escape(task.task_id)} is accepted, and its gold is weak"
        for task in data.tasks
        if task.grade == Grade.WEAK and task.hard_restriction == 1
    ]
    if len(weak) > _MAX_EXCLUSIONS:
        weak = [*weak[:_MAX_EXCLUSIONS], f"and {len(weak) - _MAX_EXCLUSIONS} more"]
    parts = ["### Certified tasks", summary_line, table, markdown_list(weak)]
    return "\n\n".join(part for part in parts if part)


def _suspects(data: ReportData) -> str:
    if data.suspects is None:
        return ""
    rows = [("as judged", "-", "-", data.overall)]
    rows += [
        (level.label, str(level.set_aside_cases), str(level.set_aside_tasks), level.scores)
        for level in data.suspects.without
    ]
    table = markdown_table(
        (
            "",
            "cases set aside",
            "of tasks",
            "tasks",
            "cases",
            "soft % [interval]",
            "hard % [interval]",
        ),
        [
            (
                label,
                cases,
                tasks,
                scores.tasks,
                scores.cases,
                with_interval(scores.soft_restriction),
                with_interval(scores.hard_restriction),
            )
            for label, cases, tasks, scores in rows
        ],
    )
    marked = [
        f"task {escape(task.task_id)}, case {case.case} ({case.verdict or 'not run'}): "
        f"{escape(suspect.summary)} ({escape(suspect.sign)}, {suspect.certainty}, "
        f"{suspect.status})"
        for task in data.tasks
        for case in task.cases
        for suspect in case.suspects
    ]
    if len(marked) > _MAX_EXCLUSIONS:
        marked = [*marked[:_MAX_EXCLUSIONS], f"and {len(marked) - _MAX_EXCLUSIONS} more"]
    shown = [
        (f"task {escape(task.task_id)}, case {case.case}: {escape(suspect.sign)}", suspect)
        for task in data.tasks
        for case in task.cases
        for suspect in case.suspects
        if suspect.seen
    ]
    cells = [
        f"**{title}**\n\n{seen_markdown(suspect.seen, suspect.runs)}"
        for title, suspect in shown[:_MAX_SEEN]
    ]
    counts = ", ".join(f"{count} {name}" for name, count in data.suspects.by_status.items())
    parts = ["### Suspect golds", f"Suspects: {counts or 'none'}.", table, markdown_list(marked)]
    parts += cells
    if len(shown) > _MAX_SEEN:
        parts.append(f"The HTML report shows the cells of {len(shown) - _MAX_SEEN} more suspects.")
    return "\n\n".join(part for part in parts if part)


def audit_markdown(audit: Audit, suite: Suite, outputs: Outputs, folder: Path) -> str:
    """An audit with a section for each suspect: its cells, verdicts of runs, links to the files.

    Args:
        audit: the audit.
        suite: the suite that was audited.
        outputs: the outputs that voted.
        folder: the folder of the document; links are relative to it.
    """
    parts = [f"# Suspects of {escape(audit.suite)}"]
    for about in About:
        listed = [suspect for suspect in audit.suspects if suspect.about is about]
        parts.append(f"## {about.heading.capitalize()}: {len(listed)}")
        for suspect in listed:
            parts += _suspect_section(suspect, suite, outputs, folder)
    return "\n\n".join(parts) + "\n"


def _suspect_section(
    suspect: Suspect, suite: Suite, outputs: Outputs, folder: Path
) -> Iterable[str]:
    case = "" if suspect.case is None else f", case {suspect.case}"
    yield f"### Task {escape(suspect.task)}{case}: {escape(suspect.sign)}, {suspect.certainty}"
    yield f"{escape(suspect.summary)}: {escape(suspect.why)}."
    task = next((task for task in suite.tasks if task.id == suspect.task), None)
    if task is not None and task.instruction.strip():
        yield f"> {escape(task.instruction)}"
    if suspect.seen:
        yield seen_markdown(suspect.seen, suspect.runs)
    files: list[tuple[str, Path]] = []
    for test_case in () if task is None else task.cases:
        if suspect.case in {None, test_case.number}:
            of_case = "" if suspect.case else f" {test_case.number}"
            files += [(f"input{of_case}", file.path) for file in test_case.inputs[:1]]
            files += [
                (f"gold{of_case}", gold.path)
                for gold in test_case.golds[:1]
                if gold.path is not None
            ]
            files += [
                (Path(output.run).name, output.path)
                for output in outputs.get((suspect.task, test_case.number), ())
            ]
    if files:
        yield "Open: " + ", ".join(
            f"[{escape(name)}]({quote(Path(os.path.relpath(path, folder)).as_posix())})"
            for name, path in files
        )


def seen_markdown(seen: Sequence[SeenCell], runs: Sequence[RunVerdict]) -> str:
    """The cells of a suspect in input, gold and outputs, each with its value and its formula."""
    verdicts = {run.run: run.verdict for run in runs}
    names = dict.fromkeys((*verdicts, *(run for cell in seen for run in cell.outputs)))
    header = [
        *("cell", "input", "gold"),
        *(f"{escape(Path(run).name or run)} {verdicts.get(run, '')}".strip() for run in names),
    ]
    return markdown_table(
        header,
        [
            (
                escape(f"{cell.sheet}!{cell.cell}"),
                *map(
                    _content_text,
                    (cell.input, cell.gold, *(cell.outputs.get(run) for run in names)),
                ),
            )
            for cell in seen
        ],
    )


def _content_text(content: SeenContent | None) -> str:
    if content is None:
        return "not compared"
    value = content.value
    if isinstance(value, Mapping):
        value = next(iter(value.values()), None)
    shown = "blank" if value is None else escape(str(value))
    return f"{shown} from {escape(content.formula)}" if content.formula else shown


def _breakdown(breakdown: Breakdown) -> str:
    paper = ("paper %",) if breakdown.from_paper else ()
    header = ("", "tasks", "share %", *paper, "soft % [interval]", "hard % [interval]")
    rows = [
        (
            escape(group.label),
            group.scores.tasks,
            percent(group.share),
            *((percent(group.paper_share),) if paper else ()),
            with_interval(group.scores.soft_restriction),
            with_interval(group.scores.hard_restriction),
        )
        for group in breakdown.groups
    ]
    unknown = f" Not known for {breakdown.unknown_tasks} tasks." if breakdown.unknown_tasks else ""
    return "\n\n".join(
        (f"### {escape(breakdown.label)}", markdown_table(header, rows), breakdown.rule + unknown)
    )


def _phrasings(compared: PhrasingComparison) -> str:
    pair = compared.pair
    first, second = escape(pair.first), escape(pair.second)
    header = ("", "pairs", "both", f"only {first}", f"only {second}", "neither")
    rows = [
        (
            escape(count.label),
            count.tasks,
            count.both,
            count.only_first,
            count.only_second,
            count.neither,
        )
        for count in compared.counts
    ]
    alone = f" {compared.alone} tasks have a score in only one of them." if compared.alone else ""
    how = (
        "Tasks by the phrasings that led to a solution. Hard score "
        f"{points(pair.hard_difference)}, McNemar's exact p {pair.p_hard:.3g}; soft score "
        f"{points(pair.soft_difference)}, p {pair.soft_difference.p:.3g} (paired cluster "
        f"bootstrap).{alone}"
    )
    return f"## {second} against {first}\n\n{markdown_table(header, rows)}\n\n{how}"


def points(paired: PairedDifference) -> str:
    """A difference as ``+4.84 points [-1.20, +9.70]``."""
    if paired.difference is None:
        return "-"
    shown = f"{100 * paired.difference:+.2f} points"
    if paired.low is None or paired.high is None:
        return shown
    return f"{shown} [{100 * paired.low:+.2f}, {100 * paired.high:+.2f}]"


def _differences(data: ReportData) -> str:
    if not data.differences:
        return ""
    rows = [
        (
            escape(difference.kind.replace("_", " ")),
            difference.cases,
            difference.only,
            difference.cells,
            percent(difference.share),
        )
        for difference in data.differences
    ]
    header = ("class", "cases", "with no other", "cells", "share of the cases that differ %")
    return "## Differences\n\n" + markdown_table(header, rows)


def _episodes(summary: EpisodesSummary | None) -> str:
    if summary is None:
        return ""
    endings = [
        (escape(ending.description), ending.episodes, percent(ending.share), ending.accepted)
        for ending in summary.endings
    ]
    how = (
        "Solved tasks, % [interval]; turns, actions and seconds are means of the episodes that "
        "ended."
    )
    return "\n\n".join(
        (
            f"## Desktop episodes\n\n{settings_table(summary.settings)}",
            how,
            markdown_table(("how episodes ended", "episodes", "share %", "accepted"), endings),
            *(
                markdown_table(
                    (name, "episodes", "accepted"), [_bin(bar) for bar in bars if bar.episodes]
                )
                for name, bars in (("actions", summary.steps), ("turns", summary.turns))
                if bars
            ),
        )
    )


def _tools(summary: ToolsSummary | None) -> str:
    if summary is None:
        return ""
    groups = [(escape(group.label), *map(escape, group_cells(group))) for group in summary.groups]
    uses = [(escape(use.tool), *use_cells(use)) for use in summary.by_tool]
    return "\n\n".join(
        (
            "## Tools",
            markdown_table(("", *GROUP_HEADINGS), groups),
            markdown_table(("tool", *USE_HEADINGS), uses),
            USE_REMARK,
        )
    )


def settings_table(rows: Sequence[SettingRow]) -> str:
    """A table like those in the papers, with the success of each setting on one line."""
    named = ("run",) if any(row.name for row in rows) else ()
    labels = [f"{cell.heading} {cell.label}".strip() for cell in rows[0].cells] if rows else []
    more = differing(rows)
    header = (
        *(*named, "model", "observation", "action space", "history", "instruction", "gui only"),
        *map(escape, (*more, *labels)),
        *("episodes", "turns", "actions", "seconds"),
    )
    lines = [
        (
            *((escape(row.name),) if named else ()),
            *(escape(name) or "-" for name in (row.model, row.observation, row.action_space)),
            "-" if row.history is None else row.history,
            escape(plan_in_words(row)),
            "yes" if row.gui_only else "no",
            *(escape(row.details.get(name, "-")) for name in more),
            *(f"{with_interval(cell.solved)} of {cell.tasks}" for cell in row.cells),
            row.episodes,
            *(_number(mean) for mean in (row.mean_turns, row.mean_steps, row.mean_s)),
        )
        for row in rows
    ]
    return markdown_table(header, lines)


def _bin(bar: EpisodeBin) -> tuple[str, int, int]:
    name = str(bar.low) if bar.low == bar.high else f"{bar.low}-{bar.high}"
    return name, bar.episodes, bar.accepted


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"


def _measures(data: ReportData) -> str:
    rows = [
        (
            escape(measure.label),
            measure.per,
            measure.count,
            "-" if measure.total is None else f"{measure.total:,.6g}",
            f"{measure.mean:,.6g}",
            f"{measure.median:,.6g}",
            f"{measure.p95:,.6g}",
            f"{measure.maximum:,.6g}",
        )
        for measure in data.measures
    ]
    header = ("", "per", "count", "total", "mean", "median", "95th percentile", "maximum")
    return "## Time, memory, tokens, cost\n\n" + markdown_table(header, rows) if rows else ""


def _usage(data: ReportData) -> str:
    usage = data.usage
    if usage is None:
        return ""
    cost = (
        "an unknown amount" if usage["cost_usd"] is None else f"{usage['cost_usd']:,.4f} US dollars"
    )
    if not usage["calls"]:  # agents do not report their requests
        return (
            f"The agents used {usage['prompt_tokens']:,} prompt tokens, "
            f"{usage['completion_tokens']:,} completion tokens, "
            f"{usage['inference_s']:,.0f} s and {cost}."
        )
    return (
        f"The requests took {usage['calls']:,} calls ({usage['retries']:,} retries), "
        f"{usage['prompt_tokens']:,} prompt tokens, {usage['completion_tokens']:,} completion "
        f"tokens, {usage['inference_s']:,.0f} s and {cost}; "
        f"{usage['truncated']:,} replies were cut off."
    )


def _repeated(data: ReportData) -> str:
    repeated = data.repeated
    if repeated is None:
        return ""
    rows = [
        (k, percent(value), percent(repeated.pass_hat.get(k)))
        for k, value in repeated.pass_at.items()
    ]
    scores = (
        f"{repeated.samples} samples of each task, as repeated runs: soft "
        f"{percent(repeated.soft_restriction)} ± {percent(repeated.soft_sd)} %, hard "
        f"{percent(repeated.hard_restriction)} ± {percent(repeated.hard_sd)} % (mean and standard "
        "deviation over the runs)."
    )
    return f"## Repeated runs\n\n{scores}\n\n" + markdown_table(("k", "pass@k %", "pass^k %"), rows)


def _exclusions(data: ReportData) -> str:
    if not data.exclusions:
        return ""
    several = any(task.sample for task in data.tasks)
    shown = [
        f"task {escape(exclusion.task_id)}, "
        + (f"sample {exclusion.sample}, " if several else "")
        + f"case {exclusion.case}: {exclusion.verdict or 'not run'}"
        + (f", {escape(exclusion.reason)}" if exclusion.verdict else "")
        for exclusion in data.exclusions[:_MAX_EXCLUSIONS]
    ]
    if len(data.exclusions) > len(shown):
        shown.append(f"and {len(data.exclusions) - len(shown)} more")
    return "## Not scored\n\n" + markdown_list(shown)


def _notes(data: ReportData) -> str:
    notes = [f"**{DEPARTS}**: {escape(departure)}" for departure in data.departures]
    notes += [escape(note) for note in data.notes]
    if data.manual_verdicts:
        notes.append(f"{data.manual_verdicts} verdicts were changed by hand; they count as changed")
    if data.stale_manual_verdicts:
        notes.append(
            f"{data.stale_manual_verdicts} verdicts changed by hand no longer apply: the program "
            "has since produced another output"
        )
    if data.official_disagreements:
        notes.append(f"the published script disagrees on {data.official_disagreements} cases")
    return markdown_list(notes)


def markdown_list(lines: Iterable[str]) -> str:
    """A Markdown list of lines that are already escaped."""
    return "\n".join(f"- {line}" for line in lines)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table of text that is already escaped."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)
