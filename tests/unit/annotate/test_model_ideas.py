"""A chat model proposes counterexamples; it sees no gold and decides nothing."""

from __future__ import annotations

import json

import pytest

from judge.annotate.casebook import CaseData
from judge.annotate.edits import Formula, SetCell
from judge.annotate.model_ideas import MAX_EDITS, ModelAsked, ask_for_ideas, prompt_for, read_ideas
from judge.api.infer_options import InferOptions
from judge.api.inferring import ask_model
from judge.errors import InferenceError
from tests.inference.scripted import ScriptedServer, fault
from tests.unit.annotate.books import table
from tests.unit.annotate.conftest import doubling_case
from tests.unit.annotate.test_gold import BASE, TASK, program

REPLY = """Here are some:
```json
[
  {"why": "negative  numbers are\\nnot looked at", "cells": {"A2": -5, "'Sheet'!A3": null}},
  {"why": "a formula", "cells": {"A4": "=1+2", "C9": "note", "A5": true}}
]
```"""


def asked(server: ScriptedServer, **options: object) -> tuple[list[object], list[str]]:
    whom = InferOptions(model="some-model", base_url=server.url, retries=0, **options)  # type: ignore[arg-type]
    ideas, problems = ask_model(
        whom,
        lambda chat, name, params: ask_for_ideas(
            ModelAsked(chat, name, params), TASK, BASE, program("victim"), max_proposals=3
        ),
    )
    return list(ideas), problems


def test_proposals_become_ideas_and_the_gold_is_never_shown() -> None:
    with ScriptedServer(lambda seen: REPLY) as server:
        ideas, problems = asked(server, temperature=0.0, max_tokens=900)
    first, second = ideas
    assert problems == []
    assert first.title == "negative numbers are not looked at"  # type: ignore[attr-defined]
    assert [(each.ref.row, each.ref.column, each.content) for each in first.edits] == [  # type: ignore[attr-defined]
        (2, 1, -5),
        (3, 1, None),
    ]
    assert [each.content for each in second.edits] == [Formula("1+2"), "note", True]  # type: ignore[attr-defined]
    (seen,) = server.seen
    assert (seen.body["temperature"], seen.body["max_tokens"]) == (0.0, 900)
    assert TASK.instruction in seen.prompt
    assert "name = 'victim'" in seen.prompt
    assert "A2: 1" in seen.prompt
    hidden = CaseData(1, BASE.input, table(("number", "double"), (1, "secret answer")))
    (message,) = prompt_for(TASK, hidden, program("victim"), max_proposals=3)
    assert "secret answer" not in message["content"]


def test_a_server_that_fails_is_an_error_of_inference() -> None:
    with (
        ScriptedServer(lambda seen: fault(400, "no such model")) as server,
        pytest.raises(InferenceError, match="gave no proposals"),
    ):
        asked(server)


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ("I found nothing.", "no JSON list"),
        ("[{not json}]", "no JSON list"),
        ("x" * 300_000, "longer than"),
        ('[{"why": "x"}]', "names no cells"),
        ('[{"cells": {"nonsense": 1}}]', "not CELL=VALUE"),
        ('[{"cells": {"Other!A1": 1}}]', "no sheet 'Other'"),
        ('[{"cells": {"B3": 1}}]', "a cell of the answer"),
        ('[{"cells": {"A3": [1]}}]', "cannot hold list"),
        (json.dumps([{"cells": {f"A{n}": n for n in range(1, MAX_EDITS + 2)}}]), "more than"),
    ],
)
def test_what_is_not_a_proposal_is_reported(reply: str, problem: str) -> None:
    ideas, problems = read_ideas(reply, TASK, BASE)
    assert ideas == []
    assert problem in problems[0]


def test_where_the_answer_is_the_data_its_filled_cells_may_be_changed() -> None:
    base = CaseData(1, *([doubling_case(1, 2, 3, 4)[1]] * 2))
    (idea,), problems = read_ideas('[{"why": "", "cells": {"B3": 7}}]', TASK, base)
    assert not problems
    assert isinstance(idea.edits[0], SetCell)
    assert idea.title == "a counterexample"


def test_only_so_many_proposals_are_read() -> None:
    reply = json.dumps([{"cells": {"A2": number}} for number in range(25)])
    ideas, problems = read_ideas(reply, TASK, BASE)
    assert len(ideas) == 20
    assert problems == ["5 more proposals were not read"]
