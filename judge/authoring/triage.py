"""Selects forum posts by rules, then a chat model, then a person's decision. The state is stored.

```
posts.triage/
  judgements.jsonl   the filters' answers about posts; the last record of a post counts
  decisions.jsonl    people's decisions; the last record of a post counts
```

A filter answers yes or no if the post is clear, and "unsure" otherwise. Then a chat model may be
asked. A person decides in any case.

Source: SpreadsheetBench, section on data sourcing and filtering: posts that are solved, that ask
only about spreadsheets, that have a workbook, and that do not ask about parts of the software such
as buttons and forms.
"""

from __future__ import annotations

import asyncio
import csv
import enum
import hashlib
import io
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from judge.core.replies.relaxed import object_in
from judge.errors import InferenceError, UsageError
from judge.files.documents import MalformedError, as_csv_text, of_csv_text, parse_json, utc_now
from judge.grading.store import RunDirectory
from judge.inference.chat import CallError, ChatModel, ChatRequest
from judge.inference.prompt import Template

_TEXT_FIELDS = ("body", "text", "question", "content", "post", "instruction")
_SOLVED_WORDS = frozenset({"solved", "answered", "resolved", "closed", "accepted", "done"})
_OPEN_WORDS = frozenset({"unsolved", "unanswered", "open", "unresolved", "new"})


@dataclass(frozen=True, slots=True)
class Post:
    """A forum post.

    Attributes:
        id: as text.
        title: its title; may be empty.
        body: its text.
        tags: its tags or forum.
        url: its address.
        solved: whether its forum marks it as solved; None if the record has no such field.
        attachments: file names or addresses; None if the record has no such field.
        digest: SHA-256 of the record.
    """

    id: str
    title: str
    body: str
    tags: tuple[str, ...]
    url: str | None
    solved: bool | None
    attachments: tuple[str, ...] | None
    digest: str

    @property
    def text(self) -> str:
        """Title, tags and body."""
        return "\n".join(part for part in (self.title, " ".join(self.tags), self.body) if part)


def read_posts(lines: Iterable[tuple[int, bytes]], name: str) -> tuple[Post, ...]:
    """Reads the posts of a ``.jsonl`` file.

    Args:
        lines: its lines that are not blank, with their numbers.
        name: the file's name, for messages.

    Raises:
        UsageError: a line is not a post, or an id is used twice; the message names it.
    """
    posts: dict[str, Post] = {}
    for number, line in lines:
        try:
            record = parse_json(line)
        except MalformedError as error:
            raise UsageError(f"{name}, line {number}: {error}") from error
        if not isinstance(record, dict):
            raise UsageError(f"{name}, line {number}: must be an object with `id` and `body`")
        post = _read_post(record, f"{name}, line {number}")
        if post.id in posts:
            raise UsageError(f"{name}, line {number}: the id {post.id} is already used")
        posts[post.id] = post
    if not posts:
        raise UsageError(f"{name}: holds no post")
    return tuple(posts.values())


def _read_post(record: Mapping[str, Any], where: str) -> Post:
    raw_id = record.get("id", record.get("url"))
    if isinstance(raw_id, bool) or not isinstance(raw_id, int | str) or raw_id == "":
        raise UsageError(f"{where}: field 'id' is missing, or neither an integer nor text")
    body = next((record[name] for name in _TEXT_FIELDS if isinstance(record.get(name), str)), "")
    title = record.get("title")
    if not body and not isinstance(title, str):
        raise UsageError(f"{where}: has no text; it must be in one of {', '.join(_TEXT_FIELDS)}")
    tags = record.get("tags", record.get("forum"))
    url = record.get("url")
    text = json.dumps(record, sort_keys=True)
    return Post(
        id=str(raw_id),
        title=title if isinstance(title, str) else "",
        body=body,
        tags=_texts(tags) or (),
        url=url if isinstance(url, str) else None,
        solved=_is_solved(record, title if isinstance(title, str) else ""),
        attachments=_attachments(record),
        digest=hashlib.sha256(text.encode()).hexdigest(),
    )


def _is_solved(record: Mapping[str, Any], title: str) -> bool | None:
    for name in ("solved", "is_solved", "answered", "is_answered"):
        if isinstance(record.get(name), bool):
            return bool(record[name])
    for name in ("accepted_answer", "accepted_answer_id", "best_answer"):
        if name in record:
            return bool(record[name])
    status = record.get("status")
    words = {status.strip().lower()} if isinstance(status, str) else set()
    words |= {tag.lower() for tag in _texts(record.get("tags")) or ()}
    if title.strip().lower().startswith(("[solved]", "solved:", "(solved)")):
        words.add("solved")
    if words & _OPEN_WORDS:
        return False
    return True if words & _SOLVED_WORDS else None


