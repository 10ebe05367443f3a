from __future__ import annotations

import errno
import os

import pytest

from judge.errors import SandboxError
from judge.sandbox.backends.daemon import Daemon, explain_unreachable
from judge.sandbox.select import probe_sandboxes


def failure(number: int) -> Exception:
    """A client's error with the kernel's error as its cause, as libraries raise them."""
    error = ConnectionError("Connection aborted")
    error.__context__ = OSError(number, os.strerror(number))
    outer = RuntimeError("Error while fetching server API version")
    outer.__cause__ = error
    return outer


@pytest.mark.parametrize(
    ("number", "host", "installed", "said", "helps"),
    [
        (errno.EACCES, None, True, "answers: Permission denied", "usermod -aG docker"),
        (errno.EACCES, "unix:///x.sock", True, "x.sock (DOCKER_HOST): Permission", "usermod"),
        (errno.ENOENT, None, True, "answers: No such file", "systemctl start docker"),
        (errno.ENOENT, None, False, "answers: No such file", "apt-get install docker.io"),
        (errno.ENOENT, "unix:///x.sock", False, "/x.sock (DOCKER_HOST): No such", "unset it"),
        (errno.ECONNREFUSED, "tcp://far:2375", False, "far:2375 (DOCKER_HOST)", "host is up"),
    ],
)
def test_reaching_the_daemon(
    number: int, host: str | None, installed: bool, said: str, helps: str
) -> None:
    message, hint = explain_unreachable(failure(number), host=host, installed=installed)
    assert said in message
    assert helps in hint
    assert hint.endswith("or use --sandbox bubblewrap")


def test_an_invalid_address() -> None:
    error = ValueError("Port out of range 0-65535")
    message, hint = explain_unreachable(error, host="tcp://a:99999", installed=True)
    assert message == (
        "DOCKER_HOST is 'tcp://a:99999', which cannot be used: Port out of range 0-65535"
    )
    assert "unix:///var/run/docker.sock" in hint


def test_an_error_without_a_reason() -> None:
    message, hint = explain_unreachable(RuntimeError(), host=None, installed=True)
    assert message == "no Docker daemon answers: RuntimeError"
    assert hint.startswith("start the daemon")


@pytest.mark.parametrize(
    "host", ["foo", "tcp://127.0.0.1:99999", "http://[::1", "fd://", "unix:///not/here.sock"]
)
def test_any_value_of_docker_host(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    monkeypatch.setenv("DOCKER_HOST", host)
    with pytest.raises(SandboxError) as caught:
        Daemon()
    assert host in caught.value.message
    assert "DOCKER_HOST" in caught.value.message
    finding = probe_sandboxes()[0]
    assert (finding.ok, finding.detail) == (False, caught.value.message)
    assert "apt-get install" not in finding.fix
