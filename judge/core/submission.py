"""A submission, and the answers that it leaves to be judged."""

from __future__ import annotations

import enum
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class KeptOutput:
    """Output of an episode on a desktop for one case; its file is kept in a results directory.

    Attributes:
        folder: the results directory.
        sha256: hash of the file's content; None if no file was left.
        name: the file's name on the desktop.
        ended: why the episode ended; ``fail`` says that the task cannot be done.
        gui_only: whether only mouse and keyboard were used, so that the spreadsheet program
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
        """Key that makes a submission distinct within a run: (task id, sample)."""
        return (self.task_id, self.sample)


class AnswerForm(enum.StrEnum):
    """The form of answer that a task expects."""

    WORKBOOK = "workbook"
    TABLE = "table"
    FILES = "files"
    """Several files."""
    TEXT = "text"
    """A typed answer; no file is left."""

    @property
    def noun(self) -> str:
        """The name of it that messages use."""
        return _NOUNS[self]

    @property
    def unit(self) -> str:
        """The units that are compared one by one, in the plural."""
        return "cells" if self.is_file else "values"

    @property
    def is_file(self) -> bool:
        """Whether a program leaves it as a file."""
        return self is not AnswerForm.TEXT

    @property
    def missing(self) -> str:
        """The message for a program that ended without it."""
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
    """A published workbook: its cached values are trusted where a program that calculates
    wrote it."""
    SOLUTION = "solution"
    """It comes from the sandbox, where nothing calculates: a cached value can only be a
    placeholder, stale or forged, so every formula is computed."""
    FINISHED = "finished"
    """An output that was made elsewhere; trusted like a gold."""


@dataclass(frozen=True, slots=True)
class AnswerFile:
    """A file that a submission left; it may be hostile.

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
        files: the files, the one that the task asks for first.
        text: what was typed, if the task asks for text.
        values: name of a variable -> its value, if they are known without text to read them
            from, as those of golds are.
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
            ValueError: the answer has no file; the caller checks the form first.
        """
        if not self.files:
            raise ValueError("the answer has no file")
        return self.files[0].data


_SPARSE_BEYOND = 1024


class SampleNumbers:
    """A number for each of the samples of a task, which are counted from 0.

    Stored in an array, and in a mapping for very large sample numbers, so that a record that claims
    an enormous one takes no more memory than any other.
    """

    __slots__ = ("_far", "_near")

    def __init__(self) -> None:
        self._near = array("q")
        self._far: dict[int, int] = {}

    def get(self, sample: int) -> int | None:
        """The number of a sample; None where it has none."""
        if 0 <= sample < len(self._near) and self._near[sample] >= 0:
            return self._near[sample]
        return self._far.get(sample)

    def put(self, sample: int, number: int) -> None:
        """Gives a sample a number, from 0 on."""
        if 0 <= sample < 2 * len(self._near) + _SPARSE_BEYOND:
            missing = sample + 1 - len(self._near)
            if missing > 0:
                self._near.extend([-1] * missing)
            self._near[sample] = number
        else:
            self._far[sample] = number

    def __iter__(self) -> Iterator[int]:
        yield from (sample for sample, number in enumerate(self._near) if number >= 0)
        yield from self._far
