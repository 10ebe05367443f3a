"""The contract of a checker, and of what is passed to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from judge.compare.cells.computing import Compute
from judge.compare.profiles import Profile
from judge.core.finding import Finding
from judge.core.records.cases import CaseComparison
from judge.core.submission import Answer, Origin
from judge.core.task import CheckerSpec, Gold, Task, TestCase
from judge.errors import GoldFaultError, JudgeError
from judge.workbook.cell import CellRange
from judge.workbook.reader import Workbook

__all__ = [
    "AnswerAreas",
    "AnswerFaultError",
    "Checker",
    "ComparedValue",
    "CountsCells",
    "Examination",
    "FileChecker",
    "GoldFaultError",
    "InWords",
    "Measures",
    "NamesAspects",
    "Needs",
    "Requirements",
    "Rules",
]


class AnswerFaultError(JudgeError):
    """The answer cannot be read as what it should be (IW)."""


@dataclass(frozen=True, slots=True)
class Rules:
    """How answers are compared with golds.

    Attributes:
        profile: what "equal" means.
        style: style attributes to compare in addition to the values (``fill``, ``font_color`` …).
        max_differences: how many differences of a case are kept (all are counted).
    """

    profile: Profile
    style: tuple[str, ...] = ()
    max_differences: int = 50


@dataclass(frozen=True, slots=True)
class Needs:
    """What a checker needs besides the answer; anything else is not read.

    Attributes:
        golds: whether it reads the files of the golds.
        inputs: whether it reads the input files.
        engines: whether it may ask for formulas to be computed.
    """

    golds: bool = True
    inputs: bool = False
    engines: bool = False


@runtime_checkable
class Measures(Protocol):
    """A checker that has a figure for answers to tasks that are left out, which have no verdict."""

    def measure(self, task: Task, golds: Sequence[Gold], answer: Answer) -> CaseComparison:
        """What is put on record next to the reason; it decides nothing.

        Raises:
            JudgeError: there is no such figure, because of the gold or of the judge.
        """
        ...


@dataclass(frozen=True, slots=True)
class Examination:
    """What a case shows without any answer.

    Attributes:
        units: how many units (cells, keys, rules …) are compared.
        uncached_formulas: how many of them are formulas without a stored value.
        not_calculated: how many of those formulas no engine could compute.
        notes: liberties taken with what the suite says.
        doubts: why the case may test little, one line each.
    """

    units: int
    uncached_formulas: int = 0
    not_calculated: int = 0
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AnswerAreas:
    """The cells that hold an answer, for callers that show them or make cases of them.

    Attributes:
        gold: rectangles of the gold.
        output: the same rectangles of the output, in the same order; None if the output lacks the
            sheet. Empty if no output was given.
    """

    gold: tuple[CellRange, ...] = ()
    output: tuple[CellRange | None, ...] = ()


@dataclass(frozen=True, slots=True)
class ComparedValue:
    """A named value of an answer next to its gold, for callers that show it.

    Attributes:
        name: what it is called.
        rule: what is expected, in a few words.
        expected: the gold, as JSON, cut where it is long.
        found: the value in the answer, likewise; None if there is none.
        kind: what is wrong with it, in the checker's own words; empty if it agrees.
        detail: a line for people, if the two values do not say everything.
    """

    name: str
    rule: str
    expected: object
    found: object
    kind: str = ""
    detail: str = ""


@runtime_checkable
class CountsCells(Protocol):
    """A checker whose findings count cells: how many were compared, and how many are wrong.

    Only answers to its tasks have a cell accuracy.
    """

    @property
    def counts_cells(self) -> bool:
        """Whether it does, with every answer that could be read."""
        ...


@runtime_checkable
class NamesAspects(Protocol):
    """What a checker may offer besides: the sorts of things that a task's answer is judged by.

    Reports part the tasks by each of them that some tasks have and others do not.
    """

    def aspects(self, spec: CheckerSpec) -> tuple[str, ...]:
        """The sorts of things that are compared, in the checker's own words, each once."""
        ...


@dataclass(frozen=True, slots=True)
class Requirements:
    """What a task asks, for people.

    Attributes:
        rules: what has to hold, a sentence each, in the order in which findings number them.
        published: whose published evaluator the second verdict on record is; empty without one.
        ends_early: whether that evaluator ends at the first rule that does not hold.
        complete: whether each rule that does not hold has a difference of its own on record.
    """

    rules: tuple[str, ...] = ()
    published: str = ""
    ends_early: bool = False
    complete: bool = True


