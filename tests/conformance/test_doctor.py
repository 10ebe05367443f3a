"""``judge doctor --attack`` on this machine: every available backend withstands the attacks."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from judge.sandbox.selftest import COUNT
from tests.conformance.conftest import open_or_skip


@pytest.mark.docker
@pytest.mark.bubblewrap
def test_this_machine_withstands_every_attack() -> None:
    for kind in ("docker", "bubblewrap"):
        open_or_skip(kind).close()
    program = "from judge.cli.main import main; main(['doctor', '--attack', '--json'])"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    document = json.loads(done.stdout)
    failed = [
        (each["backend"], outcome["name"], outcome["detail"])
        for each in document["attacked"]
        for outcome in each["attacks"]
        if not outcome["held"]
    ]
    assert failed == []
    assert [each["backend"] for each in document["attacked"]] == ["docker", "bubblewrap"]
    assert all(len(each["attacks"]) == COUNT for each in document["attacked"])
    assert done.returncode == 0
