from __future__ import annotations

import json
from pathlib import Path

import pytest

from judge.core.replies.extract import Extraction, extract
from judge.core.replies.python_text import defined_names, free_names, scan
from tests.unit.core.replies.corpus import CORPUS, SOLVE, Reply


@pytest.mark.parametrize("reply", CORPUS, ids=lambda reply: reply.name)
def test_corpus(reply: Reply) -> None:
    found = extract(reply.text)
    assert found.code == reply.code
    assert (found.form, found.truncated) == (reply.form, reply.truncated)


def test_corpus_is_large_and_its_names_are_distinct() -> None:
    assert len(CORPUS) >= 60
    assert len({reply.name for reply in CORPUS}) == len(CORPUS)
    assert len({reply.text for reply in CORPUS}) == len(CORPUS)


@pytest.mark.parametrize(
    "reply", [each for each in CORPUS if each.code], ids=lambda each: each.name
)
def test_what_was_extracted_is_stable(reply: Reply) -> None:
    assert reply.code is not None
    assert extract(reply.code).code == reply.code


@pytest.mark.data
def test_real_programs_survive_every_wrapping(judge_data: Path) -> None:
    path = judge_data / "model_solutions" / "single_claude_dev100.jsonl"
    programs = [json.loads(line)["solution"] for line in path.read_text("utf-8").splitlines()]
    assert len(programs) == 100
    for program in programs:
        expected = program.strip("\n").rstrip() + "\n"
        for wrapped in (
            f"Of course:\n\n```python\n{program}\n```\n\nThis writes the values.",
            f"<think>hm</think>\n~~~\n{program}\n~~~",
            f"<execute>\n{program}\n</execute>",
            json.dumps({"code": program}),
            f"```python\n{program}",
        ):
            assert extract(wrapped).code == expected
        assert extract(program).code == expected


@pytest.mark.data
def test_published_solutions_are_run_as_they_stand(judge_data: Path) -> None:
    path = judge_data / "model_solutions" / "single_claude_dev100.jsonl"
    for line in path.read_text("utf-8").splitlines():
        program = json.loads(line)["solution"]
        assert extract(program) == Extraction(program, "bare", blocks=1)


def test_a_program_too_long_to_parse_is_run_unchanged() -> None:
    row = '    ("Sheet1", "A1", "```python"),\n'
    program = f"# answers\nROWS = [\n{row * 20_000}]\nprint(len(ROWS))\n"
    assert len(program) > 500_000
    assert extract(program).code == program


def test_an_f_string_too_long_to_parse_is_run_unchanged() -> None:
    program = "a = 1\nprint(f'" + "{a}" * 60_000 + "')\n"
    assert extract(program).code == program


def test_code_deep_in_a_tool_call_is_found() -> None:
    document: object = {"arguments": json.dumps({"code": SOLVE})}
    for key in ("function", "call", "tool_calls", "message", "choices"):
        document = {key: [document]}
    assert extract(json.dumps(document)).code == SOLVE


def test_blocks_are_counted() -> None:
    assert extract(f"```python\n{SOLVE}```\n```python\n{SOLVE}```").blocks == 2
    assert extract("no") == Extraction(None, "none")


def test_scan_tells_strings_from_brackets() -> None:
    assert scan("x = '(' # (\n").closed
    assert not scan("x = (1, '\\')'").closed
    assert scan('x = """(\n"""').closed
    assert scan('x = """(\n').in_string
    assert not scan("x = )").closed


def test_names() -> None:
    code = "import pandas as pd\nfor row in rows:\n    total = pd.f(row, key=other.x)\n"
    assert free_names(code) == {"rows", "other"}
    assert {"pd", "row", "total"} <= defined_names(code)
    assert free_names("def f(a, b=1):\n    return a + b\nf(1)\n") == set()
