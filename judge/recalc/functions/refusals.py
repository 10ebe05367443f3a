"""The numbers that Excel refuses as arguments of functions that are left to engines. Pure.

Source: the remarks on Microsoft's page on each function. Engines compute the same results, but some
also accept arguments for which Excel's result is an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from judge.recalc.functions.conversions import DIV0, LAST_SERIAL, NUM, day_parts
from judge.workbook.cell import ErrorValue

REFUSING_ERRORS = frozenset(
    """
    ACOS ACOSH ACOT ACOTH ASIN ASINH ATAN ATAN2 ATANH COS COSH COT COTH CSC CSCH SEC SECH SIN SINH
    TAN TANH DEGREES RADIANS EXP LN LOG10 SIGN EVEN ODD CEILING CEILING.MATH CEILING.PRECISE
    ISO.CEILING FLOOR FLOOR.MATH FLOOR.PRECISE ROUNDDOWN ROUNDUP TRUNC MROUND SQRTPI ROMAN
    BETA.DIST BETADIST BETA.INV BETAINV BINOM.DIST BINOMDIST BINOM.DIST.RANGE BINOM.INV CRITBINOM
    CHISQ.DIST CHISQ.DIST.RT CHIDIST CHISQ.INV CHISQ.INV.RT CHIINV CONFIDENCE CONFIDENCE.NORM
    CONFIDENCE.T EXPON.DIST EXPONDIST F.DIST F.DIST.RT FDIST F.INV F.INV.RT FINV FISHER FISHERINV
    GAMMA GAMMA.DIST GAMMADIST GAMMA.INV GAMMAINV GAMMALN GAMMALN.PRECISE GAUSS HYPGEOM.DIST
    HYPGEOMDIST LOGNORM.DIST LOGNORMDIST LOGNORM.INV LOGINV NEGBINOM.DIST NEGBINOMDIST NORM.DIST
    NORMDIST NORM.INV NORMINV NORM.S.DIST NORMSDIST NORM.S.INV NORMSINV PHI POISSON.DIST POISSON
    STANDARDIZE T.DIST T.DIST.2T T.DIST.RT TDIST T.INV T.INV.2T TINV WEIBULL.DIST WEIBULL
    DB DDB FV IPMT ISPMT NPER PDURATION PMT PPMT PV RATE RRI SLN SYD VDB
    ISOWEEKNUM DAYS360
    """.split()  # noqa: SIM905 - a list of twenty lines says no more
)
"""Functions of numbers that are left to engines unless one of their arguments is an error."""

OF_TEXT = frozenset(
    ("PROPER", "ARABIC", "DECIMAL", "REGEXTEST", "REGEXEXTRACT", "REGEXREPLACE", "TEXTSPLIT")
)
"""The same for functions that accept text."""

Refusal = Callable[[Sequence[float]], ErrorValue | None]


def _unless(accepted: Callable[..., bool], least: int, most: int) -> Refusal:
    """Refuses numbers with #NUM! unless they pass a test; other counts are left to engines.

    Args:
        accepted: gets the numbers.
        least: the smallest number of arguments that is tested.
        most: the largest.
    """

    def refusal(numbers: Sequence[float]) -> ErrorValue | None:
        if not least <= len(numbers) <= most:
            return None
        return None if accepted(*numbers) else NUM

    return refusal


def _unless_each(*tests: Callable[[float], bool]) -> Refusal:
    """Refuses numbers with #NUM! unless each passes the test for its position."""
    return _unless(
        lambda *numbers: all(test(number) for test, number in zip(tests, numbers, strict=True)),
        len(tests),
        len(tests),
    )


def _any(number: float) -> bool:
    del number
    return True


def _positive(number: float) -> bool:
    return number > 0


def _at_least_0(number: float) -> bool:
    return number >= 0


def _share(number: float) -> bool:
    return 0 <= number <= 1


def _inner_share(number: float) -> bool:
    return 0 < number < 1


def _degrees(number: float) -> bool:
    """Whether a number is accepted as a number of degrees of freedom."""
    return 1 <= number <= 1e10


def _trials(*numbers: float) -> bool:
    """The arguments of BINOM.DIST: successes, trials, the chance of success."""
    return 0 <= math.trunc(numbers[0]) <= math.trunc(numbers[1]) and _share(numbers[2])


def _quantile_of_beta(*numbers: float) -> bool:
    """The arguments of BETA.INV: a chance above 0, and two parameters."""
    return 0 < numbers[0] <= 1 and numbers[1] > 0 and numbers[2] > 0


