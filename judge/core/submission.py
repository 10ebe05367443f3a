"""A submission: code to judge, or files that were left on a desktop, with where it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class KeptOutput:
    """What an episode on a desktop left for one case; its file is kept in a results directory.

    Attributes:
        folder: the results directory.
        sha256: hash of the file's content; None if no file was left.
        name: the file's name on the desktop.
        ended: why the episode ended; ``fail`` says that the task cannot be done.
        gui_only: whether nothing but mouse and keyboard was used, so that the spreadsheet program
            wrote the file.
        problem: why no file was left.
    """

    folder: Path
    sha256: str | None
    name: str = "output"
    ended: str = "done"
    gui_only: bool = False
    problem: str = ""


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
        outputs: number of a case -> what an episode left, if the task was worked on at a desktop;
            no program is run.
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
    outputs: Mapping[int, KeptOutput] | None = None

    @property
    def key(self) -> tuple[str, int]:
        """What makes a submission distinct within a run: (task id, sample)."""
        return (self.task_id, self.sample)
