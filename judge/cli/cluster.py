"""``judge cluster``: starts the scheduler and the workers of a cluster."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from judge import api
from judge.api.options import cores
from judge.cli.help import HelpGroup
from judge.cli.options import option
from judge.cli.signals import run_until_signal

if TYPE_CHECKING:
    from judge.grading.cluster.config import ClusterSpec

_CERTIFICATES = option(
    "--certificates",
    envvar="JUDGE_CLUSTER_CERTIFICATES",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Certificates for tls:// (JUDGE_CLUSTER_CERTIFICATES).",
)
_INSECURE = option(
    "--insecure-cluster", is_flag=True, help="Allow an address on other machines without TLS."
)


@click.group(
    cls=HelpGroup,
    examples=(
        "cluster certificates keys/",
        "cluster scheduler --listen tls://0.0.0.0:8786 --certificates keys/",
        "cluster worker tls://head:8786 --certificates keys/",
    ),
)
def cluster() -> None:
    """Start schedulers and workers for `judge score --cluster`.

    Scheduler, workers and client are one trust domain: each can run code on the others' machines,
    as the user that started them. docs/scaling.md explains how to start them on Slurm and
    Kubernetes.
    """


@cluster.command(examples=("cluster scheduler --listen tls://0.0.0.0:8786 --certificates keys/",))
@option(
    "--listen",
    default="tcp://127.0.0.1:8786",
    show_default=True,
    metavar="ADDRESS",
    help="Address at which workers and clients reach it.",
)
@_CERTIFICATES
@_INSECURE
def scheduler(listen: str, certificates: Path | None, insecure_cluster: bool) -> None:
    """Run the scheduler: it assigns work and never judges."""
    cluster_spec = _cluster_spec(listen, certificates, insecure=insecure_cluster)
    run_until_signal(api.serve_scheduler(cluster_spec, lambda at: click.echo(f"scheduler at {at}")))


@cluster.command(examples=("cluster worker tls://head:8786 --processes 8 --certificates keys/",))
@click.argument("address")
@option(
    "--processes",
    "-n",
    type=click.IntRange(min=1),
    help="Workers: processes that judge one submission at a time [cores].",
)
@_CERTIFICATES
@_INSECURE
def worker(
    address: str, processes: int | None, certificates: Path | None, insecure_cluster: bool
) -> None:
    """Run workers for the scheduler at ADDRESS, such as tls://head:8786."""
    cluster_spec = _cluster_spec(address, certificates, insecure=insecure_cluster)
    cluster_spec = replace(cluster_spec, workers=processes or cores())
    run_until_signal(api.serve_workers(cluster_spec, lambda at: click.echo(f"worker at {at}")))


@cluster.command("certificates", examples=("cluster certificates keys/",))
@click.argument("folder", type=click.Path(path_type=Path))
@option(
    "--days",
    type=click.IntRange(min=1),
    default=90,
    show_default=True,
    help="How long they are valid.",
)
def make(folder: Path, days: int) -> None:
    """Make the certificates that scheduler, workers and clients share, in FOLDER.

    Anyone who can read key.pem can run code wherever the cluster does.
    """
    _check_installed()

    api.make_certificates(folder, days)
    click.echo(f"{folder}: for scheduler, workers and clients; keep key.pem to yourself")


def _cluster_spec(address: str, certificates: Path | None, *, insecure: bool) -> ClusterSpec:
    _check_installed()
    return api.at_address(address, certificates, insecure=insecure)


def _check_installed() -> None:
    api.check_installed("cluster")
