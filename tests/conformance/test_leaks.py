"""After any end of the judge nothing of it stays: no container, no process, no control group."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from judge.errors import SandboxError
from judge.sandbox.cgroups import find_groups
from judge.sandbox.daemon import Daemon
from judge.sandbox.owner import Owner
from tests.conformance.conftest import open_or_skip

JUDGE = """
import sys, threading, time
from judge.sandbox.contract import RunRequest
from tests.conformance.conftest import BACKENDS

sandbox = BACKENDS[sys.argv[1]]()
channel = sandbox.service("import sys; sys.stdin.read()")

def run():
    with sandbox.session() as session:
        try:
            session.run(RunRequest("import time; time.sleep(1000)", {{}}, None))
        except Exception:
            pass

for _ in range(2):
    threading.Thread(target=run, daemon=True).start()
time.sleep(2.5)
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


def descendants(root: int) -> set[int]:
    """All processes below one."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(folder.name)] = int(fields[1])
    found = {root}
    while True:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        if not more:
            return found - {root}
        found |= more


def containers_of(pid: int) -> list[str]:
    """Containers whose label names that judge."""
    try:
        labelled = Daemon().labelled()
    except SandboxError:
        return []
    owners = {identity: Owner.from_label(label) for identity, label in labelled.items()}
    return [name for name, owner in owners.items() if owner is not None and owner.pid == pid]


def alive(pids: set[int]) -> set[int]:
    """Those of the processes that are more than zombies."""
    found = set()
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state not in "ZX":
            found.add(pid)
    return found


def groups_of(pid: int) -> list[Path]:
    """Control groups that that judge made."""
    tree = find_groups()
    homes = set(tree.homes.values()) if tree is not None else set()
    return [folder for home in homes for folder in home.glob(f"judge-{pid}-*")]


def wait_until(condition: Callable[[], bool], seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return condition()


@pytest.mark.parametrize("ending", list(ENDINGS))
@pytest.mark.parametrize(
    "backend",
    [
        pytest.param("docker", marks=pytest.mark.docker),
        pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
        pytest.param("bubblewrap-sampled", marks=pytest.mark.bubblewrap),
    ],
)
def test_nothing_stays(backend: str, ending: str) -> None:
    open_or_skip(backend).close()
    program = JUDGE.format(ending=ENDINGS[ending])
    judge = subprocess.Popen(
        [sys.executable, "-c", program, backend],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path])},
        start_new_session=True,
    )
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
    judge.wait(30)
    judge.stdout.close()
    assert wait_until(lambda: not containers_of(judge.pid)), containers_of(judge.pid)
    assert wait_until(lambda: not alive(below)), alive(below)
    open_or_skip(backend).close()  # the next start reaps what a killed judge could not take along
    assert wait_until(lambda: not groups_of(judge.pid)), groups_of(judge.pid)
