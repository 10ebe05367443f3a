"""What making a run out of somebody else's log takes, whatever the log."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from judge.core.records.runs import RunDocument
from judge.errors import StoreError
from judge.files.documents import utc_now
from judge.grading.store import RunDirectory
from judge.inference.run_records import InferenceRecords
from judge.suites import Suite


@contextlib.contextmanager
def empty_records(store: RunDirectory) -> Iterator[InferenceRecords]:
    """Takes a directory, which must hold no submissions yet, until the end of the block.

    Raises:
        StoreError: it holds some, another process is at work on it, or it cannot be written.
    """
    records = InferenceRecords(store)
    records.lock()
    try:
        if records.finished():
            raise StoreError(f"{store.path}: holds submissions already", hint="Give another --out.")
        yield records
    finally:
        records.close()


def imported_run(
    log: Path, suite: Suite, source: str, *, model: str | None, setting: str | None
) -> RunDocument:
    """What run.json says of a run that comes from a log.

    Args:
        log: the log.
        suite: the suite that it answers.
        source: what the suite was loaded from.
        model: the chat model, if the log says.
        setting: the setting of inference, if the log says.
    """
    return {
        "suite": {
            "name": suite.name,
            "source": source,
            "digest": suite.digest,
            "format": suite.format,
        },
        "imported_from": log.name,
        "model": model,
        "setting": setting,
        "created": utc_now(),
    }
