"""Identifiers of everything that the server stores: sortable by time, and impossible to guess."""

from __future__ import annotations

import re
import secrets
import time

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's base 32: text sorts in the same order as the numbers."""

_LENGTH = 26
_TIME_BITS, _RANDOM_BITS = 48, 80

ID_PATTERN = re.compile(r"[a-z]{2,4}_[0-9A-HJKMNP-TV-Z]{26}", re.ASCII)
"""The form of an identifier; a path parameter of another form is not an id."""


def new_id(prefix: str) -> str:
    """Makes an identifier: the prefix, then milliseconds since 1970 and 80 random bits in base 32.

    Args:
        prefix: two to four small letters, such as ``sub``; see :mod:`judge.serve.store.tables`.
    """
    milliseconds = time.time_ns() // 1_000_000 % (1 << _TIME_BITS)
    number = milliseconds << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)
    digits = [_ALPHABET[number >> 5 * place & 31] for place in reversed(range(_LENGTH))]
    return f"{prefix}_{''.join(digits)}"
