"""Compares an audit with careful readings: which share of its suspects is confirmed, by sign, and
which share of the faulty golds of randomly drawn tasks it lists.

    judge verify SUITE --audit --out suspects.json
    python -m benchmarks.readings suspects.json
    python -m benchmarks.readings suspects.json --answered-by docs/readings/programs.jsonl
    python -m benchmarks.readings suspects.json --signs failed-task,mixed-verdicts

The readings are in ``docs/readings``; its README says how tasks and suspects were drawn.
"""

from __future__ import annotations

import argparse
import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.command_line import existing, run_command
from judge.errors import SubmissionError
from judge.files.json_lines import read_json_lines
from judge.suspects.model import About, Certainty, Suspect, read_suspects

READINGS = Path(__file__).resolve().parent.parent / "docs" / "readings"
FAULTS = frozenset({"faulty", "says nothing"})
CASES = ("1", "2", "3")

Row = Mapping[str, str]
CaseId = tuple[str, str]


def rows(path: Path) -> Iterator[Row]:
    """Reads the rows of a table, by heading."""
    with path.open(encoding="utf-8", newline="") as lines:
        yield from csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)


def cases_of(row: Row) -> list[CaseId]:
    """Returns the cases of a row: ``all`` or their numbers."""
    named = CASES if row["case"] == "all" else [case.strip() for case in row["case"].split(",")]
    return [(row["task"], case) for case in named]


def print_precision(table: Iterable[Row]) -> None:
    """Counts the confirmed suspects among those that were read, by sign and certainty."""
    read: Counter[tuple[str, str]] = Counter()
    confirmed: Counter[tuple[str, str]] = Counter()
    faulty: Counter[tuple[str, str]] = Counter()
    for row in table:
        for key in ((row["sign"], row["certainty"]), ("all signs", row["certainty"])):
            read[key] += 1
            confirmed[key] += row["decision"] == "confirmed"
            faulty[key] += row["decision"] in {"confirmed", "another fault"}
    print("| sign | certainty | read | confirmed | confirmed, or another fault |")
    print("|---|---|---|---|---|")
    order = [certainty.value for certainty in Certainty]
    for key in sorted(read, key=lambda item: (order.index(item[1]), item[0])):
        share = f"{confirmed[key]} ({confirmed[key] / read[key]:.0%})"
        print(f"| {key[0]} | {key[1]} | {read[key]} | {share} | {faulty[key]} |")


def print_recall(table: Iterable[Row], suspects: Sequence[Suspect]) -> None:
    """Counts the faults that a reading found in random tasks and that are on the list."""
    read = list(table)
    faults: dict[CaseId, str] = {}
    tasks: set[str] = set()
    for row in read:
        tasks.add(row["task"])
        if row["finding"] in FAULTS:
            faults.update(dict.fromkeys(cases_of(row), row["finding"]))
    listed: dict[str, set[CaseId]] = {}
    for suspect in suspects:
        numbers = CASES if suspect.case is None else (str(suspect.case),)
        for level in ("any certainty", f"{suspect.certainty.value}"):
            listed.setdefault(level, set()).update((suspect.task, number) for number in numbers)
        if suspect.certainty is not Certainty.POSSIBLE:
            listed.setdefault(f"sure or likely, {suspect.about.heading}", set()).update(
                (suspect.task, number) for number in numbers
            )
        if suspect.sign != "manual-rule":
            listed.setdefault("any sign but manual-rule", set()).update(
                (suspect.task, number) for number in numbers
            )
    good = {row["task"] for row in read if row["finding"] == "good"} - {
        row["task"] for row in read if row["finding"] != "good"
    }
    doubted = {
        suspect.task
        for suspect in suspects
        if suspect.about is About.GOLD and suspect.certainty is not Certainty.POSSIBLE
    }
    print(f"{len(tasks)} random tasks were read.")
    print(
        f"{len(good & doubted)} of the {len(good)} tasks of which all cases are good are on the "
        "list of golds, as sure or likely.\n"
    )
    print("| finding | cases | tasks | list | cases listed | tasks listed |")
    print("|---|---|---|---|---|---|")
    for finding in (*sorted(FAULTS), "both"):
        cases = {
            case for case, finding_of_case in faults.items() if finding in (finding_of_case, "both")
        }
        of_tasks = {task for task, _ in cases}
        for level, listed_cases in sorted(listed.items()):
            hit = cases & listed_cases
            hit_tasks = {task for task, _ in hit}
            print(
                f"| {finding} | {len(cases)} | {len(of_tasks)} | {level} "
                f"| {len(hit)} ({len(hit) / len(cases):.0%}) "
                f"| {len(hit_tasks)} ({len(hit_tasks) / len(of_tasks):.0%}) |"
            )


