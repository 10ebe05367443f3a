from __future__ import annotations

import errno
import os
import socketserver
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from judge.errors import SandboxError
from judge.sandbox.backends import daemon
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


@pytest.mark.parametrize(
    ("host", "helps"),
    [(None, "restart the daemon"), ("unix:///x.sock", "restart"), ("tcp://far:2375", "host is up")],
)
def test_a_daemon_that_is_silent(host: str | None, helps: str) -> None:
    message, hint = explain_unreachable(TimeoutError("timed out"), host=host, installed=True)
    assert "does not answer within" in message
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


class Hanging(socketserver.ThreadingUnixStreamServer):
    """A daemon that says its version and nothing else; it hangs once ``hangs`` is set."""

    daemon_threads = True

    def __init__(self, path: Path) -> None:
        self.hangs, self.ended, self.paths = threading.Event(), threading.Event(), list[str]()
        super().__init__(str(path), HangingRequest)


class HangingRequest(BaseHTTPRequestHandler):
    server: Hanging

    def do_GET(self) -> None:
        self.server.paths.append(self.path)
        if self.server.hangs.is_set() or not self.path.endswith(("/version", "/_ping")):
            self.server.ended.wait()
            return
        body = b'{"ApiVersion": "1.44"}' if self.path.endswith("/version") else b"OK"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self) -> str:
        return "unix"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class's name
        del format, args


@pytest.fixture
def hanging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hanging]:
    with Hanging(tmp_path / "d.sock") as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path / 'd.sock'}")
        yield server
        server.ended.set()
        server.shutdown()


def test_a_daemon_that_hangs_is_noticed_by_each_connection(
    hanging: Hanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by those of further threads, which know the version and do not ask for it."""
    opened = Daemon()
    monkeypatch.setattr(daemon, "_GREETING_TIMEOUT_S", 0.2)
    hanging.hangs.set()
    with pytest.raises(SandboxError, match=r"\(DOCKER_HOST\) does not answer within") as first:
        Daemon()
    assert "restart the daemon" in (first.value.hint or "")
    caught: list[SandboxError] = []

    def ask() -> None:
        try:
            opened.image_id("judge/base:1")
        except SandboxError as error:
            caught.append(error)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join()
    assert [error.message for error in caught] == [first.value.message]
    assert [path for path in hanging.paths if "images" in path] == []
