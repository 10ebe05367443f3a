"""Runs schedulers and workers as separate programs, with mutual TLS and their settings of Dask.

Run as a module, it starts the workers of one command: it reads a JSON object from standard input
and prints another as its answer. A scheduler unpickles messages, so it must not run in the process
that keeps the records. When standard input ends, however the command ended, this process and its
workers end too.

:func:`serve_scheduler` and :func:`serve_workers` are for a cluster that outlives a command.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import dask
from distributed import LocalCluster, Nanny, Scheduler
from distributed.security import Security

from judge.errors import ClusterError
from judge.grading.cluster.config import Certificates, ClusterSpec

SETTINGS = {
    # `judge.grading.cluster.dispatch` handles the death of a worker: it knows what the worker did.
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.active-memory-manager.start": False,
    # Sampling the stack of each worker a hundred times a second would cost a few per cent.
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    # Processes that check their state many times a second would cost as much as judging.
    "distributed.admin.system-monitor.interval": "10 s",
    "distributed.admin.tick.interval": "1 s",
    "distributed.admin.tick.limit": "60 s",
    "distributed.worker.memory.monitor-interval": "10 s",
    "distributed.scheduler.work-stealing-interval": "10 s",
    "distributed.comm.retry.count": 0,
    "distributed.comm.compression": None,
    # No web pages that would show anybody what is being judged.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}

NO_PAGES = "127.0.0.1:0"
"""The address of the web server, which Dask always starts."""

_QUIET = logging.CRITICAL + 1


_LEVEL = "DASK_LOGGING__DISTRIBUTED"


def settle(level: int = _QUIET) -> None:
    """Configures Dask for the judge, in this process and in those that it starts.

    Args:
        level: the level of Dask's log; by default, it logs nothing, as the judge reports failures.
    """
    dask.config.set(SETTINGS)
    for name in ("distributed", "tornado", "asyncio"):
        logging.getLogger(name).setLevel(level)
    os.environ[_LEVEL] = logging.getLevelName(level) if level < _QUIET else "CRITICAL"


def security_of(certificates: Certificates | None) -> Security | None:
    """Makes settings for mutual TLS, the same for all roles; None if there are no certificates."""
    if certificates is None:
        return None
    ca, certificate, key = (
        str(path) for path in (certificates.ca, certificates.certificate, certificates.key)
    )
    return Security(
        require_encryption=True,
        tls_ca_file=ca,
        tls_client_cert=certificate,
        tls_client_key=key,
        tls_scheduler_cert=certificate,
        tls_scheduler_key=key,
        tls_worker_cert=certificate,
        tls_worker_key=key,
    )


ROLES = ("ca_file", "client_cert", "client_key")
_WAIT_S = 60


def main() -> None:
    """Starts the workers that the first line of standard input describes."""
    settle()
    plan = json.loads(sys.stdin.readline())
    certificates = plan["certificates"] and Certificates(**plan["certificates"])
    security: Security | None = None
    if plan["kind"] != "kubernetes":
        # If the user has no certificates, use temporary ones that only this command knows.
        security = security_of(certificates) or Security.temporary()
    cluster = _start(plan["kind"], plan["workers"], plan["options"], security)
    answer = {
        "address": cluster.scheduler_address,
        "tls": security and {name: getattr(security, f"tls_{name}") for name in ROLES},
    }
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
    sys.stdin.read()
    if plan["kind"] != "local":
        cluster.close()  # jobs and pods must be cancelled; processes notice that this one is gone
    os._exit(0)


def _start(kind: str, workers: int, options: Mapping[str, Any], security: Security | None) -> Any:
    if kind == "local":
        return LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            protocol="tls://",
            security=security,
            memory_limit=0,
            dashboard_address=NO_PAGES,
            worker_dashboard_address=NO_PAGES,
            silence_logs=logging.CRITICAL,
            **options,
        )
    if kind == "slurm":
        return _start_slurm(workers, options, security)
    from dask_kubernetes.operator import KubeCluster  # noqa: PLC0415  a separate extra

    return KubeCluster(n_workers=workers, quiet=True, **options)


def _start_slurm(workers: int, options: Mapping[str, Any], security: Security | None) -> Any:
    from dask_jobqueue import SLURMCluster  # noqa: PLC0415  a separate extra

    cores = int(options.get("cores", 1))
    settings = f"export DASK_INTERNAL_INHERIT_CONFIG={dask.config.serialize(SETTINGS)}"
    cluster = SLURMCluster(
        **{
            "memory": "4GB",
            **options,
            "cores": cores,
            "processes": cores,  # a crash of a process should affect one submission, not many
            "protocol": "tls://",
            "security": security,
            "worker_extra_args": [
                *options.get("worker_extra_args", ()),
                *("--dashboard-address", NO_PAGES),
            ],
            "job_script_prologue": [*options.get("job_script_prologue", ()), settings],
            "scheduler_options": {
                "dashboard_address": NO_PAGES,
                **options.get("scheduler_options", {}),
            },
        }
    )
    cluster.scale(n=workers)
    return cluster


async def serve_scheduler(cluster_spec: ClusterSpec, on_ready: Callable[[str], None]) -> None:
    """Runs a scheduler until it is cancelled.

    Args:
        cluster_spec: the address to listen on, and the certificates.
        on_ready: called with the address of the scheduler.

    Raises:
        ClusterError: it cannot listen there.
    """
    settle(logging.WARNING)
    parts = urlsplit(cluster_spec.address)
    try:
        async with Scheduler(
            host=parts.hostname,
            port=parts.port or 0,
            protocol=f"{parts.scheme}://",
            security=security_of(cluster_spec.certificates),
            dashboard_address=NO_PAGES,
        ) as scheduler:
            on_ready(str(scheduler.address))
            await scheduler.finished()
    except OSError as error:
        raise ClusterError(f"{cluster_spec.address}: {error.strerror or error}") from error


async def serve_workers(cluster_spec: ClusterSpec, on_ready: Callable[[str], None]) -> None:
    """Runs workers until they are cancelled, or their scheduler is gone.

    Each worker is a process with one thread, so that a crash affects nothing else; a worker that
    died is started again.

    Args:
        cluster_spec: the scheduler, the certificates, and the number of workers.
        on_ready: called with the address of each worker.

    Raises:
        ClusterError: there is no scheduler, or it refuses these workers.
    """
    settle(logging.WARNING)
    nannies = [
        Nanny(
            cluster_spec.address,
            nthreads=1,
            memory_limit=0,
            security=security_of(cluster_spec.certificates),
            death_timeout=_WAIT_S,
            dashboard_address=NO_PAGES,
        )
        for _ in range(cluster_spec.workers)
    ]
    try:
        await asyncio.gather(*nannies)
        for nanny in nannies:
            on_ready(str(nanny.worker_address))
        await asyncio.gather(*(nanny.finished() for nanny in nannies))
    except (OSError, TimeoutError, RuntimeError) as error:
        raise ClusterError(
            f"{cluster_spec.address}: no scheduler can be reached there: "
            f"{error.__cause__ or error}",
            hint="Start one (`judge cluster scheduler`), with the same certificates as here.",
        ) from error
    finally:
        await asyncio.gather(*(nanny.close(timeout=1) for nanny in nannies), return_exceptions=True)


if __name__ == "__main__":
    main()
