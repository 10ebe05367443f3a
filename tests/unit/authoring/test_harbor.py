"""Suites as Harbor tasks: their files, what Harbor's own loader reads, and what a test does."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from judge.authoring.platforms import HarborImages, export_harbor
from judge.cli.groups import dataset
from judge.errors import UsageError
from judge.suites import Suite, load_suite
from judge.suites.harbor import read_job
from tests.unit.report.runs import TaskSpec, book, make_suite

IMAGES = HarborImages("judge-verifier:1", "agents:2")
GOLD, INPUT = book((("gold", 1),)), book((("input", 1),))
LOADER = """
import datetime as dt, json, sys
from pathlib import Path
from harbor.models.agent.context import AgentContext
from harbor.models.task.id import LocalTaskId
from harbor.models.task.task import Task
from harbor.models.task.verifier_mode import resolve_verifier_environment_definition
from harbor.models.trial.config import AgentConfig, TaskConfig, TrialConfig
from harbor.models.trial.result import AgentInfo, ModelInfo, TimingInfo, TrialResult
tasks, job, found = Path(sys.argv[1]), Path(sys.argv[2]), {}
for folder in sorted(each for each in tasks.iterdir() if each.is_dir()):
    assert Task.is_valid_dir(folder), folder
    task = Task(folder)
    verifier = resolve_verifier_environment_definition(task.config, task.paths)
    found[folder.name] = {
        "name": task.name,
        "artifacts": task.config.artifacts,
        "network": verifier.config.network_mode.value,
        "image": str(verifier.directory.relative_to(folder)),
        "instruction": task.instruction,
    }
    begun = dt.datetime(2026, 11, 22, tzinfo=dt.timezone.utc)
    config = TrialConfig(
        task=TaskConfig(path=folder), trials_dir=job, agent=AgentConfig(name="oracle")
    )
    result = TrialResult(
        task_name=task.name, trial_name=config.trial_name, trial_uri=job.as_uri(),
        task_id=LocalTaskId(path=folder), task_checksum="", config=config,
        agent_info=AgentInfo(name="oracle", version="1", model_info=ModelInfo(name="m")),
        agent_result=AgentContext(n_input_tokens=3, cost_usd=0.5), started_at=begun,
        agent_execution=TimingInfo(started_at=begun, finished_at=begun + dt.timedelta(seconds=2)),
    )
    place = job / config.trial_name
    place.mkdir(parents=True)
    (place / "config.json").write_text(config.model_dump_json())
    (place / "result.json").write_text(result.model_dump_json())
