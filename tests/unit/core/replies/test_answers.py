"""The JSON object in a reply, as the published script reads it and as it is written."""

from __future__ import annotations

import pytest

from judge.core.replies.answers import published_answer, stated_answer
from judge.core.replies.extract import MAX_ANSWER_CHARS
from judge.core.replies.relaxed import NotLiteralError, read_literal

RIGHT = {"x": 1}


def fenced(text: str, tag: str = "json") -> str:
    return f"```{tag}\n{text}\n```"


def read(reply: str) -> tuple[object, object]:
    """Returns what both readers find."""
    return published_answer(reply).values, stated_answer(reply, ["x"]).values


@pytest.mark.parametrize(
    ("reply", "published", "stated"),
    [
        (fenced('{"x": 1}'), RIGHT, RIGHT),
        (fenced('{"x": 1,}'), RIGHT, RIGHT),
        ('I know the final answer.\n {"x": 1} indeed', RIGHT, RIGHT),
        (fenced('{"x": 1}', "python"), RIGHT, RIGHT),
        (fenced('{"x": 1}', "py"), RIGHT, RIGHT),
        ('{"x": 1}', None, RIGHT),
        (fenced('{"x": 1}', ""), None, RIGHT),
        (fenced('{"x": 1}', "JSON"), None, RIGHT),
        (fenced("{'x': 1}"), None, RIGHT),
        (fenced('{ // why\n"x": 1}'), None, RIGHT),
        (fenced('[{"x": 1}]'), None, RIGHT),
        (fenced('{"x": [(1, 2), (3,)]}'), {"x": [[1, 2], [3]]}, {"x": [[1, 2], [3]]}),
        (fenced('{"x": True}'), {"x": True}, {"x": True}),
        (fenced('{"x": "say \\"a\\""}'), None, {"x": 'say "a"'}),
        (fenced('{"a (b) c": 1}'), {"a [b] c": 1}, {"a (b) c": 1}),
        (fenced('{"x": 1}') + fenced('{"x": 2}'), {"x": 2}, {"x": 2}),
        (fenced('{"x": 1}') + fenced("broken"), RIGHT, RIGHT),
        (fenced('{"x": 1}') + fenced("[1]"), None, RIGHT),
        (fenced('{"x": 1}') + ' where {"y": 2}', RIGHT, RIGHT),
        ('<think>{"x": 2}</think>' + fenced('{"x": 1}', ""), None, RIGHT),
        (fenced("print({x: 3})", "python") + '{"x": 1}', None, RIGHT),
        ("The answer is 1.", None, None),
        ("", None, None),
    ],
)  # fmt: skip
def test_where_the_answer_is(reply: str, published: object, stated: object) -> None:
    assert read(reply) == (published, stated)


def test_the_last_object_with_all_names_counts() -> None:
    reply = '{"x": 1, "y": 2} then {"x": 3} then {"z": 4}'
    assert stated_answer(reply, ["x", "y"]).values == {"x": 1, "y": 2}
    assert stated_answer(reply, ["x"]).values == {"x": 3}
    assert stated_answer(reply, ["z", "y"]).values == {"z": 4}
    assert stated_answer(reply, ["other"]).values == {"z": 4}


def test_numbers_that_json_does_not_have() -> None:
    reply = fenced('{"x": [NaN, 1e999]}')
    published, stated = read(reply)
    assert isinstance(published, dict)
    assert [str(each) for each in published["x"]] == ["nan", "inf"]
    assert stated == {"x": [None, None]}


def test_the_end_of_a_long_reply_is_read() -> None:
    assert read("a" * (MAX_ANSWER_CHARS + 10) + fenced('{"x": 1}')) == (RIGHT, RIGHT)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(1)", 1),
        ("(1,)", [1]),
        ("[]", []),
        ("{}", {}),
        ("'it\\'s'", "it's"),
        ("'say \"a\"'", 'say "a"'),
        ('"\\d"', "\\d"),
        ("-.5", -0.5),
        ("+3", 3),
        ("None", None),
        ("-Infinity", None),
        ("# why\n3", 3),
    ],
)
def test_literals(text: str, value: object) -> None:
    assert read_literal(text) == (value, len(text))


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1", "{x: 1}", "{'x' 1}", "[1 2]", "nothing", "3x", "'a", "9" * 2000, "[" * 200],
)
def test_what_is_not_a_literal(text: str) -> None:
    with pytest.raises(NotLiteralError):
        read_literal(text)
