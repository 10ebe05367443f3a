"""Raw forum posts, in whatever fields they were collected. Pure."""

from __future__ import annotations

import hashlib
import json
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
        solved: whether its forum says that it is solved; None if the record does not say.
        attachments: file names or addresses; None if the record says nothing about them.
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
    """The posts of a ``.jsonl``.

    Args:
        lines: its lines that are not blank, with their numbers.
        name: the file's name, for messages.

    Raises:
        UsageError: a line is not a post, or an id is used twice; the line is named.
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
        solved=_solved(record, title if isinstance(title, str) else ""),
        attachments=_attachments(record),
        digest=hashlib.sha256(text.encode()).hexdigest(),
    )


def _solved(record: Mapping[str, Any], title: str) -> bool | None:
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
    """Strings of a field that holds one, a list of them, or objects with a name or an address."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if not isinstance(value, list):
        return None
    texts = []
    for each in value:
        if isinstance(each, dict):
            found = (each.get(key) for key in ("name", "filename", "file_name", "url"))
            texts.extend([text for text in found if isinstance(text, str)][:1])
        elif isinstance(each, str):
            texts.append(each)
    return tuple(texts)