print(json.dumps(found))
"""


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    tasks = [TaskSpec("101", input=INPUT, gold=GOLD), TaskSpec("a b", cases=1)]
    return make_suite(tmp_path / "suite", tasks)


@pytest.fixture
def tasks(tmp_path: Path, suite: Suite) -> Path:
    made = export_harbor(suite, IMAGES, tmp_path / "tasks")
    assert (made.tasks, made.cases, made.left_out) == (2, 4, 0)
    return tmp_path / "tasks"


def test_the_agent_gets_the_inputs_and_no_golds(tasks: Path) -> None:
    environment = tasks / "101/environment"
    contents = {
        str(path.relative_to(environment)): path.read_bytes()
        for path in environment.rglob("*")
        if path.is_file()
    }
    dockerfile = contents.pop("Dockerfile").decode()
    assert dockerfile.splitlines()[0] == "FROM agents:2"
    assert "pip" not in dockerfile
    assert contents == {f"input/{n}_101_input.xlsx": INPUT for n in (1, 2, 3)}
    said = (tasks / "101/instruction.md").read_text()
    assert "read `/app/input/2_101_input.xlsx`; write the result to" in said
    assert "`/app/output/3_101_output.xlsx`" in said
    assert "- answer position: Sheet1!B2:B4" in said


def test_the_verifier_has_the_task_as_a_suite(tasks: Path) -> None:
    verified = load_suite(tasks / "101/tests/suite")
    (task,) = verified.tasks
    assert (task.id, len(task.cases)) == ("101", 3)
    dockerfile = (tasks / "101/tests/Dockerfile").read_text()
    assert dockerfile.startswith("FROM judge-verifier:1\n")
    script = tasks / "101/tests/test.sh"
    assert script.stat().st_mode & stat.S_IXUSR
    subprocess.run(["bash", "-n", str(script)], check=True)
    golds = sorted(path.name for path in (tasks / "101/solution/golds").iterdir())
    assert golds == [f"{n}_101_output.xlsx" for n in (1, 2, 3)]
    config = tomllib.loads((tasks / "101/task.toml").read_text())
    assert config["metadata"]["task"] == "101"
    assert config["verifier"]["environment"]["network_mode"] == "no-network"


def test_only_the_workbooks_of_the_task_are_judged(tmp_path: Path, tasks: Path) -> None:
    """Runs the script itself, with a replacement for the judge that records its arguments."""
    (name,) = (path.name for path in tasks.iterdir() if path.name.startswith("a-b"))
    output, verifier = tmp_path / "output", tmp_path / "verifier"
    output.mkdir()
    (output / "1_a b_output.xlsx").write_bytes(GOLD)
    (output / "2_a b_output.xlsx").write_bytes(GOLD)
    judge = tmp_path / "bin/judge"
    judge.parent.mkdir()
    judge.write_text('#!/bin/sh\nls "$2" > "$FOUND"; for each; do echo "$each"; done >> "$FOUND"\n')
    judge.chmod(0o755)
    script = (tasks / name / "tests/test.sh").read_text().replace("/app/output", str(output))
    script = script.replace("/logs/verifier", str(verifier))
    environment = {"PATH": f"{judge.parent}:/usr/bin:/bin", "FOUND": str(tmp_path / "found")}
    subprocess.run(["bash", "-c", script], check=True, env=environment)
    lines = (tmp_path / "found").read_text().splitlines()
    assert lines[0] == "1_a b_output.xlsx"
    assert lines[1] == "score"
    assert lines[lines.index("--outputs") + 1] == "*"
    assert lines[lines.index("--sandbox") + 1] == "sealed-container"
    (output / "1_a b_output.xlsx").unlink()
    (output / "1_a b_output.xlsx").symlink_to("/etc/passwd")
    subprocess.run(["bash", "-c", script], check=True, env=environment)
    assert (tmp_path / "found").read_text().splitlines()[0] == "score"


def test_harbor_itself_takes_the_tasks_and_its_results_are_read(
    tmp_path: Path, tasks: Path
) -> None:
    python = os.environ.get("JUDGE_HARBOR_PYTHON")
    if python is None:
        pytest.skip("no loader of Harbor here: scripts/with-test-machine installs it")
    command = [python, "-W", "error", "-c", LOADER, str(tasks), str(tmp_path / "job")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) == 2
    assert found["101"] == {
        "name": "sheetjudge/101",
        "artifacts": ["/app/output"],
        "network": "no-network",
        "image": "tests",
        "instruction": (tasks / "101/instruction.md").read_text(),
    }
    trials = {trial.task_names[0]: trial for trial in read_job(tmp_path / "job").trials}
    assert set(trials) == set(found)
    first = trials["101"]
    assert (first.agent, first.model, first.seconds) == ("oracle 1", "m", 2.0)
    assert (first.prompt_tokens, first.completion_tokens, first.cost_usd) == (3, None, 0.5)


def test_the_command(tmp_path: Path, suite: Suite) -> None:
    run = CliRunner().invoke
    arguments = ["export", str(suite.root), str(tmp_path / "tasks"), "--format", "harbor"]
    done = run(dataset, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    assert "2 tasks, 4 cases; verifiers: judge-verifier:" in done.output
    packages = (tmp_path / "tasks/101/environment/Dockerfile").read_text()
    assert "openpyxl==" in packages
    with pytest.raises(UsageError, match="already exists"):
        run(dataset, arguments, catch_exceptions=False)
    with pytest.raises(UsageError, match="finished suite as it is"):
        run(dataset, [*arguments, "--state", "draft"], catch_exceptions=False)
    with pytest.raises(UsageError, match="can only be used with --format harbor"):
        run(dataset, [*arguments[:3], "--agent-image", "x"], catch_exceptions=False)


def test_a_suite_of_typed_answers_has_nothing_to_export(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no task asks for a workbook"):
        export_harbor(load_suite("sample-typed"), IMAGES, tmp_path / "tasks")
