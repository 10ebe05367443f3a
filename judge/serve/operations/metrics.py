"""The metrics that a server offers to Prometheus.

Each process counts its own requests, cases and fenced judgings. Everything else is read from the
database when the metrics are requested, so it is the same in every process and survives a restart.
No label names an account or a task.
"""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import sqlalchemy as sa
from fastapi import Request
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    start_http_server,
)
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from judge.errors import JudgeError
from judge.grading.batch import Event
from judge.serve.context import Server
from judge.serve.store import tables as t
from judge.serve.store.tables import JudgingState
from judge.version import __version__

CACHED_S = 5.0
"""How many seconds values from the database are reused, however often they are requested."""

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_CASE_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
_NOT_A_ROUTE = "none"
_PREFIX = "/v1"


class Metrics:
    """The metrics of one process.

    Args:
        server: the server whose database is queried.

    Attributes:
        registry: where all of the metrics are registered.
    """

    def __init__(self, server: Server) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "judge_http_requests_total",
            "Requests answered.",
            ("route", "method", "status"),
            registry=self.registry,
        )
        self._request_seconds = Histogram(
            "judge_http_request_seconds",
            "Seconds from a request to the head of its response, without long polls.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._cases = Counter(
            "judge_cases_judged_total",
            "Cases judged by dispatchers of this process.",
            ("verdict",),
            registry=self.registry,
        )
        self._case_seconds = Histogram(
            "judge_case_seconds",
            "Seconds that a case took, by phase: run, recalculation, comparison.",
            ("phase",),
            buckets=_CASE_SECONDS,
            registry=self.registry,
        )
        self._fenced = Counter(
            "judge_fenced_total",
            "Judgings that finished after they had lost their lease.",
            registry=self.registry,
        )
        build = Gauge(
            "judge_build_info", "The running version.", ("version",), registry=self.registry
        )
        build.labels(__version__).set(1)
        self.registry.register(_OfDatabase(server))

    def answered(self, request: Request, status: int, seconds: float) -> None:
        """Counts an answered request by its route, never by its path.

        Requests that wait on purpose are counted, but their time is not measured.
        """
        route = str(getattr(request.scope.get("route"), "path", _NOT_A_ROUTE))
        if route != _NOT_A_ROUTE and request.url.path.startswith(f"{_PREFIX}/"):
            route = _PREFIX + route.removeprefix(_PREFIX)  # a router's own paths lack the prefix
        method = request.method if request.method in _METHODS else "other"
        self._requests.labels(route, method, str(status)).inc()
        if "wait" not in request.query_params and not route.endswith("/events"):
            self._request_seconds.observe(seconds)

    def case(self, event: Event) -> None:
        """Counts a case that was judged here; not one that was copied from earlier records."""
        if event.reused:
            return
        self._cases.labels(event.result.verdict.value).inc()
        for phase, seconds in event.result.timings_s.items():
            self._case_seconds.labels(phase).observe(seconds)

    def fenced(self) -> None:
        """Counts a judging whose lease was lost before it was finished."""
        self._fenced.inc()

    def text(self) -> bytes:
        """All metrics as Prometheus reads them."""
        return generate_latest(self.registry)


_Rows = list[tuple[tuple[str, ...], float]]


