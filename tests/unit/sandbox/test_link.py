"""The judge's side of the protocol, with a stream that plays a warden."""

from __future__ import annotations

import struct

import pytest

from judge.core.limits import MIB, Limits
from judge.errors import SandboxError
from judge.sandbox import layout
from judge.sandbox.contract import OutputStatus, RunRequest, RunStatus
from judge.sandbox.link import (
    FrameChannel,
    SandboxGoneError,
    StreamEndedError,
    WardenLink,
    start_service,
)
from judge.sandbox.warden import frames

HELLO = frames.pack({"hello": {"python": "3.11.2", "pid": 1}})
FACTS = {"exit_code": 0, "cpu_s": 0.5, "wall_s": 0.7, "peak_memory_bytes": 7, "survivors": 1}
REPLY = {
    "facts": FACTS,
    "stdout_bytes": 3,
    "stderr_bytes": 0,
    "output": {"status": "collected", "size": 4},
}
REQUEST = RunRequest("pass", {"/mnt/in": b"input"}, "/mnt/out", Limits(memory_bytes=MIB))


class ScriptedStream:
    def __init__(self, incoming: bytes, stderr: str = "") -> None:
        self.incoming = incoming
        self.sent = b""
        self.said = stderr
        self.end: Exception = StreamEndedError("end of script")

    def send(self, data: bytes, deadline: float) -> None:
        self.sent += data

    def receive(self, size: int, deadline: float) -> bytes:
        if len(self.incoming) < size:
            raise self.end
        part, self.incoming = self.incoming[:size], self.incoming[size:]
        return part

    def stderr_tail(self) -> str:
        return self.said


def link(incoming: bytes, stderr: str = "") -> tuple[WardenLink, ScriptedStream]:
    stream = ScriptedStream(incoming, stderr)
    return WardenLink(stream, {"warm": []}), stream


def test_boot_and_hello() -> None:
    opened, stream = link(HELLO)
    opened.boot()
    opened.await_greeting()
    assert opened.python == "3.11.2"
    assert struct.unpack(">I", stream.sent[:4])[0] == len(stream.sent) - 4


def test_a_run() -> None:
    opened, stream = link(frames.pack(REPLY, [b"out", b"", b"file"]))
    result = opened.run(REQUEST, ("/mnt",))
    assert (result.status, result.output_status) == (RunStatus.OK, OutputStatus.COLLECTED)
    assert (result.output, result.output_bytes, result.stdout) == (b"file", 4, b"out")
    assert (result.cpu_s, result.wall_s, result.survivors) == (0.5, 0.7, 1)
    assert stream.sent[:1] == b"R"
    header, blobs = frames.unpack(stream.sent[5:])
    assert blobs == [b"pass", b"input"]
    assert header["files"] == ["/mnt/in"]
    assert header["limits"]["memory_bytes"] == MIB


def test_heavy_modules_are_imported_once_and_before_the_run() -> None:
    reply = frames.pack(REPLY, [b"", b"", b""])
    opened, stream = link(reply + reply)
    request = RunRequest("import pandas", {}, None)
    opened.run(request, ())
    assert stream.sent[:1] == b"W"
    assert frames.unpack(stream.sent[5 : 5 + struct.unpack(">I", stream.sent[1:5])[0]])[0] == {
        "modules": layout.modules_to_warm(request.program)
    }
    stream.sent = b""
    opened.run(request, ())
    assert stream.sent[:1] == b"R"


def test_an_output_that_was_not_collected_is_missing() -> None:
    reply = {**REPLY, "output": {"status": "too_large", "size": 10**10}}
    opened, _ = link(frames.pack(reply, [b"", b"", b""]))
    result = opened.run(REQUEST, ())
    assert (result.output, result.output_bytes) == (None, 10**10)


@pytest.mark.parametrize(
    "incoming",
    [
        frames.pack({"failed": "no space for the input"}),
        frames.pack({"facts": {}}),
        frames.pack({**REPLY, "output": {"status": "odd", "size": 1}}, [b"", b"", b""]),
        frames.pack(REPLY, [b""]),
        frames.pack({**REPLY, "facts": 5}, [b"", b"", b""]),
        b"\0\0\0\x02{}",
        b"\xff\xff\xff\xff",
    ],
)
def test_any_other_message_of_the_warden_is_our_failure(incoming: bytes) -> None:
    opened, _ = link(incoming)
    with pytest.raises(SandboxError):
        opened.run(REQUEST, ())


def test_an_end_of_stream_shows_the_end_of_stderr() -> None:
    opened, _ = link(b"\0\0", "Traceback: broken")
    with pytest.raises(SandboxGoneError, match="broken"):
        opened.run(REQUEST, ())


def test_silence_is_our_failure() -> None:
    opened, stream = link(b"")
    stream.end = TimeoutError()
    with pytest.raises(SandboxError, match="does not answer"):
        opened.run(REQUEST, ())


def test_a_service() -> None:
    stream = ScriptedStream(struct.pack(">I", 2) + b"ok")
    ended = []
    channel = FrameChannel(stream, lambda: ended.append(True))
    assert channel.call(b"ask", 1) == b"ok"
    assert stream.sent == struct.pack(">I", 3) + b"ask"
    with pytest.raises(SandboxError):
        channel.call(b"ask", 1)
    assert ended == [True]
    with pytest.raises(SandboxError, match="has ended"):
        channel.call(b"ask", 1)


def test_a_service_that_is_late_is_ended() -> None:
    stream = ScriptedStream(b"")
    stream.end = TimeoutError()
    ended = []
    channel = FrameChannel(stream, lambda: ended.append(True))
    with pytest.raises(TimeoutError):
        channel.call(b"ask", 0.1)
    assert ended == [True]


def test_a_service_that_does_not_start() -> None:
    class Broken(ScriptedStream):
        def send(self, data: bytes, deadline: float) -> None:
            raise StreamEndedError("gone")

    with pytest.raises(SandboxError, match="no interpreter"):
        start_service(Broken(b"", "no interpreter"), {})
