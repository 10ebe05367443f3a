"""Reads files of solutions: the judge's, other people's, and the benchmark's logs.

:func:`load_submissions` loads all submissions; :func:`index_submissions` checks all of them, but
keeps only their positions in the file, in suite order.
"""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import overload

from judge.core.replies.extract import recorded_program
from judge.core.submission import Submission
from judge.core.task import Task
from judge.errors import SubmissionError
from judge.files.documents import MIB, read_text
from judge.files.json_lines import LinesAt, read_placed_lines
from judge.suites.formats import SuiteFormat
from judge.suites.submission_lines import LineError, LineReader, lacks, solution_paths
from judge.suites.suite import Suite

_MAX_SHOWN = 20
_MAX_PROGRAM_BYTES = 16 * MIB


def load_submissions(
    path: Path, suite: Suite, *, ids: Collection[str] | None = None
) -> list[Submission]:
    """Reads a file of solutions, one JSON object on each line.

    A record has ``id`` (integer or text) and ``solution`` (a program, or a whole reply with
    fenced code; null if there was none), and optionally ``model``, ``setting``, ``sample``,
    ``conversation``, ``input_path``, ``output_path``, ``expected`` (a verdict code, or one for
    each case) and ``label``. All other fields are kept as provenance. ``conv_*.jsonl`` of the
    benchmark's inference scripts are such files.

    If a task asks for a typed answer, its record has ``response`` instead: the unchanged reply,
    null if there was none. Several replies to a question without a ``sample`` are its samples, in
    file order. If a task was done on a desktop, its record has ``outputs`` instead
    (:mod:`judge.suites.submission_lines`). Some suites can identify a task by other fields than
    ``id`` (:meth:`judge.suites.formats.SuiteFormat.alias_of`).

    Args:
        path: the file.
        suite: the suite that the solutions answer.
        ids: the tasks to read; records of other tasks are skipped, even if the suite lacks them.

    Returns:
        The submissions in file order; they have no ``code`` if the reply holds no program, or if
        the task asks for a typed answer.

    Raises:
        SubmissionError: the file cannot be read or accepted; names every faulty line.
    """
    return [submission for _, _, submission in SubmissionReader(path, suite, ids=ids)]


class SubmissionReader:
    """Reads the submissions of a file, when it is iterated over.

    Faults are raised after the last submission, so the caller must not use any submission before
    all have been read.

    Args:
        path: the file.
        suite: the suite that it answers.
        ids: the tasks to read; None for all.
        programs: if false, programs and their paths are left out, which saves most of the time.
        leaves_out: whether submissions of tasks that the suite lacks are left out, if any line
            answers a task of the suite; otherwise they are a fault.

    Attributes:
        left_out: the ids of the tasks whose submissions were left out; complete after the last one.
    """

    def __init__(
        self,
        path: Path,
        suite: Suite,
        *,
        ids: Collection[str] | None = None,
        programs: bool = True,
        leaves_out: bool = False,
    ) -> None:
        self._path = path
        self._suite = suite
        task_ids = None if ids is None else {str(task_id) for task_id in ids}
        self._lines = LineReader(suite, path.parent, task_ids, programs=programs)
        self._leaves_out = leaves_out
        self.left_out: list[str] = []

    def __iter__(self) -> Iterator[tuple[int, int, Submission]]:
        """Yields each submission with the offset and the length of its line.

        Raises:
            SubmissionError: the file cannot be read or accepted; names every faulty line.
        """
        path, lines = self._path, self._lines
        faults: list[str] = []
        empty = True
        answers_a_task = False
        for number, offset, length, line in _lines(path):
            empty = False
            try:
                submission = lines.read(line, number)
            except LineError as error:
                faults.append(f"line {number}: {error}")
                continue
            if submission is None:
                continue
            if (first := lines.taken.line_of(submission.key)) is not None:
                faults.append(
                    f"line {number}: task {submission.task_id}, sample {submission.sample} "
                    f"is on line {first} already"
                )
                continue
            lines.taken.put(submission.key, number)
            answers_a_task = True
            yield offset, length, submission
        if empty and not path.exists():
            raise SubmissionError(f"{path}: cannot be read: no such file")
        if empty:
            raise SubmissionError(f"{path} is empty: it holds no solution")
        _raise_faults(path, faults)
        if self._leaves_out and answers_a_task:
            self.left_out.extend(lines.unknown)
        else:
            _raise_unknown(path, self._suite, lines.unknown)


