"""Sends one webhook: signed, only to a public address, with limits on time and bytes read.

The signature is that of Standard Webhooks (https://www.standardwebhooks.com). The owner of a
webhook chooses where the server connects to. Therefore the host name is resolved only once, all of
its addresses must be globally routable, and the connection is made to one of these addresses.
"""

from __future__ import annotations

import base64
import contextlib
import datetime as dt
import enum
import http.client
import ipaddress
import random
import re
import secrets
import socket
import ssl
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from standardwebhooks.webhooks import Webhook

from judge.errors import JudgeError, UsageError
from judge.version import __version__

DELAYS_S = (0, 5, 300, 1_800, 7_200, 18_000, 36_000, 86_400)
"""Seconds between an attempt and the previous one; there are as many attempts as delays."""

JITTER = 0.1
"""Largest random increase of a delay, as a share of it; it spreads retries out."""

MAX_SECONDS = 10.0
"""Seconds that one attempt may take, from resolving the host name to the end of the response."""

MAX_ANSWER_BYTES = 64 * 1024  # read from a receiver, and discarded
MAX_URL_LENGTH = 500  # characters

_SECRET_PREFIX = "whsec_"  # noqa: S105  the standard's prefix, not a secret
_SECRET_BYTES = 32  # Standard Webhooks: 24 to 64

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
_TUNNELS = (ipaddress.IPv6Network("2001::/32"), ipaddress.IPv6Network("2002::/16"))

_ALLOWED_HOST = re.compile(r"(\*\.)?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*(:[0-9]{1,5})?", re.ASCII)


class RefusedAddressError(JudgeError):
    """A webhook must not be sent to this URL."""


class Outcome(enum.StrEnum):
    """The outcome of one attempt."""

    DELIVERED = "delivered"
    """Answered with a status from 200 to 299."""
    GONE = "gone"
    """Answered with 410: the webhook is switched off."""
    FAILED = "failed"
    """Another status, no answer, or an address that is refused."""


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """The result of one attempt.

    Attributes:
        outcome: see :class:`Outcome`.
        status: HTTP status of the answer; None if there was no answer.
    """

    outcome: Outcome
    status: int | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """A webhook message to be sent.

    Attributes:
        id: the same for every attempt, so that receivers can drop duplicates.
        url: the address to send to.
        body: the JSON body.
        secrets: ``whsec_`` keys; more than one while a key is being replaced.
    """

    id: str
    url: str
    body: str
    secrets: Sequence[str] = field(repr=False)


def new_secret() -> str:
    """Makes a key for signatures, in the format of Standard Webhooks."""
    key = base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode("ascii")
    return f"{_SECRET_PREFIX}{key}"


def delay_before(tries: int, jitter: Callable[[], float] = random.random) -> float | None:
    """The delay until the next attempt.

    Args:
        tries: how many attempts there were.
        jitter: returns random numbers from 0 to 1.

    Returns:
        The delay in seconds; None if there are no more attempts.
    """
    if tries >= len(DELAYS_S):
        return None
    return DELAYS_S[tries] * (1 + JITTER * jitter())


def signed_headers(message: Message, at: dt.datetime) -> dict[str, str]:
    """The three headers of Standard Webhooks.

    Args:
        message: the message to send.
        at: the time of this attempt, in UTC.
    """
    signatures = [Webhook(key).sign(message.id, at, message.body) for key in message.secrets]
    return {
        "webhook-id": message.id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": " ".join(signatures),
    }


