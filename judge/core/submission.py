"""A submission: code to judge, with where it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Submission:
    """One solution of one task.

    Attributes:
        task_id: the task's id as text.
        code: the Python program, or None if the reply held no code.
        sample: 0-based number among several solutions of the same task.
        input_path: absolute path at which the program expects its input.
        output_path: absolute path at which the program is expected to leave its output.
        model: the chat model that wrote it, if known.
        setting: the inference setting, if known (``single``, ``multi`` …).
        expected: verdict codes that a sample submission must get, one per case; a single code
            stands for every case; empty if nothing is expected.
        label: a short name for people (``values``, ``formulas``, ``reads-wrong-column``).
        provenance: everything else that was recorded with it (conversation, tokens, cost,
            seconds), kept unchanged.
        answer: what was typed as the answer, if the task asks for text; no program is run.
    """

    task_id: str
    code: str | None
    input_path: str
    output_path: str
    sample: int = 0
    model: str | None = None
    setting: str | None = None
    expected: tuple[str, ...] = ()
    label: str | None = None
    provenance: Mapping[str, object] = field(default_factory=dict)
    answer: str | None = None

    @property
    def key(self) -> tuple[str, int]:
        """What makes a submission distinct within a run: (task id, sample)."""
        return (self.task_id, self.sample)
