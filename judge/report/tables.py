"""The numbers of a report as plain rows, for CSV and data frames, and as flat metrics. Pure."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict

from judge.core.finding import in_words
from judge.core.records.cases import ItemRecord
from judge.core.statistics import Estimate
from judge.files.documents import as_csv_text
from judge.report.model import CaseEntry, Group, ReportData, Scores, TaskEntry

Row = dict[str, object]
"""Column -> text, number, Boolean or None."""


def score_rows(data: ReportData) -> list[Row]:
    """One row for the whole run, each part of each breakdown, and the scores without suspects."""
    rows = [_score_row("overall", "overall", "Overall", None, None, data.overall)]
    for breakdown in (data.by_instruction_type, *data.breakdowns):
        rows += [_group_row(breakdown.key, group) for group in breakdown.groups]
    for level in () if data.suspects is None else data.suspects.without:
        rows.append(
            _score_row(
                "suspects",
                f"{level.about} {level.certainty}".strip(),
                level.label,
                None,
                None,
                level.scores,
            )
        )
    return rows


def _group_row(breakdown: str, group: Group) -> Row:
    return _score_row(
        breakdown, group.key, group.label, group.share, group.paper_share, group.scores
    )


def _score_row(
    breakdown: str,
    key: str,
    label: str,
    share: float | None,
    paper_share: float | None,
    scores: Scores,
) -> Row:
    soft, hard = scores.soft_restriction, scores.hard_restriction
    return {
        "breakdown": breakdown,
        "group": key,
        "label": label,
        "tasks": scores.tasks,
        "cases": scores.cases,
        "soft_restriction": soft.value,
        "soft_low": soft.low,
        "soft_high": soft.high,
        "hard_restriction": hard.value,
        "hard_low": hard.low,
        "hard_high": hard.high,
        "all_tasks": scores.all_tasks,
        "all_cases": scores.all_cases,
        "soft_of_all": scores.soft_of_all,
        "hard_of_all": scores.hard_of_all,
        "share": share,
        "paper_share": paper_share,
    }


def column_rows(data: ReportData) -> list[Row]:
    """One row for each column of the tables that the suite defines, such as its paper's table."""
    return [
        {
            "table": table.title,
            "heading": column.heading,
            "label": column.label,
            "suite_tasks": column.suite_tasks,
            "score_of_suite": column.score_of_suite,
            "tasks": column.scores.tasks,
            "hard_restriction": column.scores.hard_restriction.value,
            "hard_low": column.scores.hard_restriction.low,
            "hard_high": column.scores.hard_restriction.high,
        }
        for table in data.tables
        for column in table.columns
    ]


_TASK_COLUMNS = (
    "task_id",
    "sample",
    "instruction_type",
    "soft_restriction",
    "hard_restriction",
    "official_disagrees",
    "model",
    "setting",
    "rounds",
    "prompt_tokens",
    "completion_tokens",
    "cost_usd",
    "inference_s",
    "run_wall_s",
    "peak_memory_bytes",
)


def task_rows(data: ReportData) -> list[Row]:
    """One row for each submission; ``in_<breakdown>`` is the part that its task is in."""
    return [_task_row(data, task) for task in data.tasks]


def _task_row(data: ReportData, task: TaskEntry) -> Row:
    row: Row = {name: getattr(task, name) for name in _TASK_COLUMNS}
    row["verdicts"] = " ".join(case.verdict or "-" for case in task.cases)
    row["differences"] = " ".join(task.difference_kinds)
    for breakdown in data.breakdowns:
        row[f"in_{breakdown.key}"] = task.groups.get(breakdown.key)
    return row


_CASE_COLUMNS = (
    "case",
    "verdict",
    "phase",
    "cause",
    "cpu_s",
    "wall_s",
    "recalculation_s",
    "comparison_s",
    "peak_memory_bytes",
    "input_bytes",
    "output_bytes",
    "input_rows",
    "input_columns",
    "answer_cells",
    "differing_cells",
    "computed_cells",
    "official_equal",
    "official_disagrees",
    "output_sha256",
)


