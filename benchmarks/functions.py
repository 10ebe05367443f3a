"""Writes the page of functions: the record of each engine, from ``judge/recalc/trust.json``.

    python -m benchmarks.functions        # writes docs/functions.md

``tests/docs/test_functions.py`` fails if the page does not match the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import yaml

from benchmarks.command_line import parser_of
from judge.formulas.shapes import NAMED, OF_ARRAYS
from judge.recalc.names import JUDGE
from judge.recalc.trust import PAIR, RIGHT, Record, TrustTable, trust_table

PAGE = Path(__file__).parent.parent / "docs" / "functions.md"
CHECKS = Path(__file__).with_name("function_checks.yaml")
ENGINES = ("libreoffice", "ironcalc", "formualizer", PAIR, JUDGE)
MIN_CELLS = 2
"""How many cells a shape must have for its mistakes to be listed."""
SHOWN_FAULTS = 4

INTRODUCTION = """\
# Functions

For every function that was measured, this page shows in how many cells each engine was right,
out of those for which it had a value or an error. The cells are from golds, from the
[battery](battery.md) and from workbooks saved by Excel. A formula that was filled down counts
as at most ten cells, and a mistake counts against the call that makes it
([recalculation](recalculation.md)). If an engine has no figures, it had no values.

"Agree" counts the cells on which IronCalc and formualizer agree, "judge" those that the judge
computes itself. "For arrays" means a call that
gets a computed array, or several values where it expects one. Faults are shapes of arguments,
with the letters of [recalculation](recalculation.md#the-weighted-vote), for which an engine is
right in fewer than nine of ten cells. Only the worst are shown; `judge engines FUNCTION` prints
all of them.

This page is written by

```
python -m benchmarks.functions
```
"""


class Check(NamedTuple):
    """An entry that was compared with Microsoft's reference.

    Attributes:
        says: the statement of the reference.
        entry: its meaning for the records.
        source: the address of the page.
    """

    says: str
    entry: str
    source: str


def checks() -> dict[str, Check]:
    """Reads the comparisons and their results, by function."""
    checks = yaml.safe_load(CHECKS.read_text(encoding="utf-8"))
    return {str(name): Check(**check) for name, check in checks.items()}


def page(table: TrustTable) -> str:
    """Makes the whole page from a table of records."""
    lines = [INTRODUCTION, "## Records", ""]
    lines.append("| function | LibreOffice | IronCalc | formualizer | agree | judge | faults |")
    lines.append("|---|---|---|---|---|---|---|")
    for name in sorted(table.functions):
        if name[0].isalpha() and not name.startswith(NAMED):
            counts = " | ".join(_count(table.record(name, engine)) for engine in ENGINES)
            lines.append(f"| {_title(name)} | {counts} | {_faults(table, name)} |")
    lines += [
        "",
        "## Checked by hand",
        "",
        "These entries were compared with Microsoft's reference, each with the page that is named.",
        "",
        "| function | what the reference says | the records |",
        "|---|---|---|",
        *(
            f"| [{name}]({check.source}) | {check.says} | {check.entry} |"
            for name, check in sorted(checks().items())
        ),
    ]
    return "\n".join(lines) + "\n"


def _title(name: str) -> str:
    return name.replace(OF_ARRAYS, " for arrays")


def _count(record: Record) -> str:
    return f"{record.right} of {record.total}" if record.total else ""


def _faults(table: TrustTable, name: str) -> str:
    wrong = sorted(_wrong_shapes(table.shapes, name))[:SHOWN_FAULTS]
    return "; ".join(
        f"{engine}: `{shape.replace(OF_ARRAYS, '')}` {_count(record)}"
        for _, shape, engine, record in wrong
    )


def _wrong_shapes(
    shapes: Mapping[str, Mapping[str, Record]], name: str
) -> Iterator[tuple[float, str, str, Record]]:
    for shape, records in shapes.items():
        for engine, record in records.items() if shape.startswith(f"{name}(") else ():
            if engine != PAIR and record.total >= MIN_CELLS and record.share < RIGHT:
                yield record.share, shape, engine, record


def main() -> None:
    """Writes the page."""
    parser_of(__doc__).parse_args()
    PAGE.write_text(page(trust_table()), encoding="utf-8")


if __name__ == "__main__":
    main()
