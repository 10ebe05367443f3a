"""A Docker daemon for tests alone, which can be killed without harm to anyone else."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import docker
import pytest

from judge.sandbox.backends.docker import python_tag
from tests.conformance.leftovers import descendants, wait_until

_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
_START_S = 120.0


class PrivateDaemon:
    """A daemon with its own socket, process and folders.

    Args:
        folder: where its data and its socket are.
        options: more options for ``dockerd``.
    """

    def __init__(self, folder: Path, *options: str) -> None:
        self.address = f"unix://{folder}/docker.sock"
        self._folder = folder
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts the daemon, on the files that an earlier one left."""
        dockerd = shutil.which("dockerd", path=_PATH)
        if os.geteuid() != 0 or dockerd is None:
            pytest.skip("a Docker daemon can only be started by root, with dockerd installed")
        for left in ("pid", "exec/containerd/containerd.pid"):
            # names a process that may be a zombie still, which counts as running
            (self._folder / left).unlink(missing_ok=True)
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    dockerd, "--data-root", f"{self._folder}/data",
                    "--exec-root", f"{self._folder}/exec", "--pidfile", f"{self._folder}/pid",
                    "--host", self.address, "--bridge=none", "--iptables=false",
                    "--ip-forward=false", "--ip-masq=false", *self._options,
                ],
                stdout=log,
                stderr=log,
                env={**os.environ, "PATH": _PATH},
                start_new_session=True,
            )  # fmt: skip
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                with contextlib.closing(self.client()) as client:
                    client.ping()
            except docker.errors.DockerException:
                time.sleep(0.1)
            else:
                return
        pytest.fail(f"no daemon: {(self._folder / 'log').read_text()[-2000:]}")

    def client(self) -> docker.DockerClient:
        """Returns a client of the daemon."""
        return docker.DockerClient(self.address, timeout=60)

    def bring_image(self) -> None:
        """Copies the image for solutions from the daemon that has it."""
        there = docker.from_env(timeout=600)
        client = docker.DockerClient(self.address, timeout=600)
        with tempfile.TemporaryFile() as file:
            for chunk in there.images.get(python_tag()).save(named=True):
                file.write(chunk)
            file.seek(0)
            client.images.load(file)

    def kill(self) -> None:
        """Ends the daemon as a crash would."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Ends the daemon, everything that it runs, and what a killed daemon left."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(300)
        for pid in self.running():
            for each in (*(below.pid for below in descendants(pid)), pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
        assert wait_until(lambda: not self.running()), "keepers of its containers stay"
        assert wait_until(self._unmount), "its folder is in use"

    def _unmount(self) -> bool:
        """Unmounts its mounts; False if some remain, as killed processes may delay that."""
        mounts = [line.split(" ")[1] for line in Path("/proc/mounts").read_text().splitlines()]
        own = [mount for mount in mounts if mount.startswith(f"{self._folder}/")]
        for mount in reversed(own):
            subprocess.run(["umount", mount], check=False)
        return not own

    def running(self) -> set[int]:
        """Returns the supervising processes of its containers, whichever daemon started them."""
        found = set()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    command = (entry / "cmdline").read_bytes()
                except OSError:
                    continue
                if b"containerd-shim" in command and str(self._folder).encode() in command:
                    found.add(int(entry.name))
        return found
