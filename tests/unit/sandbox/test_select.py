from __future__ import annotations

from pathlib import Path

import pytest

from judge.errors import SandboxError, UsageError
from judge.sandbox import open_sandbox, probe_sandboxes
from judge.sandbox.backends import bubblewrap


@pytest.fixture
def no_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")


@pytest.fixture
def nothing_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JUDGE_CACHE", str(tmp_path))


def test_unknown_kind() -> None:
    with pytest.raises(UsageError, match="podman"):
        open_sandbox("podman")


@pytest.mark.usefixtures("no_daemon", "nothing_built")
def test_if_nothing_is_available_the_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("auto", "bubblewrap"):
        with pytest.raises(SandboxError) as caught:
            open_sandbox(kind)
        assert caught.value.hint
    monkeypatch.setattr(bubblewrap, "find_bwrap", lambda: None)
    with pytest.raises(SandboxError, match=r"Docker: .*bubblewrap: .*not installed"):
        open_sandbox("auto")


@pytest.mark.usefixtures("no_daemon", "nothing_built")
def test_findings_name_the_command_that_fixes_them() -> None:
    findings = {finding.name: finding for finding in probe_sandboxes()}
    assert not findings["Docker daemon"].ok
    assert findings["Docker daemon"].fix
    root = findings["Python root for bubblewrap"]
    assert (root.ok, root.fix) == (False, "judge sandbox build")
    assert not any(finding.ok and finding.backend for finding in findings.values())


@pytest.mark.usefixtures("no_daemon")
def test_a_kernel_that_refuses_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    refusing = tmp_path / "bwrap"
    refusing.write_text(
        "#!/bin/sh\necho 'bwrap: No permissions to create a namespace' >&2\nexit 1\n"
    )
    refusing.chmod(0o755)
    monkeypatch.setattr(bubblewrap, "find_bwrap", lambda: str(refusing))
    with pytest.raises(SandboxError, match="No permissions") as caught:
        open_sandbox("bubblewrap")
    assert caught.value.hint


@pytest.mark.usefixtures("no_daemon", "nothing_built")
def test_a_mount_that_is_taken_away_meanwhile_is_not_a_refusal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    once = tmp_path / "bwrap"
    once.write_text(
        "#!/bin/sh\n"
        f"test -e {tmp_path}/tried && exec echo 'bubblewrap 0'\n"
        f"touch {tmp_path}/tried\n"
        'echo "bwrap: Can\'t bind mount: Invalid argument" >&2\nexit 1\n'
    )
    once.chmod(0o755)
    monkeypatch.setattr(bubblewrap, "find_bwrap", lambda: str(once))
    findings = {finding.name: finding for finding in probe_sandboxes()}
    assert findings["bubblewrap"].ok
