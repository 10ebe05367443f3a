"""The rows of a report, one for each submission with its cases, and their measurements. Pure."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Mapping
from statistics import median

from judge.core.records.cases import CaseComparison, CaseRun
from judge.core.score import SubmissionScore
from judge.grading.overrides import Overrides
from judge.report.counts import difference_counts
from judge.report.load import LoadedSubmission
from judge.report.model import CaseEntry, CaseSuspect, Distribution, TaskEntry
from judge.report.shapes import UNKNOWN_FILES, CaseFiles, CaseFilesByCase
from judge.report.tally import disagrees_with_published
from judge.suspects.decisions import Suspicions


def task_entry(
    submission: LoadedSubmission,
    score: SubmissionScore,
    overrides: Overrides,
    files: CaseFilesByCase,
    groups: Mapping[str, str],
    suspicions: Suspicions | None = None,
) -> TaskEntry:
    """The row of one submission.

    Args:
        submission: the submission with its results.
        score: its scores.
        overrides: changes by hand.
        files: sizes and shapes of the workbooks.
        groups: breakdown key -> group key of its task.
        suspicions: golds that may be at fault.
    """
    cases = tuple(
        _case_entry(
            submission,
            number,
            overrides,
            files.get((submission.task_id, number), UNKNOWN_FILES),
            case_suspects(suspicions, submission.task_id, number),
        )
        for number in submission.cases
    )
    usage = submission.usage
    walls = [case.wall_s for case in cases if case.wall_s is not None]
    kinds = {kind: None for case in cases for kind in case.difference_counts}
    return TaskEntry(
        task_id=submission.task_id,
        sample=submission.sample,
        instruction_type=submission.instruction_type,
        instruction=None if submission.task is None else submission.task.instruction,
        answer_position=None
        if submission.task is None
        else submission.task.details.get("answer_position"),
        soft_restriction=score.soft,
        hard_restriction=score.hard,
        groups=groups,
        cases=cases,
        difference_kinds=tuple(kinds),
        official_disagrees=any(case.official_disagrees for case in cases),
        model=usage.model,
        setting=usage.setting,
        rounds=usage.rounds,
        prompt_tokens=_whole(usage.prompt_tokens),
        completion_tokens=_whole(usage.completion_tokens),
        cost_usd=_float(usage.cost_usd),
        inference_s=_float(usage.seconds),
        run_wall_s=sum(walls) if walls else None,
        peak_memory_bytes=max(
            (case.peak_memory_bytes for case in cases if case.peak_memory_bytes is not None),
            default=None,
        ),
    )


def case_suspects(
    suspicions: Suspicions | None, task_id: str, case: int
) -> tuple[CaseSuspect, ...]:
    """The reasons to doubt the gold of a case."""
    if suspicions is None:
        return ()
    return tuple(
        CaseSuspect(
            sign=reviewed.suspect.sign,
            certainty=reviewed.certainty.value,
            status=reviewed.status.value,
            whole_task=reviewed.suspect.case is None,
            summary=reviewed.suspect.summary,
            why=reviewed.suspect.why,
            decisions=tuple(
                f"{decision.finding}, by {decision.by} on {decision.at[:10]}: {decision.reason}"
                for decision in reviewed.decisions
            ),
            seen=reviewed.suspect.seen,
            runs=reviewed.suspect.runs,
        )
        for reviewed in suspicions.of_case(task_id, case)
    )


def _case_entry(
    submission: LoadedSubmission,
    number: int,
    overrides: Overrides,
    files: CaseFiles,
    suspects: tuple[CaseSuspect, ...],
) -> CaseEntry:
    result = submission.results.get(number)
    automatic = submission.automatic.get(number)
    run = CaseRun() if automatic is None else automatic.run
    comparison = CaseComparison() if automatic is None else automatic.comparison
    timings_s = {} if automatic is None else automatic.timings_s
    return CaseEntry(
        case=number,
        verdict=None if result is None else result.verdict.value,
        phase=None if result is None else result.verdict.phase.value,
        cause="not run" if result is None else result.cause,
        manual=overrides.applied.get((submission.task_id, submission.sample, number)),
        cpu_s=_float(run.get("cpu_s")),
        wall_s=_float(run.get("wall_s")),
        recalculation_s=timings_s.get("recalculation"),
        comparison_s=timings_s.get("comparison"),
        peak_memory_bytes=run.get("peak_memory_bytes"),
        input_bytes=files.input_bytes,
        output_bytes=run.get("output_bytes"),
        input_rows=None if files.shape is None else files.shape.rows,
        input_columns=None if files.shape is None else files.shape.columns,
        answer_cells=files.answer_cells,
        differing_cells=comparison.get("differing_cells"),
        computed_cells=comparison.get("computed_cells", {}).get("output"),
        engines=tuple(comparison.get("engines", ())),
        difference_counts=difference_counts(comparison),
        official_equal=comparison.get("official_equal"),
        official_disagrees=automatic is not None
        and disagrees_with_published(automatic, automatic.verdict),
        notes=tuple(comparison.get("notes", ())),
        output_sha256=run.get("output_sha256"),
        suspects=suspects,
        episode=submission.episodes.get(number),
        items=tuple(comparison.get("items", ())),
        damage=comparison["collateral"].get("damage") if "collateral" in comparison else None,
        dynamic=comparison["dynamic"]["class"] if "dynamic" in comparison else None,
    )


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _float(value: float | None) -> float | None:
    return None if value is None else float(value)


_Number = float | int | None


def _ended(case: CaseEntry, name: str) -> _Number:
    """One measurement of a finished episode."""
    episode = case.episode
    number: _Number = None if episode is None or not episode.ended else getattr(episode, name)
    return number


_OF_CASES: tuple[tuple[str, str, Callable[[CaseEntry], _Number]], ...] = (
    ("run_wall_s", "Run, wall time (s)", lambda case: case.wall_s),
    ("run_cpu_s", "Run, processor time (s)", lambda case: case.cpu_s),
    ("peak_memory_bytes", "Run, peak memory (bytes)", lambda case: case.peak_memory_bytes),
    ("recalculation_s", "Recalculation (s)", lambda case: case.recalculation_s),
    ("comparison_s", "Comparison (s)", lambda case: case.comparison_s),
    ("episode_turns", "Turns of an episode", lambda case: _ended(case, "turns")),
    ("episode_steps", "Actions of an episode", lambda case: _ended(case, "steps")),
    ("episode_s", "Episode (s)", lambda case: _ended(case, "seconds")),
)
_OF_TASKS: tuple[tuple[str, str, Callable[[TaskEntry], _Number]], ...] = (
    ("rounds", "Rounds", lambda task: task.rounds),
    ("prompt_tokens", "Tokens of the prompts", lambda task: task.prompt_tokens),
    ("completion_tokens", "Tokens of the replies", lambda task: task.completion_tokens),
    ("cost_usd", "Cost (US dollars)", lambda task: task.cost_usd),
    ("inference_s", "Chat model (s)", lambda task: task.inference_s),
)
_WITHOUT_SUM = frozenset({"peak_memory_bytes"})


class Measured:
    """Measurements, collected submission by submission; eight bytes for each number."""

    def __init__(self) -> None:
        self._of_cases = [array("d") for _ in _OF_CASES]
        self._of_tasks = [array("d") for _ in _OF_TASKS]

    def add(self, task: TaskEntry) -> None:
        """Adds a submission with its cases."""
        for numbers, (_, _, read_task) in zip(self._of_tasks, _OF_TASKS, strict=True):
            if (number := read_task(task)) is not None:
                numbers.append(number)
        for case in task.cases:
            for numbers, (_, _, read_case) in zip(self._of_cases, _OF_CASES, strict=True):
                if (number := read_case(case)) is not None:
                    numbers.append(number)

    def distributions(self) -> tuple[Distribution, ...]:
        """The distribution of each quantity that was measured."""
        cases = zip(_OF_CASES, self._of_cases, strict=True)
        tasks = zip(_OF_TASKS, self._of_tasks, strict=True)
        distributions = [
            _distribution(key, label, "case", numbers) for (key, label, _), numbers in cases
        ]
        distributions += [
            _distribution(key, label, "task", numbers) for (key, label, _), numbers in tasks
        ]
        return tuple(distribution for distribution in distributions if distribution is not None)


def _distribution(key: str, label: str, per: str, numbers: Iterable[float]) -> Distribution | None:
    ordered = sorted(numbers)
    if not ordered:
        return None
    total = math.fsum(ordered)
    return Distribution(
        key=key,
        label=label,
        per=per,
        count=len(ordered),
        total=None if key in _WITHOUT_SUM else total,
        mean=total / len(ordered),
        median=median(ordered),
        # The smallest number that at least 95 % do not exceed.
        p95=ordered[math.ceil(0.95 * len(ordered)) - 1],
        maximum=ordered[-1],
    )
