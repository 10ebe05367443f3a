"""Sets up mutual TLS between the roles of a cluster, and the settings of Dask."""

from __future__ import annotations

import logging
import os

import dask
from distributed.security import Security

from judge.cluster.config import Certificates

SETTINGS = {
    # `judge.cluster.dispatch` handles the death of a worker: it knows what the worker did.
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
    """Makes settings for mutual TLS with the same certificates for all roles; None without any."""
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
