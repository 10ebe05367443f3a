"""Metrics: names, no names of accounts, and health."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient

from judge.core.verdict import CaseResult, Verdict
from judge.grading.batch import Event
from judge.serve.app import make_app
from judge.serve.context import Server
from judge.serve.operations.metrics import Metrics, metrics_of
from judge.serve.store import tables as t
from judge.serve.store.database import Actor, Database, sqlite_url
from judge.serve.store.folder import DataFolder


@pytest.fixture
def server(tmp_path: Path) -> Server:
    folder = DataFolder(tmp_path / "data")
    folder.make()
    database = Database(sqlite_url(folder.database))
    database.migrate()
    return Server(database, folder)


NAMES = {
    "judge_http_requests_total", "judge_http_request_seconds", "judge_submissions_total",
    "judge_queue_judgings", "judge_queue_oldest_seconds", "judge_cases_judged_total",
    "judge_case_seconds", "judge_leases_lost_total", "judge_fenced_total",
    "judge_dispatcher_slots", "judge_judge_errors_total", "judge_webhook_deliveries_total",
    "judge_rejudgings", "judge_disputes", "judge_data_free_bytes", "judge_build_info",
}  # fmt: skip
"""The metrics of section 6 of the design."""


def test_every_metric_has_its_name(server: Server) -> None:
    text = Metrics(server).text().decode()
    assert {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")} >= NAMES


def test_what_the_database_holds_is_counted(server: Server) -> None:
    with server.database.writing(Actor("test")) as transaction:
        transaction.execute(
            sa.insert(t.dispatcher).values(name="main", life="1", slots=4, state="ready")
        )
    metrics = Metrics(server)
    judged = CaseResult("t1", 0, 1, Verdict.AC, timings_s={"run": 0.2})
    for reused in (False, False, True):
        metrics.case(Event(judged, reused=reused, done=1, total=3))
    text = metrics.text().decode()
    assert 'judge_dispatcher_slots{holder="main",state="free"} 4.0' in text
    assert 'judge_cases_judged_total{verdict="AC"} 2.0' in text
    assert 'judge_case_seconds_count{phase="run"} 2.0' in text


def test_without_the_database_the_rest_is_still_reported(server: Server) -> None:
    metrics = Metrics(server)
    server.database.close()
    server.folder.database.unlink()
    server.folder.database.mkdir()
    text = metrics.text().decode()
    assert "judge_build_info" in text
    assert "judge_queue_judgings" not in text


def test_requests_are_counted_by_route_and_not_by_path(server: Server) -> None:
    client = TestClient(make_app(server))
    for path in ("/v1/suites/secret-name", "/v1/suites/other", "/nowhere/secret-name"):
        assert client.get(path).status_code == 404
    text = metrics_of(server).text().decode()
    counted = 'judge_http_requests_total{method="GET",route="%s",status="404"} %s'
    assert counted % ("/v1/suites/{suite}", "2.0") in text
    assert counted % ("none", "1.0") in text
    assert "secret-name" not in text
