"""Fixtures for all tests: the published suites, what the machine has, snapshots."""

from __future__ import annotations

import contextlib
import difflib
import gc
import importlib
import itertools
import os
import re
import signal
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from judge.collector import RARE_COLLECTIONS

if TYPE_CHECKING:
    from tests.forked_command import ForkedCommand

Figures = Callable[[str], None]
Snapshot = Callable[[str, str], None]

REPOSITORY = Path(__file__).resolve().parent.parent
SNAPSHOTS = REPOSITORY / "tests" / "snapshots"
MAX_DIFF_LINES = 40


def find_data() -> Path | None:
    """The published suites: the folder ``JUDGE_DATA``, or ``../shared/data`` next to the clone."""
    named = os.environ.get("JUDGE_DATA")
    candidate = Path(named) if named else REPOSITORY.parent / "shared" / "data"
    return candidate if candidate.is_dir() else None


@pytest.fixture(scope="session")
def judge_data() -> Path:
    """The folder with the published suites; skips the test if there is none."""
    found = find_data()
    if found is None:
        pytest.skip("no published suites here: set JUDGE_DATA to the folder that holds them")
    return found


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option that renews the snapshots."""
    parser.addoption(
        "--renew-snapshots",
        action="store_true",
        help="write the files in tests/snapshots instead of comparing with them",
    )


@pytest.fixture
def snapshot(pytestconfig: pytest.Config) -> Snapshot:
    """``snapshot(name, text)`` fails if the text differs from that file in tests/snapshots."""

    def compare(name: str, text: str) -> None:
        path = SNAPSHOTS / name
        if pytestconfig.getoption("--renew-snapshots"):
            path.write_text(text, encoding="utf-8")
            return
        recorded = path.read_text(encoding="utf-8")
        if text != recorded:
            lines = difflib.unified_diff(
                recorded.splitlines(), text.splitlines(), "recorded", "now", n=1, lineterm=""
            )
            diff = "\n".join(line[:400] for line in itertools.islice(lines, MAX_DIFF_LINES))
            pytest.fail(
                f"{path.relative_to(REPOSITORY)} differs; if that is intended, add"
                f" --renew-snapshots to this command and review the change\n{diff}",
                pytrace=False,
            )

    return compare


@pytest.hookimpl(trylast=True)  # what pytest-rerunfailures sets is there by then
def pytest_configure(config: pytest.Config) -> None:
    """Prepares signals, the usual number of jobs, and what a worker remembers about its tests."""
    _restore_signals()
    one_job_by_default()
    if hasattr(config, "workerinput"):
        from tests.distribution import send_what_is_shown  # noqa: PLC0415  only where pytest-xdist is

        send_what_is_shown(config)
        if getattr(config.option, "reruns", None):
            _remember_failures_here(config)


def _remember_failures_here(config: Any) -> None:
    """Lets each worker count the failures of its own tests.

    pytest-rerunfailures would ask the main process about each test, byte by byte, which costs more
    than a small test itself. The main process still counts the tests that are tried once more.
    """
    counts: dict[tuple[str, str], int] = {}
    config.failures_db._set = lambda test, kind, count: counts.update({(test, kind): count})
    config.failures_db._get = lambda test, kind: counts.get((test, kind), 0)


def one_job_by_default() -> None:
    """Lets commands and the library run one program at a time unless a test gives ``jobs``.

    The default is a job per core, each with a warm sandbox and engines of its own: a quarter of a
    second of processor time and more, for a test that runs a few programs while the other workers
    keep the cores busy.
    """
    os.cpu_count = lambda: 1


def _restore_signals() -> None:
    """Restores the usual handling of signals, which nohup and a shell's ``&`` change.

    What is ignored stays ignored in every program that a test starts, and a test that sends such a
    signal would wait for ever.
    """
    for number, usual in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGHUP, signal.SIG_DFL),
    ):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)


@pytest.fixture(scope="session")
def forked_command() -> Iterator[ForkedCommand]:
    """The ``judge`` command, in processes that do not have to import it again."""
    from tests.forked_command import ForkedCommand  # noqa: PLC0415  only where it is used

    with contextlib.closing(ForkedCommand()) as command:
        yield command


_folders = itertools.count()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new folder, as pytest's own fixture makes it, with a number that no other one has.

    pytest would look through the folders of all tests so far to find a number that is free for this
    name: half a millisecond after a thousand tests, and more after each further one.
    """
    name = re.sub(r"\W", "_", request.node.name)[:26]
    return tmp_path_factory.mktemp(f"{name}-{next(_folders)}", numbered=False)


@pytest.fixture
def figures(record_property: Callable[[str, object], None]) -> Figures:
    """Receives a line of figures, which is shown at the end whichever worker measured them."""
    return lambda line: record_property("figures", line)


def _let_examples_take_their_time() -> None:
    """Switches off what makes Hypothesis fail a test on a busy machine.

    By default, one example must not take more than 0.2 s, and a few must be made in a second.
    """
    from hypothesis import HealthCheck, settings  # noqa: PLC0415  only where tests are collected

    settings.register_profile(
        "busy", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("busy")


def _import_in_turn(config: pytest.Config) -> None:
    """Imports all test modules, starting with different ones in each worker.

    What is not compiled yet, as in a fresh clone, is then compiled by one worker and read by the
    others. If all of them started with the first module, each would compile every module.
    """
    worker = getattr(config, "workerinput", None)
    if worker is None or [Path(each).resolve() for each in config.args] != [REPOSITORY / "tests"]:
        return
    files = sorted(REPOSITORY.glob("tests/**/test_*.py"))
    first = len(files) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    for file in files[first:] + files[:first]:
        name = ".".join(file.relative_to(REPOSITORY).with_suffix("").parts)
        with contextlib.suppress(Exception, pytest.skip.Exception):  # the collection reports them
            importlib.import_module(name)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Keeps the garbage collector from visiting what stays to the end: modules and all tests.

    It would look through all of them again and again while they are made. Afterwards it looks as
    rarely as in the command line: workbooks are many objects without cycles.
    """
    _let_examples_take_their_time()
    gc.disable()
    _import_in_turn(session.config)
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(*RARE_COLLECTIONS)
        gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Shows these lines."""
    lines = [
        str(value)
        for report in terminalreporter.getreports("passed")
        for name, value in report.user_properties
        if name == "figures"
    ]
    if lines:
        terminalreporter.section("figures")
    for line in lines:
        terminalreporter.write_line(line)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """If JUDGE_REQUIRE_ALL is set (as in CI), a skipped test counts as failed."""
    del item, call
    report = yield
    if report.skipped and os.environ.get("JUDGE_REQUIRE_ALL") and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"skipped where nothing may be skipped (JUDGE_REQUIRE_ALL): {reason}"
    return report


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Says how many workers ``-n auto`` means."""
    from tests.distribution import workers  # noqa: PLC0415  only where pytest-xdist is

    del config
    return workers()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Decides which worker runs which tests."""
    from tests.distribution import Distribution  # noqa: PLC0415  only where pytest-xdist is

    return Distribution(config, log)
