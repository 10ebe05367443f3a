"""A task judged by rules before it is written to files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sample.model import CASES, INPUT_FOLDER, OUTPUT_FOLDER, Answer


@dataclass(frozen=True)
class Finished:
    """A finished workbook for a case, and the verdict that it must get."""

    data: bytes
    expected: str = "AC"


@dataclass(frozen=True)
class RuleTask:
    """A task: ``build`` returns input and gold of a case, ``finish`` a finished workbook."""

    id: str
    kind: str
    instruction: str
    rules: Sequence[Mapping[str, Any]]
    build: Callable[[int], tuple[bytes, bytes]]
    finish: Callable[[int], Finished]
    answers: tuple[Answer, ...]

    def files(self) -> dict[str, bytes]:
        """Returns inputs and golds by file name."""
        found = {}
        for case in CASES:
            for role, data in zip(("input", "answer"), self.build(case), strict=True):
                found[f"{case}_{self.id}_{role}.xlsx"] = data
        return found

    def record(self) -> dict[str, Any]:
        """Returns the task's record in ``suite.json``."""
        place = f"files/{self.id}"
        return {
            "id": self.id,
            "instruction": " ".join(self.instruction.split()),
            "kind": self.kind,
            "answer": "workbook",
            "checker": {"name": "rules", "options": {"rules": list(self.rules)}},
            "cases": [
                {
                    "number": case,
                    "inputs": [f"{place}/{case}_{self.id}_input.xlsx"],
                    "golds": [f"{place}/{case}_{self.id}_answer.xlsx"],
                }
                for case in CASES
            ],
        }

    def lines(self) -> list[dict[str, Any]]:
        """Returns the records for ``submissions.jsonl``."""
        paths = {
            "@INPUT@": str(INPUT_FOLDER / f"1_{self.id}_input.xlsx"),
            "@OUTPUT@": str(OUTPUT_FOLDER / f"1_{self.id}_output.xlsx"),
        }
        return [
            {
                "id": self.id,
                "sample": number,
                "label": answer.label,
                "expected": [answer.expected]
                if isinstance(answer.expected, str)
                else list(answer.expected),
                "solution": _filled(answer.solution, paths),
            }
            for number, answer in enumerate(self.answers)
        ]


def pair(kind: str, sheet: str, **options: object) -> dict[str, object]:
    """Returns a rule that compares the same sheet of output and gold."""
    return {"type": kind, "sheet_idx0": f"RN{sheet}", "sheet_idx1": f"EN{sheet}", **options}


def changed(program: str, before: str, after: str) -> str:
    """Returns a program with a mistake: one passage of it is replaced."""
    assert program.count(before) == 1, before
    return program.replace(before, after)


def _filled(solution: str, paths: Mapping[str, str]) -> str:
    text = solution.lstrip("\n")
    for mark, path in paths.items():
        text = text.replace(mark, path)
    return text
