"""What `judge submit` says about a server's refusals."""

from __future__ import annotations

from collections.abc import Sequence

import httpx
import pytest

from judge.errors import JudgeError, SubmissionError
from judge.serve import client


def refusal(status: int, detail: str, errors: Sequence[dict[str, object]] = ()) -> JudgeError:
    document = {"title": "No", "status": status, "detail": detail, "errors": list(errors)}
    return client._refused(httpx.Response(status, json=document))


def test_a_fault_that_the_detail_names_is_not_said_twice() -> None:
    error = refusal(422, "Line 1: too long.", [{"line": 1, "detail": "too long"}])
    assert isinstance(error, SubmissionError)
    assert error.message == "No: Line 1: too long."


def test_other_faults_are_added() -> None:
    error = refusal(422, "2 lines are wrong", [{"detail": "task a"}, {"detail": "task b"}])
    assert error.message == "No: 2 lines are wrong; task a; task b"


@pytest.mark.parametrize(("status", "hinted"), [(401, True), (422, False)])
def test_a_token_that_does_not_count_is_answered_with_where_to_get_another(
    status: int, hinted: bool
) -> None:
    assert ("/me/tokens" in (refusal(status, "").hint or "")) is hinted
