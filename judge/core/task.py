"""Tasks and test cases: what every suite format is read into."""

from __future__ import annotations

import enum
import errno
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from judge.core.submission import AnswerForm
from judge.errors import GoldFaultError, SuiteError

LEFT_OUT_OPTION = "left_out"
"""Option of every checker: why a task cannot be judged. The task then counts as a bad test."""

LEFT_OUT_CASES_OPTION = "left_out_cases"
"""The same for single cases: number of a case, as text -> why it cannot be judged."""


EVERY_CHECKERS_OPTIONS = frozenset({LEFT_OUT_OPTION, LEFT_OUT_CASES_OPTION})
"""Options that no checker reads: the judge does, before it asks a checker."""

_OF_THE_MACHINE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.EINTR})
"""Why a file cannot be read at the moment, whatever file it is."""


class FileKind(enum.StrEnum):
    """The kind of an input file."""

    WORKBOOK = "workbook"
    TABLE = "table"
    """Plain rows, such as CSV."""
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
"""The kind of a file by the end of its name, in lower case."""


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that may be read for the answer.

    Attributes:
        path: where it is.
        kind: what sort of file it is.
        media_type: the media type of a picture by its content, whatever its name is, such as
            ``image/webp``; None if it is not known.
        below: path below the folder that the work is done in, with ``/``, where a task starts from
            a folder; empty where the name of the file is enough.
    """

    path: Path
    kind: FileKind = FileKind.WORKBOOK
    media_type: str | None = None
    below: str = ""

    @property
    def name(self) -> str:
        """The path below the folder that the work is done in."""
        return self.below or self.path.name


@dataclass(frozen=True, slots=True)
class AbsentInput:
    """An input file that a suite names and that is not there.

    Attributes:
        name: the name, with its folder.
        kind: what sort of file it would be.
        advice: what to do about it.
    """

    name: str
    kind: FileKind
    advice: str


@dataclass(frozen=True, slots=True)
class Gold:
    """The right answer to compare with: a file, or a value that the suite states.

    Attributes:
        path: the file, if the gold is one.
        value: the value, if the gold is not a file.
        options: options of the checker that apply only to this gold.
        data: the bytes of a gold that is not on disk yet, in place of a file.
    """

    path: Path | None = None
    value: object = None
    options: Mapping[str, object] = field(default_factory=dict)
    data: bytes | None = None

    @property
    def name(self) -> str:
        """The name of the gold in messages: that of its file, or ``gold``."""
        return "gold" if self.path is None else self.path.name

    def read(self) -> bytes:
        """The bytes of the gold.

        Raises:
            GoldFaultError: the gold is a value, or its file cannot be read.
            OSError: the machine cannot read a file at the moment: too many are open, for instance.
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
    """The part of a test case that may be shown: its number and its inputs, never its golds.

    Attributes:
        number: 1-based number of the case within its task.
        files: the input files; a program is given the path of the first.
        absent: input files that are missing; without them, the question is incomplete.
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
        """The name of the file that an agent begins with: the first workbook, or else table."""
        for kind in (FileKind.WORKBOOK, FileKind.TABLE):
            for file in self.files:
                if file.kind is kind:
                    return file.path.name
        return None

    @property
    def obstacle(self) -> str | None:
        """Why no agent can be given the files; None if one can."""
        if self.absent:
            return f"the files are not there: {', '.join(file.name for file in self.absent)}"
        if self.opened is None:
            return "it has no workbook that could be opened"
        if len({file.path.name for file in self.files}) < len(self.files):
            return "two of its files have one name"
        return None


def first_input(files: tuple[InputFile, ...], named: str) -> Path:
    """The input file whose path a program is given.

    Raises:
        SuiteError: the case has no input file.
    """
    if not files:
        raise SuiteError(f"{named} has no input file, so no program can be run on it")
    return files[0].path


@dataclass(frozen=True, slots=True)
class TestCase:
    """The inputs of a question, and the golds that a right answer agrees with.

    Attributes:
        number: 1-based number of the case within its task.
        inputs: the input files; a program is given the path of the first.
        golds: the expected answers; an answer that agrees with one of them is right.
        absent: input files that are missing, for checkers that do not need them.
    """

    __test__ = False  # the name is the field's term; pytest must not collect it

    number: int
    inputs: tuple[InputFile, ...]
    golds: tuple[Gold, ...]
    absent: tuple[AbsentInput, ...] = ()

    @staticmethod
    def of_workbooks(number: int, input_path: Path, gold_path: Path) -> TestCase:
        """A case with one input workbook and one gold workbook."""
        return TestCase(number, (InputFile(input_path),), (Gold(gold_path),))

    @property
    def question(self) -> CaseInput:
        """The case without its golds, for all steps before the comparison."""
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
        """The file of the first gold, for code that shows or edits one gold workbook.

        Raises:
            SuiteError: the case has no gold that is a file.
        """
        if not self.golds or self.golds[0].path is None:
            raise SuiteError(f"case {self.number} has no gold workbook")
        return self.golds[0].path

    @property
    def paths(self) -> tuple[Path, ...]:
        """All files of the case: its inputs, then its golds."""
        golds = (gold.path for gold in self.golds if gold.path is not None)
        return (*(question.path for question in self.inputs), *golds)


@dataclass(frozen=True, slots=True)
class CheckerSpec:
    """Which checker a task uses, and its options.

    Attributes:
        name: name of the checker; ``cell_range`` compares the cells of an answer position.
        options: the checker's own options, as the suite gives them.
        public: names of options that the question states as well, such as the answer position.
            They may be shown to a chat model; all others stay with the judge.
    """

    name: str = "cell_range"
    options: Mapping[str, object] = field(default_factory=dict)
    public: tuple[str, ...] = ()

    @property
    def own_options(self) -> Mapping[str, object]:
        """The options that the checker itself reads: all but those that every checker has."""
        return {
            name: value
            for name, value in self.options.items()
            if name not in EVERY_CHECKERS_OPTIONS
        }

    def with_options(self, options: Mapping[str, object]) -> CheckerSpec:
        """The same checker; the options that are given here take precedence."""
        return replace(self, options={**self.options, **options})


@dataclass(frozen=True, slots=True)
class Phrasing:
    """Which wording of a task this is, where a suite asks the same thing in several.

    The phrasings of a task share their files and their checker; only the instruction differs.

    Attributes:
        name: the suite's word for the wording, such as ``abstract`` or ``verbose``.
        of: what all phrasings of a task share: the id of one of them.
    """

    name: str
    of: str


@dataclass(frozen=True, slots=True)
class TaskQuestion:
    """A task as a chat model may see it: no gold is reachable from here.

    Attributes:
        id: the task's id as text.
        instruction: the question, as a user of spreadsheets wrote it.
        kind: what sort of task it is, in the suite's words.
        details: what the suite states in addition to the instruction: ``answer_position``,
            ``answer_sheet``, ``data_position`` and the like, if it has them.
        answer: the form that the answer must have.
        inputs: the input files of each case, in case order.
        plan: the steps that an expert would take, if the suite has them. They are shown only in a
            setting that says so.
        signals: whether a typed answer is a signal of those who work at a desktop: FAIL, where
            nothing can be done.
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
        kind: what sort of task it is, in the suite's words. Reports break scores down by it.
        cases: the test cases in the order of their numbers; at least one.
        checker: how an answer is compared with the golds.
        answer: the form that the answer must have.
        groups: name of a division -> the group of this task, such as ``category`` -> ``sort``.
            Reports break scores down by each division.
        context: what the suite states in addition to the instruction, such as ``data_position``. A
            checker that reads it includes it in its key.
        excluded: why the suite itself leaves this task out, or None.
        raw_id: the id as the suite's JSON has it, for writing files that others read.
        aliases: what published answers name the task by, in place of its id.
        phrasing: which wording of the task this is; None where a suite has one of each.
        plan: the steps that an expert would take, in words; empty if the suite has none.
        signals: whether a typed answer is a signal of those who work at a desktop, such as FAIL.
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
        """Why the task, or a case of it by its number, is left out; None if it is judged."""
        reason = self.checker.options.get(LEFT_OUT_OPTION)
        if isinstance(reason, str) or case is None:
            return reason if isinstance(reason, str) else None
        cases = self.checker.options.get(LEFT_OUT_CASES_OPTION)
        return str(cases[str(case)]) if isinstance(cases, Mapping) and str(case) in cases else None

    @property
    def written_id(self) -> int | str:
        """The id as records have it: as the suite writes it, or as text where that is unknown."""
        return self.id if self.raw_id is None else self.raw_id

    @property
    def details(self) -> Mapping[str, str]:
        """Further statements of the suite that may be shown with the instruction."""
        options = self.checker.options
        stated = {name: options[name] for name in self.checker.public if name in options}
        return {name: str(value) for name, value in stated.items()} | dict(self.context)

    @property
    def question(self) -> TaskQuestion:
        """The task without its golds, for everything that comes before the comparison."""
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


def split_ids(values: Iterable[str]) -> tuple[str, ...]:
    """Splits each value at its commas; blanks around an id, and empty ids, are ignored."""
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())
