"""Selects forum posts by rules, then a chat model, then a person's decision. The state is stored.

```
posts.triage/
  judgements.jsonl   the filters' answers about posts; the last record of a post counts
  decisions.jsonl    people's decisions; the last record of a post counts
```
"""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from judge.authoring.posts import (
    QUESTIONS,
    Answer,
    Judgement,
    Post,
    Proposal,
    apply_rules,
    open_questions,
    propose,
)
from judge.errors import InferenceError, UsageError
from judge.files.documents import as_csv_text, of_csv_text, utc_now
from judge.grading.store import RunDirectory
from judge.inference.chat import CallError, ChatModel, ChatRequest
from judge.inference.prompt import Template

JUDGEMENTS_FILE = "judgements.jsonl"
DECISIONS_FILE = "decisions.jsonl"
SHEET_COLUMNS = ("id", "proposal", "decision", "note", "title", *QUESTIONS, "url")
_DECISIONS = {"keep": "keep", "k": "keep", "yes": "keep", "drop": "drop", "d": "drop", "no": "drop"}


@dataclass(frozen=True, slots=True)
class TriagedPost:
    """A post with the judgements and the decision about it.

    Attributes:
        post: the post.
        judgements: the judgements of each filter.
        decision: a person's decision, ``keep`` or ``drop``; None if nobody decided, or if the post
            has changed since.
        decided_by: the person who decided.
        note: the person's note.
    """

    post: Post
    judgements: Mapping[str, Judgement]
    decision: str | None = None
    decided_by: str | None = None
    note: str = ""

    @property
    def proposal(self) -> Proposal:
        """The filters' proposal."""
        return propose(self.judgements)

    @property
    def questions(self) -> tuple[str, ...]:
        """The questions that a chat model should be asked."""
        return () if self.decision else open_questions(self.judgements)


class TriageState:
    """The state folder of a triage, which only one process can use at a time.

    Args:
        folder: its path; created when the first record is written.

    Raises:
        StoreError: another process uses it, or it cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._store = RunDirectory(folder)
        self._store.lock()

    def close(self) -> None:
        """Releases the folder; safe to call twice."""
        self._store.close()

    def triage(self, posts: Iterable[Post]) -> list[TriagedPost]:
        """Returns each post with its decision and the answers from the rules and earlier models."""
        answered = {str(record["id"]): record for record in self._read(JUDGEMENTS_FILE)}
        decided = {str(record["id"]): record for record in self._read(DECISIONS_FILE)}
        triaged = []
        for post in posts:
            judgements = apply_rules(post)
            answers = answered.get(post.id)
            if answers and answers["digest"] == post.digest:
                judgements |= {
                    name: Judgement(
                        Answer(judgement["answer"]), judgement["why"], judgement["source"]
                    )
                    for name, judgement in answers["judgements"].items()
                    # The rules may have improved since: their answers take precedence.
                    if name in open_questions(judgements)
                }
            decision = decided.get(post.id)
            if decision and decision["digest"] == post.digest:
                by, note = str(decision["by"]), str(decision.get("note") or "")
                triaged.append(TriagedPost(post, judgements, str(decision["decision"]), by, note))
            else:
                triaged.append(TriagedPost(post, judgements))
        return triaged

    def keep_judgements(self, post: Post, judgements: Mapping[str, Judgement]) -> None:
        """Records the answers of a chat model about a post."""
        record = {
            "id": post.id,
            "digest": post.digest,
            "judgements": {name: asdict(judgement) for name, judgement in judgements.items()},
            "at": utc_now(),
        }
        self._store.append(JUDGEMENTS_FILE, record)

    def decide(
        self, triaged: Sequence[TriagedPost], decisions: Mapping[str, tuple[str, str]], *, by: str
    ) -> int:
        """Records a person's decisions.

        Args:
            triaged: all posts.
            decisions: id to ``keep`` or ``drop`` and a note.
            by: the person.

        Returns:
            How many decisions are new or differ from earlier ones.

        Raises:
            UsageError: a decision names a post that does not exist; nothing is recorded.
        """
        by_id = {post.post.id: post for post in triaged}
        unknown_ids = [name for name in decisions if name not in by_id]
        if unknown_ids:
            raise UsageError(f"there is no post with the id {', '.join(unknown_ids[:10])}")
        fresh = 0
        for name, (decision, note) in decisions.items():
            entry = by_id[name]
            if (entry.decision, entry.note) == (decision, note):
                continue
            fresh += 1
            self._store.append(
                DECISIONS_FILE,
                {
                    "id": name,
                    "digest": entry.post.digest,
                    "decision": decision,
                    "note": note,
                    "proposal": entry.proposal.value,
                    "by": by,
                    "at": utc_now(),
                },
            )
        return fresh

    def _read(self, name: str) -> list[dict[str, Any]]:
        return list(self._store.read_records(name))


def write_sheet(triaged: Iterable[TriagedPost]) -> str:
    """A CSV for a person to fill in: one row for each post, with an empty column ``decision``."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(SHEET_COLUMNS)
    for post in triaged:
        reasons = (post.judgements[name] for name in QUESTIONS)
        row = (
            post.post.id,
            post.proposal.value,
            post.decision or "",
            post.note,
            " ".join((post.post.title or post.post.body[:80]).split()),
            *(f"{reason.answer.value}: {reason.why} ({reason.source})" for reason in reasons),
            post.post.url or "",
        )
        writer.writerow([as_csv_text(value) for value in row])
    return text.getvalue()


