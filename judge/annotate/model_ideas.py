"""Asks a chat model for counterexamples to a program, as cell edits.

The model is given the question, the input and the program, never a gold. Its proposals are ideas
like any others: they are examined in the same way, and do not decide anything.
"""

from __future__ import annotations

import io
import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from judge.annotate.answers import gold_ranges
from judge.annotate.casebook import CaseData
from judge.annotate.edits import SetCell, parse_assignment
from judge.annotate.idea import FROM_MODEL, Idea
from judge.compare.cells.options import position_of
from judge.core.submission import Submission
from judge.core.task import Task
from judge.errors import InferenceError, UsageError
from judge.inference.chat import CallError, ChatModel, ChatRequest, Message
from judge.inference.content import ContentLimits, render_content
from judge.inference.prompt import load_template
from judge.workbook.cell import CellRange, CellRef
from judge.workbook.preview import read_preview
from judge.workbook.reader import Workbook, open_workbook

MAX_IDEAS = 20
"""How many proposals of one reply are examined."""

MAX_EDITS = 60
"""How many cells one proposal may change."""

MAX_REPLY_CHARS = 200_000
SHOWN_ROWS = 40
MAX_TITLE_CHARS = 200


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ModelAsked:
    """The chat model to ask.

    Attributes:
        chat_model: the model.
        name: the server's name for the model.
        params: request parameters.
    """

    chat_model: ChatModel
    name: str
    params: Mapping[str, Any] = field(default_factory=_nothing)


async def ask_for_ideas(
    model_asked: ModelAsked,
    task: Task,
    base: CaseData,
    program: Submission,
    *,
    max_proposals: int = 10,
) -> tuple[list[Idea], list[str]]:
    """Asks a chat model for inputs on which a program may be wrong.

    Args:
        model_asked: the chat model to ask.
        task: the task.
        base: the case whose input is to be changed.
        program: a program that all cases accept.
        max_proposals: how many proposals to request.

    Returns:
        The ideas, and one line for each proposal that cannot be used.

    Raises:
        InferenceError: no reply could be obtained.
        WorkbookError: the base case cannot be read.
    """
    request = ChatRequest(
        model_asked.name,
        prompt_for(task, base, program, max_proposals=max_proposals),
        model_asked.params,
    )
    try:
        reply = await model_asked.chat_model.complete(request)
    except CallError as error:
        raise InferenceError(f"the chat model gave no proposals: {error.message}") from error
    return read_ideas(reply.text, task, base)


def prompt_for(
    task: Task, base: CaseData, program: Submission, *, max_proposals: int
) -> tuple[Message, ...]:
    """Builds the prompt from question, input and program, without anything of the gold."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "input.xlsx"
        path.write_bytes(base.input)
        sheets = read_preview(path, SHOWN_ROWS)
    position, sheet = position_of(task.checker)
    where = f"{position} (sheet {sheet})" if sheet else position
    text = load_template("counterexamples").fill(
        {
            "instruction": task.instruction,
            "answer_position": where,
            "spreadsheet_content": render_content(
                sheets, "addresses", ContentLimits(rows=SHOWN_ROWS)
            ),
            "program": program.code or "",
            "most": str(min(max_proposals, MAX_IDEAS)),
        }
    )
    return ({"role": "user", "content": text},)


def read_ideas(reply: str, task: Task, base: CaseData) -> tuple[list[Idea], list[str]]:
    """The ideas in a reply; invalid proposals are reported, and raise no error.

    A proposal changes cells of the input by their addresses. It is invalid if it changes the answer
    or names a sheet that does not exist.
    """
    proposals, problem = _proposals(reply)
    if problem:
        return [], [problem]
    before, gold = open_workbook(base.input), open_workbook(base.gold)
    answer = _places_of_answers(before, gold_ranges(task, gold))
    ideas: list[Idea] = []
    problems: list[str] = []
    for number, proposal in enumerate(proposals[:MAX_IDEAS], start=1):
        try:
            ideas.append(_idea(proposal, before, answer))
        except UsageError as error:
            problems.append(f"proposal {number}: {error.message}")
    if len(proposals) > MAX_IDEAS:
        problems.append(f"{len(proposals) - MAX_IDEAS} more proposals were not read")
    return ideas, problems


_LIST = re.compile(r"\[\s*\{.*\}\s*\]", re.DOTALL)


def _proposals(reply: str) -> tuple[list[Any], str]:
    if len(reply) > MAX_REPLY_CHARS:
        return [], f"the reply is longer than {MAX_REPLY_CHARS:,} characters"
    match = _LIST.search(reply)
    try:
        document = json.load(io.StringIO(match[0])) if match else None
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, list):
        return [], "the reply holds no JSON list of proposals"
    return document, ""


def _idea(proposal: Any, before: Workbook, answer: frozenset[CellRef]) -> Idea:
    cells = proposal.get("cells") if isinstance(proposal, dict) else None
    if not isinstance(cells, dict) or not cells:
        raise UsageError("it names no cells")
    if len(cells) > MAX_EDITS:
        raise UsageError(f"it changes {len(cells)} cells, more than {MAX_EDITS}")
    edits: list[SetCell] = []
    for position, value in cells.items():
        edit = parse_assignment(f"{position}={_typed(value)}", before.sheet_names[0])
        if edit.ref.sheet not in before.sheet_names:
            raise UsageError(f"there is no sheet {edit.ref.sheet!r}")
        if edit.ref in answer:
            raise UsageError(f"{position} is a cell of the answer")
        edits.append(edit)
    title = " ".join(str(proposal.get("why") or "a counterexample").split())[:MAX_TITLE_CHARS]
    return Idea(FROM_MODEL, title, tuple(edits))


MAX_ANSWERS = 100_000


def _places_of_answers(before: Workbook, answer: Sequence[CellRange]) -> frozenset[CellRef]:
    """Answer cells that are blank in the input; those that it fills are data and may be changed."""
    refs: set[CellRef] = set()
    for area in answer:
        if area.size > MAX_ANSWERS or area.sheet not in before.sheet_names:
            continue
        cells = before.cells(area)
        refs |= {
            CellRef(area.sheet, row, column)
            for row in range(area.min_row, area.max_row + 1)
            for column in range(area.min_column, area.max_column + 1)
            if (row, column) not in cells or cells[row, column].value in {None, ""}
        }
    return frozenset(refs)


def _typed(value: Any) -> str:
    """A JSON value as a person would type it into a cell."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return value
    raise UsageError(f"a cell cannot hold {type(value).__name__}")
