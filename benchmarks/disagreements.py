"""Lists every recorded pair on which ``standard`` and ``official`` disagree, with the reason.

    python benchmarks/disagreements.py DATA [--out docs/disagreements.md]

DATA is the folder with the published suites and the recorded verdicts. Formulas are not computed:
both profiles use the values stored in the files.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.command_line import existing, run_command
from benchmarks.pairs import Pair, compare_pair, recorded_pairs
from judge.compare.cells.comparison import Comparison, DifferenceClass
from judge.compare.cells.render import range_name


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A pair on which the two profiles disagree.

    Attributes:
        pair: the pair.
        standard, official: the results of the profiles.
        reason: why they differ, in one line, which is the same for equal causes.
    """

    pair: Pair
    standard: bool
    official: bool
    reason: str


def disagreements(pairs: Iterable[Pair]) -> list[Disagreement]:
    """Yields the pairs on which the profiles disagree, in order."""
    return [result for result in map(disagreement, pairs) if result is not None]


def disagreement(pair: Pair) -> Disagreement | None:
    """Returns the results of the profiles if they disagree on a pair; None if they agree."""
    standard = compare_pair(pair, "standard")
    if standard.official_equal == standard.equal:
        return None
    official = compare_pair(pair, "official")
    return Disagreement(pair, standard.equal, official.equal, _reason(pair, standard, official))


def _reason(pair: Pair, standard: Comparison, official: Comparison) -> str:
    if any("the published script crashes" in note for note in official.notes):
        return f"the script crashes on the position {pair.position!r}"
    if any("lacks a sheet" in note for note in official.notes):
        return f"the script searches for a missing sheet: {pair.position!r}"
    if set(standard.ranges) != set(official.ranges):
        intended = ", ".join(map(range_name, standard.ranges))
        read = ", ".join(map(range_name, official.ranges)) or "no cell"
        if len(official.ranges) < len(standard.ranges):
            return f"the script compares less than {pair.position!r} says: {read}, not {intended}"
        return f"the script compares {read} where {intended} is meant"
    if set(standard.difference_counts) == {DifferenceClass.NOT_CALCULATED}:
        return "the answer is a formula without a value, which the script takes for a blank cell"
    return "values: " + ", ".join(sorted(kind.value for kind in _counts(standard, official)))


def _counts(standard: Comparison, official: Comparison) -> Iterable[DifferenceClass]:
    return (standard if official.equal else official).difference_counts


# -- the document ----------------------------------------------------------------------------------


def document(disagreements: list[Disagreement], total: int) -> str:
    """Formats the list as Markdown."""
    accepted = sum(entry.standard for entry in disagreements)
    lines = [
        "# Where `standard` and `official` disagree",
        "",
        f"Of the {total:,} recorded pairs of workbooks of SpreadsheetBench, the two profiles",
        (
            f"disagree on {len(disagreements)}. `standard` accepts {accepted} that the published "
            "script"
        ),
        f"rejects, and rejects {len(disagreements) - accepted} that it accepts. Written by",
        "`benchmarks/disagreements.py`, which computes no formulas.",
        "",
    ]
    for accepts in (False, True):
        title = "accepts, the script does not" if accepts else "rejects, the script accepts"
        lines += [f"## `standard` {title}", ""]
        lines += _table("task", "pairs", "what they are", "reason")
        lines += [*_grouped(disagreements, accepts), ""]
    words = {True: "accepts", False: "rejects"}
    lines += ["## Every pair", "", *_table("task", "gold", "answer", "`standard`", "script")]
    lines += [
        _row(
            entry.pair.task,
            entry.pair.gold.name,
            entry.pair.prediction.name,
            words[entry.standard],
            words[entry.official],
        )
        for entry in disagreements
    ]
    return "\n".join([*lines, ""])


def _grouped(disagreements: list[Disagreement], accepts: bool) -> list[str]:
    groups: dict[tuple[str, str], list[Disagreement]] = defaultdict(list)
    for entry in disagreements:
        if entry.standard is accepts:
            groups[entry.pair.task, entry.reason].append(entry)
    rows = []
    for (task, reason), members in sorted(groups.items()):
        kinds = Counter(entry.pair.kind for entry in members)
        named = ", ".join(f"{count} of {kind}" for kind, count in sorted(kinds.items()))
        rows.append(_row(task, str(len(members)), named, reason))
    return rows


def _table(*titles: str) -> list[str]:
    return [_row(*titles), "|" + "---|" * len(titles)]


def _row(*texts: str) -> str:
    return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"


def main(arguments: list[str] | None = None) -> None:
    """Writes the document, or prints it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("data", type=existing)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    pairs = list(recorded_pairs(options.data))
    text = document(disagreements(pairs), len(pairs))
    if options.out is None:
        sys.stdout.write(text)
    else:
        options.out.write_text(text, encoding="utf-8")
        print(f"{options.out}: written")


if __name__ == "__main__":
    run_command(main)
