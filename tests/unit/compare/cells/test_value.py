from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.compare.cells.comparison import DifferenceClass
from judge.compare.cells.value import classify, comparator, text_as_number
from judge.compare.profiles import PROFILES, get_profile
from judge.errors import UsageError
from judge.workbook.cell import CellValue, ErrorValue

NOON = dt.datetime(2024, 2, 29, 12)  # noqa: DTZ001
DAY = dt.datetime(2024, 2, 29)  # noqa: DTZ001
NA = ErrorValue("#N/A")

# expected, actual, and the profiles of "standard", "strict", "ssb2" under which they agree
TABLE: list[tuple[CellValue, CellValue, str]] = [
    (1, 1.0, "standard strict ssb2"),
    (1, 1.004, "standard ssb2"),
    (1, 1.006, "ssb2"),
    (100, 100.9, "ssb2"),
    (100, 101.1, ""),
    (0, 0.009, "ssb2"),
    (0, 0.011, ""),
    (0, 0.004, "standard ssb2"),
    (5279.174999999999, 5279.175, "standard strict ssb2"),
    (0.1 + 0.2, 0.3, "standard strict ssb2"),
    (911313316543723, 911313316543722, "ssb2"),
    ("911313316543723", "911313316543722", "ssb2"),
    (1e300, 1.1e300, ""),
    (10**400, 10**400, "standard strict ssb2"),
    (1, True, "standard ssb2"),
    (0, False, "standard ssb2"),
    (True, True, "standard strict ssb2"),
    (True, "TRUE", ""),
    (5, "5", "standard ssb2"),
    (5, " 5.00 ", "standard ssb2"),
    (1000, "1e3", "standard ssb2"),
    (1000, "1_000", ""),
    (1000, "1,000", ""),
    ("00123", "123", "standard ssb2"),
    ("nan", "nan", "standard strict ssb2"),
    ("nan", "NaN", ""),
    ("inf", "infinity", ""),
    ("a", "a", "standard strict ssb2"),
    ("a", "A", ""),
    ("a", "a ", ""),
    (None, None, "standard strict ssb2"),
    (None, "", "standard strict ssb2"),
    ("", None, "standard strict ssb2"),
    (None, " ", ""),
    (None, 0, "ssb2"),
    ("", 0, "ssb2"),
    (None, "0", "ssb2"),
    (DAY, DAY, "standard strict ssb2"),
    (DAY, NOON, "standard ssb2"),
    (DAY, DAY + dt.timedelta(hours=23), "standard ssb2"),
    (DAY, DAY - dt.timedelta(hours=1), ""),
    (DAY, DAY - dt.timedelta(milliseconds=1), "standard strict ssb2"),
    (DAY, DAY.date(), "standard strict ssb2"),
    (DAY, 45351, "standard ssb2"),
    (NOON, 45351.5, "standard ssb2"),
    (NOON, 45351, "standard ssb2"),
    (DAY, 45352, ""),
    (DAY, "45351", "standard ssb2"),
    (DAY, "2024-02-29", ""),
    (dt.time(10, 30), dt.time(10, 30, 59), "standard ssb2"),
    (dt.time(10, 30), dt.time(10, 31), ""),
    (dt.time(10, 29, 59, 999000), dt.time(10, 30), "standard strict ssb2"),
    (dt.time(10, 30), "10:30", "standard ssb2"),
    (dt.time(10, 30), "10:31", ""),
    (dt.time(12), 0.5, "standard"),
    (dt.time(12), "0.5", "standard"),
    (dt.time(12), 0.5 + 59 / 86400, "standard"),
    (dt.time(12), 0.5 + 61 / 86400, ""),
    (dt.time(12), 0.5 - 2 / 86400, ""),
    (dt.time(12), 0.5 - 0.9 / 86400, "standard"),
    (dt.time(12), 12, ""),
    (dt.time(0), 0, "standard"),
    (dt.time(0), None, ""),
    (dt.time(0), dt.timedelta(0), "standard"),
    (dt.time(10, 30), dt.timedelta(hours=10, minutes=30), "standard"),
    (dt.time(10, 30), dt.timedelta(days=1, hours=10, minutes=30), ""),
    (dt.time(10, 30), "abc", ""),
    (dt.time(10, 30), NA, ""),
    (dt.time(23, 59, 59, 999500), dt.timedelta(days=1), "standard"),
    (dt.time(23, 59, 59, 999500), 1, "standard"),
    (dt.time(23, 59, 59, 999500), 0, ""),
    (dt.time(12), 1e999, ""),
    (dt.datetime(1900, 1, 1, 1, 30), dt.timedelta(hours=25.5), "standard"),  # noqa: DTZ001
    (dt.datetime(1900, 2, 28, 6), dt.timedelta(days=59.25), "standard"),  # noqa: DTZ001
    (dt.datetime(1900, 2, 28, 6), dt.timedelta(days=60.25), "standard"),  # noqa: DTZ001
    (dt.datetime(1900, 2, 28, 6), 60.25, "standard ssb2"),  # noqa: DTZ001
    (dt.datetime(1900, 2, 28, 6), dt.timedelta(days=61.25), ""),  # noqa: DTZ001
    (dt.datetime(1899, 12, 29, 12), dt.timedelta(hours=-12), "standard"),  # noqa: DTZ001
    (DAY, dt.timedelta(days=45351), "standard"),
    (DAY, dt.time(0), ""),
    (dt.timedelta(hours=-12), -0.5, "standard"),
    (dt.timedelta(hours=-12), 0.5, ""),
    (dt.timedelta(hours=8, minutes=30), 0.35, ""),
    (dt.timedelta(hours=8, minutes=30), 8.5 / 24, "standard"),
    (dt.timedelta(hours=8, minutes=30), dt.timedelta(hours=8, minutes=30, seconds=2), ""),
    (dt.timedelta(hours=8, minutes=30), "8:30", ""),
    (dt.timedelta(hours=30), dt.timedelta(hours=30), "standard strict ssb2"),
    (dt.timedelta(hours=30), dt.timedelta(hours=30, milliseconds=400), "standard strict ssb2"),
    (dt.timedelta(hours=30), 1.25, "standard"),
    (dt.timedelta(hours=30), 1.2501, ""),
    (NA, NA, "standard strict ssb2"),
    (NA, "#N/A", "standard ssb2"),
    (NA, ErrorValue("#REF!"), ""),
    (NA, "n/a", "ssb2"),
    (ErrorValue("#DIV/0!"), "-", "ssb2"),
    ("NM", "not meaningful", "ssb2"),
    ("-", "\u2014", "ssb2"),
    (NA, None, ""),
]


