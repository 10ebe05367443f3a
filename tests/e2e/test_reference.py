"""``judge score --reference``: time limits that follow a reference solution on this machine."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from judge.core.replies.extract import extract
from tests.conftest import REPOSITORY
from tests.e2e.conftest import Cli, read_report, require_backend, verdicts_of

pytestmark = pytest.mark.bubblewrap

BACKEND = "bubblewrap"
"""tests/conformance covers measuring on each backend; its effects do not depend on that."""

SUBMISSIONS = REPOSITORY / "dataset" / "sample" / "submissions.jsonl"
SLOW = """
import time
end = time.process_time() + {seconds}
while time.process_time() < end:
    pass
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """The sample suite with the first case of each task: limits are of a task, and most of these
    programs do nothing but take their time.
    """
    copy = Path(shutil.copytree(SUBMISSIONS.parent, tmp_path / "suite"))
    for path in (copy / "spreadsheet").glob("*/[23]_*.xlsx"):
        path.unlink()
    return copy


def records() -> list[dict[str, object]]:
    """Accepted sample solutions, one for each task."""
    found: dict[str, dict[str, object]] = {}
    for line in SUBMISSIONS.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if record["expected"] in ("AC", ["AC"]):
            found.setdefault(str(record["id"]), record)
    return list(found.values())[:3]


def write(path: Path, *, delays: list[float]) -> Path:
    """Returns the solutions, each made slower by a number of processor seconds."""
    lines = []
    for record, seconds in zip(records(), delays, strict=True):
        code = SLOW.format(seconds=seconds) + (extract(str(record["solution"])).code or "")
        lines.append(json.dumps(record | {"solution": code, "sample": 0}))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_limits_follow_the_reference(cli: Cli, suite: Path, tmp_path: Path) -> None:
    require_backend(BACKEND)
    solutions = write(tmp_path / "solutions.jsonl", delays=[1.2, 1.2, 0])
    reference = write(tmp_path / "reference.jsonl", delays=[0, 0.6, 0])
    run = tmp_path / "run"
    options = (
        "--sandbox", BACKEND, "--cpu", "0.7", "--wall", "60",
        "--reference", reference, "--time-factor", "3",
    )  # fmt: skip
    done = cli("score", solutions, "--dataset", suite, "--out", run, *options)
    assert done.returncode in {0, 1}, done.stderr  # 1: not what the samples expect
    verdicts = {
        task_id: set(codes) for (task_id, _), codes in verdicts_of(read_report(run)).items()
    }
    first, second, third = (str(record["id"]) for record in records())
    assert (verdicts[first], verdicts[second], verdicts[third]) == ({"TLE"}, {"AC"}, {"AC"})
    described = json.loads((run / "run.json").read_text())
    assert described["reference"] == {"solutions": str(reference), "time_factor": 3}
    measured = json.loads((run / "reference.json").read_text())["tasks"]
    assert measured[second]["cpu_s"] >= 0.6

    before = (run / "cases.jsonl").read_bytes()
    again = cli("score", run, *options)
    assert again.returncode == done.returncode, again.stderr
    assert (run / "cases.jsonl").read_bytes() == before, "a moving limit judged cases again"


def test_a_reference_that_fails_is_named(cli: Cli, tmp_path: Path) -> None:
    require_backend(BACKEND)
    solutions = write(tmp_path / "solutions.jsonl", delays=[0, 0, 0])
    reference = tmp_path / "reference.jsonl"
    record = records()[0] | {"solution": "raise SystemExit(3)", "sample": 0}
    reference.write_text(json.dumps(record) + "\n")
    done = cli(
        "score", solutions, "--dataset", "sample", "--out", tmp_path / "run",
        "--sandbox", BACKEND, "--reference", reference,
    )  # fmt: skip
    assert done.returncode == 4, done.stdout + done.stderr
    assert f"task {record['id']} fails on case 1: exit code 3" in done.stderr
