"""The run's ``batches.jsonl``: what was sent together, and how far that got.

Each step of a batch is on the disk before the next is taken, so that a process that is killed at
any moment leaves behind what is needed to find its batches again:

```
intended    which requests; nothing is at the server yet
uploaded    the file with them is at the server; from now on a batch may have been made of it
created     the batch's id
collected   its replies are in calls.jsonl
void        there is no such batch: its requests are asked otherwise
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
from judge.inference.asker import CallKey, custom_id_of

BATCHES_FILE = "batches.jsonl"
_ENDED = frozenset({"collected", "void"})
_LABEL = re.compile(r"judge-[0-9a-f]{32}")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,199}")


def is_id(value: object) -> bool:
    """Whether something can be the id of a file or a batch, which become parts of addresses."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


@dataclass(frozen=True, slots=True)
class Booked:
    """A request of a batch.

    Attributes:
        key: the call.
        prompt_tokens: about how many tokens its prompt has.
    """

    key: CallKey
    prompt_tokens: int


@dataclass(slots=True)
class OpenBatch:
    """A batch whose replies are not all on record yet.

    Attributes:
        label: what the judge calls it; the server keeps it as the batch's metadata.
        endpoint: the server.
        requests: what was asked, by custom id, in the order of the file.
        begun_s: when it was intended, in seconds since 1970 by this machine's clock.
        file_id: the file at the server; None if it is not known to be there.
        batch_id: the batch; None if it is not known to exist.
        tokens: about how many tokens it takes.
        cost: about how many US dollars.
    """

    label: str
    endpoint: str
    requests: dict[str, Booked]
    begun_s: float
    file_id: str | None = None
    batch_id: str | None = None
    tokens: int = 0
    cost: float = 0.0


class BatchBook:
    """Reads and writes the steps of a run's batches.

    Args:
        store: the run's directory.
    """

    def __init__(self, store: RunDirectory) -> None:
        self._store = store

    def open_batches(self) -> list[OpenBatch]:
        """The batches that are not ended, oldest first.

        Raises:
            StoreError: a record is not one of the judge's.
        """
        found: dict[str, OpenBatch] = {}
        for number, record in enumerate(self._store.read_records(BATCHES_FILE), 1):
            try:
                self._take(record, found)
            except (KeyError, TypeError, ValueError) as error:
                raise StoreError(
                    f"{self._store.path / BATCHES_FILE}, record {number}: is not in the form that "
                    f"this judge writes ({type(error).__name__})",
                    hint="It was not written by this judge. Give another --out.",
                ) from error
        return list(found.values())

    @staticmethod
    def _take(record: Mapping[str, Any], found: dict[str, OpenBatch]) -> None:
        label, state = record["batch"], record["state"]
        if state == "intended":
            if not _LABEL.fullmatch(label):
                raise ValueError
            rows = [Booked(_key(row), _natural(row[5])) for row in record["requests"]]
            found[label] = OpenBatch(
                label=label,
                endpoint=str(record["endpoint"]),
                requests={custom_id_of(each.key): each for each in rows},
                begun_s=float(record["begun_s"]),
                tokens=_natural(record["tokens"]),
                cost=max(float(record["cost"]), 0.0),
            )
        elif state in _ENDED:
            found.pop(label, None)
        else:
            name = {"uploaded": "file_id", "created": "batch_id"}[state]
            if not is_id(record[name]):
                raise ValueError
            setattr(found[label], name, record[name])

    def intend(
        self, endpoint: str, requests: Sequence[Booked], tokens: int, cost: float
    ) -> OpenBatch:
        """Writes down what is about to be sent, before any of it is.

        Args:
            endpoint: the server.
            requests: what is to be asked.
            tokens: about how many tokens that takes.
            cost: about how many US dollars.
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
        """The file is at the server; the next step makes a batch of it."""
        self._note(batch, "uploaded", file_id=file_id)
        batch.file_id = file_id

    def created(self, batch: OpenBatch, batch_id: str) -> None:
        """The batch exists."""
        self._note(batch, "created", batch_id=batch_id)
        batch.batch_id = batch_id

    def collected(self, batch: OpenBatch, status: str, answered: int) -> None:
        """What came of the batch is on record; what it did not answer may be asked again."""
        self._note(
            batch, "collected", status=status, answered=answered, requests=len(batch.requests)
        )

    def void(self, batch: OpenBatch, reason: str) -> None:
        """There is no such batch."""
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
