"""Workers that a command starts for itself, by a process of their own."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from distributed.security import Security

from judge.cluster.engine.connection import Connection, connected
from judge.cluster.engine.host import ROLES
from judge.cluster.engine.security import security_of, settle
from judge.cluster.place import Place
from judge.errors import ClusterError

_END_S = 2.0
_RELEASE_S = 30.0


@contextlib.contextmanager
def reached(place: Place) -> Iterator[Connection]:
    """A connection to the cluster of a place, which is started first if need be.

    Raises:
        ClusterError: it cannot be started or reached.
    """
    settle()
    if place.kind == "address":
        with connected(place.address, security_of(place.certificates)) as connection:
            yield connection
        return
    with _host(place) as answer:
        security = None
        if answer["tls"] is not None:
            fields = {f"tls_{name}": answer["tls"][name] for name in ROLES}
            security = Security(require_encryption=True, **fields)
        with connected(answer["address"], security) as connection:
            yield connection


@contextlib.contextmanager
def _host(place: Place) -> Iterator[dict[str, Any]]:
    """The process that starts the workers, and what it says of them."""
    certificates = place.certificates
    plan = {
        "kind": place.kind,
        "workers": place.workers,
        "options": dict(place.options),
        "certificates": None
        if certificates is None
        else {
            "ca": str(certificates.ca),
            "certificate": str(certificates.certificate),
            "key": str(certificates.key),
        },
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "judge.cluster.engine.host"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # It ends at once; what semaphores its own processes shared is nothing to tell a user.
        env={**os.environ, "PYTHONWARNINGS": "ignore:resource_tracker"},
        start_new_session=True,  # an interrupt at the terminal is the client's business
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(plan) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            raise ClusterError(
                f"{place.name}: the workers could not be started",
                hint="What the program that starts them said is above.",
            )
        yield json.loads(line)
    finally:
        process.stdin.close()
        wait_s = _END_S if place.kind == "local" else _RELEASE_S
        try:
            process.wait(wait_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
