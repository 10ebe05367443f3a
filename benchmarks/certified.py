"""Prints figures about certified tasks: grades, agreement of readers, tasks that are not sound.

    python -m benchmarks.certified                               figures
    python -m benchmarks.certified --suite FOLDER [FOLDER …]     and whether these files were read
    python -m benchmarks.certified --page                        docs/certified.md, from the file
    python -m benchmarks.certified --suspects FILE [FILE …]      an audit against the readings

Agreement is that of the two readers of a task before they were reconciled: on the four grades, and
on whether a verdict on the task can be trusted (sound or weak), with Cohen's kappa.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path

from benchmarks.command_line import existing, run_command
from judge.core.statistics import Estimate, cohens_kappa
from judge.suites import load_suite
from judge.suites.certified import (
    Certification,
    Grade,
    GradedTask,
    certified_folder,
    read_certification,
)
from judge.suspects.model import About, Certainty, Suspect, read_suspects

PAGE = Path(__file__).resolve().parent.parent / "docs" / "certified.md"
BEGIN = "<!-- made by python -m benchmarks.certified --page -->"


def percent(count: int, total: int) -> str:
    """Formats a count with its share: ``12 (3.2 %)``."""
    return f"{count} ({count / total:.1%})".replace("%)", " %)")


def with_interval(estimate: Estimate) -> str:
    """Formats a figure with its interval."""
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return "not defined"
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"


def figures(tasks: Iterable[GradedTask]) -> Iterator[str]:
    """Formats grades and agreement as a table and sentences."""
    graded = list(tasks)
    counts = Counter(task["grade"] for task in graded)
    yield "| grade | tasks |"
    yield "|---|---|"
    for grade in Grade:
        yield f"| {grade} | {percent(counts[grade], len(graded))} |"
    corrected = sum(bool(task.get("corrections")) for task in graded)
    yield ""
    yield f"{corrected} tasks have a correction; {len(graded)} tasks were read."
    pairs = [tuple(task["readers"]) for task in graded if len(task["readers"]) == 2]
    same = sum(first == second for first, second in pairs)
    trusted = [(first.is_certified, second.is_certified) for first, second in pairs]
    alike = sum(first == second for first, second in trusted)
    yield (
        f"Two readers read {len(pairs)} of them; before they were reconciled they gave the same "
        f"grade to {percent(same, len(pairs))}, and agreed on whether a verdict can be trusted in "
        f"{percent(alike, len(pairs))}, kappa {with_interval(cohens_kappa(trusted))}."
    )
    finals = [task["grade"] for task in graded if len(task["readers"]) == 2]
    kept = [
        sum(pair[reader] == final for pair, final in zip(pairs, finals, strict=True))
        for reader in (0, 1)
    ]
    overruled = sum(
        first == second != final for (first, second), final in zip(pairs, finals, strict=True)
    )
    yield (
        f"The grade that was decided afterwards is the first reader's in "
        f"{percent(kept[0], len(pairs))} and the second's in {percent(kept[1], len(pairs))}; in "
        f"{overruled} tasks both gave another grade."
    )


def suspected(tasks: Mapping[str, GradedTask], suspects: Iterable[Suspect]) -> Iterator[str]:
    """Formats a table of an audit's suspects by the grades of their tasks."""
    counts: dict[tuple[str, str], Counter[Grade]] = {}
    for suspect in suspects:
        if (task := tasks.get(suspect.task)) is not None:
            key = (suspect.sign, suspect.certainty.value)
            counts.setdefault(key, Counter())[task["grade"]] += 1
    yield "| sign | certainty | " + " | ".join(Grade) + " |"
    yield "|---|---|" + "---|" * len(Grade)
    order = [certainty.value for certainty in Certainty]
    for sign, certainty in sorted(counts, key=lambda key: (key[0], order.index(key[1]))):
        grades = counts[sign, certainty]
        numbers = " | ".join(str(grades[grade]) for grade in Grade)
        yield f"| {sign} | {certainty} | {numbers} |"


def half_of(task: str) -> str:
    """Returns the half of the suite that a task belongs to, by the SHA-256 of its id: A or B."""
    return "AB"[int(sha256(task.encode()).hexdigest(), 16) % 2]


def listed(tasks: Mapping[str, GradedTask], suspects: Iterable[Suspect]) -> Iterator[str]:
    """Formats how many tasks of each grade are sure or likely on the list of wrong golds."""
    doubted = {
        suspect.task
        for suspect in suspects
        if suspect.about is About.GOLD and suspect.certainty is not Certainty.POSSIBLE
    }
    yield "| grade | tasks | gold sure or likely to be wrong |"
    yield "|---|---|---|"
    for grade in Grade:
        own = {task for task, graded in tasks.items() if graded["grade"] is grade}
        yield f"| {grade} | {len(own)} | {len(own & doubted)} |"


def unsound(tasks: Iterable[GradedTask]) -> Iterator[str]:
    """Formats a table of the tasks that are not sound."""
    yield "| task | grade | why | correction |"
    yield "|---|---|---|---|"
    for task in tasks:
        if task["grade"] is Grade.SOUND:
            continue
        fields = sorted({str(entry["field"]) for entry in task.get("corrections", ())})
        why = [task["reason"], *(f"Reading: {reading}" for reading in task.get("readings", ()))]
        if unscored := task.get("unscored"):
            why.append(f"Not compared: {unscored}")
        if reports := task.get("reports"):
            why.append("Reported: " + ", ".join(f"<{address}>" for address in reports))
        text = " ".join(why).replace("|", "\\|").replace("\n", " ")
        yield f"| {task['task']} | {task['grade']} | {text} | {', '.join(fields) or '-'} |"


def page(certification: Certification) -> str:
    """Makes the part of the page that is generated from the file."""
    tasks = list(certification.tasks.values())
    return "\n".join(
        [BEGIN, "", *figures(tasks), "", "## Tasks that are not sound", "", *unsound(tasks), ""]
    )


def write_page(certification: Certification) -> None:
    """Replaces the part of the page after the mark; the part before it is written by hand."""
    text = PAGE.read_text(encoding="utf-8")
    head, mark, _ = text.partition(BEGIN)
    if not mark:
        raise SystemExit(f"{PAGE}: the line {BEGIN!r} is missing")
    PAGE.write_text(head + page(certification), encoding="utf-8")


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--suite", type=existing, nargs="+", default=[], help="folders with the tasks"
    )
    parser.add_argument("--page", action="store_true", help="write docs/certified.md")
    parser.add_argument("--suspects", type=existing, nargs="+", default=[], help="of judge verify")
    parser.add_argument("--half", choices=("A", "B"), help="of the tasks, for --suspects")
    options = parser.parse_args()
    for path in sorted(certified_folder().glob("*.yaml")):
        certification = read_certification(path)
        print(f"{certification.name}: {certification.source}\n")
        print("\n".join(figures(certification.tasks.values())))
        for folder in options.suite:
            suite = load_suite(folder)
            grades = certification.grades_of(suite)
            others = [task.id for task in suite.tasks if task.id not in grades]
            print(f"\n{folder}: {len(grades)} of {len(suite.tasks)} tasks are graded", *others[:20])
        if options.suspects:
            suspects = [
                suspect for path in options.suspects for suspect in read_suspects(path).suspects
            ]
            tasks = {
                name: task
                for name, task in certification.tasks.items()
                if options.half in {None, half_of(name)}
            }
            print("\n" + "\n".join([*suspected(tasks, suspects), "", *listed(tasks, suspects)]))
        if options.page:
            write_page(certification)


if __name__ == "__main__":
    run_command(main)