def read_submission(
    line: bytes, suite: Suite, folder: Path, key: tuple[str, int], *, programs: bool = True
) -> Submission:
    """Reads again a line that was accepted before.

    Args:
        line: the line.
        suite: the suite that it answers.
        folder: the folder of the file.
        key: the task id and the sample of the submission.
        programs: as for :class:`SubmissionReader`.

    Raises:
        SubmissionError: the line has changed.
    """
    submission: Submission | None = None
    with contextlib.suppress(LineError, UnicodeDecodeError):
        submission = LineReader(suite, folder, programs=programs).read(line.decode("utf-8"), 0)
    if submission is None or submission.task_id != key[0]:
        raise SubmissionError(
            f"the solution of task {key[0]}, sample {key[1]}, has changed while it was in use",
            hint="Run the command again.",
        )
    # A typed answer without a sample number got one when the file was first read.
    return submission if submission.sample == key[1] else replace(submission, sample=key[1])


def submission_of_record(record: Mapping[str, object], suite: Suite) -> Submission:
    """The submission of a record, which has the fields of a line in a file of solutions.

    Args:
        record: fields as for :func:`load_submissions`; not trusted.
        suite: the suite that it answers.

    Raises:
        SubmissionError: the record cannot be accepted, or the suite has no such task.
    """
    try:
        submission = LineReader(suite, None).read_record(record, 0)
    except LineError as error:
        raise SubmissionError(f"task {str(record.get('id'))[:80]}: {error}") from error
    if submission is None:
        raise SubmissionError(
            f"the suite {suite.name} has no task {str(record.get('id'))[:80]}",
            hint="is it the right suite?",
        )
    return submission


def submission_of_program(
    program: Path,
    task: Task,
    suite_format: SuiteFormat,
    *,
    sample: int = 0,
    model: str | None = None,
) -> Submission:
    """A submission of one program file.

    Args:
        program: the Python file, which is used unchanged.
        task: the task that it answers.
        suite_format: the format of the task's suite.
        sample: its number among several programs for the task.
        model: the chat model that wrote it, if known.

    Raises:
        SubmissionError: the file cannot be read.
    """
    code = read_text(program, SubmissionError, max_bytes=_MAX_PROGRAM_BYTES)
    paths = solution_paths(task.question, code, suite_format)
    return Submission(
        task_id=task.id,
        code=code if code.strip() else None,
        input_path=paths.input_path,
        output_path=paths.output_path,
        sample=sample,
        model=model,
        label=program.name,
    )


def submission_of_reply(reply: str, task: Task, suite_format: SuiteFormat | None) -> Submission:
    """The submission of a chat model's reply, read like the record ``{"solution": reply}``.

    Args:
        reply: the reply, or only the program; the typed answer if the task asks for one.
        task: the task that it answers.
        suite_format: the format of the task's suite; needed if a program has to be run.
    """
    if not task.answer.is_file or suite_format is None:
        return Submission(task.id, None, "", "", answer=reply)
    code = recorded_program({"solution": reply})
    paths = solution_paths(task.question, code, suite_format)
    return Submission(task.id, code, paths.input_path, paths.output_path)


def submission_record(submission: Submission, suite: Suite) -> dict[str, object]:
    """The record of a submission; :func:`load_submissions` reads the same submission from it.

    Args:
        submission: the submission.
        suite: the suite that it answers; gives the id as that suite writes it.
    """
    task = suite.task(submission.task_id)
    record: dict[str, object] = {"id": task.written_id, "sample": submission.sample}
    if submission.outputs is not None:
        pass  # the provenance holds the recorded outputs
    elif task.answer.is_file:
        record["solution"] = submission.code
        record["input_path"] = submission.input_path
        record["output_path"] = submission.output_path
    else:
        record["response"] = submission.answer
    optional = {
        "model": submission.model,
        "setting": submission.setting,
        "expected": list(submission.expected) or None,
        "label": submission.label,
    }
    record.update({name: value for name, value in optional.items() if value is not None})
    record.update(submission.provenance)
    return record


def _lines(path: Path) -> Iterator[tuple[int, int, int, str]]:
    """Yields the lines that are not blank: number from 1, offset, length and text."""
    for number, offset, raw in read_placed_lines(path, SubmissionError):
        try:
            yield number, offset, len(raw), raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise SubmissionError(
                f"{path}, line {number}: not UTF-8 at byte {error.start}",
                hint="save the file as UTF-8",
            ) from error


def _raise_faults(path: Path, faults: list[str]) -> None:
    if not faults:
        return
    if len(faults) == 1:
        raise SubmissionError(f"{path}, {faults[0]}", hint=_hint_for(faults))
    shown = [f"\n  {fault}" for fault in faults[:_MAX_SHOWN]]
    if len(faults) > _MAX_SHOWN:
        shown.append(f"\n  and {len(faults) - _MAX_SHOWN} more")
    raise SubmissionError(
        f"{path} has {len(faults)} lines that cannot be used:{''.join(shown)}",
        hint=_hint_for(faults),
    )


