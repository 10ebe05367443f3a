"""Reads raw forum posts with various field names, and filters them. Pure.

A filter answers yes or no if the post is clear, and "unsure" otherwise. Then a chat model may be
asked. A person decides in any case.

Source: SpreadsheetBench, section on data sourcing and filtering: posts that are solved, that ask
only about spreadsheets, that have a workbook, and that do not ask about parts of the software such
as buttons and forms.
"""

from __future__ import annotations

import enum
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from judge.errors import UsageError
from judge.files.documents import MalformedError, parse_json

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
_ENOUGH_WORDS = 2


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
    if len(words) < _ENOUGH_WORDS:
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
