"""Addresses of chat servers: what may be shown, what counts as the same server. Pure."""

from __future__ import annotations

import base64
import re
from urllib.parse import unquote, urlsplit, urlunsplit

from judge.errors import UsageError

DEFAULT_BASE_URL = "https://api.openai.com/v1"
"""The endpoint of a model for which neither an alias nor an option names another."""

_PLAIN = re.compile(r"[!-\[\]-~]+")  # printable ASCII without blanks and backslashes
_DEFAULT_PORTS = {"http": 80, "https": 443}


def check_address(url: str) -> str:
    """The address unchanged, if every URL parser takes it for the same server.

    Args:
        url: an endpoint, as an option, a models file or a run has it.

    Raises:
        UsageError: it is not an ``http`` or ``https`` address with a host, or holds characters
            (backslashes, blanks, anything but ASCII) in which readers of addresses differ.
    """
    try:
        parts = urlsplit(url)
        whole = parts.scheme in _DEFAULT_PORTS and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets that do not match, a port that is not a number
        whole = False
    if not whole or _PLAIN.fullmatch(url) is None:
        raise UsageError(
            f"{url[:200]!r} is not the address of a chat server",
            hint="Write it as http://HOST:PORT/v1 or https://HOST/v1, in ASCII.",
        )
    return url


def public_url(url: str) -> str:
    """An address without user name, password, query and fragment."""
    parts = urlsplit(url)
    host = parts.netloc.rsplit("@", 1)[-1]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


def origin_of(url: str) -> str:
    """Scheme, host and port of an address: what a key belongs to.

    Args:
        url: an address that :func:`check_address` accepts.
    """
    parts = urlsplit(url)
    port = parts.port or _DEFAULT_PORTS.get(parts.scheme)
    return f"{parts.scheme}://{(parts.hostname or '').rstrip('.')}:{port}"


def secrets_of(url: str) -> tuple[str, ...]:
    """What of an address may not be shown: the password, and user name and password together."""
    user_info, separator, _ = urlsplit(url).netloc.rpartition("@")
    if not separator:
        return ()
    user, _, password = (unquote(each) for each in user_info.partition(":"))
    return (password, f"{user}:{password}")


def split_credentials(url: str) -> tuple[str, str | None]:
    """An address without user name and password, and the header that carries them instead."""
    parts = urlsplit(url)
    user_info, separator, host = parts.netloc.rpartition("@")
    if not separator:
        return url, None
    user, _, password = user_info.partition(":")
    plain = f"{unquote(user)}:{unquote(password)}".encode()
    return (
        urlunsplit(parts._replace(netloc=host)),
        f"Basic {base64.b64encode(plain).decode('ascii')}",
    )
