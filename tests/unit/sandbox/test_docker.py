"""Those functions of the Docker backend that need no daemon."""

from __future__ import annotations

import socket
import struct
import time
from dataclasses import replace

import pytest

from judge.core.limits import GIB, Limits
from judge.errors import SandboxError
from judge.sandbox.backends.daemon import Daemon
from judge.sandbox.backends.docker import Shape
from judge.sandbox.link import ContainerStream, StreamEndedError
from judge.sandbox.owner import Owner


def chunk(kind: int, data: bytes) -> bytes:
    return bytes([kind, 0, 0, 0]) + struct.pack(">I", len(data)) + data


def soon() -> float:
    return time.monotonic() + 60


@pytest.mark.parametrize("step", [1, 3, 8, 1000])
def test_streams_are_separated_however_they_arrive(step: int) -> None:
    ours, theirs = socket.socketpair()
    stream = ContainerStream(ours)
    sent = chunk(1, b"ab") + chunk(2, b"warning") + chunk(1, b"") + chunk(1, b"cdef")
    for position in range(0, len(sent), step):
        theirs.sendall(sent[position : position + step])
    assert stream.receive(3, soon()) == b"abc"
    assert stream.receive(3, soon()) == b"def"
    assert stream.stderr_tail() == "warning"
    theirs.close()
    with pytest.raises(StreamEndedError):
        stream.receive(1, soon())
    stream.close()


def test_no_answer_in_time() -> None:
    ours, theirs = socket.socketpair()
    with pytest.raises(TimeoutError):
        ContainerStream(ours).receive(1, time.monotonic() + 0.05)
    with pytest.raises(TimeoutError):
        ContainerStream(ours).receive(1, time.monotonic() - 1)
    theirs.close()


def test_sending_to_a_closed_stream() -> None:
    ours, theirs = socket.socketpair()
    theirs.close()
    with pytest.raises(StreamEndedError):
        ContainerStream(ours).send(b"x" * 10_000_000, soon())


def test_only_the_end_of_stderr_is_kept() -> None:
    ours, theirs = socket.socketpair()
    stream = ContainerStream(ours)
    theirs.sendall(chunk(2, b"x" * 6000 + b"the end"))
    assert stream.stderr_tail().endswith("the end")
    assert len(stream.stderr_tail()) == 4096
    theirs.close()


def test_shapes() -> None:
    roots = frozenset({"/mnt", "/tmp"})
    made = Shape.of(Limits(), roots)
    for nested in (True, False):
        assert made.serves(made, nested=nested)
        assert not made.serves(Shape.of(Limits(memory_bytes=4 * GIB), roots), nested=nested)
        assert not made.serves(Shape.of(Limits(processes=5), roots), nested=nested)
        assert made.serves(Shape.of(Limits(cpu_s=1, wall_s=2), roots), nested=nested)


@pytest.mark.parametrize("nested", [True, False])
@pytest.mark.parametrize("roots", [{"/mnt"}, {"/mnt", "/tmp", "/workspace"}])
def test_a_container_with_other_folders_serves_where_each_case_has_its_own(
    roots: set[str], *, nested: bool
) -> None:
    """Else what a program can write to would depend on the submissions before."""
    made = Shape.of(Limits(), frozenset({"/mnt", "/tmp"}))
    assert made.serves(replace(made, roots=frozenset(roots)), nested=nested) is nested


def test_owner_round_trip() -> None:
    owner = Owner.this_process()
    assert Owner.from_label(owner.label()) == owner
    for text in ("", "a b c", "a b c d e", "a b c 5"):
        assert Owner.from_label(text) is None


def test_an_owner_counts_as_ended_only_if_that_is_certain() -> None:
    own = Owner.this_process()
    assert not own.knows_ended(own)
    assert own.knows_ended(replace(own, started="1"))  # the id was used again
    assert own.knows_ended(replace(own, pid=2**22 + 1))
    assert own.knows_ended(replace(own, boot="before"))
    assert not own.knows_ended(replace(own, host="another", boot="before"))
    assert not own.knows_ended(replace(own, pid=2**22 + 1, pid_namespace="pid:[1]"))


def test_no_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    with pytest.raises(SandboxError, match="no Docker daemon answers") as caught:
        Daemon()
    assert caught.value.hint
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    with pytest.raises(SandboxError):
        Daemon()
    monkeypatch.setenv("DOCKER_HOST", "nonsense://x")
    with pytest.raises(SandboxError):
        Daemon()
