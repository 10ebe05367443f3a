"""A task of the sample suite before it is written to files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from pathlib import PurePosixPath

from sample.book import Book

CELL_LEVEL = "Cell-Level Manipulation"
SHEET_LEVEL = "Sheet-Level Manipulation"
CASES = (1, 2, 3)

INPUT_FOLDER = PurePosixPath("/mnt/data/input")
OUTPUT_FOLDER = PurePosixPath("/mnt/data/output")


@dataclass(frozen=True)
class Answer:
    """A submission: its text, in which ``@INPUT@`` and ``@OUTPUT@`` stand for the paths.

    ``expected`` is one verdict code for all cases, or one for each case.
    """

    label: str
    solution: str
    expected: str | tuple[str, str, str] = "AC"


@dataclass(frozen=True)
class SampleTask:
    """A task: ``build`` takes the number of a case and returns its input and its gold."""

    id: int | str
    instruction_type: str
    instruction: str
    answer_position: str
    build: Callable[[int], tuple[Book, Book]]
    answers: tuple[Answer, ...]
    answer_sheet: str | None = None
    data_position: str | None = None
    style: tuple[str, ...] = ()

    def record(self) -> dict[str, object]:
        """The record of ``dataset.json``, in the published order of fields."""
        record: dict[str, object] = {
            "id": self.id,
            "instruction": " ".join(self.instruction.split()),
            "spreadsheet_path": f"spreadsheet/{self.id}",
            "instruction_type": self.instruction_type,
            "answer_position": self.answer_position,
        }
        if self.answer_sheet is not None:
            record["answer_sheet"] = self.answer_sheet
        if self.data_position is not None:
            record["data_position"] = self.data_position
        if self.style:
            record["style"] = list(self.style)
        return record

    def submissions(self) -> list[dict[str, object]]:
        """The records of ``submissions.jsonl``."""
        input_path = str(INPUT_FOLDER / f"1_{self.id}_input.xlsx")
        output_path = str(OUTPUT_FOLDER / f"1_{self.id}_output.xlsx")
        return [
            {
                "id": self.id,
                "sample": number,
                "label": answer.label,
                "expected": (
                    [answer.expected] if isinstance(answer.expected, str) else list(answer.expected)
                ),
                "input_path": input_path,
                "output_path": output_path,
                "solution": answer.solution.lstrip("\n")
                .replace("@INPUT@", input_path)
                .replace("@OUTPUT@", output_path),
            }
            for number, answer in enumerate(self.answers)
        ]


def round_half_up(value: Decimal | int | str, digits: int) -> float:
    """Rounds as spreadsheets do.

    A value exactly half way between two results is refused: binary floats would round it up or down
    by chance, and a task must not depend on that.
    """
    exact = Decimal(value)
    step = Decimal(1).scaleb(-digits)
    remainder = (exact / step) % 1
    if abs(abs(remainder) - Decimal("0.5")) < Decimal("0.0001"):
        message = f"{exact} is half way between two numbers with {digits} digits: choose other data"
        raise ValueError(message)
    return float(exact.quantize(step, rounding=ROUND_HALF_UP))