def _drawn(*numbers: float) -> bool:
    """The arguments of HYPGEOM.DIST: successes in a sample, its size, successes in all."""
    successes, drawn, marked = map(math.trunc, numbers[:3])
    return 0 <= successes <= min(drawn, marked)


def _cumulative(
    rate: float, periods: float, value: float, start: float, end: float, at_start: float
) -> bool:
    """The arguments of CUMIPMT and CUMPRINC."""
    positive = rate > 0 and periods > 0 and value > 0
    return positive and 1 <= start <= end and end <= periods and math.trunc(at_start) in (0, 1)


def _bill(settlement: float, maturity: float, last: float) -> bool:
    """The arguments of TBILLPRICE and its relatives: at most a year, and a positive number."""
    first, end = math.floor(settlement), math.floor(maturity)
    if not 0 <= first < end <= LAST_SERIAL or last <= 0:
        return False
    (year, month, day), (last_year, last_month, last_day) = day_parts(first), day_parts(end)
    return (last_year, last_month, last_day) <= (year + 1, month, day)


def _coupon(settlement: float, maturity: float, frequency: float, basis: float = 0) -> bool:
    """The arguments of COUPDAYS and its relatives."""
    in_order = math.floor(settlement) < math.floor(maturity)
    return in_order and math.trunc(frequency) in (1, 2, 4) and math.trunc(basis) in range(5)


def _price(*numbers: float) -> bool:
    """The arguments of PRICE and YIELD."""
    settlement, maturity, rate, _, redemption, frequency = numbers[:6]
    return rate >= 0 and redemption > 0 and _coupon(settlement, maturity, frequency, *numbers[6:])


def _discounted(
    settlement: float, maturity: float, one: float, other: float, basis: float = 0
) -> bool:
    """The arguments of DISC, INTRATE, RECEIVED, PRICEDISC and YIELDDISC."""
    in_order = math.floor(settlement) < math.floor(maturity)
    return in_order and one > 0 and other > 0 and math.trunc(basis) in range(5)


def _declining(cost: float, salvage: float, life: float, period: float, factor: float = 2) -> bool:
    """The arguments of DDB."""
    return min(cost, salvage) >= 0 and 0 < period <= life and factor > 0


def _fixed(cost: float, salvage: float, life: float, period: float, month: float = 12) -> bool:
    """The arguments of DB."""
    last = life if math.trunc(month) == 12 else life + 1
    in_time = life > 0 and 0 < math.trunc(period) <= last
    return min(cost, salvage) >= 0 and in_time and 1 <= math.trunc(month) <= 12


def _time(hour: float, minute: float, second: float) -> bool:
    """The arguments of TIME."""
    parts = [math.trunc(part) for part in (hour, minute, second)]
    return max(parts) <= 32_767 and 3600 * parts[0] + 60 * parts[1] + parts[2] >= 0


def _is_day(number: float) -> bool:
    return 0 <= number < LAST_SERIAL + 1


_WEEKS = frozenset((1, 2, 3, *range(11, 18)))


def _week(day: float, kind: float = 1) -> bool:
    """The arguments of WEEKNUM and ISOWEEKNUM."""
    return _is_day(day) and math.trunc(kind) in (1, 2, *range(11, 18), 21)


def _workday(start: float, days: float, *others: float) -> bool:
    """The arguments of WORKDAY: a working day takes at least one day of the calendar."""
    del others
    return _is_day(start) and _is_day(math.floor(start) + math.trunc(days))


def _between_days(*numbers: float) -> bool:
    """The arguments of NETWORKDAYS."""
    return all(map(_is_day, numbers[:2]))


def _fraction(numbers: Sequence[float]) -> ErrorValue | None:
    """The denominator of DOLLARDE and DOLLARFR."""
    if len(numbers) != 2 or numbers[1] >= 1:
        return None
    return NUM if numbers[1] < 0 else DIV0


_LARGE_ANGLE = 2**27
"""The first angle that COT and its relatives refuse."""

_INTEREST = _unless(lambda rate, periods: rate > 0 and periods >= 1, 2, 2)
_BILL, _COUPON = _unless(_bill, 3, 3), _unless(_coupon, 3, 4)
_DISCOUNTED = _unless(_discounted, 4, 5)

