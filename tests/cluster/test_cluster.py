"""Real workers: the same report as with threads, and what happens if something dies."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from judge import api
from judge.api.rejudging import rejudge
from judge.core.limits import Limits
from judge.core.verdict import Verdict
from judge.errors import ClusterError, IncompleteRunError
from judge.grading.cluster import dispatch
from judge.grading.cluster.certificates import make_certificates
from judge.grading.store import CASES_FILE, REPORT_FILE, SUBMISSIONS_FILE, RunDirectory
from judge.suites import load_suite
from tests.cluster.conftest import COMMAND, Machine, ancestors, processes, running, wait_until

pytestmark = pytest.mark.bubblewrap

SAMPLE = Path(__file__).resolve().parents[2] / "dataset" / "sample"
TASK = "1001"

HANG = """
import subprocess, sys
subprocess.run([sys.executable, "-c", "import time; time.sleep(1000)", {mark!r}])
"""
PATIENT = Limits(cpu_s=500, wall_s=500)


def solutions(folder: Path, *codes: str) -> Path:
    """A file with some samples of one task."""
    lines = [json.loads(line) for line in (SAMPLE / "submissions.jsonl").read_text().splitlines()]
    first = next(each for each in lines if str(each["id"]) == TASK)
    path = folder / "solutions.jsonl"
    with path.open("w") as file:
        for sample, code in enumerate((first["solution"], *codes)):
            record = {**first, "sample": sample, "solution": code, "expected": []}
            file.write(json.dumps(record) + "\n")
    return path


def options(machine: Machine | None, out: Path) -> api.ScoreOptions:
    cluster = None if machine is None else machine.address
    return api.ScoreOptions(
        dataset=str(SAMPLE),
        out=out,
        jobs=1,
        sandbox="bubblewrap",
        limits=PATIENT,
        cluster=cluster,
    )


@pytest.fixture(autouse=True)
def certificates(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client in this process has the certificates too."""
    monkeypatch.setenv("JUDGE_CLUSTER_CERTIFICATES", str(machine.certificates))


def test_the_report_is_that_of_threads(machine: Machine, tmp_path: Path) -> None:
    source = solutions(tmp_path, "raise SystemExit(3)", "no code at all (")
    api.score(source, options(None, tmp_path / "threads"))
    (run,) = api.score(source, options(machine, tmp_path / "cluster"))
    assert run.problem is None
    reports = [(tmp_path / name / REPORT_FILE).read_bytes() for name in ("threads", "cluster")]
    assert reports[0] == reports[1]
    kept = {path.stem for path in (tmp_path / "cluster").rglob("*.xlsx")}
    assert kept == {each.run["output_sha256"] for each in run.results if each.verdict is Verdict.AC}
    left = [each.name for each in (tmp_path / "cluster").iterdir() if "shared" in each.name]
    assert not left
    (again,) = api.score(source, options(machine, tmp_path / "cluster"))
    assert again.reused == len(again.results)


def test_stored_outputs_are_judged_again_alike(machine: Machine, tmp_path: Path) -> None:
    source = solutions(tmp_path)
    api.score(source, options(None, tmp_path / "run"))
    here = rejudge(tmp_path / "run", profile="strict", jobs=1)
    there = rejudge(tmp_path / "run", profile="strict", jobs=1, cluster=machine.address)
    assert here.to_json() == there.to_json()


def test_what_episodes_left_is_judged_alike(machine: Machine, tmp_path: Path) -> None:
    """Workers that cannot access the run's folder receive its files, and run nothing for that."""
    suite = load_suite("sample-desktop")
    case = suite.task("profit").cases[0]
    with RunDirectory(tmp_path / "run") as store:
        for sample, path in enumerate((case.gold_path, case.input_path)):
            left = {"sha256": store.put_workbook(path.read_bytes()), "ended": "done"}
            record = {"id": "profit", "sample": sample, "outputs": {"1": left}}
            store.append(SUBMISSIONS_FILE, record)
        gave_up = {"sha256": None, "ended": "fail"}
        record = {"id": "profit", "sample": 2, "outputs": {"1": gave_up}}
        store.append(SUBMISSIONS_FILE, record)
    source = tmp_path / "run" / SUBMISSIONS_FILE
    chosen = [
        replace(options(each, tmp_path / name), dataset="sample-desktop", recalc="never")
        for name, each in (("threads", None), ("cluster", machine))
    ]
    runs = [api.score(source, each)[0] for each in chosen]
    assert [[each.verdict.value for each in run.results] for run in runs] == [
        ["AC", "WA", "WA"]
    ] * 2
    reports = [(run.path / REPORT_FILE).read_bytes() for run in runs]
    assert reports[0] == reports[1]


