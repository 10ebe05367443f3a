"""What "equal" means: a small table of rules for each profile."""

from __future__ import annotations

import enum
import functools
import json
from dataclasses import asdict, dataclass, replace

from judge.errors import UsageError, did_you_mean


class TextNumbers(enum.StrEnum):
    """When text such as "12" counts as the number that it shows."""

    PLAIN = "plain"
    """The text consists of digits, and optionally a sign, a point, an exponent and outer spaces."""
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
        published: whether to judge exactly as the published script does, faults included; then no
            other rule applies.
        decimals: to how many decimals numbers are rounded before they are compared; None to compare
            only by tolerance.
        noise: numbers agree if they differ by at most 1e-9 of the larger one and by less than this:
            they are then taken for the same sum with different rounding errors. Distinct whole
            numbers are never that close.
        relative_tolerance: numbers this close, relative to the larger one, agree even if they
            differ when rounded.
        absolute_tolerance: the same for numbers whose difference is at most this.
        text_numbers: when a string counts as a number.
        booleans_are_numbers: whether TRUE is 1.
        dates_are_numbers: whether a date is its serial number.
        times_are_numbers: whether a time of day or a duration counts as the number of days that its
            cell stores, and so agrees with this number in a cell with another number format.
        dates: how far two date-times may be apart.
        times: how far two times of day may be apart.
        errors_are_text: whether the error ``#N/A`` is the text "#N/A".
        ignore_case: whether upper and lower case are the same.
        ignore_whitespace: whether runs of white space count as one space and are removed at the
            ends.
        unordered_rows: whether the rows of a range may be in any order.
        ignore_extra: whether values are accepted where the gold is blank.
        near_zero: a number this close to zero agrees with zero.
        blank_is_zero: whether a blank cell is the number zero.
        not_meaningful: whether "n/a", "NM", a dash, #N/A and #DIV/0! mean the same.
        formula_fallback: whether cells that show an error are compared by their formulas.
        groups: whether cells that had to change and cells that had to stay are counted
            separately, which requires the input. If :attr:`published` is set as well, the script is
            that of SpreadsheetBench 2.
        formulas: whether cells with formulas are compared by their formulas instead of their
            values.
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
        """Whether formulas count with the values stored in the files, without any computation.

        This is how the published functions of SpreadsheetBench 2 read files.
        """
        return self.published and self.groups

    @property
    def identity(self) -> str:
        """A string for reuse keys that is the same for the same rules.

        If a change of the judge may change verdicts of a profile, the version of that profile is
        raised. A rule that was added later appears in the string only if it is set, so that earlier
        results can still be reused.
        """
        return _identity(self)


RELATIVE_RULES_VERSION = 3
"""Version of profiles with a relative tolerance; in earlier versions it applied to dates too."""


@functools.lru_cache(maxsize=64)
def _identity(profile: Profile) -> str:
    """Returns the identity of a profile, cached because the key of every case contains it."""
    rules = asdict(profile)
    if not rules["formulas"]:
        del rules["formulas"]
    version = RELATIVE_RULES_VERSION if profile.relative_tolerance else 2
    return json.dumps({"rules_version": version, **rules}, sort_keys=True)


PROFILES: dict[str, Profile] = {
    # The benchmark's rules for values, without the faults of its script.
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
    """Returns the profile of a name, with some of its rules changed.

    Args:
        name: one of :data:`PROFILES`.
        **rules: fields of :class:`Profile` to set.

    Raises:
        UsageError: the profile or rule does not exist, or the profile is a published one, whose
            rules cannot be changed.
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
    """Rejects a published profile with a changed rule, which the published script would ignore.

    Raises:
        UsageError: a rule of the profile was changed.
    """
    if profile.published and profile not in PROFILES.values():
        raise contradiction(profile, "another rule")


def contradiction(profile: Profile, changed: str) -> UsageError:
    """Returns the error for a rule that would change the verdict of a published script.

    Args:
        profile: the published profile.
        changed: the rule that was requested.
    """
    others = ", ".join(
        sorted(name for name, candidate in PROFILES.items() if not candidate.published)
    )
    return UsageError(
        f"profile {profile.name} gives the verdict of a published script, which {changed} "
        "contradicts",
        hint=f"Leave it out, or choose another profile: {others}.",
    )
