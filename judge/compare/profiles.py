"""What "equal" means: a small table of rules for each profile. Pure."""

from __future__ import annotations

import enum
import functools
import json
from dataclasses import asdict, dataclass, replace

from judge.errors import UsageError, did_you_mean


class TextNumbers(enum.StrEnum):
    """When a string counts as the number that is written in it."""

    PLAIN = "plain"
    """If it is written in digits, with at most a sign, a point, an exponent and outer spaces."""
    NEVER = "never"


class Dates(enum.StrEnum):
    """How far two date-times may be apart."""

    SAME_DAY = "same_day"
    TO_THE_SECOND = "to_the_second"


class Times(enum.StrEnum):
    """How far two times of day may be apart."""

    SAME_MINUTE = "same_minute"
    TO_THE_SECOND = "to_the_second"


@dataclass(frozen=True, slots=True)
class Profile:
    """Rules that decide whether two values agree.

    Attributes:
        name: name of the profile.
        published: judge exactly as the published script does, faults included; no other rule
            applies then.
        decimals: digits after the point to which numbers are rounded before they are compared, or
            None to compare only by tolerance.
        noise: numbers that differ by at most 1e-9 of the larger one and by less than this are the
            same sum with another rounding error, and agree. Whole numbers never come that close.
        relative_tolerance: numbers this close, relative to the larger one, agree anyway.
        absolute_tolerance: numbers this close agree anyway.
        text_numbers: when a string counts as a number.
        booleans_are_numbers: whether TRUE is 1.
        dates_are_numbers: whether a date is its serial number.
        times_are_numbers: whether a time of day or a duration is the number of days that its cell
            stores, and so agrees with the same number under any other number format.
        dates: how far two date-times may be apart.
        times: how far two times of day may be apart.
        errors_are_text: whether the error ``#N/A`` is the text "#N/A".
        ignore_case: whether upper and lower case are the same.
        ignore_whitespace: whether runs of white space count as one space, and as none at the ends.
        unordered_rows: whether the rows of a range may be in any order.
        ignore_extra: whether values are accepted where the gold is blank.
        near_zero: a number this close to zero agrees with zero.
        blank_is_zero: whether a blank cell is the number zero.
        not_meaningful: whether "n/a", "NM", a dash, #N/A and #DIV/0! mean the same.
        formula_fallback: whether cells that show an error are compared by their formulas.
        groups: whether cells that had to change and cells that had to stay are counted
            separately, which requires the input. Where :attr:`published` is set as well, the script
            is that of SpreadsheetBench 2.
        formulas: whether formulas are compared instead of values, where there are any.
    """

    name: str
    published: bool = False
    decimals: int | None = 2
    noise: float = 0.005
    relative_tolerance: float = 0.0
    absolute_tolerance: float = 0.0
    text_numbers: TextNumbers = TextNumbers.PLAIN
    booleans_are_numbers: bool = True
    dates_are_numbers: bool = True
    times_are_numbers: bool = True
    dates: Dates = Dates.SAME_DAY
    times: Times = Times.SAME_MINUTE
    errors_are_text: bool = True
    ignore_case: bool = False
    ignore_whitespace: bool = False
    unordered_rows: bool = False
    ignore_extra: bool = False
    near_zero: float = 0.0
    blank_is_zero: bool = False
    not_meaningful: bool = False
    formula_fallback: bool = False
    groups: bool = False
    formulas: bool = False

    @property
    def reads_stored_values(self) -> bool:
        """Whether formulas count by the values stored in the files, and nothing is computed.

        The published functions of SpreadsheetBench 2 read files as they are.
        """
        return self.published and self.groups

    @property
    def identity(self) -> str:
        """A string that is the same for the same rules, for reuse keys.

        When a change of the judge may change verdicts of a profile, the version of that profile is
        raised. A rule that was added later is named only where it is set, so that earlier results
        can still be reused.
        """
        return _identity(self)


RELATIVE_RULES_VERSION = 3
"""Version of the rules with a relative tolerance, which once applied to dates."""


@functools.lru_cache(maxsize=64)
def _identity(profile: Profile) -> str:
    """Written once for each profile: every case of a run has it in its key."""
    rules = asdict(profile)
    if not rules["formulas"]:
        del rules["formulas"]
    version = RELATIVE_RULES_VERSION if profile.relative_tolerance else 2
    return json.dumps({"rules_version": version, **rules}, sort_keys=True)


PROFILES: dict[str, Profile] = {
    # The benchmark's value rules without the faults of its script.
    "standard": Profile("standard"),
    # The published script's verdict, bit for bit.
    "official": Profile("official", published=True, times_are_numbers=False),
    # Types matter, time of day counts, numbers agree except for rounding errors.
    "strict": Profile(
        "strict",
        decimals=None,
        noise=1e-6,
        text_numbers=TextNumbers.NEVER,
        booleans_are_numbers=False,
        dates_are_numbers=False,
        times_are_numbers=False,
        dates=Dates.TO_THE_SECOND,
        times=Times.TO_THE_SECOND,
        errors_are_text=False,
    ),
    # The rules of SpreadsheetBench 2.
    "ssb2": Profile(
        "ssb2",
        decimals=None,
        times_are_numbers=False,
        relative_tolerance=0.01,
        near_zero=0.01,
        blank_is_zero=True,
        not_meaningful=True,
        formula_fallback=True,
        groups=True,
    ),
    # The verdict of the published functions of SpreadsheetBench 2, bit for bit.
    "ssb2-official": Profile("ssb2-official", published=True, times_are_numbers=False, groups=True),
}
"""All profiles by name."""


def get_profile(name: str, **rules: object) -> Profile:
    """A profile by its name, with some of its rules changed.

    Args:
        name: one of :data:`PROFILES`.
        **rules: fields of :class:`Profile` to set.

    Raises:
        UsageError: there is no such profile or rule, or a published script has no such rule.
    """
    profile = PROFILES.get(name)
    if profile is None:
        raise UsageError(
            f"there is no profile {name!r}",
            hint=f"{did_you_mean(name, PROFILES)} Profiles: {', '.join(sorted(PROFILES))}.".strip(),
        )
    try:
        changed = replace(profile, **rules)  # type: ignore[arg-type]
    except TypeError as error:
        raise UsageError(f"profile {name!r}: {error}") from None
    check_as_published(changed)
    return changed


def check_as_published(profile: Profile) -> None:
    """Refuses a published profile with another rule: nothing would follow that rule.

    Raises:
        UsageError: it has one.
    """
    if profile.published and profile not in PROFILES.values():
        raise contradiction(profile, "another rule")


def contradiction(profile: Profile, changed: str) -> UsageError:
    """What is raised if a rule is to change what a published script says.

    Args:
        profile: the published profile.
        changed: what was requested.
    """
    others = ", ".join(
        sorted(name for name, candidate in PROFILES.items() if not candidate.published)
    )
    return UsageError(
        f"profile {profile.name} gives the verdict of a published script, which {changed} "
        "contradicts",
        hint=f"Leave it out, or choose another profile: {others}.",
    )
