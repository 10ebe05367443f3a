"""Submissions and their cases in a report, as data.

Sizes are bytes, times seconds; ``None`` means that a number is not known or not defined.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from judge.grading.overrides import ManualVerdict
from judge.report.episode_model import EpisodeEntry
from judge.report.suspect_model import CaseSuspect


@dataclass(frozen=True, slots=True)
class CaseEntry:
    """One test case of one submission.

    Attributes:
        case: 1-based number.
        verdict: the code; None where the case was not run.
        phase: where the verdict fell; None where the case was not run.
        cause: one line for people.
        manual: set where a person changed the verdict.
        cpu_s: processor time of the run.
        wall_s: wall time of the run.
        recalculation_s: time spent on computing formulas.
        comparison_s: time spent on comparing.
        peak_memory_bytes: the run's peak.
        input_bytes: size of the input workbook.
        output_bytes: size of the output workbook.
        input_rows: rows of the input's highest sheet, from the first to the last that is used.
        input_columns: columns of the input's widest sheet.
        answer_cells: cells that were compared.
        differing_cells: how many of them differ.
        computed_cells: formula cells of the output that an engine computed.
        engines: engines that computed something.
        difference_counts: class -> differing cells.
        official_equal: what the published script says; None where it was not asked.
        official_disagrees: whether it disagrees with the verdict.
        notes: liberties and doubts that the comparison recorded.
        output_sha256: under which the output workbook is stored; None where there is none.
        suspects: reasons to doubt its gold.
        episode: the desktop episode that left the output; None where there was none.
    """

    case: int
    verdict: str | None
    phase: str | None
    cause: str
    manual: ManualVerdict | None
    cpu_s: float | None
    wall_s: float | None
    recalculation_s: float | None
    comparison_s: float | None
    peak_memory_bytes: int | None
    input_bytes: int | None
    output_bytes: int | None
    input_rows: int | None
    input_columns: int | None
    answer_cells: int | None
    differing_cells: int | None
    computed_cells: int | None
    engines: tuple[str, ...]
    difference_counts: Mapping[str, int]
    official_equal: bool | None
    official_disagrees: bool
    notes: tuple[str, ...]
    output_sha256: str | None
    suspects: tuple[CaseSuspect, ...] = ()
    episode: EpisodeEntry | None = None


@dataclass(frozen=True, slots=True)
class TaskEntry:
    """One submission of one task.

    Attributes:
        task_id: the task's id as text.
        sample: 0-based number among several solutions of the same task.
        instruction_type: in the benchmark's words.
        instruction: the question; None if the suite is not available.
        answer_position: as the suite has it; None if the suite is not available.
        soft_restriction: soft score; None where no case is scored.
        hard_restriction: hard score; None where no case is scored.
        groups: breakdown key -> group key, for every breakdown that the task has a part in.
        cases: the cases in order.
        difference_kinds: classes of differences over all cases.
        official_disagrees: whether the published script disagrees on some case.
        model: the chat model, where known.
        setting: the inference setting, where known.
        rounds: rounds of the conversation.
        prompt_tokens: tokens asked.
        completion_tokens: tokens answered.
        cost_usd: US dollars.
        inference_s: seconds that the chat model took.
        run_wall_s: wall time of all runs.
        peak_memory_bytes: highest peak of all runs.
    """

    task_id: str
    sample: int
    instruction_type: str
    instruction: str | None
    answer_position: str | None
    soft_restriction: float | None
    hard_restriction: float | None
    groups: Mapping[str, str]
    cases: tuple[CaseEntry, ...]
    difference_kinds: tuple[str, ...]
    official_disagrees: bool
    model: str | None
    setting: str | None
    rounds: int | None
    prompt_tokens: int | None
    completion_tokens: int | None
    cost_usd: float | None
    inference_s: float | None
    run_wall_s: float | None
    peak_memory_bytes: int | None

    @property
    def key(self) -> tuple[str, int]:
        """What makes the entry distinct within a run: (task id, sample)."""
        return (self.task_id, self.sample)
