from __future__ import annotations

import pytest

from judge.extract import extract_code


@pytest.mark.parametrize(
    "program",
    [
        "import openpyxl\nopenpyxl.load_workbook('a')\n",
        "x = '''\n```python\nnot this\n```\n'''\n",
        "print(1)",
        "\n\n  \nx = 1",
        "import os\nwb = load(\nwb.save('x')\n",  # does not compile: still the program
        "for row in rows\n    print(row)\n",
        "# only\r\nx = 1\r\n",
    ],
)
def test_a_bare_program_comes_back_as_it_is(program: str) -> None:
    assert extract_code(program) == program


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ("Here:\n```python\nx = 1\n```\nDone.", "x = 1\n"),
        ("Here:\n```py\nx = 1\n```", "x = 1\n"),
        ("Here:\n``` Python\nx = 1\n```", "x = 1\n"),
        ("Here:\r\n```python\r\nx = 1\r\n```\r\n", "x = 1\r\n"),
        ("Here:\n```\nx = 1\n```", "x = 1\n"),
        ("Here:\n~~~python\nx = 1\n~~~", "x = 1\n"),
        ("1. So:\n   ```python\n   if x:\n       y = 1\n   ```", "if x:\n    y = 1\n"),
        ("Text\n````python\ns = '''\n```\n'''\n````", "s = '''\n```\n'''\n"),
        # The last complete Python block counts.
        ("```python\na = 1\n```\nNo, rather:\n```python\na = 2\n```\n", "a = 2\n"),
        ("```python\na = 1\n```\nIt prints\n```\n1 2 3\n```\n", "a = 1\n"),
        ("```\na = 1\n```\nand\n```bash\npip install x\n```", "a = 1\n"),
        ("```python\na = 1\n```\nor\n```python\na = 2\nb = ", "a = 1\n"),
        # A fence that is left open at the end.
        ("Here:\n```python\nx = 1\ny = 2", "x = 1\ny = 2"),
        # Whether it compiles is not asked.
        ("Here:\n```python\nx = (\n```", "x = (\n"),
    ],
)
def test_fenced_code(reply: str, code: str) -> None:
    assert extract_code(reply) == code


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "  \n ",
        "Sorry",
        "I cannot do that. Please open the file in Excel and press Ctrl+S.",
        "Run this:\n```bash\npip install openpyxl\n```",
        "The result:\n```\n  A   B\n  1   2\n```",
        "```python\n```",
        "Press the button (see above).\nThen = is shown.\nAnd so on, and so on.\nDone.",
    ],
)
def test_prose_holds_no_code(reply: str) -> None:
    assert extract_code(reply) is None


def test_hostile_replies_end() -> None:
    assert extract_code("(" * 200_000) is None
    assert extract_code("\0" * 10) is None
    assert extract_code("```python\n" * 2_000) is not None