def print_random_precision(table: Iterable[Row], suspects: Iterable[Suspect]) -> None:
    """Counts the suspects about tasks that were read whose cases have a fault.

    A gold that, according to the reader, follows another reading of the question is counted
    separately.
    """
    read = list(table)
    tasks = {row["task"] for row in read}
    findings = {(case, row["finding"]) for row in read for case in cases_of(row)}
    counts: dict[tuple[str, str, str], Counter[str]] = {}
    for suspect in suspects:
        if suspect.task not in tasks:
            continue
        numbers = CASES if suspect.case is None else (str(suspect.case),)
        reader_findings = {
            finding
            for number in numbers
            for case, finding in findings
            if case == (suspect.task, number)
        }
        fault = "faulty" if suspect.about is About.GOLD else "says nothing"
        result = (
            fault
            if fault in reader_findings
            else ("another reading" if "another reading" in reader_findings else "none")
        )
        for sign in (suspect.sign, "all signs"):
            key = (suspect.about.heading, suspect.certainty.value, sign)
            counts.setdefault(key, Counter())[result] += 1
    print("\n| list | certainty | sign | suspects | right | another reading |")
    print("|---|---|---|---|---|---|")
    order = [certainty.value for certainty in Certainty]
    for key in sorted(counts, key=lambda item: (item[0], order.index(item[1]), item[2])):
        total = counts[key].total()
        right = counts[key]["faulty"] + counts[key]["says nothing"]
        other = counts[key]["another reading"]
        print(f"| {' | '.join(key)} | {total} | {right} ({right / total:.0%}) | {other} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("suspects", type=existing, help="what `judge verify --audit --out` wrote")
    parser.add_argument("--readings", type=existing, default=READINGS)
    parser.add_argument(
        "--answered-by",
        type=existing,
        metavar="SOLUTIONS.jsonl",
        help="only the random tasks that these solutions answer, of all tables together",
    )
    parser.add_argument("--signs", metavar="NAMES", help="only these signs, separated by commas")
    arguments = parser.parse_args()
    suspects = read_suspects(arguments.suspects).suspects
    if arguments.signs is not None:
        signs = set(arguments.signs.split(","))
        if unknown := signs - {suspect.sign for suspect in suspects}:
            parser.error(f"no suspect of {', '.join(sorted(unknown))} in {arguments.suspects}")
        suspects = tuple(suspect for suspect in suspects if suspect.sign in signs)
    paths = sorted(arguments.readings.glob("random-tasks-*.tsv"))
    if not paths:
        parser.error(f"{arguments.readings}: holds no tables of readings (random-tasks-*.tsv)")
    if arguments.answered_by is not None:
        if not arguments.answered_by.is_file():
            parser.error(f"{arguments.answered_by}: no such file")
        lines = read_json_lines(arguments.answered_by, SubmissionError)
        answered = {str(record.get("id")) for _, record in lines}
        read = [row for path in paths for row in rows(path) if row["task"] in answered]
        if not any(row["finding"] in FAULTS for row in read):
            parser.error(f"{arguments.answered_by}: answers no task that was read as faulty")
        print_recall(read, suspects)
        print_random_precision(read, suspects)
        return
    for name in ("suspects-drawn.tsv", "suspects-all-other.tsv"):
        print(f"\n{name}\n")
        print_precision(rows(arguments.readings / name))
    for path in paths:
        print(f"\n{path.name}")
        print_recall(rows(path), suspects)
        print_random_precision(rows(path), suspects)


if __name__ == "__main__":
    run_command(main)
