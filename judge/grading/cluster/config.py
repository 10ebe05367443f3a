"""Reads and checks the value of ``--cluster``: where the workers are, or how they are started."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from judge.errors import UsageError
from judge.files.documents import written
from judge.files.yaml_documents import read_yaml

CERTIFICATES_VARIABLE = "JUDGE_CLUSTER_CERTIFICATES"
"""The environment variable that names the folder of certificates, unless a file names it."""

CA_FILE, CERTIFICATE_FILE, KEY_FILE = "ca.pem", "certificate.pem", "key.pem"

_FORMS = "local:N, tcp://HOST:PORT, tls://HOST:PORT or a .yaml file"
_FIELDS = frozenset(
    {"address", "local", "slurm", "kubernetes", "certificates", "workers", "wait_s"}
)
_STARTED = ("local", "slurm", "kubernetes")


@dataclass(frozen=True, slots=True)
class Certificates:
    """The files with which the roles of a cluster prove their identity; all roles share them.

    Attributes:
        ca: certificate of the authority that both sides trust.
        certificate: the certificate of this role.
        key: the private key of that certificate.
    """

    ca: Path
    certificate: Path
    key: Path

    @classmethod
    def in_folder(cls, folder: Path) -> Certificates:
        """Returns the certificates in a folder, as ``judge cluster certificates`` makes them.

        Raises:
            UsageError: a file is missing, or other users of this machine can read the key.
        """
        files = cls(folder / CA_FILE, folder / CERTIFICATE_FILE, folder / KEY_FILE)
        for path in (files.ca, files.certificate, files.key):
            if not path.is_file():
                raise UsageError(
                    f"{path}: there is no such file, and a cluster needs certificates",
                    hint=f"`judge cluster certificates {folder}` makes them.",
                )
        if _is_open(files.key.stat()):
            raise UsageError(
                f"{files.key}: others on this machine can read the key, and so could run code "
                "on every worker",
                hint=f"chmod 600 {files.key}",
            )
        return files


def _is_open(key: os.stat_result) -> bool:
    """Returns whether others can read a key; if root owns it, as in a pod, its group may."""
    from_root = key.st_uid == 0 and os.geteuid() != 0
    return bool(key.st_mode & (0o037 if from_root else 0o077))


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """Where the workers are, or how they are started.

    Attributes:
        kind: ``address``, or how they are started: ``local``, ``slurm`` or ``kubernetes``.
        address: the address of the scheduler, if it is already running.
        certificates: for mutual TLS; None on the loopback and for workers that the command starts.
        workers: how many to start; if they are already running, how many to wait for.
        wait_s: seconds to wait for workers, at the start and after all were lost.
        options: options for starting the workers.
    """

    kind: str
    address: str = ""
    certificates: Certificates | None = None
    workers: int = 1
    wait_s: float = 60.0
    options: Mapping[str, object] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the cluster in messages."""
        return self.address or f"{self.kind}:{self.workers}"


def parse_cluster(text: str, *, insecure: bool = False) -> ClusterSpec:
    """Reads the value of ``--cluster``.

    Args:
        text: ``local:N``, the address of a scheduler, or a YAML file.
        insecure: whether an address other than the loopback is accepted without TLS.

    Raises:
        UsageError: the value is none of these, or would not be safe.
    """
    if (local := re.fullmatch(r"local:([1-9]\d{0,3})", text)) is not None:
        return ClusterSpec("local", workers=int(local[1]))
    if text.startswith(("tcp://", "tls://")):
        folder = os.environ.get(CERTIFICATES_VARIABLE)
        return at_address(text, None if folder is None else Path(folder), insecure=insecure)
    if text.endswith((".yaml", ".yml")):
        return _of_file(Path(text), insecure=insecure)
    raise UsageError(f"--cluster {text}: not a cluster", hint=f"Write {_FORMS}.")


def at_address(
    address: str,
    certificates: Path | None,
    *,
    insecure: bool,
    workers: int = 1,
    wait_s: float = 60.0,
) -> ClusterSpec:
    """Makes the specification of a cluster whose scheduler is, or will be, at an address.

    Args:
        address: the address: ``tcp://`` or ``tls://``, a host and a port.
        certificates: folder of the certificates; None if there is none.
        insecure: whether an address other than the loopback is accepted without TLS.
        workers: how many workers to wait for.
        wait_s: seconds to wait for them.

    Raises:
        UsageError: it is not such an address, has no certificates, or would not be safe.
    """
    try:
        parts = urlsplit(address)
        complete = None not in {parts.hostname, parts.port} and parts.scheme in {"tcp", "tls"}
    except ValueError as error:
        raise UsageError(f"{address}: is not an address: {error}") from error
    if not complete or parts.path or parts.username is not None:
        raise UsageError(f"{address}: is not an address", hint="Write tls://HOST:PORT.")
    if parts.scheme == "tls":
        if certificates is None:
            raise UsageError(
                f"{address}: there is no certificate, and TLS needs one on both sides",
                hint=f"Set {CERTIFICATES_VARIABLE} to a folder with the scheduler's certificates "
                "(`judge cluster certificates FOLDER` makes them), or give a .yaml file with "
                "`certificates`.",
            )
        return ClusterSpec(
            "address", address, Certificates.in_folder(certificates), workers, wait_s
        )
    if not insecure and not is_loopback(parts.hostname or ""):
        raise UsageError(
            f"{address}: without TLS, anyone who can reach it can run code on the workers",
            hint="Use tls:// with certificates, or give --insecure-cluster if nobody else can.",
        )
    return ClusterSpec("address", address, None, workers, wait_s)


def is_loopback(host: str) -> bool:
    """Returns whether a host name or address is the loopback of this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _of_file(path: Path, *, insecure: bool) -> ClusterSpec:
    document = read_yaml(path, UsageError)
    if not isinstance(document, dict):
        raise UsageError(f"{path}: expected fields such as `address: tls://HOST:PORT`")
    if unknown := sorted({str(name) for name in document} - _FIELDS):
        raise UsageError(
            f"{path}: unknown field {unknown[0]!r}; known: {', '.join(sorted(_FIELDS))}"
        )
    kinds = [name for name in ("address", *_STARTED) if name in document]
    if len(kinds) != 1:
        raise UsageError(f"{path}: name one of address, local, slurm and kubernetes")
    folder = document.get("certificates")
    certificates = None if folder is None else path.parent / str(folder)
    workers = _number(path, document, "workers", 1)
    wait_s = _number(path, document, "wait_s", 60)
    if kinds == ["address"]:
        address = str(document["address"])
        return at_address(address, certificates, insecure=insecure, workers=workers, wait_s=wait_s)
    if kinds == ["kubernetes"] and not insecure:
        raise UsageError(
            f"{path}: pods that the Kubernetes operator starts communicate without TLS",
            hint="Start workers with certificates (docs/cluster/kubernetes.yaml) and give their "
            "address, or give --insecure-cluster if nobody else can reach these pods.",
        )
    options = document[kinds[0]]
    if options is not None and not isinstance(options, dict):
        raise UsageError(f"{path}: {kinds[0]} must hold fields, found {written(options)}")
    return ClusterSpec(
        kinds[0],
        certificates=None if certificates is None else Certificates.in_folder(certificates),
        workers=workers,
        wait_s=wait_s,
        options={str(name): value for name, value in (options or {}).items()},
    )


def _number(path: Path, document: Mapping[str, object], name: str, default: int) -> int:
    value = document.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UsageError(f"{path}: {name} must be a number of at least 1, found {written(value)}")
    return value