def case_rows(data: ReportData) -> list[Row]:
    """One row for each test case of each submission; ``cells_<class>`` counts differing cells.

    ``damage`` and ``dynamic`` are columns if the options for these figures were set.
    """
    kinds = [difference.kind for difference in data.differences]
    rows = [_case_row(task, case, kinds) for task in data.tasks for case in task.cases]
    for name in ("damage", "dynamic"):
        figures = [getattr(case, name) for task in data.tasks for case in task.cases]
        if any(figure is not None for figure in figures):
            rows = [row | {name: figure} for row, figure in zip(rows, figures, strict=True)]
    if data.suspects is not None:
        cases = [case for task in data.tasks for case in task.cases]
        rows = [row | _suspect_columns(case) for row, case in zip(rows, cases, strict=True)]
    return rows


def _suspect_columns(case: CaseEntry) -> Row:
    """The number of a case's suspects, and the fields of the most certain one."""
    first = case.suspects[0] if case.suspects else None
    return {
        "suspects": len(case.suspects),
        "suspect_sign": None if first is None else first.sign,
        "suspect_certainty": None if first is None else first.certainty,
        "suspect_status": None if first is None else first.status,
        "suspect": None if first is None else first.summary,
    }


def _case_row(task: TaskEntry, case: CaseEntry, kinds: Sequence[str]) -> Row:
    row: Row = {
        "task_id": task.task_id,
        "sample": task.sample,
        "instruction_type": task.instruction_type,
    }
    row |= {name: getattr(case, name) for name in _CASE_COLUMNS}
    row["engines"] = " ".join(case.engines)
    row |= {f"cells_{kind}": case.difference_counts.get(kind, 0) for kind in kinds}
    manual = case.manual
    row["automatic_verdict"] = case.verdict if manual is None else manual.automatic
    row["changed_by"] = None if manual is None else manual.by
    row["changed_at"] = None if manual is None else manual.at
    row["changed_why"] = None if manual is None else manual.why
    return row


def item_rows(data: ReportData) -> list[Row]:
    """One row for each item of the checklist of each case."""
    return [
        _item_row(task, case, item)
        for task in data.tasks
        for case in task.cases
        for item in case.items
    ]


_ITEM_COLUMNS = ("id", "kind", "judged", "group", "points", "earned", "state", "words")


def _item_row(task: TaskEntry, case: CaseEntry, item: ItemRecord) -> Row:
    official = item.get("official") or item.get("standard")
    return {
        "task_id": task.task_id,
        "sample": task.sample,
        "case": case.case,
        **{name: item.get(name) for name in _ITEM_COLUMNS},
        "expected": _value_in_words(item.get("expected")),
        "found": _value_in_words(item.get("found")),
        "place": item.get("place"),
        "detail": item.get("detail"),
        "other_reading": None if official is None else official["state"],
        "fault": item.get("fault"),
    }


def _value_in_words(value: object) -> str | None:
    return None if value is None else in_words(value)


def episode_rows(data: ReportData) -> list[Row]:
    """One row for each desktop episode: its setting, its end, its turns, actions and time."""
    rows = []
    for task in data.tasks:
        for case in task.cases:
            if (episode := case.episode) is None:
                continue
            row: Row = {"task_id": task.task_id, "sample": task.sample, "case": case.case}
            row["verdict"] = case.verdict
            row |= asdict(episode)
            row["as_published"] = " ".join(episode.as_published)
            rows.append(row)
    return rows


def setting_rows(data: ReportData) -> list[Row]:
    """One row for each setting of desktop episodes and each class of tasks."""
    return [
        {
            "model": row.model,
            "observation": row.observation,
            "action_space": row.action_space,
            "history": row.history,
            "instruction": row.instruction,
            "oracle_plan": row.oracle_plan,
            "gui_only": row.gui_only,
            "heading": cell.heading,
            "label": cell.label,
            "tasks": cell.tasks,
            "solved": cell.solved.value,
            "solved_low": cell.solved.low,
            "solved_high": cell.solved.high,
        }
        for row in (() if data.episodes is None else data.episodes.settings)
        for cell in row.cells
    ]


def histogram_rows(data: ReportData) -> list[Row]:
    """One row for each bar of the histograms of actions and turns."""
    summary = data.episodes
    bars = () if summary is None else (("steps", summary.steps), ("turns", summary.turns))
    return [{"of": name, **asdict(bar)} for name, bars_of in bars for bar in bars_of]


def ending_rows(data: ReportData) -> list[Row]:
    """One row for each way that desktop episodes ended."""
    return [asdict(ending) for ending in (() if data.episodes is None else data.episodes.endings)]


