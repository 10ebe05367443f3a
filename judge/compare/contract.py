"""The base class of checkers, with the types of their arguments and results."""

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
    """The answer cannot be read in the form that the task requires (verdict IW)."""


@dataclass(frozen=True, slots=True)
class Rules:
    """How answers are compared with golds.

    Attributes:
        profile: what "equal" means.
        style: style attributes to compare in addition to the values (``fill``, ``font_color`` …).
        max_differences: how many differences per case are kept (all are counted).
    """

    profile: Profile
    style: tuple[str, ...] = ()
    max_differences: int = 50


@dataclass(frozen=True, slots=True)
class Needs:
    """What a checker needs in addition to the answer; nothing else is read.

    Attributes:
        golds: whether it reads the files of the golds.
        inputs: whether it reads the input files.
        engines: whether it may need formulas to be computed.
    """

    golds: bool = True
    inputs: bool = False
    engines: bool = False


@dataclass(frozen=True, slots=True)
class Examination:
    """The result of examining a case without an answer.

    Attributes:
        units: how many units (cells, keys, rules …) are compared.
        uncached_formulas: how many of them are formulas without a stored value.
        not_calculated: how many of those formulas no engine could compute.
        notes: where the judge does not follow the exact wording of the suite.
        doubts: reasons why the case may test little, one line for each.
    """

    units: int
    uncached_formulas: int = 0
    not_calculated: int = 0
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AnswerAreas:
    """The cells that hold an answer, for callers that show them or derive new cases from them.

    Attributes:
        gold: rectangles of the gold.
        output: the same rectangles of the output, in the same order; None if the output lacks the
            sheet. Empty if no output was given.
    """

    gold: tuple[CellRange, ...] = ()
    output: tuple[CellRange | None, ...] = ()


@dataclass(frozen=True, slots=True)
class ComparedValue:
    """A named value of an answer with its gold, for callers that show both.

    Attributes:
        name: name of the value.
        rule: the expected type and tolerance, in a few words.
        expected: the gold as JSON, shortened if it is long.
        found: the value in the answer, in the same form; None if the answer has no such value.
        kind: the checker's word for what is wrong with the value; empty if it agrees.
        detail: a remark for people, if the two values do not explain the difference.
    """

    name: str
    rule: str
    expected: object
    found: object
    kind: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Requirements:
    """The requirements of a task, in words for people.

    Attributes:
        rules: one sentence for each requirement, in the order in which findings number them.
        published: the suite whose published evaluator gives the second verdict in the records;
            empty if there is no second verdict.
        ends_early: whether that evaluator stops at the first rule that does not hold.
        complete: whether the records list a separate difference for each rule that does not hold.
    """

    rules: tuple[str, ...] = ()
    published: str = ""
    ends_early: bool = False
    complete: bool = True


