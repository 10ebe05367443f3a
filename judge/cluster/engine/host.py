"""Run as a program of its own: starts the workers of one command, and ends with it.

    python -m judge.cluster.engine.host    (a JSON object on standard input, and one as the answer)

A scheduler unpickles what it gets, so it is not in the process that keeps the records. When
standard input ends, however the other side ended, this process does, and its workers with it.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Mapping
from typing import Any

import dask
from distributed import LocalCluster
from distributed.security import Security

from judge.cluster.engine.security import NO_PAGES, SETTINGS, settle

ROLES = ("ca_file", "client_cert", "client_key")


def main() -> None:
    """Does what the first line of standard input says."""
    settle()
    plan = json.loads(sys.stdin.readline())
    security = None if plan["kind"] == "kubernetes" else _security(plan.get("certificates"))
    cluster = _start(plan["kind"], plan["workers"], plan["options"], security)
    answer = {
        "address": cluster.scheduler_address,
        "tls": security and {name: getattr(security, f"tls_{name}") for name in ROLES},
    }
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
    sys.stdin.read()
    if plan["kind"] != "local":
        cluster.close()  # jobs and pods have to be taken back; processes see that we are gone
    os._exit(0)


def _security(certificates: Mapping[str, str] | None) -> Security:
    """Mutual TLS: with given certificates, or with some that only this command knows."""
    if certificates is None:
        temporary: Security = Security.temporary()
        return temporary
    ca, certificate, key = certificates["ca"], certificates["certificate"], certificates["key"]
    return Security(
        require_encryption=True,
        tls_ca_file=ca,
        **{f"tls_{role}_cert": certificate for role in ("client", "scheduler", "worker")},
        **{f"tls_{role}_key": key for role in ("client", "scheduler", "worker")},
    )


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
    from dask_kubernetes.operator import KubeCluster  # noqa: PLC0415  an extra of its own

    return KubeCluster(n_workers=workers, quiet=True, **options)


def _start_slurm(workers: int, options: Mapping[str, Any], security: Security | None) -> Any:
    from dask_jobqueue import SLURMCluster  # noqa: PLC0415  an extra of its own

    cores = int(options.get("cores", 1))
    settings = f"export DASK_INTERNAL_INHERIT_CONFIG={dask.config.serialize(SETTINGS)}"
    cluster = SLURMCluster(
        **{
            "memory": "4GB",
            **options,
            "cores": cores,
            "processes": cores,  # what kills a process must take one submission along, not many
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


if __name__ == "__main__":
    main()