@pytest.mark.parametrize(("expected", "actual", "profiles"), TABLE, ids=repr)
@pytest.mark.parametrize("profile", ["standard", "strict", "ssb2"])
def test_agreement(expected: CellValue, actual: CellValue, profiles: str, profile: str) -> None:
    agree = comparator(get_profile(profile))
    assert agree(expected, actual) is (profile in profiles.split())
    assert agree(actual, expected) is (profile in profiles.split())


def test_options_widen_the_rules() -> None:
    assert comparator(get_profile("standard", absolute_tolerance=0.5))(1, 1.5)
    assert not comparator(get_profile("standard", absolute_tolerance=0.5))(1, 1.6)
    assert comparator(get_profile("strict", relative_tolerance=0.1))(100, 109.0)
    assert comparator(get_profile("standard", ignore_case=True))("Straße", "STRASSE")
    assert comparator(get_profile("standard", ignore_whitespace=True))("a b", " a \n b ")
    assert comparator(get_profile("standard", ignore_whitespace=True))(None, "   ")


def test_tolerances_count_for_times_and_durations_too() -> None:
    agree = comparator(get_profile("standard", absolute_tolerance=1 / 24))
    assert agree(dt.timedelta(hours=8), 8.9 / 24)
    assert agree(dt.timedelta(hours=8), dt.timedelta(hours=8.9))
    assert agree(dt.time(8), dt.timedelta(hours=8.9))
    assert not agree(dt.timedelta(hours=8), 9.1 / 24)
    assert comparator(get_profile("standard", relative_tolerance=0.1))(dt.timedelta(10), 10.5)


def test_a_number_counts_in_the_date_system_of_its_own_workbook() -> None:
    standard = get_profile("standard")
    day_2 = dt.datetime(1904, 1, 2, 1, 30)  # noqa: DTZ001 - 25.5 hours in the 1904 system
    for other in (dt.timedelta(hours=25.5), 25.5 / 24):
        assert comparator(standard, expected_1904=True, actual_1904=True)(day_2, other)
        assert not comparator(standard)(day_2, other)
    # A duration means the same in both systems; a date is another number in each.
    assert comparator(standard, expected_1904=True)(day_2, dt.timedelta(hours=25.5))
    assert comparator(standard, expected_1904=True)(dt.timedelta(hours=25.5), 25.5 / 24)
    assert not comparator(standard, expected_1904=True)(day_2, 25.5 / 24)
    assert comparator(standard, expected_1904=True)(DAY, 45351)
    assert comparator(standard, expected_1904=True)(45351 - 1462, DAY)
    assert comparator(standard, actual_1904=True)(DAY, 45351 - 1462)
    assert not comparator(standard, actual_1904=True)(DAY, 45351)


def test_unknown_profiles_and_rules_are_named() -> None:
    with pytest.raises(UsageError, match="no profile 'lenient'"):
        get_profile("lenient")
    with pytest.raises(UsageError, match="tolerence"):
        get_profile("standard", tolerence=1)