def read_sheet(text: str, name: str) -> dict[str, tuple[str, str]]:
    """Reads a person's entries in a sheet.

    Args:
        text: the CSV; columns other than ``id``, ``decision`` and ``note`` do not matter.
        name: the file's name, for messages.

    Returns:
        Id to ``keep`` or ``drop`` and the note; rows without a decision are left out.

    Raises:
        UsageError: a column is missing, or a decision is neither; every such row is named.
    """
    text = text.removeprefix("\ufeff")
    first = text.split("\n", 1)[0]
    # In some languages, spreadsheet programs save CSV files with semicolons.
    delimiter = ";" if first.count(";") > first.count(",") else ","
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    if not {"id", "decision"} <= set(rows.fieldnames or ()):
        raise UsageError(f"{name}: the first row must name the columns id and decision")
    decisions: dict[str, tuple[str, str]] = {}
    wrong = []
    for number, row in enumerate(rows, start=2):
        filled = (row["decision"] or "").strip().lower()
        if not filled:
            continue
        if filled not in _DECISIONS:
            wrong.append(f"row {number}: {row['decision']!r}")
            continue
        plain = of_csv_text(row["id"])
        decisions[plain] = (_DECISIONS[filled], of_csv_text(row.get("note") or "").strip())
    if wrong:
        raise UsageError(
            f"{name}: not a decision: {'; '.join(wrong[:10])}", hint="Write keep or drop."
        )
    return decisions


_MAX_POST_LENGTH = 6000
_MAX_WHY_LENGTH = 300


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The chat model to ask, and how to ask it.

    Attributes:
        chat_model: the model.
        model: the server's name for it.
        params: further request parameters.
        template: the prompt, with the fields ``questions`` and ``post``.
        concurrency: requests at a time.
    """

    chat_model: ChatModel
    model: str
    params: Mapping[str, Any]
    template: Template
    concurrency: int = 4


async def ask_about(
    triaged: Sequence[TriagedPost],
    choice: ModelChoice,
    on_answer: Callable[[TriagedPost, dict[str, Judgement]], None],
) -> list[str]:
    """Asks about every post that has open questions.

    Args:
        triaged: the posts.
        choice: the model.
        on_answer: called with each post and its judgements as soon as the model has answered.

    Returns:
        One line for each post without a usable answer; the same call asks about them again.

    Raises:
        InferenceError: key, model name or address are wrong.
    """
    waiting = asyncio.Semaphore(choice.concurrency)
    failures: list[str] = []

    async def ask(post: TriagedPost) -> None:
        async with waiting:
            try:
                reply = await choice.chat_model.complete(_request(post, choice))
            except CallError as error:
                if error.kind == "access":
                    raise InferenceError(error.message) from error
                failures.append(f"{post.post.id}: {error.message}")
                return
        judgements = read_answer(reply.text, post.questions, choice.model)
        if judgements is None:
            failures.append(f"{post.post.id}: the reply is not the JSON that was requested")
        else:
            on_answer(post, judgements)

    try:
        async with asyncio.TaskGroup() as group:
            for entry in triaged:
                if entry.questions:
                    group.create_task(ask(entry))
    except* InferenceError as errors:
        raise errors.exceptions[0] from None
    return failures


def _request(post: TriagedPost, choice: ModelChoice) -> ChatRequest:
    questions = "\n".join(f"- {name}: {QUESTIONS[name]}" for name in post.questions)
    text = post.post.text[:_MAX_POST_LENGTH]
    prompt = choice.template.fill({"questions": questions, "post": text})
    params = {"temperature": 0, **choice.params}
    return ChatRequest(choice.model, ({"role": "user", "content": prompt},), params)


def read_answer(text: str, questions: Sequence[str], model: str) -> dict[str, Judgement] | None:
    """The judgements in a reply; None if it does not answer every question. Pure."""
    start, end = text.find("{"), text.rfind("}")
    try:
        document = json.loads(text[start : end + 1])
        return {
            name: Judgement(
                Answer(str(document[name]["answer"]).strip().lower()),
                " ".join(str(document[name].get("why") or "").split())[:_MAX_WHY_LENGTH],
                model,
            )
            for name in questions
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