def _hint_for(faults: list[str]) -> str:
    if all(fault.endswith("already") for fault in faults):
        return "several solutions of one task are told apart by a field 'sample': 0, 1, 2 …"
    if all(lacks("response") in fault for fault in faults):
        return 'replies are given as {"id": …, "response": "…"}'
    return 'one JSON object on each line: {"id": …, "solution": "…"}'


def _raise_unknown(path: Path, suite: Suite, unknown: Mapping[str, int]) -> None:
    if not unknown:
        return
    named = ", ".join(f"{task_id} (line {line})" for task_id, line in unknown.items())
    raise SubmissionError(
        f"{path}: the suite {suite.name} has no task {named}",
        hint="is it the right suite (--dataset)? With --ids, lines for other tasks are left out.",
    )


# -- large files ----------------------------------------------------------------------------------

_SAMPLE_BITS = 64
"""How many bits a sample number takes in a sort key; sample numbers are below 2**63."""


@dataclass(slots=True)
class SubmissionFacts:
    """Facts about all submissions of a file.

    Attributes:
        models: the chat models that are named.
        setting: the first inference setting that is named.
        tasks: how many tasks have a submission.
        expects: whether any submission states the verdicts that it is expected to get.
    """

    models: set[str] = field(default_factory=set)
    setting: str | None = None
    tasks: int = 0
    expects: bool = False


class SubmissionIndex(Sequence[tuple[Task, Submission]]):
    """The submissions of a file with their tasks, in suite order and then by sample.

    Holds about twenty bytes for each submission, which is read from the file when it is needed.

    Args:
        suite: the suite.
        lines: the file.
        rows: for each submission the number of its task in the suite, its sample, and the offset
            and the length of its line.
        facts: facts about all of them.
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
        self._offsets, self._lengths = array("Q"), array("I")
        for number, sample, offset, length in rows:
            self._numbers.append(number)
            self._samples.append(sample)
            self._offsets.append(offset)
            self._lengths.append(length)

    def __len__(self) -> int:
        return len(self._offsets)

    @overload
    def __getitem__(self, index: int) -> tuple[Task, Submission]: ...

    @overload
    def __getitem__(self, index: slice) -> SubmissionIndex: ...

    def __getitem__(self, index: int | slice) -> tuple[Task, Submission] | SubmissionIndex:
        if isinstance(index, slice):
            return self.only(range(len(self))[index])
        task = self.task(index)
        line = self._lines.read(self._offsets[index], self._lengths[index])
        key = (task.id, self._samples[index])
        return task, read_submission(line, self._suite, self._lines.path.parent, key)

    def without_program(self, index: int) -> Submission:
        """Reads a submission without its program, because reading programs is slow."""
        line = self._lines.read(self._offsets[index], self._lengths[index])
        key = (self.task(index).id, self._samples[index])
        folder = self._lines.path.parent
        return read_submission(line, self._suite, folder, key, programs=False)

    def task(self, index: int) -> Task:
        """Returns the task of a submission; the submission is not read."""
        return self._suite.tasks[self._numbers[index]]

    def sample(self, index: int) -> int:
        """Returns the sample of a submission; the submission is not read."""
        return self._samples[index]

    def only(self, indices: Iterable[int]) -> SubmissionIndex:
        """An index of some of the submissions."""
        rows = (
            (self._numbers[index], self._samples[index], self._offsets[index], self._lengths[index])
            for index in indices
        )
        return SubmissionIndex(self._suite, self._lines, rows, self.facts)

    def close(self) -> None:
        """Closes the file, which is opened again if another submission is needed."""
        self._lines.close()


def index_submissions(path: Path, suite: Suite) -> SubmissionIndex:
    """Indexes the submissions of a file: checks all of them, and keeps none in memory.

    Args:
        path: the file.
        suite: the suite that they answer.

    Raises:
        SubmissionError: the file cannot be read or accepted; names every faulty line.
    """
    numbers = {task.id: number for number, task in enumerate(suite.tasks)}
    facts = SubmissionFacts()
    task_numbers, samples = array("I"), array("Q")
    offsets, lengths = array("Q"), array("I")
    for offset, length, submission in SubmissionReader(path, suite, programs=False):
        task_numbers.append(numbers[submission.task_id])
        samples.append(submission.sample)
        offsets.append(offset)
        lengths.append(length)
        facts.models |= {submission.model} if submission.model else set()
        facts.setting = facts.setting or submission.setting
        facts.expects = facts.expects or bool(submission.expected)
    facts.tasks = len(set(task_numbers))
    order = sorted(
        range(len(task_numbers)), key=lambda at: task_numbers[at] << _SAMPLE_BITS | samples[at]
    )
    rows = ((task_numbers[at], samples[at], offsets[at], lengths[at]) for at in order)
    return SubmissionIndex(suite, LinesAt(path, SubmissionError), rows, facts)
