"""Services in a sealed container, run here as if this machine were one."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from judge.api.options import JudgingOptions
from judge.api.resources import JudgingResources
from judge.errors import SandboxError
from judge.sandbox import open_sandbox
from judge.sandbox.backends import sealed_container
from judge.sandbox.backends.sealed_container import Enclosure, SealedContainerSandbox
from judge.sandbox.contract import ServiceChannel
from judge.sandbox.warden import meters

SERVICE = """
import os, socket, time

def read(size):
    data = b""
    while len(data) < size:
        chunk = os.read(0, size - len(data))
        if not chunk:
            os._exit(0)
        data += chunk
    return data

def daemon():
    back, to = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(to, str(os.getpid()).encode())
            time.sleep(600)
        os._exit(0)
    return os.read(back, 20)

def network():
    try:
        socket.socket(socket.AF_INET)
    except PermissionError:
        return b"refused"
    return b"open"

while True:
    asked = read(int.from_bytes(read(4), "big"))
    if asked == b"daemon":
        answer = daemon()
    elif asked == b"memory":
        kept = bytearray(os.urandom(1)) * (400 << 20)
        time.sleep(600)
    elif asked == b"many":
        for _ in range(8):
            if os.fork() == 0:
                kept = bytearray(os.urandom(1)) * (60 << 20)
                time.sleep(600)
        time.sleep(600)
    elif asked == b"network":
        answer = network()
    else:
        lines = open("/proc/self/status").read().splitlines()
        wanted = ("CapEff", "NoNewPrivs", "Seccomp:")
        answer = " ".join(line for line in lines if line.startswith(wanted)).encode()
    os.write(1, len(answer).to_bytes(4, "big") + answer)
"""


@pytest.fixture
def sandbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[SealedContainerSandbox]:
    place = Enclosure((), ("made up for a test",))
    monkeypatch.setattr(sealed_container, "find_enclosure", lambda: place)
    monkeypatch.setattr(sealed_container, "_engines", lambda: Path("/usr"))
    with contextlib.closing(SealedContainerSandbox()) as opened:
        yield opened


def started(sandbox: SealedContainerSandbox, memory_bytes: int = 1 << 30) -> ServiceChannel:
    return sandbox.service(SERVICE, memory_bytes=memory_bytes)


def is_gone(pid: int) -> bool:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if not meters.is_alive(pid):
            return True
        time.sleep(0.01)
    return False


def test_a_service_has_no_privileges_and_its_children_end_with_it(
    sandbox: SealedContainerSandbox,
) -> None:
    service = started(sandbox)
    found = service.call(b"who", 60).decode().split()
    assert found == ["CapEff:", "0" * 16, "NoNewPrivs:", "1", "Seccomp:", "2"]
    assert service.call(b"network", 60) == b"refused"
    daemon = int(service.call(b"daemon", 60))
    assert meters.is_alive(daemon)
    service.close()
    assert is_gone(daemon)
    assert sandbox.info.isolation["solutions"] == "refused"
    assert sandbox.info.isolation["system call filter"] == "yes"


@pytest.mark.parametrize("question", [b"memory", b"many"])
def test_memory_is_bounded_in_one_process_and_in_all_together(
    sandbox: SealedContainerSandbox, question: bytes
) -> None:
    with pytest.raises(SandboxError, match="the service ended"):
        started(sandbox, memory_bytes=200 << 20).call(question, 120)


def test_what_was_started_ends_with_the_sandbox(sandbox: SealedContainerSandbox) -> None:
    daemons = [int(started(sandbox).call(b"daemon", 60)) for _ in range(2)]
    sandbox.close()
    assert all(is_gone(pid) for pid in daemons)


def test_what_was_started_ends_with_a_judge_that_is_killed(
    sandbox: SealedContainerSandbox,
) -> None:
    back, to = os.pipe()
    judge = os.fork()
    if judge == 0:
        try:
            os.write(to, started(sandbox).call(b"daemon", 60))
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    os.close(to)
    os.waitpid(judge, 0)
    assert is_gone(int(os.read(back, 20)))
    os.close(back)


def test_solutions_are_refused_before_anything_is_judged(
    sandbox: SealedContainerSandbox,
) -> None:
    with pytest.raises(SandboxError, match="solutions do not run in a container"):
        sandbox.session()
    with contextlib.ExitStack() as stack:
        resources = JudgingResources(JudgingOptions(jobs=1), stack, sandbox=sandbox)
        assert resources.settings(needs_sandbox=False).sandbox is sandbox
        with pytest.raises(SandboxError, match="solutions do not run in a container"):
            resources.settings(needs_sandbox=True)


def test_a_machine_with_a_network_does_not_count_as_sealed() -> None:
    with pytest.raises(SandboxError, match="this is not a sealed container"):
        open_sandbox("sealed-container")


def test_a_missing_root_is_reported_with_the_image(
    sandbox: SealedContainerSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealed_container, "_engines", lambda: None)
    assert not sandbox.has_root("python")
    assert sandbox.root_digest("python") is None
    with pytest.raises(SandboxError, match="no python root") as raised:
        started(sandbox)
    assert "--verifier" in (raised.value.hint or "")