def test_the_identity_changes_with_the_rules() -> None:
    identities = {each.identity for each in PROFILES.values()}
    identities.add(get_profile("standard", decimals=3).identity)
    assert len(identities) == len(PROFILES) + 1
    assert get_profile("standard").identity == get_profile("standard").identity


@pytest.mark.parametrize(
    ("text", "number"),
    [("5", 5.0), ("-5.", -5.0), (".5", 0.5), (" 5\n", 5.0), ("+1E-2", 0.01)]
    + [(text, None) for text in ("", ".", "5 5", "0x1", "1_0", "nan", "-inf", "٣", "5%", "1,5")],
)
def test_texts_that_spell_numbers(text: str, number: float | None) -> None:
    assert text_as_number(text) == number


@pytest.mark.parametrize(
    ("expected", "actual", "kind"),
    [
        (5, None, DifferenceClass.MISSING),
        (5, "", DifferenceClass.MISSING),
        (None, 5, DifferenceClass.EXTRA),
        ("", 5, DifferenceClass.EXTRA),
        (5, 6, DifferenceClass.WRONG_VALUE),
        (5, 5.5, DifferenceClass.WRONG_VALUE),
        ("a", "b", DifferenceClass.WRONG_VALUE),
        (5, "5", DifferenceClass.NUMBER_AS_TEXT),
        ("5.0", 5, DifferenceClass.NUMBER_AS_TEXT),
        (5, "6", DifferenceClass.TYPE),
        (DAY, "2024-02-29", DifferenceClass.TYPE),
        (True, 1, DifferenceClass.TYPE),
        (NA, 5, DifferenceClass.ERROR_VALUE),
        (5, NA, DifferenceClass.ERROR_VALUE),
        (NA, None, DifferenceClass.MISSING),
        (DAY, NOON, DifferenceClass.WRONG_VALUE),
        (DAY, dt.time(1), DifferenceClass.TYPE),
        (dt.timedelta(1), dt.timedelta(2), DifferenceClass.WRONG_VALUE),
    ],
)
def test_classes(expected: CellValue, actual: CellValue, kind: DifferenceClass) -> None:
    assert classify(expected, actual) is kind


@pytest.mark.parametrize(
    ("expected", "actual", "standard", "strict"),
    [
        ("115", 15, DifferenceClass.WRONG_VALUE, DifferenceClass.TYPE),
        (5, "6", DifferenceClass.WRONG_VALUE, DifferenceClass.TYPE),
        (5, "five", DifferenceClass.TYPE, DifferenceClass.TYPE),
        ("5", "five", DifferenceClass.WRONG_VALUE, DifferenceClass.WRONG_VALUE),
        (5, "5", DifferenceClass.NUMBER_AS_TEXT, DifferenceClass.NUMBER_AS_TEXT),
        (True, 0, DifferenceClass.WRONG_VALUE, DifferenceClass.TYPE),
        (DAY, 45352, DifferenceClass.WRONG_VALUE, DifferenceClass.TYPE),
        (DAY, "2024-02-29", DifferenceClass.TYPE, DifferenceClass.TYPE),
        (dt.timedelta(1), 2, DifferenceClass.WRONG_VALUE, DifferenceClass.TYPE),
        (dt.time(1), dt.timedelta(1), DifferenceClass.WRONG_VALUE, DifferenceClass.TYPE),
    ],
)
def test_what_a_profile_holds_against_each_other_is_of_one_type(
    expected: CellValue, actual: CellValue, standard: DifferenceClass, strict: DifferenceClass
) -> None:
    assert classify(expected, actual, get_profile("standard")) is standard
    assert classify(expected, actual, get_profile("strict")) is strict


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=8),
    st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(9999, 12, 31)),  # noqa: DTZ001
    st.dates(),
    st.times(),
    st.timedeltas(),
    st.sampled_from(["nan", "inf", "1e3", " 5 ", "#N/A", "-", "n/a"]),
    st.sampled_from([NA, ErrorValue("#DIV/0!"), ErrorValue("#REF!")]),
)


@given(VALUES, st.sampled_from(["standard", "strict", "ssb2"]))
def test_every_value_agrees_with_itself(value: CellValue, profile: str) -> None:
    assert comparator(get_profile(profile))(value, value)


@given(VALUES, VALUES, st.sampled_from(["standard", "strict", "ssb2"]))
def test_agreement_is_symmetric_and_never_fails(
    first: CellValue, second: CellValue, profile: str
) -> None:
    agree = comparator(get_profile(profile))
    assert agree(first, second) is agree(second, first)


@given(VALUES, VALUES)
def test_strict_agreement_is_standard_agreement(first: CellValue, second: CellValue) -> None:
    if comparator(get_profile("strict"))(first, second):
        assert comparator(get_profile("standard"))(first, second)
