"""Tasks and test cases: the data model into which every suite format is read."""

from __future__ import annotations

import enum
import errno
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from judge.core.submission import AnswerForm
from judge.errors import GoldFaultError, SuiteError

LEFT_OUT_OPTION = "left_out"
"""An option of every checker: why the task cannot be judged. It then counts as a bad test."""

LEFT_OUT_CASES_OPTION = "left_out_cases"
"""As above, for single cases: number of the case, as text -> why it cannot be judged."""


EVERY_CHECKERS_OPTIONS = frozenset({LEFT_OUT_OPTION, LEFT_OUT_CASES_OPTION})
"""Options that the judge reads itself, before it calls a checker."""

_OF_THE_MACHINE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.EINTR})
"""Errors for which the machine is to blame, and not the file that could not be read."""


class FileKind(enum.StrEnum):
    """The kind of an input file."""

    WORKBOOK = "workbook"
    TABLE = "table"
    """Rows as plain text, such as CSV."""
    IMAGE = "image"
    TEXT = "text"


KIND_OF_SUFFIX: Mapping[str, FileKind] = {
    ".xlsx": FileKind.WORKBOOK,
    ".xlsm": FileKind.WORKBOOK,
    ".csv": FileKind.TABLE,
    ".tsv": FileKind.TABLE,
    ".png": FileKind.IMAGE,
    ".jpg": FileKind.IMAGE,
    ".jpeg": FileKind.IMAGE,
    ".gif": FileKind.IMAGE,
    ".webp": FileKind.IMAGE,
    ".txt": FileKind.TEXT,
    ".md": FileKind.TEXT,
    ".json": FileKind.TEXT,
}
"""The kind of a file by its suffix, in lower case."""


@dataclass(frozen=True, slots=True)
class InputFile:
    """An input file, which a solution may read.

    Attributes:
        path: the path of the file.
        kind: the kind of the file.
        media_type: the media type of a picture, such as ``image/webp``, by its content and not by
            its name; None if it is not known.
        below: path below the working folder, with ``/``, if a task starts from a folder; empty if
            the name of the file is enough.
    """

    path: Path
    kind: FileKind = FileKind.WORKBOOK
    media_type: str | None = None
    below: str = ""

    @property
    def name(self) -> str:
        """The path below the working folder."""
        return self.below or self.path.name


@dataclass(frozen=True, slots=True)
class AbsentInput:
    """An input file that a suite names but that does not exist.

    Attributes:
        name: the name of the file, with its folder.
        kind: the kind that the file would have.
        advice: what the user can do about it.
    """

    name: str
    kind: FileKind
    advice: str


@dataclass(frozen=True, slots=True)
class Gold:
    """The right answer that outputs are compared with: a file, or a value that the suite states.

    Attributes:
        path: the path, if the gold is a file.
        value: the value, if the gold is not a file.
        options: options of the checker that apply only to this gold.
        data: the bytes of a gold that is not on disk yet; used instead of a path.
    """

    path: Path | None = None
    value: object = None
    options: Mapping[str, object] = field(default_factory=dict)
    data: bytes | None = None

    @property
    def name(self) -> str:
        """The name of the gold in messages: the name of its file, or ``gold``."""
        return "gold" if self.path is None else self.path.name

    def read(self) -> bytes:
        """The bytes of the gold.

        Raises:
            GoldFaultError: the gold is a value, or its file cannot be read.
            OSError: the machine cannot read any file now, for instance because too many are open.
        """
        if self.data is not None:
            return self.data
        if self.path is None:
            raise GoldFaultError(f"{self.name} is a value, but a file is needed")
        try:
            if not stat.S_ISREG(self.path.stat().st_mode):
                raise GoldFaultError(f"{self.name}: cannot be read: it is not a regular file")
            return self.path.read_bytes()
        except OSError as error:
            if error.errno in _OF_THE_MACHINE:
                raise
            raise GoldFaultError(f"{self.name}: cannot be read: {error.strerror}") from error


