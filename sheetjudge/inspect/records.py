"""What the judge keeps of a conversation in the sample's store, and reads from a stored log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inspect_ai.solver import TaskState

from judge.core.submission import Submission
from judge.core.task import Task
from judge.errors import SubmissionError
from judge.inference.inspect_logs import STORE_KEY, record_of_store
from judge.suites import Suite
from judge.suites.submissions import submission_of_record


def keep_record(
    state: TaskState,
    record: Mapping[str, Any],
    rounds: Sequence[Mapping[str, Any]],
    *,
    is_finished: bool,
) -> None:
    """Keeps what was handed in: a record as those of submissions.jsonl, and its rounds."""
    kept = {name: value for name, value in record.items() if name != "conversation"}
    kept |= {"model": str(state.model), "finished": is_finished, "round_records": list(rounds)}
    state.store.set(STORE_KEY, kept)


def submission_of_state(state: TaskState, suite: Suite, task: Task) -> Submission:
    """What is handed in: what the judge's solver kept, otherwise the last reply.

    Args:
        state: the sample; a stored one may come from anybody.
        suite: the suite that it answers.
        task: the task.
    """
    record: dict[str, Any] = {"id": task.id, "sample": state.epoch - 1}
    said = "solution" if task.answer.is_file else "response"
    reply = record | {said: state.output.completion}
    kept = record_of_store(state.store.get(STORE_KEY), is_file=task.answer.is_file)
    try:
        return submission_of_record(reply if kept is None else kept | record, suite)
    except SubmissionError:  # a store that the judge did not write
        return submission_of_record(reply, suite)
