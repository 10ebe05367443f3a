"""What all suites share: a check as data, and an outcome with the fault behind a difference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from judge.compare.checklists.items import Outcome
from judge.files.documents import MalformedError


def as_check(check: object) -> Mapping[str, object]:
    """A check as an object.

    Raises:
        MalformedError: it is not one.
    """
    if not isinstance(check, Mapping):
        raise MalformedError("the check is not an object")
    return check


@dataclass(frozen=True, slots=True)
class Shown:
    """What a record says of an item besides its outcome; see :class:`Outcome`."""

    expected: object = None
    found: object = None
    place: str = ""
    detail: str = ""

    def outcome(self, *, right: bool) -> Outcome:
        """The outcome of a check that holds, or does not."""
        share = 1.0 if right else 0.0
        return Outcome(share, self.expected, self.found, self.place, self.detail)


NOTHING = Shown()


def as_meant(official: Outcome, shown: Shown, fault: str, *, right: bool) -> Outcome:
    """The outcome of a check as it was intended.

    Args:
        official: the published outcome.
        shown: what the record says.
        fault: number of the fault that is behind a difference; named only where there is one.
        right: whether the check passes as it was intended.
    """
    meant = shown.outcome(right=right)
    return replace(meant, fault=fault) if right != (official.share >= 1) else meant
