"""A worker sends pickles; none of them is executed where the records are kept."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from judge.files.documents import MIB
from judge.grading.case_records import case_records
from judge.grading.store import RunDirectory
from tests.cluster import hostile
from tests.cluster.conftest import machine_in
from tests.cluster.test_cluster import SAMPLE, solutions
from tests.forked_command import ForkedCommand

MEASURED = """
import atexit, json, os, sys
from judge.cli.main import main

path = sys.argv[1]

def tell():
    # ru_maxrss would include the memory of the process that started this one.
    with open("/proc/self/status") as status:
        max_kib = next(line.split()[1] for line in status if line.startswith("VmHWM"))
    with open(path, "w") as file:
        json.dump({"pid": os.getpid(), "max_bytes": int(max_kib) * 1024}, file)

atexit.register(tell)
main(sys.argv[2:])
"""
"""Runs the command, and notes how much memory it used."""


@pytest.mark.bubblewrap
def test_hostile_workers_are_left_out_and_the_honest_one_judges(
    tmp_path: Path, figures: Callable[[str], None], forked_command: ForkedCommand
) -> None:
    """Nothing that the workers send is executed or expanded; every case has its verdict."""
    with machine_in(tmp_path, forked_command) as machine:
        machine.scheduler()
        taken_over = {
            "DASK_DISTRIBUTED__WORKER__PRELOAD": hostile.__file__,
            hostile.MARK: str(tmp_path / "executed-"),
            # Starting is what takes most processor time: they are forked from a process that has
            # imported Dask.
            "DASK_DISTRIBUTED__WORKER__MULTIPROCESSING_METHOD": "forkserver",
        }
        machine.workers(1)
        machine.workers(len(hostile.WAYS), **taken_over)
        source = solutions(tmp_path, *["raise SystemExit(3)"] * 3 * len(hostile.WAYS))
        described = tmp_path / "cluster.yaml"
        described.write_text(
            f"address: {machine.address}\ncertificates: certificates\n"
            f"workers: {1 + len(hostile.WAYS)}\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", MEASURED, tmp_path / "client.json", "score", source, "--dataset",
             SAMPLE, "--out", tmp_path / "run", "--sandbox", "bubblewrap", "--cluster", described],
            capture_output=True, text=True, check=False, timeout=600, env=machine.environment(),
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    ways = list(tmp_path.glob("executed-way-*"))
    assert len(ways) == len(hostile.WAYS), done.stderr
    assert done.stderr.count("is no longer used") == len(hostile.WAYS), done.stderr
    with RunDirectory(tmp_path / "run") as store:
        verdicts = Counter(each["verdict"] for each in case_records(store).values())
    assert verdicts == {"AC": 3, "RE": 9 * len(hostile.WAYS)}
    client = json.loads((tmp_path / "client.json").read_text())
    figures(f"hostile workers: the client took {client['max_bytes'] // MIB} MiB")
    assert client["max_bytes"] < 1200 * MIB
    # Workers themselves, and their scheduler, may unpickle what they like: they say who they are.
    assert not list(tmp_path.glob(f"executed-*-{client['pid']}"))


def test_what_it_sends_is_executed_where_nothing_refuses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from judge.grading.cluster.connection import (  # noqa: PLC0415  it imports distributed
        RefusedPickleError,
        refusing_pickles,
    )

    monkeypatch.setenv(hostile.MARK, str(tmp_path / "executed-"))
    sent = pickle.dumps(hostile.Evil("result"))
    with refusing_pickles(), pytest.raises(RefusedPickleError):
        pickle.loads(sent)
    assert not list(tmp_path.iterdir())
    pickle.loads(sent)
    assert [each.name for each in tmp_path.iterdir()] == [f"executed-result-{os.getpid()}"]


def test_the_guard_lets_plain_data_pass_and_ends_with_the_connection() -> None:
    from judge.grading.cluster.connection import (  # noqa: PLC0415  it imports distributed
        RefusedPickleError,
        refusing_pickles,
    )

    named, plain = pickle.dumps(Path("/")), pickle.dumps({"seconds": 1.0, "bytes": b"x"})
    with refusing_pickles():
        assert pickle.loads(plain) == {"seconds": 1.0, "bytes": b"x"}
        with pytest.raises(RefusedPickleError):
            pickle.loads(named)
        with pytest.raises(RefusedPickleError):
            pickle._loads(named)  # type: ignore[attr-defined]  # the one written in Python
    assert pickle.loads(named) == Path("/")
