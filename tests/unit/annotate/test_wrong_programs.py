from __future__ import annotations

import pytest

from judge.annotate.strength import MAX_PER_MISTAKE, wrong_programs

PROGRAM = """
import openpyxl
ws = openpyxl.load_workbook("/in.xlsx").active
held = {}
for row in range(2, ws.max_row + 1):
    cell = ws.cell(row=row, column=1).value
    if cell is None:
        continue
    if isinstance(cell, (int, float)) and cell > 5:
        break
    held[str(cell).strip().lower()] = round(cell, 2)
seen = {}
seen[cell] = 1
held.setdefault("x", 1)
ws["B1"] = "=IF(A1<5,VLOOKUP(A1,$C$2:$D$9,2,FALSE),0)"
ws["B2"] = f"=SUM(A2:A{ws.max_row})"
"""


@pytest.mark.parametrize(
    ("mistake", "detail"),
    [
        ("hard-coded range", "77"),
        ("off by one at the end", "range(2, ws.max_row + 1 - 1)"),
        ("off by one at the start", "range(2 + 1, ws.max_row + 1)"),
        ("boundary taken in or left out", "cell >= 5"),
        ("blank cells not looked for", "False"),
        ("blank as zero", "ws.cell(row=row, column=1).value or 0"),
        (
            "first match instead of last",
            "seen.setdefault(cell, 1)",
        ),
        ("last match instead of first", "pass"),
        ("spaces not stripped", "str(cell)"),
        ("case not folded", "str(cell).strip()"),
        ("decimals forgotten", "isinstance(cell, int)"),
        ("not rounded", "cell"),
        ("formula boundary", "'=IF(A1<=5,VLOOKUP(A1,$C$2:$D$9,2,FALSE),0)'"),
        ("formula range one row short", "'=IF(A1<5,VLOOKUP(A1,$C$2:$D$8,2,FALSE),0)'"),
        ("formula lookup not exact", "'=IF(A1<5,VLOOKUP(A1,$C$2:$D$9,2,TRUE),0)'"),
    ],
)
def test_the_mistakes_that_are_made(mistake: str, detail: str) -> None:
    found = [each for each in wrong_programs(PROGRAM, last_row=77) if each.mistake == mistake]
    assert detail in [each.detail for each in found]
    assert len(found) <= MAX_PER_MISTAKE


def test_mutants_compile_and_differ_from_each_other() -> None:
    found = wrong_programs(PROGRAM, last_row=77)
    assert len({each.code for each in found}) == len(found) > 15
    for each in found:
        compile(each.code, "mutant", "exec")
    assert found == wrong_programs(PROGRAM, last_row=77)


def test_only_dictionaries_keep_the_first_match() -> None:
    code = "ws = load()\nws['A1'] = 5\n"
    assert wrong_programs(code, last_row=9) == []


def test_what_does_not_compile_has_no_mutants() -> None:
    assert wrong_programs("def broken(:", last_row=9) == []