@dataclass(frozen=True, slots=True)
class CaseInput:
    """The part of a test case that a solver may see: its number and its inputs, never its golds.

    Attributes:
        number: 1-based number of the case within its task.
        files: the input files; a program gets the path of the first.
        absent: input files that are missing; without them the question is incomplete.
    """

    number: int
    files: tuple[InputFile, ...]
    absent: tuple[AbsentInput, ...] = ()

    @property
    def path(self) -> Path:
        """The first input file.

        Raises:
            SuiteError: the case has no input file.
        """
        return first_input(self.files, f"case {self.number}")

    @property
    def opened(self) -> str | None:
        """Name of the file that an agent starts from: the first workbook, or the first table."""
        for kind in (FileKind.WORKBOOK, FileKind.TABLE):
            for file in self.files:
                if file.kind is kind:
                    return file.path.name
        return None

    @property
    def obstacle(self) -> str | None:
        """Why the files cannot be given to an agent; None if they can."""
        if self.absent:
            return f"these files are missing: {', '.join(file.name for file in self.absent)}"
        if self.opened is None:
            return "it has no workbook that could be opened"
        if len({file.path.name for file in self.files}) < len(self.files):
            return "two of its files have the same name"
        return None


def first_input(files: tuple[InputFile, ...], named: str) -> Path:
    """Returns the input file whose path a program gets.

    Raises:
        SuiteError: the case has no input file.
    """
    if not files:
        raise SuiteError(f"{named} has no input file, so no program can be run on it")
    return files[0].path


@dataclass(frozen=True, slots=True)
class TestCase:
    """The inputs of a question, and the golds that answers are compared with.

    Attributes:
        number: 1-based number of the case within its task.
        inputs: the input files; a program gets the path of the first.
        golds: the expected answers; an answer that agrees with any of them is right.
        absent: input files that are missing, for checkers that do not need them.
    """

    __test__ = False  # pytest must not collect this class because of its name

    number: int
    inputs: tuple[InputFile, ...]
    golds: tuple[Gold, ...]
    absent: tuple[AbsentInput, ...] = ()

    @staticmethod
    def of_workbooks(number: int, input_path: Path, gold_path: Path) -> TestCase:
        """Makes a case with one input workbook and one gold workbook."""
        return TestCase(number, (InputFile(input_path),), (Gold(gold_path),))

    @property
    def question(self) -> CaseInput:
        """The case without its golds, for every step before the comparison."""
        return CaseInput(number=self.number, files=self.inputs, absent=self.absent)

    @property
    def input_path(self) -> Path:
        """The first input file.

        Raises:
            SuiteError: the case has no input file.
        """
        return first_input(self.inputs, f"case {self.number}")

    @property
    def gold_path(self) -> Path:
        """The path of the first gold, for code that shows or edits one gold workbook.

        Raises:
            SuiteError: the case has no gold that is a file.
        """
        if not self.golds or self.golds[0].path is None:
            raise SuiteError(f"case {self.number} has no gold workbook")
        return self.golds[0].path

    @property
    def paths(self) -> tuple[Path, ...]:
        """All files of the case: the inputs, then the golds."""
        golds = (gold.path for gold in self.golds if gold.path is not None)
        return (*(question.path for question in self.inputs), *golds)


@dataclass(frozen=True, slots=True)
class CheckerSpec:
    """The checker of a task, with its options.

    Attributes:
        name: name of the checker; ``cell_range`` compares the cells of an answer position.
        options: the options of the checker, as the suite gives them.
        public: names of options that the question states as well, such as the answer position.
            They may be shown to a chat model; all others are kept secret.
    """

    name: str = "cell_range"
    options: Mapping[str, object] = field(default_factory=dict)
    public: tuple[str, ...] = ()

    @property
    def own_options(self) -> Mapping[str, object]:
        """The options that the checker itself reads: all except those that every checker has."""
        return {
            name: value
            for name, value in self.options.items()
            if name not in EVERY_CHECKERS_OPTIONS
        }

    def with_options(self, options: Mapping[str, object]) -> CheckerSpec:
        """Returns the same checker with additional options, which override existing ones."""
        return replace(self, options={**self.options, **options})


