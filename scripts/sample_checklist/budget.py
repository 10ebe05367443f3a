"""Task budget: totals as formulas, a growth rate, formatting, and a sentence on the result."""

from __future__ import annotations

import json
from typing import Any

from openpyxl.styles import Font
from sample.book import Book, Cached

ID = "budget"
_LINES = [("Rent", 1200, 1260), ("Staff", 5400, 5940), ("Travel", 800, 600), ("Office", 350, 410)]
_INSTRUCTION = """
Complete the budget on the sheet Budget: put the totals of both years into B6 and C6 as formulas,
and the growth of the total from 2023 to 2024 as a percentage (a formula with the number format
0.0%) into D6. Make the row of totals bold, freeze the heading row, and add a sheet Notes whose cell
A1 names, in one sentence, the item that grew most in money.
"""

_TOTALS = [sum(before for _, before, _ in _LINES), sum(after for _, _, after in _LINES)]

ITEMS: list[dict[str, Any]] = [
    {
        "id": "total-2023",
        "group": "values",
        "points": 20,
        "kind": "cell",
        "sheet": "Budget",
        "cell": "B6",
        "expected": _TOTALS[0],
        "words": "The total of 2023 is right",
        "gates": ["llm"],
    },
    {
        "id": "total-2024",
        "group": "values",
        "points": 20,
        "kind": "cell",
        "sheet": "Budget",
        "cell": "C6",
        "expected": _TOTALS[1],
        "words": "The total of 2024 is right",
    },
    {
        "id": "growth",
        "group": "values",
        "points": 20,
        "kind": "cell",
        "sheet": "Budget",
        "cell": "D6",
        "expected": round(_TOTALS[1] / _TOTALS[0] - 1, 6),
        "tolerance": 0.0005,
        "words": "The growth of the total is right",
    },
    {
        "id": "formulas",
        "group": "values",
        "points": 10,
        "kind": "formula",
        "sheet": "Budget",
        "cells": "B6:D6",
        "words": "The totals and the growth are formulas",
    },
    {
        "id": "inputs",
        "group": "values",
        "points": 5,
        "kind": "range",
        "sheet": "Budget",
        "range": "A1:C5",
        "expected": [["Item", 2023, 2024], *map(list, _LINES)],
        "words": "The items of the budget are unchanged",
    },
    {
        "id": "bold",
        "group": "looks",
        "points": 5,
        "kind": "format",
        "sheet": "Budget",
        "cells": "A6:D6",
        "bold": True,
    },
    {
        "id": "percent",
        "group": "looks",
        "points": 5,
        "kind": "format",
        "sheet": "Budget",
        "cells": "D6",
        "number_format": ["0.0%", "0.00%"],
    },
    {
        "id": "frozen",
        "group": "looks",
        "points": 5,
        "kind": "object",
        "sheet": "Budget",
        "object": "frozen",
        "rows": 1,
    },
    {
        "id": "notes",
        "group": "text",
        "points": 5,
        "kind": "sheet",
        "sheet": "Notes",
    },
    {
        "id": "driver",
        "group": "text",
        "points": 5,
        "kind": "llm",
        "scale": "binary",
        "words": "Cell A1 of the sheet Notes names Staff as the item that grew most in money",
    },
]


def book(*, finished: bool) -> bytes:
    """Returns the input or the gold."""
    made = Book()
    sheet = made.sheet("Budget", (12, 10, 10, 10))
    made.rows(sheet, [("Item", 2023, 2024), *_LINES])
    made.put(sheet, 6, 1, "Total")
    if finished:
        made.put(sheet, 6, 2, Cached("=SUM(B2:B5)", _TOTALS[0]))
        made.put(sheet, 6, 3, Cached("=SUM(C2:C5)", _TOTALS[1]))
        made.put(sheet, 6, 4, Cached("=C6/B6-1", _TOTALS[1] / _TOTALS[0] - 1))
        sheet["D6"].number_format = "0.0%"
        for cell in sheet[6]:
            cell.font = Font(bold=True)
        sheet.freeze_panes = "A2"
        made.put(made.sheet("Notes"), 1, 1, "Staff grew most, by 540.")
    return made.to_bytes()


_PROGRAM = f"""\
from openpyxl import load_workbook
from openpyxl.styles import Font

book = load_workbook("/mnt/data/input/1_{ID}_input.xlsx")
sheet = book["Budget"]
sheet["B6"] = "=SUM(B2:B5)"
sheet["C6"] = "=SUM(C2:C5)"
sheet["D6"] = "=C6/B6-1"
sheet["D6"].number_format = "0.0%"
for cell in sheet[6]:
    cell.font = Font(bold=True)
sheet.freeze_panes = "A2"
book.create_sheet("Notes")["A1"] = "Staff grew most, by 540."
book.save("/mnt/data/output/1_{ID}_output.xlsx")
"""


def record() -> dict[str, Any]:
    """Returns the task's record in ``suite.json``."""
    return {
        "id": ID,
        "instruction": " ".join(_INSTRUCTION.split()),
        "kind": "Report",
        "answer": "workbook",
        "checker": {"name": "checklist", "options": {"pass_share": 0.8, "items": ITEMS}},
        "cases": [
            {
                "number": 1,
                "inputs": [f"files/{ID}/1_{ID}_input.xlsx"],
                "golds": [f"files/{ID}/1_{ID}_answer.xlsx"],
            }
        ],
    }


def lines() -> list[str]:
    """Returns the lines of ``submissions.jsonl``: right, with typed totals, with a wrong range."""
    typed = _PROGRAM.replace('"=SUM(B2:B5)"', str(_TOTALS[0]))
    answers = [
        ("formulas", "AC", _PROGRAM),
        ("typed-total", "WA", typed),
        ("short-range", "WA", _PROGRAM.replace("C2:C5", "C2:C4")),
        ("plain-looks", "WA", _PROGRAM.replace('sheet.freeze_panes = "A2"\n', "")),
    ]
    return [
        json.dumps(
            {
                "id": ID,
                "sample": number,
                "label": label,
                "expected": [expected],
                "solution": program,
            }
        )
        for number, (label, expected, program) in enumerate(answers)
    ]
