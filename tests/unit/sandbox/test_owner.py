"""Which judge owns what is left on a machine, and whether that judge has ended."""

from __future__ import annotations

import subprocess
import sys

from judge.sandbox.owner import _start_of

NAMELESS = r"""
open("/proc/self/comm", "wb").write(b"\xff) \xfe")
print(flush=True)
input()
"""


def test_a_process_is_recognised_whatever_its_name() -> None:
    command = [sys.executable, "-S", "-c", NAMELESS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert int(_start_of(child.pid)) > 0
        child.communicate(b"\n")
    assert not _start_of(child.pid)
