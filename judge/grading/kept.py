"""What episodes on a desktop left: as far as it is known before it is compared.

The file of an episode is kept in the results directory; nothing is run to judge it. Every formula
in it is computed: that only mouse and keyboard were used, so that the spreadsheet program wrote the
values, is what a record says, and anybody can write one. Only if the command says so, the values of
such a file are trusted like those of a gold (decision 0035).
"""

from __future__ import annotations

import hashlib
import json

from judge.console.visible import visible
from judge.core.answer import Answer, Origin
from judge.core.records.cases import CaseRun
from judge.core.submission import KeptOutput, Submission
from judge.core.task import Task, TestCase
from judge.core.verdict import CaseResult, Verdict
from judge.grading.finished import FINISHED
from judge.grading.running import RunOutcome
from judge.grading.store import RunDirectory, kept_workbook

EPISODE = "episode"
"""The status of such a run on record."""

GIVEN_UP = "fail"
"""How an episode ended whose last word is that the task cannot be done."""

GAVE_UP = "it was answered that the task cannot be done"


def is_kept(task: Task, submission: Submission) -> bool:
    """Whether a submission is what was left on a desktop, so that nothing is run for it."""
    return submission.outputs is not None and task.answer.is_file


def output_for(submission: Submission, case: TestCase) -> KeptOutput | None:
    """What was left for a case; None where no episode was held."""
    return (submission.outputs or {}).get(case.number)


def kept_key(output: KeptOutput | None) -> str:
    """The reuse key of what was left: the file, and how it came about.

    Args:
        output: what was left; None where no episode was held.
    """
    parts = None
    if output is not None:
        parts = [output.sha256, output.ended, output.gui_only, output.name, output.problem]
    return hashlib.sha256(json.dumps(["episode", parts]).encode("utf-8", "replace")).hexdigest()


def kept_outcome(
    output: KeptOutput | None, data: bytes | None = None, *, trusts_values: bool = False
) -> RunOutcome:
    """The outcome of an episode, as far as it is known before its file is compared.

    Args:
        output: what was left; None where no episode was held.
        data: the file, if it has been read already.
        trusts_values: whether the command trusts the values in a file that, by its record, is the
            work of mouse and keyboard alone.
    """
    if output is None:
        return RunOutcome(Verdict.NO, "no episode was held on this case", {"status": EPISODE})
    record: CaseRun = {"status": EPISODE, "ended": output.ended}
    if output.ended == GIVEN_UP:
        return RunOutcome(Verdict.WA, GAVE_UP, record)
    if output.sha256 is None:
        problem = visible(output.problem)[:300] or "it is missing"
        return RunOutcome(Verdict.NO, f"no file was left: {problem}", record)
    data = data or kept_workbook(output.folder, output.sha256)
    if data is None:
        where = f"workbooks/{output.sha256[:2]}/{output.sha256}.xlsx"
        cause = f"{where}: the file that was left is missing, or was changed"
        return RunOutcome(Verdict.JE, cause, record)
    trusted = trusts_values and output.gui_only
    origin = Origin.FINISHED if trusted else Origin.SOLUTION
    record = {
        **record,
        "gui_only": output.gui_only,
        "origin": origin.value,
        "output_sha256": output.sha256,
        "output_bytes": len(data),
    }
    answer = Answer.of_workbook(data, origin, output.name)
    return RunOutcome(None, "", record, answer)


def take_kept(store: RunDirectory, submission: Submission) -> Submission:
    """Takes the files of a submission of another results directory into this one.

    Those that are missing there stay missing.

    Returns:
        The submission as it was.
    """
    for output in (submission.outputs or {}).values():
        if output.sha256 is not None and (data := kept_workbook(output.folder, output.sha256)):
            store.put_workbook(data)
    return submission


def origin_on_record(record: CaseRun, *, trusts_values: bool) -> Origin:
    """Where the output of a run on record comes from, as far as the command lets the record say.

    Args:
        record: the record of the run, which anybody can have written.
        trusts_values: whether the command trusts the values in outputs that, by their records,
            were made elsewhere or by mouse and keyboard alone.
    """
    trusted = trusts_values and holds_values(record)
    return Origin.FINISHED if trusted else Origin.SOLUTION


def holds_values(record: CaseRun) -> bool:
    """Whether a program that calculates wrote the output of a run, as its record says."""
    if record.get("status") == EPISODE:
        return record.get("gui_only", record.get("origin") == Origin.FINISHED.value)
    return record.get("status") == FINISHED


def has_given_up(result: CaseResult) -> bool:
    """Whether a wrong answer is that nothing can be done, which leaves no file to compare."""
    gave_up = result.run.get("status") == EPISODE and result.run.get("ended") == GIVEN_UP
    return gave_up and result.verdict is Verdict.WA