class _OfDatabase(Collector):
    """The metrics that are read from the database; empty while it cannot be reached."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._lock = threading.Lock()
        self._read_at = float("-inf")
        self._families: list[Metric] = []

    def describe(self) -> Iterator[Metric]:
        """Returns no descriptions, so that registering does not query the database."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """The families of metrics, read again if they are older than :data:`CACHED_S`."""
        with self._lock:
            if time.monotonic() - self._read_at >= CACHED_S:
                self._families = self._read()
                self._read_at = time.monotonic()
            return iter(self._families)

    def _read(self) -> list[Metric]:
        try:
            with self._server.database.reading() as connection:
                counters, gauges = _counters(connection), _gauges(connection)
            free = float(self._server.folder.free_bytes())
        except (JudgeError, OSError):
            return []
        gauges.append(("judge_data_free_bytes", "Free space in the data folder.", (), [((), free)]))
        families: list[Metric] = []
        for name, text, labels, rows in counters:
            counter = CounterMetricFamily(name, text, labels=labels)
            for values, value in rows:
                counter.add_metric(values, value)
            families.append(counter)
        for name, text, labels, rows in gauges:
            gauge = GaugeMetricFamily(name, text, labels=labels)
            for values, value in rows:
                gauge.add_metric(values, value)
            families.append(gauge)
        return families


_Family = tuple[str, str, tuple[str, ...], _Rows]


def _grouped(connection: sa.Connection, statement: sa.Select[Any]) -> _Rows:
    return [
        (tuple(str(value) for value in row[:-1]), float(row[-1] or 0))
        for row in connection.execute(statement)
    ]


def _counters(connection: sa.Connection) -> list[_Family]:
    submitted = (
        sa.select(t.phase.c.name, t.submission.c.kind, sa.func.count())
        .join(t.phase, t.phase.c.id == t.submission.c.phase)
        .group_by(t.phase.c.name, t.submission.c.kind)
    )
    tried = sa.select(t.delivery.c.state, sa.func.sum(t.delivery.c.tries)).group_by(
        t.delivery.c.state
    )
    return [
        (
            "judge_submissions",
            "Submissions accepted.",
            ("phase", "kind"),
            _grouped(connection, submitted),
        ),
        (
            "judge_leases_lost",
            "Judgings that went back to the queue because their dispatcher was lost.",
            (),
            _grouped(connection, sa.select(sa.func.sum(t.judging.c.lost))),
        ),
        (
            "judge_judge_errors",
            "How often a judging ended in judge errors (JE).",
            (),
            _grouped(connection, sa.select(sa.func.sum(t.judging.c.errors))),
        ),
        (
            "judge_webhook_deliveries",
            "Attempts to deliver a webhook, by the state of the delivery.",
            ("result",),
            _grouped(connection, tried),
        ),
    ]


def _gauges(connection: sa.Connection) -> list[_Family]:
    under_way = (JudgingState.QUEUED, JudgingState.RUNNING)
    queue = (
        sa.select(t.judging.c.lane, t.judging.c.state, sa.func.count())
        .where(t.judging.c.state.in_(under_way))
        .group_by(t.judging.c.lane, t.judging.c.state)
    )
    return [
        (
            "judge_queue_judgings",
            "Judgings that are waiting or running.",
            ("lane", "state"),
            _grouped(connection, queue),
        ),
        (
            "judge_queue_oldest_seconds",
            "How long the oldest judging of a lane has waited.",
            ("lane",),
            _oldest(connection),
        ),
        (
            "judge_dispatcher_slots",
            "Slots of the dispatchers.",
            ("holder", "state"),
            _slots(connection),
        ),
        (
            "judge_rejudgings",
            "Rejudgings.",
            ("state",),
            _grouped(connection, _by_state(t.rejudging)),
        ),
        ("judge_disputes", "Disputes.", ("state",), _grouped(connection, _by_state(t.dispute))),
    ]


def _by_state(table: sa.Table) -> sa.Select[Any]:
    return sa.select(table.c.state, sa.func.count()).group_by(table.c.state)


def _oldest(connection: sa.Connection) -> _Rows:
    statement = (
        sa.select(t.judging.c.lane, sa.func.min(t.judging.c.created), sa.literal_column("0"))
        .where(t.judging.c.state == JudgingState.QUEUED)
        .group_by(t.judging.c.lane)
    )
    now = _time(str(connection.scalar(sa.select(t.Now()))))
    return [
        ((str(lane),), max((now - _time(created)).total_seconds(), 0.0))
        for lane, created, _ in connection.execute(statement)
    ]


def _time(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)


def _slots(connection: sa.Connection) -> _Rows:
    running = (
        sa.select(t.judging.c.holder, sa.func.count().label("busy"))
        .where(t.judging.c.state == JudgingState.RUNNING)
        .group_by(t.judging.c.holder)
        .subquery()
    )
    statement = (
        sa.select(t.dispatcher.c.name, t.dispatcher.c.slots, running.c.busy)
        .join(running, running.c.holder == t.dispatcher.c.name, isouter=True)
        .where(t.dispatcher.c.state != "stopped")
    )
    rows: _Rows = []
    for name, slots, busy in connection.execute(statement):
        rows.append(((str(name), "busy"), float(busy or 0)))
        rows.append(((str(name), "free"), float(max(slots - (busy or 0), 0))))
    return rows


def metrics_of(server: Server) -> Metrics:
    """The metrics of a server's process; made when they are first needed."""
    metrics: Metrics | None = server.shared.get("metrics")
    if metrics is None:
        metrics = server.shared.setdefault("metrics", Metrics(server))
    return metrics


def serve_metrics(server: Server, host: str, port: int) -> Callable[[], None]:
    """Serves ``/metrics`` on a separate port.

    Returns:
        The function that stops it.
    """
    http, thread = start_http_server(port, host, metrics_of(server).registry)

    def end() -> None:
        http.shutdown()
        http.server_close()
        thread.join()

    return end
