"""Mutual TLS between the roles of a cluster, and the settings of Dask."""

from __future__ import annotations

import logging
import os

import dask
from distributed.security import Security

from judge.cluster.config import Certificates

SETTINGS = {
    # A worker's death is judge.cluster.dispatch's business, which knows who was at work.
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.active-memory-manager.start": False,
    # Sampling each worker's stack a hundred times a second costs a few per cent.
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    # Processes that check their own state many times a second cost as much as judging does.
    "distributed.admin.system-monitor.interval": "10 s",
    "distributed.admin.tick.interval": "1 s",
    "distributed.admin.tick.limit": "60 s",
    "distributed.worker.memory.monitor-interval": "10 s",
    "distributed.scheduler.work-stealing-interval": "10 s",
    "distributed.comm.retry.count": 0,
    "distributed.comm.compression": None,
    # No pages that show anybody what is being judged.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}

NO_PAGES = "127.0.0.1:0"
"""Address of the web server that Dask starts in any case."""

_QUIET = logging.CRITICAL + 1


_LEVEL = "DASK_LOGGING__DISTRIBUTED"


def settle(level: int = _QUIET) -> None:
    """Sets Dask, in this process and in those that it starts, to what the judge needs.

    Args:
        level: what Dask may log; nothing by default, since the judge says what matters.
    """
    dask.config.set(SETTINGS)
    for name in ("distributed", "tornado", "asyncio"):
        logging.getLogger(name).setLevel(level)
    os.environ[_LEVEL] = logging.getLevelName(level) if level < _QUIET else "CRITICAL"


def security_of(certificates: Certificates | None) -> Security | None:
    """Mutual TLS with the same certificates for all roles; None without certificates."""
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
