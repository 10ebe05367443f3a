"""Counts calls, errors, tokens and time of episodes with tools, by tool and instruction type. Pure.

An imported trajectory may lack some of the figures. Missing figures are left out of the sums; a sum
is null if all of them are missing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median, quantiles

from judge.core.conversation import estimate_tokens
from judge.core.records.tool_episodes import TokenRecord, ToolCallLine
from judge.core.score import SubmissionScore
from judge.desktop.episodes import episode_path
from judge.errors import StoreError
from judge.files.documents import dump_json
from judge.report.load import LoadedRun, LoadedSubmission
from judge.tools.episodes import (
    ToolEpisode,
    has_tool_episodes,
    read_definitions,
    read_tool_episode,
)

VIEWING_TOOLS = frozenset(
    {
        *("python", "bash", "list_sheets", "view_range", "find", "recalc", "render", "diff"),
        "view_xlsx",
    }
)
"""Tools of the judge and of SpreadsheetBench 2 that can show the contents of the workbook. For
tools with other names, this is not known."""

SUBMIT = "submit"
_MAX_TOOLS = 100
_MAX_NAME_CHARS = 80


@dataclass(frozen=True, slots=True)
class ToolUse:
    """How a tool was used.

    Attributes:
        tool: its name.
        calls: number of calls.
        errors: number of calls that failed.
        tasks: number of tasks that called it.
        score_with: soft score of these tasks, from 0 to 1.
        score_without: soft score of the other tasks; None if it was called in every task.
    """

    tool: str
    calls: int
    errors: int
    tasks: int
    score_with: float | None
    score_without: float | None


@dataclass(frozen=True, slots=True)
class ToolFigures:
    """The episodes of a run, or of one type of instruction.

    Attributes:
        label: the type of instruction; ``Overall`` for all.
        tasks: number of tasks with an episode.
        episodes: number of episodes.
        ended: why they ended -> episodes; ``unknown`` if an imported trajectory does not say,
            ``interrupted`` if no end is on record.
        calls: number of calls.
        calls_median: the median number of calls in an episode.
        calls_p90: 90 % of the episodes have at most this many calls.
        errors: kind of error -> number of calls.
        repairs: number of arguments that were repaired.
        prompt_tokens: tokens of all requests; like each figure below, None if no episode has it.
        cached_tokens: tokens of the requests that the server had in its cache.
        completion_tokens: tokens of the replies.
        definition_tokens: an estimate of how many tokens of the requests define the tools.
        cost: cost in dollars; None unless every episode has it.
        model_s: seconds taken by the model's replies.
        tools_s: seconds taken by calls.
        waiting_s: all other seconds of the episodes.
        unseen: episodes that submitted without viewing the workbook after the last change.
        unseen_of: episodes for which this is known.
    """

    label: str
    tasks: int
    episodes: int
    ended: Mapping[str, int]
    calls: int
    calls_median: float
    calls_p90: float
    errors: Mapping[str, int]
    repairs: int
    prompt_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int | None
    definition_tokens: int | None
    cost: float | None
    model_s: float | None
    tools_s: float | None
    waiting_s: float | None
    unseen: int
    unseen_of: int

    @property
    def error_share(self) -> float | None:
        """The share of calls with an error; None if there are no calls."""
        return sum(self.errors.values()) / self.calls if self.calls else None

    @property
    def definition_share(self) -> float | None:
        """The estimated share of the definitions in the tokens of the requests."""
        if not self.prompt_tokens or self.definition_tokens is None:
            return None
        return min(self.definition_tokens / self.prompt_tokens, 1.0)


@dataclass(frozen=True, slots=True)
class ToolsSummary:
    """Figures on the episodes with tools of a run.

    Attributes:
        tools: the tool set, as ``--tools`` names it, or the agent of imported trajectories.
        answer: ``workbook`` or ``program``: figures of the two are not comparable.
        imported: the format of imported trajectories; empty for the judge's own episodes.
        groups: all episodes first, then those of each type of instruction if there are several.
        by_tool: how each tool was used, the most frequent first.
        as_published: departures of the published agent from its description that are reproduced.
        corrected: departures of the published agent from its description that are corrected.
        problems: one line for each episode that cannot be read.
    """

    tools: str
    answer: str
    imported: str
    groups: tuple[ToolFigures, ...]
    by_tool: tuple[ToolUse, ...]
    as_published: tuple[str, ...] = ()
    corrected: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def overall(self) -> ToolFigures:
        """The figures on all episodes."""
        return self.groups[0]


@dataclass(slots=True)
class _Group:
    """Episodes that are being counted."""

    tasks: set[str] = field(default_factory=set)
    ended: Counter[str] = field(default_factory=Counter)
    calls: list[int] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    repairs: int = 0
    tokens: dict[str, int] = field(default_factory=dict)
    definitions: int | None = None
    costs: list[float | None] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    unseen: int = 0
    unseen_of: int = 0

    def add(self, episode: ToolEpisode, definition_tokens: int | None) -> None:
        """Counts an episode.

        Args:
            episode: the episode.
            definition_tokens: tokens that the definitions of the tools take in each request; None
                if that is not known.
        """
        lines = [call for turn in episode.turns for call in turn["calls"]]
        end = episode.end
        self.tasks.add(episode.key[0])
        word = "interrupted" if end is None else end["ended"] or "unknown"
        self.ended[word[:_MAX_NAME_CHARS]] += 1
        self.calls.append(len(lines))
        self.errors.update(call.get("error", "tool") for call in lines if not call["ok"])
        self.repairs += sum(len(call.get("repairs", ())) for call in lines)
        tokens = _tokens_of(episode)
        for name, count in tokens.items():
            self.tokens[name] = self.tokens.get(name, 0) + count
        if definition_tokens is not None:
            self.definitions = (self.definitions or 0) + definition_tokens * len(episode.turns)
        costs = [turn.get("cost") for turn in episode.turns]
        known_costs = [cost for cost in costs if cost is not None]
        whole = None if end is None else end.get("cost")
        self.costs.append(
            whole
            if whole is not None
            else sum(known_costs)
            if len(known_costs) == len(costs)
            else None
        )
        self._add_seconds(episode, lines)
        looked = _looked_after_change(lines)
        if looked is not None:
            self.unseen_of += 1
            self.unseen += not looked

    def _add_seconds(self, episode: ToolEpisode, lines: Sequence[ToolCallLine]) -> None:
        model = [time for turn in episode.turns if (time := turn.get("latency_s")) is not None]
        tools = [time for call in lines if (time := call["seconds"]) is not None]
        whole = None if episode.end is None else episode.end["seconds"]
        for name, parts in (("model", model), ("tools", tools)):
            if parts:
                self.seconds[name] = self.seconds.get(name, 0.0) + sum(parts)
        if whole is not None and (model or tools):
            waiting = max(whole - sum(model) - sum(tools), 0.0)
            self.seconds["waiting"] = self.seconds.get("waiting", 0.0) + waiting

    def figures(self, label: str) -> ToolFigures:
        """The counts."""
        costs = [cost for cost in self.costs if cost is not None]
        return ToolFigures(
            label=label,
            tasks=len(self.tasks),
            episodes=len(self.calls),
            ended=dict(self.ended.most_common()),
            calls=sum(self.calls),
            calls_median=median(self.calls),
            calls_p90=_p90(self.calls),
            errors=dict(self.errors.most_common()),
            repairs=self.repairs,
            prompt_tokens=self.tokens.get("prompt"),
            cached_tokens=self.tokens.get("cached"),
            completion_tokens=self.tokens.get("completion"),
            definition_tokens=self.definitions,
            cost=sum(costs) if len(costs) == len(self.costs) else None,
            model_s=self.seconds.get("model"),
            tools_s=self.seconds.get("tools"),
            waiting_s=self.seconds.get("waiting"),
            unseen=self.unseen,
            unseen_of=self.unseen_of,
        )


def summarise_tools(
    run: LoadedRun, scored: Iterable[tuple[LoadedSubmission, SubmissionScore]]
) -> ToolsSummary | None:
    """Counts the episodes with tools of a run; None if the run has no such episodes.

    Args:
        run: the run.
        scored: the submissions that count, with their scores.
    """
    if not has_tool_episodes(run.run.get("setting")):
        return None
    overall, groups = _Group(), defaultdict[str, _Group](_Group)
    uses: dict[str, Counter[str]] = defaultdict(Counter)
    used_in: dict[str, set[str]] = defaultdict(set)
    soft: dict[str, list[float]] = defaultdict(list)
    definitions: dict[str, int | None] = {}
    problems: list[str] = []
    first: ToolEpisode | None = None
    for submission, score in scored:
        for episode in _episodes(run, submission, problems):
            first = first or episode
            task_id = submission.task_id
            if score.soft is not None:
                soft[task_id].append(score.soft)
            digest = episode.head["tools"]
            if digest not in definitions:
                definitions[digest] = _definition_tokens(run, digest)
            overall.add(episode, definitions[digest])
            if submission.instruction_type:
                groups[submission.instruction_type].add(episode, definitions[digest])
            for call in (call for turn in episode.turns for call in turn["calls"]):
                name = call["tool"][:_MAX_NAME_CHARS]
                uses[name]["calls"] += 1
                uses[name]["errors"] += not call["ok"]
                used_in[name].add(task_id)
    if first is None:
        return None
    identity = (run.run.get("inference") or {}).get("tools")
    setting = (run.run.get("setting") or "").partition("/")[2]
    parts = [tally.figures(label) for label, tally in sorted(groups.items())]
    return ToolsSummary(
        tools=(identity["asked"] if identity else setting)[:_MAX_NAME_CHARS],
        answer=first.head["answer"],
        imported=first.head.get("imported", ""),
        groups=(overall.figures("Overall"), *(parts if len(parts) > 1 else ())),
        by_tool=tuple(_uses(uses, used_in, soft)),
        as_published=tuple(identity.get("as_published", ())) if identity else (),
        corrected=tuple(identity.get("corrected", ())) if identity else (),
        problems=tuple(problems),
    )


def _episodes(
    run: LoadedRun, submission: LoadedSubmission, problems: list[str]
) -> Iterator[ToolEpisode]:
    for case in submission.results:
        path = episode_path(run.path, submission.task_id, submission.sample, case)
        if path.exists():
            try:
                yield read_tool_episode(path)
            except StoreError as error:
                problems.append(error.message)


def _uses(
    uses: Mapping[str, Counter[str]],
    used_in: Mapping[str, set[str]],
    soft: Mapping[str, Sequence[float]],
) -> Iterator[ToolUse]:
    scores = {task_id: fmean(values) for task_id, values in soft.items()}
    ordered = sorted(uses.items(), key=lambda item: (-item[1]["calls"], item[0]))
    for name, counts in ordered[:_MAX_TOOLS]:
        with_it = [score for task_id, score in scores.items() if task_id in used_in[name]]
        without = [score for task_id, score in scores.items() if task_id not in used_in[name]]
        yield ToolUse(
            tool=name,
            calls=counts["calls"],
            errors=counts["errors"],
            tasks=len(used_in[name]),
            score_with=fmean(with_it) if with_it else None,
            score_without=fmean(without) if without else None,
        )


def _definition_tokens(run: LoadedRun, digest: str) -> int | None:
    try:
        definitions = read_definitions(run.path, digest)
    except StoreError:
        return None
    return estimate_tokens(dump_json(definitions)) if definitions else None


def _tokens_of(episode: ToolEpisode) -> dict[str, int]:
    """Tokens by kind, from the record of the end or, without one, from the turns."""
    end = episode.end
    whole = (None if end is None else end.get("tokens")) or TokenRecord()
    tokens: dict[str, int] = {}
    for name in ("prompt", "cached", "completion"):
        recorded = whole.get(name)
        if isinstance(recorded, int):
            tokens[name] = recorded
            continue
        counts = [(turn.get("tokens") or TokenRecord()).get(name) for turn in episode.turns]
        counted = [count for count in counts if isinstance(count, int)]
        if counted:
            tokens[name] = sum(counted)
    return tokens


def _looked_after_change(lines: Sequence[ToolCallLine]) -> bool | None:
    """Whether any call could show the workbook after its last change; None if that is unknown.

    The call that made the last change does not count, although it may have shown the result.
    """
    if not lines or all(call["workbook"] is None for call in lines):
        return None
    if any(call["tool"] not in VIEWING_TOOLS and call["tool"] != SUBMIT for call in lines):
        return None
    last = max(
        (
            number
            for number, (before, after) in enumerate(zip([None, *lines], lines, strict=False))
            if after["workbook"] != (None if before is None else before["workbook"])
        ),
        default=0,
    )
    return any(call["tool"] in VIEWING_TOOLS and call["ok"] for call in lines[last + 1 :])


def _p90(counts: Sequence[int]) -> float:
    return quantiles(counts, n=10, method="inclusive")[-1] if len(counts) > 1 else counts[0]


# -- for people -----------------------------------------------------------------------------------


def tools_lines(summary: ToolsSummary) -> Iterator[str]:
    """Lines of text on the tools, and on calls, tokens, cost and time of all episodes."""
    every = summary.overall
    source = f", imported from {summary.imported}" if summary.imported else ""
    yield (
        f"tools {summary.tools}, answers are a {summary.answer}{source}: {every.episodes:,} "
        f"episodes, ended: {counts_in_words(every.ended)}"
    )
    yield (
        f"calls of tools: {every.calls:,}, in an episode {every.calls_median:g} (median), "
        f"{every.calls_p90:g} (90 %); with an error {percent_in_words(every.error_share)}"
        + (f" ({counts_in_words(every.errors)})" if every.errors else "")
        + (f"; {every.repairs:,} arguments were repaired" if every.repairs else "")
    )
    if every.unseen_of:
        yield (
            f"submitted without a look after the last change: {every.unseen:,} of "
            f"{every.unseen_of:,} episodes"
        )
    for words, names in (
        ("as published", summary.as_published),
        ("corrected", summary.corrected),
    ):
        if names:
            departures = "departures of the published agent from its description"
            yield f"{departures} that are {words}: {', '.join(names)}"
    if summary.problems:
        yield f"{len(summary.problems):,} episodes cannot be read ({summary.problems[0]})"


GROUP_HEADINGS = (
    *("tasks", "episodes", "calls", "calls of an episode: median", "90 %", "with an error"),
    *("errors by kind", "repairs", "tokens: requests + replies", "dollars", "seconds"),
)
USE_HEADINGS = ("calls", "with an error", "tasks", "soft % of these", "soft % of the others")
USE_REMARK = (
    "Scores with and without a tool show on which tasks it was used, not what effect it had."
)


def group_cells(figures: ToolFigures) -> list[str]:
    """The figures of a group, under :data:`GROUP_HEADINGS`."""
    return [
        f"{figures.tasks:,}",
        f"{figures.episodes:,}",
        f"{figures.calls:,}",
        f"{figures.calls_median:g}",
        f"{figures.calls_p90:g}",
        percent_in_words(figures.error_share),
        counts_in_words(figures.errors),
        f"{figures.repairs:,}",
        tokens_in_words(figures),
        cost_in_words(figures),
        seconds_in_words(figures),
    ]


def use_cells(use: ToolUse) -> list[str]:
    """The figures of a tool, under :data:`USE_HEADINGS`."""
    return [
        f"{use.calls:,}",
        f"{use.errors:,}",
        f"{use.tasks:,}",
        *("-" if s is None else f"{100 * s:.2f}" for s in (use.score_with, use.score_without)),
    ]


def tokens_in_words(figures: ToolFigures) -> str:
    """Tokens of requests and replies, with the share of the definitions."""
    if figures.prompt_tokens is None and figures.completion_tokens is None:
        return "-"
    prompt = "?" if figures.prompt_tokens is None else f"{figures.prompt_tokens:,}"
    reply = "?" if figures.completion_tokens is None else f"{figures.completion_tokens:,}"
    share = figures.definition_share
    about = "" if share is None else f" (definitions about {100 * share:.0f} %)"
    return f"{prompt}{about} + {reply}"


def seconds_in_words(figures: ToolFigures) -> str:
    """Seconds of model, tools and waiting."""
    parts = (
        ("model", figures.model_s),
        ("tools", figures.tools_s),
        ("waiting", figures.waiting_s),
    )
    shown = [f"{name} {value:,.1f}" for name, value in parts if value is not None]
    return ", ".join(shown) or "-"


def cost_in_words(figures: ToolFigures) -> str:
    """Dollars; a dash if the price of something is not known."""
    return "-" if figures.cost is None else f"{figures.cost:.4f}"


def counts_in_words(counts: Mapping[str, int]) -> str:
    """Names with their counts."""
    return ", ".join(f"{name} {count:,}" for name, count in counts.items()) or "none"


def percent_in_words(share: float | None) -> str:
    """A share as a percentage; a dash for None."""
    return "-" if share is None else f"{100 * share:.1f} %"
