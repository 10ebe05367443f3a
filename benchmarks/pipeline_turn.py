"""Runs one turn of ``benchmarks/pipeline.py``: the judge on the path grades some tasks.

    PYTHONPATH=CLONE python benchmarks/pipeline_turn.py TURN.json

Prints, as JSON, the seconds that grading took, including opening sandbox and engines; the processor
seconds of the containers (null if one could not be counted), of the judge's process, and of
bubblewrap's wardens and services; and the record of each case. It is a separate program so that an
old clone can be measured as well.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

# Found by the script's folder, since a package of this name on the path is the clone's.
from processor_time import (  # type: ignore[import-not-found, unused-ignore]
    ContainerTime,
    LentTime,
)

from judge import api
from judge.sandbox.backends import cgroups, docker


def main() -> None:
    """Grades the tasks of the turn."""
    parser = argparse.ArgumentParser(description="Runs a turn of benchmarks.pipeline.")
    parser.add_argument("turn", type=argparse.FileType(encoding="utf-8"), metavar="TURN.json")
    with parser.parse_args().turn as file:
        turn = json.load(file)
    containers = ContainerTime.watching(docker.Container)
    lent = LentTime.watching(cgroups.GroupTree, cgroups.LentGroup)
    with tempfile.TemporaryDirectory() as folder:
        options = api.ScoreOptions(
            dataset=turn["suite"],
            out=Path(folder) / "run",
            jobs=turn["jobs"],
            ids=tuple(turn["ids"]),
            sandbox=turn["sandbox"],
        )
        started = time.perf_counter()
        (run,) = api.score(Path(turn["solutions"]), options)
        seconds = time.perf_counter() - started
    cases = [
        {
            "task": result.task_id,
            "case": result.case,
            "verdict": result.verdict.value,
            "own_s": result.run.get("cpu_s") or 0.0,
            "wall_s": result.run.get("wall_s") or 0.0,
            "recalculation_s": result.timings_s.get("recalculation", 0.0),
            "comparison_s": result.timings_s.get("comparison", 0.0),
            "engines": list(result.comparison.get("engines", ())),
        }
        for result in run.results
    ]
    figures = {
        "judge": api.__file__,
        "seconds": seconds,
        "containers_s": None if containers.missed else containers.seconds,
        "parts_s": {
            "judge": time.process_time(),
            "wardens": lent.wardens,
            "services": lent.services,
        },
        "cases": cases,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