@dataclass(frozen=True, slots=True)
class Phrasing:
    """The wording of a task, in a suite that states the same task in several wordings.

    The phrasings of a task share their files and their checker; only the instruction differs.

    Attributes:
        name: the suite's name for the wording, such as ``abstract`` or ``verbose``.
        of: the id that all phrasings of a task share: the task id of one of them.
    """

    name: str
    of: str


@dataclass(frozen=True, slots=True)
class TaskQuestion:
    """A task as a chat model may see it: no gold can be reached from it.

    Attributes:
        id: the task's id as text.
        instruction: the question, as a user of spreadsheets wrote it.
        kind: the kind of task, as the suite calls it.
        details: further statements of the suite: ``answer_position``, ``answer_sheet``,
            ``data_position`` and the like, if it has them.
        answer: the form that the answer must have.
        inputs: the input files of each case, in case order.
        plan: the steps that an expert would take, if the suite has them. They are only shown in
            settings that include the plan.
        signals: whether a typed answer is a signal from a desktop agent, such as FAIL if the task
            cannot be done.
    """

    id: str
    instruction: str
    kind: str
    details: Mapping[str, str]
    answer: AnswerForm
    inputs: tuple[CaseInput, ...]
    plan: str = ""
    signals: bool = False


@dataclass(frozen=True, slots=True)
class Task:
    """An instruction with its test cases.

    Attributes:
        id: the task's id as text (suites write integers or strings; ``"59196"`` is both).
        instruction: the question, as a user of spreadsheets wrote it.
        kind: the kind of task, as the suite calls it. Reports break scores down by it.
        cases: the test cases in the order of their numbers; at least one.
        checker: how an answer is compared with the golds.
        answer: the form that the answer must have.
        groups: name of a division -> the group of this task, such as ``category`` -> ``sort``.
            Reports break scores down by each division.
        context: further statements of the suite, such as ``data_position``. A checker that reads it
            includes it in its key.
        excluded: why the suite itself leaves this task out; None if it does not.
        raw_id: the id as it is in the suite's JSON, for files that other programs read.
        aliases: other names that published answers use for the task.
        phrasing: the wording of the task; None if the suite has only one wording of each task.
        plan: the steps that an expert would take, in words; empty if the suite has none.
        signals: whether a typed answer is a signal from a desktop agent, such as FAIL.
    """

    id: str
    instruction: str
    kind: str
    cases: tuple[TestCase, ...]
    checker: CheckerSpec = field(default_factory=CheckerSpec)
    answer: AnswerForm = AnswerForm.WORKBOOK
    groups: Mapping[str, str] = field(default_factory=dict)
    context: Mapping[str, str] = field(default_factory=dict)
    excluded: str | None = None
    raw_id: int | str | None = None
    aliases: tuple[str, ...] = ()
    phrasing: Phrasing | None = None
    plan: str = ""
    signals: bool = False

    def reason_left_out(self, case: int | None = None) -> str | None:
        """Returns why the task, or one of its cases, is left out; None if it is judged."""
        reason = self.checker.options.get(LEFT_OUT_OPTION)
        if isinstance(reason, str) or case is None:
            return reason if isinstance(reason, str) else None
        cases = self.checker.options.get(LEFT_OUT_CASES_OPTION)
        return str(cases[str(case)]) if isinstance(cases, Mapping) and str(case) in cases else None

    @property
    def written_id(self) -> int | str:
        """The id for records: as the suite writes it, or as text if that form is unknown."""
        return self.id if self.raw_id is None else self.raw_id

    @property
    def details(self) -> Mapping[str, str]:
        """The further statements of the suite that may be shown with the instruction."""
        options = self.checker.options
        stated = {name: options[name] for name in self.checker.public if name in options}
        return {name: str(value) for name, value in stated.items()} | dict(self.context)

    @property
    def question(self) -> TaskQuestion:
        """The task without its golds, for every step before the comparison."""
        return TaskQuestion(
            id=self.id,
            instruction=self.instruction,
            kind=self.kind,
            details=self.details,
            answer=self.answer,
            inputs=tuple(case.question for case in self.cases),
            plan=self.plan,
            signals=self.signals,
        )
