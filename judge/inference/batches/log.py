"""The run's ``batches.jsonl``: which requests were sent together, and the state of each batch.

Each step of a batch is written to disk before the next one is taken. So the batches of a process
that is killed at any moment can be found again:

```
intended    the requests are chosen; nothing has been sent to the server yet
uploaded    the file with the requests is on the server; a batch may have been created from it
created     the server has given the batch an id
collected   its replies are in calls.jsonl
void        the batch does not exist; its requests are sent again
```
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judge.errors import StoreError
from judge.files.documents import utc_now
from judge.grading.store import RunDirectory
from judge.inference.calls import CallKey, custom_id_of

BATCHES_FILE = "batches.jsonl"
_ENDED = frozenset({"collected", "void"})
_LABEL = re.compile(r"judge-[0-9a-f]{32}")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,199}")


def is_id(value: object) -> bool:
    """Whether a value can be the id of a file or a batch, which becomes part of an address."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


@dataclass(frozen=True, slots=True)
class BatchedRequest:
    """A request of a batch.

    Attributes:
        key: the key of the call.
        prompt_tokens: estimated tokens of the prompt.
    """

    key: CallKey
    prompt_tokens: int


@dataclass(slots=True)
class OpenBatch:
    """A batch whose replies have not been recorded yet.

    Attributes:
        label: the judge's name for the batch, which the server keeps in the batch's metadata.
        endpoint: address of the server.
        requests: the requests by custom id, in the order of the file.
        begun_s: time of the step ``intended``, in seconds since 1970 by this machine's clock.
        file_id: the server's id of the file; None if no upload is recorded.
        batch_id: the server's id of the batch; None if no batch is recorded.
        tokens: estimated tokens of the batch.
        cost: estimated cost of the batch in US dollars.
    """

    label: str
    endpoint: str
    requests: dict[str, BatchedRequest]
    begun_s: float
    file_id: str | None = None
    batch_id: str | None = None
    tokens: int = 0
    cost: float = 0.0


class BatchLog:
    """Reads and writes the steps of a run's batches.

    Args:
        store: the run's directory.
    """

    def __init__(self, store: RunDirectory) -> None:
        self._store = store

    def open_batches(self) -> list[OpenBatch]:
        """Returns the batches that have not ended, oldest first.

        Raises:
            StoreError: the judge did not write one of the records.
        """
        batches: dict[str, OpenBatch] = {}
        for number, record in enumerate(self._store.read_records(BATCHES_FILE), 1):
            try:
                self._take(record, batches)
            except (KeyError, TypeError, ValueError) as error:
                raise StoreError(
                    f"{self._store.path / BATCHES_FILE}, record {number}: is not in the form that "
                    f"this judge writes ({type(error).__name__})",
                    hint="It was not written by this judge. Give another --out.",
                ) from error
        return list(batches.values())

    @staticmethod
    def _take(record: Mapping[str, Any], batches: dict[str, OpenBatch]) -> None:
        label, state = record["batch"], record["state"]
        if state == "intended":
            if not _LABEL.fullmatch(label):
                raise ValueError
            rows = [BatchedRequest(_key(row), _natural(row[5])) for row in record["requests"]]
            batches[label] = OpenBatch(
                label=label,
                endpoint=str(record["endpoint"]),
                requests={custom_id_of(request.key): request for request in rows},
                begun_s=float(record["begun_s"]),
                tokens=_natural(record["tokens"]),
                cost=max(float(record["cost"]), 0.0),
            )
        elif state in _ENDED:
            batches.pop(label, None)
        else:
            name = {"uploaded": "file_id", "created": "batch_id"}[state]
            if not is_id(record[name]):
                raise ValueError
            setattr(batches[label], name, record[name])

    def intend(
        self, endpoint: str, requests: Sequence[BatchedRequest], tokens: int, cost: float
    ) -> OpenBatch:
        """Records the requests of a batch before any of them is sent.

        Args:
            endpoint: address of the server.
            requests: the requests.
            tokens: their estimated tokens, replies included.
            cost: their estimated cost in US dollars.
        """
        batch = OpenBatch(
            label=f"judge-{uuid.uuid4().hex}",
            endpoint=endpoint,
            requests={custom_id_of(request.key): request for request in requests},
            begun_s=time.time(),
            tokens=tokens,
            cost=cost,
        )
        rows = [[*request.key, request.prompt_tokens] for request in requests]
        self._note(
            batch,
            "intended",
            endpoint=endpoint,
            begun_s=batch.begun_s,
            tokens=tokens,
            cost=cost,
            requests=rows,
        )
        return batch

    def uploaded(self, batch: OpenBatch, file_id: str) -> None:
        """Records that the file was uploaded; the next step creates a batch from it."""
        self._note(batch, "uploaded", file_id=file_id)
        batch.file_id = file_id

    def created(self, batch: OpenBatch, batch_id: str) -> None:
        """Records that the server created the batch."""
        self._note(batch, "created", batch_id=batch_id)
        batch.batch_id = batch_id

    def collected(self, batch: OpenBatch, status: str, answered: int) -> None:
        """Records that the replies were collected; requests without a reply may be sent again."""
        self._note(
            batch, "collected", status=status, answered=answered, requests=len(batch.requests)
        )

    def void(self, batch: OpenBatch, reason: str) -> None:
        """Records that the batch does not exist."""
        self._note(batch, "void", reason=reason)

    def _note(self, batch: OpenBatch, state: str, **facts: object) -> None:
        at = utc_now()
        record = {"batch": batch.label, "state": state, "at": at, **facts}
        self._store.append(BATCHES_FILE, record, durable=True)


def _key(row: Sequence[Any]) -> CallKey:
    task, sample, case, round_number, request, _ = row
    if not isinstance(task, str) or not isinstance(request, str):
        raise TypeError
    return (task, _natural(sample), _natural(case), _natural(round_number), request)


def _natural(value: object) -> int:
    if type(value) is not int or value < 0:
        raise TypeError
    return value