def is_public(address: str) -> bool:
    """Whether an IP address is globally routable.

    An IPv6 address that contains an IPv4 address (mapped, NAT64) is public if the IPv4 address is.
    Addresses of tunnels (6to4, Teredo) never count as public.
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv4Address):
        return ip.is_global and not ip.is_multicast
    if ip.scope_id is not None:
        return False
    if ip.ipv4_mapped is not None:
        return is_public(str(ip.ipv4_mapped))
    if ip in _NAT64:
        return is_public(str(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)))
    return ip.is_global and ip in _GLOBAL_UNICAST and not any(ip in tunnel for tunnel in _TUNNELS)


def checked_url(url: str, hosts: Collection[str]) -> SplitResult:
    """Checks a URL for webhooks, and returns its parts.

    Args:
        url: the URL.
        hosts: hosts that the operator allows: names such as ``ci.example.org``, with a port if it
            is not 443, and ``*.example.org`` for every name below ``example.org``.

    Raises:
        UsageError: webhooks may not be sent to this URL.
    """
    if len(url) > MAX_URL_LENGTH or not url.isascii() or not url.isprintable() or " " in url:
        raise UsageError(f"a webhook's URL has at most {MAX_URL_LENGTH} printable ASCII characters")
    try:
        parts = urlsplit(url)
        port = parts.port or 443
    except ValueError as error:
        raise UsageError(f"not a URL: {error}") from error
    if parts.scheme != "https" or not parts.hostname:
        raise UsageError("a webhook's URL has to begin with https:// and a host")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise UsageError("a webhook's URL must not have a user name, password or fragment")
    if not any(_allows(entry, parts.hostname, port) for entry in hosts):
        raise UsageError(
            f"webhooks to {parts.hostname}:{port} are not allowed on this server",
            hint="The operator can allow a host: `judge serve admin webhooks --allow HOST`.",
        )
    return parts


def check_allowed_host(entry: str) -> None:
    """Checks a host that an operator allows.

    Raises:
        UsageError: it is not a host name, with or without a port.
    """
    if _ALLOWED_HOST.fullmatch(entry) is None:
        raise UsageError(
            f"{entry[:100]!r} cannot be a host of webhooks",
            hint="Give a name, such as ci.example.org, *.example.net or ci.example.org:8443.",
        )


def _allows(entry: str, host: str, port: int) -> bool:
    name, _, given_port = entry.lower().partition(":")
    if port != int(given_port or 443):
        return False
    if name.startswith("*."):
        return host.endswith(name[1:]) and len(host) > len(name) - 1
    return host == name


def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host, as text.

    Raises:
        OSError: the name has no addresses.
    """
    entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


def connect(address: str, port: int, timeout_s: float) -> socket.socket:
    """Opens a connection to an IP address."""
    return socket.create_connection((address, port), timeout_s)


@dataclass(frozen=True, slots=True)
class Sender:
    """Sends webhooks.

    Attributes:
        hosts: hosts that the operator allows (:func:`checked_url`); nothing is sent elsewhere.
        resolve: returns the addresses of a host.
        connect: opens a connection to one of them.
        tls: the TLS context, with the trusted certificates.
        max_seconds: seconds that one attempt may take.
    """

    hosts: Collection[str]
    resolve: Callable[[str, int], list[str]] = resolve
    connect: Callable[[str, int, float], socket.socket] = connect
    tls: Callable[[], ssl.SSLContext] = ssl.create_default_context
    max_seconds: float = MAX_SECONDS

    def send(self, message: Message, at: dt.datetime) -> DeliveryResult:
        """Makes one attempt; follows no redirects, and keeps only the status of the response.

        Args:
            message: the message to send.
            at: the time, in UTC, for the signature.
        """
        try:
            parts = checked_url(message.url, self.hosts)
            status = self._post(parts, message, at)
        except (OSError, http.client.HTTPException, JudgeError, UnicodeError):
            return DeliveryResult(Outcome.FAILED)
        if 200 <= status <= 299:
            return DeliveryResult(Outcome.DELIVERED, status)
        return DeliveryResult(Outcome.GONE if status == 410 else Outcome.FAILED, status)

    def _post(self, parts: SplitResult, message: Message, at: dt.datetime) -> int:
        until = time.monotonic() + self.max_seconds
        host, port = str(parts.hostname), parts.port or 443
        address = self.address(host, port)
        plain = self.connect(address, port, max(until - time.monotonic(), 0.001))
        with _closed_at(plain, until), self.tls().wrap_socket(plain, server_hostname=host) as link:
            connection = http.client.HTTPConnection(host, port)
            connection.sock = link
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            headers = {
                "Host": host if port == 443 else f"{host}:{port}",
                "Content-Type": "application/json",
                "User-Agent": f"judge-serve/{__version__}",
                "Connection": "close",
                **signed_headers(message, at),
            }
            connection.request("POST", path, message.body.encode(), headers)
            with connection.getresponse() as response:
                response.read(MAX_ANSWER_BYTES)
                return response.status

    def address(self, host: str, port: int) -> str:
        """The IP address to which a webhook is sent.

        Raises:
            RefusedAddressError: the host has an address that is not public, or no address.
            OSError: the name cannot be resolved.
        """
        addresses = self.resolve(host, port)
        if not addresses or not all(map(is_public, addresses)):
            raise RefusedAddressError(f"{host}: has an address that is not public")
        return addresses[0]


@contextlib.contextmanager
def _closed_at(plain: socket.socket, until: float) -> Iterator[None]:
    """Ends a connection at a deadline, even if the other side keeps sending slowly."""
    # Uses a duplicate, since wrapping the socket in TLS takes over its descriptor.
    handle = plain.dup()

    def end() -> None:
        with contextlib.suppress(OSError):
            handle.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(max(until - time.monotonic(), 0), end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        handle.close()
        plain.close()