def _attachments(record: Mapping[str, Any]) -> tuple[str, ...] | None:
    for name in ("attachments", "attachment", "files"):
        if name in record:
            return _texts(record[name]) or ()
    return None


def _texts(value: Any) -> tuple[str, ...] | None:
    """The strings of a field: a string, a list of strings, or objects with a name or an address."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if not isinstance(value, list):
        return None
    texts = []
    for attachment in value:
        if isinstance(attachment, dict):
            names = (attachment.get(key) for key in ("name", "filename", "file_name", "url"))
            texts.extend([text for text in names if isinstance(text, str)][:1])
        elif isinstance(attachment, str):
            texts.append(attachment)
    return tuple(texts)


class Answer(enum.StrEnum):
    """A filter's answer about a post."""

    YES = "yes"
    NO = "no"
    UNSURE = "unsure"


class Proposal(enum.StrEnum):
    """The filters' proposal to the person who decides."""

    KEEP = "keep"
    DROP = "drop"
    UNSURE = "unsure"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judgement of one filter.

    Attributes:
        answer: yes keeps the post, no excludes it.
        why: the words in the post on which the answer is based.
        source: ``rules``, or the name of the chat model.
    """

    answer: Answer
    why: str
    source: str = "rules"


SOLVED = "solved"
SPREADSHEETS_ONLY = "spreadsheets_only"
ATTACHMENT = "attachment"
NO_SOFTWARE_PARTS = "no_software_parts"

QUESTIONS: Mapping[str, str] = {
    SOLVED: "Has the question been solved, as far as the post tells?",
    SPREADSHEETS_ONLY: (
        "Is it about spreadsheets alone? Say no where another program, a database, a website, "
        "printing or mail is part of the question."
    ),
    ATTACHMENT: "Does a workbook come with it, attached or linked?",
    NO_SOFTWARE_PARTS: (
        "Can it be answered by changing cells, formats or sheets of a workbook? Say no where it "
        "asks about parts of the software itself, such as buttons, forms, menus, add-ins, settings "
        "or crashes."
    ),
}
"""The filters, each with a question; "yes" means that the post is suitable."""

_WORKBOOK_NAME = re.compile(r"\.(?:xlsx|xlsm|xlsb|xls|ods|csv)\b", re.IGNORECASE)
_ATTACHED = re.compile(r"\b(?:attach(?:ed|ment|ing)?|enclosed|uploaded|sample (?:file|workbook))\b",
                       re.IGNORECASE)  # fmt: skip
_SPREADSHEET_WORDS = re.compile(
    r"\b(?:excel|spreadsheets?|google sheets|libreoffice calc|work(?:book|sheet)s?|sheets?|cells?|"
    r"columns?|rows?|formulas?|formulae|pivot|v-?lookup|x-?lookup|sumifs?|countifs?|index|match|"
    r"vba|macros?|ranges?|tables?|conditional format\w*)\b",
    re.IGNORECASE,
)
_OTHER_PROGRAMS = re.compile(
    r"\b(?:microsoft access|ms[- ]?access|access (?:database|table|query|form)|"
    r"(?:microsoft|ms)[- ]?word|word (?:document|template|file)|mail merge|outlook|power ?point|"
    r"sql server|mysql|postgres\w*|odbc|share ?point|power ?bi|power ?automate|tableau|selenium|"
    r"web ?scrap\w*|internet explorer|chrome|whats ?app|gmail|sap gui|autocad)\b|"
    r"\.(?:accdb|mdb|docx?|pptx?)\b",
    re.IGNORECASE,
)
_OTHER_HINTS = re.compile(
    r"\b(?:e-?mails?|web ?sites?|web ?pages?|database|pdf|print(?:er|ing)?|sql|python|server|"
    r"api)\b",
    re.IGNORECASE,
)
_SOFTWARE_PARTS = re.compile(
    r"\b(?:user ?forms?|command ?buttons?|(?:option|toggle|spin|radio) ?buttons?|combo ?box(?:es)?|"
    r"list ?box(?:es)?|text ?box(?:es)?|check ?box(?:es)?|form controls?|active ?x|ribbon|"
    r"tool ?bars?|quick access|add-?ins?|msg ?box|splash screen|task pane|status bar|"
    r"product key|licen[sc]e key|re-?install\w*|excel (?:crashes|freezes|hangs|won'?t open))\b",
    re.IGNORECASE,
)
_SOFTWARE_HINTS = re.compile(
    r"\b(?:buttons?|forms?|menus?|dialog(?:ue)?s?|pop-?ups?|keyboard|shortcut|password|protect\w*|"
    r"install\w*|crash\w*|freez\w*|settings?|options? tab|windows? size|screen|drop-?downs?|"
    r"slicers?|charts?|shapes?|pictures?|images?)\b",
    re.IGNORECASE,
)
_MIN_WORDS = 2  # of a title; with fewer, it says nothing


def apply_rules(post: Post) -> dict[str, Judgement]:
    """Applies the rules to a post, for each of :data:`QUESTIONS`."""
    return {
        SOLVED: _solved(post),
        SPREADSHEETS_ONLY: _spreadsheets_only(post.text),
        ATTACHMENT: _attachment(post),
        NO_SOFTWARE_PARTS: _no_software_parts(post.text),
    }


def propose(judgements: Mapping[str, Judgement]) -> Proposal:
    """Drops a post if any filter says no, keeps it if all say yes, and is unsure otherwise."""
    answers = {judgement.answer for judgement in judgements.values()}
    if Answer.NO in answers:
        return Proposal.DROP
    return Proposal.UNSURE if Answer.UNSURE in answers else Proposal.KEEP


def open_questions(judgements: Mapping[str, Judgement]) -> tuple[str, ...]:
    """The questions to ask a chat model: those without an answer; none if any filter said no."""
    if propose(judgements) is not Proposal.UNSURE:
        return ()
    return tuple(
        name for name, judgement in judgements.items() if judgement.answer is Answer.UNSURE
    )


def _solved(post: Post) -> Judgement:
    if post.solved is None:
        return Judgement(Answer.UNSURE, "the record does not say")
    return Judgement(*((Answer.YES, "marked as solved") if post.solved
                       else (Answer.NO, "marked as not solved")))  # fmt: skip


def _attachment(post: Post) -> Judgement:
    named = [name for name in post.attachments or () if _WORKBOOK_NAME.search(name)]
    if named:
        return Judgement(Answer.YES, named[0])
    linked = _WORKBOOK_NAME.search(post.body)
    if linked:
        return Judgement(Answer.UNSURE, f"a file is named: {_around(post.body, linked)}")
    if post.attachments:
        return Judgement(Answer.NO, f"no workbook among: {', '.join(post.attachments)[:80]}")
    attached = _ATTACHED.search(post.body)
    if attached:
        return Judgement(
            Answer.UNSURE, f"only the text mentions it: {_around(post.body, attached)}"
        )
    if post.attachments is None:
        return Judgement(Answer.UNSURE, "the record does not say")
    return Judgement(Answer.NO, "none")


def _spreadsheets_only(text: str) -> Judgement:
    if other := _OTHER_PROGRAMS.search(text):
        return Judgement(Answer.NO, _around(text, other))
    if hint := _OTHER_HINTS.search(text):
        return Judgement(Answer.UNSURE, _around(text, hint))
    words = {match[0].lower() for match in _SPREADSHEET_WORDS.finditer(text)}
    if len(words) < _MIN_WORDS:
        return Judgement(Answer.UNSURE, "it has few words about spreadsheets")
    return Judgement(Answer.YES, ", ".join(sorted(words)[:4]))


def _no_software_parts(text: str) -> Judgement:
    if part := _SOFTWARE_PARTS.search(text):
        return Judgement(Answer.NO, _around(text, part))
    if hint := _SOFTWARE_HINTS.search(text):
        return Judgement(Answer.UNSURE, _around(text, hint))
    return Judgement(Answer.YES, "no part of the software is named")


def _around(text: str, match: re.Match[str], width: int = 30) -> str:
    """A match with some words before and after it, on one line."""
    start, end = max(match.start() - width, 0), match.end() + width
    shown = " ".join(text[start:end].split())
    return f"{'…' if start else ''}{shown}{'…' if end < len(text) else ''}"


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
        UsageError: a column is missing, or a decision is neither ``keep`` nor ``drop``; the message
            names every such row.
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


_MAX_POST_CHARS = 6000
_MAX_WHY_CHARS = 300


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
    text = post.post.text[:_MAX_POST_CHARS]
    prompt = choice.template.fill({"questions": questions, "post": text})
    params = {"temperature": 0, **choice.params}
    return ChatRequest(choice.model, ({"role": "user", "content": prompt},), params)


def read_answer(text: str, questions: Sequence[str], model: str) -> dict[str, Judgement] | None:
    """The judgements in a reply; None if it does not answer every question. Pure."""
    try:
        document = object_in(text)
        return {
            name: Judgement(
                Answer(str(document[name]["answer"]).strip().lower()),
                " ".join(str(document[name].get("why") or "").split())[:_MAX_WHY_CHARS],
                model,
            )
            for name in questions
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
