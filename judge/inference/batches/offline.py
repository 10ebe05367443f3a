"""Requests as a file for offline inference (vLLM's ``run-batch``), and the results read back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from judge.errors import InferenceError, UsageError
from judge.files.json_lines import read_lines
from judge.files.writing import folder_beside, naming_what_is_written
from judge.inference.batches.desk import Desk, JobKey, Outcome
from judge.inference.batches.lines import read_result, request_line
from judge.inference.chat import CallError


class RequestsFile:
    """Writes the requests that have no reply yet; nothing is asked.

    Args:
        path: the file; an older one is replaced.

    Attributes:
        written: how many requests were written.
    """

    collects_batches = False

    def __init__(self, path: Path) -> None:
        self._path = path
        self.written = 0

    async def carry(self, desk: Desk) -> Outcome:
        """Writes the file.

        Raises:
            InferenceError: it cannot be written.
        """
        jobs: set[JobKey] = set()
        self.written = 0
        with (
            naming_what_is_written(self._path, InferenceError),
            folder_beside(self._path, ".requests-") as scratch,
        ):
            part = scratch / self._path.name
            with part.open("wb") as file:
                async for wanted in desk.wanted():
                    file.write(request_line(wanted.request))
                    jobs.add(wanted.job)
                    self.written += 1
            part.replace(self._path)
        return Outcome(unasked=frozenset(jobs))


class ResultsFile:
    """Takes replies from a file of results, in any order.

    Args:
        path: the file.
    """

    collects_batches = False

    def __init__(self, path: Path) -> None:
        self._path = path

    async def carry(self, desk: Desk) -> Outcome:
        """Files the replies to the requests that have none.

        Raises:
            UsageError: there is no such file.
            InferenceError: it cannot be read.
        """
        if not self._path.exists():
            raise UsageError(f"{self._path}: there is no such file")
        wanted = {each.request.custom_id: each async for each in desk.wanted()}
        total, name = len(wanted), self._path.name
        missing = f"{name} has no result of this request"
        failures = {each: CallError("gave-up", missing) for each in wanted}
        for _, line in read_lines(self._path, InferenceError):
            result = read_result(line)
            each = wanted.get(result.custom_id) if result is not None else None
            if result is None or each is None:
                continue
            if result.reply is None:
                assert result.error is not None
                failures[result.custom_id] = CallError(
                    result.error.kind, result.error.message, attempts=1
                )
                continue
            desk.file(each.key, replace(result.reply, attempts=1), each.prompt_tokens, name)
            del wanted[result.custom_id]
            failures.pop(result.custom_id, None)
        if total and len(wanted) == total and all(x.message == missing for x in failures.values()):
            raise InferenceError(
                f"{self._path}: none of the {total} requests that are to be answered is in it",
                hint="Requests are known by everything that is asked: suite, prompt, model and "
                "parameters. Read the results into the run that --batch-file was given for.",
            )
        return Outcome(failures)
