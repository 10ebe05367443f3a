"""Whatever ends or is killed: a desktop leaves no process, group, container or file."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from judge.errors import SandboxError
from tests.conformance import ways
from tests.conformance.conftest import open_or_skip
from tests.conformance.desktop_place import Place, opened_place
from tests.conformance.leftovers import (
    Process,
    alive,
    containers_of,
    descendants,
    desktops_of,
    groups_of,
    settled_descendants,
    started_containers_of,
    wait_until,
)

JUDGE = """
import sys
from tests.conformance.conftest import BACKENDS
from tests.conformance.desktop_place import Place

place = Place(BACKENDS[sys.argv[1]]())
place.ask("start")
print("ready", flush=True)
sys.stdin.read()
"""
TIMES = 30
BOOK = b"""<?xml version="1.0" encoding="UTF-8"?>
<office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
 xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" office:version="1.3"
 office:mimetype="application/vnd.oasis.opendocument.spreadsheet"><office:body>
<office:spreadsheet><table:table table:name="Sheet1"/></office:spreadsheet></office:body>
</office:document>
"""
WAYS = [pytest.param(way, marks=ways.marks(way)) for way in ways.USUAL]
KILLING = """
import os, signal
killed = 0
for process in filter(str.isdigit, os.listdir("/proc")):
    name = open(f"/proc/{process}/comm").read().strip()
    if name == "NAME":
        os.kill(int(process), signal.SIGKILL)
        killed += 1
print("killed", killed)
"""


LEAVING = """
import os, time
open("/tmp/left", "w").write("x")
heard, said = os.pipe()
if os.fork() == 0:
    os.setsid()
    os.write(said, b".")
    time.sleep(1000)
os.read(heard, 1)  # in a session of its own it is not ended with this program
"""


@pytest.mark.parametrize("way", WAYS)
def test_thirty_desktops_in_a_row_leave_nothing(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with contextlib.closing(open_or_skip(way)) as sandbox, opened_place(sandbox):
        before = settled_descendants(os.getpid())
        groups = set(groups_of(os.getpid()))
        for _ in range(TIMES):
            with contextlib.closing(Place(sandbox)) as place:
                place.run(LEAVING)
                assert place.ask("look") == {"pid": 1, "others": 1}
        assert wait_until(lambda: not alive(descendants(os.getpid()) - before))
        assert wait_until(lambda: set(groups_of(os.getpid())) == groups)
        assert list(tmp_path.iterdir()) == []
        if way == "docker":
            assert wait_until(lambda: len(desktops_of(os.getpid())) == 1)  # the one that is open


@pytest.mark.parametrize("way", WAYS)
def test_a_killed_part_breaks_only_its_own_desktop_and_the_next_is_clean(way: str) -> None:
    with contextlib.closing(open_or_skip(way)) as sandbox:
        with opened_place(sandbox) as place:
            place.place("/home/user/a.fods", BOOK)
            assert place.ask("start", open="/home/user/a.fods", title="a.fods")["open"]
            for name in ("soffice.bin", "dbus-daemon", "Xvfb"):
                assert "killed 0" not in place.run(KILLING.replace("NAME", name)).said
            assert place.ask("look")["pid"] == 1
        with opened_place(sandbox) as place:
            assert place.ask("look") == {"pid": 1, "others": 0}
            seen = place.run("import os\nfor f in ('/tmp', '/run'): print(os.listdir(f))\n"
                             "print(os.listdir('/home'), os.listdir('/home/user'))")  # fmt: skip
            assert seen.said.splitlines() == ["[]", "[]", "['user'] ['data']"]
            assert place.ask("start")["open"]


def test_a_killed_driver_is_our_failure_and_ends_its_desktop() -> None:
    with contextlib.closing(open_or_skip("bubblewrap")) as sandbox:
        before = settled_descendants(os.getpid())
        with opened_place(sandbox) as place:
            place.ask("start")
            below = descendants(os.getpid()) - before
            inside = [process.pid for process in below if _is_first(process.pid)]
            assert len(inside) == 1, below
            os.kill(inside[0], signal.SIGKILL)
            with pytest.raises(SandboxError):
                place.ask("look")
            assert wait_until(lambda: not alive(below - {Process(inside[0], "")})), alive(below)


def _is_first(pid: int) -> bool:
    """Whether a process is process 1 of a namespace below this one."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines():
            if line.startswith("NSpid:"):
                return line.split()[-1] == "1" and len(line.split()) > 2
    return False


@pytest.mark.parametrize("way", WAYS)
def test_a_killed_judge_leaves_no_desktop(way: str) -> None:
    with contextlib.closing(open_or_skip(way)) as sandbox:
        if not sandbox.has_root("desktop"):
            pytest.skip("no desktop root: judge sandbox build --desktop")
    judge = subprocess.Popen(
        [sys.executable, "-c", JUDGE, way],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path])},
        start_new_session=True,
    )
    assert judge.stdout is not None
    assert judge.stdin is not None
    assert judge.stdout.readline() == b"ready\n"
    below = descendants(judge.pid)
    judge.kill()
    judge.wait(60)
    judge.stdin.close()
    judge.stdout.close()
    if way == "docker":
        assert wait_until(lambda: not started_containers_of(judge.pid))
    else:
        assert len(below) > 4  # bubblewrap, process 1, and what it started
    assert wait_until(lambda: not alive(below)), alive(below)
    open_or_skip(way).close()  # the next start reaps what a killed judge could not take along
    assert wait_until(lambda: not groups_of(judge.pid)), groups_of(judge.pid)
    assert way != "docker" or wait_until(lambda: not containers_of(judge.pid))
