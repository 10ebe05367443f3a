from __future__ import annotations

import pytest

from judge.errors import SandboxError
from judge.sandbox.contract import OutputStatus, RunRequest, RunResult, RunStatus, Sandbox
from judge.sandbox.scripted import ScriptedSandbox

RESULT = RunResult(RunStatus.OK, OutputStatus.MISSING)
REQUEST = RunRequest("pass", {}, None)


def test_steps_come_in_order_and_running_past_the_end_raises() -> None:
    sandbox = ScriptedSandbox([RESULT, SandboxError("gone"), lambda request: RESULT])
    checked: Sandbox = sandbox
    with checked.session() as session:
        assert session.run(REQUEST) is RESULT
        with pytest.raises(SandboxError, match="gone"):
            session.run(REQUEST)
        assert session.run(REQUEST) is RESULT
        with pytest.raises(AssertionError, match="run 4 is past the end"):
            session.run(REQUEST)
    assert sandbox.requests == [REQUEST] * 4
    with pytest.raises(AssertionError, match="closed"):
        session.run(REQUEST)


def test_services_play_answers() -> None:
    sandbox = ScriptedSandbox(answers=[b"one", TimeoutError(), bytes.upper], roots=["python"])
    assert sandbox.has_root("python")
    assert not sandbox.has_root("office")
    channel = sandbox.service("program")
    assert channel.call(b"a", 1) == b"one"
    with pytest.raises(TimeoutError):
        channel.call(b"b", 1)
    assert channel.call(b"c", 1) == b"C"
    with pytest.raises(AssertionError, match="past the end"):
        channel.call(b"d", 1)
    assert sandbox.calls == [b"a", b"b", b"c", b"d"]
    channel.close()
    sandbox.close()
    assert sandbox.closed
