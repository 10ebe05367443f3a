"""A server's batch endpoints: files, and batches made of them. No decisions are made here."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from judge.files.documents import MalformedError, as_object, parse_json
from judge.files.json_lines import MAX_LINE_BYTES
from judge.inference.batches.book import is_id
from judge.inference.batches.lines import CHAT_PATH
from judge.inference.chat import CallError
from judge.inference.client import Errand, OpenAIChatModel

WINDOW = "24h"
"""The time for a batch; most servers do not take any other."""

LABEL = "judge"
"""The name of the metadata that says which of the judge's batches it is."""

_OVER = frozenset({"completed", "failed", "expired", "cancelled"})
_PAGES = 200
_PAGE = 100
_CLOCKS_DIFFER_S = 86_400.0
_SHOWN_CHARS = 300


@dataclass(frozen=True, slots=True)
class BatchState:
    """A batch as the server describes it.

    Attributes:
        batch_id: its id.
        status: ``validating``, ``in_progress``, ``finalizing``, ``completed``, ``failed``,
            ``expired``, ``cancelling`` or ``cancelled``.
        answered: requests that are done, failures included.
        total: requests in all; 0 while the server does not say.
        files: the files with results that there are.
        errors: why it failed as a whole: the 1-based line, if it is about one, and the message.
    """

    batch_id: str
    status: str
    answered: int = 0
    total: int = 0
    files: tuple[str, ...] = ()
    errors: tuple[tuple[int | None, str], ...] = ()

    @property
    def is_over(self) -> bool:
        """Whether nothing will change any more."""
        return self.status in _OVER


class BatchEndpoint:
    """Batches of the server of a chat model.

    Args:
        model: whose connection, key and retries are used.
    """

    def __init__(self, model: OpenAIChatModel) -> None:
        self._model = model

    @property
    def endpoint(self) -> str:
        """Address of the server, without credentials."""
        return self._model.endpoint

    async def upload(self, name: str, content: IO[bytes]) -> str:
        """Uploads a file with requests; returns its id.

        Raises:
            CallError: it could not be uploaded. Nothing is paid for a file.
        """
        errand = Errand("/files", body={"purpose": "batch"}, file=(name, content))
        return _id_in(await self._ask(errand), "file")

    async def create(self, file_id: str, label: str) -> BatchState:
        """Has a batch made of a file. Tried once: it must not happen twice.

        Raises:
            CallError: of the kind ``gave-up`` where the batch may exist all the same.
        """
        body = {
            "input_file_id": file_id,
            "endpoint": CHAT_PATH,
            "completion_window": WINDOW,
            "metadata": {LABEL: label},
        }
        return _state_of(await self._ask(Errand("/batches", body=body), once=True))

    async def state(self, batch_id: str) -> BatchState:
        """How a batch is getting on.

        Raises:
            CallError: the server does not say.
        """
        return _state_of(await self._ask(Errand(f"/batches/{batch_id}")))

    async def find(self, label: str, file_id: str, begun_s: float) -> BatchState | None:
        """The batch with a label, or of a file; None if the server has none.

        Args:
            label: the label.
            file_id: the file.
            begun_s: when it can have been made at the earliest, in seconds since 1970; the server's
                clock may differ by a day.

        Raises:
            CallError: the server does not list its batches.
        """
        after = ""
        for _ in range(_PAGES):
            page = await self._ask(Errand(f"/batches?limit={_PAGE}{after}"))
            entries = page.get("data")
            listed = entries if isinstance(entries, list) else []
            batches = [each for each in listed if isinstance(each, dict)]
            for batch in batches:
                metadata = batch.get("metadata")
                labelled = isinstance(metadata, dict) and metadata.get(LABEL) == label
                if labelled or batch.get("input_file_id") == file_id:
                    return _state_of(batch)
            if not page.get("has_more") or not batches or not is_id(batches[-1].get("id")):
                return None
            made = batches[-1].get("created_at")
            if isinstance(made, int | float) and made < begun_s - _CLOCKS_DIFFER_S:
                return None  # the newest come first
            after = f"&after={batches[-1]['id']}"
        return None

    async def forget(self, file_id: str) -> None:
        """Deletes a file, so that no batch can be made of it any more; if it can be deleted."""
        with suppress(CallError):
            await self._model.call(Errand(f"/files/{file_id}", deletes=True))

    async def results(self, file_id: str, folder: Path) -> AsyncIterator[bytes]:
        """The lines of a file with results.

        Args:
            file_id: the file.
            folder: where it is kept while it is read; nothing of it stays.

        Raises:
            CallError: it could not be downloaded.
        """
        with tempfile.TemporaryFile(dir=folder) as file:
            await self._model.call(Errand(f"/files/{file_id}/content", keep_in=file))
            while line := file.readline(MAX_LINE_BYTES + 1):
                yield self._model.mask.masked(line)

    async def _ask(self, errand: Errand, *, once: bool = False) -> dict[str, Any]:
        body = await self._model.call(errand, once=once)
        try:
            return as_object(parse_json(body))
        except MalformedError as error:
            # What was asked may have been done.
            shown = body[:80].decode("utf-8", "replace")
            message = f"the answer to {errand.path} is not what a batch endpoint says: {shown!r}"
            raise CallError("gave-up", message, attempts=1) from error


def _id_in(document: dict[str, Any], what: str) -> str:
    found = document.get("id")
    if not is_id(found):
        message = f"the server names no {what} that was made, but {str(found)[:80]!r}"
        raise CallError("gave-up", message, attempts=1)
    return str(found)


def _state_of(document: dict[str, Any]) -> BatchState:
    counts = document.get("request_counts")
    counted = counts if isinstance(counts, dict) else {}
    files = (document.get("output_file_id"), document.get("error_file_id"))
    errors = document.get("errors")
    entries = errors.get("data") if isinstance(errors, dict) else None
    return BatchState(
        batch_id=_id_in(document, "batch"),
        status=str(document.get("status")).lower()[:40],
        answered=_count(counted.get("completed")) + _count(counted.get("failed")),
        total=_count(counted.get("total")),
        files=tuple(file for file in files if isinstance(file, str) and is_id(file)),
        errors=tuple(_error(x) for x in entries if isinstance(x, dict))
        if isinstance(entries, list)
        else (),
    )


def _error(entry: dict[str, Any]) -> tuple[int | None, str]:
    line = entry.get("line")
    said = ": ".join(str(entry[name]) for name in ("code", "message") if entry.get(name))
    return (line if type(line) is int else None), said[:_SHOWN_CHARS]


def _count(value: object) -> int:
    return value if type(value) is int and value > 0 else 0
