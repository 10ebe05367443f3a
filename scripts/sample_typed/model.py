"""A question of the sample before it is written to files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Reply:
    """A reply, and the verdict that it must get."""

    label: str
    text: str | None
    expected: str = "AC"


@dataclass(frozen=True)
class Variable:
    """A variable: its rule, and its right value."""

    gold: object
    rule: Mapping[str, object]


@dataclass(frozen=True)
class Question:
    """A question with its files."""

    id: str
    kind: str
    difficulty: str
    instruction: str
    files: Mapping[str, bytes]
    variables: Mapping[str, Variable]
    replies: tuple[Reply, ...] = field(default=())

    def record(self) -> dict[str, Any]:
        """Returns the question's record in ``suite.json``."""
        has_picture = any(name.endswith(".png") for name in self.files)
        has_table = any(not name.endswith(".png") for name in self.files)
        schema = ", ".join(f'"{name}": ...' for name in self.variables)
        asked = " ".join(self.instruction.split())
        return {
            "id": self.id,
            "instruction": f"{asked} Answer with a JSON object: {{{schema}}}",
            "kind": self.kind,
            "groups": {
                "difficulty": self.difficulty,
                "picture": _yes(has_picture),
                "table": _yes(has_table),
                "both": _yes(has_picture and has_table),
            },
            "answer": "text",
            "checker": {
                "name": "typed_answer",
                "options": {
                    "variables": {name: dict(each.rule) for name, each in self.variables.items()}
                },
            },
            "cases": [
                {
                    "inputs": [f"files/{self.id}/{name}" for name in self.files],
                    "golds": [{"value": {name: x.gold for name, x in self.variables.items()}}],
                }
            ],
        }

    def lines(self) -> list[dict[str, Any]]:
        """Returns the records for ``answers.jsonl``."""
        return [
            {
                "id": self.id,
                "sample": number,
                "label": reply.label,
                "expected": [reply.expected],
                "response": reply.text,
            }
            for number, reply in enumerate(self.replies)
        ]


def fenced(value: Mapping[str, object], before: str = "") -> str:
    """Returns a reply with the answer as JSON in a fenced code block."""
    return f"{before}```json\n{json.dumps(value, ensure_ascii=False)}\n```"


def csv_of(rows: list[list[object]]) -> bytes:
    """Writes rows as CSV; no cell needs quotes."""
    return "".join(",".join(map(str, row)) + "\n" for row in rows).encode()


def _yes(value: bool) -> str:
    return "yes" if value else "no"
