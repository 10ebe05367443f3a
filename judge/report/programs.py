"""Runs a suite's programs that judge checklist items, on request; their marks decide no verdicts.

An item of kind ``program`` has a Python program as its field ``code``. It runs in the sandbox, next
to the files of the answer, the inputs and the golds, and reports its result as Harbor's verifiers
do: as a number from 0 to 1 in ``/logs/verifier/reward.txt``, as ``reward`` in ``reward.json``
there, or else by its exit code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from judge.compare.checklists.workspace import files_of
from judge.core.limits import Limits
from judge.core.submission import Answer, AnswerFile, Origin
from judge.files.documents import MalformedError, utc_now
from judge.files.packed_folder import unpacked
from judge.grading.marks import MarkRecord
from judge.grading.running import last_error_line
from judge.report.marks import OpenItem, fields_of
from judge.sandbox.contract import OutputStatus, RunRequest, RunResult, RunStatus, SandboxSession

LOGS = "/logs/verifier/"
ANSWER, INPUT, GOLD = "/mnt/data/answer", "/mnt/data/input", "/mnt/data/gold"
"""The folders in which a program finds the answer, the inputs and the golds."""

RATER = "program"


@dataclass(frozen=True, slots=True)
class ItemProgram:
    """A program with the files that it runs on.

    Attributes:
        code: its source.
        files: absolute path inside the sandbox -> content.
    """

    code: str
    files: Mapping[str, bytes]

    @property
    def digest(self) -> str:
        """A hash that changes with the program and with any of its files."""
        hashes = {path: hashlib.sha256(data).hexdigest() for path, data in self.files.items()}
        text = json.dumps([self.code, sorted(hashes.items())])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def program_of(item: OpenItem, output: bytes | None) -> ItemProgram | None:
    """The program of an item; None if the suite does not have one that can be run here.

    Args:
        item: the item.
        output: the stored output; None if nothing was stored.

    Raises:
        GoldFaultError: a gold cannot be read.
        OSError: an input cannot be read.
    """
    task = item.submission.task
    code = fields_of(task, item.record["id"]).get("code")
    if task is None or not isinstance(code, str):
        return None
    case = next(case for case in task.cases if case.number == item.case)
    answer = {} if output is None else _answer(output, task.details.get("file", "output.xlsx"))
    return ItemProgram(
        code,
        {
            **{f"{ANSWER}/{path}": data for path, data in answer.items()},
            **{f"{INPUT}/{file.name}": file.path.read_bytes() for file in case.inputs},
            **{f"{GOLD}/{gold.name}": gold.read() for gold in case.golds if gold.path is not None},
        },
    )


def _answer(output: bytes, name: str) -> Mapping[str, bytes]:
    try:
        return files_of(Answer(Origin.FINISHED, (AnswerFile(name, output),)))
    except MalformedError:
        return {name: output}


def run_item(
    item: OpenItem, program: ItemProgram, session: SandboxSession, limits: Limits
) -> MarkRecord | str:
    """Runs the program of an item.

    Args:
        item: the item.
        program: its program.
        session: an isolated environment.
        limits: limits of the run.

    Returns:
        The mark, or why there is none: the program was stopped, or did not report a score.

    Raises:
        SandboxError: the sandbox failed.
    """
    result = session.run(RunRequest(program.code, program.files, LOGS, limits))
    score = score_of(result)
    if isinstance(score, str):
        return score
    why = "" if result.status is RunStatus.OK else last_error_line(result.stderr)
    return {**item.mark(RATER, score, utc_now(), why), "prompt": program.digest}


def score_of(result: RunResult) -> float | str:
    """The score from 0 to 1 that a run reports, or why there is none."""
    if result.status not in {RunStatus.OK, RunStatus.EXITED}:
        return result.detail or f"the program was stopped: {result.status.value}"
    left: Mapping[str, bytes] = {}
    if result.output_status is OutputStatus.COLLECTED and result.output is not None:
        left = unpacked(result.output)
    for name, read in (("reward.txt", _number), ("reward.json", _reward)):
        if name in left:
            score = read(left[name][:100_000].decode("utf-8", "replace"))
            return f"{LOGS}{name} does not hold a number from 0 to 1" if score is None else score
    return 1.0 if result.status is RunStatus.OK else 0.0


def _number(text: str) -> float | None:
    try:
        score = float(text)
    except ValueError:
        return None
    return score if 0 <= score <= 1 else None


def _reward(text: str) -> float | None:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return _number(str(document.get("reward"))) if isinstance(document, dict) else None
