"""The base class of checkers, what they are given and what they return."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from judge.compare.cells.computing import Compute
from judge.compare.profiles import Profile
from judge.core.finding import Finding
from judge.core.records.cases import CaseComparison
from judge.core.submission import Answer, Origin
from judge.core.task import CheckerSpec, Gold, Task, TestCase
from judge.errors import GoldFaultError, JudgeError, UsageError
from judge.workbook.cell import CellRange
from judge.workbook.reader import Workbook

__all__ = [
    "AnswerAreas",
    "AnswerFaultError",
    "Checker",
    "ComparedValue",
    "Examination",
    "GoldFaultError",
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


class Checker(abc.ABC):
    """Compares answers with golds.

    A checker has a name and a :meth:`check`. Everything else has a default, which suits a checker
    without options whose answers are files: it reads the golds, its reuse key has all options of
    the task, and a gold is a right answer.

    Attributes:
        name: the name by which suites select it.
        counts_cells: whether its findings count cells: how many were compared, and how many are
            wrong. Only answers to its tasks have a cell accuracy.
        lists_items: whether its findings list items with points; `judge verify` then names those
            that hold without work.
    """

    name: ClassVar[str]
    counts_cells: ClassVar[bool] = False
    lists_items: ClassVar[bool] = False

    # -- what a task asks --------------------------------------------------------------------------

    def check_options(self, options: Mapping[str, object]) -> None:
        """Checks options of this checker, as a suite or a command gives them.

        Raises:
            UsageError: an option is unknown, or its value does not fit.
        """
        if options:
            raise UsageError(f"the checker {self.name} has no options")

    def describe(self, spec: CheckerSpec) -> str:  # noqa: ARG002
        """The name in the statistics of a suite, with the options in which tasks differ."""
        return self.name

    def aspects(self, spec: CheckerSpec) -> tuple[str, ...]:  # noqa: ARG002
        """The sorts of things that a task's answer is judged by, once each, in the checker's words.

        Reports part the tasks by every aspect that some of them have and others do not.
        """
        return ()

    def requirements(self, task: Task, gold: Gold | None) -> Requirements | None:  # noqa: ARG002
        """What a task asks of an answer, in sentences that the pages of reports list.

        Args:
            task: the task.
            gold: the gold that the answer is compared with; None without one.

        Returns:
            None if this checker has no sentences for its tasks.
        """
        return None

    def key(self, task: Task) -> Mapping[str, object]:
        """Everything about a task that could change the finding, as JSON."""
        return {"checker": [task.checker.name, dict(task.checker.options)]}

    def also_reads(self, task: Task, case: TestCase) -> Sequence[TestCase]:  # noqa: ARG002
        """Cases whose inputs and golds count for the finding besides the golds of the case itself.

        The digests of their files are a part of the reuse key.
        """
        return ()

    # -- judging -----------------------------------------------------------------------------------

    def needs(self, task: Task, case: TestCase, rules: Rules) -> Needs:  # noqa: ARG002
        """What the checker needs for a case: the golds, and engines.

        Engines compute formulas, and read in the sandbox what would be harmful elsewhere.
        """
        return Needs(engines=True)

    @abc.abstractmethod
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
            task: the task.
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

    def measure(self, task: Task, golds: Sequence[Gold], answer: Answer) -> CaseComparison | None:  # noqa: ARG002
        """A figure for an answer to a task that is left out, which has no verdict.

        Returns:
            What is recorded next to the reason, and decides nothing; None if there is no figure.

        Raises:
            JudgeError: there is no such figure, because of the gold or of the judge.
        """
        return None

    # -- golds without an answer -------------------------------------------------------------------

    def examine(self, task: Task, case: TestCase, compute: Compute | None) -> Examination:  # noqa: ARG002
        """Examines the golds of a case without any answer: by default, whether they can be read.

        Args:
            task: the task.
            case: the test case.
            compute: computes formulas; None to look only at the files.

        Raises:
            GoldFaultError: a gold cannot be read, or does not fit the task.
        """
        for gold in case.golds:
            gold.read()
        return Examination(units=1)

    def own_answers(self, task: Task, gold: Gold) -> Mapping[str, Answer]:  # noqa: ARG002
        """A gold as an answer; a suite is sound if each of these answers is accepted.

        By default this is the file of the gold; values that Excel stored in it are trusted.

        Returns:
            Name of a form (``values``, ``reply``; empty if there is only one) -> the answer.

        Raises:
            GoldFaultError: the gold cannot be read.
        """
        return {"": Answer.of_workbook(gold.read(), Origin.FINISHED, gold.name)}

    def partial_answer(self, task: Task, gold: Gold) -> tuple[Answer, frozenset[str]] | None:  # noqa: ARG002
        """A gold that is a part of a right answer, and the ids of the items that it decides.

        None, by default, where golds are whole answers, or none at all.

        Raises:
            GoldFaultError: the gold cannot be read.
        """
        return None

    # -- what reports show of an answer ------------------------------------------------------------

    def areas(self, task: Task, gold: Workbook, output: Workbook | None) -> AnswerAreas:  # noqa: ARG002
        """The cells that hold an answer; none by default, where whole files count.

        They are found, not read: who asks may need more than them, and reads all in one pass.

        Raises:
            PositionError: the task names a position that the gold does not have.
            WorkbookError: a workbook cannot be read.
        """
        return AnswerAreas()

    def compared(
        self,
        task: Task,  # noqa: ARG002
        golds: Sequence[Gold],  # noqa: ARG002
        answer: Answer,  # noqa: ARG002
        rules: Rules,  # noqa: ARG002
    ) -> tuple[ComparedValue, ...]:
        """The named values of an answer, each next to its gold; none by default.

        Raises:
            GoldFaultError: a gold does not fit the task.
        """
        return ()
