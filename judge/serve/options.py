"""Options of ``judge serve`` and its parts, declared once; importing this module is fast."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from judge.core.option import Option, Section
from judge.errors import UsageError, how_to_install
from judge.grading.options import ClusterName, InsecureCluster, SandboxName

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_PACKAGES = ("fastapi", "sqlalchemy", "alembic", "multipart", "prometheus_client")


def check_installed() -> None:
    """Checks that the packages of the server are installed.

    Raises:
        UsageError: one of them is missing; the hint names the extra.
    """
    for package in _PACKAGES:
        if importlib.util.find_spec(package) is None:
            raise UsageError(
                f"judge serve needs {package}, which is not installed",
                hint=how_to_install("serve"),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageOptions:
    """Where a server stores its data.

    Attributes:
        data: the data folder.
        database: a SQLAlchemy URL; None for a SQLite file in the data folder.
    """

    data: Annotated[
        Path, Option("Data folder; made if it is missing.", Section.FILES, metavar="DIR")
    ] = Path("judge-data")
    database: Annotated[
        str | None,
        Option(
            "postgresql://… in place of SQLite in the data folder.", Section.FILES, metavar="URL"
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenOptions(StorageOptions):
    """How a server is reached.

    Attributes:
        listen: host and port.
        public_url: the URL at which people reach it.
        behind_proxy: address of the proxy whose ``X-Forwarded-*`` headers are trusted.
        certificate: file of a TLS certificate, with its chain.
        key: file of the private key.
        metrics: host and port of ``/metrics`` for Prometheus; None for no metrics.
    """

    listen: Annotated[
        str,
        Option(
            "Address and port to listen on; port 0 for a free one.",
            Section.ELSEWHERE,
            metavar="HOST:PORT",
        ),
    ] = "127.0.0.1:8585"
    public_url: Annotated[
        str,
        Option(
            "URL at which people reach it, such as https://judge.example.org.",
            Section.ELSEWHERE,
            metavar="URL",
        ),
    ] = ""
    behind_proxy: Annotated[
        str | None,
        Option("Address of the proxy that terminates TLS.", Section.ELSEWHERE, metavar="ADDRESS"),
    ] = None
    certificate: Annotated[
        Path | None,
        Option("TLS certificate (PEM).", Section.ELSEWHERE, exists=True, folder=False),
    ] = None
    key: Annotated[
        Path | None, Option("Its key (PEM).", Section.ELSEWHERE, exists=True, folder=False)
    ] = None
    metrics: Annotated[
        str | None,
        Option(
            "Address of the metrics for Prometheus [none].", Section.ELSEWHERE, metavar="HOST:PORT"
        ),
    ] = None

    def __post_init__(self) -> None:
        host, _ = self.address
        if host in LOOPBACK:
            return
        if not self.public_url:
            raise UsageError(
                f"--listen {self.listen} can be reached from other machines",
                hint="Give --public-url, the address under which people reach it.",
            )
        if self.behind_proxy is None and (self.certificate is None or self.key is None):
            raise UsageError(
                f"--listen {self.listen} can be reached from other machines, and has no TLS",
                hint="Give --certificate and --key, or --behind-proxy ADDRESS.",
            )

    @property
    def address(self) -> tuple[str, int]:
        """Host and port to listen on.

        Raises:
            UsageError: the option is not an address.
        """
        return address_of(self.listen, "--listen")


def address_of(text: str, option: str) -> tuple[str, int]:
    """Host and port of an address.

    Args:
        text: the address.
        option: the option whose value it is.

    Raises:
        UsageError: it is not an address.
    """
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"{option}: {text!r} is not HOST:PORT")
    return host.strip("[]") or "0.0.0.0", int(port)  # noqa: S104  the user requested it


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotOptions:
    """How a dispatcher judges.

    Attributes:
        slots: how many judgings run at a time.
        jobs: how many submissions of one judging run at a time.
        sandbox: kind of sandbox.
        cluster: workers that judge instead of this process's threads.
        insecure_cluster: whether the workers may be reached without TLS.
        name: the name of the dispatcher.
    """

    slots: Annotated[int, Option("Judgings at a time.", Section.ISOLATION, least=1, most=256)] = 2
    jobs: Annotated[
        int,
        Option(
            "Programs of one judging at a time.", Section.ISOLATION, short="-j", least=1, most=256
        ),
    ] = 1
    sandbox: SandboxName = "auto"
    cluster: ClusterName = None
    insecure_cluster: InsecureCluster = False
    name: Annotated[str, Option("Unique name of this dispatcher.", Section.ISOLATION)] = "main"
