"""Submissions judged by a server: the same report as ``judge score``, and nothing judged twice."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from benchmarks import serve_rig
from benchmarks.serve_crashes import kill
from benchmarks.serve_rig import Part, is_right, rig_of
from judge import api
from judge.api.options import ScoreOptions
from judge.serve.catalog import NewPhase, NewSuite, add_phase, add_revision
from judge.serve.operations.upkeep import faults_of
from judge.serve.queue.dispatcher import Dispatcher, DispatchOptions
from judge.serve.store import tables as t
from tests.forked_command import ForkedCommand
from tests.postgresql import new_database
from tests.unit.serve.spine.world import ACTOR, World, make_world

DATASET = Path(__file__).parents[2] / "dataset"
FINISHED = {"done", "failed", "cancelled"}
pytestmark = [pytest.mark.bubblewrap, pytest.mark.slow]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A server with a dispatcher, and the three sample suites."""
    with serving(tmp_path_factory.mktemp("server")) as world:
        yield world


@contextlib.contextmanager
def serving(folder: Path, **options: Any) -> Iterator[World]:
    folder.mkdir(exist_ok=True)
    with new_database("sqlite", folder, None) as database:
        world = make_world(database, folder)
        with database.writing(ACTOR) as transaction:
            for name in ("sample", "sample-typed", "sample-rules"):
                suite = NewSuite(name, name, world.accounts["author"])
                add_revision(world.server, transaction, suite)
                add_phase(transaction, NewPhase(f"{name}-open", name, per_day=99))
        with dispatching(world, **options):
            yield world


@contextlib.contextmanager
def dispatching(world: World, **options: Any) -> Iterator[Dispatcher]:
    """A dispatcher on a thread."""
    chosen = DispatchOptions(slots=2, sandbox="bubblewrap", **options)
    dispatcher = Dispatcher(world.server.database, world.server.folder, chosen)
    ready = threading.Event()
    thread = threading.Thread(target=dispatcher.run, kwargs={"on_ready": ready.set})
    thread.start()
    assert ready.wait(120)
    try:
        yield dispatcher
    finally:
        dispatcher.stop()
        thread.join()


def solutions(folder: Path, suite: str) -> tuple[Path, Path, str]:
    """The submission, its file for `judge score`, and its content type."""
    if suite == "sample-rules":
        archive = folder / "finished.zip"
        with zipfile.ZipFile(archive, "w") as packed:
            for path in sorted((DATASET / suite / "finished").iterdir()):
                packed.write(path, path.name)
        return archive, DATASET / suite / "finished", "application/zip"
    name = "answers.jsonl" if suite == "sample-typed" else "submissions.jsonl"
    lines = (DATASET / suite / name).read_text().splitlines()[: 31 if "typed" in suite else 4]
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in lines))
    return path, path, "application/x-ndjson"


SUITES = ("sample", "sample-typed", "sample-rules")


@pytest.mark.parametrize("suite", SUITES)
def test_the_report_is_that_of_judge_score(server: World, tmp_path: Path, suite: str) -> None:
    report_is_that_of_judge_score(server, tmp_path, suite)


def test_on_a_cluster_the_report_is_the_same(tmp_path: Path) -> None:
    """All three kinds of submissions in one session of workers, compared with threads."""
    with serving(tmp_path / "server", cluster="local:2") as world:
        for suite in SUITES:
            (tmp_path / suite).mkdir()
            report_is_that_of_judge_score(world, tmp_path / suite, suite)


def report_is_that_of_judge_score(server: World, tmp_path: Path, suite: str) -> None:
    body, scored, kind = solutions(tmp_path, suite)
    client = server.client()
    headers = server.headers("contestant")
    made = client.post(
        f"/v1/submissions?phase={suite}-open",
        headers={**headers, "content-type": kind},
        content=body.read_bytes(),
    )
    assert made.status_code == 202, made.text
    deadline = time.monotonic() + 300
    while True:
        view = client.get(made.json()["links"]["self"], headers=headers).json()
        if view["state"] in FINISHED:
            break
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert view["state"] == "done", view
    options = ScoreOptions(dataset=suite, out=tmp_path / "run", sandbox="bubblewrap", jobs=1)
    api.score(scored, options)
    reports = [
        json.loads((folder / "report.json").read_text())
        for folder in (tmp_path / "run", server.server.folder.results(view["judging"]["id"]))
    ]
    for report in reports:
        del report["run"]["suite"]["source"]
    assert reports[0] == reports[1]
    page = client.get(view["links"]["report"], headers=headers)
    assert page.status_code == 200
    assert "sandbox" in page.headers["content-security-policy"]
    assert faults_of(server.server.database, server.server.folder) == []


def test_two_dispatchers_cannot_have_one_name(server: World) -> None:
    from judge.errors import UsageError  # noqa: PLC0415

    with pytest.raises(UsageError, match="is running"):
        Dispatcher(server.server.database, server.server.folder, DispatchOptions())


def test_a_revision_whose_files_were_changed_is_not_judged(server: World) -> None:
    revision = next(row for row in server.rows(t.revision) if row["number"] == 1)
    with server.server.database.reading() as connection:
        name = connection.scalar(sa.select(t.suite.c.name).where(t.suite.c.id == revision["suite"]))
    assert name == "open"
    place = server.server.folder.suite(str(revision["folder"])) / "suite" / "sample-typed"
    definition = place / "suite.json"
    before = definition.read_bytes()
    definition.write_bytes(before.replace(b"How many", b"How much", 1))
    try:
        line = b'{"id": "trips", "response": "1"}\n'
        headers = {**server.headers("rival"), "content-type": "application/x-ndjson"}
        client = server.client()
        made = client.post("/v1/submissions?phase=open", headers=headers, content=line)
        address = made.json()["links"]["self"]
        deadline = time.monotonic() + 60
        while (view := client.get(address, headers=headers).json())["state"] not in FINISHED:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        assert view["state"] == "failed"
        assert "digest" in view["judging"]["reason"]
    finally:
        definition.write_bytes(before)


_OF_PARTS = ("judge.serve.running", "psycopg")


@pytest.fixture
def forked_parts(forked_command: ForkedCommand, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forks the parts of a rig, four for each test, from a process that has imported the server."""

    class Forked(Part):
        def start(self) -> None:
            environment = {**os.environ, **self.environment}
            started = forked_command.start(
                self.command[1:], environment=environment, imports=_OF_PARTS
            )
            self.process = started  # type: ignore[assignment]
            assert started.stdout is not None
            said = []
            for line in started.stdout:
                said.append(line)
                if self._ready in line:
                    threading.Thread(target=started.stdout.read, daemon=True).start()
                    return
            raise SystemExit(f"{self.name} did not start: {''.join(said)}")

    monkeypatch.setattr(serve_rig, "Part", Forked)


@pytest.mark.usefixtures("forked_parts")
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_kill_during_a_judging_loses_and_duplicates_nothing(kind: str) -> None:
    """A short form of benchmarks/serve_crashes.py: everything is killed at once, and restarted."""
    with rig_of(kind) as rig:
        rig.start("dispatcher", "server")
        rig.prepare()
        for place in range(3):
            rig.hand_in(place)
        rig.wait_for("a judging under way", lambda: bool(rig.held("dispatcher")))
        assert kill(rig, "all")
        rig.wait_until_judged()
        results = rig.results()
        assert rig.lost_leases() > 0
        assert results["submissions"] == 3
        assert is_right(results), results
