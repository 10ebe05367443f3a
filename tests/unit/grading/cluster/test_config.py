"""The values that ``--cluster`` accepts, and those that would not be safe."""

from __future__ import annotations

from pathlib import Path

import pytest

from judge.errors import UsageError
from judge.files.yaml_documents import read_yaml
from judge.grading.cluster.certificates import make_certificates
from judge.grading.cluster.config import CERTIFICATES_VARIABLE, parse_cluster

DOCS = Path(__file__).resolve().parents[4] / "docs" / "cluster"


@pytest.fixture(autouse=True)
def no_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CERTIFICATES_VARIABLE, raising=False)


def test_workers_on_this_machine() -> None:
    place = parse_cluster("local:4")
    assert (place.kind, place.workers) == ("local", 4)


@pytest.mark.parametrize(
    "text", ["", "local", "local:0", "local:x", "local:-1", "host:8786", "http://host:1", "x.json"]
)
def test_what_is_not_a_cluster(text: str) -> None:
    with pytest.raises(UsageError, match="not a cluster"):
        parse_cluster(text)


@pytest.mark.parametrize(
    "address", ["tcp://host", "tcp://:8786", "tcp://host:port", "tcp://a@127.0.0.1:1", "tcp://[::1"]
)
def test_what_is_not_an_address(address: str) -> None:
    with pytest.raises(UsageError, match="is not an address"):
        parse_cluster(address, insecure=True)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "[::1]"])
def test_without_tls_on_the_loopback(host: str) -> None:
    assert parse_cluster(f"tcp://{host}:8786").certificates is None


@pytest.mark.parametrize("host", ["10.0.0.1", "head", "0.0.0.0", "127.0.0.1.evil.org", "[::]"])
def test_without_tls_on_other_machines_only_by_an_explicit_word(host: str) -> None:
    with pytest.raises(UsageError, match="without TLS"):
        parse_cluster(f"tcp://{host}:8786")
    assert parse_cluster(f"tcp://{host}:8786", insecure=True).address == f"tcp://{host}:8786"


@pytest.mark.parametrize("host", ["127.0.0.1", "head"])
def test_tls_without_certificates_is_refused(host: str) -> None:
    with pytest.raises(UsageError, match="no certificate"):
        parse_cluster(f"tls://{host}:8786", insecure=True)


def test_tls_with_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_certificates(tmp_path / "keys", days=1)
    monkeypatch.setenv(CERTIFICATES_VARIABLE, str(tmp_path / "keys"))
    place = parse_cluster("tls://head:8786")
    assert place.certificates is not None
    assert place.certificates.key == tmp_path / "keys" / "key.pem"
    with pytest.raises(UsageError, match="already exists"):
        make_certificates(tmp_path / "keys", days=1)


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    make_certificates(tmp_path / "keys", days=1)
    (tmp_path / "keys" / "key.pem").chmod(0o640)
    described = tmp_path / "cluster.yaml"
    described.write_text("address: tls://head:8786\ncertificates: keys\n")
    with pytest.raises(UsageError, match="others on this machine can read the key"):
        parse_cluster(str(described))


def test_a_file_that_describes_a_cluster(tmp_path: Path) -> None:
    make_certificates(tmp_path / "keys", days=1)
    described = tmp_path / "cluster.yaml"
    described.write_text("address: tls://head:8786\ncertificates: keys\nworkers: 8\nwait_s: 600\n")
    place = parse_cluster(str(described))
    assert (place.kind, place.workers, place.wait_s) == ("address", 8, 600)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("addres: tls://head:8786", "unknown field 'addres'"),
        ("workers: 2", "name one of address"),
        ("address: tcp://127.0.0.1:1\nlocal:", "name one of address"),
        ("address: tcp://127.0.0.1:1\nworkers: none", "workers must be a number"),
        ("address: tcp://head:1", "without TLS"),
        ("slurm: 4", "slurm must hold fields"),
        ("kubernetes: {}", "without TLS"),
        ("[1, 2]", "expected fields"),
    ],
)
def test_a_file_that_does_not(tmp_path: Path, text: str, said: str) -> None:
    described = tmp_path / "cluster.yaml"
    described.write_text(text)
    with pytest.raises(UsageError, match=said):
        parse_cluster(str(described))


def test_the_file_for_slurm_can_be_read(tmp_path: Path) -> None:
    described = tmp_path / "slurm.yaml"
    described.write_text((DOCS / "slurm.yaml").read_text())
    make_certificates(tmp_path / "keys", days=1)
    place = parse_cluster(str(described))
    assert (place.kind, place.workers) == ("slurm", 64)
    assert read_yaml(described, UsageError)["slurm"]["cores"] == place.options["cores"]
