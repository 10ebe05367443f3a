"""Tasks and test cases, as every suite format is turned into them."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType


class InstructionType(enum.StrEnum):
    """The benchmark's two kinds of instruction, in its own words."""

    CELL_LEVEL = "Cell-Level Manipulation"
    SHEET_LEVEL = "Sheet-Level Manipulation"


@dataclass(frozen=True, slots=True)
class CaseInput:
    """What may be shown of a test case: its number and its input, never its gold.

    Attributes:
        number: 1-based number of the case within its task.
        path: the input workbook.
    """

    number: int
    path: Path


@dataclass(frozen=True, slots=True)
class TestCase:
    """An input workbook and the gold workbook that a right solution would make of it.

    Attributes:
        number: 1-based number of the case within its task.
        input_path: the input workbook.
        gold_path: the gold (expected) workbook.
    """

    __test__ = False  # the name is the field's term; pytest must not collect it

    number: int
    input_path: Path
    gold_path: Path

    @property
    def question(self) -> CaseInput:
        """The case without its gold, for everything that stands left of the comparison."""
        return CaseInput(number=self.number, path=self.input_path)


def _no_options() -> Mapping[str, object]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class CheckerSpec:
    """Which checker a task uses, and its options.

    Attributes:
        name: name of the checker; ``cell_range`` compares the cells of the answer position.
        options: the checker's own options, as the suite gives them.
    """

    name: str = "cell_range"
    options: Mapping[str, object] = field(default_factory=_no_options)


@dataclass(frozen=True, slots=True)
class TaskQuestion:
    """A task as a chat model may see it: no gold is reachable from here.

    Attributes:
        id: the task's id as text.
        instruction: the question, as a user of spreadsheets wrote it.
        instruction_type: cell level or sheet level.
        answer_position: where the answer is looked for, as written in the suite.
        answer_sheet: the sheet that the position speaks of, where the suite names one.
        data_position: where the input's data lies, where the suite says so.
        inputs: the input workbooks, in case order.
    """

    id: str
    instruction: str
    instruction_type: InstructionType
    answer_position: str
    answer_sheet: str | None
    data_position: str | None
    inputs: tuple[CaseInput, ...]


@dataclass(frozen=True, slots=True)
class Task:
    """An instruction with its test cases.

    Attributes:
        id: the task's id as text (suites write integers or strings; ``"59196"`` is both).
        instruction: the question, as a user of spreadsheets wrote it.
        instruction_type: cell level or sheet level.
        answer_position: where the answer is looked for, as written in the suite.
        cases: the test cases in the order of their numbers; at least one.
        answer_sheet: the sheet that the position speaks of, where the suite names one.
        data_position: where the input's data lies, where the suite says so.
        checker: how an output is held against its gold.
        category: what kind of manipulation it asks for, where the suite says so.
        excluded: why the suite itself leaves this task out, or None.
        raw_id: the id as the suite's JSON has it, for writing files that others read.
    """

    id: str
    instruction: str
    instruction_type: InstructionType
    answer_position: str
    cases: tuple[TestCase, ...]
    answer_sheet: str | None = None
    data_position: str | None = None
    checker: CheckerSpec = field(default_factory=CheckerSpec)
    category: str | None = None
    excluded: str | None = None
    raw_id: int | str | None = None

    @property
    def question(self) -> TaskQuestion:
        """The task without its golds, for everything that stands left of the comparison."""
        return TaskQuestion(
            id=self.id,
            instruction=self.instruction,
            instruction_type=self.instruction_type,
            answer_position=self.answer_position,
            answer_sheet=self.answer_sheet,
            data_position=self.data_position,
            inputs=tuple(case.question for case in self.cases),
        )
