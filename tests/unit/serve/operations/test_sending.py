"""Webhooks: signatures, retries, and addresses to which they are not sent."""

from __future__ import annotations

import datetime as dt
import ipaddress
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from judge.errors import UsageError
from judge.serve.operations.sending import (
    DELAYS_S,
    Message,
    Outcome,
    Sender,
    check_allowed_host,
    checked_url,
    delay_before,
    is_public,
    new_secret,
    signed_headers,
)

HOST = "hooks.example.org"
PUBLIC = "93.184.215.14"


@dataclass
class Receiver:
    """A server that answers webhooks as a test says."""

    port: int
    trust: Path
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    drips: bool = False
    requests: list[tuple[str, dict[str, str], str]] = field(default_factory=list)
    connected: list[str] = field(default_factory=list)

    def sender(self, addresses: list[str], hosts: tuple[str, ...] = (f"{HOST}:8443",)) -> Sender:
        def connect(address: str, _port: int, timeout_s: float) -> socket.socket:
            self.connected.append(address)
            return socket.create_connection(("127.0.0.1", self.port), timeout_s)

        return Sender(
            hosts,
            lambda _host, _port: addresses,
            connect,
            lambda: ssl.create_default_context(cafile=str(self.trust)),
        )


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    now = dt.datetime.now(dt.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    folder = tmp_path_factory.mktemp("tls")
    (folder / "cert.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return folder / "cert.pem", folder / "key.pem"


@pytest.fixture
def receiver(certificate: tuple[Path, Path]) -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            of_this.requests.append((self.path, dict(self.headers), body))
            if of_this.drips:
                for _ in range(200):
                    self.wfile.write(b"H")
                    time.sleep(0.02)
                return
            self.send_response(of_this.status)
            for name, value in of_this.headers.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    class Quiet(HTTPServer):
        def handle_error(self, *_: object) -> None:
            pass  # a sender that hangs up is what some tests are about

    server = Quiet(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    of_this = Receiver(server.server_port, certificate[0])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield of_this
    server.shutdown()
    thread.join()
    server.server_close()


def message(*keys: str) -> Message:
    return Message("dlv_1", f"https://{HOST}:8443/in?x=1", '{"id": "ü"}', keys or (new_secret(),))


NOW = dt.datetime.now(dt.UTC)


def test_the_receiver_can_verify_who_sent_it(receiver: Receiver) -> None:
    old, new = new_secret(), new_secret()
    # The receiver refuses what is more than five minutes old, by its own clock.
    sent = receiver.sender([PUBLIC]).send(message(new, old), dt.datetime.now(dt.UTC))
    assert (sent.outcome, sent.status) == (Outcome.DELIVERED, 200)
    path, headers, body = receiver.requests[0]
    assert path == "/in?x=1"
    assert headers["Host"] == f"{HOST}:8443"
    for key in (old, new):
        assert Webhook(key).verify(body, headers) == {"id": "ü"}
    with pytest.raises(WebhookVerificationError):
        Webhook(new_secret()).verify(body, headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(new).verify(body.replace("ü", "u"), headers)


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(204, Outcome.DELIVERED), (410, Outcome.GONE), (404, Outcome.FAILED), (500, Outcome.FAILED)],
)
def test_the_status_decides(receiver: Receiver, status: int, outcome: Outcome) -> None:
    receiver.status = status
    sent = receiver.sender([PUBLIC]).send(message(), NOW)
    assert (sent.outcome, sent.status) == (outcome, status)


def test_a_redirect_is_not_followed(receiver: Receiver) -> None:
    receiver.status, receiver.headers = 307, {"Location": f"https://{HOST}:8443/other"}
    assert receiver.sender([PUBLIC]).send(message(), NOW).outcome is Outcome.FAILED
    assert len(receiver.requests) == 1


def test_the_connection_goes_to_the_address_that_was_checked(receiver: Receiver) -> None:
    calls = []

    def changing(host: str, _port: int) -> list[str]:
        calls.append(host)
        return [PUBLIC] if len(calls) == 1 else ["127.0.0.1"]

    sender = replace(receiver.sender([]), resolve=changing)
    assert sender.send(message(), NOW).outcome is Outcome.DELIVERED
    assert (calls, receiver.connected) == ([HOST], [PUBLIC])


@pytest.mark.parametrize("addresses", [["127.0.0.1"], [PUBLIC, "10.0.0.1"], []])
def test_a_name_that_leads_inside_is_refused(receiver: Receiver, addresses: list[str]) -> None:
    assert receiver.sender(addresses).send(message(), NOW).outcome is Outcome.FAILED
    assert receiver.connected == []


def test_a_host_that_the_operator_does_not_allow_is_not_connected_to(receiver: Receiver) -> None:
    assert receiver.sender([PUBLIC], hosts=()).send(message(), NOW).outcome is Outcome.FAILED
    assert receiver.connected == []


def test_a_server_with_another_name_is_not_trusted(receiver: Receiver) -> None:
    other = replace(message(), url="https://other.example.org/in")
    sender = receiver.sender([PUBLIC], hosts=("*.example.org",))
    assert sender.send(other, NOW).outcome is Outcome.FAILED
    assert receiver.connected == [PUBLIC]
    assert receiver.requests == []


def test_an_answer_that_drips_ends_with_the_time(receiver: Receiver) -> None:
    receiver.drips = True
    sender = replace(receiver.sender([PUBLIC]), max_seconds=0.5)
    assert sender.send(message(), NOW).outcome is Outcome.FAILED


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
        "0.0.0.0", "224.0.0.1", "239.1.1.1", "255.255.255.255", "198.18.0.1", "192.0.0.1",
        "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "ff02::1",
        "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::", "2002:5db8:d822::1",
        "2001:0:7f00:1::", "2001:db8::1", "100::1", "5f00::1", "localhost", "",
    ],
)  # fmt: skip
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address",
    [PUBLIC, "1.1.1.1", "2606:4700::1111", f"::ffff:{PUBLIC}", "64:ff9b::5db8:d70e"],
)
def test_addresses_that_are_public(address: str) -> None:
    assert is_public(address)
    assert ipaddress.ip_address(address)


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example.org/", "https:///x", "https://a@hooks.example.org/",
        "https://hooks.example.org:444/", "https://hooks.example.org:x/", "https://example.org/",
        "https://evil-example.org/", "https://.example.org/", "ftp://hooks.example.org/",
        "https://hooks.example.org/#a", "https://hooks.example.org/a b",
        "https://hooks.example.org/\r\nX: 1", f"https://hooks.example.org/{'x' * 500}",
        "https://hooks.example.org.evil.net/", "https://127.0.0.1/",
    ],
)  # fmt: skip
def test_urls_that_are_refused(url: str) -> None:
    with pytest.raises(UsageError):
        checked_url(url, ("*.example.org",))


def test_urls_that_are_allowed() -> None:
    assert checked_url("https://a.b.example.org/x", ("*.example.org",)).path == "/x"
    assert checked_url("https://Example.org:8443/", ("example.org:8443",)).port == 8443


@pytest.mark.parametrize(
    "host", ["", "*", "*.", "a b", "https://a.org", "a.org/x", "a.org:", "a.org:x", "[::1]", "::1"]
)
def test_what_is_not_a_host_is_not_allowed(host: str) -> None:
    with pytest.raises(UsageError):
        check_allowed_host(host)
    for allowed in ("ci.example.org", "*.example.net:8443"):
        check_allowed_host(allowed)


def test_delays_grow_and_end() -> None:
    assert [delay_before(tries, lambda: 0) for tries in range(9)] == [*DELAYS_S, None]
    assert delay_before(2, lambda: 1) == pytest.approx(330)
    assert delay_before(0, lambda: 1) == 0


def test_a_secret_is_not_shown() -> None:
    sent = message()
    assert sent.secrets[0] not in repr(sent)
    headers = signed_headers(sent, NOW)
    assert sent.secrets[0] not in json.dumps(headers)
    assert headers["webhook-timestamp"] == str(int(NOW.timestamp()))
