"""Marks checklist items on request, by a chat model or a suite's program; verdicts do not change.

An item of kind ``program`` has a Python program as its field ``code``. It runs in the sandbox, next
to the files of the answer, the inputs and the golds, and reports its result as Harbor's verifiers
do: as a number from 0 to 1 in ``/logs/verifier/reward.txt``, as ``reward`` in ``reward.json`` in
the same folder, or by its exit code.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from judge.compare.cells.computing import NoEngines
from judge.compare.checklists.file_items import text_of_file
from judge.compare.checklists.workspace import (
    REPLY,
    WORKBOOK_SUFFIXES,
    MissingError,
    Workspace,
    files_of,
)
from judge.core.limits import Limits
from judge.core.replies.relaxed import object_in
from judge.core.submission import Answer, AnswerFile, Origin
from judge.errors import InferenceError, JudgeError
from judge.files.documents import MalformedError, utc_now
from judge.files.packed_folder import unpacked
from judge.grading.marks import MarkRecord
from judge.grading.running import last_error_line
from judge.inference.chat import CallError, ChatModel, ChatRequest
from judge.inference.prompt import Template
from judge.report.marks import OpenItem, fields_of
from judge.sandbox.contract import OutputStatus, RunRequest, RunResult, RunStatus, SandboxSession

TEMPLATE = "checklist_item"
MAX_FILE_CHARS = 20_000
"""Characters of a file that are shown to a model; a note says that the rest is cut off."""

MAX_FILES = 10
_TRIES = 2
"""How many requests a vote may take: after a reply without a score, a second request is sent."""


class LlmJudge(Protocol):
    """Gives scores for an item of a checklist."""

    async def score(self, item: OpenItem, material: Material) -> Votes:
        """Scores an item.

        Args:
            item: the item.
            material: the answer, as it is shown to the model.

        Raises:
            CallError: the server does not answer.
        """
        ...


@dataclass(frozen=True, slots=True)
class Material:
    """The parts of an answer that a model is shown.

    Attributes:
        instruction: the task.
        reply: the typed reply; empty if nothing was typed.
        files: the files as text, up to a limit.
    """

    instruction: str
    reply: str
    files: str


@dataclass(slots=True)
class Votes:
    """The votes on one item.

    Attributes:
        scores: the scores, from 0 to 1; votes without a score are left out.
        why: the reason of the first vote.
        prompt: SHA-256 of the complete prompt, the model's name and its parameters.
        prompt_tokens, completion_tokens: of all requests, as the server counted them.
        requests: how many were sent.
    """

    prompt: str
    scores: list[float] = field(default_factory=list)
    why: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    requests: int = 0

    @property
    def median(self) -> float:
        """The score that counts: the median; for an even number of votes, the lower middle one."""
        return statistics.median_low(self.scores)

    @property
    def agreement(self) -> float:
        """1 minus the mean distance of the votes from their median."""
        return 1 - statistics.fmean(abs(score - self.median) for score in self.scores)


# -- scales ----------------------------------------------------------------------------------------


def scale_words(fields: Mapping[str, Any]) -> str:
    """The scale of an item, in the words of the prompt."""
    match fields.get("scale", "binary"):
        case "likert":
            return f"a whole number from 1 (worst) to {fields.get('steps', 5)} (best)."
        case "numeric":
            return f"a number from {fields.get('min', 0)} (worst) to {fields.get('max', 1)} (best)."
        case "rubric":
            levels = enumerate(fields.get("levels", ()))
            return "the number of a level: " + "; ".join(f"{n}: {words}" for n, words in levels)
        case _:
            return "1 if the criterion holds, 0 if it does not."


def normalised(value: object, fields: Mapping[str, Any]) -> float | None:
    """Converts a value to a score from 0 to 1 as rewardkit does; None if it is not on the scale."""
    if isinstance(value, bool):
        value = float(value)
    if not isinstance(value, int | float) or value != value:  # noqa: PLR0124  NaN
        return None
    low, high = 0.0, 1.0
    match fields.get("scale", "binary"):
        case "likert":
            low, high = 1.0, float(fields.get("steps", 5))
        case "numeric":
            low, high = float(fields.get("min", 0)), float(fields.get("max", 1))
        case "rubric":
            high = float(max(len(fields.get("levels", ())) - 1, 1))
    if high <= low:
        return None
    share = min(max((value - low) / (high - low), 0.0), 1.0)
    return 1 - share if fields.get("negate") is True else share


def read_score(text: str, fields: Mapping[str, Any]) -> tuple[float, str] | None:
    """The score and the reason of a reply; None if it has no score on the scale."""
    try:
        document = object_in(text)
        score = normalised(document["score"], fields)
        why = " ".join(str(document.get("why") or "").split())[:500]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return None if score is None else (score, why)


# -- the material ----------------------------------------------------------------------------------


def material_of(item: OpenItem, output: bytes | None) -> Material:
    """The task, the reply and the files of an item as text.

    Args:
        item: the item.
        output: the stored output; None if nothing was stored.
    """
    task = item.submission.task
    files = () if output is None else (AnswerFile("output.xlsx", output),)
    try:
        workspace = Workspace(Answer(Origin.FINISHED, files), compute=NoEngines())
    except MalformedError as error:
        return Material("" if task is None else task.instruction, "", f"(unreadable: {error})")
    fields = fields_of(task, item.record["id"])
    named = [str(path) for path in fields.get("files", ())] or list(workspace.files)
    listed = [path for path in named if path != REPLY]
    texts = [_file_as_text(workspace, path) for path in listed[:MAX_FILES]]
    if len(listed) > MAX_FILES:
        texts.append(f"({len(listed) - MAX_FILES} more files are not shown)")
    return Material(
        "" if task is None else task.instruction,
        (workspace.reply_text or "(none)")[:MAX_FILE_CHARS],
        "\n\n".join(texts) or "(none)",
    )


def _file_as_text(workspace: Workspace, path: str) -> str:
    try:
        text = text_of_file(workspace, path)
        if path.lower().endswith(WORKBOOK_SUFFIXES):
            text += _formulas(workspace, path)
    except (MissingError, JudgeError) as error:
        text = f"(cannot be read: {error})"
    cut = f"\n(cut after {MAX_FILE_CHARS} characters)" if len(text) > MAX_FILE_CHARS else ""
    return f"#### {path}\n{text[:MAX_FILE_CHARS]}{cut}"


def _formulas(workspace: Workspace, path: str) -> str:
    from judge.workbook.address import cell_name  # noqa: PLC0415  only to show files
    from judge.workbook.reader import sheet_formulas  # noqa: PLC0415

    book = workspace.book(path).workbook
    lines = [
        f"{sheet}!{cell_name(cell.row, cell.column)} {cell.formula}"
        for sheet in book.sheet_names
        for cell in sheet_formulas(book, sheet)[:500]
    ]
    return "\nFormulas:\n" + "\n".join(lines) if lines else ""


# -- asking ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ChatJudge:
    """A chat model as a judge of items.

    Attributes:
        chat_model: answers requests.
        model: its name on the server.
        params: request parameters.
        template: the prompt, with the fields criterion, scale, instruction, reply and files.
        votes: how many votes an item gets; an odd number.
    """

    chat_model: ChatModel
    model: str
    params: Mapping[str, Any]
    template: Template
    votes: int = 1

    def prompt(self, item: OpenItem, material: Material) -> str:
        """The message for an item."""
        fields = fields_of(item.submission.task, item.record["id"])
        concepts = "; ".join(str(concept) for concept in fields.get("concepts", ()))
        guide = str(fields.get("guide", ""))
        return self.template.fill(
            {
                "criterion": "\n".join(filter(None, (item.record["words"], concepts, guide))),
                "scale": scale_words(fields),
                "instruction": material.instruction,
                "reply": material.reply,
                "files": material.files,
            }
        )

    def digest(self, prompt: str) -> str:
        """The key of a mark, made of the whole prompt, the model, its parameters and the votes."""
        key = [prompt, self.model, dict(self.params), self.votes]
        return hashlib.sha256(json.dumps(key, sort_keys=True, default=str).encode()).hexdigest()

    async def score(self, item: OpenItem, material: Material) -> Votes:
        """Requests the votes, one after the other."""
        fields = fields_of(item.submission.task, item.record["id"])
        prompt = self.prompt(item, material)
        votes = Votes(self.digest(prompt))
        request = ChatRequest(self.model, ({"role": "user", "content": prompt},), self.params)
        for _ in range(self.votes):
            for _ in range(_TRIES):
                reply = await self.chat_model.complete(request)
                votes.requests += 1
                votes.prompt_tokens += reply.prompt_tokens or 0
                votes.completion_tokens += reply.completion_tokens or 0
                read = read_score(reply.text, fields)
                if read is not None:
                    votes.scores.append(read[0])
                    votes.why = votes.why or read[1]
                    break
        return votes


async def ask_about(
    items: Sequence[tuple[OpenItem, Material]],
    judge: LlmJudge,
    by: str,
    on_mark: Callable[[MarkRecord], None],
    *,
    jobs: int = 4,
    cost_of: Callable[[int, int], float | None] = lambda _prompt, _completion: None,
) -> list[str]:
    """Asks about items, several at a time.

    Args:
        items: the items, each with the material that the model is shown.
        judge: gives the scores.
        by: the name of the rater on record.
        on_mark: called with each mark as soon as it is available.
        jobs: how many items are judged at a time.
        cost_of: cost in US dollars of prompt and completion tokens; None if it is not known.

    Returns:
        A line for each item that did not get a mark.

    Raises:
        InferenceError: key, model name or address are wrong.
    """
    slots, failures = asyncio.Semaphore(jobs), list[str]()

    async def ask(item: OpenItem, material: Material) -> None:
        named = f"task {item.key[0]}, item {item.key[3]}"
        async with slots:
            try:
                votes = await judge.score(item, material)
            except CallError as error:
                if error.kind == "access":
                    raise InferenceError(error.message) from error
                failures.append(f"{named}: {error.message}")
                return
        if not votes.scores:
            failures.append(f"{named}: no reply has a score")
            return
        on_mark(_mark(item, votes, by, cost_of(votes.prompt_tokens, votes.completion_tokens)))

    try:
        async with asyncio.TaskGroup() as group:
            for item, material in items:
                group.create_task(ask(item, material))
    except* InferenceError as errors:
        raise errors.exceptions[0] from None
    return failures


def _mark(item: OpenItem, votes: Votes, by: str, cost_usd: float | None) -> MarkRecord:
    return {
        **item.mark(by, votes.median, utc_now(), votes.why),
        "votes": votes.scores,
        "agreement": votes.agreement,
        "prompt": votes.prompt,
        "prompt_tokens": votes.prompt_tokens,
        "completion_tokens": votes.completion_tokens,
        "cost_usd": cost_usd,
    }


# -- programs --------------------------------------------------------------------------------------

LOGS = "/logs/verifier/"
ANSWER, INPUT, GOLD = "/mnt/data/answer", "/mnt/data/input", "/mnt/data/gold"
"""The folders in which a program finds the answer, the inputs and the golds."""

RATER = "program"


@dataclass(frozen=True, slots=True)
class ItemProgram:
    """A program with the files that it runs on.

    Attributes:
        code: its source.
        files: absolute path inside the sandbox -> content.
    """

    code: str
    files: Mapping[str, bytes]

    @property
    def digest(self) -> str:
        """A hash that changes with the program and with any of its files."""
        hashes = {path: hashlib.sha256(data).hexdigest() for path, data in self.files.items()}
        text = json.dumps([self.code, sorted(hashes.items())])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def program_of(item: OpenItem, output: bytes | None) -> ItemProgram | None:
    """The program of an item; None if the suite does not have one that can be run here.

    Args:
        item: the item.
        output: the stored output; None if nothing was stored.

    Raises:
        GoldFaultError: a gold cannot be read.
        OSError: an input cannot be read.
    """
    task = item.submission.task
    code = fields_of(task, item.record["id"]).get("code")
    if task is None or not isinstance(code, str):
        return None
    case = next(case for case in task.cases if case.number == item.case)
    answer = {} if output is None else _answer(output, task.details.get("file", "output.xlsx"))
    return ItemProgram(
        code,
        {
            **{f"{ANSWER}/{path}": data for path, data in answer.items()},
            **{f"{INPUT}/{file.name}": file.path.read_bytes() for file in case.inputs},
            **{f"{GOLD}/{gold.name}": gold.read() for gold in case.golds if gold.path is not None},
        },
    )


def _answer(output: bytes, name: str) -> Mapping[str, bytes]:
    try:
        return files_of(Answer(Origin.FINISHED, (AnswerFile("output.xlsx", output),)))
    except MalformedError:
        return {name: output}


def run_item(
    item: OpenItem, program: ItemProgram, session: SandboxSession, limits: Limits
) -> MarkRecord | str:
    """Runs the program of an item.

    Args:
        item: the item.
        program: its program.
        session: an isolated environment.
        limits: limits of the run.

    Returns:
        The mark, or why there is none: the program was stopped, or did not report a score.

    Raises:
        SandboxError: the sandbox failed.
    """
    result = session.run(RunRequest(program.code, program.files, LOGS, limits))
    score = score_of(result)
    if isinstance(score, str):
        return score
    why = "" if result.status is RunStatus.OK else last_error_line(result.stderr)
    return {**item.mark(RATER, score, utc_now(), why), "prompt": program.digest}


def score_of(result: RunResult) -> float | str:
    """The score from 0 to 1 that a program reports, or why it reports none."""
    if result.status not in {RunStatus.OK, RunStatus.EXITED}:
        return result.detail or f"the program was stopped: {result.status.value}"
    left: Mapping[str, bytes] = {}
    if result.output_status is OutputStatus.COLLECTED and result.output is not None:
        left = unpacked(result.output)
    for name, read in (("reward.txt", _number), ("reward.json", _reward)):
        if name in left:
            score = read(left[name][:100_000].decode("utf-8", "replace"))
            return f"{LOGS}{name} does not hold a number from 0 to 1" if score is None else score
    return 1.0 if result.status is RunStatus.OK else 0.0


def _number(text: str) -> float | None:
    try:
        score = float(text)
    except ValueError:
        return None
    return score if 0 <= score <= 1 else None


def _reward(text: str) -> float | None:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return _number(str(document.get("reward"))) if isinstance(document, dict) else None
