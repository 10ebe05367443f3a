"""Tasks of Spider2-V solved by hand-written programs: ten of them without pivot tables.

Two more make a pivot table out of openpyxl's own classes, which is all that the sandbox has for it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import judge
from judge.compare.registry import aspects_of
from judge.errors import SandboxError
from judge.sandbox import open_sandbox
from judge.suites import load_suite

pytestmark = [pytest.mark.data, pytest.mark.bubblewrap]

PROGRAMS = Path(__file__).parents[1] / "submissions" / "spider2v"
_LAST_STEP = re.compile(r"\s*# Last step\n.*?(?=\s*# Save\n)", re.DOTALL)


def test_each_program_passes_and_fails_without_its_last_step(
    judge_data: Path, tmp_path: Path
) -> None:
    try:
        open_sandbox("bubblewrap", jobs=1).close()
    except SandboxError as error:
        pytest.skip(f"no bubblewrap here: {error.message}")
    suite = load_suite(str(judge_data / "spider2v_calc"))
    lines, pivots = [], 0
    for path in sorted(PROGRAMS.glob("*.py")):
        (task,) = [each for each in suite.tasks if each.id.startswith(path.stem)]
        pivots += "pivot_table" in aspects_of(task.checker)
        whole = path.read_text()
        cut, steps = _LAST_STEP.subn("", whole)
        assert steps == 1, path.name
        lines += [
            json.dumps({"id": task.id, "sample": sample, "solution": program})
            for sample, program in enumerate((whole, cut))
        ]
    assert (len(lines) // 2, pivots) == (12, 2)
    solutions = tmp_path / "programs.jsonl"
    solutions.write_text("\n".join(lines) + "\n")
    out = tmp_path / "run"
    options = judge.ScoreOptions(dataset=str(suite.root), out=out, sandbox="bubblewrap", jobs=1)
    judge.score(solutions, options)
    records = (out / "cases.jsonl").read_text().splitlines()
    found = [json.loads(record) for record in records]
    verdicts = {(each["task"][:8], each["sample"]): each["verdict"] for each in found}
    programs = [path.stem for path in PROGRAMS.glob("*.py")]
    assert {name: verdicts[name, 0] for name in programs} == dict.fromkeys(programs, "AC")
    assert {name: verdicts[name, 1] for name in programs} == dict.fromkeys(programs, "WA")
