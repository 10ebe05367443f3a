"""A session with the small suite of the annotator's tests, and a server for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from judge.annotate.annotator import Annotator
from judge.annotate.web.server import Page
from judge.annotate.web.session import AnnotationSession
from judge.core.submission import Submission
from judge.local_page import listen, server_of
from judge.recalc.policy import Recalculator
from judge.sandbox.contract import OutputStatus, RunResult, RunStatus
from judge.sandbox.scripted import ScriptedSandbox
from tests.unit.annotate.conftest import doubling_case, suite

__all__ = ["suite"]

MakeDesk = Callable[..., AnnotationSession]


def gold(*numbers: object) -> RunResult:
    """The workbook that a right solution writes."""
    data = doubling_case(*numbers)[1]
    return RunResult(RunStatus.OK, OutputStatus.COLLECTED, exit_code=0, output=data)


def program(name: str) -> Submission:
    return Submission("7", f"name = {name!r}", "/in.xlsx", "/out.xlsx", label=name)


@pytest.fixture
def make_session(suite: Path) -> MakeDesk:
    """Opens a session; ``results`` are the sandbox's results, run by run."""

    def make(
        author: str = "Ann",
        *,
        results: Sequence[RunResult | Exception] = (),
        references: Sequence[Submission] = (),
        base: int | None = None,
    ) -> AnnotationSession:
        annotator = Annotator(
            suite,
            sandbox=ScriptedSandbox(list(results)),
            recalculator=Recalculator([], mode="never"),
        )
        return AnnotationSession(annotator, "7", author, references=references, base=base)

    return make


@pytest.fixture
def page(make_session: MakeDesk) -> Iterator[Page]:
    """The served page of a session."""
    shown = Page(make_session(), "suite", "Ann")
    listener = listen(shown)
    server = server_of(shown)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    yield shown
    server.should_exit = True
    thread.join(timeout=120)
    listener.close()
    assert not thread.is_alive()
