"""Helpers for all suites: reads checks, and makes outcomes that name the fault of a difference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from judge.compare.checklists.items import Outcome
from judge.files.documents import MalformedError


def as_check(check: object) -> Mapping[str, object]:
    """Returns a check as a JSON object.

    Raises:
        MalformedError: the check is not an object.
    """
    if not isinstance(check, Mapping):
        raise MalformedError("the check is not an object")
    return check


@dataclass(frozen=True, slots=True)
class Shown:
    """The values, position and detail that an item records; see :class:`Outcome`."""

    expected: object = None
    found: object = None
    place: str = ""
    detail: str = ""

    def outcome(self, *, right: bool) -> Outcome:
        """Returns the outcome of a check that holds or fails."""
        share = 1.0 if right else 0.0
        return Outcome(share, self.expected, self.found, self.place, self.detail)


NOTHING = Shown()


def as_meant(official: Outcome, shown: Shown, fault: str, *, right: bool) -> Outcome:
    """Returns the outcome of a check as it was intended.

    Args:
        official: the published outcome.
        shown: the values, position and detail to record.
        fault: number of the fault, which the outcome names only if it differs from ``official``.
        right: whether the check passes as it was intended.
    """
    meant = shown.outcome(right=right)
    return replace(meant, fault=fault) if right != (official.share >= 1) else meant
