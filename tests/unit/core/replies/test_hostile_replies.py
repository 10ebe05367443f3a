"""Hostile replies take a bounded time: each is read by a process with a limit.

Those that were thought of but never hurt are a quarter as long as a reply may be: what grows with
the square of the length takes a sixteenth of the time then, and has less than a third of it, since
processors differ.
"""

from __future__ import annotations

from functools import partial

import pytest

from judge.core.replies.extract import MAX_REPLY_CHARS, extract
from judge.core.submission import AnswerForm
from judge.core.task import TaskQuestion
from judge.inference.conversation import _says_done
from judge.inference.solver import read_answers
from judge.suites.spreadsheetbench import FORMAT
from judge.suites.submission_lines import solution_paths
from tests.bounds import each_in_bounds, in_bounds
from tests.unit.core.replies.hostile_replies import HOSTILE, HURT, hostile_reply

pytestmark = pytest.mark.slow

CPU_S = 10
MEMORY_BYTES = 1 << 30
QUESTION = TaskQuestion("1", "Sum.", "Cell-Level Manipulation", {}, AnswerForm.WORKBOOK, ())
bounded = partial(in_bounds, cpu_s=CPU_S, memory_bytes=MEMORY_BYTES)


@pytest.fixture(scope="module")
def read_in_time() -> dict[str, int]:
    """How reading each kind of reply ended: 0 is well."""
    others = [kind for kind in HOSTILE if kind not in HURT]
    ended: dict[str, int] = {}
    for kinds, chars, cpu_s in (
        (HURT, MAX_REPLY_CHARS, CPU_S),
        (others, MAX_REPLY_CHARS // 4, CPU_S // 3),
    ):
        works = {kind: partial(_extracted, hostile_reply(kind, chars)) for kind in kinds}
        for kind, end in each_in_bounds(works, cpu_s=cpu_s, memory_bytes=MEMORY_BYTES).items():
            ended[kind] = end.code
    return ended


def _extracted(reply: str) -> None:
    extract(reply)


@pytest.mark.parametrize("kind", sorted(HURT))
def test_a_reply_that_hurt_is_read_in_time(read_in_time: dict[str, int], kind: str) -> None:
    assert read_in_time[kind] == 0


@pytest.mark.parametrize("kind", [kind for kind in HOSTILE if kind not in HURT])
def test_a_hostile_reply_is_read_in_time(read_in_time: dict[str, int], kind: str) -> None:
    assert read_in_time[kind] == 0


def test_hostile_replies_are_read_without_an_error() -> None:
    for kind in HOSTILE:
        assert extract(hostile_reply(kind, 8_000)).blocks >= 0


@pytest.mark.parametrize(
    "reply",
    [
        "\n" * MAX_REPLY_CHARS,
        " " * MAX_REPLY_CHARS,
        "#" * MAX_REPLY_CHARS,
        "`" * MAX_REPLY_CHARS,
        "```\n" * (MAX_REPLY_CHARS // 4),
        "DONE" * (MAX_REPLY_CHARS // 4),
    ],
    ids=lambda text: repr(text[:4]),
)
def test_whether_a_hostile_reply_says_done_is_seen_in_time(reply: str) -> None:
    assert bounded(lambda: _says_done(reply)) == 0


@pytest.mark.parametrize(
    "reply",
    [
        ("A1: x" + " " * 4_900 + "x\n") * 80,
        "A1: " + " |" * 2_400 + "x\n",
        "-" * MAX_REPLY_CHARS + "x",
        "-|" * (MAX_REPLY_CHARS // 2) + "x",
        "answer" + " " * MAX_REPLY_CHARS + "x",
        "'" * MAX_REPLY_CHARS,
        "A1: " + "1," * 2_000,
        "A1: " + "9" * 4_900,
    ],
    ids=lambda text: repr(text[:8]),
)
def test_hostile_answers_in_text_are_read_in_time(reply: str) -> None:
    assert bounded(lambda: read_answers(reply, "B2:C9")) == 0


@pytest.mark.parametrize(
    ("code", "prompt"),
    [
        ("pass", "/" * MAX_REPLY_CHARS),
        ("pass", "/a.xls" * (MAX_REPLY_CHARS // 6)),
        ("x = f'" + "{a}" * 130_000 + "'", ""),
        ("'/" * (MAX_REPLY_CHARS // 2), ""),
        ("'/\"" * (MAX_REPLY_CHARS // 3), ""),
    ],
    ids=["slashes", "half names", "f-string", "quotes", "quotes by turns"],
)
def test_paths_are_found_in_time(code: str, prompt: str) -> None:
    assert bounded(lambda: solution_paths(QUESTION, code, FORMAT, conversation=[prompt])) == 0
