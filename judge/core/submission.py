"""Submissions, and the answers that are taken from them and judged."""

from __future__ import annotations

import enum
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class KeptOutput:
    """The output of a desktop episode for one case; its file is kept in a results directory.

    Attributes:
        folder: the results directory.
        sha256: hash of the file's content; None if no file was left.
        name: the file's name on the desktop.
        ended: why the episode ended; ``fail`` means the answer "the task cannot be done".
        gui_only: whether only mouse and keyboard were used, which means that the spreadsheet
            program wrote the file.
        problem: why there is no file.
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
        output_path: absolute path that the program has to write its output to.
        model: the chat model that wrote it, if known.
        setting: the inference setting, if known (``single``, ``multi`` …).
        expected: verdict codes that a sample submission must get, one per case; a single code
            stands for every case; empty if nothing is expected.
        label: a short name for people (``values``, ``formulas``, ``reads-wrong-column``).
        provenance: everything else that was recorded with it (conversation, tokens, cost,
            seconds), kept unchanged.
        answer: the typed answer, if the task asks for text; no program is run.
        outputs: number of a case -> output of its episode, if the task was done on a desktop; no
            program is run.
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
        """The key that identifies a submission within a run: (task id, sample)."""
        return (self.task_id, self.sample)


class AnswerForm(enum.StrEnum):
    """The form of answer that a task expects."""

    WORKBOOK = "workbook"
    TABLE = "table"
    FILES = "files"
    """The answer consists of several files."""
    TEXT = "text"
    """The answer is typed; there is no file."""

    @property
    def noun(self) -> str:
        """What messages call an answer of this form."""
        return _NOUNS[self]

    @property
    def unit(self) -> str:
        """The plural name of the units that are compared one by one."""
        return "cells" if self.is_file else "values"

    @property
    def is_file(self) -> bool:
        """Whether the answer is a file that a program writes."""
        return self is not AnswerForm.TEXT

    @property
    def missing(self) -> str:
        """The message for a reply or a program without an answer of this form."""
        if not self.is_file:
            return f"the reply holds no {self.noun}"
        return f"the program ended without writing the {self.noun}"


_NOUNS = {
    AnswerForm.WORKBOOK: "output workbook",
    AnswerForm.TABLE: "output table",
    AnswerForm.FILES: "output files",
    AnswerForm.TEXT: "answer",
}


class Origin(enum.Enum):
    """Where a workbook comes from, which decides whether its cached values are trusted."""

    GOLD = "gold"
    """A published workbook: its cached values are trusted if it was written by a program that
    calculates formulas."""
    SOLUTION = "solution"
    """A workbook from the sandbox, where no program calculates formulas: a cached value can only be
    a placeholder, stale or forged, so every formula is computed."""
    FINISHED = "finished"
    """An output that was made elsewhere; trusted like a gold."""


@dataclass(frozen=True, slots=True)
class AnswerFile:
    """A file of a submission; it may be hostile.

    Attributes:
        name: its name.
        data: its bytes.
    """

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """A submission's answer for one test case.

    Attributes:
        origin: where it comes from.
        files: the files; the first is the one that the task asks for.
        text: the typed answer, if the task asks for text.
        values: name of a variable -> its value, if the values are given directly, as for golds,
            and not read from text.
    """

    origin: Origin
    files: tuple[AnswerFile, ...] = ()
    text: str | None = None
    values: Mapping[str, object] | None = None

    @staticmethod
    def of_workbook(data: bytes, origin: Origin, name: str = "output") -> Answer:
        """An answer that is one workbook."""
        return Answer(origin, (AnswerFile(name, data),))

    @property
    def data(self) -> bytes:
        """The bytes of the file that the task asks for.

        Raises:
            ValueError: the answer has no file; callers check the form first.
        """
        if not self.files:
            raise ValueError("the answer has no file")
        return self.files[0].data


_MAX_GAP = 1024  # sample numbers further apart are kept in a dictionary


class SampleNumbers:
    """Maps the sample numbers of a task, which count from 0, to other numbers.

    The numbers are stored in an array, and in a mapping for very large sample numbers, so that a
    record with an enormous sample number takes no more memory than any other.
    """

    __slots__ = ("_far", "_near")

    def __init__(self) -> None:
        self._near = array("q")
        self._far: dict[int, int] = {}

    def get(self, sample: int) -> int | None:
        """Returns the number of a sample, or None if none was set."""
        if 0 <= sample < len(self._near) and self._near[sample] >= 0:
            return self._near[sample]
        return self._far.get(sample)

    def put(self, sample: int, number: int) -> None:
        """Sets the number of a sample; numbers are 0 or more."""
        if 0 <= sample < 2 * len(self._near) + _MAX_GAP:
            missing = sample + 1 - len(self._near)
            if missing > 0:
                self._near.extend([-1] * missing)
            self._near[sample] = number
        else:
            self._far[sample] = number

    def __iter__(self) -> Iterator[int]:
        yield from (sample for sample, number in enumerate(self._near) if number >= 0)
        yield from self._far
