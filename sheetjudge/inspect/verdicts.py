"""Verdicts as scores of Inspect. Logs are shared, so they do not quote golds."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Any

from inspect_ai.model import ModelOutput
from inspect_ai.scorer import Score

from judge.api.judging import JudgedSubmission
from judge.core.submission import Submission
from judge.core.verdict import CaseResult, Verdict, cause_without_golds

BAD_TEST = "bad_test"
"""Why a sample is not scored whose golds are at fault; Inspect has no word of its own for it."""


def score_of(
    found: JudgedSubmission,
    submission: Submission,
    output: ModelOutput,
    judged_with: Mapping[str, Any],
) -> Score:
    """The score of a submission.

    Args:
        found: what the judge says.
        submission: what was handed in.
        output: the model's last.
        judged_with: what else the metadata say: suite, profile, version.
    """
    handed_in = submission.answer if submission.code is None else submission.code
    metadata = {
        "verdicts": [str(verdict) for verdict in found.verdicts],
        "cases": [_case(case) for case in found.cases],
        "solution_sha256": None if handed_in is None else _sha256(handed_in),
        **judged_with,
    }
    told = "; ".join(
        f"case {case.case}: {case.verdict} {cause_without_golds(case)}" for case in found.cases
    )
    explanation = told.replace(" ;", ";").rstrip()
    unscored = _why_unscored(found)
    if found.soft is None or found.hard is None:
        return Score.unscored(
            reason=unscored, answer=handed_in, explanation=explanation, metadata=metadata
        )
    return Score(
        value={"soft": found.soft, "hard": found.hard},
        answer=handed_in,
        explanation=explanation,
        reason=_why_invalid(found, submission, output) or unscored,
        metadata=metadata,
    )


def _case(result: CaseResult) -> dict[str, Any]:
    return {
        "case": result.case,
        "verdict": str(result.verdict),
        "phase": str(result.verdict.phase),
        "cause": cause_without_golds(result),
        "output_sha256": result.run.get("output_sha256"),
        "cell_accuracy": _finite(result.comparison.get("cell_accuracy")),
        "seconds": {name: round(each, 4) for name, each in result.timings_s.items()},
    }


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


def _why_unscored(found: JudgedSubmission) -> str | None:
    """Why cases are not scored, in Inspect's words where it has some; None where all are."""
    verdicts = {case.verdict for case in found.cases}
    if Verdict.JE in verdicts:
        return "scoring_failed"
    if Verdict.BT in verdicts:
        return BAD_TEST
    return "skipped" if Verdict.SK in verdicts else None


def _why_invalid(
    found: JudgedSubmission, submission: Submission, output: ModelOutput
) -> str | None:
    """Inspect's word for a reply without an answer; None for one that can be judged."""
    has_none = submission.code is None and submission.answer is None
    if not has_none and not (submission.code is None and _no_answer(found)):
        return None
    if not output.empty and output.stop_reason == "content_filter":
        return "refusal"
    return "invalid_response_format" if output.completion.strip() else "no_response"


def _no_answer(found: JudgedSubmission) -> bool:
    """Whether a typed answer holds none."""
    return all(case.verdict in {Verdict.CE, Verdict.NO, Verdict.IW} for case in found.cases)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
