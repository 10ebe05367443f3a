"""However the judge ends, it leaves no container, no process and no control group."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.conftest import open_or_skip
from tests.conformance.leftovers import (
    alive,
    containers_of,
    descendants,
    groups_of,
    started_containers_of,
    wait_until,
)
from tests.conformance.ways import SAMPLED, marks

JUDGE = """
import sys, threading, time
from judge.sandbox.contract import RunRequest
from tests.conformance.conftest import BACKENDS

sandbox = BACKENDS[sys.argv[1]]()
channel = sandbox.service("import sys; sys.stdin.read()")

opened = threading.Barrier(3)

def run():
    with sandbox.session() as session:
        opened.wait(300)
        try:
            session.run(RunRequest("import time; time.sleep(1000)", {{}}, None))
        except Exception:
            pass

for _ in range(2):
    threading.Thread(target=run, daemon=True).start()
opened.wait(300)
time.sleep(1)
print("ready", flush=True)
sys.stdin.readline()  # it ends when it was looked at, and not before
{ending}
"""
ENDINGS = {
    "killed": "time.sleep(1000)",
    "interrupted": "time.sleep(1000)",
    "left open": "sys.exit(0)",
    "an exception": "raise ValueError('in the middle')",
    "closed": "sandbox.close()",
}


_ENDS_ALL_ALIKE = ("killed", "interrupted", "closed")
RUNS = {
    "docker": (*_ENDS_ALL_ALIKE, "an exception"),
    "bubblewrap": (*_ENDS_ALL_ALIKE, "left open"),
    SAMPLED: ("killed", "closed"),
}
"""Which ending is tried in which way. An interpreter that ends by itself closes what is open in the
same manner whether an exception ends it or nothing does: each backend has one of the two. Without
control groups either the kernel ends what is left or the judge does as it closes; what brings it to
close makes no difference there."""


def started(backend: str, ending: str) -> subprocess.Popen[bytes]:
    """A judge that has programs running, and reports when."""
    return subprocess.Popen(
        [sys.executable, "-c", JUDGE.format(ending=ENDINGS[ending]), backend],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path])},
        start_new_session=True,
    )


@pytest.mark.parametrize(
    ("backend", "ending"),
    [
        pytest.param(backend, ending, marks=marks(backend))
        for backend, endings in RUNS.items()
        for ending in endings
    ],
)
def test_nothing_is_left_behind(backend: str, ending: str) -> None:
    open_or_skip(backend).close()
    judge = started(backend, ending)
    assert judge.stdin is not None
    assert judge.stdout is not None
    assert judge.stdout.readline() == b"ready\n"
    below = descendants(judge.pid)
    if backend == "docker":
        assert len(containers_of(judge.pid)) >= 3
    else:
        assert len(below) >= 6
    judge.stdin.write(b"\n")
    judge.stdin.close()
    if ending == "killed":
        judge.kill()
    elif ending == "interrupted":
        os.killpg(judge.pid, signal.SIGINT)
    judge.wait(300)
    judge.stdout.close()
    if backend == "docker":
        assert wait_until(lambda: not started_containers_of(judge.pid))
    assert wait_until(lambda: not alive(below)), alive(below)
    open_or_skip(backend).close()  # the next start reaps what a killed judge could not take along
    if backend == "docker":
        assert wait_until(lambda: not containers_of(judge.pid)), containers_of(judge.pid)
    assert wait_until(lambda: not groups_of(judge.pid)), groups_of(judge.pid)


@pytest.mark.parametrize("backend", [pytest.param("docker", marks=marks("docker"))])
def test_a_killed_judge_does_not_affect_another(backend: str) -> None:
    """They share a daemon; a third judge removes only what belongs to the dead one."""
    open_or_skip(backend).close()
    dead, alive_still = judges = [started(backend, "killed"), started(backend, "closed")]
    for each in judges:
        assert each.stdout is not None
        assert each.stdout.readline() == b"ready\n"
    kept = started_containers_of(alive_still.pid)
    assert len(kept) >= 3
    dead.kill()
    dead.communicate()
    assert wait_until(lambda: not started_containers_of(dead.pid))
    open_or_skip(backend).close()
    assert wait_until(lambda: not containers_of(dead.pid)), containers_of(dead.pid)
    assert set(started_containers_of(alive_still.pid)) == set(kept)
    alive_still.communicate(b"\n", 300)
    assert alive_still.returncode == 0
    assert wait_until(lambda: not containers_of(alive_still.pid))
