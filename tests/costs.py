"""What tests cost in processor time: ``scripts/cost-of-tests`` loads this plugin.

Wall-clock time says little while several workers share the processors, or while a test waits. So
each worker enters a control group of its own, and the group's counter is read around each test and
each fixture: it includes all processes that they started, bubblewrap's among them. Containers are
in the groups of their Docker daemon; they are counted if ``JUDGE_TEST_COSTS_DOCKER`` names the
folder of a group that a daemon of our own and its containers are in, which only makes sense without
workers. Without control groups, the times of the process and of the children that it has waited for
are used.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

_FIRST = Path("/sys/fs/cgroup/cpuacct")
_DOCKER = "JUDGE_TEST_COSTS_DOCKER"
_VARIABLE = "JUDGE_TEST_COSTS"
"""Environment variable with the folder for the figures: one JSON Lines file per test process."""


def _clock() -> Callable[[], float]:
    """Processor seconds so far, of this process and of what it starts from now on."""
    group = _FIRST / f"tests-{os.getpid()}"
    with contextlib.suppress(OSError):
        group.mkdir()
        (group / "cgroup.procs").write_text(str(os.getpid()))
        groups = [group, *map(Path, filter(None, [os.environ.get(_DOCKER)]))]
        usages = [folder / "cpuacct.usage" for folder in groups]
        return lambda: sum(int(usage.read_text()) for usage in usages) / 1e9
    return lambda: sum(os.times()[:4])


class Costs:
    """Writes a line for each test, and one for each fixture that was set up."""

    def __init__(self, folder: Path) -> None:
        self._clock = _clock()
        self._start = self._clock()
        self._began = time.monotonic()
        self._file = (folder / f"{os.getpid()}.jsonl").open("w")
        self._processes = 0
        self._fixtures = 0.0
        sys.addaudithook(self._count)

    def _count(self, event: str, _arguments: tuple[object, ...]) -> None:
        if event in {"subprocess.Popen", "os.fork", "os.posix_spawn"}:
            self._processes += 1

    def _write(self, kind: str, name: str, seconds: float, processes: int, file: str = "") -> None:
        line = {
            "kind": kind,
            "name": name,
            "file": file,
            "seconds": seconds,
            "elapsed": time.monotonic() - self._began,
            "processes": processes,
        }
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        """Everything before the first test: modules and parameters."""
        try:
            return (yield)
        finally:
            self._write("collection", "", self._clock() - self._start, self._processes)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """A test, without shared fixtures that it was the first to need; these are listed apart."""
        start, processes, self._fixtures = self._clock(), self._processes, 0.0
        self._began = time.monotonic()
        try:
            return (yield)
        finally:
            seconds = self._clock() - start - self._fixtures
            self._write("test", item.nodeid, seconds, self._processes - processes, _file_of(item))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
    ) -> Generator[None, object, object]:
        """A fixture that several tests share; one that each test makes is part of the test."""
        start, processes, before = self._clock(), self._processes, self._fixtures
        try:
            return (yield)
        finally:
            if fixturedef.scope in {"module", "package", "session"}:
                inner = self._fixtures - before
                seconds = self._clock() - start - inner
                self._fixtures += seconds
                name = f"{request.node.nodeid or 'session'}::<{fixturedef.argname}>"
                file = _file_of(request._pyfuncitem)
                self._write("fixture", name, seconds, self._processes - processes, file)


def _file_of(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def pytest_configure(config: pytest.Config) -> None:
    """Measures where tests run: in the workers, or in this process if there are none."""
    runs_tests = hasattr(config, "workerinput") or not getattr(config.option, "numprocesses", None)
    if _VARIABLE in os.environ and runs_tests:
        config.pluginmanager.register(Costs(Path(os.environ[_VARIABLE])))
