"""One turn of ``benchmarks/pipeline.py``: some tasks graded by whichever judge is on the path.

    PYTHONPATH=CLONE python benchmarks/pipeline_turn.py TURN.json

Prints, as JSON, the seconds that grading took, opening sandbox and engines included, and what is
on record of each case. It is a program of its own so that an old clone can be measured as well.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from judge import api


def main() -> None:
    """Grades what the turn names."""
    turn = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
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
            "task": each.task_id,
            "case": each.case,
            "verdict": each.verdict.value,
            "own_s": each.run.get("cpu_s") or 0.0,
            "wall_s": each.run.get("wall_s") or 0.0,
            "recalculation_s": each.timings_s.get("recalculation", 0.0),
            "comparison_s": each.timings_s.get("comparison", 0.0),
            "engines": list(each.comparison.get("engines", ())),
        }
        for each in run.results
    ]
    sandbox = run.report["run"].get("sandbox")
    backend = sandbox["backend"] if sandbox else ""
    print(
        json.dumps({"judge": api.__file__, "seconds": seconds, "backend": backend, "cases": cases})
    )


if __name__ == "__main__":
    main()
