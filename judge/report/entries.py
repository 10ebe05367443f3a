"""The rows of a report: one for each submission, with its cases. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from judge.core.records.cases import CaseComparison, CaseRun
from judge.core.score import SubmissionScore
from judge.core.verdict import Verdict
from judge.grading.overrides import Overrides
from judge.report.entry_model import CaseEntry, TaskEntry
from judge.report.files import UNKNOWN_FILES, CaseFiles, CaseFilesByCase
from judge.report.load import LoadedSubmission
from judge.report.suspect_model import CaseSuspect
from judge.suspects.decisions import Suspicions


def task_entry(
    submission: LoadedSubmission,
    score: SubmissionScore,
    overrides: Overrides,
    files: CaseFilesByCase,
    groups: Mapping[str, str],
    suspicions: Suspicions | None = None,
) -> TaskEntry:
    """What a report says of one submission.

    Args:
        submission: the submission with its results.
        score: its scores.
        overrides: changes by hand.
        files: what is known of the workbooks.
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
    asking = submission.asking
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
        model=asking.model,
        setting=asking.setting,
        rounds=asking.rounds,
        prompt_tokens=_whole(asking.prompt_tokens),
        completion_tokens=_whole(asking.completion_tokens),
        cost_usd=_float(asking.cost_usd),
        inference_s=_float(asking.seconds),
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
            sign=each.suspect.sign,
            certainty=each.certainty.value,
            standing=each.standing.value,
            whole_task=each.suspect.case is None,
            summary=each.suspect.summary,
            why=each.suspect.why,
            decisions=tuple(
                f"{said.finding}, by {said.by} on {said.at[:10]}: {said.reason}"
                for said in each.decisions
            ),
        )
        for each in suspicions.of_case(task_id, case)
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
    official = comparison.get("official_equal")
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
        official_equal=official,
        # Compared with the judge's own verdict: a person's is about more than these rules.
        official_disagrees=automatic is not None
        and official is not None
        and official != (automatic.verdict is Verdict.AC),
        notes=tuple(comparison.get("notes", ())),
        output_sha256=run.get("output_sha256"),
        suspects=suspects,
        episode=submission.episodes.get(number),
    )


def difference_counts(comparison: CaseComparison) -> dict[str, int]:
    """Class -> differing cells of one comparison, those classes that occur."""
    return {kind: n for kind, n in comparison.get("difference_counts", {}).items() if n}


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _float(value: float | None) -> float | None:
    return None if value is None else float(value)