TABLES: Mapping[str, Callable[[ReportData], list[Row]]] = {
    "scores": score_rows,
    "paper": column_rows,
    "tasks": task_rows,
    "cases": case_rows,
    "items": item_rows,
    "episodes": episode_rows,
    "settings": setting_rows,
    "histogram": histogram_rows,
    "endings": ending_rows,
}
"""Name of a table -> its rows."""


def to_csv(rows: Sequence[Row]) -> str:
    """Rows as CSV with a header; unknown values are blank.

    Text that looks like a formula is defused, because it comes from solutions and workbooks.
    """
    if not rows:
        return ""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _csv_value(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def _csv_value(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return as_csv_text(value.replace("\0", "\N{REPLACEMENT CHARACTER}"))
    return value


_NOT_IN_NAMES = re.compile(r"[^\w.-]+")
_USAGE = (
    *("submissions", "calls", "retries", "truncated", "not_alone"),
    *("prompt_tokens", "completion_tokens", "cost_usd", "inference_s"),
)


def metrics_of(data: ReportData) -> dict[str, float]:
    """The numbers of a report; a number that is not known has no entry.

    Args:
        data: the report.

    Returns:
        Name -> number. Scores and shares are fractions from 0 to 1.
    """
    metrics: dict[str, float] = {}
    for name, value in _metrics(data):
        if value is None:
            continue
        # Groups whose names differ only in characters that trackers do not accept are numbered.
        numbered = (name if number == 1 else f"{name}_{number}" for number in itertools.count(1))
        metrics[next(free for free in numbered if free not in metrics)] = float(value)
    return metrics


def _metrics(data: ReportData) -> Iterator[tuple[str, float | None]]:
    overall = data.overall
    yield from _bounded("soft", overall.soft_restriction)
    yield from _bounded("hard", overall.hard_restriction)
    yield "soft_of_all", overall.soft_of_all
    yield "hard_of_all", overall.hard_of_all
    for name in ("tasks", "cases", "all_tasks", "all_cases"):
        yield name, getattr(overall, name)
    yield "tasks_without_submission", data.tasks_without_submission
    for breakdown in (data.by_instruction_type, *data.breakdowns):
        for group in breakdown.groups:
            yield from _group(f"by/{_named(breakdown.key)}/{_named(group.key)}", group.scores)
    yield from _counts("verdict", overall.verdicts)
    yield from _counts(
        "difference", {difference.kind: difference.cases for difference in data.differences}
    )
    for measure in data.measures:
        for statistic in ("total", "mean", "median", "p95", "maximum"):
            yield f"measure/{_named(measure.key)}/{statistic}", getattr(measure, statistic)
    if data.usage is not None:
        usage: Mapping[str, object] = {**data.usage}
        for name in _USAGE:
            value = usage.get(name)
            yield f"usage/{name}", value if isinstance(value, int | float) else None
    if data.repeated is not None:
        yield from _samples(data)


def _bounded(name: str, estimate: Estimate) -> Iterator[tuple[str, float | None]]:
    yield name, estimate.value
    yield f"{name}_low", estimate.low
    yield f"{name}_high", estimate.high


def _group(name: str, scores: Scores) -> Iterator[tuple[str, float | None]]:
    yield f"{name}/soft", scores.soft_restriction.value
    yield f"{name}/hard", scores.hard_restriction.value
    yield f"{name}/tasks", scores.tasks


def _counts(name: str, counts: Mapping[str, int]) -> Iterator[tuple[str, float | None]]:
    for key, count in counts.items():
        yield f"{name}/{_named(key)}", count


def _samples(data: ReportData) -> Iterator[tuple[str, float | None]]:
    repeated = data.repeated
    assert repeated is not None
    yield "samples/number", repeated.samples
    yield "samples/soft_sd", repeated.soft_sd
    yield "samples/hard_sd", repeated.hard_sd
    yield "samples/best_of", repeated.best_of
    for k, share in repeated.pass_at.items():
        yield f"samples/pass_at/{k}", share
    for k, share in repeated.pass_hat.items():
        yield f"samples/pass_hat/{k}", share


def _named(key: str) -> str:
    """A part of a name, with ``_`` in place of characters that trackers do not accept."""
    return _NOT_IN_NAMES.sub("_", key) or "_"
