"""The submissions of a file with their tasks, in suite order, read when they are needed."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import overload

from judge.core.submission import Submission
from judge.core.task import Task
from judge.errors import SubmissionError
from judge.files.json_lines import LinesAt
from judge.suites.submissions import iterate_submissions, read_submission
from judge.suites.suite import Suite

_SAMPLE_BITS = 64
"""Samples are below 2**63."""


@dataclass(slots=True)
class SubmissionFacts:
    """What is known of all submissions of a file together.

    Attributes:
        models: the chat models that are named.
        setting: the first inference setting that is named.
        tasks: how many tasks have a submission.
        expects: whether any has verdicts that it must get.
    """

    models: set[str] = field(default_factory=set)
    setting: str | None = None
    tasks: int = 0
    expects: bool = False


class SubmissionIndex(Sequence[tuple[Task, Submission]]):
    """Each submission with its task, by the order of the suite's tasks and then by sample.

    About twenty bytes for each are held; a submission is read from its file when it is needed.

    Args:
        suite: the suite.
        lines: the file.
        rows: for each submission the number of its task in the suite, its sample, and the place
            and the length of its line.
        facts: what is known of all together.
    """

    def __init__(
        self,
        suite: Suite,
        lines: LinesAt,
        rows: Iterable[tuple[int, int, int, int]],
        facts: SubmissionFacts,
    ) -> None:
        self._suite = suite
        self._lines = lines
        self.facts = facts
        self._numbers, self._samples = array("I"), array("Q")
        self._places, self._lengths = array("Q"), array("I")
        for number, sample, place, length in rows:
            self._numbers.append(number)
            self._samples.append(sample)
            self._places.append(place)
            self._lengths.append(length)

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> tuple[Task, Submission]: ...

    @overload
    def __getitem__(self, index: slice) -> SubmissionIndex: ...

    def __getitem__(self, index: int | slice) -> tuple[Task, Submission] | SubmissionIndex:
        if isinstance(index, slice):
            return self.only(range(len(self))[index])
        task = self.task(index)
        line = self._lines.read(self._places[index], self._lengths[index])
        key = (task.id, self._samples[index])
        return task, read_submission(line, self._suite, self._lines.path.parent, key)

    def without_program(self, index: int) -> Submission:
        """A submission without its program, which is what takes time to read."""
        line = self._lines.read(self._places[index], self._lengths[index])
        key = (self.task(index).id, self._samples[index])
        folder = self._lines.path.parent
        return read_submission(line, self._suite, folder, key, programs=False)

    def task(self, index: int) -> Task:
        """The task of a submission, which is not read for it."""
        return self._suite.tasks[self._numbers[index]]

    def sample(self, index: int) -> int:
        """The sample of a submission, which is not read for it."""
        return self._samples[index]

    def only(self, indices: Iterable[int]) -> SubmissionIndex:
        """The same with some of the submissions."""
        rows = (
            (self._numbers[index], self._samples[index], self._places[index], self._lengths[index])
            for index in indices
        )
        return SubmissionIndex(self._suite, self._lines, rows, self.facts)

    def close(self) -> None:
        """Closes the file, which is opened again if another submission is needed."""
        self._lines.close()


def index_submissions(path: Path, suite: Suite) -> SubmissionIndex:
    """Finds the submissions of a file; all of them are checked, none is kept.

    Args:
        path: the file.
        suite: the suite that they answer.

    Raises:
        SubmissionError: the file cannot be read or accepted; names every faulty line.
    """
    numbers = {task.id: number for number, task in enumerate(suite.tasks)}
    facts = SubmissionFacts()
    found, samples = array("I"), array("Q")
    places, lengths = array("Q"), array("I")
    for place, length, each in iterate_submissions(path, suite, programs=False):
        found.append(numbers[each.task_id])
        samples.append(each.sample)
        places.append(place)
        lengths.append(length)
        facts.models |= {each.model} if each.model else set()
        facts.setting = facts.setting or each.setting
        facts.expects = facts.expects or bool(each.expected)
    facts.tasks = len(set(found))
    order = sorted(range(len(found)), key=lambda at: found[at] << _SAMPLE_BITS | samples[at])
    rows = ((found[at], samples[at], places[at], lengths[at]) for at in order)
    return SubmissionIndex(suite, LinesAt(path, SubmissionError), rows, facts)
