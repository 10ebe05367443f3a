"""Where ``standard`` differs from ``official`` on recorded outputs of checklist suites, by fault.

    python -m benchmarks.checklist_readings DATA [--suite NAME] [--list FAULT]

DATA is a folder as for ``benchmarks/checklists.py``. Each item of each output is judged in both
readings. Printed per suite: the items that turn right and wrong, by the number of the fault
(docs/checklists.md); items that turn from a published pass without a number are an error. For
IB-bench, also the points of the published runs under ``official``, and the formulas without stored
values that turn right.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.checklist_tasks import Job, items_of
from benchmarks.checklists import SUITES, engines, jobs_in
from judge.compare.cells.computing import Compute
from judge.compare.checklists.items import Judged, State
from judge.compare.checklists.tally import JudgedItem
from judge.errors import JudgeError

RIGHT, WRONG, OPEN = "turn right", "turn wrong", "are not judged"


@dataclass(frozen=True, slots=True)
class Difference:
    """An item whose readings differ."""

    job: str
    item: str
    fault: str
    turn: str


def difference_of(job: Job, entry: JudgedItem) -> Difference | None:
    """How the readings of an item differ; None if they do not."""
    if entry.other is None:
        return None
    official = entry.outcome.ended is State.HOLDS
    standard = entry.other.ended
    if official == (standard is State.HOLDS) and standard is not State.NOT_JUDGED:
        return None
    if standard is State.NOT_JUDGED and not official and not entry.other.fault:
        return None
    turn = OPEN if standard is State.NOT_JUDGED else WRONG if official else RIGHT
    return Difference(str(job["job"]), entry.item.id, entry.other.fault, turn)


def differences(data: Path, suite: str, compute: Compute) -> Iterator[Difference]:
    """Every item of a suite's outputs whose readings differ."""
    for job in jobs_in(data, [suite]):
        try:
            items = items_of(data, job, compute, both=True)
        except (JudgeError, OSError, KeyError) as error:
            print(f"{suite} {job.get('job')}: not judged: {error!r}", file=sys.stderr)
            continue
        for entry in items:
            difference = difference_of(job, entry)
            if difference is not None:
                yield difference


@dataclass
class Points:
    """Points and criteria of the programmatic items of a run."""

    earned: float = 0.0
    possible: float = 0.0
    passed: int = 0
    criteria: int = 0

    def add(self, items: list[JudgedItem]) -> None:
        """Adds the items of an answer."""
        for entry in items:
            if entry.judged is Judged.DETERMINISTIC:
                self.earned += entry.earned
                self.possible += entry.item.points
                self.passed += entry.outcome.ended is State.HOLDS
                self.criteria += 1


def print_table(suite: str, found: list[Difference], *, listed: str | None) -> None:
    """The differences of a suite by fault."""
    counts: Counter[tuple[str, str]] = Counter((entry.fault, entry.turn) for entry in found)
    for fault in sorted({fault for fault, _ in counts}, key=_order):
        turns = ", ".join(f"{counts[fault, turn]:,} {turn}" for turn in (RIGHT, WRONG, OPEN))
        print(f"{suite:14}{fault or 'no number':10}{turns}")
    for entry in found:
        if entry.fault == listed:
            print("   ", entry.job, entry.item, entry.turn)


def _order(fault: str) -> tuple[str, int]:
    return fault[:1], int(fault[1:] or 0)


def published_points(data: Path, compute: Compute) -> dict[str, Points]:
    """The programmatic points of each published run of IB-bench.

    Responses that were blocked, or that could not be parsed, have no criteria.
    """
    points: dict[str, Points] = {}
    responses = data / "ib-bench/responses"
    for path in sorted(responses.glob("*/*/?-???.json")):
        response = json.loads(path.read_text(encoding="utf-8"))
        if response.get("stop_reason") == "content_filter" or not response.get("parsed_response"):
            continue
        files = [
            {"name": file.name, "path": str(file.relative_to(data))}
            for file in (path.parent / name for name in response.get("output_files") or ())
            if file.is_file()
        ]
        job = {"suite": "ib-bench", "task": path.stem, "files": files, "response": response}
        run = path.parent.relative_to(responses).as_posix()
        points.setdefault(run, Points()).add(items_of(data, job, compute))
    return points


def print_points(points: Mapping[str, Points]) -> None:
    """The programmatic points of each published run."""
    for run, sums in sorted(points.items()):
        if sums.criteria:
            print(
                f"{run:56}{sums.earned:>5,.0f} / {sums.possible:,.0f}"
                f"  {sums.passed} / {sums.criteria}"
            )


def main() -> int:
    """Judges and counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("data", type=Path)
    parser.add_argument("--suite", choices=sorted(SUITES), action="append")
    parser.add_argument("--list", metavar="FAULT", dest="listed")
    arguments = parser.parse_args()
    compute = engines()
    unnumbered = 0
    for suite in arguments.suite or sorted(SUITES):
        found = list(differences(arguments.data, suite, compute))
        print_table(suite, found, listed=arguments.listed)
        if suite == "ib-bench":
            print_points(published_points(arguments.data, compute))
        unnumbered += sum(not entry.fault and entry.turn == WRONG for entry in found)
    print(f"{unnumbered:,} published passes turn wrong without a fault's number")
    return 1 if unnumbered else 0


if __name__ == "__main__":
    sys.exit(main())
