"""Writes the tables of a report of ``benchmarks.recalc`` for the documentation.

python -m benchmarks.recalc_tables out.json                     # standings and misses
python -m benchmarks.recalc_tables out.json --battery docs/battery.md
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.command_line import existing, run_command

CASCADE = "cascade"


def standings(report: Mapping[str, Any]) -> list[str]:
    """Makes the table of agreement and time, with a row for each engine and one for the cascade."""
    lines = [
        (
            "| | cells right | files all right | answer cells | answer files | median ms | p95 ms "
            "| battery |"
        ),
        "|---|---|---|---|---|---|---|---|",
    ]
    battery = report["battery"]
    for name, row in report["standings"].items():
        ms = row["ms"]
        lines.append(
            f"| {name} | {row['cells_share']:.2%} of {row['cells']:,} "
            f"| {row['files_share']:.2%} of {row['files']} | {row['answer_cells_share']:.2%} "
            f"| {row['answer_files_share']:.2%} | {ms.get('median', 0):.0f} "
            f"| {ms.get('p95', 0):.0f} | {battery['right'].get(name, 0)} of {battery['probes']} |"
        )
    ms = report.get("conversion_ms")
    if ms:
        lines.append(
            f"| one soffice --convert-to each | | | | | {ms['median']:.0f} | {ms['p95']:.0f} | |"
        )
    return lines


def misses(report: Mapping[str, Any], name: str = CASCADE) -> list[str]:
    """Lists the files in which an engine is not right in every cell, with the first such cell."""
    wrong = report["standings"][name]["wrong"]
    return [f"- {file}: {cells[0]}" for file, cells in wrong.items()]


def battery(report: Mapping[str, Any]) -> list[str]:
    """Lists every probe with the engines' answers that differ from Microsoft's documentation."""
    measured = report["battery"]
    names = sorted(measured["right"], key=lambda name: (name != CASCADE, -measured["right"][name]))
    lines = [
        "# Function battery",
        "",
        (
            f"{measured['probes']} formulas, each in its own workbook, with the result that the "
            "named page of Microsoft's function reference gives. A column is empty if the engine "
            "gave that result; otherwise it shows the engine's result (None: no value)."
        ),
        "",
        "```",
        "python -m benchmarks.recalc --json battery.json                # the battery alone",
        "python -m benchmarks.recalc_tables battery.json --battery docs/battery.md",
        "```",
        "",
        "| | " + " | ".join(names) + " |",
        "|---" * (len(names) + 1) + "|",
        "| right | " + " | ".join(str(measured["right"][name]) for name in names) + " |",
        "| version | " + " | ".join(report["versions"].get(name, "") for name in names) + " |",
    ]
    page = ""
    for row in measured["rows"]:
        if row["page"] != page:
            page = row["page"]
            lines += ["", f"## {page}", "", _line(["formula", "documented", *names])]
            lines.append("|---" * (len(names) + 2) + "|")
        results = [row["wrong"].get(name, "") for name in names]
        lines.append(_line([f"`{_plain(row['formula'])}`", _plain(row["documented"]), *results]))
    return lines


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_plain(cell) for cell in cells) + " |"


def _plain(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", "\\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("report", type=existing, help="what --json of benchmarks.recalc wrote")
    parser.add_argument("--battery", type=existing, help="file for the table of the battery")
    arguments = parser.parse_args()
    report = json.loads(arguments.report.read_text(encoding="utf-8"))
    if arguments.battery:
        arguments.battery.write_text("\n".join(battery(report)) + "\n", encoding="utf-8")
        return
    print("\n".join([*standings(report), "", *misses(report)]))


if __name__ == "__main__":
    run_command(main)
