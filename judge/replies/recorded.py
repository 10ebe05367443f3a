"""The program of a record of solutions, as scoring runs it and as reports show it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from judge.replies.extract import extract


def recorded_program(record: Mapping[str, Any]) -> str | None:
    """The program of a record.

    Args:
        record: ``solution`` (or ``code``) is a program or a whole reply; ``reply``, if there is
            one, is the reply that the program was found in.

    Returns:
        The program; None if there is none. What was already found in the recorded reply is
        taken as the program, and is not searched for another one.
    """
    text = record.get("solution", record.get("code"))
    if not isinstance(text, str):
        return None
    reply = record.get("reply")
    if isinstance(reply, str) and reply != text and extract(reply).code == text:
        return text
    return extract(text).code