class Checker(abc.ABC):
    """Compares answers with golds.

    A checker has a name and a :meth:`check`. Everything else has a default, which suits a checker
    without options whose answers are files: it reads the golds, its reuse key contains all options
    of the task, and each gold is a correct answer.

    Attributes:
        name: the name that suites select it by.
        counts_cells: whether its findings count cells: how many were compared, and how many are
            wrong. Only answers to its tasks have a cell accuracy.
        lists_items: whether its findings list items with points; `judge verify` then names the
            items that already hold for the unchanged input.
    """

    name: ClassVar[str]
    counts_cells: ClassVar[bool] = False
    lists_items: ClassVar[bool] = False

    # -- what a task asks --------------------------------------------------------------------------

    def check_options(self, options: Mapping[str, object]) -> None:
        """Checks the options for this checker that a suite or a command gives.

        A command may give only some of the options that a task has, so a missing option is not an
        error here; :meth:`check` reports it as a :class:`GoldFaultError`.

        Raises:
            UsageError: an option is unknown, or its value does not fit.
        """
        if options:
            raise UsageError(f"the checker {self.name} has no options")

    def describe(self, spec: CheckerSpec) -> str:  # noqa: ARG002
        """Returns the name for statistics, with the options that distinguish tasks of a suite."""
        return self.name

    def aspects(self, spec: CheckerSpec) -> tuple[str, ...]:  # noqa: ARG002
        """Returns the kinds of checks that a task's answer has to pass, without repetitions.

        Reports split the tasks by each aspect that only some of them have.
        """
        return ()

    def requirements(self, task: Task, gold: Gold | None) -> Requirements | None:  # noqa: ARG002
        """Returns the requirements of a task, as sentences for the pages of a report.

        Args:
            task: the task.
            gold: the gold that the answer is compared with; None if the task has no gold.

        Returns:
            None if this checker has no sentences for its tasks.
        """
        return None

    def key(self, task: Task) -> Mapping[str, object]:
        """Returns everything about a task that can change the finding, as JSON."""
        return {"checker": [task.checker.name, dict(task.checker.options)]}

    def also_reads(self, task: Task, case: TestCase) -> Sequence[TestCase]:  # noqa: ARG002
        """Returns the cases whose files affect the finding, in addition to the golds of this case.

        The digests of their inputs and golds are part of the reuse key.
        """
        return ()

    # -- judging -----------------------------------------------------------------------------------

    def needs(self, task: Task, case: TestCase, rules: Rules) -> Needs:  # noqa: ARG002
        """Returns what the checker needs for a case: by default, the golds and the engines.

        Engines compute formulas, and read files in the sandbox that would be harmful outside it.
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
            case: the test case; its inputs are used if :meth:`needs` includes them.
            golds: the golds; an answer that agrees with one of them is right.
            answer: the files or text that a submission produced; they may be hostile.
            compute: computes formulas.
            rules: profile and options.

        Raises:
            GoldFaultError: a gold or an input cannot be read, or does not fit the task.
            AnswerFaultError: the answer cannot be read.
            JudgeError: the judge itself failed.
        """

    def measure(self, task: Task, golds: Sequence[Gold], answer: Answer) -> CaseComparison | None:  # noqa: ARG002
        """Measures an answer to a task that is left out and therefore has no verdict.

        Returns:
            What is recorded next to the reason, without any effect on results; None if nothing is
            measured.

        Raises:
            JudgeError: nothing can be measured, because of the gold or of the judge.
        """
        return None

    # -- golds without an answer -------------------------------------------------------------------

    def examine(self, task: Task, case: TestCase, compute: Compute | None) -> Examination:  # noqa: ARG002
        """Examines the golds of a case without an answer: by default, whether they can be read.

        Args:
            task: the task.
            case: the test case.
            compute: computes formulas; None to use only what the files store.

        Raises:
            GoldFaultError: a gold cannot be read, or does not fit the task.
        """
        for gold in case.golds:
            gold.read()
        return Examination(units=1)

    def own_answers(self, task: Task, gold: Gold) -> Mapping[str, Answer]:  # noqa: ARG002
        """Returns a gold as an answer; in a sound suite, each such answer is accepted.

        By default this is the gold's file; values that Excel stored in it are trusted.

        Returns:
            Name of a form (``values``, ``reply``; empty if there is only one) -> the answer.

        Raises:
            GoldFaultError: the gold cannot be read.
        """
        return {"": Answer.of_workbook(gold.read(), Origin.FINISHED, gold.name)}

    def partial_answer(self, task: Task, gold: Gold) -> tuple[Answer, frozenset[str]] | None:  # noqa: ARG002
        """Returns a correct partial answer from a gold, and the ids of the items that it decides.

        By default None: golds are complete answers, or no answers at all.

        Raises:
            GoldFaultError: the gold cannot be read.
        """
        return None

    # -- what reports show of an answer ------------------------------------------------------------

    def areas(self, task: Task, gold: Workbook, output: Workbook | None) -> AnswerAreas:  # noqa: ARG002
        """Returns the cells that hold an answer; none by default, as whole files are compared.

        The cells are located but not read, so that a caller that needs more of the workbook can
        read everything in one pass.

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
        """Returns the named values of an answer, each next to its gold; none by default.

        Raises:
            GoldFaultError: a gold does not fit the task.
        """
        return ()
