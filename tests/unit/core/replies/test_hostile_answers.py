"""Hostile typed answers get a verdict in bounded time and memory; nothing in them is executed."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from judge.compare.contract import Rules
from judge.compare.profiles import get_profile
from judge.core.submission import AnswerForm
from judge.core.task import CheckerSpec, Gold, Task, TestCase
from judge.core.verdict import CaseResult, Verdict
from judge.files.documents import dump_json
from judge.grading.case import CaseJudge
from judge.grading.running import typed_outcome
from judge.recalc.policy import Recalculator
from tests.bounds import in_bounds

pytestmark = pytest.mark.slow

bounded = partial(in_bounds, cpu_s=20, memory_bytes=2 << 30)
MANY = 1_000_000
GOLDS = {"expression": "(10-6-2)*12", "list": [1], "text": "a", "float": 0.5, "int": 5}


def judged(kind: str, reply: str, profile: str) -> CaseResult:
    variables = {"x": {"type": kind}}
    case = TestCase(1, (), (Gold(value={"x": GOLDS[kind]}),))
    spec = CheckerSpec("typed_answer", {"variables": variables})
    task = Task("1", "?", "typed", (case,), checker=spec, answer=AnswerForm.TEXT)
    judge = CaseJudge(Recalculator([], mode="never"), Rules(get_profile(profile)))
    return judge.conclude(task, 0, case, typed_outcome(reply))


def fenced(value: str) -> str:
    return f'```json\n{{"x": {value}}}\n```'


SMALL = {
    "a power": ("expression", fenced('"9**9**9"')),
    "many signs": ("expression", fenced(f'"{"-" * 900}1"')),
    "brackets in arithmetic": ("expression", fenced(f'"{"(" * 400}1{")" * 400}"')),
    "long text out of little": ("expression", fenced("\"len('x' * 99999999999)\"")),
    "a wide format": ("expression", fenced("\"len('%999999999d' % 1)\"")),
    "a shift": ("expression", fenced('"1 << 99999999999"')),
    "nan": ("float", fenced("NaN")),
    "infinity": ("float", fenced("Infinity")),
    "an exponent": ("float", fenced("1e999")),
    "nan in a list": ("list", fenced("[NaN]")),
    "more digits than Python reads": ("int", fenced("9" * 5_000)),
    "a number beyond all floats": ("float", fenced("9" * 4_000)),
    "the same in a list": ("list", fenced(f"[{'9' * 4_000}]")),
    "the same for text": ("text", fenced("9" * 4_000)),
    "half a pair": ("text", fenced('"\\ud800"')),
    "half a pair, raw": ("text", fenced('"\ud800"')),
    "half a pair as a key": ("text", '{"\ud800": 1, "x": "\ud801"}'),
}
LARGE: dict[str, tuple[str, Callable[[], str]]] = {
    "nested lists": ("list", lambda: fenced("[" * 100_000 + "]" * 100_000)),
    "nested objects": ("list", lambda: '{"x":' * 100_000 + "1" + "}" * 100_000),
    "lists that do not end": ("list", lambda: '{"x":[' * (MANY // 6)),
    "braces": ("list", lambda: "{" * MANY),
    "comments": ("list", lambda: "{ // " * (MANY // 5)),
    "a million items": ("list", lambda: fenced("[" + "0," * 999_999 + "0]")),
    "50 MB": ("text", lambda: fenced('"' + "a" * 50_000_000 + '"')),
    "fences": ("text", lambda: "```json\n" * (MANY // 8)),
    "final answers": ("text", lambda: "final answer.{" * (MANY // 14)),
    "blank lines": ("text", lambda: "final answer." + "\n" * MANY),
    "numbers": ("float", lambda: fenced('"' + "1 " * (MANY // 2 - 20) + '"')),
    "digits": ("int", lambda: fenced('"' + "1" * (MANY - 40) + '"')),
}


@pytest.mark.parametrize("profile", ["official", "standard", "strict"])
@pytest.mark.parametrize("name", SMALL)
def test_a_hostile_answer_is_wrong_and_can_be_recorded(name: str, profile: str) -> None:
    result = judged(*SMALL[name], profile)
    assert result.verdict is Verdict.WA
    dump_json(result.comparison).encode()
    result.cause.encode()


@pytest.mark.parametrize("name", LARGE)
def test_a_large_answer_is_judged_within_bounds(name: str) -> None:
    def judge_both() -> None:
        kind, make = LARGE[name]
        reply = make()
        for profile in ("official", "standard"):
            assert judged(kind, reply, profile).verdict is Verdict.WA

    assert bounded(judge_both) == 0


@pytest.mark.parametrize("profile", ["official", "standard", "strict"])
@pytest.mark.parametrize(
    "code",
    [
        "__import__('os').system('touch {path}') * 0 + 24",
        "open('{path}', 'w').write('x') * 0 + 24",
        "[open('{path}', 'w'), 24][1]",
        "(lambda: open('{path}', 'w'))() or 24",
        "24 if open('{path}', 'w') else 0",
    ],
)
def test_code_in_an_answer_is_never_executed(tmp_path: Path, code: str, profile: str) -> None:
    path = tmp_path / "made"
    result = judged("expression", fenced(json.dumps(code.format(path=path))), profile)
    assert list(tmp_path.iterdir()) == []
    # The published script executes it; where the value is 24 whatever it does, that is accepted.
    accepted = profile == "official" and code.endswith("* 0 + 24")
    assert result.verdict is (Verdict.AC if accepted else Verdict.WA)


def test_an_answer_without_bound_says_what_the_published_script_would_do() -> None:
    result = judged("expression", fenced('"9**9**9"'), "official")
    assert "without a bound" in str(result.comparison["notes"])