@runtime_checkable
class InWords(Protocol):
    """A checker that can say in words what a task asks; pages of reports list it."""

    def requirements(self, task: Task, gold: Gold | None) -> Requirements:
        """What a task asks of an answer.

        Args:
            task: the task.
            gold: the gold that the answer is compared with; None without one.
        """
        ...


class Checker(Protocol):
    """Compares answers with golds."""

    @property
    def name(self) -> str:
        """The name by which suites ask for it."""
        ...

    def check_options(self, options: Mapping[str, object]) -> None:
        """Checks options of this checker, as a suite or a command gives them.

        Raises:
            UsageError: an option is unknown, or its value does not fit.
        """
        ...

    def describe(self, spec: CheckerSpec) -> str:
        """What statistics of a suite call it: its name, and the options in which tasks differ."""
        ...

    def key(self, task: Task) -> Mapping[str, object]:
        """Everything about a task that could change the finding, as JSON."""
        ...

    def needs(self, task: Task, case: TestCase, rules: Rules) -> Needs:
        """What the checker needs for a case."""
        ...

    def check(
        self,
        task: Task,
        case: TestCase,
        golds: Sequence[Gold],
        answer: Answer,
        compute: Compute,
        rules: Rules,
    ) -> Finding:
        """Compares an answer with the golds of its case.

        Args:
            task: what was asked.
            case: the test case; its inputs count where :meth:`needs` says so.
            golds: the golds; an answer that agrees with one of them is right.
            answer: what a submission left; it may be hostile.
            compute: computes formulas.
            rules: profile and options.

        Raises:
            GoldFaultError: a gold or an input cannot be read, or does not fit the task.
            AnswerFaultError: the answer cannot be read.
            JudgeError: the judge itself failed.
        """
        ...

    def examine(self, task: Task, case: TestCase, compute: Compute | None) -> Examination:
        """Looks at the golds of a case without any answer.

        Args:
            task: what is asked.
            case: the test case.
            compute: computes formulas; None to look only at the files.

        Raises:
            GoldFaultError: a gold cannot be read, or does not fit the task.
        """
        ...

    def own_answers(self, task: Task, gold: Gold) -> Mapping[str, Answer]:
        """What a gold is as an answer: a suite is sound if each of them is accepted.

        Returns:
            Name of a form (``values``, ``reply``; empty if there is only one) -> the answer.

        Raises:
            GoldFaultError: the gold cannot be read.
        """
        ...

    def areas(self, task: Task, gold: Workbook, output: Workbook | None) -> AnswerAreas:
        """The cells that hold an answer; none if the checker looks at something else.

        Raises:
            PositionError: the task names a place that the gold does not have.
            WorkbookError: a workbook cannot be read.
        """
        ...

    def compared(
        self, task: Task, golds: Sequence[Gold], answer: Answer, rules: Rules
    ) -> tuple[ComparedValue, ...]:
        """The named values of an answer, each next to its gold; none if the answer has no such.

        Raises:
            GoldFaultError: a gold does not fit the task.
        """
        ...


# -- answers that are files ------------------------------------------------------------------------


class FileChecker:
    """Part of a checker whose answers are files: a gold is accepted as a finished one.

    It looks at whole files, so that reports have neither a grid of cells nor named values to show.
    """

    def key(self, task: Task) -> Mapping[str, object]:
        """The name and all options."""
        return {"checker": [task.checker.name, dict(task.checker.options)]}

    def needs(self, task: Task, case: TestCase, rules: Rules) -> Needs:  # noqa: ARG002
        """The golds, and engines: for formulas, and to have the sandbox read what could harm."""
        return Needs(engines=True)

    def own_answers(self, task: Task, gold: Gold) -> Mapping[str, Answer]:  # noqa: ARG002
        """The gold workbook; a value that Excel left in it is trusted."""
        return {"": Answer.of_workbook(gold.read(), Origin.FINISHED, gold.name)}

    def areas(self, task: Task, gold: Workbook, output: Workbook | None) -> AnswerAreas:  # noqa: ARG002
        """None: whole files count."""
        return AnswerAreas()

    def compared(
        self,
        task: Task,  # noqa: ARG002
        golds: Sequence[Gold],  # noqa: ARG002
        answer: Answer,  # noqa: ARG002
        rules: Rules,  # noqa: ARG002
    ) -> tuple[ComparedValue, ...]:
        """None: the answer is a file."""
        return ()
