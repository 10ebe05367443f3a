"""Runs the verifiers of exported Harbor tasks offline, in one container without any rights.

    python benchmarks/harbor_verifier.py SUITE [--solutions FILE] [--limit N] [--harbor PYTHON]

Needs Docker. Exports SUITE, and builds the image of verifiers if it is not there. With --harbor,
the interpreter of an environment with Harbor, its own loader reads every exported task.

The container has no network, no capabilities, no new privileges and Docker's default system call
profile. For every task, its ``test.sh`` judges the golds (as ``solve.sh`` writes them) and the
untouched inputs; for tasks with a solution, also the workbooks that it wrote under ``judge score``.
Prints all differences from ``judge verify`` and ``judge score``, and how long a trial takes.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import judge
from benchmarks.command_line import existing, run_command
from judge.api import ScoreOptions, score, verify
from judge.authoring.platforms import HarborImages, export_harbor
from judge.core.verdict import Verdict
from judge.grading.store import RunDirectory
from judge.sandbox.backends.images import build_verifier_image
from judge.suites import Suite, load_suite
from judge.suites.harbor import folder_name

SEAL = ("--network", "none", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")
DRIVER = """\
cd /answers
for kind in *; do
    for task in $(ls "$kind"); do
        rm -rf /app /tests /logs && mkdir -p /app/output /logs/verifier
        ln -s "/tasks/$task/tests" /tests
        cp "$kind/$task"/* /app/output/ 2> /dev/null
        begun=$(date +%s.%N)
        bash /tests/test.sh > /logs/verifier/test-stdout.txt 2>&1
        echo "$begun $(date +%s.%N)" > /logs/verifier/times
        mkdir -p "/found/$kind" && cp -r /logs/verifier "/found/$kind/$task"
    done
done
"""
COMPARED = (Verdict.AC, Verdict.WA, Verdict.NC, Verdict.IW)
"""Verdicts of programs that wrote a workbook as an agent would; any other verdict counts as NO."""
LOADER = """\
import sys
from pathlib import Path
from harbor.models.task.task import Task
tasks = [Task(each) for each in Path(sys.argv[1]).iterdir() if Task.is_valid_dir(each)]
print(len(tasks))
"""

Verdicts = dict[str, dict[int, str]]
"""Task -> case -> verdict."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suite")
    parser.add_argument("--solutions", type=existing)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--harbor", type=existing)
    arguments = parser.parse_args()
    suite = load_suite(arguments.suite)
    image = build_verifier_image(lambda line: print(line, file=sys.stderr))
    with tempfile.TemporaryDirectory(prefix="judge-verifiers-") as name:
        folder = Path(name)
        export = export_harbor(suite, HarborImages(image), folder / "tasks")
        print(f"exported: {export.tasks} tasks, {export.cases} cases")
        if arguments.harbor is not None:
            command = [str(arguments.harbor), "-c", LOADER, str(folder / "tasks")]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            print(f"taken by Harbor's loader: {done.stdout.strip()}")
        chosen = suite.select(None, arguments.limit)
        expected = dict(fill(chosen, arguments.solutions, folder))
        print(f"trials: {sum(len(tasks) for tasks in expected.values())}, {image}")
        run_container(image, folder)
        for kind, verdicts in expected.items():
            compare(kind, verdicts, folder / "found" / kind)


def fill(suite: Suite, solutions: Path | None, folder: Path) -> Iterator[tuple[str, Verdicts]]:
    """Writes the answers of each kind, and returns their expected verdicts."""
    ids = [task.id for task in suite.tasks]
    for task in suite.tasks:
        exported = folder / "tasks" / folder_name(task.id)
        golds = exported / "solution/golds"
        shutil.copytree(golds, folder / "answers/golds" / exported.name)
        untouched = folder / "answers/untouched" / exported.name
        untouched.mkdir(parents=True)
        for case in task.cases:
            name = re.sub(r"^\d+_", f"{case.number}_", min(golds.iterdir()).name)
            shutil.copyfile(case.input_path, untouched / name)
    checks = verify(str(suite.root), ids=ids, jobs=2)
    golden: Verdicts = {}
    unchanged: Verdicts = {}
    for check in checks:
        golden.setdefault(check.task_id, {})[check.case] = "AC"
        accepted = "AC" if check.untouched_accepted else "WA"
        unchanged.setdefault(check.task_id, {})[check.case] = accepted
    yield "golds", golden
    yield "untouched", unchanged
    if solutions is not None:
        yield "solutions", judged(suite, solutions, ids, folder)


def judged(suite: Suite, solutions: Path, ids: list[str], target: Path) -> Verdicts:
    """Judges solutions with `judge score`, and writes their workbooks as answers."""
    run = target / "run"
    solved_ids = [record["id"] for record in map(json.loads, solutions.read_text().splitlines())]
    answered = tuple(
        task_id for task_id in ids if task_id in {str(solved_id) for solved_id in solved_ids}
    )
    options = ScoreOptions(dataset=str(suite.root), out=run, ids=answered, jobs=2)
    (scored,) = score(solutions, options)
    verdicts: Verdicts = {}
    with RunDirectory(run) as store:
        for result in scored.results:
            compared = result.verdict in COMPARED
            verdict = result.verdict if compared else Verdict.NO
            verdicts.setdefault(result.task_id, {})[result.case] = verdict.value
            folder = target / "answers/solutions" / folder_name(result.task_id)
            folder.mkdir(parents=True, exist_ok=True)
            digest = result.run.get("output_sha256")
            data = None if digest is None else store.get_workbook(digest)
            if data is not None and compared:
                (folder / f"{result.case}_{result.task_id}_output.xlsx").write_bytes(data)
    return verdicts


def run_container(image: str, folder: Path) -> None:
    (folder / "found").mkdir()
    (folder / "driver.sh").write_text(DRIVER)
    mounts = [
        *("-v", f"{folder / 'tasks'}:/tasks:ro", "-v", f"{folder / 'answers'}:/answers:ro"),
        *("-v", f"{folder / 'found'}:/found", "-v", f"{folder / 'driver.sh'}:/driver.sh:ro"),
    ]
    folder.chmod(0o755)
    command = ["docker", "run", "--rm", *SEAL, *mounts, image, "bash", "/driver.sh"]
    print(shlex.join(["docker", "run", "--rm", *SEAL, image]))
    subprocess.run(command, check=True)


def compare(kind: str, expected: Mapping[str, Mapping[int, str]], answers: Path) -> None:
    """Prints the verdicts of the verifiers, and where they differ from the expected ones."""
    rewards: list[float] = []
    seconds: list[float] = []
    differing: list[str] = []
    for task_id, verdicts in expected.items():
        folder = answers / folder_name(task_id)
        begun, ended = map(float, (folder / "times").read_text().split())
        seconds.append(ended - begun)
        reward = read(folder / "reward.json")
        if reward is None:
            output = (folder / "test-stdout.txt").read_text().strip()[-300:]
            differing.append(f"{task_id}: no reward ({output})")
            continue
        rewards.append(reward["reward"])
        lines = (folder / "judge/cases.jsonl").read_text().splitlines()
        said_of = {record["case"]: record["verdict"] for record in map(json.loads, lines)}
        if kind == "solutions":
            differing += different(task_id, verdicts, said_of)
        else:
            accepted = {
                case: "AC" if verdict == "AC" else "WA" for case, verdict in said_of.items()
            }
            differing += different(task_id, verdicts, accepted)
        right = [float(Verdict(verdict) is Verdict.AC) for verdict in said_of.values()]
        if abs(reward["soft"] - statistics.fmean(right)) > 1e-9:
            differing.append(f"{task_id}: soft is {reward['soft']}, of {said_of}")
    mean = statistics.fmean(rewards) if rewards else float("nan")
    print(
        f"{kind}: {len(rewards)} rewards of {len(expected)}, mean {100 * mean:.2f}, "
        f"{sum(reward == 1 for reward in rewards)} are 1; not as expected: {len(differing)}; "
        f"seconds of a trial: {statistics.median(seconds):.2f} (median), {max(seconds):.1f} (most)"
    )
    for line in differing:
        print(f"  {line}")


def different(
    task_id: str, expected: Mapping[int, str], actual: Mapping[int, str]
) -> Iterator[str]:
    for case, verdict in expected.items():
        if actual.get(case) != verdict:
            yield f"{task_id} case {case}: {actual.get(case)} in place of {verdict}"


def read(path: Path) -> dict[str, Any] | None:
    return json.loads(path.read_text()) if path.exists() else None


if __name__ == "__main__":
    print(f"judge {judge.__version__}")
    run_command(main)