def test_a_suite_is_verified_alike(machine: Machine) -> None:
    here = api.verify(SAMPLE, ids=[TASK], jobs=1)
    there = api.verify(SAMPLE, ids=[TASK], jobs=1, cluster=machine.address)
    assert here == there


@contextmanager
def killing_workers_of(mark: str) -> Iterator[list[int]]:
    """Kills every worker that runs a program with a mark."""
    killed: list[int] = []
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.05):
            for pid in running(mark):
                above = [each for each in ancestors(pid) if _is_worker(each)]
                for worker in set(above) - set(killed):
                    killed.append(worker)
                    os.kill(worker, signal.SIGKILL)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield killed
    finally:
        ended.set()
        thread.join()


def _is_worker(pid: int) -> bool:
    return any("spawn_main" in line for _, line in processes([pid]).values())


def test_only_the_case_that_kills_its_worker_is_a_judge_error(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "DEATHS", 1)
    mark = f"kills-its-worker-{os.getpid()}"
    case = load_suite(SAMPLE).task(TASK).cases[1]
    digest = hashlib.sha256(case.input_path.read_bytes()).hexdigest()
    code = f"""
import hashlib
data = open("/mnt/data/input/1_{TASK}_input.xlsx", "rb").read()
if hashlib.sha256(data).hexdigest() == {digest!r}:
    {HANG.format(mark=mark).strip().replace(chr(10), chr(10) + "    ")}
"""
    source = solutions(tmp_path, code)
    with killing_workers_of(mark) as killed:
        (run,) = api.score(source, options(machine, tmp_path / "run"))
    verdicts = {(each.sample, each.case): each.verdict for each in run.results}
    assert verdicts == {
        **{(0, number): Verdict.AC for number in (1, 2, 3)},
        **{(1, number): Verdict.NO for number in (1, 3)},
        (1, 2): Verdict.JE,
    }
    assert len(killed) >= 2
    with pytest.raises(IncompleteRunError):
        api.check_complete([run])
    records = (tmp_path / "run" / CASES_FILE).read_text().splitlines()
    assert len(records) == len(verdicts)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_programs_end_with_the_client(
    machine: Machine, tmp_path: Path, number: signal.Signals
) -> None:
    mark = f"outlives-its-client-{os.getpid()}-{number}"
    source = solutions(tmp_path, HANG.format(mark=mark), HANG.format(mark=mark))
    arguments = ["score", source, "--dataset", SAMPLE, "--out", tmp_path / "run", "--quiet"]
    arguments += ["--cluster", machine.address, "--sandbox", "bubblewrap"]
    arguments += ["--cpu", 500, "--wall", 500]
    client = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=machine.environment(),
    )
    wait_until(lambda: running(mark) or client.poll() is not None, "the program's start")
    assert client.poll() is None
    client.send_signal(number)
    wait_until(lambda: not running(mark), "the program's end")
    assert client.wait() == (130 if number == signal.SIGINT else -signal.SIGKILL)


def test_a_worker_of_another_version_is_refused(machine: Machine, tmp_path: Path) -> None:
    preload = tmp_path / "older.py"
    preload.write_text(
        "import judge.grading.cluster.messages as hello\nhello.Identity.__init__.__defaults__ = "
        "('0.0', *hello.Identity.__init__.__defaults__[1:])\n"
    )
    odd = machine.workers(1, DASK_DISTRIBUTED__WORKER__PRELOAD=str(preload))
    try:
        (name,) = [line.split()[-1] for line in odd.said("worker at")]
        with pytest.raises(ClusterError, match=rf"{name}: the judge there is 0\.0"):
            api.score(solutions(tmp_path), options(machine, tmp_path / "run"))
        assert not (tmp_path / "run" / CASES_FILE).exists()
    finally:
        odd.end()


def test_a_client_with_other_certificates_is_refused(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_certificates(tmp_path / "others", days=1)
    monkeypatch.setenv("JUDGE_CLUSTER_CERTIFICATES", str(tmp_path / "others"))
    with pytest.raises(ClusterError, match="no scheduler can be reached"):
        api.score(solutions(tmp_path), options(machine, tmp_path / "run"))
