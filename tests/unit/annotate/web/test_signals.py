"""A signal ends the annotator's page while it works; drafts are kept, and nothing else remains."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from judge.local_page import TOKEN_HEADER
from tests.unit.annotate.conftest import suite

pytestmark = pytest.mark.slow

__all__ = ["suite"]

_BUSY = """
import sys, threading
import judge.annotate.web.server
from judge.annotate.web.session import AnnotationSession
from judge.cli.main import main

def window(self, *given):
    print("busy", flush=True)
    threading.Event().wait()

judge.annotate.web.server.check_grid = lambda: None
AnnotationSession.warm_up = lambda self: None
AnnotationSession.window = window
main(sys.argv[1:])
"""


def _request(
    address: str, token: str, method: str, path: str, body: object = None
) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection(address, timeout=120)
    data = None if body is None else json.dumps(body).encode()
    connection.request(method, path, data, {TOKEN_HEADER: token})
    return connection


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 0)]
)
@pytest.mark.parametrize("is_changed", [False, True])
def test_a_signal_during_work(
    suite: Path, number: signal.Signals, code: int, is_changed: bool
) -> None:
    """Ctrl-C is the usual way to end a page and not a failure; other signals end the process."""
    before = {path: path.read_bytes() for path in suite.rglob("*") if path.is_file()}
    command = ["annotate", "page", str(suite), "7", "--author", "Ann", "--no-browser"]
    with subprocess.Popen(
        [sys.executable, "-u", "-c", _BUSY, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        found = re.search(r"http://(127\.0\.0\.1:\d+)/\?token=(\S+)", child.stdout.readline())
        assert found is not None
        if is_changed:
            asked = _request(found[1], found[2], "GET", "/api/state")
            revision = json.load(asked.getresponse())["revision"]
            change = {"book": "input", "sheet": "Sheet", "cells": [{"cell": "A3", "text": "50"}]}
            body = {**change, "revision": revision}
            assert _request(found[1], found[2], "POST", "/api/change", body).getresponse().status
        waiting = _request(
            found[1], found[2], "GET", "/api/window?book=input&sheet=Sheet&row=1&column=1"
        )
        while child.stdout.readline() != "busy\n":
            pass
        child.send_signal(number)
        _, said = child.communicate(timeout=240)
        waiting.close()
    assert child.returncode == code, said
    assert "Traceback" not in said
    assert {path: path.read_bytes() for path in before} == before
    drafts = [path for path in suite.rglob("*.jsonl") if "draft" in str(path)]
    assert len(drafts) == is_changed