REFUSALS: Mapping[str, Refusal] = {
    "CUMIPMT": _unless(_cumulative, 6, 6),
    "CUMPRINC": _unless(_cumulative, 6, 6),
    "EFFECT": _INTEREST,
    "NOMINAL": _INTEREST,
    "DOLLARDE": _fraction,
    "DOLLARFR": _fraction,
    "TBILLPRICE": _BILL,
    "TBILLYIELD": _BILL,
    "TBILLEQ": _BILL,
    **dict.fromkeys(("COUPDAYBS", "COUPDAYS", "COUPDAYSNC"), _COUPON),
    **dict.fromkeys(("COUPNCD", "COUPNUM", "COUPPCD"), _COUPON),
    "PRICE": _unless(_price, 6, 7),
    "YIELD": _unless(lambda *given: _price(*given) and given[3] > 0, 6, 7),
    **dict.fromkeys(("DISC", "INTRATE", "PRICEDISC", "YIELDDISC"), _DISCOUNTED),
    "RECEIVED": _DISCOUNTED,
    "DB": _unless(_fixed, 4, 5),
    "DDB": _unless(_declining, 4, 5),
    "TIME": _unless(_time, 3, 3),
    **dict.fromkeys(("WORKDAY", "WORKDAY.INTL"), _unless(_workday, 2, 4)),
    **dict.fromkeys(("NETWORKDAYS", "NETWORKDAYS.INTL"), _unless(_between_days, 2, 4)),
    **dict.fromkeys(("WEEKNUM", "ISOWEEKNUM"), _unless(_week, 1, 2)),
    "WEEKDAY": _unless(lambda day, kind=1: _is_day(day) and math.trunc(kind) in _WEEKS, 1, 2),
    **dict.fromkeys(("ACOS", "ASIN"), _unless_each(lambda x: abs(x) <= 1)),
    "ACOSH": _unless_each(lambda x: x >= 1),
    "ACOTH": _unless_each(lambda x: abs(x) > 1),
    **dict.fromkeys(("ATANH", "FISHER"), _unless_each(lambda x: abs(x) < 1)),
    **dict.fromkeys(("LN", "LOG10", "GAMMALN", "GAMMALN.PRECISE"), _unless_each(_positive)),
    "SQRTPI": _unless_each(_at_least_0),
    **dict.fromkeys(
        ("COT", "COTH", "CSC", "CSCH", "SEC", "SECH"), _unless_each(lambda x: abs(x) < _LARGE_ANGLE)
    ),
    **dict.fromkeys(("NORM.DIST", "NORMDIST"), _unless_each(_any, _any, _positive, _any)),
    **dict.fromkeys(("NORM.INV", "NORMINV"), _unless_each(_inner_share, _any, _positive)),
    **dict.fromkeys(("NORM.S.INV", "NORMSINV"), _unless_each(_inner_share)),
    "STANDARDIZE": _unless_each(_any, _any, _positive),
    "LOGNORM.DIST": _unless_each(_positive, _any, _positive, _any),
    "LOGNORMDIST": _unless_each(_positive, _any, _positive),
    **dict.fromkeys(("LOGNORM.INV", "LOGINV"), _unless_each(_inner_share, _any, _positive)),
    **dict.fromkeys(("EXPON.DIST", "EXPONDIST"), _unless_each(_at_least_0, _positive, _any)),
    **dict.fromkeys(
        ("POISSON.DIST", "POISSON"), _unless_each(lambda x: math.trunc(x) >= 0, _at_least_0, _any)
    ),
    **dict.fromkeys(
        ("WEIBULL.DIST", "WEIBULL", "GAMMA.DIST", "GAMMADIST"),
        _unless_each(_at_least_0, _positive, _positive, _any),
    ),
    **dict.fromkeys(("GAMMA.INV", "GAMMAINV"), _unless_each(_share, _positive, _positive)),
    **dict.fromkeys(("BINOM.DIST", "BINOMDIST"), _unless(_trials, 4, 4)),
    **dict.fromkeys(("BETA.INV", "BETAINV"), _unless(_quantile_of_beta, 3, 5)),
    **dict.fromkeys(("HYPGEOM.DIST", "HYPGEOMDIST"), _unless(_drawn, 4, 5)),
    **dict.fromkeys(("F.DIST.RT", "FDIST"), _unless_each(_at_least_0, _degrees, _degrees)),
    **dict.fromkeys(("CHISQ.DIST.RT", "CHIDIST"), _unless_each(_at_least_0, _degrees)),
    "T.DIST.2T": _unless_each(_at_least_0, _degrees),
    "T.DIST.RT": _unless_each(_any, _degrees),
}
"""Function -> returns the error for the numbers that it gets; None if they are accepted."""
